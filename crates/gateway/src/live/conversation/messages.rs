//! What a conversation hears, and its handlers: commands in the imperative, facts in the past tense.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use actix::prelude::*;
use gpu_worker::Clip;
use gpu_worker::turnstile::Turn;
use matcher_core::receipt::{Correction, Ruling, Subject, VoiceName};
use matcher_core::{
    Batch, Explanation, Generation, HandOver, JoinRefused, LaneId, Refusal, RequestId, Scope, Selection, Speaker,
};

use super::inventory::Inventory;
use super::snapshot::ConversationSnapshot;
use super::{Conversation, LaneLink};
use crate::live::corrections::{self, NotCorrected, Wish};
use crate::live::ledger::Lease;
use crate::live::registry::Lineage;
use crate::live::socket::Socket;

/// A lane enters. Answered when its people are loaded and its voices may be offered.
#[derive(Message)]
#[rtype(result = "Result<(), JoinRefused>")]
pub(in crate::live) struct Join {
    pub(in crate::live) lane: LaneId,
    pub(in crate::live) socket: Addr<Socket>,
    pub(in crate::live) lineage: Arc<Lineage>,
    pub(in crate::live) people: Option<Arc<BTreeSet<String>>>,
    pub(in crate::live) exits: Exits,
    pub(in crate::live) join: matcher_core::Join,
}

/// Whether a client hears why updates led to no verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::live) enum Exits {
    /// It asked for them.
    Told,
    /// They are counted, and not sent.
    Counted,
}

/// Why a lane leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::live) enum Left {
    /// To another conversation: its queries end there, fenced.
    RolledOver,
    /// For good: its queries are cancelled.
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

/// The segments of one message.
#[derive(Message)]
#[rtype(result = "()")]
pub(in crate::live) struct Offers {
    pub(in crate::live) lane: LaneId,
    pub(in crate::live) batch: Batch,
}

/// The pool grants a turn.
#[derive(Message)]
#[rtype(result = "()")]
pub(in crate::live) struct Granted(pub(in crate::live) Turn);

/// What a socket reserved.
pub(in crate::live) struct Answer {
    pub(in crate::live) clip: Clip,
    pub(in crate::live) lease: Lease,
    pub(in crate::live) selection: Selection,
}

/// Why a socket reserved nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::live) enum NoAnswer {
    /// The slot goes.
    Refused(Refusal),
    /// The number has a query open elsewhere: the slot stays, and is tried again.
    NotYet,
}

/// A socket answers a `Reserve`.
#[derive(Message)]
#[rtype(result = "()")]
pub(in crate::live) struct Answered {
    pub(in crate::live) request: RequestId,
    pub(in crate::live) answer: Result<Answer, NoAnswer>,
}

/// A query of the lane's former conversation ended.
#[derive(Message)]
#[rtype(result = "()")]
pub(in crate::live) struct Released {
    pub(in crate::live) lane: LaneId,
    pub(in crate::live) speaker: Speaker,
}

/// Answered when the lane has nothing queued that could run and nothing in work.
#[derive(Message)]
#[rtype(result = "()")]
pub(in crate::live) struct Finish {
    pub(in crate::live) lane: LaneId,
    pub(in crate::live) done: tokio::sync::oneshot::Sender<()>,
}

/// A person decides about a voice of a lane. Answered when it is written down; by then it holds.
#[derive(Message)]
#[rtype(result = "Result<u64, NotCorrected>")]
pub(crate) struct Correct {
    pub(crate) speaker: Speaker,
    pub(crate) whose: Whose,
    pub(crate) subject: Subject,
    pub(crate) wish: Wish,
}

/// Whose number a correction names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Whose {
    /// This lane's, in the stream where it was heard last; in this one when it was not heard yet.
    Lane(LaneId, Scope),
    /// Any lane's, in this stream or, without one, where it was heard last.
    Any(Option<Scope>),
}

/// What is known of a voice.
#[derive(Message)]
#[rtype(result = "Explained")]
pub(in crate::live) struct Explain {
    pub(in crate::live) lane: LaneId,
    pub(in crate::live) speaker: Speaker,
}

/// One explanation a scope.
#[derive(Debug, MessageResponse)]
pub(in crate::live) struct Explained(pub(in crate::live) Vec<Explanation>);

/// The voices of one lane.
#[derive(Message)]
#[rtype(result = "Explained")]
pub(in crate::live) struct Voices {
    pub(in crate::live) lane: LaneId,
}

/// The whole conversation, for people to look at.
#[derive(Debug, Clone, Copy, Message)]
#[rtype(result = "ConversationSnapshot")]
pub struct Snapshot;

impl Handler<Join> for Conversation {
    type Result = Result<(), JoinRefused>;

    fn handle(&mut self, message: Join, ctx: &mut Self::Context) -> Self::Result {
        let Join { lane, socket, lineage, people, exits, mut join } = message;
        if self.scheduler.generation(lane).is_some_and(|older| older < join.generation) {
            // A predecessor's join came late: the newer generation speaks for the lane.
            self.depart(lane, Left::Gone, ctx);
        }
        join.gallery = self.service.gallery(people.as_deref());
        let hertz = f64::from(join.rate.hertz());
        self.scheduler.handle_joined(lane, join)?;
        let received = std::collections::BTreeMap::new();
        self.lanes.insert(
            lane,
            LaneLink { socket, lineage, people, exits, received, segments: Inventory::default(), evicted: 0, hertz },
        );
        self.settle_down(ctx);
        Ok(())
    }
}

