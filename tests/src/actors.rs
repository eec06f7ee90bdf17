//! The live actors on virtual time: no socket, no thread, no model, and hours in milliseconds.
//!
//! [`run`] gives a test a paused clock on one thread, [`World`] the service with a scripted engine, and [`Client`] a
//! socket actor without a connection. A voice is a *tone*: audio whose samples all have one value, to which the script
//! gives an answer.

mod engine;
mod store;

use std::future::Future;
use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use actix::{Actor, Addr};
use bytes::Bytes;
use gateway::capsule::Sealer;
use gateway::config::Switch;
use gateway::history::History;
use gateway::live::corrections::{Corrections, Wish};
use gateway::live::protocol::Bounds;
use gateway::live::{
    Arbiters, Capsules, Clock, ConversationKey, ConversationSnapshot, Frame, Ids, Journal, LaneSnapshot, Outbound,
    Outflow, Registry, Service, Settings, SharePer, Snapshot, Socket, SocketLimits, outlet,
};
use gpu_worker::Engine as _;
use gpu_worker::turnstile::Turnstile;
use matcher_core::policy::{Policy, Suggestions};
use matcher_core::receipt::Correction;
use matcher_core::{Embedding, Gallery, Limits, PersonId, Print, Role, budget};
use serde_json::{Value, json};
use telemetry::{Otlp, Telemetry};
use tokio::sync::watch;

use engine::ScriptedEngine;
pub use engine::{Answer, Query};
pub use store::TestStore;

/// Samples per second of every test's audio.
pub const RATE: u32 = 16_000;

/// Runs a test on one thread with a paused clock.
pub fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = || {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .expect("a runtime on this thread")
    };
    actix::System::with_tokio_rt(runtime).block_on(test)
}

/// A vector at this cosine distance from the owner's print (1, 0).
pub fn at_distance(distance: f64) -> Vec<f32> {
    let cosine = 1.0 - distance;
    vec![cosine as f32, (1.0 - cosine * cosine).sqrt() as f32]
}

/// The service without a network.
pub struct World {
    /// What the actors share.
    pub service: Arc<Service>,
    /// The real store behind it.
    pub store: Arc<TestStore>,
    engine: Arc<ScriptedEngine>,
    people: watch::Sender<Gallery>,
}

/// The distances of the decision tests.
pub fn policy() -> Policy {
    Policy {
        threshold: 0.65,
        margin: 0.10,
        near_miss_bound: 0.70,
        near_owner_bound: 0.75,
        grouping: 0.50,
        reconnect: 0.35,
        suggestions: Suggestions::Off,
        levels: [0.65, 0.75, 0.85],
    }
}

/// The owner at (1, 0), and Sarah at (0, 1) if wanted.
pub fn gallery(with_sarah: bool) -> Gallery {
    let print = |id: &str, name: &str, role, vector: &[f32]| Print {
        person: PersonId::new(id),
        name: name.into(),
        role,
        embedding: Embedding::new(vector).expect("a unit vector"),
        is_pinned: false,
    };
    let mut prints = vec![print("user", "User", Role::Owner, &[1.0, 0.0])];
    if with_sarah {
        prints.push(print("p1", "Sarah", Role::Person, &[0.0, 1.0]));
    }
    Gallery::new(prints)
}

impl World {
    /// An engine that runs `turns` queries at once, for the owner alone.
    pub fn new(turns: usize) -> Self {
        Self::with(turns, |_| {})
    }

    /// As [`World::new`], with other settings.
    pub fn with(turns: usize, change: impl FnOnce(&mut Settings)) -> Self {
        // More workers than turns, so that one that hangs is missed by nobody: the real pool replaces it.
        Self::on(ScriptedEngine::new(usize::MAX, turns), measured(), change)
    }

    /// With as many turns as the real pool of so many workers grants, none of which is replaced when it hangs.
    pub fn with_workers(workers: usize, change: impl FnOnce(&mut Settings)) -> Self {
        Self::on(ScriptedEngine::new(workers, workers), measured(), change)
    }

    /// As [`World::new`], with what it measures sent to a collector at `endpoint`.
    pub fn exporting(turns: usize, endpoint: &str) -> Self {
        let otlp = Otlp::new(endpoint, None).expect("an address");
        let telemetry = Telemetry::start_exporting("test", &otlp).expect("fresh metrics");
        Self::on(ScriptedEngine::new(usize::MAX, turns), telemetry, |_| {})
    }

    fn on(engine: ScriptedEngine, telemetry: Telemetry, change: impl FnOnce(&mut Settings)) -> Self {
        let engine = Arc::new(engine);
        let (people, followed) = watch::channel(gallery(false));
        let mut settings = settings();
        change(&mut settings);
        let store = Arc::new(TestStore::new());
        let (clock, life) = (Clock::start_of_its_own(), Duration::from_secs(120));
        let (metrics, sealer) = (telemetry.metrics().clone(), Sealer::ephemeral());
        let service = Arc::new(Service {
            clock,
            corrections: Corrections::new(store.clone()),
            capsules: Capsules::new(store.clone(), sealer, metrics, (clock, life, Duration::from_secs(5))),
            history: History::start(store.clone(), 0),
            journal: Journal::off(),
            store: store.clone(),
            engine: engine.clone(),
            turnstile: Turnstile::new(engine.turns_max()),
            telemetry,
            people: followed,
            registry: Registry::default(),
            settings,
            ids: Ids::Counted(AtomicU64::new(0)),
            arbiters: Arbiters::Current,
        });
        Self { service, store, engine, people }
    }

