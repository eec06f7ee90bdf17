//! One conversation's scheduler as an actor.
//!
//! Family: started by the registry when its first lane joins, on an arbiter chosen by its id; ends itself when its last
//! lane has left and its last query is settled. In: lanes joining and leaving, batches of offers, turns from the
//! turnstile, answers of sockets, results of queries. Out: `Reserve` and `Publish` to the lanes' sockets, clips to the
//! engine, accounts to telemetry.
//!
//! It owns a [`matcher_core::Scheduler`], the addresses of its lanes and the leases of its open queries. It decides
//! nothing: a handler translates its message, lets the core decide, and performs the answer. When it panics, the leases
//! settle on drop and its sockets are told, who then join a fresh one.

mod arrivals;
mod authority;
mod inventory;
mod messages;
mod perform;
mod query;
mod record;
mod snapshot;
mod traced;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use actix::prelude::*;
use gpu_worker::turns::Wish;
use gpu_worker::turnstile::{Key as TurnKey, Turn};
use matcher_core::budget::Outcome;
use matcher_core::{Event, Generation, LaneId, Monotonic, RequestId, Scheduler, Speaker};
use telemetry::{Share, Watch};

use super::continuity::Holder;
use super::journal::Recorder;
use super::registry::{ConversationKey, Lineage};
use super::service::Service;
use super::socket::{ConversationLost, ForwardRelease, Socket};

pub(super) use arrivals::{Departure, Join, Leave, Left};
use inventory::Inventory;
pub(super) use messages::{Answer, Answered, Exits, Explain, Finish, Granted, NoAnswer, Offers, Released, Voices};
pub(crate) use messages::{Correct, ReadAgain, Streams, Whose};
pub use messages::{Glance, Snapshot, Tell};
use query::{Asked, Judging, OpenQuery, Returned};
use snapshot::SegmentSnapshot;
pub use snapshot::{ConversationSnapshot, LaneSnapshot, Seen, VoiceExplained};
use traced::Arrivals;

/// Messages that may wait: batches of several lanes and the answers to their queries. Beyond it a batch is refused with
/// an error event, and its client sends it again.
const MAILBOX: usize = 512;

/// How soon a conversation asks for turns again while no worker can extract. No token is spent on an engine that is down.
const RETRY_ENGINE: Duration = Duration::from_secs(1);

/// How often a conversation tells the history that it goes on, so that retention leaves it alone.
const GOES_ON_EVERY: Duration = Duration::from_secs(3600);

/// One lane as the actor knows it; everything about its voices is the core's.
struct LaneLink {
    socket: Addr<Socket>,
    recording: String,
    lineage: Arc<Lineage>,
    people: Option<Arc<BTreeSet<String>>>,
    exits: Exits,
    /// The right to keep the owner for the device's next socket.
    holder: Option<Arc<Holder>>,
    /// When the latest segment of each number arrived. Bounded like the voices: only admitted numbers are kept.
    received: BTreeMap<Speaker, Monotonic>,
    /// When the first segment of each number arrived that no query was spent on yet. Bounded likewise.
    unexamined: BTreeMap<Speaker, Monotonic>,
    /// How its latest messages came here, for traces; empty while there are none.
    arrivals: Arrivals,
    evicted: u64,
    hertz: f64,
    /// Where the socket's audio begins in the recording, seconds.
    offset: f64,
    /// The end of its latest segment in the recording, seconds.
    reached: f64,
    /// Its newest segments, for people to look at. At most [`snapshot::SEGMENTS_SHOWN`].
    shown: VecDeque<SegmentSnapshot>,
}

/// A lane that rolled over while queries of it were in work here: whom to tell that a number is free, and which are not.
struct Departed {
    socket: Addr<Socket>,
    numbers: BTreeSet<Speaker>,
}

/// See the module's text.
pub struct Conversation {
    service: Arc<Service>,
    key: ConversationKey,
    scheduler: Scheduler,
    recorder: Recorder,
    lanes: BTreeMap<LaneId, LaneLink>,
    /// Bounded by the places of all lanes.
    open: BTreeMap<RequestId, OpenQuery>,
    /// Bounded like the open queries.
    returned: BTreeMap<RequestId, Returned>,
    /// Dispatched slots whose socket has not answered yet.
    asked: BTreeMap<RequestId, Asked>,
    /// Which voice each recent segment belongs to, also of lanes that left.
    segments: Inventory,
    /// Bounded like the open queries: a lane goes with its last number.
    departed: BTreeMap<LaneId, Departed>,
    /// The query whose result is being judged; empty in every other step.
    judging: Judging,
    finishing: BTreeMap<LaneId, tokio::sync::oneshot::Sender<()>>,
    turn_key: Option<TurnKey>,
    /// Turns on their way here: they are not wanted again.
    granted: Arc<AtomicUsize>,
    /// Armed while the engine is down or a socket could not be asked.
    retry: Option<SpawnHandle>,
    timer: Option<(Monotonic, SpawnHandle)>,
    /// What people who watch saw last, and when.
    glanced: Option<(Monotonic, Arc<Seen>)>,
    queued: Share,
    capacity: Share,
    oldest: Watch,
    _one: Share,
    has_ended: bool,
}

