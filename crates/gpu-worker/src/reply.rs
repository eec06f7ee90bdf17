//! The answer to one query: given exactly once, by whoever comes first, and never forgotten.
//!
//! The worker and the supervisor both hold a [`Reply`]; the supervisor answers for a worker that hangs, and a reply
//! that dies unanswered says that its worker was lost.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use matcher_core::Embedding;
use tokio::sync::oneshot;

use crate::course::Course;
use crate::engine::{Clip, Failure};

pub(crate) type Answer = Result<Embedding, Failure>;

/// One query as it waits.
pub(crate) struct Job {
    pub(crate) clip: Clip,
    /// When it was queued, on the pool's clock.
    pub(crate) since: Duration,
    /// When the caller's patience ends, on the pool's clock.
    pub(crate) by: Duration,
    /// Its shape, when it may share a run with clips of the same.
    pub(crate) shape: Option<usize>,
    pub(crate) reply: Arc<Reply>,
}

/// One query as a worker gets it.
pub(crate) struct Query {
    pub(crate) clip: Clip,
    /// When nobody wants the answer any more: the caller's patience ends, or the run's deadline comes.
    pub(crate) by: Instant,
    /// When the caller's patience ends, on the pool's clock.
    pub(crate) patience: Duration,
    pub(crate) reply: Arc<Reply>,
}

pub(crate) struct Reply {
    sender: Mutex<Option<oneshot::Sender<Answer>>>,
    /// Where the query's course is noted, when its caller wants to know it.
    course: Option<Arc<Course>>,
}

impl Reply {
    pub(crate) fn new(course: Option<Arc<Course>>) -> (Self, oneshot::Receiver<Answer>) {
        let (sender, receiver) = oneshot::channel();
        (Self { sender: Mutex::new(Some(sender)), course }, receiver)
    }

    pub(crate) fn course(&self) -> Option<&Course> {
        self.course.as_deref()
    }

    /// Answers, unless that was done before. Must not be called under a lock: it wakes the caller.
    pub(crate) fn settle(&self, answer: Answer) {
        let sender = self.sender.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(sender) = sender {
            // A caller who has left does not want to know.
            drop(sender.send(answer));
        }
    }

    /// Whether somebody still waits for the answer.
    pub(crate) fn is_wanted(&self) -> bool {
        let sender = self.sender.lock().unwrap_or_else(PoisonError::into_inner);
        sender.as_ref().is_some_and(|sender| !sender.is_closed())
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        self.settle(Err(Failure::WorkerLost));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_answer_counts() {
        let (reply, mut receiver) = Reply::new(None);
        reply.settle(Err(Failure::DeadlinePassed));
        reply.settle(Err(Failure::WorkerPanicked));
        assert_eq!(receiver.try_recv(), Ok(Err(Failure::DeadlinePassed)));
    }

    #[test]
    fn a_reply_that_dies_unanswered_says_that_the_worker_was_lost() {
        let (reply, mut receiver) = Reply::new(None);
        drop(reply);
        assert_eq!(receiver.try_recv(), Ok(Err(Failure::WorkerLost)));
    }

    #[test]
    fn nobody_waits_once_the_ticket_is_dropped_or_answered() {
        let (reply, receiver) = Reply::new(None);
        assert!(reply.is_wanted());
        drop(receiver);
        assert!(!reply.is_wanted());
        let (reply, _receiver) = Reply::new(None);
        reply.settle(Err(Failure::Unavailable));
        assert!(!reply.is_wanted());
    }
}
