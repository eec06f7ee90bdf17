//! `rollcall serve`: the whole service in this process, until it is told to stop.
//!
//! ```text
//!   settings ─▶ logs ─▶ engine ─▶ people ─▶ listening ─▶ SIGTERM or SIGINT ─▶ drain ─▶ engine ends ─▶ exit 0
//! ```
//! What runs in between is [`crate::serve`]; this file brings it up, waits, and takes it down.

use std::future::Future;
use std::sync::Arc;

use gpu_worker::Engine as _;
use gpu_worker::pool::Pool;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::{CliError, Context, print};
use crate::capsule::Sealer;
use crate::config::Config;
use crate::people::People;
use crate::serve::{ServeError, Server};

/// Arguments of `rollcall serve`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: rollcall serve --listen 127.0.0.1:8700 --data ./data\n\
                        SIGTERM stops it: open sockets get a goodbye, open queries are settled, and it exits 0.")]
pub(super) struct Args {
    /// Address and port to listen on; port 0 picks a free one
    #[arg(long, value_name = "ADDR")]
    listen: Option<String>,
    /// Record what the schedulers do, as metadata only, for `rollcall simulate --trace FILE`; up to ten files of this name
    #[arg(long, value_name = "FILE")]
    record: Option<String>,
}

pub(super) fn run(args: &Args, context: &Context) -> Result<(), CliError> {
    let mut config = context.config.clone();
    if let Some(listen) = &args.listen {
        config.server.listen.clone_from(listen);
        config.validate()?;
    }
    if let Some(record) = &args.record {
        config.server.record = Some(record.clone());
    }
    context.start_logs(telemetry::DEFAULT_FILTER)?;
    let engine = context.open_engine_to_serve()?;
    tell(&engine);
    let people = context.open_people(engine.manifest())?;
    let sealer = context.open_sealer()?;
    let served = actix_web::rt::System::new().block_on(serve(&config, engine.clone(), people, sealer));
    let ended = engine.shutdown();
    if ended.threads_left > 0 {
        tracing::warn!(threads = ended.threads_left, "extraction threads that hang are left behind");
    }
    served
}

/// What computes, once at the start; `/readyz` and the metrics say it from then on.
fn tell(engine: &Pool) {
    let (model, provider) = (&engine.manifest().name, engine.provider());
    tracing::info!(%model, provider, workers = engine.health().workers, "voiceprints are computed");
    if let Some(reason) = engine.provider_instead() {
        tracing::warn!(provider, %reason, "not the execution provider that was hoped for");
    }
}

async fn serve(config: &Config, engine: Pool, people: People, sealer: Sealer) -> Result<(), CliError> {
    // Before anybody can know that the server is there: whoever reads its address may stop it at once.
    let mut stop = Stop::listen()?;
    let server = Server::start(config, Arc::new(engine), people, sealer)?;
    let address = server.address();
    print(&format!("listening on http://{address}\n"))?;
    tracing::info!(%address, "listening");
    stop.asked().await;
    tracing::info!("draining");
    drain(server.drain(), &mut stop).await?;
    tracing::info!("stopped");
    Ok(())
}

/// Somebody who asks a second time does not want to wait for the drain.
async fn drain(draining: impl Future<Output = Result<(), ServeError>>, stop: &mut Stop) -> Result<(), CliError> {
    tokio::select! {
        drained = draining => Ok(drained?),
        () = stop.asked() => Err(CliError::failed("stopped before everything was settled, by a second signal")),
    }
}

/// The two signals that mean the end.
struct Stop {
    terminate: Signal,
    interrupt: Signal,
}

impl Stop {
    fn listen() -> Result<Self, CliError> {
        let listen = |kind| signal(kind).map_err(|error| CliError::failed(format!("cannot hear signals: {error}")));
        Ok(Self { terminate: listen(SignalKind::terminate())?, interrupt: listen(SignalKind::interrupt())? })
    }

    async fn asked(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

impl From<ServeError> for CliError {
    fn from(error: ServeError) -> Self {
        match error {
            ServeError::Bind { .. } | ServeError::Otlp(_) | ServeError::Journal(_) => Self::input(error),
            ServeError::Telemetry(_) | ServeError::Server(_) => Self::failed(error),
        }
    }
}
