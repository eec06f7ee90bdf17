//! Goal: wrong command lines are one line that says why, and right ones reach the settings.
//! Method: the parser and the context as the process uses them.

use clap::CommandFactory as _;

use super::*;

#[test]
fn the_command_line_is_well_formed() {
    Cli::command().debug_assert();
}

#[test]
fn a_complaint_is_one_line_without_the_usage() {
    for (arguments, words) in [
        (&["rollcall", "enroll", "a.wav"][..], "--person <ID>"),
        (&["rollcall", "enroll", "--person", "anna"], "<AUDIO>"),
        (&["rollcall", "frobnicate"], "unrecognized subcommand 'frobnicate'"),
        (&["rollcall", "doctor", "--port", "1"], "unexpected argument '--port'"),
    ] {
        let rendered = Cli::try_parse_from(arguments).expect_err("it is wrong").to_string();
        let line = complaint(&rendered);
        assert!(line.contains(words) && !line.contains('\n') && !line.contains("Usage:"), "{line:?}");
    }
}

#[test]
fn flags_win_over_every_other_source_and_are_checked() {
    let common = Common {
        set: vec!["server.data=/set".to_owned(), "extraction.model=set".to_owned()],
        data: Some("/flag".into()),
        model: Some("scripted".to_owned()),
        ..Common::default()
    };
    let context = Context::new(&common).unwrap();
    assert_eq!((context.data(), context.config.extraction.model.as_str()), ("/flag".into(), "scripted"));
    let wrong = Common { log: Some("xml".to_owned()), ..Common::default() };
    assert!(matches!(Context::new(&wrong), Err(CliError::Input(reason)) if reason.contains("server.log")));
}

#[test]
fn flags_stand_before_or_after_the_subcommand() {
    for arguments in [["rollcall", "--data", "/d", "doctor"], ["rollcall", "doctor", "--data", "/d"]] {
        assert_eq!(Cli::try_parse_from(arguments).unwrap().common.data, Some("/d".into()));
    }
}