impl Conversation {
    pub(super) fn new(service: Arc<Service>, key: ConversationKey) -> Self {
        let levels = service.telemetry.metrics().levels().clone();
        Self {
            scheduler: Scheduler::new(service.settings.limits.clone(), service.settings.policy),
            recorder: service.journal.recorder(),
            key,
            lanes: BTreeMap::new(),
            open: BTreeMap::new(),
            returned: BTreeMap::new(),
            asked: BTreeMap::new(),
            segments: Inventory::default(),
            departed: BTreeMap::new(),
            judging: Judging::default(),
            finishing: BTreeMap::new(),
            turn_key: None,
            granted: Arc::default(),
            retry: None,
            timer: None,
            glanced: None,
            queued: levels.queue_slots.share(),
            capacity: levels.queue_capacity.share(),
            oldest: levels.queue_ages.watch(),
            _one: levels.conversations.one(),
            has_ended: false,
            service,
        }
    }

    fn now(&self) -> Monotonic {
        self.service.clock.now()
    }

    /// Lets the core decide, and performs what comes out.
    fn step(&mut self, ctx: &mut Context<Self>, decide: impl FnOnce(&mut Scheduler, Monotonic, &mut Vec<Event>)) {
        self.step_at(self.now(), ctx, decide);
    }

    /// The same, for a handler that has read the clock.
    fn step_at(
        &mut self,
        now: Monotonic,
        ctx: &mut Context<Self>,
        decide: impl FnOnce(&mut Scheduler, Monotonic, &mut Vec<Event>),
    ) {
        let mut events = Vec::new();
        let known = self.scheduler.receipt().generation();
        decide(&mut self.scheduler, now, &mut events);
        if self.scheduler.receipt().generation() != known {
            self.recorder.changed(now);
        }
        self.record(&events);
        self.perform(events, ctx);
        self.settle_down(ctx);
    }

    /// After every step: ask for turns, arm the one timer, tell the gauges, end when nothing is left.
    fn settle_down(&mut self, ctx: &mut Context<Self>) {
        self.ask_for_turns(ctx);
        self.keep_owners();
        self.hear_grounds(ctx);
        self.arm(ctx);
        self.report();
        self.finish_drained();
        if self.lanes.is_empty() && self.scheduler.is_idle() && !self.has_ended {
            self.has_ended = true;
            self.service.registry.conversation_ended(&self.key, &ctx.address());
            ctx.stop();
        }
    }

    fn ask_for_turns(&mut self, ctx: &mut Context<Self>) {
        let Some(key) = self.turn_key else { return };
        let granted = self.granted.load(Ordering::SeqCst);
        let wanted = self.scheduler.dispatchable().saturating_sub(granted);
        let is_down = wanted > 0 && !self.service.engine.health().is_ready();
        if is_down {
            self.retry_in(RETRY_ENGINE, ctx);
        }
        if is_down || self.retry.is_some() {
            return self.service.turnstile.want(key, Wish::NOTHING);
        }
        let firsts = self.scheduler.first_tries().saturating_sub(granted).min(wanted);
        let weight = self.service.settings.shares.weight(self.lanes.len());
        self.service.turnstile.want(key, Wish::new(firsts, wanted - firsts).weighing(weight));
    }

    /// Asks for no turn until `wait` has passed.
    fn retry_in(&mut self, wait: Duration, ctx: &mut Context<Self>) {
        if self.retry.is_none() {
            self.retry = Some(ctx.run_later(wait, |this, ctx| {
                this.retry = None;
                this.settle_down(ctx);
            }));
        }
    }

    fn arm(&mut self, ctx: &mut Context<Self>) {
        let due = self.scheduler.poll_timeout();
        if self.timer.as_ref().map(|(armed, _)| *armed) == due {
            return;
        }
        if let Some((_, handle)) = self.timer.take() {
            ctx.cancel_future(handle);
        }
        if let Some(due) = due {
            // A timer of tokio may fire a fraction early; one more millisecond makes it fire once.
            let wait = due.since(self.now()) + Duration::from_millis(1);
            let handle = ctx.run_later(wait, |this, ctx| {
                this.timer = None;
                this.step(ctx, Scheduler::handle_timeout);
            });
            self.timer = Some((due, handle));
        }
    }

