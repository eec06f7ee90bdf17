//! Goal: with the console alone somebody can watch a conversation being named, correct it, enrol a voice, learn why a voice
//! has no name, and delete a person; by mouse, by keyboard, on a phone, and with a screen reader.
//! Method: a real Chromium on a real server with the real model and the demo's real voices. Where there is no Chromium the
//! stories say so and are skipped. The page may break no rule of its policy, and ask nothing of any other host.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use gpu_worker::remote::hostile::Hostile;
use rollcall_tests::browser::{Browser, Wish, key};
use rollcall_tests::directory::Directory;
use rollcall_tests::server::{Server, binary, http};
use rollcall_tests::socket::Client;
use rollcall_tests::sound;
use serde_json::json;

/// The demo's people, the owner first. The fourth voice of their conversation is a stranger.
const PEOPLE: [(&str, &str); 3] = [("allison", "Allison"), ("june", "June"), ("carlo", "Carlo")];

/// Fast enough for a test; a debug build on a busy machine still keeps up.
const SPEED: &str = "6";

/// Slow enough that the conversation goes on for whatever is done to it meanwhile: it lasts a minute and a half.
const SLOW: &str = "1.3";

#[test]
fn people_are_named_while_one_watches_and_the_stranger_is_nobody() {
    let Some(stage) = Stage::set(Wish::default()) else { return };
    stage.browser.open(&stage.server.url());
    stage.browser.find_saying("h1", "No conversation yet");
    stage.enrol_everybody();
    // The page is open already, and nobody touches it.
    let stream = stage.stream("standup");
    for (_, name) in PEOPLE {
        stage.browser.find_saying(".voice .voice-title", name);
    }
    stage.browser.find_saying(".voice[data-tone=nobody]", "Nobody known");
    let owner = stage.browser.find_saying(".voice[data-tone=owner]", "Allison");
    let told = stage.browser.text(&owner);
    assert!(told.contains("needed") && told.contains("of 12 left"), "{told}");
    stage.browser.find_saying(".budget", "of 16 tokens");
    assert!(stage.browser.all(".mark[data-tone=owner]").len() > 1, "her segments lie on the time line");
    stream.ended();
    stage.browser.find_saying(".head .badge", "Ended");
    for (_, name) in PEOPLE {
        stage.browser.find_saying(".voice .voice-title", name);
    }
    stage.page_is_clean();
}

#[test]
fn two_clicks_correct_a_voice_and_the_correction_holds() {
    let Some(stage) = Stage::set(Wish::default()) else { return };
    stage.enrol_everybody();
    stage.stream("corrected").ended();
    stage.browser.open(&stage.server.url());
    let stranger = stage.browser.find_saying(".voice[data-tone=nobody]", "Nobody known");
    let speaker =
        stage.browser.script("return Number(document.querySelector('.voice[data-tone=nobody]').dataset.speaker)", &[]);
    assert!(stage.browser.text(&stranger).contains("Correct"));
    stage.browser.click(&stage.browser.find(".voice[data-tone=nobody] .voice-actions button:last-child"));
    stage.browser.click(&stage.browser.find_saying("dialog .option", "Carlo"));

    stage.browser.find_saying(".toast", "is Carlo");
    let card = format!(".voice[data-speaker='{speaker}']");
    stage.browser.find_saying(&card, "by hand");
    let labels = stage.server.get("/v1/conversations/corrected/labels").json();
    assert_eq!(labels["voices"][0]["person_id"], "carlo", "{labels}");
    assert_eq!(labels["voices"][0]["speaker"], speaker, "{labels}");

    stage.browser.click(&stage.browser.find(&format!("{card} .voice-actions button:last-child")));
    stage.browser.click(&stage.browser.find_saying("dialog .option", "Not Carlo"));
    stage.browser.find_saying(&format!("{card}[data-tone=nobody]"), "Nobody known");
    let labels = stage.server.get("/v1/conversations/corrected/labels").json();
    assert_eq!(labels["voices"][0]["rejected"], "not_person", "{labels}");
    stage.page_is_clean();
}

