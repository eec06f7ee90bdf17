//! Goal: every file that people have becomes samples, and every file that is wrong becomes one clear error, never a panic.
//! Method: WAV bytes are made here, right and wrong; one-second 500 Hz tones at half scale stand in `tests/fixtures`
//! for the compressed formats, and every file is also cut and flipped at many places.

use super::*;
use crate::testing::{RATE, silence, tone, wav, wav_of};

const FIXTURES: [(&str, &[u8]); 5] = [
    ("flac", include_bytes!("../../tests/fixtures/tone.flac")),
    ("mp3", include_bytes!("../../tests/fixtures/tone.mp3")),
    ("ogg", include_bytes!("../../tests/fixtures/tone.ogg")),
    ("opus", include_bytes!("../../tests/fixtures/tone.opus")),
    ("m4a", include_bytes!("../../tests/fixtures/tone.m4a")),
];

fn read(bytes: Vec<u8>) -> Result<Audio, AudioError> {
    decode(bytes, Limits::UPLOAD)
}

/// Times that the signal rises from well below zero to well above: the frequency, for a tone of one second.
fn rises(audio: &Audio) -> usize {
    let loud: Vec<i16> = audio.pcm.iter().copied().filter(|sample| sample.unsigned_abs() > 2_000).collect();
    loud.windows(2).filter(|pair| pair[0] < 0 && pair[1] > 0).count()
}

fn peak(audio: &Audio) -> u16 {
    audio.pcm.iter().map(|sample| sample.unsigned_abs()).max().unwrap_or(0)
}

#[test]
fn sixteen_bit_wav_comes_through_sample_by_sample() {
    let pcm = [0, 1, -1, 12_345, i16::MAX, i16::MIN];
    let audio = read(wav(&pcm)).unwrap();
    assert_eq!((&*audio.pcm, audio.sample_rate.get()), (&pcm[..], RATE));
}

#[test]
fn every_compressed_format_gives_the_tone_that_went_in() {
    for (name, bytes) in FIXTURES {
        let audio = read(bytes.to_vec()).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!((0.9..1.2).contains(&audio.seconds()), "{name} is {} s long", audio.seconds());
        assert!((480..=520).contains(&rises(&audio)), "{name} has {} periods", rises(&audio));
        assert!((13_000..=20_000).contains(&peak(&audio)), "{name} peaks at {}", peak(&audio));
    }
}

#[test]
fn opus_is_as_long_as_what_was_encoded() {
    let audio = read(FIXTURES[3].1.to_vec()).unwrap();
    assert_eq!((audio.pcm.len(), audio.sample_rate.get()), (48_000, 48_000));
}

#[test]
fn a_flac_file_with_an_id3v1_block_at_its_end_loses_nothing() {
    let flac = FIXTURES[0].1.to_vec();
    let tag = [&b"TAG"[..], &[b' '; 125]].concat();
    let tag_before = [&b"ID3\x04\0\0\0\0\0\x0a"[..], &[0; 10]].concat();
    let whole = read(flac.clone()).unwrap();
    assert_eq!(read([&flac[..], &tag].concat()), Ok(whole.clone()));
    assert_eq!(read([tag_before, flac, tag].concat()), Ok(whole));
}

#[test]
fn a_flac_file_that_decodes_short_says_how_many_of_how_many_samples() {
    let flac = FIXTURES[0].1;
    let told = u64::try_from(read(flac.to_vec()).unwrap().pcm.len()).unwrap();
    for bytes in [[flac, b"\r\n"].concat(), flac[..flac.len() - 10].to_vec()] {
        let error = read(bytes).unwrap_err();
        assert!(matches!(error, AudioError::Incomplete { found, told: t } if found < told && t == told), "{error}");
        assert!(error.to_string().contains(&format!("of the file's {told} samples")), "{error}");
    }
}

#[test]
fn a_file_that_is_cut_off_before_its_audio_is_called_what_it_is() {
    for (index, kind, kept) in
        [(0, "a FLAC file", 100), (4, "an M4A file", 40), (4, "an M4A file", 2000), (4, "an M4A file", 5000)]
    {
        let error = read(FIXTURES[index].1[..kept].to_vec()).unwrap_err().to_string();
        assert!(error.contains(&format!("it is {kind} that is cut off")), "{error}");
    }
    let photo = [&b"\0\0\0\x18ftypheic"[..], &[0; 400]].concat();
    assert_eq!(read(photo), Err(AudioError::UnknownFormat));
}