    /// What the engine answers to a tone, in order; the last answer repeats.
    pub fn script(&self, tone: i16, answers: &[Answer]) {
        self.engine.script(tone, answers);
    }

    /// How long every query takes from now on.
    pub fn queries_take(&self, duration: Duration) {
        self.engine.queries_take(duration);
    }

    /// Whether the engine says that it is not ready.
    pub fn engine_is_down(&self, is_down: bool) {
        self.engine.set_down(is_down);
    }

    /// Every query so far: its tone and the seconds of audio it got.
    pub fn queries(&self) -> Vec<(i16, f64)> {
        self.engine.log().iter().map(|query| (query.tone, query.seconds)).collect()
    }

    /// Every query so far, with its times.
    pub fn log(&self) -> Vec<Query> {
        self.engine.log()
    }

    /// Since the start of the world.
    pub fn now(&self) -> Duration {
        self.engine.now()
    }

    /// Workers without a query.
    pub fn idle_workers(&self) -> usize {
        self.engine.idle()
    }

    /// Changes who is enrolled.
    pub fn enrol(&self, gallery: Gallery) {
        self.people.send(gallery).expect("the service listens");
    }

    /// The value of a series in the text exposition.
    pub fn metric(&self, series: &str) -> f64 {
        let (_, text) = self.service.telemetry.encode(None);
        let line = text.lines().find(|line| line.starts_with(series) && line[series.len()..].starts_with(' '));
        let value = line.and_then(|line| line.rsplit(' ').next()).unwrap_or_else(|| panic!("no series {series}"));
        value.parse().expect("a sample is a number")
    }

    /// The whole conversation, if it runs.
    pub async fn snapshot(&self, conversation: &str) -> Option<ConversationSnapshot> {
        let key = ConversationKey { account: "local".to_owned(), conversation: conversation.to_owned() };
        let address = self.service.registry.find(&key)?;
        address.send(Snapshot).await.ok()
    }

    /// The only lane of a conversation.
    pub async fn lane(&self, conversation: &str) -> LaneSnapshot {
        let mut snapshot = self.snapshot(conversation).await.expect("the conversation runs");
        assert_eq!(snapshot.lanes.len(), 1, "one lane");
        snapshot.lanes.remove(0)
    }

    /// A socket that has started `recording` in `conversation`.
    pub async fn client(&self, recording: &str, conversation: &str) -> Client {
        let mut client = self.connect();
        client.send(start(recording, conversation)).await;
        let ready = client.event("ready").await;
        assert_eq!(ready["conversation_id"], conversation);
        client
    }

    /// As [`World::client`], on a device.
    pub async fn client_on(&self, device: &str, recording: &str, conversation: &str) -> Client {
        self.client_with(start(recording, conversation), |start| start["device_id"] = json!(device)).await
    }

    /// As [`World::client`], on a provider stream that the client names, as one does whose provider outlives its socket.
    pub async fn client_of(&self, stream: &str, recording: &str, conversation: &str) -> Client {
        let provider = json!({"name": "any", "scope": stream});
        self.client_with(start(recording, conversation), |start| start["provider"] = provider).await
    }

    /// A socket whose `start` says something more.
    pub async fn client_with(&self, mut start: Value, change: impl FnOnce(&mut Value)) -> Client {
        let mut client = self.connect();
        change(&mut start);
        client.send(start).await;
        client.event("ready").await;
        client
    }

    /// Corrects a conversation in writing while the next reading of receipts is on its way back, as another process of
    /// the mind would: after what it reads, and before whoever reads has it.
    pub fn correct_during_next_reading(&self, conversation: &str, correction: Correction) {
        let (service, runtime) = (self.service.clone(), tokio::runtime::Handle::current());
        let conversation = conversation.to_owned();
        self.store.during_next_reading(move || {
            let wish = Wish::Ruling(correction.ruling.clone());
            let correcting = service.corrections.correct(&conversation, correction, wish);
            runtime.block_on(correcting).expect("the store takes the correction");
        });
    }

    /// A socket before its `start`.
    pub fn connect(&self) -> Client {
        self.connect_as("local")
    }

    /// A socket of another account.
    pub fn connect_as(&self, account: &str) -> Client {
        let (outlet, events) = outlet(self.service.settings.sockets.outbound_events);
        let id = self.service.ids.next("socket-");
        let socket = Socket::new(self.service.clone(), account, id.clone(), outlet).start();
        self.service.registry.admit(&id, socket.clone(), 1000).expect("room for a socket");
        Client { socket, events, position: 0.0, segments: 0, seen: Vec::new() }
    }
}

