//! Lanes that come and go: a new recording, one that resumes, one that rolls over with what may be carried.
//!
//! A lane is in the conversation as soon as it asks. What else has to be read before it may be offered anything (what
//! people decided in the conversation before, and in others on whose word its names rest) is read while the other lanes
//! go on; the lane's socket waits for the answer.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use actix::prelude::*;
use matcher_core::{Carry, Donor, Generation, HandOver, JoinRefused, LaneId, Memory, Scope, Speaker};

use super::authority::{HEARING_MAX, HEARINGS};
use super::traced::Arrivals;
use super::{Conversation, LaneLink};
use crate::live::continuity::Opened;
use crate::live::conversation::Exits;
use crate::live::corrections::{NotCorrected, Word};
use crate::live::journal::Resumed;
use crate::live::registry::Lineage;
use crate::live::socket::Socket;

/// A lane enters. Answered when its voices may be offered.
#[derive(Message)]
#[rtype(result = "Result<Joined, JoinRefused>")]
pub(in crate::live) struct Join {
    pub(in crate::live) lane: LaneId,
    pub(in crate::live) recording: String,
    pub(in crate::live) socket: Addr<Socket>,
    pub(in crate::live) lineage: Arc<Lineage>,
    pub(in crate::live) people: Option<Arc<std::collections::BTreeSet<String>>>,
    pub(in crate::live) exits: Exits,
    pub(in crate::live) opened: Opened,
    pub(in crate::live) departure: Option<Departure>,
    /// Where the socket's audio begins in the recording, seconds.
    pub(in crate::live) offset: f64,
    pub(in crate::live) join: matcher_core::Join,
}

/// What a lane that rolls over brings from the conversation before.
#[derive(Debug, Clone)]
pub(in crate::live) struct Departure {
    pub(in crate::live) conversation: String,
    pub(in crate::live) scope: Scope,
    pub(in crate::live) memory: Memory,
    pub(in crate::live) attempts: BTreeMap<Speaker, u32>,
}

/// The lane is here.
#[derive(Debug, Default)]
pub(in crate::live) struct Joined {
    /// Numbers that people decided about: no new label gets one of them.
    pub(in crate::live) decided: Vec<Speaker>,
    /// Attempts of carried voices, which go on.
    pub(in crate::live) attempts: Vec<(Speaker, u32)>,
}

/// Why a lane leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::live) enum Left {
    /// To another conversation: its queries end there, fenced.
    RolledOver,
    /// For good: its queries are cancelled, and what it knew waits for the recording's next socket.
    Gone,
}

/// A lane leaves; a leave of an older generation is ignored.
#[derive(Message)]
#[rtype(result = "HandOver")]
pub(in crate::live) struct Leave {
    pub(in crate::live) lane: LaneId,
    pub(in crate::live) generation: Generation,
    pub(in crate::live) why: Left,
}

/// A lane between its entry and its first offer.
#[derive(Debug, Clone)]
struct Arrival {
    lane: LaneId,
    generation: Generation,
    grounds: Vec<Arc<str>>,
    departure: Option<Departure>,
}

impl Handler<Join> for Conversation {
    type Result = ResponseActFuture<Self, Result<Joined, JoinRefused>>;

