//! People from a directory: one folder a person, each with audio clips. Nothing is stored.
//!
//! The folder's name is the person's id and name. A person's print is the mean of the clips' voiceprints. Files that are
//! not audio by their name are passed over, so that a licence may lie beside the clips; a clip that cannot be read is an
//! error, because a print without it would be another one.

use std::fs;
use std::path::{Path, PathBuf};

use gpu_worker::{Engine, Failure};
use matcher_core::policy::{Print, Role};
use matcher_core::{Centroid, Embedding, Gallery, PersonId};

use crate::audio::{AudioError, Limits, Speech, decode};
use crate::people::{BadName, SPEECH_SECONDS_MIN, check_id, voiceprint};

/// Names of files that are taken for audio.
const AUDIO_EXTENSIONS: [&str; 9] = ["wav", "wave", "flac", "mp3", "ogg", "oga", "opus", "m4a", "mp4"];

/// People in one directory, and clips of one person. A list longer than this is a corpus, and belongs in the store.
const PEOPLE_MAX: usize = 1000;
const CLIPS_MAX: usize = 1000;

/// Why a directory gives no gallery. Each names the folder or the file.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// A directory or a file cannot be read.
    #[error("{}: cannot be read: {source}", path.display())]
    Unreadable {
        /// Where.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The directory or a folder holds nothing of use, or too much.
    #[error("{}: {trouble}", path.display())]
    Content {
        /// Where.
        path: PathBuf,
        /// What is wrong, and what would be right.
        trouble: String,
    },
    /// A folder's name can be no person's id.
    #[error("{}: the folder's name is to be a person's id, and this {trouble}", path.display())]
    Name {
        /// Where.
        path: PathBuf,
        /// What is wrong with it.
        trouble: BadName,
    },
    /// A clip is not audio that is taken.
    #[error("{}: {trouble}", path.display())]
    Audio {
        /// Where.
        path: PathBuf,
        /// What is wrong with it.
        trouble: AudioError,
    },
    /// A clip gave no voiceprint.
    #[error("{}: no voiceprint could be made: {failure}", path.display())]
    Extraction {
        /// Where.
        path: PathBuf,
        /// What failed.
        failure: Failure,
    },
    /// The owner is nobody in the directory.
    #[error("--owner {owner}: no folder of {} has this name; there are {there}", path.display())]
    NoOwner {
        /// Who was named.
        owner: String,
        /// Where.
        path: PathBuf,
        /// Who is there.
        there: String,
    },
}

/// A directory of people, listed and not yet heard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folders {
    owner: Option<String>,
    people: Vec<Folder>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Folder {
    person: String,
    path: PathBuf,
    clips: Vec<PathBuf>,
}

impl Folders {
    /// Lists a directory. `owner` names the folder that is the account's owner.
    ///
    /// # Errors
    /// When it cannot be listed, a folder's name is no id or holds no clip, or the owner is not there.
    pub fn list(directory: &Path, owner: Option<&str>) -> Result<Self, FolderError> {
        let content = |trouble: String| FolderError::Content { path: directory.to_owned(), trouble };
        let mut people = Vec::new();
        for path in entries(directory)?.into_iter().filter(|path| path.is_dir()) {
            people.push(Folder::list(path)?);
            if people.len() > PEOPLE_MAX {
                return Err(content(format!("holds more than {PEOPLE_MAX} people; enrol them into a store instead")));
            }
        }
        if people.is_empty() {
            return Err(content("holds no folders; it should hold one folder a person, each with audio clips".into()));
        }
        if let Some(owner) = owner.filter(|owner| people.iter().all(|folder| folder.person != *owner)) {
            let there = people.iter().map(|folder| folder.person.as_str()).collect::<Vec<_>>().join(", ");
            return Err(FolderError::NoOwner { owner: owner.to_owned(), path: directory.to_owned(), there });
        }
        Ok(Self { owner: owner.map(str::to_owned), people })
    }

    /// Each person's clips, in order of the folders' names.
    pub fn clips(&self) -> impl Iterator<Item = &[PathBuf]> {
        self.people.iter().map(|folder| folder.clips.as_slice())
    }

