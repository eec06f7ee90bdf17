//! One extraction thread: it builds its extractor, takes queries until it is told to end, and answers each of them.
//!
//! It is started by the supervisor and reports to [`Shared`]. A panic, an error of the extractor or a bad vector ends
//! it: whatever state it had is not trusted again. A clip that cannot be encoded is the clip's fault, and a machine that
//! was asked in vain is that machine's; neither ends anything.

use std::any::Any;
use std::num::NonZeroU32;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Instant;

use matcher_core::Embedding;

use crate::engine::{Clip, Failure};
use crate::extractor::{ExtractError, Extractor};
use crate::reply::{Answer, Query};
use crate::roster::WorkerId;
use crate::shared::{Event, Shared};

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
    let built = catch_unwind(AssertUnwindSafe(|| shared.factory.build()));
    let mut extractor = match built {
        Ok(Ok(extractor)) => extractor,
        Ok(Err(error)) => return shared.failed(worker, &error.to_string()),
        Err(panic) => return shared.failed(worker, &format!("building an extractor panicked: {}", text_of(&*panic))),
    };
    if !shared.built(worker, extractor.stopper()) {
        return;
    }
    if probe {
        let tried = attempt(&mut *extractor, &probe_clip(), Instant::now() + shared.settings.run_max, shared.dimension);
        match tried.fault {
            Some(fault) => return shared.failed(worker, &fault),
            None if !shared.probed(worker) => return,
            None => tracing::info!(worker = worker.slot, "a probe extracted: the pool goes on"),
        }
    }
    while let Some(query) = shared.take(worker) {
        if !run(shared, worker, &mut *extractor, &query) {
            return;
        }
    }
}

/// Runs one query and answers it. False when the thread is to end.
fn run(shared: &Shared, worker: WorkerId, extractor: &mut dyn Extractor, query: &Query) -> bool {
    let tried = attempt(extractor, &query.clip, query.by, shared.dimension);
    // The pool is told first, so that a caller who has heard finds the health as it is.
    let goes_on = match &tried.fault {
        Some(fault) => {
            shared.failed(worker, fault);
            false
        }
        None => shared.run_ended(worker),
    };
    query.reply.settle(tried.answer);
    // What a panic carried may panic when it is dropped; by now everybody has been told.
    drop(tried.panic);
    goes_on
}

struct Tried {
    answer: Answer,
    /// What is wrong with the extractor, when it may not be used again.
    fault: Option<String>,
    panic: Option<Box<dyn Any + Send>>,
}

fn attempt(extractor: &mut dyn Extractor, clip: &Clip, by: Instant, dimension: usize) -> Tried {
    let extracted = catch_unwind(AssertUnwindSafe(|| extractor.extract_by(clip, by)));
    let (answer, fault, panic) = match extracted {
        Ok(Ok(vector)) => match Embedding::of_size(&vector, dimension) {
            Ok(embedding) => (Ok(embedding), None, None),
            Err(bad) => (Err(Failure::BadVector(bad)), Some(format!("the model returned a bad vector: {bad}")), None),
        },
        Ok(Err(error @ (ExtractError::Encoding(_) | ExtractError::Remote(_)))) => (Err(error.into()), None, None),
        Ok(Err(error @ ExtractError::Session(_))) => {
            let fault = error.to_string();
            (Err(error.into()), Some(fault), None)
        }
        Err(panic) => {
            let fault = format!("an extraction panicked: {}", text_of(&*panic));
            (Err(Failure::WorkerPanicked), Some(fault), Some(panic))
        }
    };
    Tried { answer, fault, panic }
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
