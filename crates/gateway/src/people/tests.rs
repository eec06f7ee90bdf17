//! Goal: only good samples move a print, every change reaches the matching at once, and no change reaches it by half.
//! Method: the real store in a temporary directory, and an engine that gives each tone its own voiceprint.

mod moody;
mod retries;

use gpu_worker::Engine as _;
use moody::Moody;

use super::*;
use crate::audio::Audio;
use crate::store::{SampleFeatures, SqliteStore};
use crate::testing::{TemporaryDirectory, ToneEngine, manifest, rate, silence, tone};

struct Fixture {
    people: People,
    engine: Arc<ToneEngine>,
    store: Arc<SqliteStore>,
    _directory: TemporaryDirectory,
}

fn fixture() -> Fixture {
    let directory = TemporaryDirectory::new();
    let store = Arc::new(SqliteStore::open(directory.path()).unwrap());
    let engine = ToneEngine::new();
    let people = People::open(store.clone(), engine.manifest()).unwrap();
    Fixture { people, engine, store, _directory: directory }
}

impl Fixture {
    async fn enrol(&self, person: &str, pcm: Vec<i16>) -> SampleReport {
        self.enrol_with(Enrolment { person: person.into(), ..Enrolment::default() }, pcm).await.unwrap()
    }

    async fn enrol_with(&self, enrolment: Enrolment, pcm: Vec<i16>) -> Result<SampleReport, PeopleError> {
        self.people.enrol(&*self.engine, enrolment, &audio(pcm)).await
    }
}

fn audio(pcm: Vec<i16>) -> Audio {
    Audio { pcm: pcm.into(), sample_rate: rate() }
}

#[tokio::test]
async fn an_accepted_sample_is_in_the_snapshot_when_the_answer_comes() {
    let fixture = fixture();
    let change = PersonChange { name: Some("Anna".into()), is_owner: Some(true), is_pinned: Some(true) };
    let enrolment = Enrolment { person: "anna".into(), change, ..Enrolment::default() };
    let report = fixture.enrol_with(enrolment, tone(300.0, 3.0)).await.unwrap();
    assert!(report.accepted && report.cohesion.is_none() && report.sounds_like.is_none(), "{report:?}");
    assert!((report.seconds_of_speech - 3.0).abs() < 0.05, "{report:?}");
    let anna = fixture.people.find("anna").unwrap();
    assert_eq!((anna.name.as_str(), anna.is_owner, anna.samples), ("Anna", true, 1));
    assert!(anna.print.is_some() && anna.is_pinned);
}

#[tokio::test]
async fn a_second_sample_tells_how_near_it_is_to_the_first() {
    let fixture = fixture();
    fixture.enrol("anna", tone(300.0, 3.0)).await;
    let report = fixture.enrol("anna", tone(300.0, 4.0)).await;
    assert!(report.cohesion.unwrap().abs() < 1e-6, "{report:?}");
    let anna = fixture.people.find("anna").unwrap();
    assert!(anna.samples == 2 && (anna.seconds - 7.0).abs() < 0.1, "{anna:?}");
}

#[tokio::test]
async fn a_clip_that_is_enrolled_already_is_refused_among_other_samples_and_even_by_force() {
    let fixture = fixture();
    fixture.enrol("anna", tone(300.0, 3.0)).await;
    let forced = || Enrolment { person: "anna".into(), force: Force::Yes, ..Enrolment::default() };
    assert!(fixture.enrol_with(forced(), tone(900.0, 4.0)).await.unwrap().accepted);
    for enrolment in [forced(), Enrolment { force: Force::No, ..forced() }] {
        let report = fixture.enrol_with(enrolment, tone(300.0, 3.0)).await.unwrap();
        let reason = report.reason.unwrap_or_default();
        assert!(!report.accepted && reason.contains("this clip is enrolled already"), "{reason:?}");
    }
    assert_eq!(fixture.people.find("anna").unwrap().samples, 2);
    assert!(fixture.enrol("bert", tone(300.0, 3.0)).await.accepted, "another person's samples do not count");
}

