//! Trial lists as Kaldi and the speaker verification recipes write them: `<enrol> <test> target|nontarget` a line.
//!
//! Both names are paths of audio files, relative to the list. Reads the list and looks whether the files are there;
//! hearing them is [`super::hear`]'s. Every error names the list and the line.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::{Path, PathBuf};

use gpu_worker::Engine;

use super::hear::{self, ClipError};
use super::{CLIPS_MAX, Kind, TRIALS_MAX, Trial};

/// Bytes of a list: the most trials with paths of sixty letters.
const BYTES_MAX: u64 = 256 << 20;

/// Why a file gives no trials.
#[derive(Debug, thiserror::Error)]
pub enum ListError {
    /// The list cannot be read.
    #[error("{}: cannot be read: {source}", path.display())]
    Unreadable {
        /// The list.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The list as a whole is not taken.
    #[error("{}: {trouble}", path.display())]
    Content {
        /// The list.
        path: PathBuf,
        /// What is wrong with it.
        trouble: String,
    },
    /// A line is wrong.
    #[error("{}:{line}: {trouble}", path.display())]
    Line {
        /// The list.
        path: PathBuf,
        /// Counted from one.
        line: usize,
        /// What is wrong with it, and what would be right.
        trouble: String,
    },
}

/// A list, read and not yet heard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct List {
    path: PathBuf,
    /// Every file that occurs, with the line that names it first.
    clips: Vec<(PathBuf, usize)>,
    pairs: BTreeMap<(usize, usize), (Kind, usize)>,
    /// Lines that say what an earlier one has said.
    repeated: usize,
}

impl List {
    /// Reads a list.
    ///
    /// # Errors
    /// When it cannot be read, a line is wrong, or a file that it names is not there.
    pub fn read(path: &Path) -> Result<Self, ListError> {
        let unreadable = |source| ListError::Unreadable { path: path.to_owned(), source };
        let content = |trouble: String| ListError::Content { path: path.to_owned(), trouble };
        let length = std::fs::metadata(path).map_err(unreadable)?.len();
        if length > BYTES_MAX {
            return Err(content(format!("has {length} bytes; at most {BYTES_MAX} are taken")));
        }
        let bytes = std::fs::read(path).map_err(unreadable)?;
        let list = Self::parse(path, &bytes)?;
        list.check_files()?;
        Ok(list)
    }

    /// Reads the lines; `path` is what they are relative to.
    pub(super) fn parse(path: &Path, bytes: &[u8]) -> Result<Self, ListError> {
        let mut reader = Reader::new(path);
        for (index, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
            let wrong = |trouble| ListError::Line { path: path.to_owned(), line: index + 1, trouble };
            let line = std::str::from_utf8(line).map_err(|_| wrong("is not UTF-8 text".to_owned()))?;
            reader.take(line, index + 1).map_err(wrong)?;
        }
        if reader.list.pairs.is_empty() {
            let trouble = "holds no trials; a line is `<enrol> <test> target|nontarget`".to_owned();
            return Err(ListError::Content { path: path.to_owned(), trouble });
        }
        Ok(reader.list)
    }

    fn check_files(&self) -> Result<(), ListError> {
        for (clip, line) in &self.clips {
            let trouble = match std::fs::metadata(clip) {
                Ok(found) if found.is_file() => continue,
                Ok(_) => format!("{}: is not a file", clip.display()),
                Err(error) => format!("{}: cannot be read: {error}", clip.display()),
            };
            return Err(ListError::Line { path: self.path.clone(), line: *line, trouble });
        }
        Ok(())
    }

    /// Lines that were passed over because an earlier one had said the same.
    #[must_use]
    pub fn repeated(&self) -> usize {
        self.repeated
    }

    /// Trials of one kind.
    #[must_use]
    pub fn count(&self, kind: Kind) -> usize {
        self.pairs.values().filter(|(found, _)| *found == kind).count()
    }

    /// Hears every clip once and compares the pairs. `progress` is told how many clips are done, of how many.
    ///
    /// # Errors
    /// When a clip cannot be read or heard; [`List::place`] says which line named it.
    pub async fn compare(
        &self,
        engine: &dyn Engine,
        progress: &dyn Fn(usize, usize),
    ) -> Result<(Vec<Trial>, usize), ClipError> {
        let paths: Vec<PathBuf> = self.clips.iter().map(|(path, _)| path.clone()).collect();
        let heard = hear::all(engine, &paths, progress).await?;
        let print = |index: usize| heard.prints.get(index).expect("every clip of the list was heard");
        let people = self.people();
        let person = |clip: usize| people.get(clip).copied().expect("every clip of the list has a person");
        let trials = self.pairs.iter().map(|(&(enrol, test), &(kind, _))| {
            let distance = print(enrol).distance(print(test)).expect("one model's voiceprints have one size");
            Trial { test, person: person(enrol), kind, distance }
        });
        Ok((trials.collect(), heard.short))
    }

