//! The world of the tests: two people at right angles, a ring of audio, and short ways to say and to ask things.

use std::num::NonZeroU32;

use matcher_core::{
    Change, Embedding, Ending, Event, ExitReason, Explanation, Gallery, LaneId, Offer, PersonId, Policy, Print, Rate,
    Role, Sample, Scope, SegmentId, Span, Spans, Speaker, Status, Suggestions, Target, Timeline, VoiceState,
};

use super::Driver;

pub(crate) const LANE: LaneId = LaneId(1);
pub(crate) const OWNER: [f32; 2] = [1.0, 0.0];
pub(crate) const SARAH: [f32; 2] = [0.0, 1.0];
/// As far from the owner as from Sarah.
pub(crate) const BETWEEN: [f32; 2] = [1.0, 1.0];
pub(crate) const HERTZ: u64 = 16_000;

/// The literals that the decision rules are stated for.
pub(crate) const fn policy() -> Policy {
    Policy {
        threshold: 0.65,
        margin: 0.10,
        near_miss_bound: 0.70,
        near_owner_bound: 0.75,
        grouping: 0.50,
        reconnect: 0.35,
        suggestions: Suggestions::Off,
        levels: [0.65, 0.75, 0.85],
    }
}

pub(crate) fn rate() -> Rate {
    Rate::new(NonZeroU32::new(16_000).expect("the rate is not zero"))
}

pub(crate) fn print(person: &str, name: &str, role: Role, vector: [f32; 2]) -> Print {
    let embedding = Embedding::new(&vector).expect("prints are voiceprints");
    Print { person: PersonId::new(person), name: name.into(), role, embedding, is_pinned: false }
}

pub(crate) fn gallery() -> Gallery {
    let owner = print("user", "User", Role::Owner, OWNER);
    Gallery::new(vec![owner, print("p1", "Sarah", Role::Person, SARAH)])
}

pub(crate) fn owner_only() -> Gallery {
    Gallery::new(vec![print("user", "User", Role::Owner, OWNER)])
}

pub(crate) fn sarah_only() -> Gallery {
    Gallery::new(vec![print("p1", "Sarah", Role::Person, SARAH)])
}

/// A unit vector at this cosine distance from the owner.
pub(crate) fn at(distance: f32) -> [f32; 2] {
    let cosine = 1.0 - distance;
    [cosine, (1.0 - cosine * cosine).max(0.0).sqrt()]
}

/// The mirror of [`at`].
pub(crate) fn mirrored(distance: f32) -> [f32; 2] {
    let [x, y] = at(distance);
    [x, -y]
}

pub(crate) fn samples(seconds: f64) -> u64 {
    rate().sample_at(seconds).expect("test times are positions").0
}

pub(crate) fn span(start: f64, end: f64) -> Span {
    Span::new(Sample(samples(start)), Sample(samples(end))).expect("test spans are not empty")
}

pub(crate) fn spans(parts: &[(f64, f64)]) -> Spans {
    parts.iter().map(|(start, end)| span(*start, *end)).collect()
}

/// A ring that holds exactly these seconds of audio, from the start.
pub(crate) fn ring_of(seconds: u64) -> Timeline {
    let mut timeline = Timeline::new(rate(), seconds * HERTZ);
    timeline.handle_samples(seconds * HERTZ);
    timeline
}

/// A ring of `capacity` seconds with these stretches (start, length) written to it.
pub(crate) fn ring_with(capacity: f64, stretches: &[(f64, f64)]) -> Timeline {
    let mut timeline = Timeline::new(rate(), samples(capacity));
    for (start, length) in stretches {
        timeline.handle_samples_at(Sample(samples(*start)), samples(*length));
    }
    timeline
}

/// A segment as a client sends it.
#[derive(Debug, Clone)]
pub(crate) struct Segment {
    pub(crate) speaker: u32,
    pub(crate) id: String,
    pub(crate) start: f64,
    pub(crate) end: f64,
    pub(crate) scope: &'static str,
    pub(crate) speech: Option<f64>,
}

/// Speech of `speaker` from `start` to `end`; its id names both.
pub(crate) fn says(speaker: u32, start: f64, end: f64) -> Segment {
    Segment { speaker, id: format!("{speaker}@{start}"), start, end, scope: "", speech: None }
}