fn measured() -> Telemetry {
    Telemetry::start("test").expect("fresh metrics")
}

fn settings() -> Settings {
    let limits = Limits::default();
    Settings {
        limits,
        policy: policy(),
        budget: budget::Limits::default(),
        sockets: SocketLimits {
            frame_bytes: 64 << 20,
            text_bytes: 1 << 20,
            outbound_events: 4096,
            ring: Duration::from_secs(60),
            idle: Duration::from_secs(300),
            drain: Duration::from_secs(10),
            bounds: Bounds { id_bytes: 256, segments: 512 },
        },
        sockets_max: 1000,
        conversations_max: 1000,
        shares: SharePer::Conversation,
        clip_gate: Switch::Off,
    }
}

/// A `start` message with verbose exits.
pub fn start(recording: &str, conversation: &str) -> Value {
    json!({"type": "start", "recording_id": recording, "conversation_id": conversation, "verbose": true,
           "audio": {"encoding": "pcm_s16le", "sample_rate": RATE, "channels": 1}})
}

/// A limit of a test.
pub fn limit(value: u32) -> NonZeroU32 {
    NonZeroU32::new(value).expect("not zero")
}

/// A count of a test.
pub fn count(value: usize) -> NonZeroUsize {
    NonZeroUsize::new(value).expect("not zero")
}

/// One stretch of a voice, ready to be sent.
#[derive(Debug, Clone, Copy)]
pub struct Stretch {
    /// Seconds into the recording.
    pub start: f64,
    /// Seconds into the recording.
    pub end: f64,
}

/// A socket actor without a connection.
pub struct Client {
    /// The actor.
    pub socket: Addr<Socket>,
    events: Outflow,
    position: f64,
    segments: usize,
    seen: Vec<Value>,
}

impl Client {
    /// Sends one message and lets it be handled.
    pub async fn send(&self, message: Value) {
        self.text(&message.to_string()).await;
    }

    /// Sends one text frame.
    pub async fn text(&self, text: &str) {
        self.socket.send(Frame::Text(text.to_owned())).await.expect("the socket lives");
    }

    /// Sends audio of one tone and says where it lies.
    pub async fn speak(&mut self, tone: i16, seconds: f64) -> Stretch {
        let samples = (seconds * f64::from(RATE)).round() as usize;
        let bytes = tone.to_le_bytes().repeat(samples);
        self.socket.send(Frame::Binary(Bytes::from(bytes))).await.expect("the socket lives");
        let start = self.position;
        self.position += seconds;
        Stretch { start, end: self.position }
    }

    /// A segment of a stretch, with a fresh id.
    pub fn segment(&mut self, speaker: u32, stretch: Stretch) -> Value {
        self.segments += 1;
        json!({"id": format!("s{}", self.segments), "speaker": speaker, "start": stretch.start, "end": stretch.end})
    }

    /// Sends segments in one message.
    pub async fn offer(&self, segments: Vec<Value>) {
        self.send(json!({"type": "segments", "segments": segments})).await;
    }

    /// The connection goes away, and what follows from it happens.
    pub async fn leave(self) {
        // The actor may end before it answers.
        self.socket.send(Frame::Closed).await.ok();
        settle().await;
    }

    /// Speaks, offers what was said, and lets everything that follows happen.
    pub async fn say(&mut self, speaker: u32, tone: i16, seconds: f64) {
        let stretch = self.speak(tone, seconds).await;
        let segment = self.segment(speaker, stretch);
        self.offer(vec![segment]).await;
        settle().await;
    }

    /// Spends attempts of a voice: one query for each two seconds of speech.
    pub async fn spend(&mut self, speaker: u32, tone: i16, attempts: u32) {
        for _ in 0..attempts {
            self.say(speaker, tone, 2.0).await;
        }
    }

    /// Every event so far that was not taken yet.
    pub async fn events(&mut self) -> Vec<Value> {
        settle().await;
        let mut events = std::mem::take(&mut self.seen);
        while let Ok(Some(outbound)) = tokio::time::timeout(Duration::from_millis(1), self.events.next()).await {
            events.push(parsed(outbound));
        }
        events
    }

    /// The next event of a type; others are kept for [`Client::events`].
    pub async fn event(&mut self, kind: &str) -> Value {
        loop {
            let outbound = tokio::time::timeout(Duration::from_secs(3600), self.events.next()).await;
            let event = parsed(outbound.ok().flatten().unwrap_or_else(|| panic!("no {kind} event came")));
            if event["type"] == kind {
                return event;
            }
            self.seen.push(event);
        }
    }
}

fn parsed(outbound: Outbound) -> Value {
    match outbound {
        Outbound::Text(text) => serde_json::from_str(&text).expect("an event is JSON"),
        Outbound::Close { code, reason } => json!({"type": "close", "code": code, "reason": reason}),
    }
}

/// Lets everything that is due now happen; a millisecond of virtual time passes.
pub async fn settle() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

/// Lets virtual time pass.
pub async fn pass(seconds: f64) {
    tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
}

/// The events of one type.
pub fn of_type<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["type"] == kind).collect()
}
