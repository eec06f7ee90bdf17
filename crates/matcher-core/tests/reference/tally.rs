//! How often each rule was applied: a sequence that never gets near a rule proves nothing of it.

use std::fmt;

macro_rules! rules {
    ($($rule:ident),+ $(,)?) => {
        /// A rule that sequences must reach.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub(crate) enum Rule { $($rule),+ }

        impl Rule {
            pub(crate) const ALL: &'static [Self] = &[$(Self::$rule),+];
        }
    };
}

rules! {
    Accepted, NamedAPerson, NearMiss, NoMatch, Pending, MarginJustKept, TieOfPrints,
    Contended, Grouped, OwnerReserved, RejectedLeftOut, OtherLeftOut,
    NameRetracted, NameReplaced, Renamed, ToldWhenFirstHeard, FallenBelowTheFloor,
    Rejected, RejectedOnATie, NamedByPeople, NobodyByPeople, Silenced, SilencedLosesItsName,
    SegmentAlone, OlderReceipt,
    StaleAnswer, StaleSpeech, AnswerOfANamedVoice, AnswerOfADecidedVoice, Unauthorised,
    Suggested, SuggestionRetracted, SuggestionOfATakenPerson,
    ShortAccept, ShortAcoustic, ShortDonorAuthority, ShortArbitration, ShortUnread, HintExpired, NameLostWithItsWord,
    OldWord, WordHeardAgain,
    Resumed, ResumedWithANameOnAWord,
    CarriedNamesHere, CarriedManual, ManualNotCopied, NonOwner, NoScope, DonorUnavailable, DonorIneligible, ScopeChanged,
    ManualOverride, ManualOverrideHere, StaleGeneration, ProfileUnavailable, ProfileChanged,
    ScopeChangedMeanwhile, CurrentEvidence, CarriedAutomatic, OwnerContended, CarryDonorAuthority, VoiceprintRejected,
    CompetitorBrought, CompetitorFreed, CarriedWhileHeardHere, AttemptsGoOn,
    Kept, KeptAgain, KeptFromBefore, Withdrawn,
}

/// See the module's text.
#[derive(Clone)]
pub(crate) struct Tally(Vec<u64>);

impl Tally {
    pub(crate) fn new() -> Self {
        Self(vec![0; Rule::ALL.len()])
    }

    pub(crate) fn saw(&mut self, rule: Rule) {
        self.0[rule as usize] += 1;
    }

    pub(crate) fn of(&self, rule: Rule) -> u64 {
        self.0[rule as usize]
    }

    pub(crate) fn add(&mut self, other: &Self) {
        for (sum, more) in self.0.iter_mut().zip(&other.0) {
            *sum += more;
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for rule in Rule::ALL {
            writeln!(f, "{:>10}  {rule:?}", self.of(*rule))?;
        }
        Ok(())
    }
}
