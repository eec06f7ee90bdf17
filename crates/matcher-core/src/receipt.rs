//! What people decided about a conversation's voices. Corrections are law: the newest wins, a rejection on ties.
//!
//! A receipt belongs to one conversation and outlives it. Each edit raises its generation by one. A voice-wide entry speaks
//! for the voice; a segment entry speaks for its segment, and unless it is for that segment alone also for its voice. Owns
//! the rules of precedence; knows no evidence and no gallery, and where it is kept is its owner's business.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::ids::{PersonId, Scope, SegmentId, Speaker};
use crate::policy::Role;

/// Entries of one receipt: every voice of a long conversation many times over. Beyond it an edit is refused, and what was
/// decided before stays.
pub const ENTRIES_MAX: usize = 4096;

/// The number of the assistant's own questions: it is nobody's voice, and never carried.
const RESERVED: Speaker = Speaker(99);

/// A voice as a receipt names it: by number and provider stream, for a number means nothing in another stream.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct VoiceName {
    /// The provider's number.
    pub speaker: Speaker,
    /// The provider stream.
    pub scope: Scope,
}

/// Whom a person named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// The person.
    pub person: PersonId,
    /// The name at the time, shown when the person is no longer enrolled.
    pub name: Arc<str>,
    /// Owner or not.
    pub role: Role,
}

/// Why a voice is not who it seems.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rejection {
    /// "That is not me."
    NotMe,
    /// "That is not this person."
    NotPerson(PersonId),
    /// A television, a dog, a door.
    NotAPerson,
}

/// One decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ruling {
    /// This is them.
    Is(Named),
    /// Somebody, but nobody who has a name here.
    IsNobody,
    /// Not who it seems.
    Not(Rejection),
}

impl Ruling {
    const fn is_rejection(&self) -> bool {
        matches!(self, Self::Not(_))
    }
}

/// Where a decision was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Source {
    /// In this conversation.
    #[default]
    Here,
    /// In the conversation before, on the same provider stream; a rollover brought it along.
    Carried,
}

/// A ruling and when it was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The receipt's generation after the edit.
    pub generation: u64,
    /// What was decided.
    pub ruling: Ruling,
    /// Where.
    pub source: Source,
}

/// How far a segment's entry reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// It speaks for the segment's voice as well.
    Voice,
    /// It speaks for the segment alone.
    SegmentOnly,
}

/// The entry of one segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentEntry {
    /// The segment's voice.
    pub voice: VoiceName,
    /// How far it reaches.
    pub reach: Reach,
    /// The decision.
    pub entry: Entry,
}

/// What an edit is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// The whole voice.
    Voice,
    /// These segments of it.
    Segments(Vec<SegmentId>, Reach),
}

/// One edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Correction {
    /// The voice.
    pub voice: VoiceName,
    /// All of it, or some segments.
    pub subject: Subject,
    /// The decision.
    pub ruling: Ruling,
}

/// The receipt holds its most entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this conversation holds its most corrections")]
pub struct Full;

/// What a receipt says of a voice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// Nothing: its evidence decides.
    Free,
    /// It is not who it seems, and takes no part in arbitration.
    Rejected,
    /// It is this person.
    Named(Named, Source),
    /// It is nobody who has a name here.
    Nobody,
    /// Somebody decided about a part of it: its evidence changes nothing any more.
    Silenced,
}

impl Standing {
    /// Whether nobody decided anything.
    #[must_use]
    pub const fn is_free(&self) -> bool {
        matches!(self, Self::Free)
    }
}

/// See the module's text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Receipt {
    generation: u64,
    voices: BTreeMap<VoiceName, Entry>,
    /// By recording and id: two devices may count their segments alike.
    segments: BTreeMap<(Arc<str>, SegmentId), SegmentEntry>,
    /// What follows from the entries, for it is asked of every voice at every verdict.
    standings: BTreeMap<VoiceName, Standing>,
    is_owner_reserved: bool,
}

