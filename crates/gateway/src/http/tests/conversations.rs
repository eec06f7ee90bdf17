//! Goal: what was heard is listed, shown, exported, corrected and deleted after the end, always as it is known by now.
//! Method: the real handlers, writer and store; a conversation's pages are pushed as its scheduler would.

use std::time::Duration;

use futures_util::FutureExt as _;

use super::*;
use crate::live::ConversationKey;
use crate::store::{Page, SegmentRecord, VoiceRecord};

const LABELS: &str = "/v1/conversations/talk/labels";
const EXPORT: &str = "/v1/conversations/talk/export";

fn segment(id: &str, speaker: u32, scope: &str, start: f64) -> SegmentRecord {
    SegmentRecord { id: id.into(), speaker, scope: scope.into(), start, end: start + 2.0 }
}

fn voice(speaker: u32, scope: &str, status: &str, person: Option<&str>) -> VoiceRecord {
    VoiceRecord {
        speaker,
        scope: scope.into(),
        label: None,
        status: status.into(),
        person: person.map(str::to_owned),
        origin: "automatic".into(),
        distance: Some(0.25),
        runner_up: None,
        evidence_seconds: 4.0,
        attempts: 1,
    }
}

/// Anna is the owner and voice 1, voice 2 is nobody; after a restart of the provider voice 2 is somebody else.
fn talk() -> Page {
    Page {
        recording: "my phone".into(),
        segments: vec![
            segment("s1", 1, "a:0", 0.0),
            segment("s2", 2, "a:0", 2.0),
            segment("s3", 1, "a:0", 4.0),
            segment("s4", 2, "a:1", 6.0),
        ],
        voices: vec![
            voice(1, "a:0", "user", Some("anna")),
            voice(2, "a:0", "no_match", None),
            voice(2, "a:1", "pending", None),
        ],
    }
}

/// People, and a conversation that ended.
pub(super) async fn stage() -> Fixture {
    let fixture = fixture();
    let app = app!(fixture);
    assert_eq!(ask!(app, POST "/v1/people", json json!({"id": "anna", "name": "Anna A.", "owner": true})).status, 201);
    assert_eq!(ask!(app, POST "/v1/people", json json!({"id": "ben", "name": "Ben"})).status, 201);
    fixture.service.history.opened("talk");
    fixture.service.history.push("talk", talk());
    fixture
}

/// Starts a conversation without a lane.
pub(super) fn begin(fixture: &Fixture, conversation: &str) {
    let key = ConversationKey { account: "local".into(), conversation: conversation.into() };
    let service = fixture.service.clone().into_inner();
    service.registry.conversation(&service, &key).expect("there is room for a conversation");
}

/// Segment, person, status, source and the rest of the decision.
fn truths(export: &Value) -> Vec<Value> {
    let told = |segment: &Value| {
        let keys = ["segment_id", "person_id", "status", "source", "manual"];
        Value::Array(keys.map(|key| segment.get(key).cloned().unwrap_or_default()).into())
    };
    export["segments"].as_array().expect("an export has segments").iter().map(told).collect()
}

#[actix_web::test]
async fn conversations_are_listed_live_ones_first_and_then_the_newest() {
    let fixture = stage().await;
    let app = app!(fixture);
    fixture.service.history.wait_for_disk().await;
    begin(&fixture, "now");
    let listed = ask!(app, GET "/v1/conversations").json();
    let lives: Vec<_> = listed["conversations"].as_array().unwrap().iter().map(|c| (&c["id"], &c["live"])).collect();
    assert_eq!(lives, [(&json!("now"), &json!(true)), (&json!("talk"), &json!(false))]);
    let talk = &listed["conversations"][1];
    assert!(talk["started_at"].as_f64() <= talk["updated_at"].as_f64() && talk["started_at"].as_f64() > Some(1e9));
    let newest = ask!(app, GET "/v1/conversations?limit=1").json();
    assert_eq!(
        (&newest["conversations"][0]["id"], newest["conversations"].as_array().unwrap().len()),
        (&json!("now"), 1)
    );
    for limit in ["0", "1001"] {
        let refused = ask!(app, GET & format!("/v1/conversations?limit={limit}"));
        assert_eq!((refused.status, &refused.json()["field"]), (422, &json!("limit")));
    }
    assert_eq!(ask!(app, GET "/v1/conversations?limit=few").code(), "bad_query");
}

