//! What the front ends cost here: `cargo run --release -p gpu-worker --example front_ends -- PYTHON`.

use std::error::Error;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use gpu_worker::front_end::measure::measure;

const ROUNDS: NonZeroUsize = NonZeroUsize::new(101).expect("a hundred and one is not zero");

fn main() -> Result<(), Box<dyn Error>> {
    let python = std::env::args_os().nth(1).map_or_else(|| PathBuf::from("python3"), PathBuf::from);
    println!("{}", serde_json::to_string_pretty(&measure(ROUNDS, &python)?)?);
    Ok(())
}