impl Receipt {
    /// A receipt as it was kept.
    ///
    /// # Errors
    /// When it holds more than [`ENTRIES_MAX`] entries.
    pub fn restore(
        generation: u64,
        voices: BTreeMap<VoiceName, Entry>,
        segments: impl IntoIterator<Item = (SegmentId, SegmentEntry)>,
    ) -> Result<Self, Full> {
        let segments = segments.into_iter().map(|(id, held)| (key(&held.voice, &id), held)).collect();
        let mut receipt = Self { generation, voices, segments, ..Self::default() };
        if receipt.entries() > ENTRIES_MAX {
            return Err(Full);
        }
        receipt.conclude();
        Ok(receipt)
    }

    fn entries(&self) -> usize {
        self.voices.len() + self.segments.len()
    }

    /// Rises by one with every edit.
    #[must_use]
    pub const fn generation(&self) -> u64 {
        self.generation
    }

    /// Voice-wide entries.
    pub fn voices(&self) -> impl Iterator<Item = (&VoiceName, &Entry)> {
        self.voices.iter()
    }

    /// Entries of segments.
    pub fn segments(&self) -> impl Iterator<Item = (&SegmentId, &SegmentEntry)> {
        self.segments.iter().map(|((_, id), held)| (id, held))
    }

    /// Makes one edit.
    ///
    /// # Errors
    /// When the receipt is full; nothing is changed then.
    pub fn correct(&mut self, correction: &Correction) -> Result<(), Full> {
        let news = match &correction.subject {
            Subject::Voice => usize::from(!self.voices.contains_key(&correction.voice)),
            Subject::Segments(ids, _) => {
                ids.iter().filter(|id| !self.segments.contains_key(&key(&correction.voice, id))).count()
            }
        };
        if self.entries() + news > ENTRIES_MAX {
            return Err(Full);
        }

        self.generation += 1;
        let (ruling, source) = (correction.ruling.clone(), Source::Here);
        let entry = Entry { generation: self.generation, ruling, source };
        match &correction.subject {
            Subject::Voice => {
                self.voices.insert(correction.voice.clone(), entry);
            }
            Subject::Segments(ids, reach) => {
                for id in ids {
                    let voice = correction.voice.clone();
                    let held = SegmentEntry { voice, reach: *reach, entry: entry.clone() };
                    self.segments.insert(key(&correction.voice, id), held);
                }
            }
        }
        self.conclude();
        Ok(())
    }

    /// What follows from the entries. Once an edit.
    fn conclude(&mut self) {
        let spoken = self.segments.values().filter(|held| held.reach == Reach::Voice);
        let of_segments = spoken.map(|held| (&held.voice, &held.entry));
        let mut entries: BTreeMap<&VoiceName, Vec<&Entry>> = BTreeMap::new();
        for (voice, entry) in self.voices.iter().chain(of_segments) {
            entries.entry(voice).or_default().push(entry);
        }
        let concluded =
            |(voice, entries): (&VoiceName, Vec<&Entry>)| (voice.clone(), conclusion(self.voices.get(voice), &entries));
        self.standings = entries.into_iter().map(concluded).collect();
        let segments = self.segments.values().map(|held| &held.entry);
        self.is_owner_reserved = self.voices.values().chain(segments).any(names_the_owner);
    }

    /// What people decided about a voice: the newest rejection when no decision for somebody is newer, else the newest
    /// decision. A name for the whole voice is a name; anything else only silences its evidence.
    #[must_use]
    pub fn standing(&self, voice: &VoiceName) -> Standing {
        self.standings.get(voice).cloned().unwrap_or(Standing::Free)
    }

