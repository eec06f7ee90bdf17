//! The statements that keep a page of a conversation and read all its pages. Whether the conversation may be written to is
//! decided in `conversation.rs`.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension as _, Row, Transaction, params};

use super::mention;
use crate::store::{ConversationRecord, History, LOCAL_ACCOUNT, Page, SegmentRecord, StoreError, VoiceRecord};

/// Segments of one conversation: one a second for more than a day, some ten megabytes. Further ones are left out and
/// counted; those that are there go on growing.
const SEGMENTS_MAX: i64 = 100_000;

/// Voices of one conversation: what eight recordings of 128 voices make in eight provider streams each. Further ones are
/// left out and counted.
const VOICES_MAX: i64 = 8192;

const UPDATE_SEGMENT: &str = "
    UPDATE segments SET speaker = ?6, start_s = min(start_s, ?7), end_s = max(end_s, ?8)
    WHERE account = ?1 AND conversation = ?2 AND recording = ?3 AND scope = ?4 AND id = ?5";

const INSERT_SEGMENT: &str = "
    INSERT INTO segments (account, conversation, recording, scope, id, speaker, start_s, end_s)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";

const UPDATE_VOICE: &str = "
    UPDATE voices SET label = ?6, status = ?7, person = ?8, origin = ?9, distance = ?10, runner_up = ?11,
        evidence_seconds = ?12, attempts = ?13
    WHERE account = ?1 AND conversation = ?2 AND recording = ?3 AND scope = ?4 AND speaker = ?5";

const INSERT_VOICE: &str = "
    INSERT INTO voices (account, conversation, recording, scope, speaker, label, status, person, origin, distance,
        runner_up, evidence_seconds, attempts)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)";

/// How many rows a conversation holds, and how much news it had no room for.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Counts {
    segments: i64,
    voices: i64,
    left_out: i64,
}

/// Where the rows of one page belong.
struct Place<'a> {
    transaction: &'a Transaction<'a>,
    conversation: &'a str,
    recording: &'a str,
}

pub(super) fn write(transaction: &Transaction<'_>, conversation: &str, page: &Page) -> Result<(), StoreError> {
    let place = Place { transaction, conversation, recording: &page.recording };
    let before = place.counts()?;
    let mut after = before;
    for segment in &page.segments {
        if !place.put_segment(UPDATE_SEGMENT, segment)? {
            match after.segments < SEGMENTS_MAX && place.put_segment(INSERT_SEGMENT, segment)? {
                true => after.segments += 1,
                false => after.left_out += 1,
            }
        }
    }
    for voice in &page.voices {
        let (voice, person) = mention::of(transaction, voice)?;
        if !place.put_voice(UPDATE_VOICE, (&voice, person))? {
            match after.voices < VOICES_MAX && place.put_voice(INSERT_VOICE, (&voice, person))? {
                true => after.voices += 1,
                false => after.left_out += 1,
            }
        }
    }
    if after == before { Ok(()) } else { place.set_counts(after) }
}

impl Place<'_> {
    /// Whether a row took it.
    fn put_segment(&self, statement: &str, segment: &SegmentRecord) -> Result<bool, StoreError> {
        let rows = self.transaction.prepare_cached(statement)?.execute(params![
            LOCAL_ACCOUNT,
            self.conversation,
            self.recording,
            segment.scope,
            segment.id,
            segment.speaker,
            segment.start,
            segment.end,
        ])?;
        Ok(rows > 0)
    }

    /// Whether a row took it.
    fn put_voice(&self, statement: &str, (voice, person): (&VoiceRecord, Option<i64>)) -> Result<bool, StoreError> {
        let rows = self.transaction.prepare_cached(statement)?.execute(params![
            LOCAL_ACCOUNT,
            self.conversation,
            self.recording,
            voice.scope,
            voice.speaker,
            voice.label,
            voice.status,
            person,
            voice.origin,
            voice.distance,
            voice.runner_up,
            voice.evidence_seconds,
            voice.attempts,
        ])?;
        Ok(rows > 0)
    }

    fn counts(&self) -> Result<Counts, StoreError> {
        let mut query = self
            .transaction
            .prepare_cached("SELECT segments, voices, left_out FROM conversations WHERE account = ?1 AND id = ?2")?;
        let counts = |row: &Row<'_>| Ok(Counts { segments: row.get(0)?, voices: row.get(1)?, left_out: row.get(2)? });
        Ok(query.query_row([LOCAL_ACCOUNT, self.conversation], counts)?)
    }

    fn set_counts(&self, counts: Counts) -> Result<(), StoreError> {
        self.transaction
            .prepare_cached(
                "UPDATE conversations SET segments = ?3, voices = ?4, left_out = ?5 WHERE account = ?1 AND id = ?2",
            )?
            .execute(params![LOCAL_ACCOUNT, self.conversation, counts.segments, counts.voices, counts.left_out])?;
        Ok(())
    }
}