#[test]
fn one_segment_alone_is_corrected_from_the_table() {
    let Some(stage) = Stage::set(Wish::default()) else { return };
    stage.enrol_everybody();
    stage.stream("segments").ended();
    stage.browser.open(&stage.server.url());
    stage.browser.find_saying(".voice", "Allison");
    stage.browser.click(&stage.browser.find(".as-table summary"));
    // The first segment of all is the last row.
    let row = stage.browser.find_saying(".as-table tbody tr:last-child", "Allison");
    stage.browser.click(&stage.browser.find(".as-table tbody tr:last-child button"));
    stage.browser.click(&stage.browser.find_saying("dialog .option", "Nobody"));
    stage.browser.find_saying(".toast", "This segment is nobody");
    let labels = stage.server.get("/v1/conversations/segments/labels").json();
    assert_eq!(
        (labels["segments"][0]["segment_only"].as_bool(), labels["voices"].as_array().map(Vec::len)),
        (Some(true), Some(0)),
        "{labels}"
    );
    stage.browser.find_saying(".as-table tbody tr:last-child", "Nobody known");
    assert!(!stage.browser.text(&row).contains("Allison"), "the name is gone: {}", stage.browser.text(&row));
    stage.browser.find_saying(".voice[data-tone=owner]", "Allison");
    stage.page_is_clean();
}

#[test]
fn one_segment_of_a_live_conversation_is_corrected_and_the_rest_of_the_voice_stays() {
    let Some(stage) = Stage::set(Wish::default()) else { return };
    stage.enrol_everybody();
    let _stream = stage.stream_at(SLOW, "live");
    stage.browser.open(&stage.server.url());
    stage.browser.find_saying(".voice[data-tone=owner]", "Allison");
    stage.browser.click(&stage.browser.find(".as-table summary"));
    // The newest stands first, and more come; the first segment of all stays the last row.
    stage.browser.find_saying(".as-table tbody tr:last-child", "Allison");
    stage.browser.click(&stage.browser.find(".as-table tbody tr:last-child button"));
    stage.browser.click(&stage.browser.find_saying("dialog .option", "June"));
    stage.browser.find_saying(".as-table tbody tr:last-child", "June");
    stage.browser.find_saying(".voice[data-tone=owner]", "Allison");
    assert_eq!(stage.badge(), "Live");
    stage.page_is_clean();
}

/// The scripted model is enough here, and answers at once.
#[tokio::test]
async fn tokens_drain_with_a_query_and_come_back_while_one_watches() {
    let Some(browser) = Browser::start(Wish::default()) else { return };
    let server = Server::start_with(&["budget.refill_per_hour=360"]);
    server.enrol("anna", sound::OWNER, true);
    let mut client = Client::start(&server, "recording", "tokens").await;
    browser.open(&server.url());
    let tokens = || browser.text(&browser.find(".budget .big")).parse::<f64>().ok();
    browser.until("the full bucket", || tokens().filter(|tokens| *tokens > 15.9));
    client.speak(1, sound::OWNER, 3.0).await;
    client.speak(1, sound::OWNER, 3.0).await;
    client.verdict(1).await;
    let low = browser.until("the drain", || tokens().filter(|tokens| *tokens < 15.0));
    browser.until("the refill", || tokens().filter(|tokens| *tokens > low + 0.5));
    browser.find_saying(".voice[data-tone=owner]", "10 of 12 left");
}

