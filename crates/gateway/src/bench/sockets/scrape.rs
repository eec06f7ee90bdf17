//! The server's own view, read from its metrics page: its latency histogram and its count of queries.

/// What one scrape says.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Scrape {
    /// Upper bound in seconds and the verdicts at or below it, ascending.
    buckets: Vec<(f64, f64)>,
    /// Reservations made.
    reserved: f64,
}

impl Scrape {
    /// Reads the text format.
    pub(super) fn read(page: &str) -> Self {
        let buckets = page.lines().filter_map(|line| {
            let rest = line.strip_prefix("rollcall_verdict_seconds_bucket{")?;
            let bound = rest.split_once("le=\"")?.1.split_once('"')?.0;
            let bound = if bound == "+Inf" { f64::INFINITY } else { bound.parse().ok()? };
            Some((bound, value(rest)?))
        });
        let attempts = |line: &str| {
            let rest = line.strip_prefix("omi_speaker_id_embedding_attempts_total{")?;
            rest.contains("outcome=\"reserved\"").then(|| value(rest)).flatten()
        };
        let reserved = page.lines().find_map(attempts).unwrap_or(0.0);
        Self { buckets: buckets.collect(), reserved }
    }

    /// What happened after an earlier scrape. A histogram without a record has no buckets yet.
    pub(super) fn since(&self, earlier: &Self) -> Self {
        let before = |index: usize| earlier.buckets.get(index).map_or(0.0, |(_, count)| *count);
        let buckets = self.buckets.iter().enumerate().map(|(index, (bound, count))| (*bound, count - before(index)));
        Self { buckets: buckets.collect(), reserved: self.reserved - earlier.reserved }
    }

    /// Queries made.
    pub(super) const fn queries(&self) -> f64 {
        self.reserved
    }

    /// A quantile in milliseconds, straight between the bounds of its bucket, as Prometheus computes it.
    pub(super) fn verdict_ms(&self, share: f64) -> Option<f64> {
        let all = self.buckets.last()?.1;
        if all <= 0.0 {
            return None;
        }
        let rank = share * all;
        let place = self.buckets.iter().position(|(_, count)| *count >= rank)?;
        let (bound, count) = *self.buckets.get(place)?;
        let below = place.checked_sub(1).and_then(|place| self.buckets.get(place));
        let (from, before) = below.copied().unwrap_or((0.0, 0.0));
        let seconds = if bound.is_finite() { from + (bound - from) * (rank - before) / (count - before) } else { from };
        Some(seconds * 1000.0)
    }
}

fn value(line: &str) -> Option<f64> {
    line.rsplit(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    //! Goal: a quantile of the time between two scrapes is that of the verdicts of that time.
    //! Method: two pages by hand.

    use super::*;

    fn page(counts: [u32; 3], reserved: u32) -> String {
        let [five, ten, all] = counts;
        format!(
            "# TYPE rollcall_verdict_seconds histogram\n\
             rollcall_verdict_seconds_bucket{{le=\"0.005\"}} {five}\n\
             rollcall_verdict_seconds_bucket{{le=\"0.01\"}} {ten}\n\
             rollcall_verdict_seconds_bucket{{le=\"+Inf\"}} {all}\n\
             omi_speaker_id_embedding_attempts_total{{outcome=\"reserved\"}} {reserved}\n"
        )
    }

    #[test]
    fn a_quantile_lies_between_the_bounds_of_its_bucket() {
        let (early, late) = (Scrape::read(&page([50, 50, 50], 3)), Scrape::read(&page([50, 150, 150], 10)));
        let between = late.since(&early);
        assert!((between.verdict_ms(0.5).unwrap() - 7.5).abs() < 1e-9);
        assert!((between.queries() - 7.0).abs() < f64::EPSILON);
        assert_eq!(early.since(&early).verdict_ms(0.5), None);
        assert_eq!(Scrape::read("").verdict_ms(0.5), None);
    }

    #[test]
    fn beyond_the_last_bound_the_answer_is_that_bound() {
        assert_eq!(Scrape::read(&page([0, 0, 4], 0)).verdict_ms(0.99), Some(10.0));
    }
}