#[tokio::test]
async fn a_person_without_samples_has_zero_seconds_and_not_minus_zero() {
    let fixture = fixture();
    let anna = fixture.people.create("anna", PersonChange::default()).await.unwrap();
    assert_eq!(format!("{} {}", anna.seconds, anna.other_seconds), "0 0");
}

#[tokio::test]
async fn a_bad_clip_is_refused_with_its_reason_and_costs_no_extraction() {
    let clipped: Vec<i16> = tone(300.0, 4.0).iter().map(|v| if *v < 0 { i16::MIN } else { i16::MAX }).collect();
    for (pcm, words) in [
        (tone(300.0, 1.5), "1.5 s of speech, and a sample needs 2.0 s"),
        (silence(30.0), "0.0 s of speech"),
        ([tone(300.0, 2.5), silence(20.0)].concat(), "mostly silence: 2.5 s of speech in 22.5 s"),
        (clipped, "% of its samples are at full scale"),
    ] {
        let fixture = fixture();
        let report = fixture.enrol("anna", pcm).await;
        let reason = report.reason.clone().unwrap();
        assert!(!report.accepted && reason.contains(words), "{reason:?} should say {words:?}");
        assert_eq!((fixture.engine.clips(), fixture.people.snapshot().len()), (0, 0));
    }
}

#[tokio::test]
async fn another_voice_is_refused_unless_forced() {
    let fixture = fixture();
    fixture.enrol("anna", tone(300.0, 3.0)).await;
    let report = fixture.enrol("anna", tone(900.0, 3.0)).await;
    let reason = report.reason.unwrap();
    assert!(reason.contains("does not sound like earlier samples of anna: distance 1.00"), "{reason}");
    assert_eq!(fixture.people.find("anna").unwrap().samples, 1);
    let forced = Enrolment { person: "anna".into(), force: Force::Yes, ..Enrolment::default() };
    assert!(fixture.enrol_with(forced, tone(900.0, 3.0)).await.unwrap().accepted);
    assert_eq!(fixture.people.find("anna").unwrap().samples, 2);
}

#[tokio::test]
async fn a_sample_that_sounds_like_somebody_else_names_that_person() {
    let fixture = fixture();
    fixture.enrol("anna", tone(300.0, 3.0)).await;
    let report = fixture.enrol("bert", tone(300.0, 3.0)).await;
    assert_eq!((report.accepted, report.sounds_like.as_deref()), (true, Some("anna")));
    let report = fixture.enrol("carl", tone(900.0, 3.0)).await;
    assert_eq!((report.accepted, report.sounds_like), (true, None));
}

#[tokio::test]
async fn a_long_clip_is_cut_and_only_its_spoken_pieces_are_extracted() {
    let fixture = fixture();
    let report = fixture.enrol("anna", [tone(300.0, 20.0), silence(20.0)].concat()).await;
    assert!(report.accepted, "{report:?}");
    assert_eq!(fixture.engine.clips(), 2);
}