#[test]
fn wav_of_every_width_is_read() {
    let samples = [0.5_f32, -0.25, 0.0, 0.75];
    let floats: Vec<u8> = samples.iter().flat_map(|value| value.to_le_bytes()).collect();
    let doubles: Vec<u8> = samples.iter().flat_map(|value| f64::from(*value).to_le_bytes()).collect();
    let wide: Vec<u8> =
        [16_384_i32 << 16, -8_192 << 16, 0, 24_576 << 16].iter().flat_map(|v| v.to_le_bytes()).collect();
    let three: Vec<u8> =
        [16_384_i32 << 8, -8_192 << 8, 0, 24_576 << 8].iter().flat_map(|v| v.to_le_bytes()[..3].to_vec()).collect();
    for (name, bytes) in [
        ("float", wav_of(3, 1, RATE, 32, &floats)),
        ("double", wav_of(3, 1, RATE, 64, &doubles)),
        ("32 bit", wav_of(1, 1, RATE, 32, &wide)),
        ("24 bit", wav_of(1, 1, RATE, 24, &three)),
        ("8 bit", wav_of(1, 1, RATE, 8, &[192, 96, 128, 224])),
    ] {
        let audio = read(bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(&*audio.pcm, &[16_384, -8_192, 0, 24_576], "{name}");
    }
}

#[test]
fn telephone_wav_is_read() {
    // Full-scale codes of both laws and both signs.
    for (tag, codes) in [(7_u16, [0x80_u8, 0x00]), (6, [0xAA, 0x2A])] {
        let audio = read(wav_of(tag, 1, 8000, 8, &codes.repeat(100))).unwrap();
        assert!(peak(&audio) > 30_000 && audio.pcm[0] == -audio.pcm[1], "codec {tag}: {:?}", &audio.pcm[..2]);
    }
}

#[test]
fn several_channels_become_their_mean() {
    let data: Vec<u8> = [1000_i16, 3000, -2000, 0].iter().flat_map(|value| value.to_le_bytes()).collect();
    assert_eq!(&*read(wav_of(1, 2, RATE, 16, &data)).unwrap().pcm, &[2000, -1000]);
}

#[test]
fn a_data_size_that_was_never_filled_in_is_what_is_present() {
    for size in [0xFFFF_FFFF_u32, 0xFFFF_1000, 0x7FFF_FFFF, 32_001] {
        let mut bytes = wav(&tone(500.0, 1.0));
        bytes[40..44].copy_from_slice(&size.to_le_bytes());
        bytes[4..8].copy_from_slice(&size.wrapping_add(36).to_le_bytes());
        assert_eq!(read(bytes).unwrap().pcm.len(), 16_000, "size {size:#x}");
    }
}

#[test]
fn a_data_size_below_what_is_present_is_believed() {
    let mut bytes = wav(&tone(500.0, 1.0));
    bytes[40..44].copy_from_slice(&16_000_u32.to_le_bytes());
    assert_eq!(read(bytes).unwrap().pcm.len(), 8_000);
}

#[test]
fn chunks_before_the_data_are_passed_over() {
    let mut bytes = wav(&[1, 2, 3]);
    let extra: Vec<u8> = [&b"junk"[..], &5_u32.to_le_bytes(), b"abcde\0"].concat();
    bytes.splice(12..12, extra);
    assert_eq!(&*read(bytes).unwrap().pcm, &[1, 2, 3]);
}

#[test]
fn a_header_that_makes_no_sense_is_refused_with_its_field() {
    let data = [0_u8; 4096];
    let cases: [(&str, Vec<u8>, &str); 15] = [
        ("nothing", Vec::new(), "holds no audio"),
        ("no data", wav_of(1, 1, RATE, 16, &[]), "holds no audio"),
        ("half a frame", wav_of(1, 2, RATE, 16, &[0; 3]), "holds no audio"),
        ("zero rate", wav_of(1, 1, 0, 16, &data), "sample rate is 0 Hz"),
        ("huge rate", wav_of(1, 1, u32::MAX, 16, &data), "sample rate is 4294967295 Hz"),
        ("studio rate", wav_of(1, 1, 96_000, 16, &data), "between 8000 and 48000 Hz"),
        ("no channels", wav_of(1, 0, RATE, 16, &data), "0 channels"),
        ("1000 channels", wav_of(1, 1000, RATE, 16, &data), "1000 channels"),
        ("zero bits", wav_of(1, 1, RATE, 0, &data), "0 bits"),
        ("17 bits", wav_of(1, 1, RATE, 17, &data), "17 bits"),
        ("adpcm", wav_of(0x11, 1, RATE, 4, &data), "codec 0x0011"),
        ("big-endian", b"RIFX\0\0\0\0WAVEfmt ".to_vec(), "not supported"),
        ("another RIFF", b"RIFF\0\0\0\0AVI LIST".to_vec(), "does not say WAVE"),
        ("text", b"hello, this is no audio at all ".repeat(50), "none of WAV, FLAC"),
        ("zeros", vec![0; 5000], "none of WAV, FLAC"),
    ];
    for (name, bytes, words) in cases {
        let error = read(bytes).expect_err(name).to_string();
        assert!(error.contains(words), "{name}: {error:?} should say {words:?}");
    }
}

#[test]
fn a_wav_header_cut_anywhere_is_an_error() {
    let bytes = wav(&tone(500.0, 0.1));
    for length in 1..=44 {
        read(bytes[..length].to_vec()).expect_err("there are no samples yet");
    }
}

#[test]
fn a_sample_that_is_not_a_number_is_refused() {
    for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let mut data: Vec<u8> = [0.1_f32; 100].iter().flat_map(|v| v.to_le_bytes()).collect();
        data[200..204].copy_from_slice(&value.to_le_bytes());
        assert_eq!(read(wav_of(3, 1, RATE, 32, &data)), Err(AudioError::NotFinite));
    }
}

