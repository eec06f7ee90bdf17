//! Lanes that go elsewhere, and come back.

use std::time::Duration;

use matcher_core::{Carry, Device, Generation, Ground, HandOver, Hint, Join, LaneId, Monotonic};

use super::decisions::{name, voice_name};
use super::{Difference, World, embedding, gallery, rate};
use crate::reference::model::memory::Memory;
use crate::reference::model::{carry, voice};
use crate::reference::moves::{Asked, Kept, Which};

/// A rollover between its fence and the word of the conversation before.
pub(super) struct Moving {
    lane: usize,
    from: usize,
    to: usize,
    carry: Carry,
    scope: &'static str,
    memory: Memory,
}

impl World {
    /// The lane leaves where it is and goes on with a new generation.
    fn depart(&mut self, lane: usize, to: usize) -> Result<(HandOver, Memory), Difference> {
        let side = &mut self.lanes[lane];
        let from = std::mem::replace(&mut side.conversation, to);
        side.generation += 1;
        let id = side.id;
        let mut out = Vec::new();
        let left = self.real[from].handle_left(LaneId(id), &mut out);
        let memory = self.model.left(from, id);
        self.compare(from, out, Vec::new())?;
        Ok((left, memory))
    }

    fn arrive(&mut self, lane: usize, join: Join, (memory, device): (Memory, voice::Device)) -> Result<(), Difference> {
        let side = &self.lanes[lane];
        let (id, at) = (side.id, side.conversation);
        self.real[at].handle_joined(LaneId(id), join).expect("the lane has left");
        self.model.joined(at, id, side.generation, side.people);
        self.model.resumed(at, id, (memory, device));
        self.compare(at, Vec::new(), Vec::new())
    }

    fn join(&self, lane: usize) -> Join {
        let side = &self.lanes[lane];
        let attempts = side.attempts.clone();
        Join { attempts, ..Join::new(Generation(side.generation), rate(), gallery(side.people)) }
    }

    /// The fence of a rollover: the lane is in its new conversation, and nothing was brought yet.
    pub(super) fn roll_over(&mut self, lane: usize, to: usize) -> Result<(), Difference> {
        let from = self.lanes[lane].conversation;
        if from == to {
            return Ok(());
        }
        let (left, memory) = self.depart(lane, to)?;
        let attempts = std::mem::take(&mut self.lanes[lane].attempts);
        let device = if self.lanes[lane].has_device { Kept::Nothing } else { Kept::NoDevice };
        let (device, model) = self.device(&device);
        let join = Join { held: left.held, device, ..self.join(lane) };
        self.arrive(lane, join, (Memory::default(), model))?;
        let (scope, generation) = (self.lanes[lane].scope, Generation(self.lanes[lane].generation));
        let donor = matcher_core::Donor::Unavailable;
        let carry = Carry { generation, scope: Self::scope(scope), memory: left.memory, attempts, donor };
        self.moving.push(Moving { lane, from, to, carry, scope, memory });
        Ok(())
    }

    /// The word of the conversation before arrives: names that people gave first, then those that evidence gave.
    pub(super) fn bring(&mut self, moving: Which, answer: Asked) -> Result<(), Difference> {
        let Some(moving) = Self::position(moving, self.moving.len()) else { return Ok(()) };
        let Moving { lane, from, to, mut carry, scope, memory } = self.moving.remove(moving);
        let (donor, word) = self.answer_of(from, answer);
        if matches!(donor, matcher_core::Donor::Read(_)) {
            self.carry_names(from, to, scope)?;
        }
        for of in memory.donors() {
            self.tell_word(to, lane, (of, Asked::Answers))?;
        }
        let attempts = carry.attempts.iter().map(|(speaker, spent)| (speaker.0, *spent)).collect();
        let generation = carry.generation;
        let model = carry::Carry { generation: generation.0, scope, memory, attempts, word };
        carry.donor = donor;
        let (id, mut out) = (self.lanes[lane].id, Vec::new());
        let spent = self.real[to].handle_carried(LaneId(id), carry, &mut out);
        let (told, goes_on) = self.model.carried(to, id, model);
        self.compare(to, out, told)?;
        let mut numbers: Vec<(u32, u32)> = spent.iter().map(|(speaker, spent)| (speaker.0, *spent)).collect();
        numbers.sort_unstable();
        if numbers != goes_on {
            return Err(format!("attempts that go on: the core has {numbers:?}, the model {goes_on:?}"));
        }
        if self.lanes[lane].generation == generation.0 {
            for (speaker, spent) in spent {
                let held = self.lanes[lane].attempts.entry(speaker).or_default();
                *held = (*held).max(spent);
            }
        }
        Ok(())
    }

    pub(super) fn leave(&mut self, lane: usize, to: usize, device: &Kept) -> Result<(), Difference> {
        if self.lanes[lane].conversation == to {
            return Ok(());
        }
        let (left, _) = self.depart(lane, to)?;
        self.lanes[lane].attempts.clear();
        self.lanes[lane].has_device = *device != Kept::NoDevice;
        let (device, model) = self.device(device);
        let join = Join { held: left.held, device, ..self.join(lane) };
        self.arrive(lane, join, (Memory::default(), model))
    }

    pub(super) fn resume(&mut self, lane: usize, device: &Kept) -> Result<(), Difference> {
        let (left, memory) = self.depart(lane, self.lanes[lane].conversation)?;
        self.lanes[lane].audio = 0;
        self.lanes[lane].has_device = *device != Kept::NoDevice;
        let (device, model) = self.device(device);
        let join = Join { held: left.held, memory: left.memory, device, ..self.join(lane) };
        self.arrive(lane, join, (memory, model))
    }

    pub(super) fn clear(&mut self, lane: usize, device: &Kept) -> Result<(), Difference> {
        let (left, _) = self.depart(lane, self.lanes[lane].conversation)?;
        self.lanes[lane].has_device = *device != Kept::NoDevice;
        let (device, model) = self.device(device);
        let join = Join { held: left.held, device, ..self.join(lane) };
        self.arrive(lane, join, (Memory::default(), model))
    }

    fn device(&self, kept: &Kept) -> (Device, voice::Device) {
        let Kept::Owner { of, voice: name_there, sound, print, is_outdated, seconds } = *kept else {
            return match kept {
                Kept::NoDevice => (Device::Unknown, voice::Device::Unknown),
                Kept::Nothing | Kept::Owner { .. } => (Device::Fresh, voice::Device::Fresh),
            };
        };
        let newest = self.store[of].model.generation;
        let receipt = if is_outdated { newest + 1 } else { newest };
        let until = self.seconds + seconds;
        let ground = Ground {
            conversation: name(of),
            voice: voice_name(name_there),
            receipt_generation: receipt,
            print: embedding(print),
        };
        let usable_until = Monotonic::from_origin(Duration::from_secs(until));
        let hint = Hint { ground, centroid: embedding(sound), usable_until };
        let model = voice::Hint { ground: voice::Ground { of, voice: name_there, receipt, print }, sound, until };
        (Device::Reconnecting(Box::new(hint)), voice::Device::Reconnecting(model))
    }
}
