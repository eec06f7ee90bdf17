//! Goal: whatever a worker does to a query, the books balance, the client hears, the next query works, and `/readyz` tells
//! the truth.
//! Method: the whole service in this process with a real pool, whose extractors do as a script says: panic, err, return
//! what is no number, hang. Real threads and a real WebSocket client; deadlines are shortened, waits are `eventually`,
//! and no assertion depends on speed.

use std::future::Future;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use gateway::config::Config;
use gateway::people::People;
use gateway::serve::Server;
use gateway::store::SqliteStore;
use gpu_worker::scripted::{self, Script, Step};
use gpu_worker::{Pool, Settings};
use rollcall_tests::server::{Answer, PATIENCE, Page, eventually, http};
use rollcall_tests::socket::Client;
use rollcall_tests::sound::{self, OWNER, STRANGER};
use serde_json::json;

#[test]
fn a_panic_settles_failed_is_heard_and_the_next_query_works() {
    check_survives("panic", Step::Panic, Replaced::Yes);
}

#[test]
fn an_error_settles_failed_is_heard_and_the_next_query_works() {
    check_survives("error", Step::Fail, Replaced::Yes);
}

#[test]
fn what_is_no_number_settles_failed_is_heard_and_never_becomes_evidence() {
    check_survives("nan", Step::NotANumber, Replaced::Yes);
}

#[test]
fn a_hang_settles_failed_at_its_deadline_is_heard_and_the_next_query_works() {
    check_survives("hang", Step::Hang, Replaced::Yes);
}

#[test]
fn a_panic_outside_the_run_settles_failed_is_heard_and_the_next_query_works() {
    check_survives("twice", Step::PanicTwice, Replaced::Yes);
}

#[test]
fn a_clip_that_cannot_be_encoded_settles_failed_and_costs_no_worker() {
    check_survives("clip", Step::RefuseClip, Replaced::No);
}

#[test]
fn five_failures_in_a_minute_make_the_service_not_ready_until_a_probe_extracts() {
    let settings = Settings { probe_every: Duration::from_millis(200), run_max: PATIENCE, ..quick(1) };
    run("five", settings, async |stage| {
        let mut client = stage.client("one").await;
        // Five failures, a probe that fails, and one that extracts when it is told to.
        for _ in 0..6 {
            stage.script.then(Step::Panic);
        }
        stage.script.then(Step::Hang);
        for voice in 0..5 {
            client.speak(voice, STRANGER, 3.0).await;
            assert_eq!(client.event("error").await["speaker"], voice);
        }
        let unready = stage.get("/readyz");
        assert_eq!(unready.status, 503);
        assert!(unready.body.contains("5 times within 60 s"), "{}", unready.body);
        eventually("the second probe runs", || (stage.script.hanging() == 1).then_some(())).await;
        assert_eq!(stage.get("/readyz").status, 503, "the first failed, the second has not extracted yet");

        let mut late = stage.client("two").await;
        late.speak(0, OWNER, 6.0).await;
        let waits = || stage.get("/v1/conversations/two").json()["lanes"][0]["queue"][0]["speaker"] == 0;
        eventually("a new socket is taken, and its voice waits", || waits().then_some(())).await;
        assert_eq!(stage.script.runs(), 8, "no worker saw it: one run enrolled anna, five failed, two were probes");
        stage.check_books(5, 0);

        stage.script.release();
        eventually("the probe brings it back", || (stage.get("/readyz").status == 200).then_some(())).await;
        assert_eq!(late.verdict(0).await["person_id"], "anna", "it runs without another update");
        stage.check_books(6, 1);
    });
}

#[test]
fn a_worker_that_hangs_holds_up_nobody_whom_another_can_serve() {
    // No run passes its deadline here: the query's own ends it, and the worker hangs on.
    run("beside", Settings { run_max: PATIENCE, ..quick(2) }, async |stage| {
        let (mut stuck, mut other) = (stage.client("one").await, stage.client("two").await);
        stage.script.then(Step::Hang);
        stuck.speak(0, STRANGER, 3.0).await;
        eventually("a worker hangs", || (stage.script.hanging() == 1).then_some(())).await;
        other.speak(0, OWNER, 6.0).await;
        assert_eq!(other.verdict(0).await["person_id"], "anna");
        assert_eq!((stage.script.hanging(), stage.get("/readyz").status), (1, 200));

        assert_eq!(stuck.event("error").await["code"], "extraction_failed");
        stuck.speak(0, OWNER, 3.0).await;
        let verdict = stuck.event("speaker").await;
        assert_eq!(verdict["speaker"], 0, "its number is free while the worker still hangs: {verdict}");
        assert_eq!(stage.script.hanging(), 1);
        stage.check_books(3, 2);
    });
}

#[test]
fn a_stop_while_a_worker_hangs_settles_its_query_and_ends() {
    run("stop", Settings { run_max: PATIENCE, shutdown_max: Duration::from_millis(100), ..quick(1) }, async |stage| {
        let mut client = stage.client("one").await;
        stage.script.then(Step::Hang);
        client.speak(0, STRANGER, 3.0).await;
        eventually("the worker hangs", || (stage.script.hanging() == 1).then_some(())).await;
        let telemetry = stage.server.service().telemetry.clone();
        stage.drain().await;
        let goodbye = client.event("goodbye").await;
        assert_eq!((&goodbye["reason"], &goodbye["budget"]["reserved"]), (&json!("draining"), &json!(1)));
        let books = telemetry.accounts().books();
        assert_eq!((books.open, books.failed), (0, 1), "{books:?}");
    });
}

