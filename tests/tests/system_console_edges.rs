//! Goal: the console stays right where things go wrong or come together: a conversation is deleted, ends, rolls over or is
//! corrected by somebody else while one looks at it; the server goes and comes back; somebody clicks twice or leaves early;
//! names have no end and numbers are used twice.
//! Method: a real Chromium on a real server with the scripted model, and a client whose every word the test chooses.

use std::process::{Child, Command, Stdio};

use rollcall_tests::browser::{Browser, Wish, key};
use rollcall_tests::directory::Directory;
use rollcall_tests::server::{Server, binary};
use rollcall_tests::socket::Client;
use rollcall_tests::sound;
use serde_json::{Value, json};

#[tokio::test]
async fn a_deleted_conversation_leaves_the_page_also_when_it_was_the_only_one() {
    let Some(stage) = Stage::set() else { return };
    for conversation in ["first", "second"] {
        stage.named(conversation).await.stop().await;
    }
    stage.open("#/conversations/second");
    stage.browser.find_saying(".list-link", "first");
    stage.delete("second");
    stage.browser.find_saying("h1", "first");
    stage.delete("first");
    stage.browser.find_saying("h1", "No conversation yet");
    stage.browser.find_saying("#list-empty", "None yet");
    stage.is_clean();
}

#[tokio::test]
async fn one_that_ended_is_read_once_though_the_feed_says_its_end_as_well() {
    let Some(stage) = Stage::set() else { return };
    stage.named("over").await.stop().await;
    stage.open("#/conversations/over");
    stage.browser.find_saying(".head .badge", "Ended");
    // The feed says it within half a second of its opening.
    let read = "const done = arguments[0]; const all = () => performance.getEntriesByType('resource'); \
                setTimeout(() => done(all().filter(({name}) => name.includes('/export')).length), 2000)";
    assert_eq!(stage.browser.script_later(read), 1);
    stage.is_clean();
}

#[tokio::test]
async fn an_address_that_names_nothing_shows_what_there_is() {
    let Some(stage) = Stage::set() else { return };
    let _client = stage.named("there").await;
    stage.open("#/conversations/100%");
    stage.browser.find_saying("h1", "there");
    stage.browser.find_saying(".voice", "anna");
    stage.is_clean();
}

#[tokio::test]
async fn the_focus_and_what_is_open_survive_the_end_and_the_deletion_of_another() {
    let Some(stage) = Stage::set() else { return };
    stage.named("another").await.stop().await;
    let client = stage.named("watched").await;
    stage.open("");
    stage.browser.find_saying("h1", "watched");
    stage.browser.find_saying(".voice", "anna");
    stage.browser.click(&stage.browser.find(".as-table summary"));
    stage.browser.find_saying(".as-table tbody", "Only this one");
    stage.browser.tab_to("Correct only the segment from 0:00");
    client.stop().await;
    stage.browser.find_saying(".head .badge", "Ended");
    stage.browser.find(".as-table[open] tbody tr");
    assert!(stage.browser.focused().contains("Correct only the segment from 0:00"), "{}", stage.browser.focused());

    stage.open("#/conversations/watched");
    stage.browser.find_saying(".list-link", "another");
    stage.named("latest").await.stop().await;
    stage.browser.find_saying(".list-link", "latest");
    assert_eq!(stage.browser.script("document.querySelector('[aria-current=true]').focus()", &[]), Value::Null);
    // It stands before the one that has the focus.
    assert_eq!(stage.server.delete("/v1/conversations/latest").status, 204);
    stage.browser.until("it is gone", || (stage.browser.all(".list-link").len() == 2).then_some(()));
    assert!(stage.browser.focused().contains("watched"), "{}", stage.browser.focused());
    stage.is_clean();
}

