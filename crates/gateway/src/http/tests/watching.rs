//! Goal: whoever watches sees what goes on as it changes, and every voice says why it has its name, or none.
//! Method: the real handlers, writer and store; the stream is read event by event while the fixture changes.

use super::conversations::{begin, stage};
use super::*;

/// The next event of a stream of them: its name and its data.
async fn next<B: MessageBody + Unpin>(body: &mut B) -> Option<(String, Value)> {
    let mut body = std::pin::Pin::new(body);
    loop {
        let part = std::future::poll_fn(|context| body.as_mut().poll_next(context)).await?;
        let text = String::from_utf8(part.ok()?.to_vec()).expect("events are text");
        let line = |begins: &str| text.lines().find_map(|line| line.strip_prefix(begins).map(str::to_owned));
        if let (Some(name), Some(data)) = (line("event: "), line("data: ")) {
            return Some((name, serde_json::from_str(&data).expect("an event's data is JSON")));
        }
    }
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
    let app = app!(fixture);
    let mut events = watch!(app, "/v1/watch");
    let ids = |data: &Value| data["conversations"].as_array().unwrap().iter().map(|one| one["id"].clone()).collect::<Vec<_>>();
    let (name, data) = next(&mut events).await.unwrap();
    assert_eq!((name.as_str(), ids(&data)), ("conversations", vec![json!("talk")]));
    fixture.service.history.opened("another");
    let (name, data) = next(&mut events).await.unwrap();
    assert_eq!((name.as_str(), ids(&data).len()), ("conversations", 2), "{data}");
}

#[actix_web::test]
async fn a_conversation_is_told_while_it_lives_and_its_end_once() {
    let fixture = stage().await;
    let app = app!(fixture);
    let mut events = watch!(app, "/v1/watch?conversation_id=talk");
    assert_eq!(next(&mut events).await.unwrap().0, "conversations");
    // Both came in one part; the end of what is not live is told at once.
    let mut ended = watch!(app, "/v1/watch?conversation_id=nowhere");
    let part = std::future::poll_fn(|context| std::pin::Pin::new(&mut ended).poll_next(context)).await.unwrap().unwrap();
    let text = String::from_utf8(part.to_vec()).unwrap();
    assert!(text.contains("event: ended\ndata: {\"conversation_id\":\"nowhere\"}"), "{text}");

    begin(&fixture, "talk");
    let (name, data) = loop {
        let event = next(&mut events).await.unwrap();
        if event.0 == "conversation" {
            break event;
        }
    };
    assert_eq!((name.as_str(), &data["live"], &data["conversation_id"]), ("conversation", &json!(true), &json!("talk")));
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
    drop(watch!(app, "/v1/watch"));
}

#[actix_web::test]
async fn a_stream_ends_when_the_service_drains() {
    let fixture = stage().await;
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
