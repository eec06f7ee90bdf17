//! Clips become voiceprints, as many at once as the engine takes turns. The audio is dropped as soon as it is heard.

use std::fs;
use std::path::{Path, PathBuf};

use futures_util::{StreamExt, TryStreamExt, stream};
use gpu_worker::{Engine, Failure};
use matcher_core::Embedding;

use crate::audio::{Audio, AudioError, Limits, Speech, decode};
use crate::people::{SPEECH_SECONDS_MIN, voiceprint};

/// Why a clip has no voiceprint.
#[derive(Debug, thiserror::Error)]
#[error("{}: {trouble}", path.display())]
pub struct ClipError {
    /// The clip.
    pub path: PathBuf,
    /// What is wrong with it.
    pub trouble: ClipTrouble,
}

/// What can be wrong with a clip.
#[derive(Debug, thiserror::Error)]
pub enum ClipTrouble {
    /// It cannot be read.
    #[error("cannot be read: {0}")]
    Unreadable(#[from] std::io::Error),
    /// It is not audio that is taken.
    #[error(transparent)]
    Audio(#[from] AudioError),
    /// The model gave no voiceprint.
    #[error("no voiceprint could be made: {0}")]
    Extraction(#[from] Failure),
}

/// Voiceprints in the order of the paths.
pub(super) struct Heard {
    pub(super) prints: Vec<Embedding>,
    /// Clips with less speech than a sample of the store needs.
    pub(super) short: usize,
}

/// Hears every clip. `progress` is told how many are done, of how many.
pub(super) async fn all(
    engine: &dyn Engine,
    paths: &[PathBuf],
    progress: &dyn Fn(usize, usize),
) -> Result<Heard, ClipError> {
    let mut heard = Heard { prints: Vec::with_capacity(paths.len()), short: 0 };
    let queries = paths.iter().map(|path| async move {
        one(engine, path).await.map_err(|trouble| ClipError { path: path.clone(), trouble })
    });
    let mut answers = stream::iter(queries).buffered(engine.turns_max().max(1));
    while let Some((print, seconds)) = answers.try_next().await? {
        heard.prints.push(print);
        heard.short += usize::from(seconds < SPEECH_SECONDS_MIN);
        progress(heard.prints.len(), paths.len());
    }
    Ok(heard)
}

async fn one(engine: &dyn Engine, path: &Path) -> Result<(Embedding, f64), ClipTrouble> {
    let audio = read(path)?;
    let seconds = Speech::of(&audio).seconds;
    Ok((voiceprint(engine, &audio).await?, seconds))
}

/// The size is looked at first, so that a film is refused and not read.
fn read(path: &Path) -> Result<Audio, ClipTrouble> {
    let found = usize::try_from(fs::metadata(path)?.len()).unwrap_or(usize::MAX);
    let most = Limits::UPLOAD.bytes_max;
    if found > most {
        return Err(AudioError::TooLarge { found, most }.into());
    }
    Ok(decode(fs::read(path)?, Limits::UPLOAD)?)
}
