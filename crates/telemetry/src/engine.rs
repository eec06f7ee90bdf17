//! What computes the voiceprints: the execution provider, and how each server stands that is asked on another machine.
//!
//! Endpoints are told apart by their place in the configuration: no name of a machine is ever a label. Does not own how
//! an endpoint comes to stand as it does.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use opentelemetry::KeyValue;
use opentelemetry::metrics::Meter;

use crate::labels::{Circuit, EndpointFailure};

/// How one endpoint stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Whether it is asked.
    pub circuit: Circuit,
    /// Queries that it is working on.
    pub under_way: u64,
    /// Queries that it answered with a voiceprint, since the start.
    pub answered: u64,
    /// Queries that were sent to it in vain since the start, by what went wrong; kinds that are left out have none.
    pub failures: Vec<(EndpointFailure, u64)>,
}

/// The engine as a scrape shows it. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Engine(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    provider: Option<&'static str>,
    endpoints: Vec<Endpoint>,
}

impl Engine {
    /// Replaces what is known: what computes, and the endpoints in the order of the configuration. A static name cannot
    /// be anybody's id.
    pub fn set(&self, provider: &'static str, endpoints: Vec<Endpoint>) {
        *self.state() = State { provider: Some(provider), endpoints };
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `each` with every endpoint and its place as a label.
    fn each(&self, mut each: impl FnMut(&Endpoint, KeyValue)) {
        for (index, endpoint) in (0_i64..).zip(&self.state().endpoints) {
            each(endpoint, KeyValue::new("endpoint", index));
        }
    }

    pub(crate) fn observe(&self, meter: &Meter) {
        self.observe_provider(meter);
        self.observe_circuits(meter);
        self.observe_queries(meter);
    }

    fn observe_provider(&self, meter: &Meter) {
        let engine = self.clone();
        meter
            .u64_observable_gauge("rollcall_engine_info")
            .with_description("Always 1; the label says what computes the voiceprints.")
            .with_callback(move |gauge| {
                if let Some(provider) = engine.state().provider {
                    gauge.observe(1, &[KeyValue::new("provider", provider)]);
                }
            })
            .build();
    }

    fn observe_circuits(&self, meter: &Meter) {
        let engine = self.clone();
        meter
            .u64_observable_gauge("rollcall_endpoint_circuit")
            .with_description("1 for the state in which the circuit of an extraction server is, 0 for the others.")
            .with_callback(move |gauge| {
                engine.each(|endpoint, place| {
                    for circuit in Circuit::ALL {
                        let labels = [place.clone(), KeyValue::new("state", circuit.as_str())];
                        gauge.observe(u64::from(*circuit == endpoint.circuit), &labels);
                    }
                });
            })
            .build();
    }

    fn observe_queries(&self, meter: &Meter) {
        let engine = self.clone();
        meter
            .u64_observable_gauge("rollcall_endpoint_under_way")
            .with_description("Queries that an extraction server is working on.")
            .with_callback(move |gauge| engine.each(|endpoint, place| gauge.observe(endpoint.under_way, &[place])))
            .build();
        let engine = self.clone();
        meter
            .u64_observable_counter("rollcall_endpoint_answered")
            .with_description("Queries that an extraction server answered with a voiceprint.")
            .with_callback(move |counter| engine.each(|endpoint, place| counter.observe(endpoint.answered, &[place])))
            .build();
        let engine = self.clone();
        meter
            .u64_observable_counter("rollcall_endpoint_failures")
            .with_description("Queries that were sent to an extraction server in vain, by what went wrong.")
            .with_callback(move |counter| {
                engine.each(|endpoint, place| {
                    for kind in EndpointFailure::ALL {
                        let count = endpoint.failures.iter().find(|(of, _)| of == kind).map_or(0, |(_, count)| *count);
                        counter.observe(count, &[place.clone(), KeyValue::new("kind", kind.as_str())]);
                    }
                });
            })
            .build();
    }
}
