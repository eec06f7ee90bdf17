//! Temporary directories that go with whoever holds them.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

/// A directory of its own, removed with its holder.
pub struct Directory(PathBuf);

impl Default for Directory {
    fn default() -> Self {
        Self::new()
    }
}

impl Directory {
    /// An empty one.
    pub fn new() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let name = format!("rollcall-test-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).expect("the system's temporary directory is writable");
        Self(path)
    }

    /// Where it is.
    pub fn path(&self) -> &std::path::Path {
        &self.0
    }

    /// A path inside.
    pub fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // A directory that stays behind fails no test.
        std::fs::remove_dir_all(&self.0).unwrap_or_default();
    }
}