/// While no extraction server answers, whoever spoke waits.
#[tokio::test]
async fn the_queue_tells_who_waits_how_long_and_why_until_they_are_examined() {
    let Some(browser) = Browser::start(Wish::default()) else { return };
    let mut extraction = Hostile::start(192).expect("a port is free");
    let endpoint = format!("remote.endpoints={}", extraction.url("/v2/embedding"));
    let quick = ["remote.check_seconds=0.05", "remote.pause_max_seconds=0.1", "remote.timeout_seconds=1"];
    let settings = [&quick[..], &["extraction.engine=remote", "remote.protocol=embedding", &endpoint]].concat();
    let server = Server::start_with(&settings);
    let until_readiness =
        |status: u16| browser.until("readiness", || (server.get("/readyz").status == status).then_some(()));
    until_readiness(200);
    server.enrol("anna", sound::OWNER, true);
    let mut client = Client::start(&server, "recording", "queue").await;
    browser.open(&server.url());
    extraction.die();
    until_readiness(503);
    client.speak(1, sound::OWNER, 3.0).await;
    client.speak(2, sound::PERSON, 6.0).await;
    browser.until("two wait", || (browser.all(".queue-row").len() == 2).then_some(()));
    let first = browser.find_saying(".queue-row:first-child", "next");
    assert!(browser.text(&first).contains("of speech"), "{}", browser.text(&first));
    let age = || {
        let told = browser.text(&browser.find(".queue-row:first-child .queue-age"));
        told.trim_start_matches("waits ").trim_end_matches(" s").parse::<f64>().ok()
    };
    let young = browser.until("an age", age);
    browser.until("it grows older", || age().filter(|older| *older > young + 1.0));
    extraction.revive().expect("its port is still free");
    browser.find_saying(".queue", "Nobody waits");
}

#[test]
fn a_file_enrols_a_voice_and_a_bad_one_is_refused_with_the_reason() {
    let Some(stage) = Stage::set(Wish::default()) else { return };
    stage.browser.open(&stage.server.url());
    let clips = clips("june");
    let silence = stage.server.file("silence.wav", &sound::wav(&vec![0; 64_000]));
    stage.open_enrolment("June");
    stage.send_file(&silence);
    stage.browser.find_saying(".complaint", "speak for longer");
    stage.browser.find_saying(".result", "0.0 s of 4.0 s");
    // The same dialog takes a better one.
    stage.send_file(&clips[0]);
    stage.browser.find_saying(".result", "The sample of June is kept");
    stage.send_file(&clips[1]);
    let told = stage.browser.find_saying(".result", "Distance to earlier samples");
    assert!(stage.browser.text(&told).contains("Quality"));
    // Somebody else's voice is a doubt that only a person can settle.
    stage.send_file(&crate::clips("carlo")[0]);
    stage.browser.find_saying(".complaint", "Is it the same person?");
    stage.browser.find_saying("dialog button", "Take it all the same");
    stage.browser.press(key::ESCAPE);
    let june = stage.server.get("/v1/people/june").json();
    assert_eq!((&june["samples"], &june["enrolled"]), (&json!(2), &json!(true)), "{june}");
    stage.page_is_clean();
}

#[test]
fn the_microphone_enrols_a_voice_and_whoever_gives_up_leaves_nobody_behind() {
    let (voice, _directory) = joined(&clips("allison"));
    let Some(stage) = Stage::set(Wish { microphone: Some(&voice) }) else { return };
    stage.browser.open(&stage.server.url());
    stage.open_enrolment("Allison");
    stage.browser.click(&stage.browser.find_saying("dialog button", "Record"));
    stage.browser.find_saying("dialog .reading", "8 s recorded");
    stage.browser.click(&stage.browser.find_saying("dialog button", "Stop"));
    stage.browser.click(&stage.browser.find_saying("dialog .button.primary:enabled", "Add the sample"));
    stage.browser.find_saying(".result", "The sample of Allison is kept");
    stage.browser.press(key::ESCAPE);
    // What was recorded is her voice, as the matcher hears it.
    let clip = std::fs::read(&clips("allison")[0]).expect("the demo's clips are there");
    let heard = http(stage.server.address(), "POST", "/v1/identify", &[("content-type", "audio/wav")], &clip);
    let heard = heard.expect("the server answers").json();
    let nearest = &heard["people"][0];
    assert_eq!(nearest["person_id"], "allison", "{heard}");
    assert!(nearest["distance"].as_f64().is_some_and(|distance| distance < 0.6), "{heard}");

    stage.open_enrolment("Nobody Yet");
    stage.send_file(&stage.server.file("silence.wav", &sound::wav(&vec![0; 64_000])));
    stage.browser.find_saying(".complaint", "speak for longer");
    stage.browser.press(key::ESCAPE);
    stage.browser.until("the empty person is gone", || {
        (stage.server.get("/v1/people").json()["people"].as_array()?.len() == 1).then_some(())
    });
    stage.page_is_clean();
}

