//! What a conversation hears, and its handlers: commands in the imperative, facts in the past tense.

use std::sync::atomic::Ordering;

use actix::prelude::*;
use gpu_worker::Clip;
use gpu_worker::turnstile::Turn;
use matcher_core::receipt::{Correction, Ruling, Subject, VoiceName};
use matcher_core::{Batch, Explanation, LaneId, Refusal, RequestId, Scope, Selection, Speaker};

use super::Conversation;
use super::snapshot::ConversationSnapshot;
use crate::live::corrections::{NotCorrected, Wish};
use crate::live::ledger::Lease;

/// Whether a client hears why updates led to no verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::live) enum Exits {
    /// It asked for them.
    Told,
    /// They are counted, and not sent.
    Counted,
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

impl Handler<Offers> for Conversation {
    type Result = ();

    fn handle(&mut self, Offers { lane, batch }: Offers, ctx: &mut Self::Context) {
        let voices_max = self.service.settings.limits.voices_max.get();
        let now = self.now();
        let mut news = std::collections::BTreeSet::new();
        if let Some(link) = self.lanes.get_mut(&lane) {
            self.service.history.push(&self.key.conversation, link.page_of(&batch.offers));
            for offer in &batch.offers {
                if link.received.len() < voices_max || link.received.contains_key(&offer.speaker) {
                    if link.received.insert(offer.speaker, now).is_none() {
                        news.insert(offer.speaker);
                    }
                    let voice = VoiceName { speaker: offer.speaker, scope: offer.scope.clone() };
                    link.segments.note(&offer.segment, voice);
                }
            }
        }
        self.step(ctx, |core, now, out| core.handle_batch(lane, batch, now, out));
        self.record_speakers(lane, news);
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
        let (service, conversation) = (self.service.clone(), self.key.conversation.clone());
        let writing = async move { service.corrections.correct(&conversation, correction, wish).await };
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
