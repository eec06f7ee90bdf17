//! The page itself. The two formats differ in four places, and only there: the name of a counter's family, how
//! `_created` is shown, how bounds are spelled, and the closing line.

use prometheus::proto::{LabelPair, Metric, MetricFamily, MetricType};

use super::{Format, WITH_CREATED};
use crate::exemplars::{Exemplar, Exemplars};

/// Writes all families. `created` is when the series were created, in seconds of Unix time.
pub(crate) fn page(format: Format, families: &[MetricFamily], created: f64, exemplars: &Exemplars) -> String {
    // A page is about 15 KiB; one allocation usually does.
    let mut page = Page { format, out: String::with_capacity(32 * 1024) };
    for family in families {
        match family.get_field_type() {
            MetricType::COUNTER => page.counter(family, created),
            MetricType::GAUGE => page.gauge(family),
            MetricType::HISTOGRAM => page.histogram(family, exemplars),
            // No instrument of ours becomes one of these.
            MetricType::SUMMARY | MetricType::UNTYPED => {}
        }
    }
    if format == Format::OpenMetrics {
        page.out.push_str("# EOF\n");
    }
    page.out
}

struct Page {
    format: Format,
    out: String,
}

impl Page {
    fn counter(&mut self, family: &MetricFamily, created: f64) {
        let name = family.name();
        let base = name.strip_suffix("_total").unwrap_or(name);
        let created = name.starts_with(WITH_CREATED).then_some(created);
        match self.format {
            Format::Text => self.counter_as_text(family, base, created),
            Format::OpenMetrics => self.counter_as_open_metrics(family, base, created),
        }
    }

    /// The text format has no `_created` sample, so it is a gauge of its own, and a gauge needs its description.
    fn counter_as_text(&mut self, family: &MetricFamily, base: &str, created: Option<f64>) {
        self.header(family.name(), family.help(), "counter");
        for metric in family.get_metric() {
            self.sample([base, "_total"], metric, None, metric.get_counter().get_value());
        }
        let Some(created) = created else { return };
        let help = format!("Unix time at which the series of {} were created.", family.name());
        self.header(&format!("{base}_created"), &help, "gauge");
        for metric in family.get_metric() {
            self.sample([base, "_created"], metric, None, created);
        }
    }

    /// OpenMetrics names the family without `_total`, and keeps the two samples of a series together.
    fn counter_as_open_metrics(&mut self, family: &MetricFamily, base: &str, created: Option<f64>) {
        self.header(base, family.help(), "counter");
        for metric in family.get_metric() {
            self.sample([base, "_total"], metric, None, metric.get_counter().get_value());
            if let Some(created) = created {
                self.sample([base, "_created"], metric, None, created);
            }
        }
    }

    fn gauge(&mut self, family: &MetricFamily) {
        self.header(family.name(), family.help(), "gauge");
        for metric in family.get_metric() {
            self.sample([family.name(), ""], metric, None, metric.get_gauge().get_value());
        }
    }

    /// Buckets point to traces, where there are any and the format can say so.
    fn histogram(&mut self, family: &MetricFamily, exemplars: &Exemplars) {
        let name = family.name();
        self.header(name, family.help(), "histogram");
        for metric in family.get_metric() {
            let histogram = metric.get_histogram();
            let mut pointers = self.pointers(name, metric, exemplars).into_iter();
            let count = float(histogram.get_sample_count());
            for bucket in histogram.get_bucket().iter().filter(|bucket| bucket.upper_bound().is_finite()) {
                let bound = self.bound(bucket.upper_bound());
                self.bucket(name, metric, (&bound, float(bucket.cumulative_count())), pointers.next().flatten());
            }
            self.bucket(name, metric, ("+Inf", count), pointers.next().flatten());
            self.sample([name, "_sum"], metric, None, histogram.get_sample_sum());
            self.sample([name, "_count"], metric, None, count);
        }
    }

    fn pointers(&self, name: &str, metric: &Metric, exemplars: &Exemplars) -> Vec<Option<Exemplar>> {
        let labels = metric.get_label().iter().map(|label| (label.name(), label.value()));
        match self.format {
            Format::Text => Vec::new(),
            Format::OpenMetrics => exemplars.of(name, &labels.collect::<Vec<_>>()),
        }
    }

