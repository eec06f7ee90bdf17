//! What a client's messages do: start, segments, rollover, explain, stop.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use actix::prelude::*;
use matcher_core::receipt::Subject;
use matcher_core::{Explanation, Gallery, Generation, HandOver, JoinRefused, LaneId, Policy, Scope, Speaker};
use telemetry::Refusal;

use super::live::{Live, Place};
use super::{Phase, Socket, TakenOver, Work};
use crate::live::continuity::{Holder, Opened};
use crate::live::conversation::{Correct, Departure, Exits, Explain, Finish, Join, Leave, Left, Offers, Voices, Whose};
use crate::live::corrections::{NotCorrected, Wish};
use crate::live::protocol::{Candidate, Event, Limits, Message, Model, Refused, Segment, SpeakerName, Start};
use crate::live::protocol::{TotalBudget, VoiceSummary};
use crate::live::registry::{Capacity, Claim, ConversationKey, Lineage, LineageKey, NotTaken, Taken};
use crate::live::service::Service;

/// A conversation may end between looking it up and joining it; then a fresh one is started. Twice is already unlikely.
const JOIN_TRIES: usize = 5;

impl Socket {
    pub(super) fn handle_audio(&mut self, frame: &[u8]) {
        match &mut self.phase {
            Phase::Live(live) => {
                let bad = live.handle_audio(frame);
                if bad > 0 {
                    let message = format!("{bad} float samples were no finite numbers; they were taken as silence");
                    self.refuse(Refused { field: Some("audio".to_owned()), ..bad_audio(message) });
                }
            }
            Phase::Waiting => self.refuse(out_of_order("send `start` before audio; this frame was ignored")),
            Phase::Stopping(_) | Phase::Closed => {}
        }
    }

    /// Does what a message says; what is still to be waited for comes back.
    pub(super) fn handle_message(&mut self, message: Message, ctx: &mut Context<Self>) -> Option<Work> {
        match (&self.phase, message) {
            (Phase::Live(_), Message::Segments(segments)) => return self.offer(segments),
            (Phase::Live(_), Message::Correct { speaker, wish, subject }) => {
                return self.correct(&speaker, wish, subject);
            }
            (Phase::Waiting, Message::Start(start)) => self.start(*start, ctx),
            (Phase::Waiting, Message::Stop) => self.say_goodbye("stopped", 1000, ctx),
            (Phase::Waiting, _) => self.refuse(out_of_order("send `start` first")),
            (Phase::Live(_), Message::Start(_)) => self.refuse(out_of_order("`start` was sent before; it comes once")),
            (Phase::Live(_), Message::Provider { scope, audio_offset }) => {
                self.change(|live| live.handle_restart(scope, audio_offset));
            }
            (Phase::Live(_), Message::AudioGap { seconds }) => self.change(|live| live.handle_gap(seconds)),
            (Phase::Live(_), Message::Rollover { conversation, carry }) => self.roll_over(conversation, carry, ctx),
            (Phase::Live(_), Message::Explain { speaker }) => self.explain(&speaker, ctx),
            (Phase::Live(_), Message::Stop) => self.stop(ctx),
            (Phase::Stopping(_) | Phase::Closed, _) => {}
        }
        None
    }

    fn change(&mut self, change: impl FnOnce(&mut Live)) {
        if let Some(live) = self.live_mut() {
            change(live);
        }
    }

    fn start(&mut self, start: Start, ctx: &mut Context<Self>) {
        let key = ConversationKey { account: self.account.clone(), conversation: start.conversation.clone() };
        let (lineage, taken) = match self.take_lineage(&start, &key, ctx) {
            Ok(taken) => taken,
            Err(refused) => return self.refuse(refused),
        };
        let entry = Entry {
            key,
            recording: start.recording.clone(),
            lineage: lineage.clone(),
            people: start.people.clone(),
            exits: if start.verbose { Exits::Told } else { Exits::Counted },
            generation: taken.generation,
            rate: matcher_core::Rate::new(start.audio.sample_rate),
            holder: None,
            offset: 0.0,
        };
        let joining = begin(self.service.clone(), ctx.address(), entry, (start.device.clone(), taken.conversation));
        ctx.wait(joining.into_actor(self).map(move |joined, this, _| match joined {
            Ok(place) => {
                let live = Live::new(this.service.clone(), &this.id, start, lineage, place);
                this.send(&this.ready(&live));
                this.phase = Phase::Live(Box::new(live));
            }
            Err(refused) => {
                lineage.leave(&this.id, this.service.clock.now());
                this.refuse(refused);
            }
        }));
    }

