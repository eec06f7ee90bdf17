//! What the fault run found, whether it is as it must be, and how it looks as a table.

use std::fmt;
use std::time::Duration;

use super::drive::Tally;
use super::leaks::Left;
use super::{PATIENCE, RECOVERY_MAX};

/// One fault and what became of the queries that met it.
#[derive(Debug, Clone)]
pub struct Row {
    /// What was wrong.
    pub fault: String,
    /// Queries that were asked.
    pub queries: usize,
    /// Answered with the clip's voiceprint.
    pub voiceprints: usize,
    /// Answered with another voiceprint.
    pub wrong: usize,
    /// Answered with a failure after they were tried.
    pub failed: usize,
    /// Refused at once: nobody was there to try them.
    pub refused: usize,
    /// Given up by their callers before they were answered.
    pub left: usize,
    /// Not answered within their patience.
    pub unanswered: usize,
    /// How long the slowest answer took.
    pub longest: Duration,
    /// How long after the fault's end everything was well; none when it was not within the stated time.
    pub recovery: Option<Duration>,
    /// What the servers' own books say, where there are servers: queries answered well, and in vain.
    pub books: Option<(u64, u64)>,
}

impl Row {
    pub(super) fn new(fault: String, queries: usize, tally: Tally, recovery: Option<Duration>) -> Self {
        let Tally { voiceprints, wrong, failed, refused, left, unanswered, longest } = tally;
        Self { fault, queries, voiceprints, wrong, failed, refused, left, unanswered, longest, recovery, books: None }
    }

    /// What is not as it must be: every query answered once and in time, rightly or not at all; the books of callers and
    /// servers agree, where a query that was given up may or may not have reached a server; everything well again within
    /// ten seconds.
    #[must_use]
    pub fn troubles(&self) -> Vec<String> {
        let ended = self.voiceprints + self.wrong + self.failed + self.refused + self.left + self.unanswered;
        let balanced = self.books.is_none_or(|(well, vain)| {
            let [well, vain] = [well, vain].map(|count| usize::try_from(count).unwrap_or(usize::MAX));
            // Of those that were given up, an answer may have come at the last moment.
            let (least, most) = (self.voiceprints + self.failed, self.voiceprints + self.failed + self.left);
            well >= self.voiceprints && vain >= self.failed && (least..=most).contains(&well.saturating_add(vain))
        });
        [
            (self.unanswered > 0, format!("{} queries were not answered", self.unanswered)),
            (self.wrong > 0, format!("{} queries were answered with another's voiceprint", self.wrong)),
            (ended != self.queries, format!("{} queries were asked and {ended} ended", self.queries)),
            (self.longest > PATIENCE, format!("an answer took {:.1} s", self.longest.as_secs_f64())),
            (!balanced, format!("the servers' books say {:?}", self.books)),
            (self.recovery.is_none(), format!("it was not well again within {} s", RECOVERY_MAX.as_secs())),
        ]
        .into_iter()
        .filter(|(wrong, _)| *wrong)
        .map(|(_, trouble)| format!("{}: {trouble}", self.fault))
        .collect()
    }
}

/// The whole run. It displays as a table.
#[derive(Debug, Clone)]
pub struct Report {
    /// Each fault.
    pub rows: Vec<Row>,
    /// What was left behind, where that can be known.
    pub left: Option<Left>,
}

impl Report {
    /// Everything that is not as it must be; nothing when the run was good.
    #[must_use]
    pub fn troubles(&self) -> Vec<String> {
        let mut troubles: Vec<String> = self.rows.iter().flat_map(Row::troubles).collect();
        if let Some(left) = self.left.filter(|left| left.threads + left.descriptors > 0) {
            troubles.push(format!("{} threads and {} descriptors were left behind", left.threads, left.descriptors));
        }
        troubles
    }

    /// Queries that were asked, over all rows.
    #[must_use]
    pub fn queries(&self) -> usize {
        self.rows.iter().map(|row| row.queries).sum()
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let longest = self.longest.as_secs_f64() * 1e3;
        let recovery = self.recovery.map_or("none".to_owned(), |time| format!("{:.0}", time.as_secs_f64() * 1e3));
        let Self { fault, queries, voiceprints, failed, refused, left, unanswered, wrong, .. } = self;
        write!(f, "{fault:<60} {queries:>7} {voiceprints:>11} {failed:>7} {refused:>7} {left:>8} {unanswered:>10}")?;
        write!(f, " {wrong:>5} {longest:>10.0} {recovery:>11}")
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<60} {:>7} {:>11} {:>7} {:>7}", "fault", "queries", "voiceprints", "failed", "refused")?;
        write!(f, " {:>8} {:>10} {:>5}", "given up", "unanswered", "wrong")?;
        writeln!(f, " {:>10} {:>11}", "longest ms", "recovery ms")?;
        for row in &self.rows {
            writeln!(f, "{row}")?;
        }
        match self.left {
            Some(left) => {
                let Left { threads, descriptors } = left;
                writeln!(f, "{} queries; {threads} threads and {descriptors} descriptors left behind", self.queries())
            }
            None => writeln!(f, "{} queries; what was left behind cannot be known on this system", self.queries()),
        }
    }
}
