//! What a command writes: results to standard output, errors and progress to standard error.
//!
//! A reader that leaves early (`| head`) is no error, and no panic.

use std::io::{ErrorKind, IsTerminal, Write};

use super::CliError;

/// Writes to standard output as it is.
///
/// # Errors
/// When standard output cannot be written, other than because its reader left.
pub fn print(text: &str) -> Result<(), CliError> {
    let mut output = std::io::stdout().lock();
    match output.write_all(text.as_bytes()).and_then(|()| output.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(CliError::failed(format!("standard output: {error}")))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// One line on standard error, whatever the text holds. There is nowhere left to report a failure of it.
pub(super) fn complain(text: &str) {
    let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    writeln!(std::io::stderr(), "rollcall: {line}").unwrap_or_default();
}

/// Tells a person at a terminal how far long work is, and nobody else.
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    shown: bool,
}

impl Progress {
    /// Shown when standard error is a terminal.
    #[must_use]
    pub fn new() -> Self {
        Self { shown: std::io::stderr().is_terminal() }
    }

    /// One step.
    pub fn say(&self, step: &str) {
        if self.shown {
            writeln!(std::io::stderr(), "{step}").unwrap_or_default();
        }
    }
}

impl Default for Progress {
    fn default() -> Self {
        Self::new()
    }
}
