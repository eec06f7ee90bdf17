//! The `rollcall` binary: everything it does is in the library, where it can be tested.

use std::process::ExitCode;

fn main() -> ExitCode {
    gateway::cli::main()
}
