//! A lane that moves: rollover with and without what may be carried, and a recording that resumes in another socket.

use std::collections::BTreeMap;
use std::sync::Arc;

use matcher_core::{
    Budget, Carried, Carry, CarryReason, Device, Donor, Event, Generation, Hint, Join, Keepsake, LaneId, Memory,
    Receipt, Scheduler, Scope, Timeline,
};

use super::{Driver, LANE, fixture::policy};

/// A rollover between its fence and the word of the conversation before.
pub(crate) struct Moving {
    pub(crate) lane: LaneId,
    pub(crate) from: usize,
    pub(crate) carry: Carry,
}

impl Driver {
    /// The lane goes on in a new conversation of its own, with what may be carried.
    pub(crate) fn roll_over_carrying(&mut self) {
        let moving = self.begin_rollover();
        let word = Donor::Read(Arc::new(self.conversations[moving.from].receipt().clone()));
        self.finish_rollover(moving, word);
    }

    /// The lane has left its conversation and joined a new one, and the conversation before has not been heard.
    pub(crate) fn begin_rollover(&mut self) -> Moving {
        self.begin_rollover_to(LANE, self.conversations.len())
    }

    pub(crate) fn begin_rollover_to(&mut self, id: LaneId, to: usize) -> Moving {
        if to == self.conversations.len() {
            self.conversations.push(Scheduler::new(self.limits.clone(), policy()));
        }
        let lane = self.lanes.get_mut(&id).expect("the lane is here");
        let from = std::mem::replace(&mut lane.conversation, to);
        let (scope, attempts) = (lane.scope.clone(), lane.budget.attempted().collect::<BTreeMap<_, _>>());
        lane.generation = Generation(lane.generation.0 + 1);
        lane.budget.handle_rollover(lane.generation);
        let (generation, rate) = (lane.generation, lane.timeline.rate());
        let gallery = self.conversations[from].gallery(id).expect("the lane was here").clone();
        let mut out = Vec::new();
        let left = self.conversations[from].handle_left(id, &mut out);
        let device = self.lanes[&id].device.clone();
        let join = Join { held: left.held, device, ..Join::new(generation, rate, gallery) };
        self.conversations[to].handle_joined(id, join).expect("the lane has left");
        self.perform(from, out);
        Moving {
            lane: id,
            from,
            carry: Carry { generation, scope, memory: left.memory, attempts, donor: Donor::Unavailable },
        }
    }

    /// What the conversation before answered arrives: names that people gave first, then the evidence.
    pub(crate) fn finish_rollover(&mut self, moving: Moving, word: Donor) {
        let Moving { lane: id, mut carry, .. } = moving;
        let to = self.lanes[&id].conversation;
        let mut out = Vec::new();
        if let Donor::Read(receipt) = &word {
            let mut here: Receipt = self.conversations[to].receipt().clone();
            here.carry(&receipt.portable(&carry.scope)).expect("a test's receipt has room");
            self.conversations[to].handle_receipt(here, &mut out);
        }
        carry.donor = word;
        let spent = self.conversations[to].handle_carried(id, carry, &mut out);
        self.lanes.get_mut(&id).expect("the lane is here").budget.handle_carried(spent);
        self.perform(to, out);
    }

    /// The recording goes on in another socket and the same conversation: the clock of its audio starts anew.
    pub(crate) fn resume(&mut self, timeline: Timeline, device: Device) {
        let lane = self.lanes.get_mut(&LANE).expect("the lane is here");
        let conversation = lane.conversation;
        lane.generation = Generation(lane.generation.0 + 1);
        Budget::handle_resumption(&mut lane.budget, lane.generation);
        lane.timeline = timeline;
        let (generation, rate, attempts) = (lane.generation, lane.timeline.rate(), lane.budget.attempted().collect());
        let gallery = self.conversations[conversation].gallery(LANE).expect("the lane was here").clone();
        let mut out = Vec::new();
        let left = self.conversations[conversation].handle_left(LANE, &mut out);
        self.perform(conversation, out);
        self.rejoin(Join {
            attempts,
            held: left.held,
            memory: left.memory,
            device,
            ..Join::new(generation, rate, gallery)
        });
    }