    fn leave(&mut self, lane: LaneId, why: Left, ctx: &mut Context<Self>) -> matcher_core::HandOver {
        let hand_over = self.depart(lane, why, ctx);
        self.settle_down(ctx);
        hand_over
    }

    fn depart(&mut self, lane: LaneId, why: Left, ctx: &mut Context<Self>) -> matcher_core::HandOver {
        let mut events = Vec::new();
        self.record_all(lane);
        let mut hand_over = self.scheduler.handle_left(lane, &mut events);
        self.recorder.left(lane, self.now());
        self.finishing.remove(&lane);
        if why == Left::Gone {
            let open = self.open.iter().filter(|(_, query)| query.lane == lane).map(|(request, _)| *request);
            let asked = self.asked.iter().filter(|(_, asked)| asked.lane == lane).map(|(request, _)| *request);
            for request in open.chain(asked).collect::<Vec<_>>() {
                self.give_up(request, Outcome::Cancelled, ctx);
                self.scheduler.handle_failed(request, &mut events);
            }
            let memory = std::mem::take(&mut hand_over).memory;
            if let Some(link) = self.lanes.get(&lane) {
                link.lineage.remember(&self.key, memory);
            }
        }
        self.perform(events, ctx);
        let numbers = self.numbers_of(lane);
        if let Some(link) = self.lanes.remove(&lane) {
            link.lineage.reach(link.reached);
            if !numbers.is_empty() {
                self.departed.insert(lane, Departed { socket: link.socket, numbers });
            }
        }
        hand_over
    }

    /// Numbers of a lane with a query in work here.
    fn numbers_of(&self, lane: LaneId) -> BTreeSet<Speaker> {
        let open = self.open.values().filter(|query| query.lane == lane).map(|query| query.speaker);
        let asked = self.asked.values().filter(|asked| asked.lane == lane).map(|asked| asked.speaker);
        let returned = self.returned.values().filter(|returned| returned.lane == lane).map(|returned| returned.speaker);
        open.chain(asked).chain(returned).collect()
    }

    /// Whether a message of this lane and generation still speaks for it.
    fn is_current(&self, lane: LaneId, generation: Generation) -> bool {
        self.scheduler.generation(lane) == Some(generation)
    }
}

impl Actor for Conversation {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(MAILBOX);
        let (address, granted) = (ctx.address(), self.granted.clone());
        #[expect(
            clippy::disallowed_methods,
            reason = "a lost turn would leak a place; at most Turnstile::capacity wait"
        )]
        let wake = move |turn: Turn| {
            granted.fetch_add(1, Ordering::SeqCst);
            address.do_send(Granted(turn));
        };
        self.turn_key = Some(self.service.turnstile.subscribe(Arc::new(wake)));
        let mut people = self.service.people.clone();
        people.mark_unchanged();
        self.follow_people(people, ctx);
        self.service.history.opened(&self.key.conversation);
        ctx.run_interval(GOES_ON_EVERY, |this, _| this.service.history.opened(&this.key.conversation));
        self.read_receipt(ctx);
    }

    fn stopped(&mut self, _: &mut Self::Context) {
        if let Some(key) = self.turn_key.take() {
            self.service.turnstile.unsubscribe(key);
        }
    }
}

/// After a panic the actor is dropped with its leases, which settle; here its sockets are told to join a fresh one, and
/// those that had rolled over are told that their numbers are free.
impl Drop for Conversation {
    fn drop(&mut self) {
        if self.has_ended || !std::thread::panicking() {
            return;
        }
        self.service.telemetry.metrics().violated(telemetry::Violation::SchedulerLost);
        tracing::error!(conversation = %self.key.conversation, "a conversation's scheduler was lost");
        let may_rejoin = self.service.registry.conversation_lost(&self.key, self.now());
        for link in self.lanes.values() {
            #[expect(
                clippy::disallowed_methods,
                reason = "a lost message would leave the socket without a scheduler; one a loss"
            )]
            link.socket.do_send(ConversationLost { key: self.key.clone(), may_rejoin });
        }
        for Departed { socket, numbers } in self.departed.values() {
            numbers.iter().for_each(|speaker| tell_free(socket, *speaker));
        }
    }
}

/// Tells a socket whose lane has left that a number is free; it knows where the lane is now.
fn tell_free(socket: &Addr<Socket>, speaker: Speaker) {
    #[expect(clippy::disallowed_methods, reason = "a lost message would leak a lock; one an open query")]
    socket.do_send(ForwardRelease { speaker });
}
