//! Why a voice has its name, or none, in plain words: what was heard, what was asked of the model, what came out, what is
//! missing, and what would change it.
//!
//! Pure: from what the core, the ledger and the settings say to sentences. The socket's `explain`, the HTTP interface and
//! the console all tell these. No vector, no audio, nothing that was said.

mod past;
mod words;

use std::time::Duration;

use matcher_core::policy::{Policy, Shortfall};
use matcher_core::receipt::Standing;
use matcher_core::{Explanation, Gallery, Limits, PersonId, Status, budget};
use serde::Serialize;

pub use past::{Past, ended};
pub(crate) use words::precedence_name;
use words::{distance, seconds};
pub use words::{exit, precedence};

/// Candidates that are told: the nearest, and whom it could be confused with.
const CANDIDATES_TOLD: usize = 3;

/// Sentences about one voice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Told {
    /// The whole in one sentence.
    pub summary: String,
    /// What was heard.
    pub heard: Vec<String>,
    /// What was asked of the model.
    pub asked: Vec<String>,
    /// What came out.
    pub came_out: Vec<String>,
    /// What is missing for a name; empty when it has one.
    pub missing: Vec<String>,
    /// What would change it.
    pub would_change: Vec<String>,
}

/// The rules that verdicts and questions follow.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rules {
    /// The distances that a name needs.
    pub policy: Policy,
    /// Seconds of speech that a verdict needs.
    pub evidence_seconds: f64,
    /// Questions for each number.
    pub attempts: u32,
    /// Fresh seconds that give a number at its limit all its questions again, where the budget has that option.
    pub renewal_seconds: Option<f64>,
}

impl Rules {
    /// The rules of these settings.
    #[must_use]
    pub fn of(policy: &Policy, limits: &Limits, budget: &budget::Limits) -> Self {
        Self {
            policy: *policy,
            evidence_seconds: limits.evidence_floor.as_secs_f64(),
            attempts: budget.attempts_max.get(),
            renewal_seconds: budget.renewal.map(|renewal| renewal.speech.as_secs_f64()),
        }
    }
}

/// What stands around a voice.
#[derive(Debug, Clone, Copy)]
pub struct Around<'a> {
    /// The rules.
    pub rules: Rules,
    /// People whom the voice is compared with.
    pub gallery: &'a Gallery,
    /// Questions left for its number.
    pub attempts_left: u32,
    /// Tokens of its recording.
    pub tokens: f64,
    /// How long until there is a whole one.
    pub next_token: Duration,
    /// Whether a worker can extract.
    pub is_engine_ready: bool,
}

/// Everything about a voice of a live conversation.
#[must_use]
pub fn live(voice: &Explanation, around: &Around<'_>) -> Told {
    let tale = Tale { voice, around };
    Told {
        summary: tale.summary(),
        heard: tale.heard(),
        asked: tale.asked(),
        came_out: tale.came_out(),
        missing: tale.missing(),
        would_change: tale.would_change(),
    }
}

/// The summary alone.
#[must_use]
pub fn summary(voice: &Explanation, around: &Around<'_>) -> String {
    Tale { voice, around }.summary()
}

/// Why a voice whose distances do not suffice has no name.
enum Short<'a> {
    /// The nearest is too far.
    Far(&'a str, f64),
    /// Two are too close to each other.
    Close((&'a str, f64), (&'a str, f64)),
    /// They would suffice, or nothing was compared.
    Neither,
}

struct Tale<'a> {
    voice: &'a Explanation,
    around: &'a Around<'a>,
}