    /// The lane starts anew in a conversation of its own, as another recording on this device.
    pub(crate) fn start_anew(&mut self, device: Device) {
        self.roll_over();
        let lane = self.lanes.get_mut(&LANE).expect("the lane is here");
        lane.generation = Generation(lane.generation.0 + 1);
        Budget::handle_resumption(&mut lane.budget, lane.generation);
        let (conversation, generation, rate) = (lane.conversation, lane.generation, lane.timeline.rate());
        let gallery = self.conversations[conversation].gallery(LANE).expect("the lane was here").clone();
        let mut out = Vec::new();
        self.conversations[conversation].handle_left(LANE, &mut out);
        self.perform(conversation, out);
        self.rejoin(Join { device, memory: Memory::default(), ..Join::new(generation, rate, gallery) });
    }

    /// A hint is for the socket's first conversation; after a rollover the device is one of which nothing is known.
    fn rejoin(&mut self, join: Join) {
        let conversation = self.lane().conversation;
        self.lanes.get_mut(&LANE).expect("the lane is here").device = match join.device {
            Device::Unknown => Device::Unknown,
            Device::Fresh | Device::Reconnecting(_) => Device::Fresh,
        };
        self.conversations[conversation].handle_joined(LANE, join).expect("the lane has left");
        self.keepsakes(conversation);
    }

    /// What another conversation answers of itself.
    pub(crate) fn hear_donor(&mut self, conversation: &str, word: Donor) {
        let mut out = Vec::new();
        let at = self.lane().conversation;
        self.conversations[at].handle_donor(LANE, conversation.into(), word, &mut out);
        self.perform(at, out);
    }

    /// What the newest keepsake, if it still stands, is worth to the next socket of the device.
    pub(crate) fn hint(&self, conversation: &str, life_seconds: f64) -> Option<Hint> {
        let Some((_, Keepsake::Keep(kept))) = self.kept.last() else { return None };
        let ground = matcher_core::Ground {
            conversation: conversation.into(),
            voice: kept.voice.clone(),
            receipt_generation: kept.receipt_generation,
            print: kept.print.clone(),
        };
        let usable_until = kept.observed.after(std::time::Duration::from_secs_f64(life_seconds));
        Some(Hint { ground, centroid: kept.centroid.clone(), usable_until })
    }

    /// What became of each named voice at rollovers, in order.
    pub(crate) fn carried(&self) -> Vec<(u32, Carried, CarryReason)> {
        let carried = self.events.iter().filter_map(|event| {
            let Event::RolledOver { speaker, carried, reason, .. } = event else { return None };
            Some((speaker.0, *carried, *reason))
        });
        carried.collect()
    }

    /// The provider starts again: this stream is current from here on.
    pub(crate) fn provider_restarts(&mut self, scope: &str) {
        self.lanes.get_mut(&LANE).expect("the lane is here").scope = Scope::new(scope);
    }

    /// The timer of the lane's conversation.
    pub(crate) fn keepsakes_now(&mut self) {
        self.keepsakes(self.lane().conversation);
    }

    /// Takes what the core wants kept.
    pub(super) fn keepsakes(&mut self, conversation: usize) {
        while let Some((lane, keepsake)) = self.conversations[conversation].poll_keepsake(self.now) {
            self.kept.push((lane, keepsake));
        }
        self.no_timer_spins(conversation);
    }

    /// What has been done is not due again: a timer that is due at once would never rest. Queries and words are the tests'.
    fn no_timer_spins(&self, conversation: usize) {
        let scheduler = &self.conversations[conversation];
        let is_query = self.open.iter().any(|open| open.conversation == conversation);
        let is_resting = scheduler.lanes().any(|lane| !scheduler.donors(lane).is_empty());
        let due = scheduler.poll_timeout().filter(|_| !is_query && !is_resting);
        assert!(due.is_none_or(|due| due > self.now), "a timer is due, and nothing is to be done");
    }
}
