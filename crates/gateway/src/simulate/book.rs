//! What is known of each voice where the core does not keep it: its clips, its verdict, what its next query needs. For the
//! controls and for recorded lanes, whose verdicts are given; it arbitrates between nobody.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use matcher_core::evidence::{Clip, Evidence};
use matcher_core::queue::{Standing, Tried, Voice};
use matcher_core::{
    Dispatch, Embedding, Floors, Limits, Offer, Rate, RequestId, Sample, Scope, SegmentId, Span, Spans, Speaker,
};

use super::discipline::{GENERATION, LANE};
use super::voices::{Cast, Class};

#[derive(Debug)]
struct Known {
    evidence: Evidence,
    class: Class,
    answered: usize,
}

/// The part of an offer's window that its claimed speech fills.
pub(super) fn claimed(offer: &Offer) -> Span {
    let end = Sample(offer.window.start().0.saturating_add(offer.speech)).min(offer.window.end());
    Span::new(offer.window.start(), end).unwrap_or(offer.window)
}

/// How a voice came to its turn.
#[derive(Debug, Clone, Copy)]
pub(super) struct Waited {
    pub(super) waited: Duration,
    /// Whether its age alone decided its place.
    pub(super) by_age: bool,
}

/// A query under way.
#[derive(Debug, Clone, Copy)]
struct Running {
    voice: Voice,
    samples: u64,
}

/// See the module's text.
#[derive(Debug)]
pub(super) struct Book {
    voices: BTreeMap<Voice, Known>,
    /// Tokens spent by each number.
    spent: BTreeMap<Speaker, u32>,
    scopes: Vec<Scope>,
    running: BTreeMap<RequestId, Running>,
    requests: u64,
    cast: Cast,
    floors: Floors,
    limits: Limits,
}

impl Book {
    pub(super) fn new(rate: Rate, limits: Limits, cast: Cast) -> Self {
        Self {
            voices: BTreeMap::new(),
            spent: BTreeMap::new(),
            scopes: Vec::new(),
            running: BTreeMap::new(),
            requests: 0,
            cast,
            floors: Floors::at(rate, &limits),
            limits,
        }
    }

    pub(super) const fn cast(&self) -> &Cast {
        &self.cast
    }

    pub(super) const fn query_max(&self) -> u64 {
        self.floors.query_max
    }

    /// The voice that an offer is of, in the order in which the streams came.
    pub(super) fn voice(&mut self, offer: &Offer) -> Voice {
        let known = self.scopes.iter().position(|scope| *scope == offer.scope);
        let index = known.unwrap_or_else(|| {
            self.scopes.push(offer.scope.clone());
            self.scopes.len() - 1
        });
        Voice { speaker: offer.speaker, scope: u16::try_from(index).unwrap_or(u16::MAX) }
    }

    fn scope(&self, voice: Voice) -> Scope {
        self.scopes.get(usize::from(voice.scope)).cloned().unwrap_or_else(|| Scope::new(""))
    }

    pub(super) fn class(&self, voice: Voice) -> Class {
        self.voices.get(&voice).map_or(Class::Pending, |known| known.class)
    }

    /// Whether the latest verdict on any voice with this number is such a one.
    pub(super) fn is_any(&self, speaker: Speaker, is_such: impl Fn(Class) -> bool) -> bool {
        self.voices.iter().any(|(voice, known)| voice.speaker == speaker && is_such(known.class))
    }

    pub(super) fn needed(&self, voice: Voice) -> u64 {
        self.floors.needed(self.voices.get(&voice).map_or(0, |known| known.evidence.surviving()))
    }

    pub(super) fn spent(&self, speaker: Speaker) -> u32 {
        self.spent.get(&speaker).copied().unwrap_or(0)
    }

    pub(super) fn standing(&self, voice: Voice) -> Standing {
        Standing {
            tried: if self.spent(voice.speaker) == 0 { Tried::Never } else { Tried::Before },
            near_owner: self.class(voice).near_owner(),
        }
    }

    pub(super) fn is_in_work(&self, speaker: Speaker) -> bool {
        self.running.values().any(|running| running.voice.speaker == speaker)
    }

    pub(super) fn in_work(&self) -> BTreeSet<Speaker> {
        self.running.values().map(|running| running.voice.speaker).collect()
    }

    /// A voice gave way to another.
    pub(super) fn forget(&mut self, voice: Voice) {
        self.voices.remove(&voice);
    }

    /// A query begins.
    pub(super) fn begin(
        &mut self,
        voice: Voice,
        (segment, fresh): (SegmentId, Spans),
        Waited { waited, by_age }: Waited,
    ) -> Dispatch {
        self.requests += 1;
        let request = RequestId(self.requests);
        self.running.insert(request, Running { voice, samples: 0 });
        Dispatch {
            request,
            lane: LANE,
            generation: GENERATION,
            speaker: voice.speaker,
            scope: self.scope(voice),
            segment,
            needed: self.needed(voice),
            query_max: self.floors.query_max,
            evidence: self.voices.get(&voice).map_or(0, |known| known.evidence.samples()),
            pending: fresh.samples(),
            fresh,
            waited,
            by_age,
            tried: self.standing(voice).tried,
        }
    }

    /// A token was spent on so much audio.
    pub(super) fn note_reserved(&mut self, request: RequestId, samples: u64) -> Voice {
        let running = self.running.get_mut(&request).expect("this book began the query");
        running.samples = samples;
        *self.spent.entry(running.voice.speaker).or_default() += 1;
        running.voice
    }

    /// A query ended without a voiceprint.
    pub(super) fn end(&mut self, request: RequestId) -> Voice {
        self.running.remove(&request).expect("this book began the query").voice
    }

    /// A query brought a voiceprint.
    pub(super) fn note_extracted(&mut self, request: RequestId, embedding: Embedding) -> Voice {
        let Running { voice, samples } = self.running.remove(&request).expect("this book began the query");
        let known = self.known(voice);
        // A voice that got its name meanwhile needs no more evidence.
        if !known.class.is_named() {
            known.evidence.add(Clip { embedding, samples });
        }
        known.answered += 1;
        let (evidence, answered) = (&known.evidence, known.answered);
        let (is_long, centroid) = (evidence.samples(), evidence.centroid());
        let centroid = centroid.filter(|_| is_long >= self.floors.evidence);
        // Without evidence enough, what was said before stands.
        if let Some(class) = self.cast.verdict(voice, answered, centroid) {
            self.known(voice).class = class;
        }
        voice
    }

    /// Something else is said of a voice, without a query of its own.
    pub(super) fn note_moved(&mut self, voice: Voice, class: Class) {
        self.known(voice).class = class;
    }

    fn known(&mut self, voice: Voice) -> &mut Known {
        let clips_kept = self.limits.clips_kept;
        let new = || Known { evidence: Evidence::new(clips_kept), class: Class::Pending, answered: 0 };
        self.voices.entry(voice).or_insert_with(new)
    }
}
