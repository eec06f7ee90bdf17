//! The servers that compute voiceprints: each is tried as the service tries it, with a clip of noise.

use std::time::{Duration, Instant};

use gpu_worker::remote::circuit::Stand;
use gpu_worker::remote::{self, EndpointHealth, RemoteFactory};

use crate::cli::Context;
use crate::engine;

/// Beside the time that connecting and answering may take: threads start, names are looked up.
const GRACE: Duration = Duration::from_secs(1);

/// How often they are looked at.
const LOOK: Duration = Duration::from_millis(20);

/// Well when every one of them serves: one that is out of service costs the others its load.
pub(super) fn check(context: &Context, servers: &remote::Config) -> Result<String, String> {
    let manifest = engine::manifest(&context.config, &context.home).map_err(|error| error.to_string())?;
    let factory = RemoteFactory::start(servers, &manifest).map_err(|error| error.to_string())?;
    let given = Duration::from_secs_f64(servers.connect_seconds + servers.timeout_seconds) + GRACE;
    let started = Instant::now();
    let mut found = factory.endpoints();
    while !found.iter().all(serves) && started.elapsed() < given {
        std::thread::sleep(LOOK);
        found = factory.endpoints();
    }
    let out: Vec<String> = found.iter().filter(|endpoint| !serves(endpoint)).map(trouble).collect();
    if out.is_empty() {
        let names: Vec<&str> = found.iter().map(|endpoint| endpoint.endpoint.as_str()).collect();
        return Ok(format!("in service: {}", names.join(", ")));
    }
    Err(format!("{}; start it there, or name others with remote.endpoints", out.join("; ")))
}

fn serves(endpoint: &EndpointHealth) -> bool {
    matches!(endpoint.stand, Stand::Closed { .. })
}

fn trouble(endpoint: &EndpointHealth) -> String {
    match endpoint.last_fault {
        Some(fault) => format!("{}: {fault}", endpoint.endpoint),
        None => format!("{}: no answer in time", endpoint.endpoint),
    }
}