#[tokio::test]
async fn a_live_voice_is_corrected_in_two_clicks_and_stays_what_it_was_called() {
    let Some(stage) = Stage::set() else { return };
    let mut client = stage.named("live").await;
    stage.open("");
    stage.browser.find_saying(".voice[data-tone=owner]", "anna");
    stage.browser.click(&stage.browser.find(".voice .voice-actions button:last-child"));
    stage.browser.click(&stage.browser.find_saying("dialog .option", "berta"));
    let card = stage.browser.find_saying(".voice[data-tone=known]", "berta");
    assert!(stage.browser.text(&card).contains("by hand"), "{}", stage.browser.text(&card));
    let told = client.event_where("speaker", |event| event["origin"] == "manual").await;
    assert_eq!(told["person_id"], "berta", "{told}");
    client.speak(1, sound::OWNER, 6.0).await;
    stage.browser.find_saying(".figures", "0:12");
    stage.browser.find_saying(".voice[data-tone=known]", "by hand");
    assert_eq!(stage.browser.text(&stage.browser.find(".head .badge")), "Live");
    stage.is_clean();
}

#[tokio::test]
async fn what_somebody_else_decides_about_one_segment_is_seen_without_a_click() {
    let Some(stage) = Stage::set() else { return };
    let _client = stage.named("shared").await;
    stage.open("");
    stage.browser.find_saying(".voice", "anna");
    stage.browser.click(&stage.browser.find(".as-table summary"));
    stage.browser.find_saying(".as-table tbody tr:last-child", "anna");
    let only = json!({"type": "label", "speaker": 1, "person_id": "berta", "segment_ids": ["segment-0"], "segment_only": true});
    let answer = stage.server.post("/v1/conversations/shared/labels", &only);
    assert_eq!(answer.status, 200, "{}", answer.body);
    stage.browser.find_saying(".as-table tbody tr:last-child", "berta");
    stage.browser.find_saying(".voice[data-tone=owner]", "anna");
    stage.is_clean();
}

#[tokio::test]
async fn a_number_of_two_provider_streams_is_two_voices_with_two_names_and_one_account() {
    let Some(stage) = Stage::set() else { return };
    let mut client = Client::start(&stage.server, "recording", "streams").await;
    client.speak(1, sound::STRANGER, 6.0).await;
    client.verdict(1).await;
    let offset = client.seconds();
    client.send(&json!({"type": "provider", "name": "any", "scope": "later", "audio_offset": offset})).await;
    client.audio(&sound::tone(sound::STRANGER, 6.0)).await;
    client.segment(&json!(1), 0.0, 6.0).await;
    stage.open("");
    stage.browser.find_saying(".voice .voice-title", "Voice 1.2");
    let names = || {
        let titles = stage.browser.all(".voice .voice-title");
        titles.iter().map(|title| stage.browser.text(title)).collect::<Vec<_>>()
    };
    assert_eq!(names().iter().filter(|name| name.as_str() == "Voice 1").count(), 1, "{:?}", names());
    client.verdict(1).await;
    let spent = |told: &Value| told["lanes"][0]["voices"][0]["attempts"].as_u64();
    client.stop().await;
    stage.browser.find_saying(".head .badge", "Ended");
    stage.browser.find_saying(".voice .voice-title", "Voice 1.2");
    let told = stage.server.conversation("streams");
    let queries = format!("Queries\n{}", spent(&told).expect("attempts are told"));
    stage.browser.find_saying(".figures", &queries);
    stage.is_clean();
}

#[tokio::test]
async fn a_long_recording_says_how_much_of_it_is_shown() {
    let Some(stage) = Stage::set() else { return };
    let mut client = Client::start(&stage.server, "recording", "long").await;
    let (count, each) = (230, 0.2);
    client.audio(&sound::tone(sound::OWNER, f64::from(count) * each)).await;
    let segment = |place: i32| json!({"id": format!("s{place}"), "speaker": 1, "start": f64::from(place) * each, "end": f64::from(place + 1) * each});
    client.send(&json!({"type": "segments", "segments": (0..count).map(segment).collect::<Vec<_>>()})).await;
    client.verdict(1).await;
    stage.open("");
    stage.browser.find_saying(".timeline-card", "The newest 128 segments");
    client.stop().await;
    stage.browser.find_saying(".head .badge", "Ended");
    stage.browser.click(&stage.browser.find(".as-table summary"));
    stage.browser.find_saying(".rest", "The newest 200 of 230 segments");
    stage.browser.click(&stage.browser.find(".rest button"));
    stage.browser.until("all rows", || (stage.browser.all(".as-table tbody tr").len() == 230).then_some(()));
    assert!(!stage.browser.is_shown(&stage.browser.all(".rest")[0]), "nothing is left out");
    assert!(!stage.browser.text(&stage.browser.find(".timeline-card")).contains("128"));
    stage.is_clean();
}

