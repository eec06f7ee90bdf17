//! The controls without coalescing: every update is a job of its own. What a query needs, what a voice's clips say and when it
//! has its name, it takes from [`Book`]; it has neither slots nor a bound on them. The line is as long as the script.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use matcher_core::queue::{NearOwner, Tried, Voice};
use matcher_core::{
    Dispatch, Embedding, Limits, Monotonic, Offer, Rate, Refusal, RequestId, Sample, SegmentId, Selection, Span, Spans,
    Speaker,
};

use super::book::{Book, Waited, claimed};
use super::discipline::Discipline;
use super::voices::{Cast, Class};

/// An update that waits. It examines what its voice had said until it ended, and no query has used.
#[derive(Debug, Clone)]
struct Job {
    voice: Voice,
    heard_until: Sample,
    segment: SegmentId,
    since: Monotonic,
}

#[derive(Debug, Default)]
struct Speech {
    fresh: Spans,
    covered: Spans,
}

/// Which job goes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Line {
    /// Who came first. A job that waits for its number holds a worker, as a task that waits for a lock.
    Arrival,
    /// The service's order over jobs whose number is free.
    Service,
}

/// See the module's text.
pub(super) struct Jobs {
    order: Line,
    line: VecDeque<Job>,
    /// Jobs that have a worker's place and wait for their number.
    holding: VecDeque<Job>,
    speech: BTreeMap<Voice, Speech>,
    taken: BTreeMap<RequestId, Spans>,
    book: Book,
    limits: Limits,
}

impl Jobs {
    pub(super) fn new(rate: Rate, limits: Limits, order: Line, cast: Cast) -> Self {
        Self {
            order,
            line: VecDeque::new(),
            holding: VecDeque::new(),
            speech: BTreeMap::new(),
            taken: BTreeMap::new(),
            book: Book::new(rate, limits.clone(), cast),
            limits,
        }
    }

    /// What a job would examine; nothing, when it is too little or the voice has its name.
    fn examinable(&self, job: &Job) -> Option<Spans> {
        let speech = self.speech.get(&job.voice)?;
        let mut fresh = speech.fresh.clone();
        fresh.clip(Span::new(Sample(0), job.heard_until).ok()?);
        let is_worth = !self.book.class(job.voice).is_named() && fresh.samples() >= self.book.needed(job.voice);
        is_worth.then_some(fresh)
    }

    fn start(&mut self, job: Job, now: Monotonic) -> Option<Dispatch> {
        let fresh = self.examinable(&job)?;
        let waited = Waited { waited: now.since(job.since), by_age: self.is_by_age(&job, now) };
        Some(self.book.begin(job.voice, (job.segment, fresh), waited))
    }

    fn next(&mut self, now: Monotonic, free: usize) -> Option<Job> {
        match self.order {
            Line::Arrival => self.next_that_came(free),
            Line::Service => self.next_in_order(now),
        }
    }

    fn is_by_age(&self, job: &Job, now: Monotonic) -> bool {
        self.order == Line::Service && now.since(job.since) >= self.limits.age_override
    }

    /// Whose number is free again goes first; a job whose number is not takes a place from those behind it.
    fn next_that_came(&mut self, free: usize) -> Option<Job> {
        let is_free = |job: &Job| !self.book.is_in_work(job.voice.speaker);
        if let Some(at) = self.holding.iter().position(is_free) {
            return self.holding.remove(at);
        }
        while self.holding.len() < free {
            let job = self.line.pop_front()?;
            if !self.book.is_in_work(job.voice.speaker) {
                return Some(job);
            }
            self.holding.push_back(job);
        }
        None
    }

    fn next_in_order(&mut self, now: Monotonic) -> Option<Job> {
        let candidates = self.line.iter().enumerate().filter(|(_, job)| !self.book.is_in_work(job.voice.speaker));
        let ready = candidates.filter_map(|(at, job)| {
            let standing = self.book.standing(job.voice);
            let speech = self.examinable(job)?.samples().min(self.book.query_max());
            let preference: Option<(Tried, NearOwner, Reverse<u64>)> =
                (!self.is_by_age(job, now)).then_some((standing.tried, standing.near_owner, Reverse(speech)));
            Some((preference, job.since, job.voice, at))
        });
        let (.., at) = ready.min()?;
        self.line.remove(at)
    }
}

impl Discipline for Jobs {
    fn handle_message(&mut self, offers: Vec<Offer>, ring: Option<Span>, now: Monotonic) {
        for offer in offers {
            let voice = self.book.voice(&offer);
            let Speech { fresh, covered } = self.speech.entry(voice).or_default();
            fresh.insert_except(claimed(&offer), [&*covered, &Spans::new()]);
            if let Some(ring) = ring {
                fresh.clip(ring);
            }
            self.line.push_back(Job { voice, heard_until: offer.window.end(), segment: offer.segment, since: now });
        }
    }

    fn poll_dispatch(&mut self, now: Monotonic, free: usize) -> Option<Dispatch> {
        while let Some(job) = self.next(now, free) {
            let started = self.start(job, now);
            if started.is_some() {
                return started;
            }
        }
        None
    }

    fn handle_reserved(&mut self, request: RequestId, selection: &Selection) {
        let voice = self.book.note_reserved(request, selection.samples);
        let speech = self.speech.get_mut(&voice).expect("an examined voice spoke");
        speech.fresh = speech.fresh.without(&selection.spans);
        speech.covered.insert_all(&selection.spans);
        self.taken.insert(request, selection.spans.clone());
    }

    fn handle_refused(&mut self, request: RequestId, _refusal: Refusal) {
        self.book.end(request);
    }

    fn handle_extracted(&mut self, request: RequestId, embedding: Embedding, _now: Monotonic) {
        self.taken.remove(&request);
        self.book.note_extracted(request, embedding);
    }

    fn handle_failed(&mut self, request: RequestId) {
        let voice = self.book.end(request);
        let taken = self.taken.remove(&request).unwrap_or_default();
        if let Some(speech) = self.speech.get_mut(&voice) {
            speech.covered = speech.covered.without(&taken);
            speech.fresh.insert_all(&taken);
        }
    }

    /// Of whom is in work, too, there may be another job, whose own wait is told with it.
    fn waiting(&self) -> BTreeSet<Speaker> {
        self.eligible()
    }

    fn eligible(&self) -> BTreeSet<Speaker> {
        let jobs = self.holding.iter().chain(&self.line);
        let free = jobs.filter(|job| !self.book.is_in_work(job.voice.speaker));
        let mut eligible = BTreeSet::new();
        for job in free {
            if !eligible.contains(&job.voice.speaker) && self.examinable(job).is_some() {
                eligible.insert(job.voice.speaker);
            }
        }
        eligible
    }

    fn is_rejected(&self, speaker: Speaker) -> bool {
        self.book.is_any(speaker, Class::is_rejected)
    }

    fn is_named(&self, speaker: Speaker) -> bool {
        self.book.is_any(speaker, Class::is_named)
    }
}