#[actix_web::test]
async fn an_ended_conversation_is_shown_by_recording_with_its_voices_as_they_are_known_by_now() {
    let fixture = stage().await;
    let app = app!(fixture);
    let label = json!({"type": "label", "speaker": 2, "scope": "a:1", "person_id": "ben"});
    assert_eq!(ask!(app, POST LABELS, json label).json(), json!({"receipt_generation": 1}));
    let shown = ask!(app, GET "/v1/conversations/talk").json();
    assert_eq!((&shown["live"], &shown["receipt_generation"]), (&json!(false), &json!(1)));
    assert_eq!(
        shown["lanes"],
        json!([{"recording_id": "my phone", "voices": [
            {"speaker": 1, "scope": "a:0", "status": "user", "person_id": "anna", "person_name": "Anna A.",
             "source": "automatic", "distance": 0.25, "evidence_seconds": 4.0, "attempts": 1},
            {"speaker": 2, "scope": "a:0", "status": "no_match", "source": "automatic", "distance": 0.25,
             "evidence_seconds": 4.0, "attempts": 1},
            {"speaker": 2, "scope": "a:1", "status": "not_user", "person_id": "ben", "person_name": "Ben",
             "source": "manual", "manual": {"generation": 1}, "distance": 0.25, "evidence_seconds": 4.0, "attempts": 1},
        ]}])
    );
    begin(&fixture, "now");
    let live = ask!(app, GET "/v1/conversations/now").json();
    assert_eq!(live, json!({"live": true, "conversation_id": "now", "receipt_generation": 0, "lanes": []}));
    assert_eq!(ask!(app, GET "/v1/conversations/never").code(), "no_such_conversation");
}

#[actix_web::test]
async fn every_segment_is_exported_with_its_newest_truth_and_where_that_comes_from() {
    let fixture = stage().await;
    let app = app!(fixture);
    let export = ask!(app, GET EXPORT);
    assert_eq!(export.header(header::CONTENT_TYPE), "application/json");
    assert_eq!(export.header(header::CONTENT_DISPOSITION), "attachment; filename=\"talk.json\"");
    let first = json!({"recording_id": "my phone", "segment_id": "s1", "speaker": 1, "scope": "a:0", "start": 0.0,
        "end": 2.0, "status": "user", "person_id": "anna", "person_name": "Anna A.", "source": "automatic"});
    assert_eq!((&export.json()["segments"][0], &export.json()["receipt_generation"]), (&first, &json!(0)));

    for (edit, generation) in [
        (json!({"type": "reject", "speaker": 2, "scope": "a:0", "kind": "not_a_person"}), 1),
        (json!({"type": "label", "speaker": 1, "person_id": "ben", "segment_ids": ["s3"], "segment_only": true}), 2),
    ] {
        assert_eq!(ask!(app, POST LABELS, json edit).json(), json!({"receipt_generation": generation}));
    }
    let export = ask!(app, GET EXPORT).json();
    assert_eq!(export["receipt_generation"], 2);
    assert_eq!(
        truths(&export),
        [
            json!(["s1", "anna", "user", "automatic", null]),
            json!(["s2", null, "no_match", "manual", {"generation": 1}]),
            json!(["s3", "ben", "not_user", "manual", {"generation": 2, "segment_only": true}]),
            json!(["s4", null, "pending", "none", null]),
        ]
    );
    assert_eq!(ask!(app, DELETE "/v1/people/anna").status, 204);
    let export = ask!(app, GET EXPORT).json();
    assert_eq!(truths(&export)[0], json!(["s1", null, "no_match", "automatic", null]), "she is not enrolled any more");
}