/// All pages, where the caller's transaction makes it one moment.
pub(super) fn read(transaction: &Transaction<'_>, conversation: &str) -> Result<Option<History>, StoreError> {
    let mut query = transaction.prepare_cached(
        "SELECT started_ms, updated_ms, left_out FROM conversations
         WHERE account = ?1 AND id = ?2 AND deleted_ms IS NULL",
    )?;
    let head = query.query_row([LOCAL_ACCOUNT, conversation], |row| {
        let record =
            ConversationRecord { id: conversation.to_owned(), started_ms: row.get(0)?, updated_ms: row.get(1)? };
        Ok((record, row.get::<_, i64>(2)?.unsigned_abs()))
    });
    let Some((record, left_out)) = head.optional()? else { return Ok(None) };
    Ok(Some(History { record, pages: pages(transaction, conversation)?, left_out }))
}

fn pages(connection: &Connection, conversation: &str) -> Result<Vec<Page>, StoreError> {
    let mut pages: BTreeMap<String, Page> = BTreeMap::new();
    let mut query = connection.prepare_cached(
        "SELECT recording, id, scope, speaker, start_s, end_s FROM segments
         WHERE account = ?1 AND conversation = ?2 ORDER BY start_s, end_s, id",
    )?;
    for row in query.query_map([LOCAL_ACCOUNT, conversation], segment)? {
        let (recording, segment) = row?;
        pages.entry(recording).or_default().segments.push(segment);
    }
    let mut query = connection.prepare_cached(
        "SELECT recording, scope, speaker, label, status, voices.person, mentions.person, origin, distance, runner_up,
             evidence_seconds, attempts
         FROM voices LEFT JOIN mentions ON mentions.number = voices.person
         WHERE voices.account = ?1 AND conversation = ?2 ORDER BY scope, speaker",
    )?;
    for row in query.query_map([LOCAL_ACCOUNT, conversation], voice)? {
        let (recording, voice) = row?;
        pages.entry(recording).or_default().voices.push(voice);
    }
    Ok(pages.into_iter().map(|(recording, page)| Page { recording, ..page }).collect())
}

fn segment(row: &Row<'_>) -> Result<(String, SegmentRecord), rusqlite::Error> {
    let (scope, speaker) = (row.get(2)?, row.get(3)?);
    Ok((row.get(0)?, SegmentRecord { id: row.get(1)?, speaker, scope, start: row.get(4)?, end: row.get(5)? }))
}

fn voice(row: &Row<'_>) -> Result<(String, VoiceRecord), rusqlite::Error> {
    let (number, person): (Option<i64>, Option<String>) = (row.get(5)?, row.get(6)?);
    let was_deleted = number.is_some() && person.is_none();
    let voice = VoiceRecord {
        scope: row.get(1)?,
        speaker: row.get(2)?,
        label: row.get(3)?,
        status: row.get(4)?,
        person,
        origin: row.get(7)?,
        distance: row.get(8)?,
        runner_up: row.get(9)?,
        evidence_seconds: row.get(10)?,
        attempts: row.get(11)?,
    };
    Ok((row.get(0)?, if was_deleted { voice.into_nobody() } else { voice }))
}
