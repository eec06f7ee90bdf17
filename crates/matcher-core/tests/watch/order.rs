//! The order of examination, told naively: collect every ready slot, sort, take the first.

use std::cmp::Reverse;
use std::time::Duration;

use matcher_core::queue::Voice;
use matcher_core::{LaneId, Monotonic, Scope, Speaker};

use super::{AGED, Watch};
use crate::driver::policy;

/// A ready slot of one lane.
struct Ready {
    voice: Voice,
    since: Monotonic,
    is_aged: bool,
    is_tried: bool,
    is_near: bool,
    pooled: u64,
}

impl Watch {
    /// The slot that must be examined next in a conversation.
    pub(super) fn best(&self, conversation: usize) -> Option<(LaneId, Speaker, Scope)> {
        let here: Vec<LaneId> = self.driver.conversations[conversation].lanes().collect();
        let last = self.last_served.get(&conversation).copied();
        let (later, earlier): (Vec<LaneId>, Vec<LaneId>) = here.into_iter().partition(|id| Some(*id) > last);
        let first = |id: LaneId| {
            let voice = self.ready(id).first()?.voice;
            Some((id, voice.speaker, self.lanes[&id].scopes[usize::from(voice.scope)].clone()))
        };
        later.into_iter().chain(earlier).find_map(first)
    }

    /// All ready slots of a lane, in the order in which they must be examined.
    fn ready(&self, id: LaneId) -> Vec<Ready> {
        let held = &self.driver.lanes[&id];
        let scheduler = &self.driver.conversations[held.conversation];
        let (limits, now, every) = (&self.driver.limits, self.driver.now, self.every());
        let works = self.driver.open.iter().filter(|open| (open.lane, open.generation) == (id, held.generation));
        let gallery = scheduler.gallery(id).expect("the lane is here");
        if works.count() >= limits.queries_max.get() || gallery.is_empty() {
            return Vec::new();
        }
        let query_max = held.timeline.rate().samples_in(limits.query_max);
        let waiting = scheduler.queue(id).expect("the lane is here").waiting();
        let is_free =
            |speaker: Speaker| !self.driver.open.iter().any(|open| (open.lane, open.speaker) == (id, speaker));
        let ready = waiting.filter(|(voice, ..)| is_free(voice.speaker)).map(|(voice, slot, fresh)| Ready {
            voice,
            since: slot.since,
            is_aged: now.since(slot.since) >= AGED && self.lanes[&id].may_go_by_age(every),
            is_tried: self.lanes[&id].is_tried(voice.speaker),
            is_near: self.is_near_owner(id, voice),
            pooled: fresh.min(query_max),
        });
        let mut ready: Vec<Ready> = ready.collect();
        ready.sort_by_key(|slot| {
            let preference = (!slot.is_aged).then_some((slot.is_tried, !slot.is_near, Reverse(slot.pooled)));
            (!slot.is_aged, preference, slot.since, slot.voice.speaker, slot.voice.scope)
        });
        ready
    }

    fn is_near_owner(&self, id: LaneId, voice: Voice) -> bool {
        let scheduler = &self.driver.conversations[self.driver.lanes[&id].conversation];
        let scope = &self.lanes[&id].scopes[usize::from(voice.scope)];
        let explained = scheduler.explain(id, voice.speaker).into_iter().find(|told| told.state.scope == *scope);
        let nearest = explained.and_then(|told| told.candidates.into_iter().next());
        nearest.is_some_and(|(person, distance)| person.as_str() == "user" && distance < policy().near_owner_bound)
    }

    /// Remembers whether a selection went by age.
    pub(super) fn note_aged(&mut self, id: LaneId, waited: Duration) {
        let every = self.every();
        let lane = self.lanes.get_mut(&id).expect("the lane is watched");
        lane.by_age.push(waited >= AGED && lane.may_go_by_age(every));
        assert!(lane.by_age.rchunks(every).all(|row| row.iter().filter(|by_age| **by_age).count() <= 1));
    }

    fn every(&self) -> usize {
        usize::try_from(self.driver.limits.override_every.get()).expect("a small number")
    }

    /// Counts the aged, ready slots that a turn passed over: only older ones may go before them by age, and with each as many
    /// others as have turns in between.
    pub(super) fn note_passed(&mut self, id: LaneId, speaker: Speaker, scope: &Scope) {
        let (now, limits) = (self.driver.now, &self.driver.limits);
        let scheduler = &self.driver.conversations[self.driver.lanes[&id].conversation];
        let waiting = scheduler.queue(id).expect("the lane is here").waiting();
        let lane = &self.lanes[&id];
        let is_free = |voice: Voice| {
            voice.speaker != speaker
                && !self.driver.open.iter().any(|open| (open.lane, open.speaker) == (id, voice.speaker))
        };
        let aged: Vec<Voice> = waiting
            .filter(|(voice, slot, _)| now.since(slot.since) >= AGED && is_free(*voice))
            .map(|(voice, ..)| voice)
            .collect();
        let served = lane.voice(speaker, scope);
        let slots_max = limits.slots_max.get() * self.every();
        let lane = self.lanes.get_mut(&id).expect("the lane is watched");
        lane.passed.remove(&served);
        for voice in aged {
            let passed = lane.passed.entry(voice).or_default();
            *passed += 1;
            assert!(*passed < slots_max, "an aged slot was passed over {passed} times");
        }
    }
}
