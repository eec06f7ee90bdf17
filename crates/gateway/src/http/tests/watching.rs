//! Goal: whoever watches sees what goes on as it changes, and every voice says why it has its name, or none.
//! Method: the real handlers, writer and store; the stream is read event by event while the fixture changes.

use super::conversations::{begin, stage};
use super::*;

/// The events of a stream's next part: their names and their data.
async fn next<B: MessageBody + Unpin>(body: &mut B) -> Option<Vec<(String, Value)>> {
    let mut body = std::pin::Pin::new(body);
    let part = std::future::poll_fn(|context| body.as_mut().poll_next(context)).await?.ok()?;
    let text = String::from_utf8(part.to_vec()).expect("events are text");
    let events = text.split_terminator("\n\n").map(|event| {
        let line =
            |begins: &str| event.lines().find_map(|line| line.strip_prefix(begins)).expect("an event has both lines");
        (line("event: ").to_owned(), serde_json::from_str(line("data: ")).expect("an event's data is JSON"))
    });
    Some(events.collect())
}

fn names(events: &[(String, Value)]) -> Vec<&str> {
    events.iter().map(|(name, _)| name.as_str()).collect()
}

macro_rules! watch {
    ($app:expr, $path:expr) => {{
        let response = $app.call(TestRequest::with_uri($path).to_request()).await.expect("every error is an answer");
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers().get(header::CONTENT_TYPE).unwrap(), "text/event-stream");
        response.into_body()
    }};
}

#[actix_web::test]
async fn a_watcher_is_told_the_list_and_hears_of_what_begins() {
    let fixture = stage().await;
    fixture.service.history.wait_for_disk().await;
    let app = app!(fixture);
    let mut events = watch!(app, "/v1/watch");
    let ids = |data: &Value| {
        data["conversations"].as_array().unwrap().iter().map(|one| one["id"].clone()).collect::<Vec<_>>()
    };
    let first = next(&mut events).await.unwrap();
    assert_eq!((names(&first), ids(&first[0].1)), (vec!["conversations"], vec![json!("talk")]));
    fixture.service.history.opened("another");
    let second = next(&mut events).await.unwrap();
    assert_eq!((names(&second), ids(&second[0].1).len()), (vec!["conversations"], 2), "{second:?}");
}

#[actix_web::test]
async fn the_end_of_a_conversation_is_told_once() {
    let fixture = stage().await;
    fixture.service.history.wait_for_disk().await;
    let app = app!(fixture);
    let mut events = watch!(app, "/v1/watch?conversation_id=nowhere");
    let first = next(&mut events).await.unwrap();
    assert_eq!(names(&first), ["conversations", "ended"], "what is not live has ended");
    assert_eq!(first[1].1, json!({"conversation_id": "nowhere"}));
    fixture.service.history.opened("another");
    assert_eq!(names(&next(&mut events).await.unwrap()), ["conversations"], "the end is not told again");
}

#[actix_web::test]
async fn watchers_are_bounded_and_a_place_is_free_when_one_leaves() {
    let fixture = stage().await;
    let app = app!(fixture);
    let mut all = Vec::new();
    for _ in 0..watch::WATCHERS_MAX {
        all.push(watch!(app, "/v1/watch"));
    }
    let refused = ask!(app, GET "/v1/watch");
    assert_eq!((refused.status, refused.code()), (503, "capacity".to_owned()));
    all.pop();
    let is_free = || fixture.api.watchers.available_permits() > 0;
    let freed = async {
        while !is_free() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(30), freed).await.expect("who leaves gives its place back");
    drop(watch!(app, "/v1/watch"));
}

#[actix_web::test]
async fn a_stream_ends_when_the_service_drains() {
    let fixture = stage().await;
    fixture.service.history.wait_for_disk().await;
    let app = app!(fixture);
    let mut events = watch!(app, "/v1/watch");
    assert!(next(&mut events).await.is_some());
    fixture.service.registry.begin_draining();
    assert!(next(&mut events).await.is_none());
}

#[actix_web::test]
async fn a_voice_of_an_ended_conversation_says_why_it_has_its_name_or_none() {
    let fixture = stage().await;
    let app = app!(fixture);
    let told = ask!(app, GET "/v1/conversations/talk/voices/2/explain").json();
    assert_eq!((&told["live"], told["voices"].as_array().unwrap().len()), (&json!(false), 2), "one a stream: {told}");
    assert_eq!(told["voices"][0]["explanation"]["summary"], "It got no name.");
    assert!(!told["voices"][0]["explanation"]["missing"].as_array().unwrap().is_empty(), "{told}");
    let told = ask!(app, GET "/v1/conversations/talk/voices/1/explain").json();
    assert_eq!(told["voices"][0]["explanation"]["summary"], "This is Anna A..");

    for (path, status, code) in [
        ("/v1/conversations/talk/voices/9/explain", 404, "no_such_voice"),
        ("/v1/conversations/nowhere/voices/1/explain", 404, "no_such_conversation"),
        ("/v1/conversations/talk/voices/anna/explain", 422, "invalid_field"),
        ("/v1/conversations/talk/voices/-1/explain", 422, "invalid_field"),
    ] {
        let wrong = ask!(app, GET path);
        assert_eq!((wrong.status, wrong.code()), (status, code.to_owned()), "{path}");
    }
    begin(&fixture, "talk");
    let live = ask!(app, GET "/v1/conversations/talk/voices/1/explain");
    assert_eq!((live.status, live.code()), (404, "no_such_voice".to_owned()), "nobody has spoken since it began again");
}
