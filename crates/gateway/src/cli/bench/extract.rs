//! `rollcall bench extract`: what an extraction costs, beside the bare session and the peers; and `--tune`, which finds
//! how the model is best run here and writes it into its manifest.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use gpu_worker::bench::{self, EightBits, Load, Plan, Report, Row, Tuned};
use gpu_worker::onnx::{Model, OnnxFactory};
use gpu_worker::provider::{Choice, Options};
use gpu_worker::{Manifest, runtime, tuning};

use super::super::{CliError, Context, Progress};
use super::show;
use crate::engine::EngineError;

#[derive(Debug, clap::Args)]
#[command(after_help = "Example: rollcall bench extract --rounds 10\n\
                        scripts/peers.sh installs sherpa-onnx and onnxruntime for Python beside the model; a peer that \
                        is not there is left out, and the command says so. --tune measures the model on a provider and \
                        writes the best setting into its manifest, which it leaves as it is otherwise.")]
pub(super) struct Args {
    /// Runs of each rival for each clip length
    #[arg(long, value_name = "N", default_value = "30")]
    rounds: NonZeroUsize,
    /// A Python that has the peers [default: peers/bin/python3 in the home directory, else python3]
    #[arg(long, value_name = "FILE")]
    python: Option<PathBuf>,
    /// Find the best setting for a provider, and write it into the model's manifest
    #[arg(long)]
    tune: bool,
    /// The provider to tune: auto, cpu, cuda or tensorrt
    #[arg(long, value_name = "NAME", default_value = "cpu", requires = "tune")]
    provider: String,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args, context: &Context) -> Result<(), CliError> {
    let (config, home) = (&context.config.extraction, context.home.path());
    let model = Model::find(&config.model, home).map_err(EngineError::from)?;
    let runtime = runtime::open(config.runtime.as_deref().map(Path::new), home).map_err(EngineError::from)?;
    let progress = Progress::new();
    let name = &model.manifest().name;
    if args.tune {
        let choice: Choice = args.provider.parse().map_err(|error| CliError::input(format!("--provider: {error}")))?;
        let options = Options { choice, ..Options::default() };
        let path = model.graph().with_file_name(Manifest::FILE_NAME);
        let factory = OnnxFactory::on(runtime, model.clone(), &options).map_err(CliError::input)?;
        progress.say(&format!("trying {name} on {} with {} rounds a setting", factory.taken(), args.rounds));
        let tuned = bench::tune(runtime, &factory, args.rounds)?;
        tuning::write(&path, tuned.provider, &tuned.tuning).map_err(CliError::failed)?;
        return show(args.json, &tuned, tried(&tuned, &path));
    }
    // An eight-bit model is nobody's full one.
    let int8 = Some(format!("{name}-int8")).and_then(|name| Model::find(&name, home).ok());
    let own = home.join("peers/bin/python3");
    let usual = || if own.is_file() { own } else { PathBuf::from("python3") };
    let python = args.python.clone().unwrap_or_else(usual);
    progress.say(&format!("measuring {name} with {} rounds a length", args.rounds));
    let plan = Plan { model: &model, int8: int8.as_ref(), rounds: args.rounds, python: &python };
    let report = bench::extract(runtime, &plan)?;
    show(args.json, &report, table(&report))
}

fn table(report: &Report) -> String {
    let mut table = format!("{}, one clip at a time on one thread, CPU time\n", report.model);
    table.push_str(HEAD);
    report.rows.iter().for_each(|row| table.push_str(&line(row)));
    for load in &report.loads {
        table.push_str(&loaded(load));
    }
    if let Some(int8) = &report.int8 {
        table.push_str(&eight_bits(int8));
    }
    let Report { ratios, load_average, peers, .. } = report;
    table.push_str(&format!(
        "whole by the bare session {:.3}, by sherpa-onnx {}, by Python {}; load average {:.2}\n",
        ratios.vs_bare_session,
        ratio(ratios.vs_sherpa_onnx),
        ratio(ratios.vs_python),
        load_average.unwrap_or(f64::NAN)
    ));
    peers.iter().for_each(|peer| table.push_str(&format!("peer: {peer}\n")));
    table
}

const HEAD: &str = "clip    whole (min)         its session   bare session (min)   sherpa-onnx   Python     \
                    by bare   by sherpa   audio a CPU second\n";

fn line(row: &Row) -> String {
    format!(
        "{:>2} s   {:>6.1} ms ({:>5.1})   {:>8.1} ms   {:>8.1} ms ({:>5.1})   {:>11}   {:>8}   {:>7.3}   {:>9}   {:.0} s\n",
        row.clip_s,
        row.whole_cpu_ms,
        row.whole_cpu_ms_min,
        row.session_cpu_ms,
        row.bare_cpu_ms,
        row.bare_cpu_ms_min,
        ms(row.sherpa_onnx_cpu_ms),
        ms(row.python_cpu_ms),
        row.ratio,
        ratio(row.vs_sherpa_onnx),
        row.audio_s_per_cpu_s
    )
}

fn loaded(load: &Load) -> String {
    format!(
        "{} clips of {} s at once, {} threads: whole {:.0} ms, bare sessions {:.0} ms, sherpa-onnx {}, Python {}; \
         by bare {:.3}, by sherpa {}; {:.0} s of audio a CPU second\n",
        load.clips,
        load.clip_s,
        load.threads,
        load.whole.cpu_ms,
        load.bare.cpu_ms,
        ms(load.sherpa_onnx.map(|time| time.cpu_ms)),
        ms(load.python.map(|time| time.cpu_ms)),
        load.vs_bare_session,
        ratio(load.vs_sherpa_onnx),
        load.audio_s_per_cpu_s
    )
}

fn eight_bits(int8: &EightBits) -> String {
    let mut table = format!("{}, another precision, apart\n", int8.model);
    for (row, distance) in int8.rows.iter().zip(&int8.distances) {
        table.push_str(&format!(
            "{:>2} s   whole {:.1} ms, bare session {:.1} ms, by bare {:.3}; {:.0} s of audio a CPU second; cosine \
             distance from the full model's vector of this noise {distance:.4}\n",
            row.clip_s, row.whole_cpu_ms, row.bare_cpu_ms, row.ratio, row.audio_s_per_cpu_s
        ));
    }
    table
}

fn tried(tuned: &Tuned, path: &Path) -> String {
    let mut table = String::from("threads   batch   one clip of 5 s   the run\n");
    for trial in &tuned.trials {
        let (threads, batch) = (trial.threads, trial.batch);
        table.push_str(&format!("{threads:>7}   {batch:>5}   {:>12.2} ms   {:>6.1} ms\n", trial.clip_ms, trial.run_ms));
    }
    let tuning = tuned.tuning;
    table.push_str(&format!(
        "{}: batch_max {}, batch_wait_ms {:.1}, threads {}; written to {}\n",
        tuned.provider,
        tuning.batch_max,
        tuning.batch_wait_ms,
        tuning.threads,
        path.display()
    ));
    table
}

fn ms(time: Option<f64>) -> String {
    time.map_or_else(|| "-".to_owned(), |time| format!("{time:.1} ms"))
}

fn ratio(ratio: Option<f64>) -> String {
    ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.3}"))
}