    /// A number for each clip's person, equal for clips that target trials join, directly or through others. The list
    /// does not name people, and two clips of one stranger must not pass for two strangers.
    pub(super) fn people(&self) -> Vec<usize> {
        let mut parents: Vec<usize> = (0..self.clips.len()).collect();
        for (&(enrol, test), (kind, _)) in &self.pairs {
            if *kind == Kind::Target {
                let (left, right) = (root(&mut parents, enrol), root(&mut parents, test));
                if let Some(parent) = parents.get_mut(left.max(right)) {
                    *parent = left.min(right);
                }
            }
        }
        (0..self.clips.len()).map(|clip| root(&mut parents, clip)).collect()
    }

    /// Where the list names a clip first, as `FILE:LINE`.
    #[must_use]
    pub fn place(&self, clip: &Path) -> String {
        let line = self.clips.iter().find(|(path, _)| path == clip).map_or(0, |(_, line)| *line);
        format!("{}:{line}", self.path.display())
    }
}

/// The first of the clips that are joined with this one. Halves the way on each call, so that long chains stay short.
fn root(parents: &mut [usize], mut clip: usize) -> usize {
    let parent_of = |parents: &[usize], clip: usize| parents.get(clip).copied().unwrap_or(clip);
    loop {
        let parent = parent_of(parents, clip);
        if parent == clip {
            return clip;
        }
        let grandparent = parent_of(parents, parent);
        if let Some(entry) = parents.get_mut(clip) {
            *entry = grandparent;
        }
        clip = grandparent;
    }
}

struct Reader {
    list: List,
    directory: PathBuf,
    index: BTreeMap<PathBuf, usize>,
}

impl Reader {
    fn new(path: &Path) -> Self {
        let list = List { path: path.to_owned(), clips: Vec::new(), pairs: BTreeMap::new(), repeated: 0 };
        Self { list, directory: path.parent().unwrap_or(Path::new("")).to_owned(), index: BTreeMap::new() }
    }

    fn take(&mut self, text: &str, line: usize) -> Result<(), String> {
        // A byte order mark belongs to the file, and not to its first path.
        let mut fields = text.trim_start_matches('\u{feff}').split_whitespace();
        let (enrol, test, kind) = match (fields.next(), fields.next(), fields.next(), fields.next()) {
            (None, ..) => return Ok(()),
            (Some(enrol), Some(test), Some(kind), None) => (enrol, test, kind),
            _ => {
                return Err("a line is `<enrol> <test> target|nontarget`: three fields, and no spaces in a path".into());
            }
        };
        let kind = match kind {
            "target" => Kind::Target,
            "nontarget" => Kind::Nontarget,
            _ => return Err(format!("the third field is {kind:?}; it must be `target` or `nontarget`")),
        };
        let (enrol, test) = (self.clip(enrol, line)?, self.clip(test, line)?);
        if enrol == test {
            return Err("compares a clip with itself, which says nothing; name two clips".into());
        }
        self.pair((enrol, test), kind, line)
    }

    fn clip(&mut self, name: &str, line: usize) -> Result<usize, String> {
        let path = self.directory.join(name);
        let next = self.index.len();
        match self.index.entry(path) {
            Entry::Occupied(known) => Ok(*known.get()),
            Entry::Vacant(_) if next >= CLIPS_MAX => Err(format!("names more than {CLIPS_MAX} clips; take fewer")),
            Entry::Vacant(new) => {
                self.list.clips.push((new.key().clone(), line));
                Ok(*new.insert(next))
            }
        }
    }

    fn pair(&mut self, pair: (usize, usize), kind: Kind, line: usize) -> Result<(), String> {
        let count = self.list.pairs.len();
        match self.list.pairs.entry(pair) {
            Entry::Occupied(said) if said.get().0 == kind => self.list.repeated += 1,
            Entry::Occupied(said) => return Err(format!("says the opposite of line {}", said.get().1)),
            Entry::Vacant(_) if count >= TRIALS_MAX => {
                return Err(format!("is one trial too many; at most {TRIALS_MAX} are taken"));
            }
            Entry::Vacant(new) => {
                new.insert((kind, line));
            }
        }
        Ok(())
    }
}