#[actix_web::test]
async fn an_export_is_rttm_or_webvtt_on_request_and_tells_two_voices_of_one_number_apart() {
    let fixture = stage().await;
    let app = app!(fixture);
    let rttm = ask!(app, GET & format!("{EXPORT}?format=rttm"));
    assert_eq!(rttm.header(header::CONTENT_TYPE), "text/plain; charset=utf-8");
    assert_eq!(rttm.header(header::CONTENT_DISPOSITION), "attachment; filename=\"talk.rttm\"");
    assert_eq!(
        rttm.body,
        "SPEAKER my_phone 1 0.000 2.000 <NA> <NA> anna <NA> <NA>\n\
         SPEAKER my_phone 1 2.000 2.000 <NA> <NA> SPEAKER_02 <NA> <NA>\n\
         SPEAKER my_phone 1 4.000 2.000 <NA> <NA> anna <NA> <NA>\n\
         SPEAKER my_phone 1 6.000 2.000 <NA> <NA> SPEAKER_02.2 <NA> <NA>\n"
    );
    let vtt = ask!(app, GET & format!("{EXPORT}?format=vtt"));
    assert_eq!(vtt.header(header::CONTENT_TYPE), "text/vtt; charset=utf-8");
    assert!(vtt.body.starts_with("WEBVTT\n\n00:00:00.000 --> 00:00:02.000\n<v Anna A.>Anna A.\n"), "{}", vtt.body);
    let refused = ask!(app, GET & format!("{EXPORT}?format=xml"));
    assert_eq!((refused.status, refused.code().as_str()), (422, "invalid_field"));
    assert_eq!(refused.json()["field"], "format");
    assert!(["rttm", "vtt", "json"].iter().all(|format| refused.body.contains(format)), "{}", refused.body);
    assert_eq!(ask!(app, GET "/v1/conversations/never/export").code(), "no_such_conversation");
}

#[actix_web::test]
async fn one_recording_of_a_conversation_can_be_exported_alone() {
    let fixture = stage().await;
    let app = app!(fixture);
    let tablet = Page { recording: "tablet".into(), segments: vec![segment("t1", 7, "b:0", 1.0)], voices: Vec::new() };
    fixture.service.history.push("talk", tablet);
    assert_eq!(ask!(app, GET EXPORT).json()["segments"].as_array().unwrap().len(), 5);
    let alone = ask!(app, GET & format!("{EXPORT}?format=rttm&recording_id=tablet")).body;
    assert_eq!(alone, "SPEAKER tablet 1 1.000 2.000 <NA> <NA> SPEAKER_07 <NA> <NA>\n");
    let cues = ask!(app, GET & format!("{EXPORT}?format=vtt")).body;
    let starts: Vec<&str> = cues.lines().filter_map(|line| line.split_once(" --> ")).map(|(start, _)| start).collect();
    assert!(starts.is_sorted() && starts.len() == 5, "{cues}");
    let unknown = ask!(app, GET & format!("{EXPORT}?recording_id=radio"));
    assert_eq!((unknown.code().as_str(), &unknown.json()["field"]), ("no_such_recording", &json!("recording_id")));
}

// B7.95
#[actix_web::test]
async fn a_late_correction_with_a_segment_that_is_unknown_or_anothers_is_refused_whole() {
    let fixture = stage().await;
    let app = app!(fixture);
    let nothing = ask!(app, GET LABELS).json();
    for ids in [json!(["s1", "s9"]), json!(["s1", "s2"]), json!(["s1", "s4"])] {
        let edit = json!({"type": "label", "speaker": 1, "person_id": "ben", "segment_ids": ids});
        let refused = ask!(app, POST LABELS, json edit);
        assert_eq!((refused.status, refused.code().as_str()), (422, "other_voice"), "{ids}");
        assert_eq!(refused.json()["field"], "segment_ids");
    }
    assert_eq!(ask!(app, GET LABELS).json(), nothing);
}

#[actix_web::test]
async fn a_late_correction_of_a_number_that_is_several_voices_must_name_the_stream() {
    let fixture = stage().await;
    let app = app!(fixture);
    let edit = |speaker: u32| json!({"type": "label", "speaker": speaker, "person_id": "ben"});
    let older = json!({"type": "label", "speaker": 2, "person_id": "ben", "segment_ids": ["s2"]});
    for unclear in [edit(2), older.clone()] {
        let refused = ask!(app, POST LABELS, json unclear);
        assert_eq!((refused.status, refused.code().as_str()), (422, "ambiguous_speaker"));
        assert_eq!(refused.json()["field"], "scope");
    }
    assert_eq!(ask!(app, GET LABELS).json()["generation"], 0);
    let mut scoped = older;
    scoped["scope"] = json!("a:0");
    assert_eq!(ask!(app, POST LABELS, json scoped).json(), json!({"receipt_generation": 1}));
    assert_eq!(ask!(app, POST LABELS, json edit(1)).json(), json!({"receipt_generation": 2}), "it is one voice");
    let unheard = ask!(app, POST LABELS, json edit(5));
    assert_eq!((unheard.code().as_str(), &unheard.json()["field"]), ("unheard", &json!("speaker")));
    let nowhere = ask!(app, POST "/v1/conversations/never/labels", json edit(2));
    assert_eq!((nowhere.status, nowhere.code().as_str()), (404, "no_such_conversation"));
}

