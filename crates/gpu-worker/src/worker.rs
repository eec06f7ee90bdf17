//! One extraction thread: it builds its extractor, takes queries until it is told to end, and answers each of them.
//!
//! It is started by the supervisor and reports to [`Shared`]. A panic, an error of the extractor or a bad vector ends
//! it: whatever state it had is not trusted again. A clip that cannot be encoded is the clip's fault, and a machine that
//! was asked in vain is that machine's; neither ends anything. When a run of several clips fails as a whole, its queries
//! go back to the queue and each is run alone, so that one of them spoils no other.

use std::any::Any;
use std::num::NonZeroU32;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Instant;

use matcher_core::Embedding;

use crate::course::Course;
use crate::engine::{Clip, Failure};
use crate::extractor::{Answers, ExtractError, Extractor};
use crate::reply::{Answer, Query};
use crate::roster::WorkerId;
use crate::shared::{Event, Shared};
use crate::state::Handles;

/// Starts a thread. A probe must extract something before it counts as up.
pub(crate) fn start(shared: &Arc<Shared>, worker: WorkerId, probe: bool) -> std::io::Result<JoinHandle<()>> {
    let shared = Arc::clone(shared);
    let name = format!("extract-{}", worker.slot);
    std::thread::Builder::new().name(name).spawn(move || {
        // Made first, so that it goes last: nothing of the thread's own is left when the supervisor hears of its end.
        let _last_words = LastWords { shared: Arc::clone(&shared), worker };
        live(&shared, worker, probe);
    })
}

/// Reports the end of the thread, also when it unwinds.
struct LastWords {
    shared: Arc<Shared>,
    worker: WorkerId,
}

impl Drop for LastWords {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.shared.failed(self.worker, "a worker's thread panicked outside a run");
        }
        // Without a supervisor nobody needs to hear it.
        drop(self.shared.events.send(Event::Ended(self.worker)));
    }
}

fn live(shared: &Shared, worker: WorkerId, probe: bool) {
    let built = catch_unwind(AssertUnwindSafe(|| shared.factory.build_for(worker.slot)));
    let mut extractor = match built {
        Ok(Ok(extractor)) => extractor,
        Ok(Err(error)) => return shared.failed(worker, &error.to_string()),
        Err(panic) => return shared.failed(worker, &format!("building an extractor panicked: {}", text_of(&*panic))),
    };
    let handles = Handles { stop: extractor.stopper(), interrupt: extractor.interrupter() };
    if !shared.built(worker, handles) {
        return;
    }
    if probe {
        let by = Instant::now() + shared.settings.run_max;
        let tried = attempt(&mut *extractor, (&[&probe_clip()], None), by, shared.dimension);
        match tried.fault {
            Some(fault) => return shared.failed(worker, &fault),
            None if !shared.probed(worker) => return,
            None => tracing::info!(worker = worker.slot, "a probe extracted: the pool goes on"),
        }
    }
    while let Some(queries) = shared.take(worker) {
        if !run(shared, worker, &mut *extractor, queries) {
            return;
        }
    }
}

/// Runs queries together and answers each of them. False when the thread is to end.
fn run(shared: &Shared, worker: WorkerId, extractor: &mut dyn Extractor, queries: Vec<Query>) -> bool {
    // Until the last of them is no longer wanted.
    let by = queries.iter().map(|query| query.by).max().unwrap_or_else(Instant::now);
    let clips: Vec<&Clip> = queries.iter().map(|query| &query.clip).collect();
    let course = queries.first().and_then(|query| query.reply.course());
    let Tried { ended, fault } = attempt(extractor, (&clips, course), by, shared.dimension);
    queries.iter().filter_map(|query| query.reply.course()).for_each(Course::note_over);
    if matches!(ended, Ended::Failed(_)) && shared.was_stopped(worker) {
        // It failed because it was told to, and nobody hears the answer.
        let goes_on = shared.run_ended(worker);
        extractor.resume();
        queries.iter().for_each(|query| query.reply.settle(Err(Failure::Cancelled)));
        return goes_on;
    }
    // The pool is told first, so that a caller who has heard finds the health as it is.
    let goes_on = match fault {
        Some(fault) => {
            shared.failed(worker, &fault);
            false
        }
        None => {
            let goes_on = shared.run_ended(worker);
            // From here on nobody interrupts this run any more.
            extractor.resume();
            goes_on
        }
    };
    match ended {
        Ended::Each(answers) => {
            queries.iter().zip(answers).for_each(|(query, answer)| query.reply.settle(answer));
        }
        Ended::Failed(failure) => blame(shared, queries, &failure),
        Ended::Panicked(panic) => {
            blame(shared, queries, &Failure::WorkerPanicked);
            // What a panic carried may panic when it is dropped; by now everybody has been told.
            drop(panic);
        }
    }
    goes_on
}

