//! Goal: an HTTP client that is wrong is told so in a problem document, with the right status, and nothing else happens.
//! Method: a real server; requests written by hand.

use rollcall_tests::server::{Answer, Server, http};
use rollcall_tests::sound::{self, OWNER};
use serde_json::json;

#[test]
fn a_wrong_path_or_method_is_a_problem_document() {
    let server = Server::start();
    let ask = |method: &str, path: &str| http(server.address(), method, path, &[], b"").unwrap();
    for (method, path, status, code) in [
        ("GET", "/v1/nowhere", 404, "no_such_path"),
        ("GET", "/v1/people/nobody", 404, "no_such_person"),
        ("GET", "/v1/conversations/none", 404, "no_such_conversation"),
        ("POST", "/v1/listen", 405, "method_not_allowed"),
        ("DELETE", "/metrics", 405, "method_not_allowed"),
        ("PUT", "/v1/people", 405, "method_not_allowed"),
        ("POST", "/healthz", 405, "method_not_allowed"),
        ("GET", "/v1/listen", 400, "bad_handshake"),
    ] {
        let answer = ask(method, path);
        problem(&answer, status, code);
        assert_eq!(answer.header("allow").is_empty(), status != 405, "{method} {path}: {}", answer.head);
    }
}

#[test]
fn a_server_that_is_up_says_so() {
    let server = Server::start();
    assert_eq!(server.get("/healthz").json(), json!({"status": "ok"}));
    let ready = server.get("/readyz");
    assert_eq!((ready.status, &ready.json()["model"]), (200, &json!("scripted")));
    assert_eq!(server.get("/v1/conversations").json(), json!({"conversations": []}));
}

#[test]
fn a_wav_file_that_claims_more_than_it_has_is_taken_as_far_as_it_goes() {
    let server = Server::start();
    for (claimed, spoken) in [(0xFFFF_FFFF, "anna"), (0xFFFF_1000, "ben")] {
        assert_eq!(server.post("/v1/people", &json!({"id": spoken})).status, 201);
        let clip = sound::wav_that_claims(claimed, &sound::tone(OWNER, 3.0));
        let answer = http(server.address(), "POST", &format!("/v1/people/{spoken}/samples"), &[], &clip).unwrap();
        assert_eq!((answer.status, &answer.json()["seconds_of_speech"]), (201, &json!(3.0)), "{}", answer.body);
    }
}

#[test]
fn bytes_that_are_no_fit_sample_are_refused_with_the_reason() {
    let server = Server::start();
    assert_eq!(server.post("/v1/people", &json!({"id": "anna"})).status, 201);
    let cut_header = &sound::wav(&sound::tone(OWNER, 3.0))[..30];
    let (short, silence) = (sound::wav(&sound::tone(OWNER, 0.3)), sound::wav(&vec![0; 48_000]));
    for (bytes, status) in [(&b""[..], 422), (b"notes", 415), (cut_header, 422), (&short, 422), (&silence, 422)] {
        let answer = sample(&server, bytes);
        assert_eq!(answer.header("content-type"), "application/problem+json", "{}", answer.body);
        assert_eq!(answer.status, status, "{}", answer.body);
        assert!(!answer.json()["detail"].as_str().unwrap_or_default().is_empty(), "{}", answer.body);
    }
    assert_eq!(server.get("/v1/people/anna").json()["samples"], 0);
}

fn sample(server: &Server, bytes: &[u8]) -> Answer {
    http(server.address(), "POST", "/v1/people/anna/samples", &[("content-type", "audio/wav")], bytes).unwrap()
}

fn problem(answer: &Answer, status: u16, code: &str) {
    assert_eq!((answer.status, answer.header("content-type")), (status, "application/problem+json"), "{}", answer.body);
    let problem = answer.json();
    assert_eq!((&problem["code"], &problem["status"]), (&json!(code), &json!(status)));
    assert!(!problem["detail"].as_str().unwrap_or_default().is_empty(), "{}", answer.body);
}

#[tokio::test]
async fn a_name_that_is_not_this_machines_is_refused_and_a_health_check_may_ask_with_head() {
    let server = Server::start();
    let ask = |method: &str, path: &str, headers: &[(&str, &str)]| {
        rollcall_tests::server::http(server.address(), method, path, headers, b"").unwrap()
    };
    let rebound = ask("GET", "/v1/people", &[("Host", "evil.example"), ("Origin", "http://evil.example")]);
    assert_eq!((rebound.status, &rebound.json()["code"]), (421, &json!("other_host")));
    for path in ["/healthz", "/readyz", "/metrics", "/v1/people", "/docs"] {
        assert_eq!(ask("HEAD", path, &[]).status, 200, "{path}");
    }
    assert_eq!((ask("GET", "/", &[]).status, ask("GET", "/docs", &[]).status), (200, 200));
}
