//! The distributions that Rollcall keeps, as they are declared: names, bounds, and the one label that some have.
//!
//! Owns what a scrape shows of them before anything was recorded: a meter shows no histogram until then, but a dashboard
//! that is built on a quiet server needs its buckets. Does not own who records (see `metrics`).

use opentelemetry::metrics::{Histogram, Meter};
use prometheus::proto::{Bucket, Histogram as Recorded, LabelPair, Metric, MetricFamily, MetricType};

use crate::labels::Class;

/// A histogram as it is declared.
pub(crate) struct Distribution {
    /// The name as it is scraped, with its unit.
    pub(crate) name: &'static str,
    /// The instrument's name: the exporter appends the unit.
    instrument: &'static str,
    unit: &'static str,
    /// What it measures.
    pub(crate) help: &'static str,
    /// Upper bounds.
    pub(crate) bounds: &'static [f64],
    /// Its label `class`, where it has one: there is a series for each of these.
    classes: &'static [Class],
}

/// From the receipt of a segment to the verdict about its voice.
pub(crate) const VERDICT: Distribution = Distribution {
    name: "rollcall_verdict_seconds",
    instrument: "rollcall_verdict",
    unit: "s",
    help: "Time from the receipt of a segment to the verdict that it led to.",
    bounds: &[0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0],
    classes: &[],
};

/// From the moment a voice could be examined to its dispatch. The bounds are close around the age override of 5 s.
pub(crate) const SELECTION: Distribution = Distribution {
    name: "rollcall_selection_wait_seconds",
    instrument: "rollcall_selection_wait",
    unit: "s",
    help: "Time that a voice which could be examined waited for its turn.",
    bounds: &[0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 7.5, 10.0, 15.0, 30.0],
    classes: Class::ALL,
};

/// From a voice's first segment to its first query. A transcriber that sends whole turns makes it a wait for a turn alone; one
/// that sends pieces adds the time in which the voice says enough: hence milliseconds to minutes.
pub(crate) const FIRST_EXAMINATION: Distribution = Distribution {
    name: "rollcall_first_examination_seconds",
    instrument: "rollcall_first_examination",
    unit: "s",
    help: "Time from a voice's first segment to its first query, gathering enough speech and waiting together.",
    bounds: &[0.001, 0.01, 0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0],
    classes: &[],
};

/// The model's part. The bounds end beyond the reservation deadline of 5 s.
pub(crate) const EXTRACTION: Distribution = Distribution {
    name: "rollcall_extraction_seconds",
    instrument: "rollcall_extraction",
    unit: "s",
    help: "Time from the reservation of a query to its settlement, waiting and running together.",
    bounds: &[0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0],
    classes: &[],
};

/// Which of its voice's attempts a query was. The last bound is the default number of attempts.
pub(crate) const ATTEMPT: Distribution = Distribution {
    name: "rollcall_attempt_of_voice",
    instrument: "rollcall_attempt_of_voice",
    unit: "",
    help: "Queries by which attempt of their voice they were: 1 is the first in its generation.",
    bounds: &[1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 10.0, 12.0],
    classes: &[],
};

/// Every one there is.
pub(crate) const DISTRIBUTIONS: [&Distribution; 5] = [&VERDICT, &SELECTION, &FIRST_EXAMINATION, &EXTRACTION, &ATTEMPT];

impl Distribution {
    pub(crate) fn build(&self, meter: &Meter) -> Histogram<f64> {
        meter
            .f64_histogram(self.instrument)
            .with_unit(self.unit)
            .with_description(self.help)
            .with_boundaries(self.bounds.to_vec())
            .build()
    }

    /// Adds what was never recorded: the family, or those of its series.
    fn complete(&self, families: &mut Vec<MetricFamily>) {
        let at = families.iter().position(|family| family.name() == self.name).unwrap_or_else(|| {
            families.push(self.family());
            families.len() - 1
        });
        let Some(family) = families.get_mut(at) else { return };
        for metric in self.series() {
            if !family.get_metric().iter().any(|recorded| recorded.get_label() == metric.get_label()) {
                family.mut_metric().push(metric);
            }
        }
    }

    fn family(&self) -> MetricFamily {
        let mut family = MetricFamily::default();
        family.set_name(self.name.to_owned());
        family.set_help(self.help.to_owned());
        family.set_field_type(MetricType::HISTOGRAM);
        family
    }

    /// Each series with nothing in it.
    fn series(&self) -> Vec<Metric> {
        let of_class = |class: &Class| self.empty(vec![class_label(*class)]);
        if self.classes.is_empty() { vec![self.empty(Vec::new())] } else { self.classes.iter().map(of_class).collect() }
    }

    fn empty(&self, labels: Vec<LabelPair>) -> Metric {
        let bucket = |bound: &f64| {
            let mut bucket = Bucket::default();
            bucket.set_upper_bound(*bound);
            bucket
        };
        let mut histogram = Recorded::default();
        histogram.set_bucket(self.bounds.iter().map(bucket).collect());
        let mut metric = Metric::from_label(labels);
        metric.set_histogram(histogram);
        metric
    }
}

/// Adds to what a meter shows every distribution that it has not recorded yet, empty.
pub(crate) fn complete(families: &mut Vec<MetricFamily>) {
    for distribution in DISTRIBUTIONS {
        distribution.complete(families);
    }
}

fn class_label(class: Class) -> LabelPair {
    let mut label = LabelPair::default();
    label.set_name("class".to_owned());
    label.set_value(class.as_str().to_owned());
    label
}

#[cfg(test)]
mod tests {
    use super::*;

    fn classes(family: &MetricFamily) -> Vec<(String, u64)> {
        let of = |metric: &Metric| {
            let label = metric.get_label().first().expect("each series has the label");
            (label.value().to_owned(), metric.get_histogram().get_sample_count())
        };
        family.get_metric().iter().map(of).collect()
    }

    #[test]
    fn every_series_of_every_distribution_is_there_before_any_recording() {
        let mut families = Vec::new();
        complete(&mut families);
        assert_eq!(families.len(), DISTRIBUTIONS.len());
        assert!(
            families
                .iter()
                .all(|family| family.get_metric().len() == if family.name() == SELECTION.name { 2 } else { 1 })
        );
    }

    #[test]
    fn a_class_that_was_recorded_stays_and_the_other_is_added() {
        let mut recorded = SELECTION.empty(vec![class_label(Class::Repeat)]);
        let mut histogram = recorded.get_histogram().clone();
        histogram.set_sample_count(3);
        recorded.set_histogram(histogram);
        let mut family = SELECTION.family();
        family.set_metric(vec![recorded]);
        let mut families = vec![family];
        complete(&mut families);
        let family = families.iter().find(|family| family.name() == SELECTION.name).expect("it was there");
        assert_eq!(classes(family), [("repeat".to_owned(), 3), ("first".to_owned(), 0)]);
    }
}