impl Tale<'_> {
    fn summary(&self) -> String {
        let Self { voice, around } = self;
        let name = voice.state.identity.as_ref().map(|identity| &*identity.name);
        match (&voice.ruled, name) {
            (Standing::Named(named, _), _) => format!("Somebody said that this is {}.", named.name),
            (Standing::Nobody, _) => "Somebody said that this is nobody who has a name here.".to_owned(),
            (Standing::Rejected, _) => "Somebody said that this is not who it seemed to be.".to_owned(),
            (Standing::Free | Standing::Silenced, Some(name)) => self.named(name),
            (Standing::Silenced, None) => {
                "Somebody decided about a part of what it said; how it sounds gives it no name any more.".to_owned()
            }
            (Standing::Free, None) if !voice.is_authority_read => {
                "What people decided cannot be read at the moment; until it can, nobody gets a name.".to_owned()
            }
            (Standing::Free, None) if around.gallery.is_empty() => {
                "Nobody is enrolled, so there is nobody whom it could be.".to_owned()
            }
            (Standing::Free, None) => self.nameless(),
        }
    }

    fn named(&self, name: &str) -> String {
        let state = &self.voice.state;
        match (state.distance, state.runner_up) {
            (Some(best), Some(next)) => {
                format!("This is {name}: distance {}, and the next person is at {}.", distance(best), distance(next))
            }
            (Some(best), None) => format!("This is {name}: distance {}.", distance(best)),
            (None, _) => format!("This is {name}, whose name was brought along."),
        }
    }

    fn nameless(&self) -> String {
        let Self { voice, around } = self;
        match voice.state.status {
            Status::Ambiguous => {
                "It sounds like the owner, and so does another voice, or somebody said who the owner is.".to_owned()
            }
            Status::Pending => format!(
                "Too little was heard for a verdict: {} of {}.",
                seconds(voice.state.evidence_seconds),
                seconds(around.rules.evidence_seconds)
            ),
            Status::User | Status::NotUser | Status::NoMatch | Status::Unknown => match self.short() {
                Short::Far(name, far) => format!(
                    "Nobody who is enrolled is near enough: {name} is nearest at {}, and a name needs less than {}.",
                    distance(far),
                    distance(around.rules.policy.threshold)
                ),
                Short::Close((first, near), (second, next)) => format!(
                    "It could be {first} ({}) or {second} ({}): a name needs {} between them.",
                    distance(near),
                    distance(next),
                    distance(around.rules.policy.margin)
                ),
                Short::Neither => "What was heard gives it no name.".to_owned(),
            },
        }
    }

    fn short(&self) -> Short<'_> {
        let mut nearest = self.voice.candidates.iter().map(|(person, far)| (self.name(person), *far));
        let Some(first) = nearest.next() else { return Short::Neither };
        let second = nearest.next();
        let runner_up = second.map_or(f64::INFINITY, |(_, far)| far);
        match (self.around.rules.policy.shortfall(first.1, runner_up), second) {
            (Some(Shortfall::Far), _) => Short::Far(first.0, first.1),
            (Some(Shortfall::Close), Some(second)) => Short::Close(first, second),
            (Some(Shortfall::Close), None) | (None, _) => Short::Neither,
        }
    }

    fn name<'a>(&'a self, person: &'a PersonId) -> &'a str {
        let print = self.around.gallery.iter().find(|print| print.person == *person);
        print.map_or(person.as_str(), |print| &*print.name)
    }

    fn heard(&self) -> Vec<String> {
        let voice = self.voice;
        let mut told = vec![match voice.clips.as_slice() {
            [] => "No speech of it was examined yet.".to_owned(),
            [one] => format!("{} of its speech were examined and are kept as evidence.", seconds(*one)),
            clips => {
                let all: Vec<String> = clips.iter().map(|clip| seconds(*clip)).collect();
                format!(
                    "{} of its speech are kept as evidence, in {} clips: {}.",
                    seconds(voice.state.evidence_seconds),
                    clips.len(),
                    all.join(", ")
                )
            }
        }];
        if voice.pending_seconds > 0.0 {
            told.push(format!("{} of fresh speech wait to be examined.", seconds(voice.pending_seconds)));
        }
        if let Some(reason) = voice.last_exit {
            told.push(format!("Its latest update that was not examined: {}", exit(reason)));
        }
        told
    }

    fn asked(&self) -> Vec<String> {
        let Self { voice, around } = self;
        let mut told = vec![format!(
            "{} of {} questions to the model are spent on this number.",
            around.rules.attempts.saturating_sub(around.attempts_left),
            around.rules.attempts
        )];
        if voice.failed > 0 {
            told.push(format!(
                "Of those asked about this voice, {} brought no voiceprint; they stay spent.",
                voice.failed
            ));
        }
        if voice.in_work {
            told.push("One is under way.".to_owned());
        }
        if voice.queued_since.is_some() {
            told.push("It waits in the queue.".to_owned());
        }
        told
    }

    fn came_out(&self) -> Vec<String> {
        let Self { voice, around } = self;
        if voice.candidates.is_empty() {
            return vec!["Nothing was compared yet.".to_owned()];
        }
        let nearest: Vec<String> = voice
            .candidates
            .iter()
            .take(CANDIDATES_TOLD)
            .map(|(person, far)| format!("{} {}", self.name(person), distance(*far)))
            .collect();
        vec![
            format!("Distances to the nearest of {} people: {}.", around.gallery.iter().count(), nearest.join(", ")),
            format!(
                "A name needs less than {}, and the next person at least {} farther.",
                distance(around.rules.policy.threshold),
                distance(around.rules.policy.margin)
            ),
        ]
    }

    /// Whether anything is open: a voice with a name, or about which people decided, lacks nothing.
    fn is_open(&self) -> bool {
        self.voice.state.identity.is_none() && self.voice.ruled == Standing::Free
    }

    fn missing(&self) -> Vec<String> {
        let Self { voice, around } = self;
        let mut told = Vec::new();
        if !self.is_open() {
            return told;
        }
        if around.gallery.is_empty() {
            told.push("An enrolled person.".to_owned());
        }
        if !voice.is_authority_read {
            told.push("What people decided about this conversation.".to_owned());
        }
        let short = around.rules.evidence_seconds - voice.state.evidence_seconds;
        if voice.state.status == Status::Pending && short > 0.0 {
            told.push(format!("{} of examined speech.", seconds(short)));
        }
        match self.short() {
            Short::Far(..) => told.push(format!("A distance below {}.", distance(around.rules.policy.threshold))),
            Short::Close(..) => told.push(format!("{} between the nearest two.", distance(around.rules.policy.margin))),
            Short::Neither => {}
        }
        if voice.state.status == Status::Ambiguous {
            told.push(format!(
                "{} between this voice and the other that sounds like the owner.",
                distance(around.rules.policy.margin)
            ));
        }
        told.extend(self.missing_for_a_question());
        told
    }

    fn missing_for_a_question(&self) -> Vec<String> {
        let Self { voice, around } = self;
        let mut told = Vec::new();
        let fresh = voice.needed_seconds - voice.pending_seconds;
        if fresh > 0.0 && !voice.in_work {
            told.push(format!("{} of fresh speech for the next question.", seconds(fresh)));
        }
        if around.attempts_left == 0 {
            told.push(format!("A question: all {} of this number are spent.", around.rules.attempts));
        }
        if around.tokens < 1.0 {
            let wait = seconds(around.next_token.as_secs_f64());
            told.push(format!("A token of the recording: the next one is there in {wait}."));
        }
        if !around.is_engine_ready {
            told.push("A worker that can run the model: none is up.".to_owned());
        }
        told
    }

    fn would_change(&self) -> Vec<String> {
        let Self { voice, around } = self;
        if !self.is_open() {
            return vec!["A correction: what somebody says holds at once, and costs no question.".to_owned()];
        }
        let mut told = Vec::new();
        let goes_on = voice.in_work || voice.queued_since.is_some();
        if around.gallery.is_empty() {
            told.push("Enrolling somebody: running conversations hear of it at once.".to_owned());
        } else if around.attempts_left == 0 && !goes_on {
            if let Some(speech) = around.rules.renewal_seconds {
                told.push(format!("{} of fresh speech: the number then has all its questions again.", seconds(speech)));
            }
            told.push("The next conversation: after a rollover the number has all its questions again.".to_owned());
        } else {
            told.push("More speech of this voice.".to_owned());
        }
        match (voice.state.status, self.short()) {
            (Status::Ambiguous, _) => told.push("A word on which of the two voices is the owner.".to_owned()),
            (_, Short::Far(..)) => {
                told.push("Enrolling who this is, or more samples of them when they are enrolled.".to_owned());
            }
            (_, Short::Close(..)) => told.push("More and cleaner samples of the two who are close.".to_owned()),
            (_, Short::Neither) => {}
        }
        told.push("A correction: what somebody says holds at once, and costs no question.".to_owned());
        told
    }
}

#[cfg(test)]
mod tests;