    /// Hears every clip. `progress` is told each person before that.
    ///
    /// # Errors
    /// When a clip cannot be read or heard, or a person has too little speech.
    pub async fn gallery(&self, engine: &dyn Engine, progress: &dyn Fn(&str)) -> Result<Gallery, FolderError> {
        let mut prints = Vec::with_capacity(self.people.len());
        for folder in &self.people {
            progress(&folder.person);
            let is_owner = self.owner.as_deref() == Some(folder.person.as_str());
            prints.push(Print {
                person: PersonId::new(&folder.person),
                name: folder.person.as_str().into(),
                role: if is_owner { Role::Owner } else { Role::Person },
                embedding: folder.print(engine).await?,
                is_pinned: false,
            });
        }
        Ok(Gallery::new(prints))
    }
}

impl Folder {
    fn list(path: PathBuf) -> Result<Self, FolderError> {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        if let Err(trouble) = check_id(&name) {
            return Err(FolderError::Name { path, trouble });
        }
        let clips: Vec<PathBuf> = entries(&path)?.into_iter().filter(|clip| clip.is_file() && is_audio(clip)).collect();
        match clips.len() {
            0 => Err(FolderError::Content {
                path,
                trouble: format!("holds no audio clips; their names end in {}", AUDIO_EXTENSIONS.join(", ")),
            }),
            1..=CLIPS_MAX => Ok(Self { person: name, path, clips }),
            _ => Err(FolderError::Content {
                path,
                trouble: format!("holds more than {CLIPS_MAX} clips; a few are enough"),
            }),
        }
    }

    /// The mean of the clips; together they must hold as much speech as one sample of the store.
    async fn print(&self, engine: &dyn Engine) -> Result<Embedding, FolderError> {
        let mut vectors = Vec::with_capacity(self.clips.len());
        let mut speech = 0.0;
        for path in &self.clips {
            let audio = decode(read(path)?, Limits::UPLOAD)
                .map_err(|trouble| FolderError::Audio { path: path.clone(), trouble })?;
            speech += Speech::of(&audio).seconds;
            let vector = voiceprint(engine, &audio).await;
            vectors.push(vector.map_err(|failure| FolderError::Extraction { path: path.clone(), failure })?);
        }
        let content = |trouble: String| FolderError::Content { path: self.path.clone(), trouble };
        if speech < SPEECH_SECONDS_MIN {
            return Err(content(format!(
                "its clips hold {speech:.1} s of speech, and a print needs {SPEECH_SECONDS_MIN:.1} s"
            )));
        }
        let print = Centroid::of(&vectors).and_then(|mean| mean.to_embedding());
        print.ok_or_else(|| content("its clips cancel one another out; they are of several people".into()))
    }
}

fn is_audio(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    AUDIO_EXTENSIONS.iter().any(|known| extension.eq_ignore_ascii_case(known))
}

/// Everything in a directory by name, but for hidden files: the order of the file system is not the same everywhere.
fn entries(directory: &Path) -> Result<Vec<PathBuf>, FolderError> {
    let unreadable = |source| FolderError::Unreadable { path: directory.to_owned(), source };
    let mut paths = Vec::new();
    for entry in fs::read_dir(directory).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        if !entry.file_name().to_string_lossy().starts_with('.') {
            paths.push(entry.path());
        }
    }
    paths.sort();
    Ok(paths)
}

/// The size is looked at first, so that a film is refused and not read.
fn read(path: &Path) -> Result<Vec<u8>, FolderError> {
    let unreadable = |source| FolderError::Unreadable { path: path.to_owned(), source };
    let found = usize::try_from(fs::metadata(path).map_err(unreadable)?.len()).unwrap_or(usize::MAX);
    let most = Limits::UPLOAD.bytes_max;
    if found > most {
        return Err(FolderError::Audio { path: path.to_owned(), trouble: AudioError::TooLarge { found, most } });
    }
    fs::read(path).map_err(unreadable)
}