#[tokio::test]
async fn a_rollover_is_followed_to_where_the_recording_goes_on() {
    let Some(stage) = Stage::set() else { return };
    let mut client = stage.named("morning").await;
    stage.open("");
    stage.browser.find_saying("h1", "morning");
    client.send(&json!({"type": "rollover", "conversation_id": "afternoon"})).await;
    stage.browser.find_saying("h1", "afternoon");
    stage.browser.find_saying(".head .badge", "Live");
    client.speak(1, sound::OWNER, 3.0).await;
    client.speak(1, sound::OWNER, 3.0).await;
    stage.browser.find_saying(".voice", "anna");
    stage.is_clean();
}

#[tokio::test]
async fn a_lost_server_is_said_the_clocks_stop_and_the_page_comes_back_with_it() {
    let Some(mut stage) = Stage::set() else { return };
    let mut client = Client::start(&stage.server, "recording", "before").await;
    client.speak(1, sound::OWNER, 3.0).await;
    stage.open("");
    let tokens = || stage.browser.text(&stage.browser.find(".budget .big"));
    stage.browser.find(".budget .big");
    stage.server.kill();
    stage.browser.find_saying("#link-text", "Reconnecting");
    let frozen = tokens();
    let ticks = "const done = arguments[0]; setTimeout(() => done(null), 2000)";
    assert_eq!(stage.browser.script_later(ticks), Value::Null);
    assert_eq!(tokens(), frozen, "nobody knows what became of them");

    let _again = Again::start(&stage.server);
    stage.browser.find_saying("#link-text", "Live");
    stage.browser.find_saying(".head .badge", "Ended");
}

#[tokio::test]
async fn a_verdict_behind_a_dialog_is_said_when_the_dialog_closes() {
    let Some(stage) = Stage::set() else { return };
    let mut client = Client::start(&stage.server, "recording", "dialog").await;
    stage.open("");
    stage.browser.find_saying("h1", "dialog");
    stage.browser.find(".budget .big");
    stage.browser.click(&stage.browser.find("#enrol"));
    client.speak(1, sound::OWNER, 3.0).await;
    client.speak(1, sound::OWNER, 3.0).await;
    client.verdict(1).await;
    let shown = "return document.querySelector('.voice')?.dataset.tone ?? null";
    stage.browser.until("the verdict is drawn", || (stage.browser.script(shown, &[]) == "owner").then_some(()));
    let gathered =
        "const done = arguments[0]; setTimeout(() => done(document.getElementById('announcer').textContent), 2000)";
    assert_eq!(stage.browser.script_later(gathered), "");
    stage.browser.press(key::ESCAPE);
    stage.browser.until("it is said", || {
        let said = stage.browser.script("return document.getElementById('announcer').textContent", &[]);
        said.as_str()?.contains("is anna, the owner.").then_some(())
    });
}

#[tokio::test]
async fn an_open_explanation_keeps_up_with_fresh_speech() {
    let Some(stage) = Stage::set() else { return };
    let mut client = Client::start(&stage.server, "recording", "explained").await;
    client.speak(1, sound::OWNER, 0.2).await;
    stage.open("");
    stage.browser.find_saying(".voice", "Voice 1");
    stage.browser.click(&stage.browser.find(".voice .voice-actions button"));
    stage.browser.find_saying("dialog .explained", "0.2 s of fresh speech wait");
    client.speak(1, sound::OWNER, 0.2).await;
    stage.browser.find_saying("dialog .explained", "0.4 s of fresh speech wait");
    let told = stage.server.conversation("explained");
    assert_eq!(told["lanes"][0]["voices"][0]["attempts"], 0, "no query told it: {told}");
    stage.is_clean();
}

