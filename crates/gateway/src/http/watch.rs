//! `/v1/watch`: what goes on, as Server-Sent Events: the list of conversations and, when the query names one, all of it.
//!
//! Everything is sent when it changed, and at most as often as somebody can read it. A watcher costs the server what it
//! looks at: one conversation's snapshot twice a second, and one read of the list in two.

use std::sync::Arc;
use std::time::Duration;

use actix_web::http::{StatusCode, header};
use actix_web::{HttpResponse, web};
use bytes::Bytes;
use futures_util::stream;
use serde::{Deserialize, Serialize};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval};

use super::Api;
use super::conversations::{List, Live, key, listed};
use super::problem::Problem;
use crate::live::{Glance, Seen, Service};

/// Watchers at once. Each may ask for the largest conversation; beyond it one is told to come back.
pub(super) const WATCHERS_MAX: usize = 64;

/// Conversations in the list: the newest, which is what fits on a page.
const LIST_MAX: usize = 100;

/// How often a conversation is looked at: a clock that moves twice a second moves.
const TICK: Duration = Duration::from_millis(500);

/// Ticks between two looks at the list, which is read from the disk.
const LIST_EVERY: u32 = 4;

/// Silence after which a comment is sent, so that nothing between takes the connection for dead.
const COMMENT_AFTER: Duration = Duration::from_secs(15);

/// How long a client may leave what it was sent unread. Beyond it the stream ends, and its place is another's.
const UNREAD_MAX: Duration = Duration::from_secs(30);

#[derive(Deserialize)]
pub(super) struct Asked {
    conversation_id: Option<String>,
}

#[derive(Serialize)]
struct Ended<'a> {
    conversation_id: &'a str,
}

/// The list, and one conversation, as they change.
pub(super) async fn watch(
    asked: web::Query<Asked>,
    service: web::Data<Service>,
    api: web::Data<Api>,
) -> Result<HttpResponse, Problem> {
    let place = Arc::clone(&api.watchers).try_acquire_owned().map_err(|_| full())?;
    let watcher = Watcher::new(service.into_inner(), asked.into_inner().conversation_id, place);
    let (sender, receiver) = mpsc::channel(1);
    actix_web::rt::spawn(watcher.run(sender));
    let events = stream::unfold(receiver, |mut receiver| async move {
        let events = receiver.recv().await?;
        Some((Ok::<_, std::convert::Infallible>(events), receiver))
    });
    Ok(HttpResponse::Ok()
        .content_type("text/event-stream")
        .insert_header((header::CACHE_CONTROL, "no-store"))
        .streaming(events))
}

fn full() -> Problem {
    let detail = format!("this server has its most watchers ({WATCHERS_MAX}); close a page or try again later");
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "capacity", detail)
}

/// Places for watchers.
pub(super) fn places() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(WATCHERS_MAX))
}

/// One client of the stream.
struct Watcher {
    service: Arc<Service>,
    conversation: Option<String>,
    clock: Interval,
    ticks: u32,
    list: Option<String>,
    shown: Option<Arc<Seen>>,
    has_ended: bool,
    quiet_since: Instant,
    _place: OwnedSemaphorePermit,
}

impl Watcher {
    /// Tells what happens until the client leaves, stops reading, or the service stops.
    async fn run(mut self, client: mpsc::Sender<Bytes>) {
        loop {
            let events = tokio::select! {
                events = self.next() => events,
                () = client.closed() => return,
            };
            let Some(events) = events else { return };
            if client.send_timeout(events, UNREAD_MAX).await.is_err() {
                return;
            }
        }
    }

    fn new(service: Arc<Service>, conversation: Option<String>, place: OwnedSemaphorePermit) -> Self {
        let mut clock = interval(TICK);
        // A client that does not read is behind, and wants the newest alone.
        clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            service,
            conversation,
            clock,
            ticks: 0,
            list: None,
            shown: None,
            has_ended: false,
            quiet_since: Instant::now(),
            _place: place,
        }
    }

    /// The next events, when there are any; `None` when the service stops.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            self.clock.tick().await;
            if self.service.registry.is_draining() {
                return None;
            }
            let mut events = String::new();
            if self.ticks.is_multiple_of(LIST_EVERY) {
                self.look_at_list(&mut events).await;
            }
            self.ticks = self.ticks.wrapping_add(1);
            self.look_at_conversation(&mut events).await;
            if events.is_empty() && self.quiet_since.elapsed() >= COMMENT_AFTER {
                events.push_str(": still here\n\n");
            }
            if !events.is_empty() {
                self.quiet_since = Instant::now();
                return Some(Bytes::from(events));
            }
        }
    }

    async fn look_at_list(&mut self, events: &mut String) {
        // A store that fails now is asked again, and the page keeps what it has.
        let Ok(conversations) = listed(&self.service, LIST_MAX).await else { return };
        let list = json(&List { conversations });
        if self.list.as_ref() != Some(&list) {
            write(events, "conversations", &list);
            self.list = Some(list);
        }
    }

    async fn look_at_conversation(&mut self, events: &mut String) {
        let Some(id) = &self.conversation else { return };
        let snapshot = match self.service.registry.find(&key(id)) {
            Some(conversation) => conversation.send(Glance).await.ok(),
            None => None,
        };
        let Some(seen) = snapshot else {
            if !self.has_ended {
                write(events, "ended", &json(&Ended { conversation_id: id }));
            }
            self.has_ended = true;
            return;
        };
        self.has_ended = false;
        let is_old = self.shown.as_ref().is_some_and(|shown| shown.snapshot() == seen.snapshot());
        if !is_old {
            write(events, "conversation", seen.json(|conversation| json(&Live { live: true, conversation })));
            self.shown = Some(seen);
        }
    }
}

fn json(event: &impl Serialize) -> String {
    serde_json::to_string(event).expect("an event has only text, numbers and lists")
}

/// JSON has no raw line breaks, so one `data` line holds all of it.
fn write(events: &mut String, name: &str, data: &str) {
    for part in ["event: ", name, "\ndata: ", data, "\n\n"] {
        events.push_str(part);
    }
}
