//! How an engine stands, as it is told: to scrapers as levels, to whoever asks `/readyz` as JSON.
//!
//! Endpoints are told apart by their place in the configuration, from 0; only logs and the settings name machines.

use gpu_worker::Engine;
use gpu_worker::remote::EndpointHealth;
use gpu_worker::remote::circuit::Stand;
use serde_json::{Value, json};
use telemetry::{Circuit, Endpoint, EndpointFailure};

/// Each endpoint, for a scrape.
pub(crate) fn levels(engine: &dyn Engine) -> Vec<Endpoint> {
    engine.endpoints().iter().map(level).collect()
}

/// What computes the voiceprints, why it is not what was hoped for when it is not, and each endpoint.
pub(crate) fn json(engine: &dyn Engine) -> Value {
    let endpoints: Vec<Value> = (0..).zip(engine.endpoints()).map(|(index, health)| endpoint(index, &health)).collect();
    json!({"provider": engine.provider(), "instead": engine.provider_instead(), "endpoints": endpoints})
}

fn level(health: &EndpointHealth) -> Endpoint {
    let known = |kind: &str| EndpointFailure::ALL.iter().copied().find(|failure| failure.as_str() == kind);
    let failures = health.failed_by_kind.iter().filter_map(|(kind, count)| Some((known(kind)?, *count)));
    Endpoint {
        circuit: circuit(health.stand),
        under_way: health.under_way as u64,
        answered: health.answered,
        failures: failures.collect(),
    }
}

fn endpoint(index: u32, health: &EndpointHealth) -> Value {
    json!({
        "endpoint": index,
        "circuit": circuit(health.stand).as_str(),
        "under_way": health.under_way,
        "answered": health.answered,
        "failed": health.failed,
        "last_fault": health.last_fault.map(|fault| fault.to_string()),
    })
}

const fn circuit(stand: Stand) -> Circuit {
    match stand {
        Stand::Closed { .. } => Circuit::Closed,
        Stand::Open => Circuit::Open,
        Stand::Probing => Circuit::Probing,
    }
}

#[cfg(test)]
mod tests {
    use gpu_worker::remote::Fault;
    use matcher_core::BadVector;

    use super::*;

    /// What can be counted against an endpoint. A query without an endpoint, or without time, is sent to none.
    const SENT: [Fault; 11] = [
        Fault::OutOfTime,
        Fault::GivenUp,
        Fault::Unreachable,
        Fault::Broken,
        Fault::Stalled,
        Fault::Status(500),
        Fault::Refused(400),
        Fault::TooLarge,
        Fault::NotAnAnswer("it is not"),
        Fault::BadVector(BadVector::ZeroNorm),
        Fault::AnotherModel,
    ];

    #[test]
    fn every_fault_of_a_query_that_was_sent_is_counted_by_its_kind() {
        let failed_by_kind = SENT.iter().map(|fault| (fault.kind(), 1)).collect();
        let health = EndpointHealth {
            endpoint: "http://10.0.0.7:8000".to_owned(),
            stand: Stand::Open,
            under_way: 0,
            answered: 3,
            failed: 11,
            failed_by_kind,
            last_fault: Some(Fault::Broken),
        };
        let level = level(&health);
        assert_eq!(level.failures.len(), SENT.len());
        assert_eq!(EndpointFailure::ALL.len(), SENT.len());
        assert!(!endpoint(0, &health).to_string().contains("10.0.0.7"), "no machine is named");
    }
}