    /// The names that a rollover takes along on a provider stream: of each voice the newest decision, when it names one
    /// person and no rejection is as new. A name for a single segment is not its voice's.
    #[must_use]
    pub fn portable(&self, scope: &Scope) -> BTreeMap<VoiceName, Named> {
        let of_segments = self.segments.values().filter(|held| held.reach == Reach::Voice);
        let mut newest: BTreeMap<&VoiceName, Vec<&Entry>> = BTreeMap::new();
        for (voice, entry) in self.voices.iter().chain(of_segments.map(|held| (&held.voice, &held.entry))) {
            let held = newest.entry(voice).or_default();
            if held.first().is_none_or(|known| known.generation < entry.generation) {
                held.clear();
            }
            if held.first().is_none_or(|known| known.generation == entry.generation) {
                held.push(entry);
            }
        }
        let on_scope = newest.into_iter().filter(|(voice, _)| voice.scope == *scope && voice.speaker != RESERVED);
        on_scope.filter_map(|(voice, entries)| Some((voice.clone(), one_name(&entries)?.clone()))).collect()
    }

    /// Takes the names of the conversation before, as one edit; what is decided here already stays.
    ///
    /// # Errors
    /// When the receipt is full; nothing is changed then.
    pub fn carry(&mut self, names: &BTreeMap<VoiceName, Named>) -> Result<(), Full> {
        let news: Vec<_> = names.iter().filter(|(voice, _)| !self.standings.contains_key(*voice)).collect();
        if news.is_empty() {
            return Ok(());
        }
        if self.entries() + news.len() > ENTRIES_MAX {
            return Err(Full);
        }

        self.generation += 1;
        for (voice, named) in news {
            let ruling = Ruling::Is(named.clone());
            self.voices.insert(voice.clone(), Entry { generation: self.generation, ruling, source: Source::Carried });
        }
        self.conclude();
        Ok(())
    }

    /// Whether a person said who the owner is, of a voice or of a single segment: then no evidence may say it.
    #[must_use]
    pub const fn is_owner_reserved(&self) -> bool {
        self.is_owner_reserved
    }
}

fn key(voice: &VoiceName, segment: &SegmentId) -> (Arc<str>, SegmentId) {
    (voice.scope.recording().into(), segment.clone())
}

fn names_the_owner(entry: &Entry) -> bool {
    match &entry.ruling {
        Ruling::Is(named) => named.role == Role::Owner,
        Ruling::IsNobody | Ruling::Not(_) => false,
    }
}

/// What a voice's entries come to, `wide` being the one for all of it.
fn conclusion(wide: Option<&Entry>, entries: &[&Entry]) -> Standing {
    let newest = |rejections: bool| {
        let of_kind = entries.iter().filter(|entry| entry.ruling.is_rejection() == rejections);
        of_kind.map(|entry| entry.generation).max()
    };
    match (newest(true), newest(false)) {
        (None, None) => Standing::Free,
        (Some(rejected), decided) if decided.is_none_or(|decided| rejected >= decided) => Standing::Rejected,
        (_, decided) => match wide.filter(|entry| Some(entry.generation) == decided) {
            Some(Entry { ruling: Ruling::Is(named), source, .. }) => Standing::Named(named.clone(), *source),
            Some(Entry { ruling: Ruling::IsNobody, .. }) => Standing::Nobody,
            Some(Entry { ruling: Ruling::Not(_), .. }) | None => Standing::Silenced,
        },
    }
}

/// The one person that decisions of one moment name, if they agree.
fn one_name<'a>(entries: &[&'a Entry]) -> Option<&'a Named> {
    let names = |entry: &&'a Entry| match &entry.ruling {
        Ruling::Is(named) => Some(named),
        Ruling::IsNobody | Ruling::Not(_) => None,
    };
    let first = entries.first().and_then(names)?;
    entries.iter().all(|entry| names(entry).is_some_and(|named| named.person == first.person)).then_some(first)
}

#[cfg(test)]
mod tests {
    //! Goal: precedence among corrections is as people expect: the newest wins, and a segment speaks for no more than it
    //! was meant to.
    //! Method: short histories by hand.