    fn take_lineage(
        &self,
        start: &Start,
        key: &ConversationKey,
        ctx: &Context<Self>,
    ) -> Result<(Arc<Lineage>, Taken), Refused> {
        let claim = Claim {
            recording: LineageKey { account: self.account.clone(), recording: start.recording.clone() },
            socket: (self.id.clone(), ctx.address()),
            device: start.device.clone(),
            conversation: key.clone(),
            resume: start.resume.clone(),
        };
        let taken = self.service.registry.take(&self.service, claim);
        let (lineage, taken) = taken.map_err(|not_taken| match not_taken {
            NotTaken::WrongToken => Refused::field("resume", not_taken.to_string()),
            NotTaken::Capacity(full) => capacity(full),
        })?;
        if let Some(predecessor) = &taken.predecessor {
            #[expect(
                clippy::disallowed_methods,
                reason = "a lost message would leave two sockets on one lane; one a start"
            )]
            predecessor.do_send(TakenOver);
        }
        Ok((lineage, taken))
    }

    fn ready(&self, live: &Live) -> Event {
        let settings = &self.service.settings;
        let manifest = self.service.engine.manifest();
        Event::Ready {
            socket_id: self.id.clone(),
            conversation_id: live.key().conversation.clone(),
            generation: live.generation().0,
            resume: live.lineage().token(),
            limits: Limits {
                voice_attempts: settings.budget.attempts_max.get(),
                socket_burst: settings.budget.burst.get(),
                refill_per_hour: settings.budget.refill_per_hour.get(),
                socket_tokens: live.ledger().tokens(),
                frame_bytes: settings.sockets.frame_bytes,
                text_bytes: settings.sockets.text_bytes,
                segments_per_message: settings.sockets.bounds.segments,
                ring_seconds: settings.sockets.ring.as_secs_f64(),
                voices: settings.limits.voices_max.get(),
            },
            people: live.people_known(),
            model: Model {
                name: manifest.name.clone(),
                fingerprint: manifest.fingerprint.clone(),
                threshold: settings.policy.threshold,
                margin: settings.policy.margin,
            },
        }
    }

    fn offer(&mut self, segments: Vec<Result<Segment, Refused>>) -> Option<Work> {
        let Phase::Live(live) = &mut self.phase else { return None };
        let (batch, refusals) = live.batch(segments);
        let offering = live.conversation().send(Offers { lane: live.lane(), batch });
        refusals.into_iter().for_each(|refused| self.refuse(refused));
        // An error means that the conversation was lost: what the ring holds is offered again to the next one.
        Some(Box::pin(offering.into_actor(self).map(|_, _, _| ())))
    }

    fn correct(&mut self, speaker: &SpeakerName, wish: Wish, subject: Subject) -> Option<Work> {
        let Phase::Live(live) = &self.phase else { return None };
        let number = match live.known(speaker) {
            Ok(number) => number,
            Err(bad) => {
                self.refuse(Refused::field("speaker", bad.to_string()));
                return None;
            }
        };
        let whose = Whose::Lane(live.lane(), live.scope().clone());
        let writing = live.conversation().send(Correct { speaker: number, whose, subject, wish });
        Some(Box::pin(writing.into_actor(self).map(move |written, this, _| {
            match written.unwrap_or(Err(NotCorrected::Ended)) {
                Ok(receipt_generation) => {
                    let label = this.live().and_then(|live| live.label(number));
                    this.send(&Event::Corrected { speaker: number.0, label, receipt_generation });
                }
                Err(not) => this.refuse(not_corrected(&not)),
            }
        })))
    }

    fn roll_over(&mut self, conversation: String, carry: bool, ctx: &mut Context<Self>) {
        let Phase::Live(live) = &self.phase else { return };
        if conversation == live.key().conversation {
            return self.send(&self.ready(live)); // Nothing changes, and the client hears that.
        }
        let key = ConversationKey { account: self.account.clone(), conversation };
        let from = live.key().clone();
        // The generation moves at once: nothing of the former conversation can reserve from here on.
        let Ok((generation, attempts)) = live.lineage().roll_over(&self.id, &key) else {
            return; // Another socket has taken this recording over, and its word is on the way here.
        };
        let entry = Entry { generation, key, ..Entry::of(live) };
        let baggage = carry.then(|| (live.scope().clone(), attempts));
        let joining = move_over(self.service.clone(), ctx.address(), entry, (from, live.generation(), baggage));
        self.enter_when(joining, |_| {}, ctx);
    }

    /// The conversation's actor was lost: the lane joins a fresh one and offers again what its ring still holds.
    pub(super) fn rejoin(&mut self, ctx: &mut Context<Self>) {
        let Some(live) = self.live() else { return };
        let Ok(generation) = live.lineage().resume(&self.id) else { return };
        let entry = Entry { generation, ..Entry::of(live) };
        let arrival = Arrival { held: Vec::new(), departure: None, opened: Opened::again(entry.holder.clone()) };
        let joining = enter(self.service.clone(), ctx.address(), entry, arrival);
        let again = |live: &mut Live| {
            let offers = Offers { lane: live.lane(), batch: live.recent() };
            // A fresh conversation's mailbox is empty; were it full, the next ordinary updates bring the speech back.
            live.conversation().try_send(offers).ok();
        };
        self.enter_when(joining, again, ctx);
    }

    fn enter_when(
        &self,
        joining: impl Future<Output = Result<Place, Refused>> + 'static,
        then: impl FnOnce(&mut Live) + 'static,
        ctx: &mut Context<Self>,
    ) {
        ctx.wait(joining.into_actor(self).map(move |joined, this, ctx| {
            let Some(live) = this.live_mut() else { return };
            match joined {
                Ok(place) => {
                    live.enter(place);
                    then(live);
                    if let Some(live) = this.live() {
                        this.send(&this.ready(live));
                    }
                }
                Err(refused) => {
                    this.refuse(refused);
                    this.close(1013, "no conversation to be had; try again later", ctx);
                }
            }
        }));
    }

    fn explain(&mut self, speaker: &SpeakerName, ctx: &mut Context<Self>) {
        let Phase::Live(live) = &self.phase else { return };
        let number = match live.known(speaker) {
            Ok(number) => number,
            Err(bad) => return self.refuse(Refused::field("speaker", bad.to_string())),
        };
        let asking = live.conversation().send(Explain { lane: live.lane(), speaker: number });
        ctx.wait(asking.into_actor(self).map(|explained, this, _| {
            let newest = explained.ok().and_then(|explained| explained.0.into_iter().next_back());
            match (newest, this.live()) {
                (Some(explanation), Some(live)) => {
                    let event = explained_event(live, explanation, &this.service.settings.policy);
                    this.send(&event);
                }
                _ => this.refuse(Refused::field("speaker", "no segment of this voice was taken yet")),
            }
        }));
    }

    /// The last verdicts come first, within the drain time; then the goodbye.
    fn stop(&mut self, ctx: &mut Context<Self>) {
        let Phase::Live(live) = std::mem::replace(&mut self.phase, Phase::Closed) else { return };
        let (done, finished) = tokio::sync::oneshot::channel();
        let asking = live.conversation().send(Finish { lane: live.lane(), done });
        self.phase = Phase::Stopping(live);
        let drain = self.service.settings.sockets.drain;
        let waiting = async move {
            if asking.await.is_ok() {
                tokio::time::timeout(drain, finished).await.ok();
            }
        };
        ctx.spawn(waiting.into_actor(self).map(|(), this, ctx| this.say_goodbye("stopped", 1000, ctx)));
    }

    /// Tells the final list of voices, and closes.
    pub(super) fn say_goodbye(&mut self, reason: &'static str, code: u16, ctx: &mut Context<Self>) {
        let Some(live) = self.live() else {
            self.goodbye(reason, Vec::new());
            return self.close(code, reason, ctx);
        };
        let asking = live.conversation().send(Voices { lane: live.lane() });
        let leave = Leave { lane: live.lane(), generation: live.generation(), why: Left::Gone };
        let leaving = live.conversation().send(leave);
        let parting = async move {
            let voices = asking.await.map(|voices| voices.0).unwrap_or_default();
            // What is still open settles here, so that the books of the goodbye are the last word.
            leaving.await.map(|_| voices).unwrap_or_default()
        };
        ctx.spawn(parting.into_actor(self).map(move |voices, this, ctx| {
            this.goodbye(reason, voices);
            this.close(code, reason, ctx);
        }));
    }

    pub(super) fn goodbye(&self, reason: &'static str, voices: Vec<Explanation>) {
        let books = self.live().map(|live| live.ledger().books().0).unwrap_or_default();
        let voices = voices.iter().map(|voice| self.summary(voice)).collect();
        self.send(&Event::Goodbye { reason, voices, budget: TotalBudget::from(books) });
    }

    fn summary(&self, voice: &Explanation) -> VoiceSummary {
        let state = &voice.state;
        VoiceSummary {
            label: self.live().and_then(|live| live.label(state.speaker)),
            scope: Some(state.scope.to_string()),
            decided_at: self.live().and_then(|live| live.decided_at(state.speaker, &state.scope)),
            ..VoiceSummary::of(voice)
        }
    }
}