#[test]
fn samples_beyond_full_scale_are_held_there() {
    let data: Vec<u8> = [9.0_f32, -9.0].iter().flat_map(|value| value.to_le_bytes()).collect();
    assert_eq!(&*read(wav_of(3, 1, RATE, 32, &data)).unwrap().pcm, &[i16::MAX, i16::MIN]);
}

#[test]
fn too_many_bytes_and_too_many_seconds_are_refused() {
    let limits = Limits { bytes_max: 100_000, seconds_max: 2 };
    let bytes = wav(&tone(500.0, 2.0));
    assert!(decode(bytes.clone(), limits).is_ok());
    let found = bytes.len();
    let small = Limits { bytes_max: found - 1, ..limits };
    assert_eq!(decode(bytes, small), Err(AudioError::TooLarge { found, most: found - 1 }));
    assert_eq!(decode(wav(&tone(500.0, 2.01)), limits), Err(AudioError::TooLong { most: 2 }));
}

#[test]
fn a_file_that_is_cut_or_flipped_anywhere_never_panics_the_caller() {
    let mut files = FIXTURES.to_vec();
    let whole = wav(&tone(500.0, 0.2));
    files.push(("wav", &whole));
    for (name, bytes) in files {
        for place in (0..bytes.len()).step_by(bytes.len() / 97 + 1) {
            let mut flipped = bytes.to_vec();
            flipped[place] ^= 0xFF;
            for damaged in [bytes[..place].to_vec(), flipped] {
                if let Ok(audio) = read(damaged) {
                    assert!(audio.seconds() < 300.0, "{name}, damaged at {place}, became {audio:?}");
                }
            }
        }
    }
}

#[test]
fn pieces_are_equal_and_lose_nothing() {
    let audio = read(wav(&tone(500.0, 21.0))).unwrap();
    let pieces = audio.pieces(10);
    assert_eq!(pieces.iter().map(|piece| piece.pcm.len()).collect::<Vec<_>>(), [112_000; 3]);
    assert_eq!(audio.pieces(30), [audio]);
}

fn speech(pcm: Vec<i16>) -> Speech {
    Speech::of(&Audio { pcm: pcm.into(), sample_rate: crate::testing::rate() })
}

#[test]
fn speech_is_what_is_loud_for_the_clip() {
    let measured = speech([silence(2.0), tone(300.0, 3.0), silence(5.0)].concat());
    assert!((measured.seconds - 3.0).abs() < 0.05, "{measured:?}");
    assert!((measured.share - 0.3).abs() < 0.01, "{measured:?}");
    assert!(measured.quality > 0.99, "{measured:?}");
}

#[test]
fn a_short_gap_within_speech_counts_and_a_pause_does_not() {
    let word = || tone(300.0, 1.0);
    assert!((speech([word(), silence(0.16), word()].concat()).seconds - 2.16).abs() < 0.03);
    assert!((speech([word(), silence(0.5), word()].concat()).seconds - 2.0).abs() < 0.03);
    assert!((speech([silence(0.16), word(), silence(0.16)].concat()).seconds - 1.0).abs() < 0.03);
}

#[test]
fn steady_sound_counts_in_full_and_silence_not_at_all() {
    assert!((speech(tone(300.0, 3.0)).share - 1.0).abs() < 1e-9);
    assert!(speech(silence(3.0)).seconds.abs() < 1e-9);
    assert!(speech(Vec::new()).seconds.abs() < 1e-9);
}

#[test]
fn a_quiet_recording_has_as_much_speech_as_a_loud_one() {
    let loud = [silence(1.0), tone(300.0, 3.0)].concat();
    let quiet: Vec<i16> = loud.iter().map(|sample| sample / 64).collect();
    assert!((speech(loud).seconds - speech(quiet).seconds).abs() < 0.03);
}

#[test]
fn clipped_samples_are_counted_and_lower_the_quality() {
    let square: Vec<i16> = tone(300.0, 3.0).iter().map(|v| if *v < 0 { i16::MIN } else { i16::MAX }).collect();
    let measured = speech([silence(1.0), square].concat());
    assert!((measured.clipped - 0.75).abs() < 0.01, "{measured:?}");
    assert!(measured.quality < 0.01, "{measured:?}");
}
