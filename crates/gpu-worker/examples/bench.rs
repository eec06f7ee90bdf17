//! What an extraction costs here: `cargo run --release -p gpu-worker --example bench -- HOME`. Prints one JSON object.

use std::error::Error;
use std::num::NonZeroUsize;
use std::path::Path;

use gpu_worker::onnx::Model;
use gpu_worker::{bench, runtime};

const ROUNDS: NonZeroUsize = NonZeroUsize::new(15).expect("fifteen is not zero");

fn main() -> Result<(), Box<dyn Error>> {
    let home = std::env::args().nth(1).unwrap_or_else(|| ".rollcall".to_owned());
    let home = Path::new(&home);
    let model = Model::find("campplus", home)?;
    let python = home.join("peers/bin/python3");
    let plan = bench::Plan { model: &model, int8: None, rounds: ROUNDS, python: &python };
    let report = bench::extract(runtime::open(None, home)?, &plan)?;
    println!("{}", serde_json::to_string(&report)?);
    Ok(())
}
