//! SHA-256 of files: how a model is recognised and a download is checked. It does not decide what a digest should be.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use sha2::{Digest, Sha256};

/// The SHA-256 of a file, as 64 lower-case hex digits.
pub(crate) fn sha256_of(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut hasher = Sha256::new();
    let mut block = vec![0_u8; 1 << 16];
    loop {
        let read = file.read(&mut block)?;
        let Some(bytes) = block.get(..read).filter(|bytes| !bytes.is_empty()) else { break };
        hasher.update(bytes);
    }
    let mut hex = String::with_capacity(64);
    for byte in hasher.finalize() {
        write!(hex, "{byte:02x}").expect("writing to a string cannot fail");
    }
    Ok(hex)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_of_a_known_text_is_the_published_one() {
        let path = std::env::temp_dir().join(format!("rollcall-digest-{}", std::process::id()));
        std::fs::write(&path, "abc").unwrap();
        let digest = sha256_of(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(digest, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