    fn bucket(&mut self, name: &str, metric: &Metric, (bound, count): (&str, f64), pointer: Option<Exemplar>) {
        self.sample([name, "_bucket"], metric, Some(bound), count);
        if let Some(pointer) = pointer {
            self.out.pop();
            self.put(&[&pointer.text(), "\n"]);
        }
    }

    fn header(&mut self, name: &str, help: &str, kind: &str) {
        self.put(&["# HELP ", name, " "]);
        // Quotes need escaping in an OpenMetrics description and must stay as they are in the text format.
        escape(&mut self.out, help, self.format == Format::OpenMetrics);
        self.put(&["\n# TYPE ", name, " ", kind, "\n"]);
    }

    /// One line. The name comes in two parts, stem and suffix.
    fn sample(&mut self, name: [&str; 2], metric: &Metric, bound: Option<&str>, value: f64) {
        self.put(&name);
        let mut separator = "{";
        for label in metric.get_label() {
            self.label(separator, label);
            separator = ",";
        }
        if let Some(bound) = bound {
            self.put(&[separator, "le=\"", bound, "\""]);
            separator = ",";
        }
        if separator == "," {
            self.out.push('}');
        }
        self.put(&[" ", &number(value), "\n"]);
    }

    fn label(&mut self, separator: &str, label: &LabelPair) {
        self.put(&[separator, label.name(), "=\""]);
        escape(&mut self.out, label.value(), true);
        self.out.push('"');
    }

    /// OpenMetrics wants a bound to look like a float, `1.0`; the text format has always had `1`.
    fn bound(&self, bound: f64) -> String {
        match self.format {
            Format::Text => number(bound),
            Format::OpenMetrics => format!("{bound:?}"),
        }
    }

    fn put(&mut self, parts: &[&str]) {
        self.out.extend(parts.iter().copied());
    }
}

fn number(value: f64) -> String {
    if value.is_nan() {
        "NaN".to_owned()
    } else if value.is_infinite() {
        if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned()
    } else {
        value.to_string()
    }
}

/// Counts stay far below 2^53, where an f64 is exact.
fn float(count: u64) -> f64 {
    count as f64
}

