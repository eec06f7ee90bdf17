//! The folder in which an installation works, beside its destination, and the move from the one to the other.
//!
//! The folder goes when the workshop does, however the installation ends. It lies in the home, so that the last step is
//! a rename within one file system: readers see the old file or the new one, never half of one.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::digest::sha256_of;

use super::InstallError;

/// Tells two installations of one process apart; the process id tells processes apart.
static NEXT: AtomicU32 = AtomicU32::new(0);

pub(super) struct Workshop {
    folder: PathBuf,
}

impl Workshop {
    pub(super) fn open(home: &Path) -> Result<Self, InstallError> {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = home.join(format!(".install-{}-{number}", std::process::id()));
        fs::create_dir_all(&folder).map_err(|source| InstallError::Home { path: folder.clone(), source })?;
        // Programs are started from another folder, so their arguments must not depend on this one.
        let folder = fs::canonicalize(&folder).map_err(|source| InstallError::Home { path: folder, source })?;
        Ok(Self { folder })
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub(super) fn write(&self, name: &str, text: &str) -> Result<PathBuf, InstallError> {
        let path = self.path(name);
        fs::write(&path, text).map_err(|source| InstallError::Home { path: path.clone(), source })?;
        Ok(path)
    }

    /// Checks a file that was made on the way to another, and keeps it under a name of its own.
    pub(super) fn keep(
        &self,
        made: &Path,
        name: &str,
        what: &'static str,
        expected: &'static str,
    ) -> Result<PathBuf, InstallError> {
        let kept = self.path(name);
        self.deliver(made, &kept, what, expected)?;
        Ok(kept)
    }

    /// Checks a finished file and moves it into place.
    pub(super) fn deliver(
        &self,
        made: &Path,
        destination: &Path,
        what: &'static str,
        expected: &'static str,
    ) -> Result<(), InstallError> {
        let found = sha256_of(made).map_err(|source| InstallError::Home { path: made.to_owned(), source })?;
        if found != expected {
            return Err(InstallError::Checksum { what, expected, found });
        }
        self.place(made, destination)
    }

    /// Moves a finished file into place.
    pub(super) fn place(&self, made: &Path, destination: &Path) -> Result<(), InstallError> {
        let failed = |source| InstallError::Home { path: destination.to_owned(), source };
        if let Some(folder) = destination.parent() {
            fs::create_dir_all(folder).map_err(failed)?;
        }
        fs::rename(made, destination).map_err(failed)
    }
}

impl Drop for Workshop {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.folder) {
            tracing::warn!(folder = %self.folder.display(), %error, "the installation's folder could not be removed");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn home(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("rollcall-workshop-{name}-{}", std::process::id()))
    }

    #[test]
    fn a_file_with_the_wrong_digest_is_not_delivered_and_nothing_is_left_behind() {
        let home = home("wrong");
        {
            let workshop = Workshop::open(&home).unwrap();
            let made = workshop.write("made", "something else").unwrap();
            let refused = workshop.deliver(&made, &home.join("models/made"), "the model", "00");
            assert!(matches!(refused, Err(InstallError::Checksum { what: "the model", .. })));
        }
        assert_eq!(fs::read_dir(&home).unwrap().count(), 0);
        fs::remove_dir_all(&home).unwrap();
    }

    #[test]
    fn a_file_with_the_right_digest_replaces_what_was_there() {
        let home = home("right");
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let destination = home.join("models/made");
        {
            let workshop = Workshop::open(&home).unwrap();
            for text in ["abd", "abc"] {
                let made = workshop.write("made", text).unwrap();
                assert_eq!(workshop.deliver(&made, &destination, "the model", abc).is_ok(), text == "abc");
            }
        }
        assert_eq!(fs::read_to_string(&destination).unwrap(), "abc");
        fs::remove_dir_all(&home).unwrap();
    }

    #[test]
    fn a_home_that_cannot_be_made_is_named() {
        let file = home("file");
        fs::write(&file, "in the way").unwrap();
        let error = Workshop::open(&file).err().unwrap().to_string();
        assert!(error.contains(file.to_str().unwrap()), "{error}");
        fs::remove_file(&file).unwrap();
    }
}
