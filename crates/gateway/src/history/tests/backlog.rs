//! Goal: what waits is merged, bounded, and forgotten oldest first; and whoever waits for it is told the truth.
//! Method: the backlog by hand, without a store.

use std::collections::BTreeMap;

use tokio::sync::oneshot;

use super::{page, segment, voice};
use crate::history::backlog::{Backlog, Entry, PAGES_MAX, ROWS_MAX};
use crate::store::{Page, SegmentRecord, VoiceRecord};

fn pages(batch: &BTreeMap<String, Entry>, conversation: &str) -> Vec<Page> {
    batch[conversation].pages_to_write().collect()
}

fn segments(conversation: &str, count: usize) -> Page {
    let segments: Vec<_> = (0..count).map(|n| segment(&format!("{conversation}-{n}"), 1, 0.0)).collect();
    page("phone", &segments, &[voice(1, "pending", None)])
}

#[test]
fn news_of_one_segment_and_one_voice_is_merged_into_its_newest_state() {
    let mut backlog = Backlog::default();
    backlog.push("talk", page("phone", &[segment("s1", 1, 0.0)], &[voice(1, "pending", None)]));
    backlog.push("talk", page("laptop", &[segment("s1", 1, 5.0)], &[]));
    backlog.push("talk", page("phone", &[segment("s1", 1, 2.0), segment("s2", 1, 3.0)], &[voice(1, "user", None)]));
    let laptop = page("laptop", &[segment("s1", 1, 5.0)], &[]);
    let grown = SegmentRecord { start: 0.0, ..segment("s1", 1, 2.0) };
    let phone = page("phone", &[grown, segment("s2", 1, 3.0)], &[voice(1, "user", None)]);
    assert_eq!(pages(&backlog.take(), "talk"), [laptop, phone]);
}

#[test]
fn what_failed_waits_again_under_what_came_meanwhile() {
    let mut backlog = Backlog::default();
    backlog.open("talk");
    backlog.push("talk", page("phone", &[segment("s1", 1, 0.0), segment("s2", 1, 1.0)], &[]));
    let failed = backlog.take();
    backlog.push("talk", page("phone", &[segment("s2", 2, 0.0)], &[]));
    backlog.land(failed);
    let again = backlog.take();
    assert!(again["talk"].opens);
    let grown = SegmentRecord { end: 2.0, ..segment("s2", 2, 0.0) };
    assert_eq!(pages(&again, "talk"), [page("phone", &[segment("s1", 1, 0.0), grown], &[])]);
}

#[test]
fn what_is_being_written_is_not_on_disk_yet_and_what_was_lost_is_counted_for_good() {
    let mut backlog = Backlog::default();
    backlog.push("talk", segments("talk", 2));
    assert_eq!(backlog.unwritten(), 3, "two segments and a voice");
    let failed = backlog.take();
    backlog.push("talk", segments("other", 1));
    assert_eq!(backlog.unwritten(), 5);
    backlog.land(failed);
    assert_eq!(backlog.unwritten(), 4, "one voice, told twice");
    backlog.take();
    backlog.land(BTreeMap::new());
    assert_eq!((backlog.unwritten(), backlog.lost()), (0, 0));
    backlog.push("talk", segments("talk", ROWS_MAX));
    backlog.push("late", segments("late", 1));
    assert_eq!((backlog.take_forgotten(), backlog.take_forgotten()), (backlog.lost(), 0));
    assert!(backlog.lost() > 0);
}

#[test]
fn a_push_is_settled_when_it_is_written_and_later_ones_do_not_matter() {
    let mut backlog = Backlog::default();
    backlog.push("talk", segments("talk", 1));
    let push = backlog.pushed();
    assert!(!backlog.is_settled(push, None) && backlog.is_settled(push, Some("other")));
    let batch = backlog.take();
    assert!(!backlog.is_settled(push, Some("talk")), "it is being written");
    backlog.push("talk", segments("talk", 1));
    backlog.land(batch);
    assert!(!backlog.is_settled(push, None), "it failed");
    backlog.take();
    backlog.push("talk", segments("talk", 1));
    backlog.land(BTreeMap::new());
    assert!(backlog.is_settled(push, None) && !backlog.is_settled(backlog.pushed(), None));
}

#[test]
fn a_deletion_takes_what_waits_along_also_what_failed_before() {
    let mut backlog = Backlog::default();
    backlog.open("talk");
    backlog.push("talk", segments("talk", 2));
    let failed = backlog.take();
    backlog.push("talk", segments("talk", 3));
    backlog.delete("talk", oneshot::channel().0);
    backlog.land(failed);
    backlog.push("talk", page("tablet", &[segment("after", 1, 0.0)], &[]));
    let batch = backlog.take();
    assert!(!batch["talk"].opens);
    assert_eq!(pages(&batch, "talk"), [page("tablet", &[segment("after", 1, 0.0)], &[])]);
    assert_eq!(batch["talk"].deletions.len(), 1);
}

