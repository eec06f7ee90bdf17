//! From a file's bytes to decoded frames: Symphonia reads the containers and most codecs, a decoder of its own Opus.
//!
//! It checks nothing about the frames; [`super::mono`] does, for every codec alike.

use std::io::Cursor;

use opus_decoder::OpusDecoder;
use symphonia::core::codecs::audio::well_known::CODEC_ID_OPUS;
use symphonia::core::codecs::audio::{AudioCodecParameters, AudioDecoder, AudioDecoderOptions};
use symphonia::core::errors::Error;
use symphonia::core::formats::probe::Hint;
use symphonia::core::formats::well_known::FORMAT_ID_FLAC;
use symphonia::core::formats::{FormatOptions, FormatReader, TrackType};
use symphonia::core::io::MediaSourceStream;
use symphonia::core::meta::MetadataOptions;
use symphonia::core::packet::Packet;

use super::mono::Mono;
use super::{Audio, AudioError};

/// Opus always decodes at this rate, whatever it was made from.
const OPUS_RATE: u32 = 48_000;

/// Frames of the longest Opus packet, 120 ms, of one channel.
const OPUS_PACKET_FRAMES: usize = 5_760;

/// A damaged packet is left out, as players do; when more than one in this many is damaged the file is.
const DAMAGED_SHARE: u64 = 10;

pub(super) fn decode(bytes: Vec<u8>, seconds_max: u32) -> Result<Audio, AudioError> {
    let kind = kind_of(&bytes);
    let stream = MediaSourceStream::new(Box::new(Cursor::new(bytes)), Default::default());
    let mut reader = symphonia::default::get_probe()
        .probe(&Hint::new(), stream, FormatOptions::default(), MetadataOptions::default())
        .map_err(|error| unreadable(error, kind))?;
    let track = reader.default_track(TrackType::Audio).ok_or(AudioError::Empty)?;
    let id = track.id;
    // Of all formats FLAC alone says in its header how much it holds, and loses a last frame that bytes follow.
    let frames_told = track.num_frames.filter(|_| reader.format_info().format == FORMAT_ID_FLAC);
    let delay = usize::try_from(track.delay.unwrap_or(0)).unwrap_or(usize::MAX);
    let parameters = track.codec_params.as_ref().and_then(|parameters| parameters.audio());
    let mut decoder = Decoder::new(parameters.ok_or_else(|| unknown_codec("an unknown codec"))?, delay)?;
    read_all(&mut *reader, id, &mut decoder, Mono::new(seconds_max).of_frames(frames_told))
}

fn read_all(
    reader: &mut dyn FormatReader,
    track: u32,
    decoder: &mut Decoder,
    mut mono: Mono,
) -> Result<Audio, AudioError> {
    let (mut packets, mut damaged) = (0_u64, 0_u64);
    while let Some(packet) = next_packet(reader)? {
        if packet.track_id != track {
            continue;
        }
        packets += 1;
        if !decoder.decode(&packet, &mut mono)? {
            damaged += 1;
        }
    }
    if damaged.saturating_mul(DAMAGED_SHARE) > packets {
        return Err(AudioError::Damaged(format!("{damaged} of its {packets} packets cannot be decoded")));
    }
    mono.finish()
}

/// A file that ends within a packet ends there: a recording that was cut off is good up to the cut.
fn next_packet(reader: &mut dyn FormatReader) -> Result<Option<Packet>, AudioError> {
    match reader.next_packet() {
        Ok(packet) => Ok(packet),
        Err(Error::IoError(error)) if error.kind() == std::io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(AudioError::Damaged(error.to_string())),
    }
}

enum Decoder {
    Symphonia { decoder: Box<dyn AudioDecoder>, samples: Vec<f32> },
    Opus(Box<Opus>),
}

