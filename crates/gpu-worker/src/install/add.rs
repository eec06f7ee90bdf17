//! Adds a model that nobody packaged: an ONNX file of one's own, looked at, tried, and put into the home.
//!
//! Its manifest says what [`crate::inspect`] found out and the distances that were given. Those that were not are left
//! out, and the model is refused until they are there: they come from calibration and from nowhere else.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::digest::sha256_of;
use crate::front_end::FrontEnd;
use crate::inspect::{Findings, InspectError, inspect};
use crate::manifest::{DistanceError, Draft, Manifest, ManifestError};
use crate::runtime::Runtime;
use crate::scripted;

use super::InstallError;
use super::catalogue::{MODELS, RUNTIME};
use super::workshop::Workshop;

/// What to add.
#[derive(Debug, Clone, Copy)]
pub struct Addition<'a> {
    /// An ONNX file, a folder with one, or the name of a model that was added before.
    pub source: &'a Path,
    /// Its name; without one, that of its manifest or of its file.
    pub name: Option<&'a str>,
    /// What it is fed, when somebody knows it.
    pub front_end: Option<FrontEnd>,
    /// Distances, as field and value.
    pub distances: &'a [(String, String)],
}

/// A model that was added.
#[derive(Debug)]
pub struct Added {
    /// Where it lies.
    pub folder: PathBuf,
    /// What was found out about it.
    pub findings: Findings,
    /// Its manifest, as far as it goes.
    pub draft: Draft,
}

