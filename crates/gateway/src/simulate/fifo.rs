//! The control: every update is a job of its own, and jobs go in order of arrival. What a query needs, what a voice's clips
//! say and when it has its name, it takes from the core; it has neither slots nor an order, and no arbitration.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use matcher_core::evidence::{Clip, Evidence};
use matcher_core::policy::Verdict;
use matcher_core::{
    Dispatch, Embedding, Floors, Gallery, Limits, Monotonic, Offer, Rate, Refusal, RequestId, Sample, Scope, SegmentId,
    Selection, Span, Spans, Speaker,
};

use super::discipline::{Discipline, GENERATION, LANE};
use super::voices;

/// An update that waits. It examines what its voice had said until it ended, and no query has used.
struct Job {
    speaker: Speaker,
    heard_until: Sample,
    segment: SegmentId,
    since: Monotonic,
}

struct Voice {
    fresh: Spans,
    covered: Spans,
    evidence: Evidence,
    verdict: Option<Verdict>,
    is_in_work: bool,
}

/// See the module's text. The line is as long as the script.
pub(super) struct Fifo {
    line: VecDeque<Job>,
    /// Jobs that have a worker's place and wait for their number, as a task waits for a lock.
    holding: VecDeque<Job>,
    voices: BTreeMap<Speaker, Voice>,
    running: BTreeMap<RequestId, (Speaker, u64)>,
    gallery: Gallery,
    floors: Floors,
    limits: Limits,
    requests: u64,
}

impl Fifo {
    pub(super) fn new(rate: Rate, limits: Limits) -> Self {
        Self {
            line: VecDeque::new(),
            holding: VecDeque::new(),
            voices: BTreeMap::new(),
            running: BTreeMap::new(),
            gallery: voices::gallery(),
            floors: Floors::at(rate, &limits),
            limits,
            requests: 0,
        }
    }

    fn is_in_work(&self, speaker: Speaker) -> bool {
        self.voices.get(&speaker).is_some_and(|voice| voice.is_in_work)
    }

    /// What a job would examine, and what it needs; nothing, when it is too little or the voice has its name.
    fn examinable(&self, job: &Job) -> Option<(Spans, u64)> {
        let voice = self.voices.get(&job.speaker)?;
        let needed = self.floors.needed(voice.evidence.surviving());
        let until = Span::new(Sample(0), job.heard_until).ok()?;
        let mut fresh = voice.fresh.clone();
        fresh.clip(until);
        (voice.verdict != Some(Verdict::Accepted) && fresh.samples() >= needed).then_some((fresh, needed))
    }

    fn start(&mut self, job: Job, now: Monotonic) -> Option<Dispatch> {
        let (fresh, needed) = self.examinable(&job)?;
        let voice = self.voices.get_mut(&job.speaker)?;
        voice.is_in_work = true;
        self.requests += 1;
        let request = RequestId(self.requests);
        self.running.insert(request, (job.speaker, 0));
        Some(Dispatch {
            request,
            lane: LANE,
            generation: GENERATION,
            speaker: job.speaker,
            scope: Scope::new(""),
            segment: job.segment,
            needed,
            query_max: self.floors.query_max,
            evidence: voice.evidence.samples(),
            pending: fresh.samples(),
            fresh,
            waited: now.since(job.since),
        })
    }

    /// Whose number is free again goes first; a job whose number is not takes a place from those behind it.
    fn next(&mut self, free: usize) -> Option<Job> {
        if let Some(at) = self.holding.iter().position(|job| !self.is_in_work(job.speaker)) {
            return self.holding.remove(at);
        }
        while self.holding.len() < free {
            let job = self.line.pop_front()?;
            if !self.is_in_work(job.speaker) {
                return Some(job);
            }
            self.holding.push_back(job);
        }
        None
    }

    fn finish(&mut self, request: RequestId) -> (&mut Voice, u64) {
        let (speaker, samples) = self.running.remove(&request).expect("this line made the query");
        let voice = self.voices.get_mut(&speaker).expect("an examined voice is known");
        voice.is_in_work = false;
        (voice, samples)
    }
}

impl Discipline for Fifo {
    fn handle_message(&mut self, offers: Vec<Offer>, ring: Option<Span>, now: Monotonic) {
        for Offer { speaker, window, segment, .. } in offers {
            let clips_kept = self.limits.clips_kept;
            let voice = self.voices.entry(speaker).or_insert_with(|| Voice {
                fresh: Spans::new(),
                covered: Spans::new(),
                evidence: Evidence::new(clips_kept),
                verdict: None,
                is_in_work: false,
            });
            voice.fresh.insert_except(window, [&voice.covered, &Spans::new()]);
            if let Some(ring) = ring {
                voice.fresh.clip(ring);
            }
            self.line.push_back(Job { speaker, heard_until: window.end(), segment, since: now });
        }
    }

    fn poll_dispatch(&mut self, now: Monotonic, free: usize) -> Option<Dispatch> {
        while let Some(job) = self.next(free) {
            let started = self.start(job, now);
            if started.is_some() {
                return started;
            }
        }
        None
    }

    fn handle_reserved(&mut self, request: RequestId, selection: &Selection) {
        let (speaker, samples) = self.running.get_mut(&request).expect("this line made the query");
        *samples = selection.samples;
        let voice = self.voices.get_mut(speaker).expect("an examined voice is known");
        voice.fresh = voice.fresh.without(&selection.spans);
        voice.covered.insert_all(&selection.spans);
    }

    fn handle_refused(&mut self, request: RequestId, _refusal: Refusal) {
        self.finish(request);
    }

    fn handle_extracted(&mut self, request: RequestId, embedding: Embedding, _now: Monotonic) {
        let evidence_floor = self.floors.evidence;
        let gallery = self.gallery.clone();
        let (voice, samples) = self.finish(request);
        voice.evidence.add(Clip { embedding, samples });
        if voice.evidence.samples() >= evidence_floor {
            let centroid = voice.evidence.centroid();
            voice.verdict = centroid.map(|centroid| voices::POLICY.decide(&gallery.distances(&centroid)).verdict);
        }
    }

    fn eligible(&self) -> BTreeSet<Speaker> {
        let jobs = self.holding.iter().chain(&self.line);
        let startable = jobs.filter(|job| !self.is_in_work(job.speaker) && self.examinable(job).is_some());
        startable.map(|job| job.speaker).collect()
    }

    fn is_rejected(&self, speaker: Speaker) -> bool {
        self.voices.get(&speaker).is_some_and(|voice| voice.verdict == Some(Verdict::Nobody))
    }

    fn age_override(&self) -> Option<Duration> {
        None
    }
}
