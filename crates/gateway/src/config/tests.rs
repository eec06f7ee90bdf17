//! Goal: every source reaches the configuration in order, and what is wrong is named with its source and its mend.
//! Method: sources are values; files are written to a temporary directory.

use super::*;

fn load(environment: &[(&str, &str)], set: &[&str]) -> Result<Config, ConfigError> {
    Config::load(&Sources {
        file: None,
        environment: environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        set: set.iter().map(|text| (*text).to_owned()).collect(),
    })
}

fn load_file(text: &str) -> Result<Config, ConfigError> {
    let directory = crate::testing::TemporaryDirectory::new();
    let file = directory.path().join(FILE_NAME);
    std::fs::write(&file, text).unwrap();
    Config::load(&Sources { file: Some(file), environment: Vec::new(), set: vec!["budget.socket_burst=3".to_owned()] })
}

fn refusal(result: Result<Config, ConfigError>) -> String {
    result.expect_err("the source is wrong").to_string()
}

#[test]
fn the_example_file_reads_back_as_the_default() {
    let text = Config::example_toml();
    assert_eq!(toml::from_str::<Config>(&text).unwrap(), Config::default());
}

#[test]
fn the_example_file_names_every_field_and_its_commented_fields_are_valid() {
    let uncommented: String =
        Config::example_toml().lines().map(|line| format!("{}\n", without_comment(line))).collect();
    let config: Config = toml::from_str(&uncommented).unwrap();
    assert_eq!(config.matching.threshold, Some(0.55));
    assert_eq!(config.extraction.runtime.as_deref(), Some("/usr/lib/libonnxruntime.so"));
    config.validate().unwrap();
}

/// `#field = value` is a field without a default; `# words` is a comment.
fn without_comment(line: &str) -> &str {
    line.strip_prefix('#').filter(|rest| !rest.starts_with(' ')).unwrap_or(line)
}

#[test]
fn the_defaults_are_valid() {
    Config::default().validate().unwrap();
}

#[test]
fn a_later_source_wins_over_an_earlier_one() {
    let config = load_file("[budget]\nvoice_attempts = 5\nsocket_burst = 9\n").unwrap();
    assert_eq!((config.budget.voice_attempts, config.budget.socket_burst), (5, 3));
    let environment = [("ROLLCALL_BUDGET__SOCKET_BURST", "7"), ("ROLLCALL_BUDGET__VOICE_ATTEMPTS", "8")];
    let config = load(&environment, &["budget.socket_burst=2"]).unwrap();
    assert_eq!((config.budget.voice_attempts, config.budget.socket_burst), (8, 2));
}

#[test]
fn values_are_read_by_the_type_of_their_field() {
    let config =
        load(&[("ROLLCALL_SERVER__DATA", "2026")], &["matching.evidence_seconds=6", "matching.threshold=0.5"]).unwrap();
    assert_eq!(config.server.data.as_deref(), Some("2026"));
    assert!((config.matching.evidence_seconds - 6.0).abs() < f64::EPSILON);
    assert_eq!(config.matching.threshold, Some(0.5));
}

#[test]
fn a_switch_is_on_only_when_it_says_true() {
    let from_variable = |text| load(&[("ROLLCALL_MATCHING__SUGGESTIONS", text)], &[]).unwrap().matching.suggestions;
    for on in ["true", "TRUE ", " True\t"] {
        assert!(from_variable(on).is_on(), "{on:?}");
    }
    for off in ["1", "on", "yes", "false", "", "true!", "1.0", "nan", "[true]", "2026-01-01"] {
        assert!(!from_variable(off).is_on(), "{off:?}");
    }
    assert!(load(&[], &["matching.suggestions=true"]).unwrap().matching.suggestions.is_on());
    for (literal, on) in [("true", true), ("\"TRUE \"", true), ("false", false), ("1", false), ("\"1\"", false)] {
        let config = load_file(&format!("[matching]\nsuggestions = {literal}\n")).unwrap();
        assert_eq!(config.matching.suggestions.is_on(), on, "{literal}");
    }
    assert!(!Config::default().matching.suggestions.is_on());
}

#[test]
fn variables_that_are_not_fields_are_left_alone() {
    assert_eq!(load(&[("ROLLCALL_HOME", "/srv"), ("PATH", "/bin")], &[]).unwrap(), Config::default());
}

#[test]
fn a_wrong_source_is_named_with_what_was_expected() {
    for (environment, set, words) in [
        (&[("ROLLCALL_BUDGET__VOICE_ATTEMPT", "5")][..], &[][..], "ROLLCALL_BUDGET__VOICE_ATTEMPT"),
        (&[], &["budget.voice_attempts=many"][..], "--set budget.voice_attempts cannot be \"many\""),
        (&[], &["budget.voice_attempts=-1"], "--set budget.voice_attempts"),
        (&[], &["budgets.voice_attempts=1"], "unknown field `budgets`"),
        (&[], &["voice_attempts=1"], "names no section"),
        (&[], &["budget.voice_attempts"], "is not section.field=value"),
        (&[], &["matching.threshold=nan"], "matching.threshold is NaN"),
        (&[], &["matching.reconnect_evidence_seconds=0.4"], "must lie between 0.5 and 10"),
        (&[], &["matching.reconnect_within_seconds=0"], "must lie between 1 and 120"),
        (&[], &["history.keep_days=3651"], "history.keep_days is 3651; it must lie between 0 and 3650"),
        (&[], &["queue.slots=0"], "queue.slots is 0; it must lie between 1 and 1000"),
    ] {
        let message = refusal(load(environment, set));
        assert!(message.contains(words), "{message:?} should say {words:?}");
        assert!(!message.contains('\n'), "one line: {message:?}");
    }
}

