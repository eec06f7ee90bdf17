//! A model folder: where it lies, and that its graph is the one that its manifest describes. Nothing is loaded.

use std::path::{Path, PathBuf};

use crate::digest::sha256_of;
use crate::manifest::{Draft, Manifest, ManifestError};

/// Why a model cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// There is no such model.
    #[error("there is no model `{name}`: neither a folder of that name nor `{}` holds a manifest.json; run `rollcall model install {name}`", installed.display())]
    NotThere {
        /// What was asked for.
        name: String,
        /// Where an installed model of that name would lie.
        installed: PathBuf,
    },
    /// Its manifest cannot be used.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// Its graph cannot be read.
    #[error("cannot read the model `{}`: {source}", path.display())]
    Unreadable {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The graph is not the one that the manifest describes.
    #[error("`{}` has SHA-256 {found} and its manifest's `fingerprint` says {expected}; install the model again", path.display())]
    Fingerprint {
        /// Which file.
        path: PathBuf,
        /// What the manifest says.
        expected: String,
        /// What the file has.
        found: String,
    },
}

/// A model folder whose graph is the one that its manifest describes.
#[derive(Debug, Clone)]
pub struct Model {
    manifest: Manifest,
    graph: PathBuf,
}

impl Model {
    /// Finds a model by the path of its folder or by its name in `home`, and checks its fingerprint.
    ///
    /// # Errors
    /// When there is none, or its manifest or graph cannot be used.
    pub fn find(name: &str, home: &Path) -> Result<Self, ModelError> {
        Self::open(&Self::folder(name, home)?)
    }

    /// As [`Model::find`], for a model whose distances may still be missing: see [`Draft::to_calibrate`].
    ///
    /// # Errors
    /// As [`Model::find`], but for missing distances.
    pub fn find_to_calibrate(name: &str, home: &Path) -> Result<Self, ModelError> {
        let folder = Self::folder(name, home)?;
        let path = folder.join(Manifest::FILE_NAME);
        Self::with(Draft::read(&path)?.to_calibrate(&path)?, &folder)
    }

    /// The folder of a model, by its path or its name in `home`. Whether its graph is there is not looked at.
    ///
    /// # Errors
    /// When there is none.
    pub fn folder(name: &str, home: &Path) -> Result<PathBuf, ModelError> {
        let installed = home.join("models").join(name);
        let folders = [PathBuf::from(name), installed.clone()];
        match folders.iter().find(|folder| folder.join(Manifest::FILE_NAME).is_file()) {
            Some(folder) => Ok(folder.clone()),
            None => Err(ModelError::NotThere { name: name.to_owned(), installed }),
        }
    }

    /// Opens a model folder and checks its fingerprint.
    ///
    /// # Errors
    /// When its manifest or graph cannot be used.
    pub fn open(folder: &Path) -> Result<Self, ModelError> {
        Self::with(Manifest::read(&folder.join(Manifest::FILE_NAME))?, folder)
    }

    fn with(manifest: Manifest, folder: &Path) -> Result<Self, ModelError> {
        let graph = folder.join(&manifest.file);
        let found = sha256_of(&graph).map_err(|source| ModelError::Unreadable { path: graph.clone(), source })?;
        if found != manifest.fingerprint {
            return Err(ModelError::Fingerprint { path: graph, expected: manifest.fingerprint, found });
        }
        Ok(Self { manifest, graph })
    }

    /// The ONNX file.
    #[must_use]
    pub fn graph(&self) -> &Path {
        &self.graph
    }

    /// What the model is, and the distances that hold for it.
    #[must_use]
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }
}