#[tokio::test]
async fn two_recordings_with_the_same_number_are_corrected_apart() {
    let Some(stage) = Stage::set() else { return };
    let _client = stage.named("meeting").await;
    let mut other = Client::start(&stage.server, "other", "meeting").await;
    other.speak(1, sound::STRANGER, 3.0).await;
    other.speak(1, sound::STRANGER, 3.0).await;
    other.verdict(1).await;
    stage.open("");
    stage.browser.find_saying(".lane", "Recording meeting");
    let stranger = "[aria-label='Recording other'] .voice";
    stage.browser.find_saying(stranger, "Nobody known");
    stage.browser.click(&stage.browser.find(&format!("{stranger} .voice-actions button:last-child")));
    stage.browser.click(&stage.browser.find_saying("dialog .option", "berta"));
    stage.browser.find_saying(stranger, "by hand");
    let told = stage.browser.text(&stage.browser.find("[aria-label='Recording meeting'] .voice"));
    assert!(told.contains("anna") && !told.contains("by hand"), "{told}");
    stage.is_clean();
}

#[tokio::test]
async fn names_and_ids_without_a_space_stay_on_a_phone() {
    let Some(stage) = Stage::set() else { return };
    let endless = "m".repeat(256);
    let endless_id = "w".repeat(256);
    stage.server.enrol(&endless_id, sound::STRANGER, false);
    let named = json!({"id": "named", "name": endless});
    assert_eq!(stage.server.post("/v1/people", &named).status, 201);
    let mut client = Client::start(&stage.server, &"r".repeat(256), &"c".repeat(256)).await;
    client.speak(1, sound::STRANGER, 6.0).await;
    client.verdict(1).await;
    stage.browser.resize(360, 740);
    stage.open("");
    stage.browser.find_saying(".voice", "wwww");
    stage.browser.click(&stage.browser.find(".as-table summary"));
    stage.browser.assert_fits("a conversation");
    stage.browser.click(&stage.browser.find(".voice .voice-actions button"));
    stage.browser.find_saying("dialog .part-title", "Nearest people");
    stage.browser.assert_fits("an explanation");
    stage.browser.press(key::ESCAPE);
    stage.browser.click(&stage.browser.find(".voice .voice-actions button:last-child"));
    stage.browser.find_saying("dialog .option", "mmmm");
    stage.browser.assert_fits("a correction");
    let inside =
        stage.browser.script("const d = document.querySelector('dialog'); return d.scrollWidth - d.clientWidth", &[]);
    assert_eq!(inside, 0, "nor does the dialog scroll");
    stage.browser.press(key::ESCAPE);
    stage.open("#/people");
    stage.browser.find_saying(".person", "mmmm");
    stage.browser.assert_fits("the people");
    stage.is_clean();
}

/// Every track that the page was given is kept where the test finds it.
const WATCH_TRACKS: &str = "window.tracks = []; const media = navigator.mediaDevices; \
    const ask = media.getUserMedia.bind(media); \
    media.getUserMedia = async (wish) => { const stream = await ask(wish); window.tracks.push(...stream.getTracks()); return stream; };";

#[test]
fn two_clicks_open_one_microphone_and_stopping_closes_it() {
    let directory = Directory::new();
    let voice = directory.file("voice.wav");
    std::fs::write(&voice, sound::wav(&sound::tone(sound::OWNER, 4.0))).expect("the directory is writable");
    let Some(stage) = Stage::with(Wish { microphone: Some(&voice) }) else { return };
    stage.open("");
    assert_eq!(stage.browser.script(WATCH_TRACKS, &[]), Value::Null);
    stage.browser.click(&stage.browser.find("#enrol"));
    stage.browser.find_saying("dialog button", "Record");
    let twice = "const record = document.querySelector('dialog .sources button'); record.click(); record.click();";
    assert_eq!(stage.browser.script(twice, &[]), Value::Null);
    stage.browser.find_saying("dialog .reading", "1 s recorded");
    stage.browser.click(&stage.browser.find_saying("dialog button", "Stop"));
    stage.browser.find("dialog audio");
    assert_eq!(stage.browser.script("return window.tracks.map((track) => track.readyState)", &[]), json!(["ended"]));
    stage.is_clean();
}

