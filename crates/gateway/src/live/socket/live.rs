//! A recording after its `start`: the lane's audio, voices and place in a conversation.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use actix::Addr;
use matcher_core::{
    Batch, Event as CoreEvent, Gallery, Generation, LaneId, Offer, Rate, Scope, SegmentId, Span, Speaker,
};

use crate::live::continuity::Holder;
use crate::live::conversation::{Conversation, Exits, Leave, Left};
use crate::live::intake::Intake;
use crate::live::ledger::Ledger;
use crate::live::names::{BadName, Names};
use crate::live::protocol::{BudgetLeft, Event, Refused, Segment, SpeakerName, Start};
use crate::live::registry::{ConversationKey, Lineage};
use crate::live::ring::Ring;
use crate::live::service::Service;
use crate::live::streams::Streams;
use std::sync::MutexGuard;

/// Offers that are remembered to be made again when the scheduler is lost: one full message.
const RECENT_MAX: usize = 512;

/// Parts that one segment is offered in. Nobody loses audio oftener within a sentence; beyond it the window is offered whole.
const PARTS_MAX: usize = 8;

/// Samples of scratch space that a socket keeps: common frames need less, and one huge frame must not cost memory for ever.
const SCRATCH_MAX: usize = 8192;

/// See the module's text. Dropping it leaves the lane.
pub(super) struct Live {
    service: Arc<Service>,
    socket: String,
    pub(super) account: String,
    pub(super) recording: String,
    key: ConversationKey,
    lineage: Arc<Lineage>,
    conversation: Addr<Conversation>,
    generation: Generation,
    streams: Streams,
    sample_rate: std::num::NonZeroU32,
    pub(super) people: Option<Arc<BTreeSet<String>>>,
    exits: Exits,
    pub(super) holder: Option<Arc<Holder>>,
    /// Where this socket's audio begins in the recording, seconds.
    pub(super) offset: f64,
    intake: Intake,
    pub(super) ring: Ring,
    recent: VecDeque<Offer>,
    /// Where in the audio each voice got its newest verdict, seconds. Bounded like the voices of one generation.
    decided_at: BTreeMap<(Speaker, Scope), f64>,
    samples: Vec<i16>,
}

impl Live {
    pub(super) fn new(service: Arc<Service>, socket: &str, start: Start, lineage: Arc<Lineage>, place: Place) -> Self {
        let rate = Rate::new(start.audio.sample_rate);
        let capacity = rate.samples_in(service.settings.sockets.ring);
        let streams = Streams::new((&start.recording, socket), start.scope, start.audio_offset, rate);
        Self {
            socket: socket.to_owned(),
            account: place.key.account.clone(),
            recording: start.recording,
            lineage,
            key: place.key,
            conversation: place.conversation,
            generation: place.generation,
            streams,
            sample_rate: start.audio.sample_rate,
            people: start.people,
            exits: if start.verbose { Exits::Told } else { Exits::Counted },
            holder: place.holder,
            offset: place.offset,
            intake: Intake::new(start.audio.encoding, start.audio.channels),
            ring: Ring::new(rate, capacity),
            recent: VecDeque::new(),
            decided_at: BTreeMap::new(),
            samples: Vec::new(),
            service,
        }
    }

    pub(super) fn lane(&self) -> LaneId {
        self.lineage.lane
    }

    pub(super) fn lineage(&self) -> &Arc<Lineage> {
        &self.lineage
    }

    pub(super) fn ledger(&self) -> &Arc<Ledger> {
        &self.lineage.ledger
    }

    /// The people whom this recording is compared with.
    pub(super) fn gallery(&self) -> Gallery {
        self.service.gallery(self.people.as_deref())
    }

    /// How many they are.
    pub(super) fn people_known(&self) -> usize {
        self.gallery().iter().count()
    }

    pub(super) const fn exits(&self) -> Exits {
        self.exits
    }

    pub(super) fn scope(&self) -> &Scope {
        self.streams.current()
    }

    /// The provider started again.
    pub(super) fn handle_restart(&mut self, scope: Option<String>, audio_offset: f64) {
        self.streams.restart(scope, audio_offset);
    }

    /// Audio was lost before it reached us: the clock moves on without it.
    pub(super) fn handle_gap(&mut self, seconds: f64) {
        let lost = self.rate().sample_at(seconds).expect("the message's own limit is far below");
        self.ring.skip(lost.0);
        self.streams.handle_audio(lost.0);
    }

    /// The number of a voice that was heard.
    pub(super) fn known(&self, name: &SpeakerName) -> Result<Speaker, BadName> {
        self.names().known(name)
    }