impl Handler<Leave> for Conversation {
    type Result = MessageResult<Leave>;

    fn handle(&mut self, Leave { lane, generation, why }: Leave, ctx: &mut Self::Context) -> Self::Result {
        let speaks = self.is_current(lane, generation);
        MessageResult(if speaks { self.leave(lane, why, ctx) } else { HandOver::default() })
    }
}

impl Handler<Offers> for Conversation {
    type Result = ();

    fn handle(&mut self, Offers { lane, batch }: Offers, ctx: &mut Self::Context) {
        let voices_max = self.service.settings.limits.voices_max.get();
        let now = self.now();
        if let Some(link) = self.lanes.get_mut(&lane) {
            for offer in &batch.offers {
                if link.received.len() < voices_max || link.received.contains_key(&offer.speaker) {
                    link.received.insert(offer.speaker, now);
                    let voice = VoiceName { speaker: offer.speaker, scope: offer.scope.clone() };
                    link.segments.note(&offer.segment, voice);
                }
            }
        }
        self.step(ctx, |core, now, out| core.handle_batch(lane, batch, now, out));
    }
}

impl Handler<Granted> for Conversation {
    type Result = ();

    fn handle(&mut self, Granted(turn): Granted, ctx: &mut Self::Context) {
        self.granted.fetch_sub(1, Ordering::SeqCst);
        self.dispatch(turn, ctx);
    }
}

impl Handler<Answered> for Conversation {
    type Result = ();

    fn handle(&mut self, Answered { request, answer }: Answered, ctx: &mut Self::Context) {
        match answer {
            Ok(answer) => self.extract(request, answer, ctx),
            Err(NoAnswer::NotYet) => self.undelivered(request, ctx),
            Err(NoAnswer::Refused(refusal)) => {
                self.asked.remove(&request);
                self.step(ctx, |core, _, out| core.handle_refused(request, refusal, out));
            }
        }
    }
}

impl Handler<Released> for Conversation {
    type Result = ();

    fn handle(&mut self, Released { lane, speaker }: Released, ctx: &mut Self::Context) {
        self.step(ctx, |core, _, _| core.handle_released(lane, speaker));
    }
}

impl Handler<Finish> for Conversation {
    type Result = ();

    fn handle(&mut self, Finish { lane, done }: Finish, ctx: &mut Self::Context) {
        self.finishing.insert(lane, done);
        self.settle_down(ctx);
    }
}

impl Conversation {
    /// The voice that a correction means; its segments must all be of it.
    fn voice_of(&self, speaker: Speaker, whose: Whose, subject: &Subject) -> Result<VoiceName, NotCorrected> {
        let (only, scope, fallback) = match whose {
            Whose::Lane(lane, scope) => (Some(lane), None, Some(scope)),
            Whose::Any(scope) => (None, scope.clone(), scope),
        };
        let links = || self.lanes.iter().filter(|(lane, _)| only.is_none_or(|only| only == **lane));
        let newest = links().find_map(|(_, link)| link.segments.newest(speaker, scope.as_ref()));
        let heard = newest.cloned().or(fallback.map(|scope| VoiceName { speaker, scope }));
        let voice = heard.ok_or(NotCorrected::Unheard(speaker.0))?;
        if let Subject::Segments(ids, _) = subject {
            let is_known = |id| links().any(|(_, link)| link.segments.is_of(id, &voice));
            if let Some(stranger) = ids.iter().find(|id| !is_known(id)) {
                return Err(NotCorrected::NotOfThisVoice(stranger.to_string()));
            }
        }
        Ok(voice)
    }
}

impl Handler<Correct> for Conversation {
    type Result = AtomicResponse<Self, Result<u64, NotCorrected>>;

    fn handle(&mut self, correct: Correct, _: &mut Self::Context) -> Self::Result {
        let Correct { speaker, whose, subject, wish } = correct;
        let voice = match self.voice_of(speaker, whose, &subject) {
            Ok(voice) => voice,
            Err(refused) => return AtomicResponse::new(Box::pin(actix::fut::ready(Err(refused)))),
        };
        let correction = Correction { voice, subject, ruling: Ruling::IsNobody };
        let writing = corrections::correct(self.service.store.clone(), self.key.conversation.clone(), correction, wish);
        AtomicResponse::new(Box::pin(writing.into_actor(self).map(|written, this, ctx| {
            let receipt = written?;
            let generation = receipt.generation();
            this.step(ctx, |core, _, out| core.handle_receipt(receipt, out));
            Ok(generation)
        })))
    }
}

impl Handler<Explain> for Conversation {
    type Result = Explained;

    fn handle(&mut self, Explain { lane, speaker }: Explain, _: &mut Self::Context) -> Explained {
        Explained(self.scheduler.explain(lane, speaker))
    }
}

impl Handler<Voices> for Conversation {
    type Result = Explained;

    fn handle(&mut self, Voices { lane }: Voices, _: &mut Self::Context) -> Explained {
        Explained(self.scheduler.explain_all(lane))
    }
}

impl Handler<Snapshot> for Conversation {
    type Result = MessageResult<Snapshot>;

    fn handle(&mut self, _: Snapshot, _: &mut Self::Context) -> Self::Result {
        MessageResult(self.snapshot())
    }
}