/// Samples wait until the test lets them go, and the method of whatever else is asked is kept where the test finds it.
const HOLD_SAMPLES: &str = "const send = window.fetch; let go; const gate = new Promise((open) => (go = open)); \
    window.letGo = go; window.asked = []; window.fetch = async (path, wish) => { \
    if (path.includes('/samples')) await gate; else window.asked.push(wish.method); return send(path, wish); };";

#[test]
fn whoever_leaves_while_the_server_listens_has_enrolled_all_the_same() {
    let Some(stage) = Stage::set() else { return };
    stage.open("");
    assert_eq!(stage.browser.script(HOLD_SAMPLES, &[]), Value::Null);
    stage.browser.click(&stage.browser.find("#enrol"));
    stage.browser.write(&stage.browser.find("#enrol-name"), "Clara");
    let clip = stage.server.file("clara.wav", &sound::wav(&sound::tone(sound::STRANGER, 4.0)));
    let field = stage.browser.all("#enrol-file").remove(0);
    stage.browser.write(&field, &clip.display().to_string());
    stage.browser.click(&stage.browser.find_saying("dialog .button.primary:enabled", "Add the sample"));
    stage.browser.find_saying(".result", "The server listens");
    stage.browser.until("she was made", || (stage.server.get("/v1/people/clara").status == 200).then_some(()));
    stage.browser.find(".button.primary:disabled");
    assert!(!stage.browser.all("#enrol-file:disabled").is_empty(), "no other file can be chosen meanwhile");
    stage.browser.press(key::ESCAPE);
    stage.browser.until("the dialog is gone", || stage.browser.all("dialog").is_empty().then_some(()));
    assert_eq!(stage.browser.script("window.letGo()", &[]), Value::Null);
    stage.browser.find_saying(".toast", "The sample of Clara is kept");
    let asked = stage.browser.script("return window.asked", &[]);
    assert!(!asked.as_array().expect("a list").contains(&json!("DELETE")), "nobody was taken back: {asked}");
    let clara = stage.server.get("/v1/people/clara").json();
    assert_eq!((&clara["samples"], &clara["enrolled"]), (&json!(1), &json!(true)), "{clara}");
    stage.is_clean();
}

/// A server with the scripted model and two people, and a browser.
struct Stage {
    browser: Browser,
    server: Server,
}

impl Stage {
    fn set() -> Option<Self> {
        Self::with(Wish::default())
    }

    fn with(wish: Wish<'_>) -> Option<Self> {
        let browser = Browser::start(wish)?;
        let server = Server::start();
        server.enrol("anna", sound::OWNER, true);
        server.enrol("berta", sound::PERSON, false);
        Some(Self { browser, server })
    }

    fn open(&self, place: &str) {
        self.browser.open(&format!("{}/{place}", self.server.url()));
    }

    /// A live conversation in which the owner is known.
    async fn named(&self, conversation: &str) -> Client {
        let mut client = Client::start(&self.server, conversation, conversation).await;
        client.speak(1, sound::OWNER, 3.0).await;
        client.speak(1, sound::OWNER, 3.0).await;
        client.verdict(1).await;
        client
    }

    fn delete(&self, conversation: &str) {
        self.browser.find_saying("h1", conversation);
        self.browser.click(&self.browser.find(".head .danger"));
        self.browser.click(&self.browser.find("dialog .danger"));
        self.browser.find_saying(".toast", &format!("{conversation} was deleted"));
    }

    fn is_clean(&self) {
        self.browser.assert_clean(&self.server.url());
    }
}

/// A server at the address and with the store of one that was killed.
struct Again(Child);

impl Again {
    fn start(gone: &Server) -> Self {
        let mut command = Command::new(binary());
        command.args(["serve", "--model", "scripted", "--listen", gone.address(), "--data"]).arg(gone.path("data"));
        command
            .env("ROLLCALL_HOME", gone.path("home"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        Self(command.spawn().expect("the binary was built, so it starts"))
    }
}

impl Drop for Again {
    fn drop(&mut self) {
        // It may have ended by itself.
        self.0.kill().ok();
        self.0.wait().ok();
    }
}
