//! Trials from a directory of people: each clip against its own person without it, and against everybody else.
//!
//! The directory is read by the rules of [`Folders`], which also says what is wrong with one. A person with a single clip
//! has nothing to be compared with itself, and still counts as somebody else.

use std::path::{Path, PathBuf};

use gpu_worker::Engine;
use matcher_core::{Centroid, Embedding};

use super::hear::{self, ClipError};
use super::{CLIPS_MAX, Kind, TRIALS_MAX, Trial};
use crate::identify::{FolderError, Folders};

/// Everybody's clips, listed and not yet heard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeopleTrials {
    clips: Vec<PathBuf>,
    /// How many of them, in order, are each person's.
    sizes: Vec<usize>,
}

impl PeopleTrials {
    /// Lists a directory.
    ///
    /// # Errors
    /// When it is no directory of people, or holds too few for trials of both kinds, or too many.
    pub fn list(directory: &Path) -> Result<Self, FolderError> {
        let folders = Folders::list(directory, None)?;
        let listed = Self {
            clips: folders.clips().flatten().cloned().collect(),
            sizes: folders.clips().map(<[PathBuf]>::len).collect(),
        };
        match listed.fault() {
            Some(trouble) => Err(FolderError::Content { path: directory.to_owned(), trouble }),
            None => Ok(listed),
        }
    }

    fn fault(&self) -> Option<String> {
        if self.sizes.len() < 2 {
            return Some("holds one person; a threshold needs at least two, to know how far apart they are".into());
        }
        if self.count(Kind::Target) == 0 {
            return Some("holds one clip a person; at least one person needs two, to know how near they are".into());
        }
        let (clips, trials) = (self.clips.len(), self.count(Kind::Target) + self.count(Kind::Nontarget));
        (clips > CLIPS_MAX || trials > TRIALS_MAX)
            .then(|| format!("makes {trials} trials of {clips} clips; at most {TRIALS_MAX} of {CLIPS_MAX} are taken"))
    }

    /// Trials of one kind.
    #[must_use]
    pub fn count(&self, kind: Kind) -> usize {
        match kind {
            Kind::Target => self.sizes.iter().filter(|size| **size > 1).sum(),
            Kind::Nontarget => self.clips.len() * (self.sizes.len() - 1),
        }
    }

    /// How many people there are.
    #[must_use]
    pub fn people(&self) -> usize {
        self.sizes.len()
    }

    /// Hears every clip once and compares. `progress` is told how many clips are done, of how many.
    ///
    /// # Errors
    /// When a clip cannot be read or heard.
    pub async fn compare(
        &self,
        engine: &dyn Engine,
        progress: &dyn Fn(usize, usize),
    ) -> Result<(Vec<Trial>, usize), ClipError> {
        let heard = hear::all(engine, &self.clips, progress).await?;
        let mut rest = heard.prints.as_slice();
        let mut people = Vec::with_capacity(self.sizes.len());
        for size in &self.sizes {
            let (person, others) = rest.split_at(*size);
            people.push(person);
            rest = others;
        }
        Ok((leave_one_out(&people), heard.short))
    }
}

/// Each clip against the mean of its person's other clips, and against the mean of each other person's clips.
pub(super) fn leave_one_out(people: &[&[Embedding]]) -> Vec<Trial> {
    let means: Vec<Centroid> = people.iter().filter_map(|clips| Centroid::of(clips)).collect();
    let mut trials = Vec::new();
    let mut test = 0;
    for (own, clips) in people.iter().enumerate() {
        for (index, clip) in clips.iter().enumerate() {
            let others = clips.iter().enumerate().filter(|(other, _)| *other != index).map(|(_, clip)| clip);
            if let Some(distance) = Centroid::of_iter(others).and_then(|mean| mean.distance(clip)) {
                trials.push(Trial { test, person: own, kind: Kind::Target, distance });
            }
            let strangers = means.iter().enumerate().filter(|(person, _)| *person != own);
            trials.extend(strangers.filter_map(|(person, mean)| {
                Some(Trial { test, person, kind: Kind::Nontarget, distance: mean.distance(clip)? })
            }));
            test += 1;
        }
    }
    trials
}
