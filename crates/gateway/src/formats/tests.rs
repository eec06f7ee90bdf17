//! Goal: what others write is read, what is written is read back, and what is wrong is named with its place.
//! Method: small texts in the shapes that the tools themselves print.

use super::*;

fn segment(start: f64, end: f64, label: &str) -> Segment {
    Segment { start, end, label: label.to_owned(), text: None }
}

fn refusal(text: &str) -> String {
    read(text).expect_err("the text is wrong").to_string()
}

#[test]
fn rttm_as_a_diarizer_prints_it_is_read() {
    let text = "SPEAKER meeting 1 0.500 1.250 <NA> <NA> SPEAKER_00 <NA> <NA>\n\
                ;; a comment\n\n\
                SPKR-INFO meeting 1 <NA> <NA> <NA> unknown SPEAKER_00 <NA> <NA>\n\
                SPEAKER meeting 1\t2 0.5 <NA> <NA> SPEAKER_01 <NA>\r\n";
    assert_eq!(read(text).unwrap(), [segment(0.5, 1.75, "SPEAKER_00"), segment(2.0, 2.5, "SPEAKER_01")]);
}

#[test]
fn the_end_of_a_line_of_rttm_has_no_rounding_noise() {
    let text = "SPEAKER f 1 0.1 0.2 <NA> <NA> A <NA> <NA>";
    assert_eq!((0.1_f64 + 0.2).to_string(), "0.30000000000000004", "the sum itself has it");
    assert_eq!(read(text).unwrap()[0].end.to_string(), "0.3");
}

#[test]
fn segments_come_in_the_order_of_their_ends() {
    let text = rttm::write("f", &[segment(0.0, 9.0, "a"), segment(1.0, 2.0, "b"), segment(0.5, 2.0, "c")]);
    let labels: Vec<String> = read(&text).unwrap().into_iter().map(|segment| segment.label).collect();
    assert_eq!(labels, ["c", "b", "a"]);
}

