//! What waits for the disk: at most one entry a conversation, news of one thing merged into its newest state.
//!
//! Pure: it reads no clock and writes nothing. An entry is written in this order: the deletion, the opening, the pages;
//! what came before a deletion is gone with it.

use std::collections::{BTreeMap, BTreeSet};

use tokio::sync::oneshot;

use crate::store::{Page, SegmentRecord, VoiceRecord};

/// Pages that wait: four for each conversation that a server holds by default. Beyond it all that waits of the oldest
/// conversation is forgotten.
pub(super) const PAGES_MAX: usize = 4096;

/// Segments and voices that wait: with a disk that fails for minutes, a few megabytes. Beyond it the oldest
/// conversation's segments are forgotten, and when there are none, its voices.
pub(super) const ROWS_MAX: usize = 20_000;

/// How a deletion ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deletion {
    /// Everything is gone.
    Removed,
    /// There was nothing.
    Unknown,
    /// It is gone, but bytes of it may remain in the store's file.
    TracesRemain,
    /// The store failed, and nothing is gone.
    Failed,
}

/// See the module's text.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    /// How much was ever pushed; the number of the newest push.
    pushed: u64,
    waiting: BTreeMap<String, Entry>,
    /// What is being written now, by the number of its oldest push.
    in_flight: BTreeMap<String, u64>,
    /// Who was deleted since that writing began: what fails of it forgets them too.
    deleted: BTreeSet<String>,
    pages: usize,
    rows: usize,
    /// Rows that are being written now.
    rows_in_flight: usize,
    forgotten: u64,
    /// Of those, how many [`Backlog::take_forgotten`] told.
    told: u64,
}

/// What waits of one conversation.
#[derive(Debug, Default)]
pub(super) struct Entry {
    /// The number of its oldest push.
    since: u64,
    /// Who waits for the deletion.
    pub(super) deletions: Vec<oneshot::Sender<Deletion>>,
    /// Whether the conversation began or went on.
    pub(super) opens: bool,
    drafts: BTreeMap<String, Draft>,
}

/// A page that still changes.
#[derive(Debug, Default)]
struct Draft {
    /// By stream and id.
    segments: BTreeMap<(String, String), SegmentRecord>,
    voices: BTreeMap<(u32, String), VoiceRecord>,
}

impl Backlog {
    /// The number of the newest push.
    pub(super) const fn pushed(&self) -> u64 {
        self.pushed
    }

    /// The conversation begins or goes on.
    pub(super) fn open(&mut self, conversation: &str) {
        self.make_room(usize::from(!self.waiting.contains_key(conversation)), 0);
        self.change(conversation, |entry| entry.opens = true);
    }

    /// Adds news of a recording.
    pub(super) fn push(&mut self, conversation: &str, page: Page) {
        let places = self.waiting.get(conversation).map_or(1, |entry| entry.places_for(&page.recording));
        self.make_room(places, page.segments.len() + page.voices.len());
        self.change(conversation, |entry| entry.drafts.entry(page.recording.clone()).or_default().add(page));
    }

    /// Forgets what waits of a conversation, and has the rest removed.
    pub(super) fn delete(&mut self, conversation: &str, done: oneshot::Sender<Deletion>) {
        self.change(conversation, |entry| {
            entry.opens = false;
            entry.drafts.clear();
            entry.deletions.push(done);
        });
    }

    /// A person was deleted: what waits of voices that were taken for them says so no more. Says whether something is being
    /// written now that may.
    pub(super) fn forget_person(&mut self, person: &str) -> bool {
        self.waiting.values_mut().for_each(|entry| entry.forget_person(person));
        let is_writing = !self.in_flight.is_empty();
        if is_writing {
            self.deleted.insert(person.to_owned());
        }
        is_writing
    }

    /// Whether everything up to a push is on disk or given up: of one conversation, or of all.
    pub(super) fn is_settled(&self, push: u64, conversation: Option<&str>) -> bool {
        let waiting = self.waiting.iter().map(|(id, entry)| (id, entry.since));
        let in_flight = self.in_flight.iter().map(|(id, since)| (id, *since));
        let concerns = |id: &str| conversation.is_none_or(|wanted| wanted == id);
        !waiting.chain(in_flight).any(|(id, since)| since <= push && concerns(id))
    }

    /// Everything that waits, to be written now, until [`Backlog::land`].
    pub(super) fn take(&mut self) -> BTreeMap<String, Entry> {
        self.rows_in_flight = self.rows;
        (self.pages, self.rows) = (0, 0);
        let taken = std::mem::take(&mut self.waiting);
        self.in_flight = taken.iter().map(|(id, entry)| (id.clone(), entry.since)).collect();
        taken
    }

    /// The writing ended; what failed waits again, under what came meanwhile.
    pub(super) fn land(&mut self, failed: BTreeMap<String, Entry>) {
        self.in_flight.clear();
        self.rows_in_flight = 0;
        let deleted = std::mem::take(&mut self.deleted);
        for (conversation, mut older) in failed {
            deleted.iter().for_each(|person| older.forget_person(person));
            let newer = self.remove(&conversation);
            self.insert(conversation, older.then(newer));
        }
        self.make_room(0, 0);
    }

