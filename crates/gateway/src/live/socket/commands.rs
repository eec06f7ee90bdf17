//! What a client's messages do: start, segments, rollover, explain, stop.

use actix::prelude::*;
use matcher_core::Explanation;
use matcher_core::receipt::Subject;
use telemetry::Refusal;

use super::live::Live;
use super::{Phase, Socket, Work};
use crate::explain::{self, Around, Rules};
use crate::live::conversation::{Correct, Explain, Finish, Leave, Left, Offers, Voices, Whose};
use crate::live::corrections::{NotCorrected, Wish};
use crate::live::protocol::{Candidate, Event, Limits, Message, Model, Refused, Segment, SpeakerName};
use crate::live::protocol::{TotalBudget, VoiceSummary};
use crate::live::service::Service;

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

    pub(super) fn ready(&self, live: &Live) -> Event {
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
        let received = self.service.clock.now();
        let Phase::Live(live) = &mut self.phase else { return None };
        let (batch, refusals) = live.batch(segments);
        let offering = live.conversation().send(Offers { lane: live.lane(), batch, received });
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
                    let event = explained_event(live, &this.service, explanation);
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

fn explained_event(live: &Live, service: &Service, voice: Explanation) -> Event {
    let speaker = voice.state.speaker;
    let (settings, left) = (&service.settings, live.ledger().left(speaker));
    let gallery = live.gallery();
    let around = Around {
        rules: Rules::of(&settings.policy, &settings.limits, &settings.budget),
        gallery: &gallery,
        attempts_left: left.voice_attempts,
        tokens: left.tokens,
        next_token: left.next_token,
        is_engine_ready: service.engine.health().is_ready(),
    };
    Event::Explained {
        speaker: speaker.0,
        label: live.label(speaker),
        scope: voice.state.scope.as_str().to_owned(),
        status: voice.state.status.as_str(),
        candidates: Candidate::all_of(&voice, &settings.policy),
        pending_seconds: voice.pending_seconds,
        needed_seconds: voice.needed_seconds,
        waiting: voice.in_work || voice.queued_since.is_some(),
        budget: live.budget_left(speaker),
        last_exit: voice.last_exit.map(matcher_core::ExitReason::as_str),
        explanation: explain::live(&voice, &around),
        clips: voice.clips,
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

fn out_of_order(message: &str) -> Refused {
    Refused::whole("out_of_order", Refusal::OutOfOrder, message)
}

fn bad_audio(message: String) -> Refused {
    Refused::whole("bad_audio", Refusal::InvalidField, message)
}
