//! The header of a WAV file, checked field by field and mended where recorders are known to write it wrong.
//!
//! Programs that write to a pipe do not know the length and leave 0xFFFFFFFF, 0xFFFF1000 or nothing sensible as the size
//! of the data; here it becomes the bytes that are present. Telephone codecs lack the format's empty extension, without
//! which the decoder refuses them; it is added. Nothing is decoded here.

use super::{AudioError, mono};

const PCM: u16 = 1;
const FLOAT: u16 = 3;
const A_LAW: u16 = 6;
const MU_LAW: u16 = 7;
const EXTENSIBLE: u16 = 0xFFFE;

/// Bytes of a chunk's id and size.
const CHUNK_HEADER: usize = 8;

/// Bytes of a format without an extension.
const PLAIN_FORMAT: u32 = 16;

/// What the `fmt ` chunk says, as far as we use it.
struct Format {
    /// Bytes of one sample of every channel.
    frame_bytes: usize,
    /// A telephone codec, whose format the decoder wants with an extension.
    is_telephone: bool,
}

pub(super) fn is_wav(bytes: &[u8]) -> bool {
    bytes.starts_with(b"RIFF") || bytes.starts_with(b"RIFX") || bytes.starts_with(b"RF64")
}

/// Checks the header and writes the true sizes into it.
pub(super) fn mend(bytes: &mut Vec<u8>) -> Result<(), AudioError> {
    if !bytes.starts_with(b"RIFF") {
        return Err(AudioError::Unsupported("this kind of WAV (big-endian, or larger than 4 GB)".to_owned()));
    }
    if bytes.get(8..12) != Some(b"WAVE") {
        return Err(damaged("the RIFF header does not say WAVE"));
    }
    let mut format = None;
    let mut at = 12;
    loop {
        let id: [u8; 4] = array_at(bytes, at).ok_or_else(|| damaged("the header ends before the data"))?;
        let mut size = u32_at(bytes, at + 4).ok_or_else(|| damaged("the header ends within a chunk"))?;
        let body = at + CHUNK_HEADER;
        match &id {
            b"fmt " => {
                let read = format.insert(read_format(bytes, body, size)?);
                if read.is_telephone && size == PLAIN_FORMAT {
                    size = extend_format(bytes, at);
                }
            }
            b"data" => {
                let format = format.ok_or_else(|| damaged("the data comes before the format"))?;
                return clamp(bytes, at + 4, size, format.frame_bytes);
            }
            _ => {}
        }
        // Chunks are padded to an even length.
        at = usize::try_from(size)
            .ok()
            .and_then(|size| body.checked_add(size)?.checked_add(size % 2))
            .ok_or_else(|| damaged("a chunk is larger than the file"))?;
    }
}

fn read_format(bytes: &[u8], at: usize, size: u32) -> Result<Format, AudioError> {
    let field = |offset| u16_at(bytes, at + offset).ok_or_else(|| damaged("the format is cut off"));
    if size < PLAIN_FORMAT {
        return Err(damaged("the format is shorter than 16 bytes"));
    }
    let (tag, channels, align, bits) = (field(0)?, field(2)?, field(12)?, field(14)?);
    let rate = u32_at(bytes, at + 4).ok_or_else(|| damaged("the format is cut off"))?;
    mono::check(rate, usize::from(channels))?;
    let allowed: &[u16] = match tag {
        PCM => &[8, 16, 24, 32],
        FLOAT => &[32, 64],
        EXTENSIBLE => &[8, 16, 24, 32, 64],
        A_LAW | MU_LAW => &[8],
        other => return Err(AudioError::Unsupported(format!("WAV with codec {other:#06x}"))),
    };
    if !allowed.contains(&bits) {
        return Err(AudioError::Unsupported(format!("WAV with {bits} bits a sample")));
    }
    let frame_bytes = usize::from(channels) * usize::from(bits / 8);
    if usize::from(align) != frame_bytes {
        return Err(damaged(&format!("a frame of {channels} × {bits} bits cannot have {align} bytes")));
    }
    Ok(Format { frame_bytes, is_telephone: matches!(tag, A_LAW | MU_LAW) })
}

/// Adds an extension of no bytes to the format at `at`, and answers the chunk's new size.
fn extend_format(bytes: &mut Vec<u8>, at: usize) -> u32 {
    let end = at + CHUNK_HEADER + 16;
    bytes.splice(end..end, [0, 0]);
    write_u32(bytes, at + 4, PLAIN_FORMAT + 2);
    PLAIN_FORMAT + 2
}

/// Sets the sizes of the data and of the whole to what is there, in whole frames.
fn clamp(bytes: &mut [u8], size_at: usize, size: u32, frame_bytes: usize) -> Result<(), AudioError> {
    let present = bytes.len() - (size_at + 4);
    let claimed = usize::try_from(size).unwrap_or(usize::MAX);
    let kept = claimed.min(present) / frame_bytes * frame_bytes;
    if kept == 0 {
        return Err(AudioError::Empty);
    }
    let whole = u32::try_from(bytes.len() - CHUNK_HEADER);
    let (Ok(kept), Ok(whole)) = (u32::try_from(kept), whole) else {
        return Err(AudioError::Unsupported("a WAV file larger than 4 GB".to_owned()));
    };
    write_u32(bytes, size_at, kept);
    write_u32(bytes, 4, whole);
    Ok(())
}

fn array_at<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    array_at(bytes, at).map(u16::from_le_bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    array_at(bytes, at).map(u32::from_le_bytes)
}

fn write_u32(bytes: &mut [u8], at: usize, value: u32) {
    bytes.get_mut(at..at + 4).expect("the field was read before").copy_from_slice(&value.to_le_bytes());
}

fn damaged(what: &str) -> AudioError {
    AudioError::Damaged(what.to_owned())
}