    fn handle(&mut self, message: Join, ctx: &mut Self::Context) -> Self::Result {
        let Join { lane, recording, socket, lineage, people, exits, opened, departure, offset, mut join } = message;
        let generation = join.generation;
        if self.scheduler.generation(lane).is_some_and(|older| older < generation) {
            // A predecessor's join came late: the newer generation speaks for the lane.
            self.depart(lane, Left::Gone, ctx);
        }
        // Before the recording's memory is taken out: who is refused finds it the next time.
        if let Err(refused) = self.scheduler.admits(lane) {
            return Box::pin(actix::fut::ready(Err(refused)));
        }
        join.gallery = self.service.gallery(people.as_deref());
        join.device = self.service.capsules.device(&opened, &join.gallery);
        join.memory = lineage.recall(&self.key);
        let brought = departure.as_ref().map(|from| from.memory.grounds());
        let grounds: Vec<_> = join.memory.grounds().into_iter().chain(brought.into_iter().flatten()).collect();
        let hertz = f64::from(join.rate.hertz());
        let is_known = departure.is_some() || self.scheduler.receipt().generation() > 0;
        let resumed = if is_known { Resumed::Yes } else { Resumed::of(&join) };
        self.recorder.joined((lane, &join), lineage.ledger.tokens(), resumed, self.now());
        self.scheduler.handle_joined(lane, join).expect("the scheduler admits it, as it just said");
        let link = LaneLink {
            socket,
            recording,
            lineage,
            people,
            exits,
            holder: opened.holder,
            received: BTreeMap::new(),
            unexamined: BTreeMap::new(),
            arrivals: Arrivals::default(),
            evicted: 0,
            hertz,
            offset,
            reached: offset,
            shown: VecDeque::new(),
        };
        self.lanes.insert(lane, link);
        self.settle_down(ctx);
        if grounds.is_empty() && departure.is_none() {
            return Box::pin(actix::fut::ready(Ok(self.joined(Vec::new()))));
        }
        self.arrive(Arrival { lane, generation, grounds, departure }, HEARINGS)
    }
}

impl Conversation {
    /// Reads what the arrival rests on, and again when something of it changed meanwhile.
    fn arrive(&self, arrival: Arrival, hearings: u32) -> ResponseActFuture<Self, Result<Joined, JoinRefused>> {
        let (service, here) = (self.service.clone(), self.key.conversation.clone());
        let known = self.scheduler.receipt().generation();
        let before = arrival.departure.as_ref().map(|from| (from.conversation.clone(), from.scope.clone()));
        let mut donors = arrival.grounds.clone();
        donors.extend(before.iter().map(|(conversation, _)| Arc::from(conversation.as_str())));
        let hearing = async move {
            if let Some((conversation, scope)) = before {
                service.corrections.carry(&conversation, &here, &scope).await?;
            }
            service.corrections.hear(&here, known, donors).await
        };
        let hearing = async { tokio::time::timeout(HEARING_MAX, hearing).await.unwrap_or(Err(NotCorrected::Late)) };
        Box::pin(hearing.into_actor(self).then(move |word, this, ctx| {
            let is_old = word.as_ref().is_ok_and(|word| !this.service.corrections.is_current(word));
            match hearings.checked_sub(1).filter(|_| is_old) {
                Some(hearings) => this.arrive(arrival, hearings),
                None => Box::pin(actix::fut::ready(Ok(this.arrived(arrival, word, ctx)))),
            }
        }))
    }

    fn arrived(&mut self, arrival: Arrival, word: Result<Word, NotCorrected>, ctx: &mut Context<Self>) -> Joined {
        let Arrival { lane, generation, departure, .. } = arrival;
        let word = word.and_then(|word| self.current(word));
        if let Err(error) = &word {
            tracing::warn!(%error, "what people decided cannot be read; nothing is carried by evidence");
        }
        let mut going_on = Vec::new();
        self.step(ctx, |core, _, out| {
            let donors = word.map(|word| word.apply(lane, core, out)).unwrap_or_default();
            if let Some(Departure { conversation, scope, memory, attempts }) = departure {
                let donor = donors.get(conversation.as_str()).cloned().unwrap_or(Donor::Unavailable);
                let carry = Carry { generation, scope, memory, attempts, donor };
                going_on = core.handle_carried(lane, carry, out);
            }
        });
        self.joined(going_on)
    }

    fn joined(&self, attempts: Vec<(Speaker, u32)>) -> Joined {
        let receipt = self.scheduler.receipt();
        let of_segments = receipt.segments().map(|(_, held)| held.voice.speaker);
        let decided = receipt.voices().map(|(voice, _)| voice.speaker).chain(of_segments).collect();
        Joined { decided, attempts }
    }
}

impl Handler<Leave> for Conversation {
    type Result = MessageResult<Leave>;

    fn handle(&mut self, Leave { lane, generation, why }: Leave, ctx: &mut Self::Context) -> Self::Result {
        let speaks = self.is_current(lane, generation);
        MessageResult(if speaks { self.leave(lane, why, ctx) } else { HandOver::default() })
    }
}