#[test]
fn a_stranger_is_explained_in_words() {
    let Some(stage) = Stage::set(Wish::default()) else { return };
    stage.enrol_everybody();
    let stream = stage.stream("explained");
    stage.browser.open(&stage.server.url());
    stage.browser.find_saying(".voice[data-tone=nobody]", "Nobody known");
    stage.browser.click(&stage.browser.find(".voice[data-tone=nobody] .voice-actions button"));
    for part in ["What was heard", "What was asked of the model", "What came out", "What would change it"] {
        stage.browser.find_saying("dialog .part-title", part);
    }
    let nearest = stage.browser.find("dialog .nearest tbody");
    for (_, name) in PEOPLE {
        assert!(stage.browser.text(&nearest).contains(name), "{}", stage.browser.text(&nearest));
    }
    stage.browser.press(key::ESCAPE);
    stage.browser.until("the dialog is gone", || stage.browser.all("dialog").is_empty().then_some(()));
    drop(stream);
    stage.page_is_clean();
}

#[test]
fn a_keyboard_is_enough() {
    let Some(stage) = Stage::set(Wish::default()) else { return };
    stage.enrol_everybody();
    stage.stream("keys").ended();
    let browser = &stage.browser;
    browser.open(&stage.server.url());
    browser.find_saying(".voice", "June");
    browser.press(key::TAB);
    assert_eq!(browser.focused(), "Skip to the content");
    browser.tab_to("Correct June");
    browser.press(key::ENTER);
    browser.find("dialog .option");
    browser.press(key::ESCAPE);
    browser.until("the dialog is gone", || browser.all("dialog").is_empty().then_some(()));
    assert_eq!(browser.focused(), "Correct June", "the focus is back where it was");
    browser.press(key::ENTER);
    browser.find("dialog .option");
    browser.tab_to("Not June");
    browser.press(key::ENTER);
    browser.find_saying(".toast", "is not June");

    browser.open(&format!("{}/#/people", stage.server.url()));
    browser.find_saying(".person", "Carlo");
    browser.tab_to("Delete Carlo");
    browser.press(key::ENTER);
    browser.find_saying("dialog h2", "Delete Carlo?");
    assert_eq!(browser.focused(), "Keep", "the safe answer has the focus");
    browser.press(key::ENTER);
    assert_eq!(stage.server.get("/v1/people/carlo").status, 200);
    browser.tab_to("Delete Carlo");
    browser.press(key::ENTER);
    browser.find_saying("dialog h2", "Delete Carlo?");
    browser.press(key::TAB);
    browser.press(key::ENTER);
    browser.find_saying(".toast", "Carlo was deleted");
    assert_eq!(stage.server.get("/v1/people/carlo").status, 404);
    stage.page_is_clean();
}

#[test]
fn people_are_searched_by_name_and_by_id() {
    let Some(stage) = Stage::set(Wish::default()) else { return };
    stage.enrol_everybody();
    stage.browser.open(&format!("{}/#/people", stage.server.url()));
    stage.browser.find_saying(".person", "Carlo");
    stage.browser.write(&stage.browser.find("#people-search"), "JUN");
    stage.browser.find_saying(".hint", "1 of 3 people");
    assert_eq!(stage.browser.all(".person").len(), 1);
    stage.page_is_clean();
}

