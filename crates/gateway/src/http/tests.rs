//! Goal: the whole life of a person over HTTP, and a problem document for every wrong request.
//! Method: the real handlers, store and decoder in one actix application; an engine that hears tones.

use actix_web::body::MessageBody;
use actix_web::dev::{Service, ServiceResponse};
use actix_web::http::Method;
use actix_web::test::{TestRequest, init_service, read_body};
use actix_web::{App, Error, web};
use gpu_worker::Failure;
use serde_json::{Value, json};

use super::*;
use crate::capsule::Sealer;
use crate::config::Config;
use crate::store::SqliteStore;
use crate::testing::{TemporaryDirectory, ToneEngine, manifest, silence, tone, wav, wav_of};

struct Answer {
    status: u16,
    headers: header::HeaderMap,
    body: String,
}

impl Answer {
    fn header(&self, name: header::HeaderName) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or(Value::Null)
    }

    /// The code of a problem document, which the answer must be.
    fn code(&self) -> String {
        assert_eq!(self.header(header::CONTENT_TYPE), "application/problem+json", "{}", self.body);
        let problem = self.json();
        assert_eq!(problem["status"], self.status, "{problem}");
        assert!(problem["detail"].is_string() && problem["title"].is_string() && problem["type"].is_string());
        problem["code"].as_str().unwrap().to_owned()
    }
}

async fn send<S, R, B>(app: &S, request: R) -> Answer
where
    S: Service<R, Response = ServiceResponse<B>, Error = Error>,
    B: MessageBody,
{
    let response = app.call(request).await.expect("every error is an answer");
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let body = String::from_utf8(read_body(response).await.to_vec()).unwrap();
    Answer { status, headers, body }
}

/// A running interface: `ask!(service, METHOD "/path")`, with `json` or `bytes` as the body.
macro_rules! ask {
    ($app:expr, $method:ident $path:expr) => {
        send(&$app, TestRequest::with_uri($path).method(Method::$method).to_request()).await
    };
    ($app:expr, $method:ident $path:expr, json $body:expr) => {
        send(&$app, TestRequest::with_uri($path).method(Method::$method).set_json($body).to_request()).await
    };
    ($app:expr, $method:ident $path:expr, bytes $body:expr) => {
        send(&$app, TestRequest::with_uri($path).method(Method::$method).set_payload($body).to_request()).await
    };
}

struct Fixture {
    api: web::Data<Api>,
    service: web::Data<crate::live::Service>,
    engine: Arc<ToneEngine>,
    _directory: TemporaryDirectory,
}

fn fixture() -> Fixture {
    let directory = TemporaryDirectory::new();
    let store = Arc::new(SqliteStore::open(directory.path()).unwrap());
    let engine = ToneEngine::new();
    let people = People::open(store, &manifest()).unwrap();
    let service = crate::serve::assemble(&Config::default(), engine.clone(), &people, Sealer::ephemeral()).unwrap();
    Fixture {
        api: web::Data::new(Api::new(people, engine.clone())),
        service: web::Data::from(service),
        engine,
        _directory: directory,
    }
}

macro_rules! app {
    ($fixture:expr) => {
        init_service(App::new().app_data($fixture.api.clone()).app_data($fixture.service.clone()).configure(configure))
            .await
    };
}

// Below the macros, which it uses.
mod conversations;
mod watching;