impl Segment {
    pub(crate) fn named(self, id: &str) -> Self {
        Self { id: id.into(), ..self }
    }

    pub(crate) fn in_scope(self, scope: &'static str) -> Self {
        Self { scope, ..self }
    }

    /// The provider claims this many seconds of speech.
    pub(crate) fn lasting(self, speech: f64) -> Self {
        Self { speech: Some(speech), ..self }
    }

    pub(crate) fn offer(&self, timeline: &Timeline) -> Offer {
        let window = timeline.span(self.start, self.end).expect("test segments have times");
        let speech = self.speech.map_or(window.samples(), samples);
        let (speaker, scope) = (Speaker(self.speaker), Scope::new(self.scope));
        Offer { speaker, scope, window, speech, segment: SegmentId::new(&self.id) }
    }
}

/// `count` fragments of half a second of one voice, end to end from the start of the ring.
pub(crate) fn fragments(speaker: u32, count: u32) -> impl Iterator<Item = Segment> {
    (0..count).map(move |n| says(speaker, f64::from(n) * 0.5, f64::from(n + 1) * 0.5))
}

/// What the tests ask of a driver.
impl Driver {
    pub(crate) fn voice(&self, speaker: u32) -> Option<VoiceState> {
        self.scheduler().voices(LANE).into_iter().find(|voice| voice.speaker == Speaker(speaker))
    }

    pub(crate) fn status(&self, speaker: u32) -> Status {
        self.voice(speaker).map_or(Status::Pending, |voice| voice.status)
    }

    pub(crate) fn person(&self, speaker: u32) -> Option<String> {
        Some(self.voice(speaker)?.identity?.person.to_string())
    }

    pub(crate) fn explain(&self, speaker: u32) -> Explanation {
        self.scheduler().explain(LANE, Speaker(speaker)).into_iter().next().expect("the voice is known")
    }

    pub(crate) fn evidence(&self, speaker: u32) -> f64 {
        self.voice(speaker).map_or(0.0, |voice| voice.evidence_seconds)
    }

    pub(crate) fn attempts(&self, speaker: u32) -> u32 {
        self.lane().budget.attempts(Speaker(speaker))
    }

    pub(crate) fn tokens(&self) -> f64 {
        self.lane().budget.tokens(self.now)
    }

    pub(crate) fn exited(&self, reason: ExitReason) -> u64 {
        self.counters.exited(reason)
    }

    /// Names that were given, in order: speaker, person and segment.
    pub(crate) fn named(&self) -> Vec<(u32, String, String)> {
        let named = self.events.iter().filter_map(|event| {
            let Event::Published { state, change: Change::Identity, .. } = event else { return None };
            let person = state.identity.as_ref()?.person.to_string();
            Some((state.speaker.0, person, state.segment.as_ref()?.to_string()))
        });
        named.collect()
    }

    /// Names that were taken back, in order: speaker and segment.
    pub(crate) fn retracted(&self) -> Vec<(u32, String)> {
        let retracted = self.events.iter().filter_map(|event| {
            let Event::Retracted { speaker, segment, .. } = event else { return None };
            Some((speaker.0, segment.as_ref()?.to_string()))
        });
        retracted.collect()
    }

    pub(crate) fn decided(&self, whom: Target, how: Ending) -> usize {
        let decided = self.events.iter().filter(|event| {
            let Event::Decided { target, ending, .. } = event else { return false };
            (*target, *ending) == (whom, how)
        });
        decided.count()
    }

    /// The segments whose slot or update ended for this reason, in order.
    pub(crate) fn exited_segments(&self, why: ExitReason) -> Vec<String> {
        let exited = self.events.iter().filter_map(|event| {
            let Event::Exited { segment, reason, .. } = event else { return None };
            (*reason == why).then(|| segment.as_ref().map(ToString::to_string)).flatten()
        });
        exited.collect()
    }

    /// The spans that each query of a voice used, in order.
    pub(crate) fn selections(&self, speaker: u32) -> Vec<Spans> {
        let of_voice = self.queries.iter().filter(|(voice, _)| *voice == Speaker(speaker));
        of_voice.map(|(_, selection)| selection.spans.clone()).collect()
    }
}

/// The expected [`Driver::named`] of one event.
pub(crate) fn name(speaker: u32, person: &str, segment: &str) -> (u32, String, String) {
    (speaker, person.into(), segment.into())
}