#[test]
fn a_screen_reader_hears_new_verdicts_and_no_rule_of_accessibility_is_broken_in_any_view_and_colour() {
    let Some(stage) = Stage::set(Wish::default()) else { return };
    let axe = std::fs::read_to_string(home().join("axe/axe.min.js")).expect("axe-core is there; run `make setup`");
    stage.browser.open(&stage.server.url());
    stage.browser.find("h1");
    stage.is_accessible(&axe, "the welcome");
    stage.enrol_everybody();
    let stream = stage.stream_at(SLOW, "heard");
    // It is not to be seen, so its text is read from the page.
    stage.browser.until("the verdict is said", || {
        let said = stage.browser.script("return document.getElementById('announcer').textContent", &[]);
        said.as_str()?.contains("is Allison, the owner.").then_some(())
    });
    stage.browser.click(&stage.browser.find(".as-table summary"));
    stage.is_accessible(&axe, "a live conversation");
    assert_eq!(stage.badge(), "Live");
    stage.browser.click(&stage.browser.find(".voice .voice-actions button"));
    stage.browser.find_saying("dialog .part-title", "What was heard");
    stage.is_accessible(&axe, "an explanation");
    stage.browser.press(key::ESCAPE);
    drop(stream);
    stage.stream_at("20", "over").ended();
    stage.browser.open(&format!("{}/#/conversations/over", stage.server.url()));
    stage.browser.find_saying(".head .badge", "Ended");
    stage.is_accessible(&axe, "a conversation that ended");
    stage.browser.click(&stage.browser.find(".voice .voice-actions button:last-child"));
    stage.browser.find("dialog .option");
    stage.is_accessible(&axe, "a correction");
    stage.browser.press(key::ESCAPE);
    stage.browser.open(&format!("{}/#/people", stage.server.url()));
    stage.browser.find_saying(".person", "Carlo");
    stage.is_accessible(&axe, "the people");
    stage.browser.click(&stage.browser.find("#enrol"));
    stage.browser.find("#enrol-name");
    stage.is_accessible(&axe, "an enrolment");
}

#[test]
fn a_phone_shows_everything_without_scrolling_sideways() {
    let Some(stage) = Stage::set(Wish::default()) else { return };
    stage.enrol_everybody();
    stage.browser.resize(360, 740);
    stage.browser.open(&stage.server.url());
    let stream = stage.stream("a-conversation-with-an-id-that-is-far-too-long-for-the-screen-of-any-phone-0123456789");
    stage.browser.find_saying(".voice", "Allison");
    stage.browser.assert_fits("a live conversation");
    stage.browser.click(&stage.browser.find(".voice .voice-actions button:last-child"));
    stage.browser.find("dialog .option");
    stage.browser.assert_fits("a correction");
    stage.browser.press(key::ESCAPE);
    stage.browser.open(&format!("{}/#/people", stage.server.url()));
    stage.browser.find_saying(".person", "Carlo");
    stage.browser.assert_fits("the people");
    stage.browser.click(&stage.browser.find("#enrol"));
    stage.browser.find("#enrol-name");
    stage.browser.assert_fits("an enrolment");
    drop(stream);
}

#[test]
fn a_name_that_looks_like_markup_stays_text() {
    let Some(stage) = Stage::set(Wish::default()) else { return };
    let name = "<img src=x onerror=alert(1)>";
    assert_eq!(stage.server.post("/v1/people", &json!({"id": "x", "name": name})).status, 201);
    stage.browser.open(&format!("{}/#/people", stage.server.url()));
    stage.browser.find_saying(".person-name", name);
    assert!(stage.browser.all("img").is_empty());
    stage.page_is_clean();
}

#[test]
fn the_console_is_answered_with_its_policy() {
    let server = Server::start();
    let page = server.get("/");
    assert_eq!((page.status, page.header("content-type")), (200, "text/html; charset=utf-8"));
    let policy = page.header("content-security-policy");
    assert!(policy.starts_with("default-src 'none'; script-src 'self'") && !policy.contains("unsafe"), "{policy}");
    let again = http(server.address(), "GET", "/", &[("if-none-match", page.header("etag"))], b"").expect("it answers");
    assert_eq!((again.status, again.body.as_str()), (304, ""));
}

/// A server with the real model, and a browser.
struct Stage {
    browser: Browser,
    server: Server,
}

impl Stage {
    fn set(wish: Wish<'_>) -> Option<Self> {
        let browser = Browser::start(wish)?;
        Some(Self { browser, server: Server::start_at_home(&home()) })
    }

