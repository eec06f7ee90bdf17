//! A caller's side of a query: it brings the answer, and tells the pool when the caller leaves before that.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::sync::oneshot;

use crate::engine::Failure;
use crate::reply::Answer;
use crate::shared::Shared;

/// Resolves to the answer. Dropped before it, a query that waits never runs, and a run that nobody else waits for is
/// stopped where the extractor knows how; where it does not, its result is thrown away.
pub(crate) struct Asked {
    receiver: oneshot::Receiver<Answer>,
    shared: Arc<Shared>,
    answered: bool,
}

impl Asked {
    pub(crate) fn new(receiver: oneshot::Receiver<Answer>, shared: Arc<Shared>) -> Self {
        Self { receiver, shared, answered: false }
    }
}

impl Future for Asked {
    type Output = Answer;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Answer> {
        let answer = Pin::new(&mut self.receiver).poll(context);
        answer.map(|answer| {
            self.answered = true;
            answer.unwrap_or(Err(Failure::WorkerLost))
        })
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        if !self.answered {
            self.receiver.close();
            self.shared.caller_left();
        }
    }
}
