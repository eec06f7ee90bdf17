//! What is known of the owner's voice on a device when its socket closes, sealed for the two minutes until the next one
//! opens.
//!
//! Owns what a capsule holds and how it becomes bytes that nobody can read or exchange: the key is the data directory's,
//! and a capsule opens only for the device that it was sealed for. Who may write or take one, and for how long, is the
//! store's rule; whether what it says can be relied on is the matching's.
//!
//! ```text
//!   version (1) | nonce (24) | ciphertext and tag         authenticated beside it: version and device
//! ```

mod key;
mod layout;
#[cfg(test)]
mod tests;

use std::fmt;
use std::io;
use std::path::Path;

use chacha20poly1305::aead::{Aead as _, KeyInit as _, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use matcher_core::Embedding;
use sha2::{Digest as _, Sha256};

use crate::store::DeviceKey;

/// The layout that this version writes and reads. A capsule lives for two minutes, so no other is ever worth reading.
const VERSION: u8 = 1;

/// What a device's last socket knew of the owner's voice.
#[derive(Clone, PartialEq)]
pub struct Capsule {
    /// The conversation in which the owner was recognised.
    pub conversation: String,
    /// The recording.
    pub recording: String,
    /// The owner's number there.
    pub speaker: u32,
    /// The provider stream.
    pub scope: String,
    /// The generation of the conversation's receipt when the capsule was written.
    pub receipt_generation: u64,
    /// The device.
    pub device: DeviceKey,
    /// [`print_digest`] of the owner's print: another print, another person.
    pub print: [u8; 32],
    /// The mean of the owner's clips. A voiceprint: it leaves the process only sealed.
    pub centroid: Vec<f32>,
    /// Seconds of speech behind it.
    pub seconds: f64,
    /// Milliseconds since 1970 at which the owner was last heard.
    pub observed_ms: i64,
}

impl fmt::Debug for Capsule {
    /// Without anything that was measured on a voice.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Capsule")
            .field("conversation", &self.conversation)
            .field("recording", &self.recording)
            .field("speaker", &self.speaker)
            .field("scope", &self.scope)
            .field("receipt_generation", &self.receipt_generation)
            .field("seconds", &self.seconds)
            .field("observed_ms", &self.observed_ms)
            .finish_non_exhaustive()
    }
}

/// Why bytes are no capsule for this device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotOpened {
    /// Another version of the service wrote it.
    #[error("the capsule has layout {0}, and this version knows layout {VERSION} alone")]
    Version(u8),
    /// It was changed, cut, sealed with another key or for another device, or holds what no capsule may hold.
    #[error("the capsule is damaged, or was sealed for another device or with another key")]
    Damaged,
}

/// Seals capsules and opens them. One key a data directory.
pub struct Sealer {
    cipher: XChaCha20Poly1305,
}

impl fmt::Debug for Sealer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Sealer").finish_non_exhaustive()
    }
}

impl Sealer {
    /// Reads the key of a data directory, and makes it when there is none. The directory is there already.
    ///
    /// # Errors
    /// When the key's file cannot be read or made, or is no key.
    pub fn open(directory: &Path) -> io::Result<Self> {
        Ok(Self::with(&key::read_or_make(directory)?))
    }

    /// With a key that is gone when the process ends, for whoever keeps nothing on disk.
    #[must_use]
    pub fn ephemeral() -> Self {
        Self::with(&random())
    }

    fn with(key: &[u8; 32]) -> Self {
        Self { cipher: XChaCha20Poly1305::new(&(*key).into()) }
    }

    /// The capsule as bytes that open with this key for this device alone.
    #[must_use]
    pub fn seal(&self, capsule: &Capsule) -> Vec<u8> {
        let nonce: [u8; 24] = random();
        let (clear, beside) = (layout::bytes(capsule), beside(capsule.device));
        let payload = Payload { msg: &clear, aad: &beside };
        let sealed = self.cipher.encrypt(&XNonce::from(nonce), payload).expect("a few kilobytes are never too long");
        [[VERSION].as_slice(), &nonce, &sealed].concat()
    }

    /// Opens what [`Sealer::seal`] made for `device`.
    ///
    /// # Errors
    /// When the bytes are anything else.
    pub fn open_sealed(&self, device: DeviceKey, sealed: &[u8]) -> Result<Capsule, NotOpened> {
        let (version, rest) = sealed.split_first().ok_or(NotOpened::Damaged)?;
        if *version != VERSION {
            return Err(NotOpened::Version(*version));
        }
        let (nonce, sealed) = rest.split_first_chunk::<24>().ok_or(NotOpened::Damaged)?;
        let payload = Payload { msg: sealed, aad: &beside(device) };
        let clear = self.cipher.decrypt(&XNonce::from(*nonce), payload).map_err(|_| NotOpened::Damaged)?;
        let capsule = layout::capsule(&clear).ok_or(NotOpened::Damaged)?;
        if capsule.device == device && is_sound(&capsule) { Ok(capsule) } else { Err(NotOpened::Damaged) }
    }
}

/// What no matcher would have written is not given to one.
fn is_sound(capsule: &Capsule) -> bool {
    Embedding::new(&capsule.centroid).is_ok() && capsule.seconds.is_finite() && capsule.seconds >= 0.0
}

/// What is authenticated beside the ciphertext.
fn beside(device: DeviceKey) -> Vec<u8> {
    [b"rollcall capsule".as_slice(), &[VERSION], &device.0].concat()
}

/// The name under which an account's device is known to the store.
#[must_use]
pub fn device_key(account: &str, device: &str) -> DeviceKey {
    let mut hash = Sha256::new();
    for part in ["rollcall device", account, device] {
        // With its length, so that no two pairs of parts are one text.
        let length = u64::try_from(part.len()).expect("a length fits");
        hash.update(length.to_le_bytes());
        hash.update(part);
    }
    DeviceKey(hash.finalize().into())
}

/// By which two prints are the same to the last bit: SHA-256 of the values, 32-bit, little-endian.
#[must_use]
pub fn print_digest(print: &Embedding) -> [u8; 32] {
    let mut hash = Sha256::new();
    print.values().iter().for_each(|value| hash.update(value.to_le_bytes()));
    hash.finalize().into()
}

fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the operating system gives random bytes");
    bytes
}