#[actix_web::test]
async fn a_person_is_made_enrolled_identified_changed_and_deleted() {
    let fixture = fixture();
    let app = app!(fixture);
    let made = ask!(app, POST "/v1/people", json json!({"id": "anna", "name": "Anna", "owner": true}));
    assert_eq!((made.status, made.header(header::LOCATION)), (201, "/v1/people/anna"));
    assert_eq!(made.json()["enrolled"], false);

    let sample = ask!(app, POST "/v1/people/anna/samples", bytes wav(&tone(300.0, 3.0)));
    assert_eq!((sample.status, &sample.json()["accepted"]), (201, &json!(true)), "{}", sample.body);
    assert!(sample.json().get("cohesion").is_none());

    let shown = ask!(app, GET "/v1/people/anna").json();
    assert_eq!((&shown["enrolled"], &shown["samples"], &shown["owner"]), (&json!(true), &json!(1), &json!(true)));

    let ranked = ask!(app, POST "/v1/identify", bytes wav(&tone(300.0, 2.0))).json();
    assert_eq!((&ranked["people"][0]["person_id"], &ranked["people"][0]["level"]), (&json!("anna"), &json!(3)));
    assert!(ranked["people"][0]["distance"].as_f64().unwrap().abs() < 1e-6, "{ranked}");

    assert_eq!(shown["is_pinned"], false, "unless somebody asks for it");
    let pinned = ask!(app, PATCH "/v1/people/anna", json json!({"is_pinned": true})).json();
    assert_eq!((&pinned["is_pinned"], &pinned["owner"]), (&json!(true), &json!(true)));
    let made = ask!(app, POST "/v1/people", json json!({"id": "bert", "is_pinned": true})).json();
    assert_eq!(made["is_pinned"], true);
    ask!(app, DELETE "/v1/people/bert");

    let changed = ask!(app, PATCH "/v1/people/anna", json json!({"name": "Anna M.", "owner": false})).json();
    assert_eq!(changed["is_pinned"], true, "what is not named stays");
    assert_eq!((&changed["name"], &changed["owner"]), (&json!("Anna M."), &json!(false)));

    assert_eq!(ask!(app, DELETE "/v1/people/anna").status, 204);
    assert_eq!(ask!(app, GET "/v1/people/anna").code(), "no_such_person");
    assert_eq!(ask!(app, GET "/v1/people").json()["people"], json!([]));
}

#[actix_web::test]
async fn no_answer_holds_a_vector() {
    let fixture = fixture();
    let app = app!(fixture);
    ask!(app, POST "/v1/people", json json!({"id": "anna"}));
    let clip = wav(&tone(300.0, 3.0));
    let answers = [
        ask!(app, POST "/v1/people/anna/samples", bytes clip.clone()),
        ask!(app, GET "/v1/people/anna"),
        ask!(app, GET "/v1/people"),
        ask!(app, POST "/v1/identify", bytes clip),
    ];
    for answer in answers {
        assert!(answer.status < 300, "{}", answer.body);
        assert_eq!(longest_run_of_numbers(&answer.json()), 0, "{}", answer.body);
    }
}