    use super::*;

    fn voice(speaker: u32) -> VoiceName {
        VoiceName { speaker: Speaker(speaker), scope: Scope::new("socket:0") }
    }

    fn named(person: &str, role: Role) -> Ruling {
        Ruling::Is(Named { person: PersonId::new(person), name: person.into(), role })
    }

    fn receipt(history: &[(u32, Subject, Ruling)]) -> Receipt {
        let mut receipt = Receipt::default();
        for (speaker, subject, ruling) in history {
            let (voice, subject, ruling) = (voice(*speaker), subject.clone(), ruling.clone());
            receipt.correct(&Correction { voice, subject, ruling }).unwrap();
        }
        receipt
    }

    fn segment(id: &str, reach: Reach) -> Subject {
        Subject::Segments(vec![SegmentId::new(id)], reach)
    }

    // B7.92
    #[test]
    fn a_voice_that_is_named_after_it_was_rejected_is_named() {
        let p1 = named("p1", Role::Person);
        let receipt = receipt(&[(4, Subject::Voice, Ruling::Not(Rejection::NotMe)), (4, Subject::Voice, p1)]);
        assert!(
            matches!(receipt.standing(&voice(4)), Standing::Named(named, Source::Here) if named.person.as_str() == "p1")
        );
        assert_eq!(receipt.standing(&voice(5)), Standing::Free);
        assert_eq!(receipt.generation(), 2);
    }

    // B7.97, B7.98
    #[test]
    fn a_segments_name_silences_its_voice_unless_it_is_for_the_segment_alone() {
        let p1 = || named("p1", Role::Person);
        let receipt = receipt(&[
            (1, segment("s1", Reach::Voice), p1()),
            (2, segment("s2", Reach::SegmentOnly), p1()),
            (3, segment("s3", Reach::SegmentOnly), Ruling::Not(Rejection::NotMe)),
        ]);
        assert_eq!(receipt.standing(&voice(1)), Standing::Silenced);
        assert_eq!(receipt.standing(&voice(2)), Standing::Free);
        assert_eq!(receipt.standing(&voice(3)), Standing::Free, "and a rejection touches that segment alone");
    }

    #[test]
    fn a_newer_entry_of_a_segment_beats_an_older_one_of_its_voice() {
        let rejected = Ruling::Not(Rejection::NotAPerson);
        let receipt =
            receipt(&[(1, Subject::Voice, named("p1", Role::Person)), (1, segment("s1", Reach::Voice), rejected)]);
        assert_eq!(receipt.standing(&voice(1)), Standing::Rejected);
    }

    // B3.52
    #[test]
    fn one_segment_that_is_the_owner_reserves_the_owner() {
        let owner = named("user", Role::Owner);
        assert!(receipt(&[(1, segment("s1", Reach::SegmentOnly), owner.clone())]).is_owner_reserved());
        let taken_back = (1, segment("s1", Reach::SegmentOnly), Ruling::Not(Rejection::NotMe));
        assert!(!receipt(&[(1, segment("s1", Reach::SegmentOnly), owner), taken_back]).is_owner_reserved());
    }

    #[test]
    fn a_full_receipt_refuses_the_next_edit_and_keeps_what_it_has() {
        let ids = (0..ENTRIES_MAX).map(|index| SegmentId::new(&index.to_string())).collect();
        let mut receipt = receipt(&[(1, Subject::Segments(ids, Reach::SegmentOnly), Ruling::IsNobody)]);
        let one_more = Correction { voice: voice(1), subject: Subject::Voice, ruling: Ruling::IsNobody };
        assert_eq!(receipt.correct(&one_more), Err(Full));
        assert_eq!(receipt.generation(), 1);
        let again = Correction { subject: segment("7", Reach::Voice), ..one_more };
        assert_eq!(receipt.correct(&again), Ok(()), "an entry that is there can change");
    }
}