    fn enrol_everybody(&self) {
        let mut owner = vec!["--owner"];
        for (id, name) in PEOPLE {
            let url = self.server.url();
            let mut command = Command::new(binary());
            command.args(["enroll", "--person", id, "--name", name, "--server", &url]).args(owner.drain(..));
            let output = command.args(clips(id)).output().expect("the binary was built, so it starts");
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
    }

    /// The demo's conversation, spoken by a client of its own.
    fn stream(&self, conversation: &str) -> Stream {
        self.stream_at(SPEED, conversation)
    }

    fn stream_at(&self, speed: &str, conversation: &str) -> Stream {
        let voices = home().join("voices");
        let process = Command::new(binary())
            .arg("stream")
            .arg(voices.join("conversation.wav"))
            .arg("--segments")
            .arg(voices.join("conversation.rttm"))
            .args(["--server", &self.server.url(), "--speed", speed, "--conversation", conversation])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        Stream(process.expect("the binary was built, so it starts"))
    }

    /// Whether the conversation that is shown goes on.
    fn badge(&self) -> String {
        self.browser.text(&self.browser.find(".head .badge"))
    }

    fn open_enrolment(&self, name: &str) {
        self.browser.click(&self.browser.find("#enrol"));
        self.browser.write(&self.browser.find("#enrol-name"), name);
    }

    fn send_file(&self, file: &Path) {
        // The field itself is see-through; its label is what one sees.
        let field = self.browser.all("#enrol-file").remove(0);
        self.browser.write(&field, &file.display().to_string());
        self.browser.click(&self.browser.find_saying("dialog .button.primary:enabled", "Add the sample"));
    }

    fn page_is_clean(&self) {
        self.browser.assert_clean(&self.server.url());
    }

    fn is_accessible(&self, axe: &str, view: &str) {
        for scheme in ["light", "dark"] {
            self.browser.prefer(scheme);
            assert!(self.browser.script(axe, &[]).is_null());
            let found = self.browser.script_later(
                "const done = arguments[0]; axe.run(document).then(({violations, passes}) => done({held: passes.length, \
                 broken: violations.map((rule) => [rule.id, rule.help, ...rule.nodes.map((node) => node.html)])}), \
                 (error) => done({broken: [String(error)]}))",
            );
            assert_eq!(found["broken"], json!([]), "{view}, {scheme}");
            assert!(found["held"].as_u64().is_some_and(|rules| rules > 10), "the rules were applied: {found}");
        }
    }
}

/// A client that speaks; it is silenced with its handle.
struct Stream(Child);

impl Stream {
    fn ended(mut self) {
        let status = self.0.wait().expect("it is our child");
        assert!(status.success(), "{status}");
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // It may have ended by itself.
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// A person's clips to enrol.
fn clips(person: &str) -> Vec<PathBuf> {
    let folder = home().join("voices/people").join(person);
    let entries =
        std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}; run `make setup`", folder.display()));
    let mut clips: Vec<PathBuf> = entries.map(|entry| entry.expect("a folder can be listed").path()).collect();
    clips.sort();
    clips
}

/// Clips one after the other, as a microphone would hear them. The file goes with its directory.
fn joined(clips: &[PathBuf]) -> (PathBuf, Directory) {
    let samples = clips.iter().flat_map(|clip| {
        let bytes = std::fs::read(clip).expect("the demo's clips are there");
        bytes[44..].chunks_exact(2).map(|sample| i16::from_le_bytes([sample[0], sample[1]])).collect::<Vec<_>>()
    });
    let directory = Directory::new();
    let path = directory.file("voice.wav");
    std::fs::write(&path, sound::wav(&samples.collect::<Vec<_>>())).expect("the directory is writable");
    (path, directory)
}

/// `ROLLCALL_HOME`, else the home in the repository.
fn home() -> PathBuf {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.rollcall");
    let home = std::env::var_os("ROLLCALL_HOME").map_or(repository, PathBuf::from);
    // A browser takes no path with `..` in it.
    home.canonicalize().unwrap_or_else(|error| panic!("{}: {error}; run `make setup`", home.display()))
}