/// A run failed as a whole. One query is to blame for it; of several, nobody knows which, and each is run alone.
fn blame(shared: &Shared, queries: Vec<Query>, failure: &Failure) {
    match &queries[..] {
        [query] => query.reply.settle(Err(failure.clone())),
        _ => shared.take_back(queries, failure),
    }
}

struct Tried {
    ended: Ended,
    /// What is wrong with the extractor, when it may not be used again.
    fault: Option<String>,
}

enum Ended {
    /// Every query has its answer.
    Each(Vec<Answer>),
    /// The run failed as a whole.
    Failed(Failure),
    Panicked(Box<dyn Any + Send>),
}

/// The course is the only clip's; a run of several asks no other machine.
fn attempt(
    extractor: &mut dyn Extractor,
    (clips, course): (&[&Clip], Option<&Course>),
    by: Instant,
    dimension: usize,
) -> Tried {
    let extracted = catch_unwind(AssertUnwindSafe(|| match clips {
        [clip] => match extract(extractor, (clip, course), by) {
            Err(error @ ExtractError::Session(_)) => Err(error),
            answer => Ok(vec![answer]),
        },
        clips => extractor.extract_many(clips, by),
    }));
    match extracted {
        Ok(Ok(answers)) if answers.len() == clips.len() => each(answers, dimension),
        Ok(Ok(answers)) => {
            let reason = format!("the extractor gave {} answers for {} clips", answers.len(), clips.len());
            Tried { ended: Ended::Failed(Failure::Extraction(reason.clone())), fault: Some(reason) }
        }
        Ok(Err(error)) => Tried { fault: Some(error.to_string()), ended: Ended::Failed(error.into()) },
        Err(panic) => {
            let fault = format!("an extraction panicked: {}", text_of(&*panic));
            Tried { ended: Ended::Panicked(panic), fault: Some(fault) }
        }
    }
}

fn extract(
    extractor: &mut dyn Extractor,
    (clip, course): (&Clip, Option<&Course>),
    by: Instant,
) -> Result<Vec<f32>, ExtractError> {
    match course {
        Some(course) => extractor.extract_noted(clip, by, course),
        None => extractor.extract_by(clip, by),
    }
}

/// Checks each vector. A bad one is its own query's misfortune, but whoever gave it is not trusted again.
fn each(answers: Answers, dimension: usize) -> Tried {
    let mut fault = None;
    let answers = answers.into_iter().map(|answer| match answer {
        Ok(vector) => Embedding::of_size(&vector, dimension).map_err(|bad| {
            fault.get_or_insert_with(|| format!("the model returned a bad vector: {bad}"));
            Failure::BadVector(bad)
        }),
        Err(error) => {
            if let ExtractError::Session(reason) = &error {
                fault.get_or_insert_with(|| reason.clone());
            }
            Err(error.into())
        }
    });
    let answers = answers.collect();
    Tried { ended: Ended::Each(answers), fault }
}

fn text_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}

/// One second of noise, always the same: something real for a probe to extract.
pub(crate) fn probe_clip() -> Clip {
    let mut state = 1_u32;
    let noise = |_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        i16::try_from(state >> 20).unwrap_or(0) - 2_048
    };
    let rate = NonZeroU32::new(16_000).expect("sixteen thousand is not zero");
    Clip { pcm: (0..16_000).map(noise).collect(), sample_rate: rate }
}