    /// The recording's labels, the same for every socket of it.
    pub(super) fn names(&self) -> MutexGuard<'_, Names> {
        self.lineage.names()
    }

    /// Whether an event speaks of this lane as it is now.
    pub(super) fn is_current(&self, event: &CoreEvent) -> bool {
        match event {
            CoreEvent::Published { generation, .. }
            | CoreEvent::Retracted { generation, .. }
            | CoreEvent::Suggested { generation, .. } => *generation == self.generation,
            CoreEvent::Exited { .. }
            | CoreEvent::Failed { .. }
            | CoreEvent::Decided { .. }
            | CoreEvent::RolledOver { .. }
            | CoreEvent::Reconnected { .. }
            | CoreEvent::Collapsed { .. }
            | CoreEvent::Released { .. }
            | CoreEvent::Overdue { .. } => true,
        }
    }

    pub(super) const fn key(&self) -> &ConversationKey {
        &self.key
    }

    pub(super) const fn conversation(&self) -> &Addr<Conversation> {
        &self.conversation
    }

    pub(super) const fn generation(&self) -> Generation {
        self.generation
    }

    pub(super) const fn sample_rate(&self) -> std::num::NonZeroU32 {
        self.sample_rate
    }

    pub(super) fn rate(&self) -> Rate {
        self.ring.timeline().rate()
    }

    /// The lane has moved.
    pub(super) fn enter(&mut self, place: Place) {
        if self.key != place.key {
            // What was said in another conversation is no news in this one.
            self.recent.clear();
        }
        self.key = place.key;
        self.conversation = place.conversation;
        self.generation = place.generation;
        self.decided_at.clear();
    }

    /// Remembers when a verdict came, in seconds of the audio.
    pub(super) fn note(&mut self, event: &CoreEvent) {
        if let CoreEvent::Published { state, .. } = event {
            let now = self.rate().seconds(self.ring.timeline().now().0);
            self.decided_at.insert((state.speaker, state.scope.clone()), now);
        }
    }

    pub(super) fn decided_at(&self, speaker: Speaker, scope: &Scope) -> Option<f64> {
        self.decided_at.get(&(speaker, scope.clone())).copied()
    }

    /// Takes audio in, and says how many values were no numbers.
    pub(super) fn handle_audio(&mut self, frame: &[u8]) -> usize {
        let bad = self.intake.decode(frame, &mut self.samples);
        self.ring.write(&self.samples);
        self.streams.handle_audio(self.samples.len() as u64);
        self.samples.clear();
        self.samples.shrink_to(SCRATCH_MAX);
        bad
    }

    /// The segments of one message as one batch; what cannot be mapped is refused on its own.
    pub(super) fn batch(&mut self, segments: Vec<Result<Segment, Refused>>) -> (Batch, Vec<Refused>) {
        let (mut offers, mut refusals) = (Vec::with_capacity(segments.len()), Vec::new());
        for (index, segment) in segments.into_iter().enumerate() {
            match segment.and_then(|segment| self.offer(index, segment)) {
                Ok(offer) => self.push_parts(offer, &mut offers),
                Err(refused) => refusals.push(refused),
            }
        }
        self.remember(&offers);
        (self.batch_of(offers), refusals)
    }

    /// A window across lost audio is offered in the parts that there are: the middle of the whole may be the gap.
    fn push_parts(&self, offer: Offer, offers: &mut Vec<Offer>) {
        let timeline = self.ring.timeline();
        let parts: Vec<Span> = timeline.held(offer.window).take(PARTS_MAX + 1).collect();
        let is_complete = offer.window.end() <= timeline.now();
        if parts.is_empty() || parts.len() > PARTS_MAX || parts.len() == 1 && !is_complete {
            return offers.push(offer);
        }
        offers.extend(parts.into_iter().map(|window| Offer { window, speech: window.samples(), ..offer.clone() }));
    }

    fn offer(&mut self, index: usize, segment: Segment) -> Result<Offer, Refused> {
        let placed = self.streams.window(segment.scope.as_deref(), segment.start, segment.end);
        let (scope, window) = placed.map_err(|unmapped| {
            Refused::field(format!("segments[{index}].{}", unmapped.edge.as_str()), unmapped.to_string())
        })?;
        let speaker = self
            .names()
            .number(&segment.speaker, &scope)
            .map_err(|bad: BadName| Refused::field(format!("segments[{index}].speaker"), bad.to_string()))?;
        let segment = SegmentId::new(&segment.id);
        Ok(Offer { speaker, scope, window, speech: window.samples(), segment })
    }

    fn remember(&mut self, offers: &[Offer]) {
        let oldest = self.ring.timeline().range().map(Span::start);
        while self.recent.front().is_some_and(|offer| Some(offer.window.end()) <= oldest) {
            self.recent.pop_front();
        }
        self.recent.extend(offers.iter().cloned());
        let surplus = self.recent.len().saturating_sub(RECENT_MAX);
        self.recent.drain(..surplus);
    }

    /// What the ring still holds of the offers so far.
    pub(super) fn recent(&self) -> Batch {
        self.batch_of(self.recent.iter().cloned().collect())
    }

    fn batch_of(&self, offers: Vec<Offer>) -> Batch {
        let (generation, scope) = (self.generation, self.streams.current().clone());
        Batch { generation, scope, ring: self.ring.timeline().range(), offers }
    }

    pub(super) fn label(&self, speaker: Speaker) -> Option<String> {
        self.names().label(speaker).map(str::to_owned)
    }

    pub(super) fn budget_left(&self, speaker: Speaker) -> BudgetLeft {
        let left = self.ledger().left(speaker);
        BudgetLeft { voice_attempts_left: left.voice_attempts, socket_tokens: left.tokens }
    }

    /// A core event in the words of the protocol; `None` when this client does not want it.
    pub(super) fn event(&self, event: CoreEvent) -> Option<Event> {
        match event {
            CoreEvent::Published { generation, state, .. } => Some(self.speaker_event(generation, state)),
            CoreEvent::Retracted { generation, speaker, scope, segment, status, .. } => Some(Event::Retract {
                speaker: speaker.0,
                label: self.label(speaker),
                scope: scope.as_str().to_owned(),
                generation: generation.0,
                segment_id: segment.map(|segment| segment.as_str().to_owned()),
                reason: status.as_str(),
            }),
            CoreEvent::Exited { speaker, segment, reason, cap, .. } => Some(Event::Exit {
                speaker: speaker.0,
                label: self.label(speaker),
                segment_id: segment.map(|segment| segment.as_str().to_owned()),
                reason: reason.as_str(),
                cap: cap.map(matcher_core::Cap::as_str),
            }),
            CoreEvent::Failed { speaker, segment, .. } => Some(Event::Error {
                code: "extraction_failed",
                message: "a query brought no voiceprint; its attempt and token are spent, the speech is kept"
                    .to_owned(),
                field: None,
                speaker: Some(speaker.0),
                label: self.label(speaker),
                segment_id: Some(segment.as_str().to_owned()),
            }),
            CoreEvent::Suggested { speaker, person, level, is_retracted, .. } => Some(Event::Suggestion {
                speaker: speaker.0,
                label: self.label(speaker),
                person_id: person.to_string(),
                level,
                retracted: is_retracted,
            }),
            CoreEvent::Decided { .. }
            | CoreEvent::RolledOver { .. }
            | CoreEvent::Reconnected { .. }
            | CoreEvent::Collapsed { .. }
            | CoreEvent::Released { .. }
            | CoreEvent::Overdue { .. } => None,
        }
    }

    fn speaker_event(&self, generation: Generation, state: matcher_core::VoiceState) -> Event {
        let identity = state.identity;
        let origin = identity.as_ref().map_or(matcher_core::Origin::Automatic, |identity| identity.origin);
        Event::Speaker {
            speaker: state.speaker.0,
            label: self.label(state.speaker),
            scope: state.scope.as_str().to_owned(),
            generation: generation.0,
            status: state.status.as_str(),
            person_id: identity.as_ref().map(|identity| identity.person.as_str().to_owned()),
            person_name: identity.map(|identity| identity.name.to_string()),
            origin: origin.as_str(),
            distance: state.distance,
            runner_up_distance: state.runner_up,
            evidence_seconds: state.evidence_seconds,
            segment_id: state.segment.map(|segment| segment.as_str().to_owned()),
            budget: self.budget_left(state.speaker),
        }
    }
}

/// Where a lane is.
pub(super) struct Place {
    pub(super) key: ConversationKey,
    pub(super) conversation: Addr<Conversation>,
    pub(super) generation: Generation,
    /// The right to keep the owner for the device's next socket.
    pub(super) holder: Option<Arc<Holder>>,
    /// Where the socket's audio begins in the recording, seconds.
    pub(super) offset: f64,
}

impl Drop for Live {
    fn drop(&mut self) {
        self.lineage.leave(&self.socket, self.service.clock.now());
        let leave = Leave { lane: self.lane(), generation: self.generation, why: Left::Gone };
        #[expect(
            clippy::disallowed_methods,
            reason = "a lost message would leak a lane with its leases; one a socket"
        )]
        self.conversation.do_send(leave);
    }
}