fn escape(out: &mut String, text: &str, quotes: bool) {
    for character in text.chars() {
        match character {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '"' if quotes => out.push_str("\\\""),
            other => out.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prometheus::proto::{Bucket, Counter, Gauge, Histogram};

    fn family(name: &str, help: &str, kind: MetricType, metric: Metric) -> MetricFamily {
        let mut family = MetricFamily::default();
        family.set_name(name.to_owned());
        family.set_help(help.to_owned());
        family.set_field_type(kind);
        family.set_metric(vec![metric]);
        family
    }

    fn labelled(name: &str, value: &str) -> Metric {
        let mut label = LabelPair::default();
        label.set_name(name.to_owned());
        label.set_value(value.to_owned());
        Metric::from_label(vec![label])
    }

    fn accounting_counter() -> MetricFamily {
        let counted = |cap, value| {
            let mut metric = labelled("cap", cap);
            let mut counter = Counter::default();
            counter.set_value(value);
            metric.set_counter(counter);
            metric
        };
        let name = "omi_speaker_id_budget_exits_total";
        let mut family = family(name, "Denied.", MetricType::COUNTER, counted("both", 0.0));
        family.mut_metric().push(counted("voice", 3.0));
        family
    }

    #[test]
    fn an_accounting_counter_has_created_as_a_described_gauge_in_text() {
        let expected = "# HELP omi_speaker_id_budget_exits_total Denied.\n\
            # TYPE omi_speaker_id_budget_exits_total counter\n\
            omi_speaker_id_budget_exits_total{cap=\"both\"} 0\n\
            omi_speaker_id_budget_exits_total{cap=\"voice\"} 3\n\
            # HELP omi_speaker_id_budget_exits_created Unix time at which the series of \
            omi_speaker_id_budget_exits_total were created.\n\
            # TYPE omi_speaker_id_budget_exits_created gauge\n\
            omi_speaker_id_budget_exits_created{cap=\"both\"} 1700000000.25\n\
            omi_speaker_id_budget_exits_created{cap=\"voice\"} 1700000000.25\n";
        assert_eq!(page(Format::Text, &[accounting_counter()], 1_700_000_000.25, &Exemplars::default()), expected);
    }

    #[test]
    fn an_accounting_counter_has_created_beside_each_series_in_open_metrics() {
        let expected = "# HELP omi_speaker_id_budget_exits Denied.\n\
            # TYPE omi_speaker_id_budget_exits counter\n\
            omi_speaker_id_budget_exits_total{cap=\"both\"} 0\n\
            omi_speaker_id_budget_exits_created{cap=\"both\"} 1700000000.25\n\
            omi_speaker_id_budget_exits_total{cap=\"voice\"} 3\n\
            omi_speaker_id_budget_exits_created{cap=\"voice\"} 1700000000.25\n\
            # EOF\n";
        assert_eq!(
            page(Format::OpenMetrics, &[accounting_counter()], 1_700_000_000.25, &Exemplars::default()),
            expected
        );
    }

    #[test]
    fn a_histogram_ends_with_the_infinite_bucket_sum_and_count() {
        let mut bucket = Bucket::default();
        bucket.set_upper_bound(1.0);
        bucket.set_cumulative_count(2);
        let mut histogram = Histogram::default();
        histogram.set_bucket(vec![bucket]);
        histogram.set_sample_count(3);
        histogram.set_sample_sum(4.5);
        let mut metric = Metric::default();
        metric.set_histogram(histogram);
        let families = [family("x_seconds", "Time.", MetricType::HISTOGRAM, metric)];
        let samples = "x_seconds_bucket{le=\"+Inf\"} 3\nx_seconds_sum 4.5\nx_seconds_count 3\n";
        let header = "# HELP x_seconds Time.\n# TYPE x_seconds histogram\n";
        let text = format!("{header}x_seconds_bucket{{le=\"1\"}} 2\n{samples}");
        assert_eq!(page(Format::Text, &families, 0.0, &Exemplars::default()), text);
        let open_metrics = format!("{header}x_seconds_bucket{{le=\"1.0\"}} 2\n{samples}# EOF\n");
        assert_eq!(page(Format::OpenMetrics, &families, 0.0, &Exemplars::default()), open_metrics);
    }

    #[test]
    fn a_bucket_points_to_the_trace_of_its_own_series_in_open_metrics_alone() {
        let bucket = |bound, count| {
            let mut bucket = Bucket::default();
            bucket.set_upper_bound(bound);
            bucket.set_cumulative_count(count);
            bucket
        };
        let mut histogram = Histogram::default();
        histogram.set_bucket(vec![bucket(0.1, 0), bucket(1.0, 1)]);
        histogram.set_sample_count(2);
        let of_class = |class| {
            let mut metric = labelled("class", class);
            metric.set_histogram(histogram.clone());
            metric
        };
        let mut families = [family("x_seconds", "Time.", MetricType::HISTOGRAM, of_class("first"))];
        families[0].mut_metric().push(of_class("repeat"));
        let mut exemplars = Exemplars::default();
        let fast = exemplars.keep_one("x_seconds", "repeat", 0.5);
        let slow = exemplars.keep_one("x_seconds", "repeat", 7.0);
        let open_metrics = page(Format::OpenMetrics, &families, 0.0, &exemplars);
        let pointing: Vec<&str> = open_metrics.lines().filter(|line| line.contains("trace_id")).collect();
        assert_eq!(
            pointing,
            [
                format!("x_seconds_bucket{{class=\"repeat\",le=\"1.0\"}} 1{fast}"),
                format!("x_seconds_bucket{{class=\"repeat\",le=\"+Inf\"}} 2{slow}"),
            ]
        );
        assert!(!page(Format::Text, &families, 0.0, &exemplars).contains("trace_id"));
    }

    #[test]
    fn hostile_label_values_and_descriptions_cannot_break_a_line() {
        let mut metric = labelled("version", "a\"b\\c\nd");
        let mut gauge = Gauge::default();
        gauge.set_value(f64::INFINITY);
        metric.set_gauge(gauge);
        let families = [family("x", "say \"hi\"\\\n", MetricType::GAUGE, metric)];
        let sample = "# TYPE x gauge\nx{version=\"a\\\"b\\\\c\\nd\"} +Inf\n";
        assert_eq!(
            page(Format::Text, &families, 0.0, &Exemplars::default()),
            format!("# HELP x say \"hi\"\\\\\\n\n{sample}")
        );
        let open_metrics = format!("# HELP x say \\\"hi\\\"\\\\\\n\n{sample}# EOF\n");
        assert_eq!(page(Format::OpenMetrics, &families, 0.0, &Exemplars::default()), open_metrics);
    }
}
