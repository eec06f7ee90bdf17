//! Installs the runtime and a model into a home folder: `cargo run -p gpu-worker --example install -- HOME [MODEL]`.

use std::path::Path;
use std::process::ExitCode;

use gpu_worker::install;

fn main() -> ExitCode {
    let home = std::env::args().nth(1).unwrap_or_else(|| ".rollcall".to_owned());
    let home = Path::new(&home);
    let model = std::env::args().nth(2).unwrap_or_else(|| "campplus".to_owned());
    let mut progress = |text: &str| eprintln!("{text}");
    let done = install::runtime(home, &mut progress).and_then(|_| install::model(home, &model, &mut progress));
    match done {
        Ok(folder) => {
            println!("{}", folder.display());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