    /// Segments and voices that were forgotten since this was asked last.
    pub(super) fn take_forgotten(&mut self) -> u64 {
        self.forgotten - std::mem::replace(&mut self.told, self.forgotten)
    }

    /// Segments and voices that are not on disk yet.
    pub(super) const fn unwritten(&self) -> usize {
        self.rows + self.rows_in_flight
    }

    /// Segments and voices that were ever forgotten.
    pub(super) const fn lost(&self) -> u64 {
        self.forgotten
    }

    fn change(&mut self, conversation: &str, change: impl FnOnce(&mut Entry)) {
        self.pushed += 1;
        let fresh = || Entry { since: self.pushed, ..Entry::default() };
        let mut entry = self.waiting.remove(conversation).map_or_else(fresh, |entry| {
            self.pages -= entry.pages();
            self.rows -= entry.rows();
            entry
        });
        change(&mut entry);
        self.insert(conversation.to_owned(), entry);
    }

    fn insert(&mut self, conversation: String, entry: Entry) {
        self.pages += entry.pages();
        self.rows += entry.rows();
        self.waiting.insert(conversation, entry);
    }

    fn remove(&mut self, conversation: &str) -> Option<Entry> {
        let entry = self.waiting.remove(conversation)?;
        self.pages -= entry.pages();
        self.rows -= entry.rows();
        Some(entry)
    }

    fn make_room(&mut self, pages: usize, rows: usize) {
        while self.pages + pages > PAGES_MAX && self.forget_oldest() {}
        while self.rows + rows > ROWS_MAX && self.thin_oldest() {}
    }

    /// Forgets all that waits of the conversation that waits longest. Says whether there was one.
    fn forget_oldest(&mut self) -> bool {
        let oldest = self.waiting.iter().min_by_key(|(_, entry)| entry.since).map(|(id, _)| id.clone());
        let Some(entry) = oldest.and_then(|oldest| self.remove(&oldest)) else { return false };
        self.forgotten += entry.rows() as u64;
        true
    }

    /// Forgets the oldest segments, a conversation's at once; where nobody has any, the oldest voices. Says whether there
    /// were any.
    fn thin_oldest(&mut self) -> bool {
        let has_segments = self.waiting.values().any(|entry| entry.segments() > 0);
        let is_thinnable = |entry: &Entry| if has_segments { entry.segments() > 0 } else { entry.rows() > 0 };
        let thinnable = self.waiting.values_mut().filter(|entry| is_thinnable(entry));
        let Some(oldest) = thinnable.min_by_key(|entry| entry.since) else { return false };
        let before = oldest.rows();
        for draft in oldest.drafts.values_mut() {
            draft.segments.clear();
            if !has_segments {
                draft.voices.clear();
            }
        }
        let gone = before - oldest.rows();
        self.rows -= gone;
        self.forgotten += gone as u64;
        true
    }
}

impl Entry {
    /// The pages, as a store takes them.
    pub(super) fn pages_to_write(&self) -> impl Iterator<Item = Page> {
        self.drafts.iter().map(|(recording, draft)| Page {
            recording: recording.clone(),
            segments: draft.segments.values().cloned().collect(),
            voices: draft.voices.values().cloned().collect(),
        })
    }

    /// An entry that only opens takes a place as well.
    fn pages(&self) -> usize {
        self.drafts.len().max(1)
    }

    /// How many places one more page of a recording takes: none when it is there, or is the first.
    fn places_for(&self, recording: &str) -> usize {
        usize::from(!self.drafts.is_empty() && !self.drafts.contains_key(recording))
    }

    fn segments(&self) -> usize {
        self.drafts.values().map(|draft| draft.segments.len()).sum()
    }

    fn rows(&self) -> usize {
        self.drafts.values().map(|draft| draft.segments.len() + draft.voices.len()).sum()
    }

    fn forget_person(&mut self, person: &str) {
        for voice in self.drafts.values_mut().flat_map(|draft| draft.voices.values_mut()) {
            if voice.person.as_deref() == Some(person) {
                *voice = voice.clone().into_nobody();
            }
        }
    }

    fn then(self, newer: Option<Self>) -> Self {
        let Some(newer) = newer else { return self };
        if !newer.deletions.is_empty() {
            return Self { since: self.since, ..newer };
        }
        let mut merged = Self { opens: self.opens || newer.opens, ..self };
        for (recording, draft) in newer.drafts {
            let older = merged.drafts.entry(recording).or_default();
            draft.segments.into_values().for_each(|segment| older.add_segment(segment));
            older.voices.extend(draft.voices);
        }
        merged
    }
}

impl Draft {
    fn add(&mut self, page: Page) {
        page.segments.into_iter().for_each(|segment| self.add_segment(segment));
        self.voices.extend(page.voices.into_iter().map(|voice| ((voice.speaker, voice.scope.clone()), voice)));
    }

    /// A segment that comes in parts reaches from its earliest start to its latest end, as in the store.
    fn add_segment(&mut self, mut segment: SegmentRecord) {
        let key = (segment.scope.clone(), segment.id.clone());
        if let Some(older) = self.segments.get(&key) {
            segment.start = segment.start.min(older.start);
            segment.end = segment.end.max(older.end);
        }
        self.segments.insert(key, segment);
    }
}
