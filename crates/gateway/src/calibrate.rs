//! What a model's distances mean on somebody's own recordings: error rates by threshold, and which threshold and margin
//! follow from them.
//!
//! ```text
//!  trials file ─┐                 ┌─▶ Rates: FAR, FRR, EER, threshold ─┐
//!               ├─▶ hear ─▶ Trial ┤                                    ├─▶ Report ─▶ text, JSON, SVG
//!  people ──────┘                 └─▶ OpenSet: gaps, margin ───────────┘
//! ```
//! Everything to the right of the trials is arithmetic. Owns what is compared with what ([`trials`] and [`people`]), the
//! arithmetic and the report; nothing is stored, and no setting is changed. A suggestion holds for the model, the
//! microphones and the lengths that were measured, and for nothing else.

mod gaps;
mod hear;
mod people;
mod plot;
mod rates;
mod report;
mod trials;

pub use gaps::{OpenSet, Outcomes};
pub use hear::{ClipError, ClipTrouble};
pub use people::PeopleTrials;
pub use plot::svg;
pub use rates::{Eer, Point, Rates, RatesError, Suggestion};
pub use report::{Report, Source};
pub use trials::{List, ListError};

/// Trials of one run, at most: the largest list in common use has 580 thousand, and this many take 100 MB.
pub const TRIALS_MAX: usize = 2_000_000;

/// Clips of one run, at most: each keeps its voiceprint, about a kilobyte, until the end.
pub const CLIPS_MAX: usize = 100_000;

/// What a comparison is known to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Both sides are one person.
    Target,
    /// They are two.
    Nontarget,
}

/// One comparison, heard.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trial {
    /// Which clip was tried; trials of one clip make up its open-set test.
    pub test: usize,
    /// Whose print it was compared with; several prints may be one person's.
    pub person: usize,
    /// What it is known to be.
    pub kind: Kind,
    /// Cosine distance to the enrolled print.
    pub distance: f64,
}

#[cfg(test)]
mod tests;