/// Its time is the latest, and says nothing: another recording has another clock.
#[actix_web::test]
async fn a_late_correction_of_a_number_of_two_recordings_must_name_the_recording() {
    let fixture = stage().await;
    let app = app!(fixture);
    let tablet = Page { recording: "tablet".into(), segments: vec![segment("s1", 1, "a:0", 60.0)], voices: Vec::new() };
    fixture.service.history.push("talk", tablet);
    let mut edit = json!({"type": "label", "speaker": 1, "person_id": "ben", "segment_ids": ["s1"]});
    for scope in [Value::Null, json!("a:0")] {
        edit["scope"] = scope;
        assert_eq!(ask!(app, POST LABELS, json edit.clone()).code(), "ambiguous_speaker");
    }
    edit["recording_id"] = json!("my phone");
    assert_eq!(ask!(app, POST LABELS, json edit).json(), json!({"receipt_generation": 1}));
    let told = truths(&ask!(app, GET EXPORT).json());
    let of_s1: Vec<_> = told.iter().filter(|told| told[0] == "s1").map(|told| &told[1]).collect();
    assert_eq!(of_s1, [&json!("ben"), &Value::Null]);
}

#[actix_web::test]
async fn a_deletion_goes_on_when_its_client_hangs_up() {
    let fixture = stage().await;
    let app = app!(fixture);
    let label = json!({"type": "label", "speaker": 1, "person_id": "ben"});
    assert_eq!(ask!(app, POST LABELS, json label).status, 200);
    let corrections = &fixture.service.corrections;
    let known = corrections.hear("talk", 1, Vec::new()).await.expect("the store can be read");
    assert!(corrections.is_current(&known));

    let request = TestRequest::delete().uri("/v1/conversations/talk").to_request();
    let answer = app.call(request).now_or_never();
    assert!(answer.is_none(), "nobody waited for the answer");

    for _ in 0..1000 {
        if !corrections.is_current(&known) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(!corrections.is_current(&known), "schedulers that read the receipt read again");
    assert_eq!(ask!(app, GET "/v1/conversations/talk").code(), "no_such_conversation");
}

#[actix_web::test]
async fn whoever_is_enrolled_under_a_deleted_id_inherits_no_voice_also_none_that_waited_for_the_disk() {
    let fixture = stage().await;
    let app = app!(fixture);
    fixture.service.history.wait_for_disk().await;
    let late = Page { voices: vec![voice(3, "a:1", "user", Some("anna"))], ..talk() };
    fixture.service.history.push("talk", late);
    assert_eq!(ask!(app, DELETE "/v1/people/anna").status, 204);
    assert_eq!(ask!(app, POST "/v1/people", json json!({"id": "anna", "owner": true})).status, 201);
    let shown = ask!(app, GET "/v1/conversations/talk").json();
    let voices = shown["lanes"][0]["voices"].as_array().expect("an ended conversation has voices");
    let told: Vec<_> =
        voices.iter().map(|voice| (&voice["speaker"], &voice["status"], voice.get("person_id"))).collect();
    let nobody = |speaker| (speaker, &voices[0]["status"], None);
    assert_eq!(voices[0]["status"], "no_match");
    assert_eq!([told[0], told[3]], [nobody(&json!(1)), nobody(&json!(3))]);
}

#[actix_web::test]
async fn a_conversation_is_deleted_with_its_corrections_once_it_has_ended() {
    let fixture = stage().await;
    let app = app!(fixture);
    begin(&fixture, "now");
    let live = ask!(app, DELETE "/v1/conversations/now");
    assert_eq!((live.status, live.code().as_str()), (409, "conversation_live"));
    let edit = json!({"type": "label", "speaker": 1, "person_id": "ben"});
    assert_eq!(ask!(app, POST LABELS, json edit.clone()).status, 200);
    assert_eq!(ask!(app, DELETE "/v1/conversations/talk").status, 204);
    assert_eq!(ask!(app, DELETE "/v1/conversations/talk").code(), "no_such_conversation");
    assert_eq!(ask!(app, GET "/v1/conversations/talk").code(), "no_such_conversation");
    assert_eq!(ask!(app, GET EXPORT).code(), "no_such_conversation");
    assert_eq!(ask!(app, POST LABELS, json edit).code(), "no_such_conversation");
    assert_eq!(ask!(app, GET LABELS).json(), json!({"generation": 2, "voices": [], "segments": []}));
}