#[tokio::test]
async fn a_failed_extraction_changes_nothing() {
    let fixture = fixture();
    fixture.engine.fail_next(Failure::WorkerPanicked);
    let enrolment = Enrolment { person: "anna".into(), ..Enrolment::default() };
    let failed = fixture.enrol_with(enrolment, tone(300.0, 3.0)).await;
    assert!(matches!(failed, Err(PeopleError::Extraction(Failure::WorkerPanicked))));
    assert!(fixture.people.snapshot().is_empty() && fixture.store.people().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_full_queue_is_waited_for_and_not_for_ever() {
    let fixture = fixture();
    fixture.engine.fail_next(Failure::QueueFull);
    assert!(fixture.enrol("anna", tone(300.0, 3.0)).await.accepted);
    (0..1000).for_each(|_| fixture.engine.fail_next(Failure::QueueFull));
    let enrolment = Enrolment { person: "bert".into(), ..Enrolment::default() };
    let failed = fixture.enrol_with(enrolment, tone(300.0, 3.0)).await;
    assert!(matches!(failed, Err(PeopleError::Extraction(Failure::QueueFull))));
}

#[tokio::test]
async fn every_change_raises_the_revision_and_a_held_snapshot_stays_as_it_was() {
    let fixture = fixture();
    let mut revisions = fixture.people.on_change();
    fixture.people.create("anna", PersonChange::default()).await.unwrap();
    let held = fixture.people.snapshot();
    for step in 0..3 {
        assert!(revisions.has_changed().unwrap(), "before step {step}");
        revisions.mark_unchanged();
        match step {
            0 => assert!(fixture.enrol("anna", tone(300.0, 3.0)).await.accepted),
            1 => {
                let renamed = PersonChange { name: Some("A".into()), ..PersonChange::default() };
                assert_eq!(fixture.people.update("anna", renamed).await.unwrap().name, "A");
            }
            _ => fixture.people.delete("anna").await.unwrap(),
        }
    }
    assert!(revisions.has_changed().unwrap());
    assert!(fixture.people.snapshot().is_empty());
    assert_eq!((held.len(), held[0].samples), (1, 0));
}

/// The first reload sees the store before a second change and would finish after it, if a second one could start.
#[tokio::test]
async fn a_slow_reload_never_replaces_a_newer_snapshot() {
    let fixture = fixture();
    let (proceed, gate) = std::sync::mpsc::sync_channel(1);
    let store = Arc::new(Moody::new(fixture.store.clone()));
    let people = People::open(store.clone(), &manifest()).unwrap();
    store.stall_once(gate);
    let first = people.create("anna", PersonChange::default());
    let second = async {
        people.create("bert", PersonChange::default()).await.unwrap();
        proceed.try_send(()).unwrap_or_default();
    };
    tokio::join!(async { first.await.unwrap() }, second);
    assert_eq!(people.snapshot().len(), 2);
}

#[tokio::test]
async fn a_refused_change_leaves_snapshot_and_revision_alone() {
    let fixture = fixture();
    let owner = PersonChange { is_owner: Some(true), ..PersonChange::default() };
    fixture.people.create("anna", owner.clone()).await.unwrap();
    let revisions = fixture.people.on_change();
    assert!(matches!(fixture.people.create("bert", owner).await, Err(PeopleError::Store(StoreError::OwnerExists(_)))));
    assert!(matches!(fixture.people.delete("bert").await, Err(PeopleError::Store(StoreError::NoSuchPerson(_)))));
    assert!(!revisions.has_changed().unwrap());
    assert_eq!(fixture.people.snapshot().len(), 1);
}

#[tokio::test]
async fn prints_of_another_model_or_size_are_kept_and_never_compared() {
    let fixture = fixture();
    let features = |fingerprint: &str, values: &[f32]| SampleFeatures {
        seconds: 3.0,
        quality: 1.0,
        fingerprint: fingerprint.to_owned(),
        vector: Embedding::new(values).unwrap(),
    };
    let nothing = PersonChange::default();
    fixture.store.enrol("old", &nothing, &features("an older model", &[1.0; 32]), 1).unwrap();
    fixture.store.enrol("odd", &nothing, &features(&manifest().fingerprint, &[1.0; 512]), 1).unwrap();
    fixture.store.enrol("new", &nothing, &features(&manifest().fingerprint, &[1.0; 32]), 1).unwrap();
    let people = People::open(fixture.store.clone(), &manifest()).unwrap();
    let ranked = people.rank(&Embedding::new(&[1.0; 32]).unwrap());
    assert_eq!(ranked.iter().map(|person| person.person_id.as_str()).collect::<Vec<_>>(), ["new"]);
    let old = people.find("old").unwrap();
    assert!(old.needs_enrolment() && old.other_models == ["an older model"], "{old:?}");
    assert_eq!(fixture.store.samples().unwrap().len(), 3);
}

#[tokio::test]
async fn people_are_ranked_by_distance() {
    let fixture = fixture();
    fixture.enrol("anna", tone(300.0, 3.0)).await;
    fixture.enrol("bert", tone(900.0, 3.0)).await;
    let voice = voiceprint(&*fixture.engine, &audio(tone(900.0, 2.0))).await.unwrap();
    let ranked = fixture.people.rank(&voice);
    assert_eq!(ranked[0].person_id, "bert");
    assert!(ranked[0].distance.abs() < 1e-6 && (ranked[1].distance - 1.0).abs() < 1e-6, "{ranked:?}");
}