/// Why nothing was added.
#[derive(Debug, thiserror::Error)]
pub enum AddError {
    /// There is nothing there.
    #[error("there is neither an ONNX file or folder `{}` nor an added model of that name", named.display())]
    NotThere {
        /// What was named.
        named: PathBuf,
    },
    /// A folder holds no ONNX file, or several.
    #[error("`{}` holds {count} ONNX files; name the one to add", folder.display())]
    NotOne {
        /// Which folder.
        folder: PathBuf,
        /// How many.
        count: usize,
    },
    /// The name cannot be used.
    #[error("`{name}` cannot be the model's name: {reason}; give another one with --name")]
    Name {
        /// The name.
        name: String,
        /// Why not.
        reason: &'static str,
    },
    /// The manifest beside the graph is another graph's.
    #[error("`{}` describes another graph than `{}`; remove it, and the graph is looked at anew", manifest.display(), graph.display())]
    AnotherGraph {
        /// The manifest.
        manifest: PathBuf,
        /// The graph.
        graph: PathBuf,
    },
    /// The source cannot be read.
    #[error("cannot read `{}`: {source}", path.display())]
    Unreadable {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The graph cannot be used.
    #[error(transparent)]
    Inspect(#[from] InspectError),
    /// A distance cannot be used.
    #[error("--distance: {0}")]
    Distance(#[from] DistanceError),
    /// The manifest beside the graph cannot be used, or the distances do not go together.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// The home cannot be written.
    #[error(transparent)]
    Home(#[from] InstallError),
}

/// What lies at the source.
struct Source {
    graph: PathBuf,
    fingerprint: String,
    /// The manifest beside it.
    draft: Option<Draft>,
}

/// Adds a model, or gives distances to one that was added before. What was there stays when anything is wrong.
///
/// # Errors
/// When the source is not one ONNX file, the graph cannot be used, the name is taken or a distance is none.
pub fn add(home: &Path, runtime: &'static Runtime, addition: &Addition<'_>) -> Result<Added, AddError> {
    let source = Source::find(home, addition.source)?;
    let name = name_of(addition, &source)?;
    let folder = home.join("models").join(&name);
    let manifest_path = folder.join(Manifest::FILE_NAME);
    let workshop = Workshop::open(home)?;
    let graph = workshop.path("graph.onnx");
    fs::copy(&source.graph, &graph)
        .map_err(|error| AddError::Unreadable { path: source.graph.clone(), source: error })?;
    let told = addition.front_end.or_else(|| source.draft.as_ref().map(|draft| draft.manifest().front_end));
    let findings = inspect(runtime, &graph, told).map_err(|error| error.at(&source.graph))?;
    let mut draft = source.draft_of(&name, &findings);
    for (field, value) in addition.distances {
        draft.set(field, value)?;
    }
    if draft.missing().is_empty() {
        draft.clone().finish(&manifest_path)?;
    }
    let present = Draft::read(&manifest_path).ok();
    if present.is_some_and(|present| present.manifest().fingerprint != source.fingerprint) {
        return Err(AddError::Name { name, reason: "another model has it" });
    }

    workshop.place(&graph, &folder.join(&draft.manifest().file))?;
    let written = workshop.write(Manifest::FILE_NAME, &draft.text())?;
    workshop.place(&written, &manifest_path)?;
    Ok(Added { folder, findings, draft })
}

impl Source {
    fn find(home: &Path, named: &Path) -> Result<Self, AddError> {
        let unreadable = |path: &Path| {
            let path = path.to_owned();
            move |source| AddError::Unreadable { path, source }
        };
        if named.is_file() {
            let fingerprint = sha256_of(named).map_err(unreadable(named))?;
            return Ok(Self { graph: named.to_owned(), fingerprint, draft: None });
        }
        let folders = [named.to_owned(), home.join("models").join(named)];
        let folder = folders.into_iter().find(|folder| folder.is_dir());
        let folder = folder.ok_or_else(|| AddError::NotThere { named: named.to_owned() })?;
        let entries = fs::read_dir(&folder).map_err(unreadable(&folder))?.filter_map(Result::ok);
        let is_graph = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "onnx");
        let graphs: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_graph).collect();
        let [graph] = <[PathBuf; 1]>::try_from(graphs)
            .map_err(|graphs| AddError::NotOne { folder: folder.clone(), count: graphs.len() })?;
        let fingerprint = sha256_of(&graph).map_err(unreadable(&graph))?;
        let manifest = folder.join(Manifest::FILE_NAME);
        let draft = if manifest.is_file() { Some(Draft::read(&manifest)?) } else { None };
        match draft {
            Some(draft) if draft.manifest().fingerprint != fingerprint => {
                Err(AddError::AnotherGraph { manifest, graph })
            }
            draft => Ok(Self { graph, fingerprint, draft }),
        }
    }

    /// The manifest to write: that of the source where it has one, with what was found out.
    fn draft_of(&self, name: &str, findings: &Findings) -> Draft {
        let about = |base: Manifest| Manifest {
            name: name.to_owned(),
            file: format!("{name}.onnx"),
            fingerprint: self.fingerprint.clone(),
            front_end: findings.front_end,
            dimension: findings.dimension,
            ..base
        };
        if let Some(draft) = &self.draft {
            return draft.clone().described(about);
        }
        let said =
            |key: &str| findings.metadata.iter().find(|(known, _)| *known == key).map(|(_, value)| value.clone());
        let whence = said("comment").unwrap_or_else(|| format!("added from {}", self.graph.display()));
        let source = said("license").map_or(whence.clone(), |licence| format!("{whence} ({licence})"));
        Draft::without_distances(about(Manifest { source, ..scripted::manifest() }))
    }
}

/// The name: it becomes a folder's, and is typed.
fn name_of(addition: &Addition<'_>, source: &Source) -> Result<String, AddError> {
    let stem = || source.graph.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let known = source.draft.as_ref().map(|draft| draft.manifest().name.clone());
    let name = addition.name.map(str::to_owned).or(known).or_else(stem).unwrap_or_default();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    let reserved = MODELS.iter().any(|model| model.name == name) || [RUNTIME.name, scripted::NAME].contains(&&*name);
    if name.is_empty() || name.starts_with('.') || !name.bytes().all(plain) {
        return Err(AddError::Name { name, reason: "a name has letters, digits and ._- only" });
    }
    if reserved {
        return Err(AddError::Name { name, reason: "it belongs to what `rollcall model list` shows" });
    }
    Ok(name)
}
