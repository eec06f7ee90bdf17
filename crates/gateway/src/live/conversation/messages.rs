//! What a conversation hears, and its handlers: commands in the imperative, facts in the past tense.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use actix::prelude::*;
use gpu_worker::Clip;
use gpu_worker::turnstile::Turn;
use matcher_core::receipt::{Correction, Ruling, Subject, VoiceName};
use matcher_core::{Batch, Explanation, LaneId, Monotonic, Refusal, RequestId, Scope, Selection, Speaker};

use super::snapshot::{ConversationSnapshot, Seen, VoiceExplained};
use super::{Conversation, LaneLink};
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
    /// When the message came to the socket.
    pub(in crate::live) received: Monotonic,
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
    /// Any lane's, where it was heard last in one of these streams.
    Any(Streams),
}

/// Provider streams that are meant: all, or those with one name, or those of one recording, or one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Streams {
    /// The stream's name, if one is said.
    pub(crate) scope: Option<String>,
    /// The recording, if one is said.
    pub(crate) recording: Option<String>,
}

impl Streams {
    /// Whether a stream is one of them.
    pub(crate) fn hold(&self, scope: &Scope) -> bool {
        let is_said = |said: &Option<String>, has: &str| said.as_deref().is_none_or(|said| said == has);
        is_said(&self.scope, scope.as_str()) && is_said(&self.recording, scope.recording())
    }
}

/// Somebody decided something in the store: it is read. Answered when it holds, or cannot be read.
#[derive(Debug, Clone, Copy, Message)]
#[rtype(result = "()")]
pub(crate) struct ReadAgain;

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

/// The whole conversation as of moments ago: what everybody who watches it at the same time shares.
#[derive(Debug, Clone, Copy, Message)]
#[rtype(result = "Arc<Seen>")]
pub struct Glance;

/// Everything that can be told of the voices with one number, of all lanes and provider streams.
#[derive(Debug, Clone, Copy, Message)]
#[rtype(result = "Vec<VoiceExplained>")]
pub struct Tell {
    /// The number.
    pub speaker: Speaker,
}

impl Handler<Offers> for Conversation {
    type Result = ();

    fn handle(&mut self, Offers { lane, batch, received }: Offers, ctx: &mut Self::Context) {
        let voices_max = self.service.settings.limits.voices_max.get();
        let now = self.now();
        let mut news = std::collections::BTreeSet::new();
        if let Some(link) = self.lanes.get_mut(&lane) {
            if self.service.telemetry.tracer().is_on() {
                link.arrivals.note(received, now);
            }
            self.service.history.push(&self.key.conversation, link.page_of(&batch.offers));
            for offer in &batch.offers {
                if link.received.len() < voices_max || link.received.contains_key(&offer.speaker) {
                    if link.received.insert(offer.speaker, received).is_none() {
                        link.unexamined.insert(offer.speaker, received);
                        self.service.telemetry.metrics().voice_heard();
                        news.insert(offer.speaker);
                    }
                    let voice = VoiceName { speaker: offer.speaker, scope: offer.scope.clone() };
                    self.segments.note(lane, &offer.segment, voice);
                }
            }
        }
        self.recorder.heard(lane, &batch, now);
        self.step_at(now, ctx, |core, now, out| core.handle_batch(lane, batch, now, out));
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
                if let Some(asked) = self.asked.remove(&request) {
                    asked.traced.refused(refusal);
                }
                self.recorder.refused(request, refusal, self.now());
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
        let (lane, streams, unheard) = match whose {
            Whose::Lane(lane, scope) => (Some(lane), Streams::default(), Some(scope)),
            Whose::Any(streams) => {
                let unheard = self.only_stream(&streams);
                (None, streams, unheard)
            }
        };
        let heard = self.segments.newest(lane, speaker, &streams).cloned();
        let voice = heard.or(unheard.map(|scope| VoiceName { speaker, scope }));
        let voice = voice.ok_or(NotCorrected::Unheard(speaker.0))?;
        if let Subject::Segments(ids, _) = subject
            && let Some(stranger) = ids.iter().find(|id| !self.segments.is_of(id, &voice))
        {
            return Err(NotCorrected::NotOfThisVoice(stranger.to_string()));
        }
        Ok(voice)
    }

    /// A stream with a name, when there is only one recording here that it can be of.
    fn only_stream(&self, streams: &Streams) -> Option<Scope> {
        let name = streams.scope.as_deref()?;
        let is_meant = |link: &&LaneLink| streams.hold(&Scope::of(&link.recording, name));
        let mut lanes = self.lanes.values().filter(is_meant);
        let link = lanes.next()?;
        lanes.next().is_none().then(|| Scope::of(&link.recording, name))
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

impl Handler<ReadAgain> for Conversation {
    type Result = AtomicResponse<Self, ()>;

    fn handle(&mut self, _: ReadAgain, _: &mut Self::Context) -> Self::Result {
        let hearing = self.hear(Vec::new()).into_actor(self);
        AtomicResponse::new(Box::pin(hearing.map(|word, this, ctx| match word {
            Ok(word) => this.step(ctx, |core, _, out| drop(word.newer_to(core, out))),
            Err(error) => tracing::warn!(%error, "a correction cannot be read; it is read again before each verdict"),
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

impl Handler<Glance> for Conversation {
    type Result = MessageResult<Glance>;

    fn handle(&mut self, _: Glance, _: &mut Self::Context) -> Self::Result {
        MessageResult(self.glance())
    }
}

impl Handler<Tell> for Conversation {
    type Result = MessageResult<Tell>;

    fn handle(&mut self, Tell { speaker }: Tell, _: &mut Self::Context) -> Self::Result {
        MessageResult(self.tell_of(speaker))
    }
}