#[test]
fn every_shape_of_pyannote_json_is_read() {
    let list = r#"[{"start":0.5,"end":1.75,"speaker":"SPEAKER_00"}]"#;
    let other = r#"[{"start":7,"end":8,"speaker":"X"}]"#;
    for text in [
        list.to_owned(),
        format!(r#"{{"diarization":{list}}}"#),
        format!("\u{feff} {{\"diarization\":{other},\"exclusive_diarization\":{list}}}"),
        format!(r#"{{"diarization":{other},"exclusiveDiarization":{list},"warning":null}}"#),
        format!(r#"{{"jobId":"1","status":"succeeded","output":{{"diarization":{list}}}}}"#),
        format!(r#"{{"diarization":{list},"exclusive_diarization":[]}}"#),
    ] {
        assert_eq!(read(&text).unwrap(), [segment(0.5, 1.75, "SPEAKER_00")], "{text}");
    }
}

#[test]
fn text_of_a_segment_is_kept() {
    let text = r#"[{"start":0,"end":1,"speaker":"a","text":"hello"}]"#;
    assert_eq!(read(text).unwrap()[0].text.as_deref(), Some("hello"));
}

#[test]
fn what_is_written_is_read_back() {
    let segments = [segment(0.0, 0.001, "anna"), segment(12.345, 86_399.999, "SPEAKER_01")];
    for text in [rttm::write("a file.wav", &segments), pyannote::write(&segments)] {
        let again = read(&text).unwrap();
        assert_eq!(again.len(), 2, "{text}");
        for (before, after) in segments.iter().zip(&again) {
            assert_eq!(before.label, after.label);
            assert!((before.start - after.start).abs() < 1e-6 && (before.end - after.end).abs() < 1e-6, "{after:?}");
        }
    }
}

#[test]
fn a_space_in_a_name_does_not_shift_the_fields_of_rttm() {
    let text = rttm::write("my file", &[segment(0.0, 1.0, "Anna Meier\n")]);
    assert_eq!(text, "SPEAKER my_file 1 0.000 1.000 <NA> <NA> Anna_Meier_ <NA> <NA>\n");
}

#[test]
fn a_wrong_line_of_rttm_is_named() {
    let line = |start: &str, duration: &str| format!("SPEAKER f 1 {start} {duration} <NA> <NA> A <NA> <NA>");
    let good = line("0", "1");
    for (text, words) in [
        (format!("{good}\nhello world"), "line 2: \"hello\" is no RTTM line"),
        (format!("{good}\n{good}\nSPEAKER f 1 0"), "line 3: there are 4 fields"),
        (line("x", "1"), "line 1: the start \"x\" is not a number"),
        (line("1", ""), "line 1: the duration \"<NA>\" is not a number"),
        (line("nan", "1"), "must be finite"),
        (line("0", "inf"), "must be finite"),
        (line("-0.5", "1"), "before the recording"),
        (line("126.66", "-23.7"), "does not come after"),
        (line("5", "0"), "does not come after"),
        (line("1764500000", "1"), "more than a day"),
        (line("0", "1").replace(" A ", &format!(" {} ", "A".repeat(257))), "1 to 256 bytes"),
        (
            format!("{good}\n;; x\n{}", good.replace(" f ", " g ")),
            "line 3: it is of the recording \"g\", and the lines before are of \"f\"",
        ),
        (";; nothing else".to_owned(), "no SPEAKER line"),
        ("  \n ".to_owned(), "the file is empty"),
        (format!("{good}\n").repeat(SEGMENTS_MAX + 1), "line 100001: there are more than 100000"),
    ] {
        let message = refusal(&text);
        assert!(message.contains(words), "{message:?} should say {words:?}");
    }
}

#[test]
fn a_wrong_item_of_json_is_named() {
    for (text, words) in [
        ("{", "line 1 column 1"),
        ("{}", "has no list `diarization`"),
        (r#"{"diarization":7}"#, "invalid type"),
        ("[]", "the list is empty"),
        (r#"[{"start":0,"end":1}]"#, "item[0]: missing field `speaker`"),
        (
            r#"{"diarization":[{"start":0,"end":1,"speaker":"a"},{"start":"0","end":1,"speaker":"a"}]}"#,
            "diarization[1]",
        ),
        (r#"[{"start":126.66,"end":102.96,"speaker":"a"}]"#, "item[0]: end 102.96 does not come after start 126.66"),
        (r#"[{"start":0,"end":1e400,"speaker":"a"}]"#, "out of range"),
        (r#"[{"start":0,"end":1,"speaker":" "}]"#, "1 to 256 bytes"),
        (r#"[{"start":0,"end":1,"speaker":7}]"#, "invalid type"),
    ] {
        let message = refusal(text);
        assert!(message.contains(words), "{message:?} should say {words:?}");
    }
}

#[test]
fn deep_nesting_is_refused_and_not_followed() {
    refusal(&"[".repeat(100_000));
    refusal(&r#"{"output":"#.repeat(10_000));
}

#[test]
fn vtt_escapes_what_would_end_a_cue() {
    let hostile = Segment { text: Some("a --> b\n\n00:00 <b> & c".into()), ..segment(3599.9996, 3600.5, "Anna <x>") };
    assert_eq!(
        vtt::write(&[segment(0.0, 1.5, "anna"), hostile]),
        "WEBVTT\n\n00:00:00.000 --> 00:00:01.500\n<v anna>anna\n\n\
         01:00:00.000 --> 01:00:00.500\n<v Anna &lt;x&gt;>a --&gt; b 00:00 &lt;b&gt; &amp; c\n"
    );
}

#[test]
fn srt_numbers_its_cues_and_names_the_speaker() {
    let said = Segment { text: Some("one\n\ntwo --> three".into()), ..segment(1.5, 62.25, "bert") };
    assert_eq!(
        srt::write(&[segment(0.0, 1.5, "anna"), said]),
        "1\n00:00:00,000 --> 00:00:01,500\nanna\n\n2\n00:00:01,500 --> 00:01:02,250\nbert: one two → three\n\n"
    );
}