#[test]
fn a_wrong_file_is_named_with_its_line() {
    for (text, words) in [
        ("[budget]\nvoice_attempts = 5\nsocket_burts = 9\n", "rollcall.toml line 3 unknown field `socket_burts`"),
        ("[budget\n", "rollcall.toml line 1"),
        ("[queue]\nslots = \"many\"\n", "rollcall.toml line 2"),
    ] {
        let message = refusal(load_file(text));
        assert!(message.contains(words), "{message:?} should say {words:?}");
    }
    let missing = Sources { file: Some("/nowhere/rollcall.toml".into()), ..Sources::default() };
    assert!(refusal(Config::load(&missing)).contains("/nowhere/rollcall.toml cannot be read"));
}

#[test]
fn fields_that_contradict_one_another_are_refused_together() {
    for (set, words) in [
        ("matching.clip_hard_minimum_seconds=3", "matching.clip_hard_minimum_seconds is 3, more than"),
        ("matching.evidence_seconds=31", "matching.clips_kept × matching.query_seconds_max (30)"),
        ("sockets.ring_seconds=5", "matching.query_seconds_max is 10, more than sockets.ring_seconds (5)"),
        ("extraction.run_deadline_seconds=6", "extraction.reservation_deadline_seconds (5)"),
        ("server.listen=0.0.0.0:80", "which other machines can reach"),
        ("server.listen=localhost", "not an IP address with a port"),
        ("server.log=xml", "\"text\" or \"json\""),
    ] {
        let message = refusal(load(&[], &[set]));
        assert!(message.contains(words), "{message:?} should say {words:?}");
    }
}

#[test]
fn what_is_asked_of_other_machines_is_read_only_where_they_are_asked() {
    assert_eq!(load(&[], &["remote.endpoints=nowhere"]).unwrap().remote().unwrap(), None);
    let environment =
        [("ROLLCALL_EXTRACTION__ENGINE", "remote"), ("ROLLCALL_REMOTE__ENDPOINTS", "http://a:8000, http://b:8000")];
    let servers = load(&environment, &["remote.timeout_seconds=1"]).unwrap().remote().unwrap().unwrap();
    assert_eq!(servers.endpoints, ["http://a:8000", "http://b:8000"]);
    assert_eq!((servers.model.as_deref(), servers.timeout_seconds), (Some("campplus"), 1.0));
    let embedding = load(&environment, &["remote.protocol=embedding"]).unwrap().remote().unwrap().unwrap();
    assert_eq!(embedding.model, None);
}

#[test]
fn servers_that_cannot_be_asked_are_refused_with_their_field() {
    for (set, words) in [
        (&["extraction.engine=gpu"][..], "extraction.engine is \"gpu\"; it can be \"local\" or \"remote\""),
        (&["extraction.engine=remote"], "remote.endpoints is not set"),
        (&["extraction.engine=remote", "remote.endpoints=https://a"], "remote.endpoints names https://a: TLS"),
        (&["extraction.engine=remote", "remote.endpoints=http://a,http://a"], "remote.endpoints names http://a twice"),
        (&["extraction.engine=remote", "remote.endpoints=http://a", "remote.protocol=grpc"], "remote.protocol is"),
        (&["extraction.engine=remote", "remote.endpoints=http://a", "extraction.model=/a/b"], "remote.model is"),
        (
            &["extraction.engine=remote", "remote.endpoints=http://a", "remote.timeout_seconds=4"],
            "more than extraction",
        ),
        (&["remote.failures_max=0"], "remote.failures_max is 0; it must lie between 1 and 100"),
    ] {
        let message = refusal(load(&[], set));
        assert!(message.contains(words), "{message:?} should say {words:?}");
    }
}

#[test]
fn a_band_of_suggestions_that_is_set_must_lie_where_no_name_is_given() {
    let message = refusal(load(&[], &["matching.threshold=0.6", "matching.suggestion_bound=0.5"]));
    assert!(message.contains("matching.threshold is 0.6, more than matching.suggestion_bound (0.5)"), "{message}");
    let message = refusal(load(&[], &["matching.margin=0.05", "matching.suggestion_margin=0.06"]));
    assert!(message.contains("matching.suggestion_margin is 0.06, more than matching.margin (0.05)"), "{message}");
    load(&[], &["matching.threshold=0.6", "matching.suggestion_bound=0.6"]).unwrap();
}

#[test]
fn distances_that_are_set_replace_those_of_the_manifest() {
    let manifest = crate::testing::manifest();
    let config = load(&[], &["matching.threshold=0.4", "matching.suggestion_margin=0.03"]).unwrap();
    let merged = config.matching.over(&manifest);
    assert!((merged.threshold - 0.4).abs() < f64::EPSILON && (merged.suggestion_margin - 0.03).abs() < f64::EPSILON);
    let restored = Manifest { threshold: manifest.threshold, suggestion_margin: manifest.suggestion_margin, ..merged };
    assert_eq!(restored, manifest);
}

use gpu_worker::Manifest;
