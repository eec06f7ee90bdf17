//! Where the runtime, the models and, unless told otherwise, the data live.
//!
//! It decides a path and looks at nothing else: what lies there is `doctor`'s and the installer's business.

use std::path::{Path, PathBuf};

/// The home directory of an installation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home(PathBuf);

impl Home {
    /// A home at a known place.
    #[must_use]
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// The directory itself.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }
}

/// `ROLLCALL_HOME`, else `.rollcall` in the working directory when it exists, else `.local/share/rollcall` in the
/// user's own directory. A machine without a user's directory gets `.rollcall` where it stands.
#[must_use]
pub fn home() -> Home {
    let local = PathBuf::from(".rollcall");
    let found = local.is_dir().then_some(local);
    Home(choose(std::env::var_os("ROLLCALL_HOME").map(PathBuf::from), found, std::env::home_dir()))
}

fn choose(named: Option<PathBuf>, local: Option<PathBuf>, user: Option<PathBuf>) -> PathBuf {
    named
        .filter(|path| !path.as_os_str().is_empty())
        .or(local)
        .or_else(|| user.map(|path| path.join(".local/share/rollcall")))
        .unwrap_or_else(|| PathBuf::from(".rollcall"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_named_home_wins_over_the_local_one_and_the_users() {
        let path = |text: &str| Some(PathBuf::from(text));
        assert_eq!(choose(path("/named"), path(".rollcall"), path("/home/anna")), PathBuf::from("/named"));
        assert_eq!(choose(path(""), path(".rollcall"), path("/home/anna")), PathBuf::from(".rollcall"));
        assert_eq!(choose(None, None, path("/home/anna")), PathBuf::from("/home/anna/.local/share/rollcall"));
        assert_eq!(choose(None, None, None), PathBuf::from(".rollcall"));
    }
}
