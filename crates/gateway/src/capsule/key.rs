//! The key of a data directory: 32 random bytes in a file that its user alone may read. It keeps capsules from whoever has
//! the database without the directory, such as a copy of it; who has both has the voiceprints of everybody enrolled anyway.

use std::fs::File;
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

pub(super) fn read_or_make(directory: &Path) -> io::Result<[u8; 32]> {
    let path = directory.join("capsules.key");
    let key = match std::fs::read(&path) {
        Ok(bytes) => <[u8; 32]>::try_from(bytes).map_err(|bytes| no_key(bytes.len())),
        Err(missing) if missing.kind() == ErrorKind::NotFound => make(&path),
        Err(error) => Err(error),
    };
    key.map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
}

/// Written aside and renamed, so that a process that dies meanwhile leaves no half of a key.
fn make(path: &Path) -> io::Result<[u8; 32]> {
    let key = super::random();
    let aside = path.with_extension("key.new");
    let mut file = File::options().create(true).truncate(true).write(true).mode(0o600).open(&aside)?;
    file.write_all(&key)?;
    file.sync_all()?;
    std::fs::rename(&aside, path)?;
    Ok(key)
}

fn no_key(bytes: usize) -> io::Error {
    let text = format!("a key has 32 bytes, and this has {bytes}; delete the file, and a new key is made");
    io::Error::new(ErrorKind::InvalidData, text)
}
