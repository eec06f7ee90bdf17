//! What stands behind the last frame of a FLAC file: taggers made for MP3 append an ID3v1 block there.
//!
//! The decoder takes whatever follows the last frame for a part of it and then loses that frame, so the block is dropped
//! here. Nothing is decoded, and no other trailing bytes are guessed at: a file that decodes short is refused.

/// Bytes of an ID3v1 block, the last of its file.
const TAG_BYTES: usize = 128;

/// Cuts an ID3v1 block off a FLAC file, also off one that the same kind of tagger put an ID3v2 block before. An MP3 file
/// that begins so loses its block as well, which holds no audio there either.
pub(super) fn drop_tag(bytes: &mut Vec<u8>) {
    let Some(end) = bytes.len().checked_sub(TAG_BYTES) else { return };
    let may_be_flac = bytes.starts_with(b"fLaC") || bytes.starts_with(b"ID3");
    if may_be_flac && bytes.get(end..).is_some_and(|block| block.starts_with(b"TAG")) {
        bytes.truncate(end);
    }
}
