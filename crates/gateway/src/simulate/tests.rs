//! Goal: the service's order keeps its bounds in every scenario, the control does not, and a seed is a whole run.
//! Method: every scenario over many seeds, as many as `ROLLCALL_SIMULATED_SEEDS` says; a failure names its seed.