#[test]
fn beyond_the_limit_of_rows_the_oldest_conversation_loses_its_segments_and_keeps_its_voices() {
    let mut backlog = Backlog::default();
    backlog.push("old", segments("old", ROWS_MAX / 2));
    backlog.push("new", segments("new", ROWS_MAX / 2 - 2));
    assert_eq!(backlog.take_forgotten(), 0, "it is full to the last row");
    backlog.push("newest", segments("newest", 1));
    assert_eq!((backlog.take_forgotten(), backlog.take_forgotten()), (ROWS_MAX as u64 / 2, 0));
    let batch = backlog.take();
    assert_eq!(pages(&batch, "old"), [page("phone", &[], &[voice(1, "pending", None)])]);
    assert_eq!(pages(&batch, "new")[0].segments.len(), ROWS_MAX / 2 - 2);
}

#[test]
fn with_voices_alone_the_oldest_conversations_go() {
    let mut backlog = Backlog::default();
    let voices: Vec<_> = (0..).take(ROWS_MAX).map(|speaker| voice(speaker, "no_match", None)).collect();
    backlog.push("old", page("phone", &[], &voices));
    backlog.push("new", segments("new", 1));
    assert_eq!(backlog.take_forgotten(), ROWS_MAX as u64);
    assert_eq!(pages(&backlog.take(), "new"), [segments("new", 1)]);
}

#[test]
fn beyond_the_limit_of_pages_the_oldest_conversation_is_forgotten() {
    let mut backlog = Backlog::default();
    for conversation in 0..PAGES_MAX {
        backlog.open(&format!("c{conversation:05}"));
    }
    // An opening and the first page are one place.
    backlog.push("c00000", segments("c00000", 2));
    backlog.push("c00000", segments("c00000", 2));
    assert_eq!(backlog.take_forgotten(), 0);
    backlog.push("late", segments("late", 1));
    assert_eq!(backlog.take_forgotten(), 3);
    let batch = backlog.take();
    assert_eq!((batch.len(), batch.contains_key("c00000"), batch.contains_key("late")), (PAGES_MAX, false, true));
}

#[test]
fn what_failed_does_not_grow_beyond_the_limits_either() {
    let mut backlog = Backlog::default();
    backlog.push("old", segments("old", ROWS_MAX - 2));
    let failed = backlog.take();
    backlog.push("new", segments("new", 9));
    backlog.land(failed);
    assert_eq!(backlog.take_forgotten(), ROWS_MAX as u64 - 2, "the oldest gives way, not what came meanwhile");
    let batch = backlog.take();
    assert_eq!((pages(&batch, "old")[0].segments.len(), pages(&batch, "new")[0].segments.len()), (0, 9));
}

#[test]
fn a_segment_id_that_comes_again_in_another_stream_is_another_segment() {
    let mut backlog = Backlog::default();
    let later = SegmentRecord { scope: "stream:1".to_owned(), ..segment("s1", 2, 0.5) };
    backlog.push("talk", page("phone", &[segment("s1", 1, 0.0)], &[]));
    backlog.push("talk", page("phone", std::slice::from_ref(&later), &[]));
    assert_eq!(pages(&backlog.take(), "talk"), [page("phone", &[segment("s1", 1, 0.0), later], &[])]);
}

#[test]
fn what_waits_of_a_deleted_persons_voices_is_nobodys_also_when_its_writing_fails_later() {
    let mut backlog = Backlog::default();
    let (anna, ben) = (voice(1, "user", Some("anna")), voice(2, "not_user", Some("ben")));
    let nobody = anna.clone().into_nobody();
    let both = |first: &VoiceRecord| page("phone", &[segment("s1", 1, 0.0)], &[first.clone(), ben.clone()]);
    backlog.push("first", both(&anna));
    let failed = backlog.take();
    backlog.push("second", both(&anna));

    assert!(backlog.forget_person("anna"), "the first is being written");
    backlog.land(failed);

    let batch = backlog.take();
    assert_eq!((pages(&batch, "first"), pages(&batch, "second")), (vec![both(&nobody)], vec![both(&nobody)]));
    backlog.land(BTreeMap::new());
    assert!(!backlog.forget_person("anna"), "nothing is being written any more");
    backlog.push("third", both(&anna));
    let later = backlog.take();
    backlog.land(later);
    assert_eq!(pages(&backlog.take(), "third"), [both(&anna)], "who is enrolled later has what is heard later");
}