/// A lane at the door of a conversation.
struct Entry {
    key: ConversationKey,
    recording: String,
    lineage: Arc<Lineage>,
    people: Option<Arc<BTreeSet<String>>>,
    exits: Exits,
    generation: Generation,
    rate: matcher_core::Rate,
    holder: Option<Arc<Holder>>,
    offset: f64,
}

impl Entry {
    fn of(live: &Live) -> Self {
        Self {
            key: live.key().clone(),
            recording: live.recording.clone(),
            lineage: live.lineage().clone(),
            people: live.people.clone(),
            exits: live.exits(),
            generation: live.generation(),
            rate: live.rate(),
            holder: live.holder.clone(),
            offset: live.offset,
        }
    }
}

/// What a lane has with it.
struct Arrival {
    held: Vec<Speaker>,
    departure: Option<Departure>,
    opened: Opened,
}

/// A socket's first entry: it leaves the conversation that a predecessor was in, if any, and opens on its device.
async fn begin(
    service: Arc<Service>,
    socket: Addr<Socket>,
    mut entry: Entry,
    (device, from): (Option<String>, Option<ConversationKey>),
) -> Result<Place, Refused> {
    let before = Generation(entry.generation.0 - 1);
    let held = match from {
        Some(from) => leave(&service, &from, (entry.lineage.lane, before), Left::Gone).await.held,
        None => Vec::new(),
    };
    // By now the predecessor has said how far it came.
    entry.offset = entry.lineage.offset(service.clock.now());
    let token = service.ids.next("device-");
    let opened = service.capsules.open(&entry.key.account, device.as_deref(), token).await;
    enter(service, socket, entry, Arrival { held, departure: None, opened }).await
}

