//! The measurements behind the numbers in the README. Each returns a report that prints as a table or as JSON; none
//! prints anything itself.

pub mod fairness;
pub mod faults;
pub mod queue;
pub mod soak;
pub mod sockets;