fn longest_run_of_numbers(value: &Value) -> usize {
    match value {
        Value::Array(items) => {
            let own = if items.iter().all(Value::is_number) { items.len() } else { 0 };
            items.iter().map(longest_run_of_numbers).max().unwrap_or(0).max(own)
        }
        Value::Object(members) => members.values().map(longest_run_of_numbers).max().unwrap_or(0),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

#[actix_web::test]
async fn a_refused_sample_is_a_problem_with_its_report() {
    let fixture = fixture();
    let app = app!(fixture);
    ask!(app, POST "/v1/people", json json!({"id": "anna"}));
    let refused = ask!(app, POST "/v1/people/anna/samples", bytes wav(&[tone(300.0, 1.0), silence(1.0)].concat()));
    assert_eq!((refused.status, refused.code().as_str()), (422, "sample_refused"));
    let problem = refused.json();
    assert_eq!(problem["accepted"], false);
    assert!((problem["seconds_of_speech"].as_f64().unwrap() - 1.0).abs() < 0.05, "{problem}");
    assert!(problem["detail"].as_str().unwrap().contains("1.0 s of speech"), "{problem}");
}

#[actix_web::test]
async fn another_voice_is_taken_only_by_force() {
    let fixture = fixture();
    let app = app!(fixture);
    ask!(app, POST "/v1/people", json json!({"id": "anna"}));
    ask!(app, POST "/v1/people/anna/samples", bytes wav(&tone(300.0, 3.0)));
    let other = wav(&tone(900.0, 3.0));
    let refused = ask!(app, POST "/v1/people/anna/samples", bytes other.clone());
    assert_eq!(refused.code(), "sample_refused");
    assert!((refused.json()["cohesion"].as_f64().unwrap() - 1.0).abs() < 1e-6);
    assert_eq!(ask!(app, POST "/v1/people/anna/samples?force=true", bytes other).status, 201);
}

#[actix_web::test]
async fn every_wrong_request_about_people_is_a_problem_with_its_code() {
    let fixture = fixture();
    let app = app!(fixture);
    ask!(app, POST "/v1/people", json json!({"id": "anna", "owner": true}));
    let long = "x".repeat(257);
    for (body, status, code) in [
        (json!({"id": "anna"}), 409, "person_exists"),
        (json!({"id": "bert", "owner": true}), 409, "owner_exists"),
        (json!({"id": ""}), 422, "bad_name"),
        (json!({"id": "../etc"}), 422, "bad_name"),
        (json!({"id": long}), 422, "bad_name"),
        (json!({"id": "bert", "name": "a\nb"}), 422, "bad_name"),
        (json!({"id": "bert", "admin": true}), 400, "bad_json"),
        (json!({"id": 7}), 400, "bad_json"),
        (json!({"id": "bert", "is_pinned": "yes"}), 400, "bad_json"),
        (json!({}), 400, "bad_json"),
        (json!({"id": "bert", "name": "x".repeat(20_000)}), 413, "body_too_large"),
    ] {
        let answer = ask!(app, POST "/v1/people", json &body);
        assert_eq!((answer.status, answer.code().as_str()), (status, code), "{body}");
    }
    let patched = ask!(app, PATCH "/v1/people/anna", json json!({}));
    assert_eq!(patched.code(), "nothing_to_change");
    assert_eq!(ask!(app, PATCH "/v1/people/bert", json json!({"name": "B"})).code(), "no_such_person");
    assert_eq!(ask!(app, DELETE "/v1/people/bert").code(), "no_such_person");
    assert_eq!(ask!(app, GET "/v1/people/..%2F..%2Fetc").code(), "bad_name");
    assert_eq!(ask!(app, GET "/v1/people/%FF").code(), "bad_name");
    assert_eq!(fixture.api.people.snapshot().len(), 1);
}

#[actix_web::test]
async fn malformed_and_mislabelled_json_is_a_problem() {
    let fixture = fixture();
    let app = app!(fixture);
    let post = |kind: &'static str, body: &'static str| {
        TestRequest::post().uri("/v1/people").insert_header((header::CONTENT_TYPE, kind)).set_payload(body).to_request()
    };
    assert_eq!(send(&app, post("application/json", "{\"id\":")).await.code(), "bad_json");
    let mislabelled = send(&app, post("text/plain", "{\"id\":\"anna\"}")).await;
    assert_eq!((mislabelled.status, mislabelled.code().as_str()), (415, "not_json"));
}

#[actix_web::test]
async fn audio_that_is_wrong_is_a_problem_and_asks_nothing_of_the_model() {
    let fixture = fixture();
    let app = app!(fixture);
    ask!(app, POST "/v1/people", json json!({"id": "anna"}));
    for (body, status, code) in [
        (Vec::new(), 422, "bad_audio"),
        (b"not audio at all".repeat(9), 415, "audio_not_supported"),
        (wav_of(1, 1, 0, 16, &[0; 64]), 422, "bad_audio"),
        (wav(&vec![0; 301 * 16_000]), 413, "audio_too_long"),
    ] {
        for path in ["/v1/people/anna/samples", "/v1/identify"] {
            let answer = ask!(app, POST path, bytes body.clone());
            assert_eq!((answer.status, answer.code().as_str()), (status, code), "{path}: {}", answer.body);
        }
    }
    assert_eq!(ask!(app, POST "/v1/identify", bytes wav(&silence(5.0))).code(), "too_little_speech");
    assert_eq!(ask!(app, POST "/v1/people/bert/samples", bytes wav(&tone(300.0, 3.0))).code(), "no_such_person");
    assert_eq!(ask!(app, POST "/v1/people/anna/samples?force=maybe", bytes Vec::new()).code(), "bad_query");
    assert_eq!(fixture.engine.clips(), 0);
}

#[actix_web::test]
async fn a_body_that_declares_or_sends_too_much_is_refused() {
    let fixture = fixture();
    let app = app!(fixture);
    let declared = TestRequest::post().uri("/v1/identify").insert_header((header::CONTENT_LENGTH, "67108865"));
    let answer = send(&app, declared.to_request()).await;
    assert_eq!((answer.status, answer.code().as_str()), (413, "audio_too_long"));
    let sent = ask!(app, POST "/v1/identify", bytes vec![0_u8; (64 << 20) + 1]);
    assert_eq!((sent.status, sent.code().as_str()), (413, "audio_too_long"));
}

#[actix_web::test]
async fn a_failing_model_is_told_without_its_insides_and_changes_nothing() {
    let fixture = fixture();
    let app = app!(fixture);
    ask!(app, POST "/v1/people", json json!({"id": "anna"}));
    for (failure, status, code) in [
        (Failure::Extraction("secret path".into()), 503, "extraction_failed"),
        (Failure::WorkerPanicked, 503, "extraction_failed"),
        (Failure::Unavailable, 503, "model_busy"),
        (Failure::Encoding("too short".into()), 422, "bad_audio"),
    ] {
        fixture.engine.fail_next(failure);
        let answer = ask!(app, POST "/v1/people/anna/samples", bytes wav(&tone(300.0, 3.0)));
        assert_eq!((answer.status, answer.code().as_str()), (status, code));
        assert!(!answer.body.contains("secret"), "{}", answer.body);
    }
    assert_eq!(ask!(app, GET "/v1/people/anna").json()["samples"], 0);
}

#[actix_web::test]
async fn an_unknown_path_and_a_wrong_method_are_problems() {
    let fixture = fixture();
    let app = app!(fixture);
    for path in ["/nowhere", "/v1", "/v1/people/", "/v1/people/a/b/c"] {
        let answer = ask!(app, GET path);
        assert_eq!((answer.status, answer.code().as_str()), (404, "no_such_path"), "{path}");
    }
    for (answer, allowed) in [
        (ask!(app, DELETE "/v1/people"), "GET, HEAD, POST"),
        (ask!(app, PUT "/v1/people/anna"), "GET, HEAD, PATCH, DELETE"),
        (ask!(app, GET "/v1/people/anna/samples"), "POST"),
        (ask!(app, GET "/v1/identify"), "POST"),
        (ask!(app, POST "/healthz"), "GET, HEAD"),
    ] {
        assert_eq!((answer.status, answer.code().as_str()), (405, "method_not_allowed"));
        assert_eq!(answer.header(header::ALLOW), allowed);
    }
}

#[actix_web::test]
async fn the_interface_document_lists_exactly_the_methods_that_answer() {
    let fixture = fixture();
    // Streams end at once then, and every path still answers.
    fixture.service.registry.begin_draining();
    let app = app!(fixture);
    let document = ask!(app, GET "/openapi.json").json();
    for (path, item) in document["paths"].as_object().unwrap() {
        let uri = path.replace("{id}", "nobody").replace("{speaker}", "1");
        for method in [Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
            let answer = send(&app, TestRequest::with_uri(&uri).method(method.clone()).to_request()).await;
            let documented = item.get(method.as_str().to_ascii_lowercase()).is_some();
            assert_eq!(answer.status != 405, documented, "{method} {path} answers {}", answer.status);
            assert!(answer.json()["code"] != "no_such_path", "{path} is not there");
        }
    }
}

#[actix_web::test]
async fn an_id_in_another_script_is_reached_by_its_location() {
    let fixture = fixture();
    let app = app!(fixture);
    let made = ask!(app, POST "/v1/people", json json!({"id": "安娜:1"}));
    let location = made.header(header::LOCATION).to_owned();
    assert_eq!(ask!(app, GET & location).json()["id"], "安娜:1", "{location}");
}

#[actix_web::test]
async fn healthz_answers() {
    let fixture = fixture();
    let app = app!(fixture);
    assert_eq!(ask!(app, GET "/healthz").json(), json!({"status": "ok"}));
}