impl Decoder {
    fn new(parameters: &AudioCodecParameters, delay: usize) -> Result<Self, AudioError> {
        if parameters.codec == CODEC_ID_OPUS {
            let channels = parameters.channels.as_ref().map_or(0, |channels| channels.count());
            return Opus::new(channels, delay).map(|opus| Self::Opus(Box::new(opus)));
        }
        let decoder = symphonia::default::get_codecs()
            .make_audio_decoder(parameters, &AudioDecoderOptions::default())
            .map_err(|_| unknown_codec("the codec in this file"))?;
        Ok(Self::Symphonia { decoder, samples: Vec::new() })
    }

    /// Whether the packet could be decoded.
    fn decode(&mut self, packet: &Packet, mono: &mut Mono) -> Result<bool, AudioError> {
        let (decoder, samples) = match self {
            Self::Opus(opus) => return opus.decode(packet, mono),
            Self::Symphonia { decoder, samples } => (decoder, samples),
        };
        let frames = match decoder.decode(packet) {
            Ok(frames) => frames,
            Err(Error::DecodeError(_) | Error::IoError(_)) => return Ok(false),
            Err(error) => return Err(AudioError::Damaged(error.to_string())),
        };
        frames.copy_to_vec_interleaved(samples);
        mono.add(samples, frames.spec().rate(), frames.spec().channels().count())?;
        Ok(true)
    }
}

/// An Opus stream of one or two channels.
struct Opus {
    decoder: OpusDecoder,
    channels: usize,
    /// Frames still to leave out at the start: the encoder's run-in.
    delay: usize,
    samples: Vec<f32>,
}

impl Opus {
    fn new(channels: usize, delay: usize) -> Result<Self, AudioError> {
        let decoder = OpusDecoder::new(OPUS_RATE, channels)
            .map_err(|_| AudioError::Unsupported(format!("Opus with {channels} channels")))?;
        Ok(Self { decoder, channels, delay, samples: vec![0.0; OPUS_PACKET_FRAMES * channels] })
    }

    fn decode(&mut self, packet: &Packet, mono: &mut Mono) -> Result<bool, AudioError> {
        // An empty packet would make the decoder invent sound.
        if packet.data.is_empty() {
            return Ok(false);
        }
        let Ok(frames) = self.decoder.decode_float(&packet.data, &mut self.samples, false) else {
            return Ok(false);
        };
        let left_out = self.delay.min(frames);
        self.delay -= left_out;
        let padding = usize::try_from(packet.trim_end.get()).unwrap_or(usize::MAX);
        let kept = left_out * self.channels..frames.saturating_sub(padding) * self.channels;
        mono.add(self.samples.get(kept).unwrap_or_default(), OPUS_RATE, self.channels)?;
        Ok(true)
    }
}

/// What the first bytes say the file is, where they say it plainly.
fn kind_of(bytes: &[u8]) -> Option<&'static str> {
    // MP4's boxes begin with their size; pictures have the same box with brands of their own.
    let brand = bytes.get(4..).and_then(|rest| rest.strip_prefix(b"ftyp"));
    let is_mp4 = brand.is_some_and(|brand| [&b"M4"[..], b"mp4", b"iso", b"3g"].iter().any(|b| brand.starts_with(b)));
    match bytes {
        [b'f', b'L', b'a', b'C', ..] => Some("a FLAC file"),
        [b'O', b'g', b'g', b'S', ..] => Some("an Ogg file"),
        _ if is_mp4 => Some("an M4A file"),
        _ => None,
    }
}

fn unreadable(error: Error, kind: Option<&str>) -> AudioError {
    if let Error::DecodeError(reason) | Error::LimitError(reason) = error {
        return AudioError::Damaged(reason.to_owned());
    }
    // The end of the bytes without a container found, which is what text or a picture gives.
    kind.map_or(AudioError::UnknownFormat, |kind| {
        AudioError::Damaged(format!(
            "it is {kind} that is cut off before its audio can be found; copy or export it anew"
        ))
    })
}

fn unknown_codec(what: &str) -> AudioError {
    AudioError::Unsupported(what.to_owned())
}