/// Whether a fault costs its worker.
#[derive(Clone, Copy, PartialEq)]
enum Replaced {
    Yes,
    No,
}

/// One bad step of the only worker.
fn check_survives(name: &str, step: Step, replaced: Replaced) {
    run(name, quick(1), async move |stage| {
        let mut client = stage.client("one").await;
        stage.script.then(step);
        let segment = client.speak(7, OWNER, 3.0).await;
        let error = client.event("error").await;
        assert_eq!(error["code"], "extraction_failed");
        assert_eq!((&error["speaker"], &error["segment_id"]), (&json!(7), &json!(segment)), "{error}");
        let now = stage.get("/readyz");
        assert!(
            replaced == Replaced::No || now.status == 503 || restarts(&now) == 1,
            "the worker is gone: {}",
            now.body
        );
        stage.check_books(1, 0);

        let ready =
            eventually("a worker is up", || Some(stage.get("/readyz")).filter(|ready| ready.status == 200)).await;
        assert_eq!(restarts(&ready), u64::from(replaced == Replaced::Yes));
        client.speak(7, OWNER, 3.0).await;
        let verdict = client.verdict(7).await;
        assert_eq!((&verdict["person_id"], &verdict["evidence_seconds"]), (&json!("anna"), &json!(6.0)), "{verdict}");
        assert_eq!(verdict["budget"]["voice_attempts_left"], 10, "both attempts are spent");
        assert!(verdict["budget"]["socket_tokens"].as_f64().unwrap() < 15.0, "and nothing is refunded: {verdict}");
        stage.check_books(2, 1);
    });
}

fn restarts(ready: &Answer) -> u64 {
    ready.json()["workers"]["restarts"].as_u64().unwrap_or_default()
}

/// Hangs are found soon.
fn quick(workers: usize) -> Settings {
    let workers = NonZeroUsize::new(workers).expect("a test names at least one worker");
    Settings { workers, run_max: Duration::from_secs(1), ..Settings::default() }
}

/// The service in this process, with anna enrolled as the owner.
struct Stage {
    server: Server,
    address: String,
    pool: Pool,
    script: Script,
}

/// Runs a test on a stage of its own, and takes the stage down.
fn run<T: Future<Output = ()>>(name: &str, settings: Settings, test: impl FnOnce(Stage) -> T) {
    let directory = std::env::temp_dir().join(format!("rollcall-workers-{name}-{}", std::process::id()));
    let (script, pool) = actix::System::new().block_on(async {
        let stage = Stage::start(settings, &directory).await;
        let ends = (stage.script.clone(), stage.pool.clone());
        test(stage).await;
        ends
    });
    script.release();
    pool.shutdown();
    // A directory that stays behind fails no test.
    std::fs::remove_dir_all(directory).unwrap_or_default();
}

impl Stage {
    async fn start(settings: Settings, directory: &Path) -> Self {
        let manifest = scripted::manifest();
        let script = Script::new(manifest.dimension);
        let pool = Pool::start(settings, manifest.clone(), script.factory()).expect("a thread can be started");
        pool.wait_ready(PATIENCE).expect("a scripted worker comes up");
        let store = SqliteStore::open(directory).expect("the temporary directory is writable");
        let people = People::open(Arc::new(store), &manifest).expect("a fresh store can be read");
        let mut config = Config::default();
        config.server.listen = "127.0.0.1:0".to_owned();
        let server = Server::start(&config, Arc::new(pool.clone()), people, gateway::capsule::Sealer::ephemeral())
            .expect("a port is free");
        let address = server.address().to_string();
        let enrolling = address.clone();
        // The server's first steps are taken on this thread, which may not wait for it.
        tokio::task::spawn_blocking(move || enrol(&enrolling)).await.expect("enrolling does not panic");
        Self { address, server, pool, script }
    }

    fn get(&self, path: &str) -> Answer {
        http(&self.address, "GET", path, &[], b"").expect("the service answers")
    }

    async fn client(&self, name: &str) -> Client {
        Client::start_at(&self.address, name, name).await
    }

    /// So many reservations, all settled, so many of them with a voiceprint.
    fn check_books(&self, reserved: u32, succeeded: u32) {
        let page = Page::read(&self.get("/metrics").body);
        let books = ["reserved", "succeeded", "failed"].map(|outcome| page.attempts(outcome));
        assert_eq!(books, [reserved, succeeded, reserved - succeeded].map(f64::from));
    }

    async fn drain(self) {
        self.server.drain().await.expect("the server stops");
    }
}

/// Anna is the owner, and her voice a tone.
fn enrol(address: &str) {
    let person = json!({"id": "anna", "owner": true}).to_string();
    let clip = sound::wav(&sound::tone(OWNER, 4.0));
    let calls =
        [("/v1/people", "application/json", person.into_bytes()), ("/v1/people/anna/samples", "audio/wav", clip)];
    for (path, kind, body) in calls {
        let answer = http(address, "POST", path, &[("content-type", kind)], &body).expect("it answers");
        assert_eq!(answer.status, 201, "{}", answer.body);
    }
}
