//! From a decoded clip to a sample in the store: measure, refuse, extract, compare, keep.
//!
//! The audio itself is dropped at the end; only the vector and what was measured are kept. The limits stand in
//! [`super::gate`].

use std::time::Duration;

use gpu_worker::{Engine, Failure};
use matcher_core::{Centroid, Embedding};
use serde::Serialize;

use super::gate::{Refusal, check_clip, check_cohesion, is_same_clip};
use super::{People, PeopleError, now_ms, record};
use crate::audio::{Audio, Speech};
use crate::store::{PersonChange, SampleFeatures};

/// Seconds of one extraction, as in matching: enrolment must see the voice as matching will.
const PIECE_SECONDS_MAX: u32 = 10;

/// A piece with less speech than this only adds noise to the mean.
const PIECE_SPEECH_SECONDS_MIN: f64 = 1.0;

/// How long an enrolment waits for one extraction, running and waiting. A person waits for it, and no token is spent.
const PATIENCE: Duration = Duration::from_secs(15);

/// How long it waits before it knocks again at a full queue, and how often: live queries come first, for 15 s at most.
const KNOCK_AGAIN: Duration = Duration::from_millis(150);
const KNOCKS: u32 = 100;

/// Whose sample a clip is to be.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Enrolment {
    /// The person, made if missing.
    pub person: String,
    /// A new name, ownership and pin; what is `None` stays.
    pub change: PersonChange,
    /// Take the sample although it does not sound like the earlier ones. A clip that is kept already is never taken.
    pub force: Force,
}

/// Whether a sample is taken although it does not sound like the earlier ones.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Force {
    /// It is refused.
    #[default]
    No,
    /// It is taken.
    Yes,
}

/// What became of a clip.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SampleReport {
    /// Whose sample it was to be.
    pub person_id: String,
    /// Whether it is kept.
    pub accepted: bool,
    /// Why it is not, and how to do better.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Length of the clip.
    pub seconds: f64,
    /// Seconds of it that are speech.
    pub seconds_of_speech: f64,
    /// From 0 (hardly usable) to 1 (clean).
    pub quality: f64,
    /// Cosine distance to the person's earlier samples; absent for the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cohesion: Option<f64>,
    /// Another person whom it resembles enough to be taken for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sounds_like: Option<String>,
}

impl SampleReport {
    fn refused(mut self, refusal: &Refusal) -> Self {
        self.accepted = false;
        self.reason = Some(refusal.to_string());
        self
    }
}

impl People {
    /// Makes a sample of a clip, and the person with it if need be. A refused clip changes nothing; its report says why.
    ///
    /// # Errors
    /// When the model gives no voiceprint, or the store refuses or fails.
    pub async fn enrol(
        &self,
        engine: &dyn Engine,
        enrolment: Enrolment,
        audio: &Audio,
    ) -> Result<SampleReport, PeopleError> {
        let speech = Speech::of(audio);
        let mut report = SampleReport {
            person_id: enrolment.person.clone(),
            accepted: true,
            reason: None,
            seconds: audio.seconds(),
            seconds_of_speech: speech.seconds,
            quality: speech.quality,
            cohesion: None,
            sounds_like: None,
        };
        if let Err(refusal) = check_clip(audio, &speech) {
            return Ok(report.refused(&refusal));
        }
        let vector = voiceprint(engine, audio).await?;
        report.cohesion = self.find(&enrolment.person).and_then(|person| person.distance(&vector));
        report.sounds_like = self.resembled(&enrolment.person, &vector);
        if enrolment.force == Force::No
            && let Err(refusal) = check_cohesion(&enrolment.person, report.cohesion, self.model().near_miss_bound)
        {
            return Ok(report.refused(&refusal));
        }
        let fingerprint = self.model().fingerprint.clone();
        let features = SampleFeatures { seconds: speech.seconds, quality: speech.quality, fingerprint, vector };
        Ok(match self.keep(enrolment, features).await? {
            Ok(()) => report,
            Err(refusal) => report.refused(&refusal),
        })
    }

    /// Looks for the clip among the person's samples within the change, so that of two copies sent at once one is kept.
    async fn keep(&self, enrolment: Enrolment, features: SampleFeatures) -> Result<Result<(), Refusal>, PeopleError> {
        self.change(move |shared, loading| {
            let samples = shared.store.samples()?;
            let mut earlier = samples.iter().filter(|sample| sample.person == enrolment.person);
            if earlier.any(|sample| is_same_clip(&sample.features, &features)) {
                return Ok(Err(Refusal::EnrolledAlready));
            }
            shared.store.enrol(&enrolment.person, &enrolment.change, &features, now_ms())?;
            shared.reload_one(loading, &enrolment.person)?;
            Ok(Ok(()))
        })
        .await
    }

    /// The nearest other person, when a verdict could fall on that one.
    fn resembled(&self, person: &str, vector: &Embedding) -> Option<String> {
        let nearest = self.rank(vector).into_iter().find(|ranked| ranked.person_id != person)?;
        (nearest.distance < self.model().threshold).then_some(nearest.person_id)
    }
}

/// One voiceprint of a clip of any length: the mean over pieces of at most ten seconds, those without speech left out.
///
/// # Errors
/// When the model fails on a piece, or no worker is free for a long time.
pub async fn voiceprint(engine: &dyn Engine, audio: &Audio) -> Result<Embedding, Failure> {
    let pieces = audio.pieces(PIECE_SECONDS_MAX);
    let mut spoken: Vec<&Audio> =
        pieces.iter().filter(|piece| Speech::of(piece).seconds >= PIECE_SPEECH_SECONDS_MIN).collect();
    if spoken.is_empty() {
        spoken = pieces.iter().collect();
    }
    let mut vectors = Vec::with_capacity(spoken.len());
    for piece in spoken {
        vectors.push(extract(engine, piece).await?);
    }
    let mean = Centroid::of(&vectors).and_then(|centroid| record::mean(&centroid));
    mean.ok_or_else(|| Failure::Extraction("the pieces of the clip cancel one another out".to_owned()))
}

async fn extract(engine: &dyn Engine, piece: &Audio) -> Result<Embedding, Failure> {
    for _ in 1..KNOCKS {
        match engine.submit(piece.clip(), PATIENCE).await {
            Err(Failure::QueueFull) => tokio::time::sleep(KNOCK_AGAIN).await,
            answer => return answer,
        }
    }
    engine.submit(piece.clip(), PATIENCE).await
}
