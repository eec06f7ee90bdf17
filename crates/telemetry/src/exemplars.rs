//! From a latency's bucket to a trace: the newest traced query that fell into it.
//!
//! Only OpenMetrics shows them. One a bucket and series is kept, so their number is that of the buckets; a query that is
//! not traced leaves none. The histograms themselves are the meter's.

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

/// The labels of a series as they are recorded, and what its buckets point to; the last is the infinite one.
type Series = (Vec<KeyValue>, Vec<Option<Exemplar>>);

/// Those of one histogram: a handful of series.
type Kept = Arc<Mutex<Vec<Series>>>;

/// Those of all histograms, by the name as it is scraped.
#[derive(Clone, Default)]
pub(crate) struct Exemplars(Vec<(&'static str, Kept)>);

impl Exemplars {
    /// Those of one series, a place for each bucket in order.
    pub(crate) fn of(&self, name: &str, labels: &[(&str, &str)]) -> Vec<Option<Exemplar>> {
        let Some((_, kept)) = self.0.iter().find(|(histogram, _)| *histogram == name) else { return Vec::new() };
        let is_it = |(recorded, _): &&Series| {
            let pair = |pair: &KeyValue| labels.contains(&(pair.key.as_str(), pair.value.as_str().as_ref()));
            recorded.len() == labels.len() && recorded.iter().all(pair)
        };
        lock(kept).iter().find(is_it).map(|(_, buckets)| buckets.clone()).unwrap_or_default()
    }

    /// A place for those of another histogram.
    fn add(&mut self, name: &'static str) -> Kept {
        let kept = Kept::default();
        self.0.push((name, Arc::clone(&kept)));
        kept
    }
}

fn lock(kept: &Kept) -> MutexGuard<'_, Vec<Series>> {
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}

fn keep(kept: &Kept, labels: &[KeyValue], bounds: &[f64], exemplar: Exemplar) {
    let bucket = bounds.iter().position(|bound| exemplar.value <= *bound).unwrap_or(bounds.len());
    let mut kept = lock(kept);
    let at = kept.iter().position(|(recorded, _)| recorded == labels).unwrap_or_else(|| {
        kept.push((labels.to_vec(), vec![None; bounds.len() + 1]));
        kept.len() - 1
    });
    if let Some(place) = kept.get_mut(at).and_then(|(_, buckets)| buckets.get_mut(bucket)) {
        *place = Some(exemplar);
    }
}

/// A histogram of latencies that keeps exemplars.
pub(crate) struct Timed {
    histogram: Histogram<f64>,
    bounds: &'static [f64],
    kept: Kept,
}

impl Timed {
    pub(crate) fn new(distribution: &Distribution, meter: &Meter, exemplars: &mut Exemplars) -> Self {
        let Distribution { name, bounds, .. } = distribution;
        Self { histogram: distribution.build(meter), bounds, kept: exemplars.add(name) }
    }

    /// Records a latency; that of a traced query points to its trace.
    pub(crate) fn record(&self, after: Duration, labels: &[KeyValue], trace: Option<TraceContext>) {
        let value = after.as_secs_f64();
        self.histogram.record(value, labels);
        if let Some(trace) = trace {
            let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
            keep(&self.kept, labels, self.bounds, Exemplar { trace, value, at });
        }
    }
}

#[cfg(test)]
impl Exemplars {
    /// Keeps one of a new trace in a series of this class, and answers what a page says of it.
    pub(crate) fn keep_one(&mut self, name: &'static str, class: &'static str, value: f64) -> String {
        let found = self.0.iter().find(|(histogram, _)| *histogram == name).map(|(_, kept)| Arc::clone(kept));
        let kept = found.unwrap_or_else(|| self.add(name));
        let exemplar = Exemplar { trace: TraceContext::random(), value, at: 1.5 };
        keep(&kept, &[KeyValue::new("class", class)], &[0.1, 1.0], exemplar);
        exemplar.text()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_keeps_the_newest_trace_and_a_bound_belongs_to_its_bucket() {
        let mut exemplars = Exemplars::default();
        assert!(exemplars.of("latency", &[("class", "first")]).is_empty());
        exemplars.keep_one("latency", "first", 0.05);
        let (fast, beyond) = (exemplars.keep_one("latency", "first", 0.1), exemplars.keep_one("latency", "first", 7.0));
        let kept = exemplars.of("latency", &[("class", "first")]).into_iter().map(|kept| kept.map(|kept| kept.text()));
        assert_eq!(kept.collect::<Vec<_>>(), [Some(fast), None, Some(beyond)]);
        for (name, labels) in
            [("latency", &[("class", "repeat")][..]), ("latency", &[]), ("other", &[("class", "first")])]
        {
            assert!(exemplars.of(name, labels).is_empty());
        }
    }

    #[test]
    fn an_exemplar_is_written_as_open_metrics_has_it() {
        let trace = TraceContext::random();
        let text = Exemplar { trace, value: 0.25, at: 1_700_000_000.5 }.text();
        assert_eq!(text, format!(" # {{trace_id=\"{}\"}} 0.25 1700000000.500", trace.trace_id()));
    }
}
