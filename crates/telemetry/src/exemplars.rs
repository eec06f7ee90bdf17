//! From a latency's bucket to a trace: the newest traced query that fell into it.
//!
//! Only OpenMetrics shows them. One a bucket and series is kept, so their number is that of the buckets; a query that is
//! not traced leaves none. The histograms themselves are the meter's.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use opentelemetry::KeyValue;
use opentelemetry::metrics::{Histogram, Meter};

use crate::distributions::Distribution;
use crate::traces::TraceContext;

/// One of them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Exemplar {
    trace: TraceContext,
    /// Seconds.
    value: f64,
    /// Seconds since 1970.
    at: f64,
}

impl Exemplar {
    /// As OpenMetrics writes it behind a sample.
    pub(crate) fn text(&self) -> String {
        format!(" # {{trace_id=\"{}\"}} {} {:.3}", self.trace.trace_id(), self.value, self.at)
    }
}

/// The name of a histogram as it is scraped, and the labels of a series in their order.
type Series = (&'static str, Vec<(String, String)>);

/// Those of all histograms. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct Exemplars(Arc<Mutex<BTreeMap<Series, Vec<Option<Exemplar>>>>>);

impl Exemplars {
    /// Those of one series, a place for each bucket in order; the last is the infinite one's.
    pub(crate) fn of(&self, name: &str, labels: &[(String, String)]) -> Vec<Option<Exemplar>> {
        let kept = self.lock();
        let found = kept.iter().find(|((histogram, series), _)| *histogram == name && series == labels);
        found.map(|(_, buckets)| buckets.clone()).unwrap_or_default()
    }

    fn keep(&self, series: Series, bounds: &[f64], exemplar: Exemplar) {
        let bucket = bounds.iter().position(|bound| exemplar.value <= *bound).unwrap_or(bounds.len());
        let mut kept = self.lock();
        let buckets = kept.entry(series).or_insert_with(|| vec![None; bounds.len() + 1]);
        if let Some(place) = buckets.get_mut(bucket) {
            *place = Some(exemplar);
        }
    }

    /// Keeps one of a new trace, and answers what a page says of it.
    #[cfg(test)]
    pub(crate) fn keep_one(&self, series: Series, bounds: &[f64], value: f64) -> String {
        let exemplar = Exemplar { trace: TraceContext::random(), value, at: 1.5 };
        self.keep(series, bounds, exemplar);
        exemplar.text()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Series, Vec<Option<Exemplar>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A histogram of latencies that keeps exemplars.
pub(crate) struct Timed {
    histogram: Histogram<f64>,
    name: &'static str,
    bounds: &'static [f64],
    exemplars: Exemplars,
}

impl Timed {
    pub(crate) fn new(distribution: &Distribution, meter: &Meter, exemplars: &Exemplars) -> Self {
        let Distribution { name, bounds, .. } = distribution;
        Self { histogram: distribution.build(meter), name, bounds, exemplars: exemplars.clone() }
    }

    /// Records a latency; that of a traced query points to its trace.
    pub(crate) fn record(&self, after: Duration, labels: &[KeyValue], trace: Option<TraceContext>) {
        let value = after.as_secs_f64();
        self.histogram.record(value, labels);
        let Some(trace) = trace else { return };
        let mut series: Vec<_> = labels.iter().map(|pair| (pair.key.to_string(), pair.value.to_string())).collect();
        // The exporter sorts them as well.
        series.sort_unstable();
        let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        self.exemplars.keep((self.name, series), self.bounds, Exemplar { trace, value, at });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: &[f64] = &[0.1, 1.0];

    fn keep(exemplars: &Exemplars, value: f64) -> String {
        exemplars.keep_one(("latency", Vec::new()), BOUNDS, value)
    }

    #[test]
    fn a_bucket_keeps_the_newest_trace_and_a_bound_belongs_to_its_bucket() {
        let exemplars = Exemplars::default();
        assert!(exemplars.of("latency", &[]).is_empty());
        keep(&exemplars, 0.05);
        let (fast, beyond) = (keep(&exemplars, 0.1), keep(&exemplars, 7.0));
        let traces = exemplars.of("latency", &[]).into_iter().map(|kept| kept.map(|kept| kept.text()));
        assert_eq!(traces.collect::<Vec<_>>(), [Some(fast), None, Some(beyond)]);
        assert!(exemplars.of("latency", &[("class".into(), "first".into())]).is_empty());
    }

    #[test]
    fn an_exemplar_is_written_as_open_metrics_has_it() {
        let trace = TraceContext::random();
        let text = Exemplar { trace, value: 0.25, at: 1_700_000_000.5 }.text();
        assert_eq!(text, format!(" # {{trace_id=\"{}\"}} 0.25 1700000000.500", trace.trace_id()));
    }
}
