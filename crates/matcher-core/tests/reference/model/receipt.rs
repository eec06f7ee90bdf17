//! What people decided, as a list of everything they ever said. What holds is found by looking through it.

use matcher_core::receipt::Reach;

use crate::reference::mistake::Mistake;
use crate::reference::moves::{About, Says};
use crate::reference::tally::Rule;
use crate::reference::words::Name;

use super::Rules;

/// One thing that was said. Things said at one moment share a generation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Edit {
    pub(crate) generation: u64,
    pub(crate) voice: Name,
    pub(crate) about: About,
    pub(crate) says: Says,
    pub(crate) is_carried: bool,
}

/// All edits, oldest first.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Receipt {
    pub(crate) generation: u64,
    pub(crate) edits: Vec<Edit>,
}

/// What people decided about one voice.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Ruled {
    Free,
    Rejected,
    /// A person by name, and whether a rollover brought it along.
    Named(Says, bool),
    Nobody,
    /// Something was said of one of its segments: its evidence gives no name.
    Silenced,
}

impl Says {
    pub(crate) const fn is_rejection(self) -> bool {
        matches!(self, Self::NotMe | Self::NotSarah | Self::NotAPerson)
    }

    pub(crate) const fn names(self) -> bool {
        matches!(self, Self::Owner | Self::Sarah | Self::Nina)
    }

    /// The person's id, and the name by which people called them.
    pub(crate) const fn person(self) -> (&'static str, &'static str) {
        match self {
            Self::Owner => ("user", "User"),
            Self::Sarah => ("p1", "Sarah"),
            Self::Nina => ("p9", "Nina"),
            Self::Nobody | Self::NotMe | Self::NotSarah | Self::NotAPerson => ("", ""),
        }
    }
}

impl Receipt {
    /// The receipt as it was at a generation.
    pub(crate) fn at(&self, generation: u64) -> Self {
        let edits = self.edits.iter().copied().filter(|edit| edit.generation <= generation).collect();
        Self { generation, edits }
    }

    /// What was said last of each voice and each segment; what was said of the same before is gone.
    fn standing_edits(&self) -> Vec<Edit> {
        let mut standing: Vec<Edit> = Vec::new();
        for edit in &self.edits {
            standing.retain(|earlier| match (earlier.about, edit.about) {
                (About::Voice, About::Voice) => earlier.voice != edit.voice,
                (About::Segment(one, _), About::Segment(other, _)) => one != other,
                (About::Voice, About::Segment(..)) | (About::Segment(..), About::Voice) => true,
            });
            standing.push(*edit);
        }
        standing
    }

    /// The edits that speak for a voice.
    fn of_voice(&self, voice: Name, rules: &Rules) -> Vec<Edit> {
        let alone = |edit: &Edit| matches!(edit.about, About::Segment(_, Reach::SegmentOnly));
        let mut edits: Vec<Edit> = self.standing_edits().into_iter().filter(|edit| edit.voice == voice).collect();
        if edits.iter().any(alone) {
            rules.saw(Rule::SegmentAlone);
        }
        edits.retain(|edit| !alone(edit) || rules.errs(Mistake::SegmentAloneSpeaks));
        edits
    }

    /// The newest decides; a rejection does on ties. A name holds when it was given to the whole voice.
    pub(crate) fn ruled(&self, voice: Name, rules: &Rules) -> Ruled {
        let edits = self.of_voice(voice, rules);
        let Some(newest) = edits.iter().map(|edit| edit.generation).max() else { return Ruled::Free };
        let last: Vec<Edit> = edits.into_iter().filter(|edit| edit.generation == newest).collect();
        let is_tie = last.iter().any(|edit| !edit.says.is_rejection());
        if last.iter().any(|edit| edit.says.is_rejection()) && !(is_tie && rules.errs(Mistake::TiesFavourTheName)) {
            if is_tie {
                rules.saw(Rule::RejectedOnATie);
            }
            return Ruled::Rejected;
        }
        match last.iter().find(|edit| edit.about == About::Voice) {
            Some(edit) if edit.says.names() => Ruled::Named(edit.says, edit.is_carried),
            Some(_) if rules.errs(Mistake::NobodyIsFree) => Ruled::Free,
            Some(_) => Ruled::Nobody,
            None => Ruled::Silenced,
        }
    }

    /// Once people said of anything that it is the owner, no evidence may.
    pub(crate) fn is_owner_reserved(&self, rules: &Rules) -> bool {
        if rules.errs(Mistake::ReservationIsIgnored) {
            return false;
        }
        let counts = |edit: &Edit| edit.about == About::Voice || !rules.errs(Mistake::SegmentReservesNothing);
        self.standing_edits().iter().any(|edit| edit.says == Says::Owner && counts(edit))
    }

    /// The names that go along to another conversation on a stream: one that is not ambiguous, and newer than anything else.
    pub(crate) fn portable(&self, scope: &str, rules: &Rules) -> Vec<(Name, Says)> {
        let mut names = Vec::new();
        let mut voices: Vec<Name> = self.edits.iter().map(|edit| edit.voice).collect();
        voices.sort_unstable();
        voices.dedup();
        for voice in voices.into_iter().filter(|voice| voice.1 == scope && voice.0 != 99) {
            let mut edits = self.of_voice(voice, rules);
            if rules.errs(Mistake::SegmentAloneIsCarried) {
                edits = self.standing_edits().into_iter().filter(|edit| edit.voice == voice).collect();
            }
            let newest = edits.iter().map(|edit| edit.generation).max();
            edits.retain(|edit| Some(edit.generation) == newest);
            let Some(first) = edits.first().map(|edit| edit.says) else { continue };
            if first.names() && edits.iter().all(|edit| edit.says == first) {
                names.push((voice, first));
            }
        }
        names
    }

    /// Takes names of another conversation along, as one edit; what is decided here stays.
    pub(crate) fn carry(&mut self, names: &[(Name, Says)], rules: &Rules) {
        let free = |voice: Name| self.ruled(voice, rules) == Ruled::Free;
        let news: Vec<_> = names.iter().copied().filter(|(voice, _)| free(*voice)).collect();
        if news.is_empty() {
            return;
        }
        rules.saw(Rule::CarriedNamesHere);
        self.generation += 1;
        for (voice, says) in news {
            let (generation, about) = (self.generation, About::Voice);
            self.edits.push(Edit { generation, voice, about, says, is_carried: true });
        }
    }
}