/// What a rollover with `carry` goes by: the stream that goes on, and the attempts spent before.
type Baggage = (Scope, BTreeMap<Speaker, u32>);

/// From one conversation to the next, with `baggage` when what may be carried is to be.
async fn move_over(
    service: Arc<Service>,
    socket: Addr<Socket>,
    entry: Entry,
    (from, before, baggage): (ConversationKey, Generation, Option<Baggage>),
) -> Result<Place, Refused> {
    let HandOver { held, memory } = leave(&service, &from, (entry.lineage.lane, before), Left::RolledOver).await;
    let conversation = from.conversation;
    let departure = baggage.map(|(scope, attempts)| Departure { conversation, scope, memory, attempts });
    let opened = Opened::again(entry.holder.clone());
    enter(service, socket, entry, Arrival { held, departure, opened }).await
}

async fn leave(
    service: &Service,
    from: &ConversationKey,
    (lane, generation): (LaneId, Generation),
    why: Left,
) -> HandOver {
    let Some(conversation) = service.registry.find(from) else { return HandOver::default() };
    conversation.send(Leave { lane, generation, why }).await.unwrap_or_default()
}

async fn enter(service: Arc<Service>, socket: Addr<Socket>, entry: Entry, arrival: Arrival) -> Result<Place, Refused> {
    let Arrival { held, departure, opened } = arrival;
    let holder = opened.holder.clone();
    let mut answer = None;
    for _ in 0..JOIN_TRIES {
        let conversation = service.registry.conversation(&service, &entry.key).map_err(capacity)?;
        let message = Join {
            lane: entry.lineage.lane,
            recording: entry.recording.clone(),
            socket: socket.clone(),
            lineage: entry.lineage.clone(),
            people: entry.people.clone(),
            exits: entry.exits,
            opened: opened.clone(),
            departure: departure.clone(),
            offset: entry.offset,
            join: matcher_core::Join {
                attempts: entry.lineage.ledger.attempts(),
                held: held.clone(),
                ..matcher_core::Join::new(entry.generation, entry.rate, Gallery::default())
            },
        };
        if let Ok(joined) = conversation.send(message).await {
            answer = Some(joined.map(|joined| (conversation, joined)));
            break;
        }
    }
    match answer {
        Some(Ok((conversation, joined))) => {
            // Before anything can be reserved: the socket hears nothing until this is done.
            entry.lineage.settle_in(entry.generation, joined.attempts, joined.decided);
            Ok(Place { key: entry.key, conversation, generation: entry.generation, holder, offset: entry.offset })
        }
        Some(Err(refused @ (JoinRefused::LanesMax | JoinRefused::AlreadyJoined))) => Err(Refused {
            code: "conversation_full",
            reason: Refusal::Capacity,
            ..Refused::field("conversation_id", refused.to_string())
        }),
        None => Err(Refused::whole("busy", Refusal::Capacity, "the conversation could not be joined; start again")),
    }
}

