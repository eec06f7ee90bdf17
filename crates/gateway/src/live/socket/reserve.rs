//! The one handler in which a token is spent: pick, reserve, answer, with nothing awaited between.

use std::ops::Range;

use gpu_worker::Clip;
use matcher_core::budget::{Denied, Refused, Seen};
use matcher_core::{Dispatch, ExitReason, Refusal};
use telemetry::{FirstBlock, TraceContext};

use super::{Live, Socket};
use crate::audio::{Audio, gate};
use crate::live::conversation::{Answer, NoAnswer};
use crate::live::labels;
use crate::live::ledger::NoLease;

impl Socket {
    /// Denials are booked here, in one step with their incidence and their record.
    pub(super) fn reserve(&self, dispatch: &Dispatch, trace: Option<TraceContext>) -> Result<Answer, NoAnswer> {
        const STALE: NoAnswer = exit(ExitReason::StaleGeneration);
        let live = self.live().filter(|live| live.generation() == dispatch.generation).ok_or(STALE)?;
        let voiced = live.ring.voiced(&dispatch.fresh);
        let gate = self.service.settings.clip_gate;
        let audio = |pieces: &[Range<u64>]| Audio { pcm: live.ring.copy(pieces), sample_rate: live.sample_rate() };
        let picked = gate::pick(gate, live.ring.timeline(), dispatch, voiced, audio);
        let selection = picked.map_err(exit)?;
        let fresh = live.rate().duration(dispatch.pending);
        let lease =
            live.ledger().reserve(dispatch.generation, dispatch.speaker, fresh).map_err(|refused| match refused {
                NoLease::Refused(Refused::Denied(denied)) => {
                    if denied.voice == Seen::First {
                        self.record(live, dispatch, &denied, trace);
                    }
                    NoAnswer::Refused(Refusal::Denied(denied.cap))
                }
                NoLease::Refused(Refused::VoiceCapacity) => exit(ExitReason::VoiceCapacity),
                NoLease::Refused(Refused::NumberInWork) => NoAnswer::NotYet,
                NoLease::Refused(Refused::StaleGeneration) | NoLease::Broken => STALE,
            })?;
        let clip = Clip { pcm: live.ring.copy(&selection.pieces), sample_rate: live.sample_rate() };
        Ok(Answer { clip, lease, selection })
    }

    fn record(&self, live: &Live, dispatch: &Dispatch, denied: &Denied, trace: Option<TraceContext>) {
        let record = FirstBlock {
            uid: live.account.clone(),
            socket: self.id.clone(),
            recording: live.recording.clone(),
            conversation: live.key().conversation.clone(),
            generation: dispatch.generation.0,
            scope: dispatch.scope.as_str().to_owned(),
            speaker: i64::from(dispatch.speaker.0),
            attempts: denied.snapshot.attempts,
            tokens: denied.snapshot.tokens,
            evidence_seconds: live.rate().seconds(dispatch.evidence),
            pending_seconds: live.rate().seconds(dispatch.pending),
            cap: labels::cap(denied.cap),
            trace,
        };
        record.emit();
    }
}

const fn exit(reason: ExitReason) -> NoAnswer {
    NoAnswer::Refused(Refusal::Exit(reason))
}