fn explained_event(live: &Live, voice: Explanation, policy: &Policy) -> Event {
    let speaker = voice.state.speaker;
    Event::Explained {
        speaker: speaker.0,
        label: live.label(speaker),
        scope: voice.state.scope.as_str().to_owned(),
        status: voice.state.status.as_str(),
        candidates: voice
            .candidates
            .into_iter()
            .map(|(person, distance)| Candidate {
                person_id: person.as_str().to_owned(),
                distance,
                level: policy.level(distance),
            })
            .collect(),
        clips: voice.clips,
        pending_seconds: voice.pending_seconds,
        needed_seconds: voice.needed_seconds,
        waiting: voice.in_work || voice.queued_since.is_some(),
        budget: live.budget_left(speaker),
        last_exit: voice.last_exit.map(matcher_core::ExitReason::as_str),
    }
}

fn not_corrected(not: &NotCorrected) -> Refused {
    match not {
        NotCorrected::NoSuchPerson(_) => Refused::field("person_id", not.to_string()),
        NotCorrected::NotOfThisVoice(_) => Refused::field("segment_ids", not.to_string()),
        NotCorrected::Unheard(_) => Refused::field("speaker", not.to_string()),
        NotCorrected::Full(_) => Refused::whole("capacity", Refusal::Capacity, not.to_string()),
        NotCorrected::Store(_) | NotCorrected::Overtaken | NotCorrected::Late | NotCorrected::Ended => {
            Refused::whole("not_written", Refusal::Unsupported, not.to_string())
        }
    }
}

fn capacity(capacity: Capacity) -> Refused {
    let reason = match capacity {
        Capacity::Draining => Refusal::Draining,
        Capacity::Sockets | Capacity::Conversations | Capacity::Recordings => Refusal::Capacity,
    };
    Refused::whole("capacity", reason, capacity.to_string())
}

fn out_of_order(message: &str) -> Refused {
    Refused::whole("out_of_order", Refusal::OutOfOrder, message)
}

fn bad_audio(message: String) -> Refused {
    Refused::whole("bad_audio", Refusal::InvalidField, message)
}
