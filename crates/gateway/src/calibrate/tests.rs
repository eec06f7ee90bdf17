//! Goal: the rates, the threshold and the margin are those that a person works out by hand, for any distances; and a list
//! or a directory that is wrong says where.
//! Method: small cases by hand, random ones against their definitions, tones as voices for what is compared with what.

use std::path::Path;

use super::gaps::Gaps;
use super::people::leave_one_out;
use super::*;
use crate::testing::{TemporaryDirectory, ToneEngine, manifest, tone, wav};

fn rates(targets: &[f64], nontargets: &[f64]) -> Rates {
    Rates::new(targets.to_vec(), nontargets.to_vec()).unwrap()
}

fn near(left: f64, right: f64) -> bool {
    (left - right).abs() < 1e-12
}

#[test]
fn the_equal_error_rate_is_the_one_worked_out_by_hand() {
    let cases = [
        ("the steps meet", &[0.1, 0.2, 0.3, 0.6][..], &[0.4, 0.5, 0.7, 0.8][..], 0.25, 0.45),
        ("the steps cross", &[0.1, 0.2, 0.5], &[0.3, 0.6], 1.0 / 3.0, 0.3),
        ("apart: the middle between them", &[0.1, 0.3], &[0.7, 0.9], 0.0, 0.5),
        ("all alike: as good as chance", &[0.5, 0.5], &[0.5], 0.5, 0.5),
        ("the wrong way round", &[0.9], &[0.1], 1.0, 0.5),
    ];
    for (name, targets, nontargets, rate, threshold) in cases {
        let eer = rates(targets, nontargets).eer();
        assert!(near(eer.rate, rate) && near(eer.threshold, threshold), "{name}: {eer:?}");
    }
}

#[test]
fn a_distance_at_the_threshold_is_rejected_as_in_matching() {
    let rates = rates(&[0.2, 0.5], &[0.5, 0.8, 0.9, 1.0]);
    let at = |threshold| (rates.at(threshold).false_accepts, rates.at(threshold).false_rejects);
    assert_eq!([at(0.5), at(0.500_001), at(0.2), at(2.0)], [(0, 1), (1, 0), (0, 2), (4, 0)]);
    assert!(near(rates.at(0.6).far, 0.25) && near(rates.at(0.3).frr, 0.5));
}

#[test]
fn the_suggested_threshold_is_the_middle_of_those_with_the_fewest_false_rejects() {
    // One per cent of 200 is two: the third stranger, at 0.502, is the last place for a threshold.
    let strangers: Vec<f64> = (0..200).map(|n| 0.5 + f64::from(n) / 1000.0).collect();
    let suggested = rates(&[0.1, 0.2, 0.501, 0.9], &strangers).suggest();
    assert!(near(suggested.from, 0.501) && near(suggested.to, 0.502), "{suggested:?}");
    assert!(near(suggested.point.threshold, 0.5015));
    assert_eq!((suggested.point.false_accepts, suggested.point.false_rejects), (2, 1));
    let apart = rates(&[0.1, 0.3], &[0.7, 0.9]).suggest();
    assert!(near(apart.point.threshold, 0.5) && apart.point.false_rejects == 0);
    let hopeless = rates(&[0.9], &[0.0]).suggest();
    assert_eq!((hopeless.point.false_accepts, hopeless.point.false_rejects), (0, 1));
}

#[test]
fn no_allowed_threshold_rejects_fewer_than_the_suggested_and_the_eer_lies_between_the_curves() {
    for seed in 1..=300_u64 {
        let mut random = Random(seed);
        let (many, few) = (random.below(400) + 1, random.below(30) + 1);
        // Two decimals make ties, which is where off-by-one lives.
        let targets: Vec<f64> = (0..few).map(|_| random.below(90) as f64 / 100.0).collect();
        let strangers: Vec<f64> = (0..many).map(|_| (30 + random.below(120)) as f64 / 100.0).collect();
        let rates = rates(&targets, &strangers);
        let (suggested, eer) = (rates.suggest(), rates.eer());
        assert!(suggested.point.far <= 0.01, "seed {seed}: {suggested:?}");
        for threshold in (0..=200).map(|step| f64::from(step) / 100.0 + 0.005) {
            let point = rates.at(threshold);
            let rejects = strangers.iter().filter(|distance| **distance < threshold).count();
            assert_eq!(point.false_accepts, rejects, "seed {seed}");
            assert!(point.far > 0.01 || point.frr >= suggested.point.frr, "seed {seed} at {threshold}: {suggested:?}");
            let (low, high) = (point.far.min(point.frr), point.far.max(point.frr));
            assert!(low <= eer.rate + 1e-12 && eer.rate <= high + 1e-12, "seed {seed} at {threshold}: {eer:?}");
        }
    }
}

#[test]
fn distances_that_are_none_or_missing_are_refused_and_rounding_is_put_right() {
    let of = |targets: &[f64], nontargets: &[f64]| Rates::new(targets.to_vec(), nontargets.to_vec());
    assert_eq!(of(&[], &[0.5]).unwrap_err(), RatesError::NoTargets);
    assert_eq!(of(&[0.5], &[]).unwrap_err(), RatesError::NoNontargets);
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        assert_eq!(of(&[0.1, bad], &[0.5]).unwrap_err(), RatesError::NotFinite);
        assert_eq!(of(&[0.1], &[bad]).unwrap_err(), RatesError::NotFinite);
    }
    assert_eq!(of(&[-1e-9, -0.0], &[2.000_001]).unwrap(), rates(&[0.0, 0.0], &[2.0]));
}

/// Against a person with this number.
fn trial(test: usize, person: usize, kind: Kind, distance: f64) -> Trial {
    Trial { test, person, kind, distance }
}

/// Clip 0 is nearest to its own person, clip 1 to another; clip 2 has no stranger, and clip 3 is nobody's.
fn four_clips() -> Vec<Trial> {
    let (own, other) = (Kind::Target, Kind::Nontarget);
    [(0, other, 0.9), (0, own, 0.2), (0, other, 0.5), (1, own, 0.6), (1, other, 0.4), (1, other, 0.7), (2, own, 0.3)]
        .into_iter()
        .chain([(3, other, 0.45), (3, other, 0.5)])
        .enumerate()
        .map(|(person, (test, kind, distance))| trial(test, person, kind, distance))
        .collect()
}

#[test]
fn gaps_are_those_of_the_own_person_to_the_next_and_of_strangers_among_themselves() {
    let set = Gaps::of(&four_clips()).open_set();
    assert_eq!((set.known_clips, set.unknown_clips), (2, 3));
    let close = |found: Option<f64>, expected| found.is_some_and(|found| near(found, expected));
    assert!(close(set.known_gap_p5, -0.2) && close(set.known_gap_p50, -0.2), "{set:?}");
    assert!(close(set.unknown_gap_p50, 0.3) && close(set.unknown_gap_p95, 0.4), "{set:?}");
    assert_eq!(set.margin(), Some(0.0), "a known clip that is nearer to another leaves no room for a margin");
}

#[test]
fn a_rule_is_counted_clip_by_clip() {
    let gaps = Gaps::of(&four_clips());
    let outcomes = |right, wrong, rejected, unknown_accepted| Outcomes { right, wrong, rejected, unknown_accepted };
    assert_eq!(gaps.under(0.55, 0.1), outcomes(1, 1, 0, 2));
    assert_eq!(gaps.under(0.55, 0.25), outcomes(1, 0, 1, 2));
    assert_eq!(gaps.under(0.42, 0.0), outcomes(1, 1, 0, 1));
    assert_eq!(gaps.under(0.1, 0.0), outcomes(0, 0, 2, 0));
}

#[test]
fn the_margin_turns_strangers_away_but_never_costs_more_than_a_twentieth_of_known_clips() {
    // Of 20 known gaps 0.41 to 0.60 the smallest is p5; of 20 unknown gaps 0.01 to 0.20 the nineteenth is p95.
    let mut trials = Vec::new();
    for test in 0..20_usize {
        let step = (test + 1) as f64 / 100.0;
        trials.push(trial(test, 0, Kind::Target, 0.2));
        trials.push(trial(test, 1, Kind::Nontarget, 0.6 + step));
        trials.push(trial(test, 2, Kind::Nontarget, 0.6 + 2.0 * step));
    }
    let set = Gaps::of(&trials).open_set();
    assert!(set.margin().is_some_and(|margin| near(margin, 0.19)), "{set:?}");
    assert_eq!(Gaps::of(&trials[..1]).open_set().margin(), None);
}

#[test]
fn two_prints_of_one_stranger_are_not_two_strangers() {
    let distances = [(1, 0.9), (2, 0.5), (2, 0.45), (1, 0.7), (2, 0.6), (3, 0.8)];
    for turn in 0..distances.len() {
        let mut turned = distances;
        turned.rotate_left(turn);
        let trials: Vec<Trial> =
            turned.iter().map(|(person, distance)| trial(0, *person, Kind::Nontarget, *distance)).collect();
        let set = Gaps::of(&trials).open_set();
        assert!(set.unknown_gap_p50.is_some_and(|gap| near(gap, 0.25)), "turned by {turn}: {set:?}");
    }
}

#[test]
fn clips_that_target_trials_join_are_one_person_however_long_the_chain() {
    let lines: Vec<String> = (0..5_000).map(|n| format!("c{} c{n} target", n + 1)).collect();
    let text = format!("x c0 nontarget\n{}\nx y target", lines.join("\n"));
    let people = list(text.as_bytes()).unwrap().people();
    // In the order in which the list names them: x, then the chain, then y.
    assert_eq!((people.len(), people[0], people[5_002]), (5_003, 0, 0));
    assert!(people[1..5_002].iter().all(|person| *person == 1));
}

fn list(text: &[u8]) -> Result<List, String> {
    List::parse(Path::new("/data/trials.txt"), text).map_err(|error| error.to_string())
}

#[test]
fn a_list_names_files_relative_to_itself_and_counts_each_trial_once() {
    let text = "\u{feff}a.wav b.wav target\r\n\n a.wav\t/x/c.wav  nontarget\na.wav b.wav target\nb.wav a.wav target";
    let list = list(text.as_bytes()).unwrap();
    assert_eq!((list.count(Kind::Target), list.count(Kind::Nontarget), list.repeated()), (2, 1, 1));
    assert_eq!(list.place(Path::new("/x/c.wav")), "/data/trials.txt:3");
    assert_eq!(list.place(Path::new("/data/b.wav")), "/data/trials.txt:1");
}

#[test]
fn a_list_that_is_wrong_names_the_line_and_the_mend() {
    let cases: [(&[u8], &str); 8] = [
        (b"", "/data/trials.txt: holds no trials; a line is"),
        (b"\n \n", "/data/trials.txt: holds no trials"),
        (b"a b target\na b\n", "/data/trials.txt:2: a line is `<enrol> <test> target|nontarget`"),
        (b"my clip.wav b target", "/data/trials.txt:1: a line is"),
        (b"1 a b", "/data/trials.txt:1: the third field is \"b\"; it must be `target` or `nontarget`"),
        (b"a ./a target", "/data/trials.txt:1: compares a clip with itself"),
        (b"a b target\nc d target\na b nontarget", "/data/trials.txt:3: says the opposite of line 1"),
        (b"a b target\n\xff\xfe b target", "/data/trials.txt:2: is not UTF-8 text"),
    ];
    for (text, expected) in cases {
        let error = list(text).unwrap_err();
        assert!(error.starts_with(expected) && !error.contains('\n'), "{expected:?} is not how {error:?} starts");
    }
}

fn directory(files: &[(&str, f64)]) -> TemporaryDirectory {
    let directory = TemporaryDirectory::new();
    for (name, hertz) in files {
        let path = directory.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, wav(&tone(*hertz, 3.0))).unwrap();
    }
    directory
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(future)
}

#[test]
fn each_clip_meets_its_person_without_itself_and_everybody_else() {
    let people = directory(&[
        ("anna/1.wav", 300.0),
        ("anna/2.wav", 300.0),
        ("anna/3.wav", 900.0),
        ("ben/1.wav", 600.0),
        ("cleo/1.wav", 1200.0),
    ]);
    let plan = PeopleTrials::list(people.path()).unwrap();
    let engine = ToneEngine::new();
    let (trials, short) = block_on(plan.compare(&*engine, &|_, _| {})).unwrap();
    assert_eq!((engine.clips(), short, plan.people()), (5, 0, 3));
    let count = |kind| trials.iter().filter(|trial| trial.kind == kind).count();
    assert_eq!((count(Kind::Target), count(Kind::Nontarget)), (3, 10));
    assert_eq!((plan.count(Kind::Target), plan.count(Kind::Nontarget)), (3, 10));
    // Anna's clip 1 meets the mean of a like and an unlike one: 45 degrees. Her clip 3 meets two unlike ones.
    let own: Vec<f64> = trials.iter().filter(|trial| trial.kind == Kind::Target).map(|trial| trial.distance).collect();
    let half = 1.0 - 0.5_f64.sqrt();
    assert!((own[0] - half).abs() < 1e-6 && (own[1] - half).abs() < 1e-6 && (own[2] - 1.0).abs() < 1e-6, "{own:?}");
}

#[test]
fn a_person_with_one_clip_is_no_target_and_an_only_person_has_no_strangers() {
    let engine = ToneEngine::new();
    let audio = crate::audio::Audio { pcm: tone(300.0, 3.0).into(), sample_rate: crate::testing::rate() };
    let print = block_on(crate::people::voiceprint(&*engine, &audio)).unwrap();
    assert_eq!(leave_one_out(&[std::slice::from_ref(&print)]), []);
    for (files, words) in [
        (&[("anna/1.wav", 300.0), ("anna/2.wav", 300.0)][..], "holds one person; a threshold needs at least two"),
        (&[("anna/1.wav", 300.0), ("ben/1.wav", 600.0)], "at least one person needs two"),
    ] {
        let people = directory(files);
        let error = PeopleTrials::list(people.path()).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn a_clip_that_cannot_be_heard_is_named_with_its_line() {
    let clips = directory(&[("a.wav", 300.0), ("b.wav", 300.0)]);
    let path = clips.path().join("trials");
    std::fs::write(&path, "a.wav b.wav target\na.wav c.wav nontarget\n").unwrap();
    let error = List::read(&path).unwrap_err().to_string();
    assert!(error.contains("trials:2: ") && error.contains("c.wav: cannot be read"), "{error}");
    std::fs::write(clips.path().join("c.wav"), b"no wave").unwrap();
    let list = List::read(&path).unwrap();
    let error = block_on(list.compare(&*ToneEngine::new(), &|_, _| {})).unwrap_err();
    assert!(error.to_string().contains("c.wav: the file is none of WAV"), "{error}");
    assert!(list.place(&error.path).ends_with("trials:2"));
}

#[test]
fn the_report_says_how_many_trials_there_were_what_is_suggested_and_what_is_doubtful() {
    let report = Report::new(&manifest(), Source::People, &four_clips(), 1).unwrap();
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!((&json["trials"]["target"], &json["trials"]["nontarget"]), (&3.into(), &6.into()));
    assert_eq!((&json["present"]["threshold"], &json["present"]["margin"]), (&0.65.into(), &0.1.into()));
    assert_eq!(json["table"].as_array().unwrap().len(), 20);
    assert_eq!(json["table"][10]["threshold"], 0.55);
    assert_eq!(json["suggested"]["outcomes"]["right"], 1);
    let warnings = report.warnings().join("\n");
    for words in
        ["only 3 target trials", "only 6 nontarget trials", "2 known and 3 unknown", "less than 2 s of speech: 1"]
    {
        assert!(warnings.contains(words), "{words:?} is not in {warnings:?}");
    }
    let text = report.to_string();
    for words in ["3 target and 6 nontarget trials", "FAR <= 1 %", "in use          0.650    0.100"] {
        assert!(text.contains(words), "{words:?} is not in {text}");
    }
}

#[test]
fn the_plot_is_a_closed_file_of_bounded_size_whatever_the_model_is_called() {
    let mut random = Random(7);
    let mut trials = Vec::new();
    for test in 0..20_000_usize {
        trials.push(trial(test, 0, Kind::Target, random.below(1_000_000) as f64 / 1_500_000.0));
        trials.push(trial(test, 1, Kind::Nontarget, 0.4 + random.below(1_000_000) as f64 / 900_000.0));
    }
    let model = gpu_worker::Manifest { name: "a<b>&\u{0}c".into(), ..manifest() };
    let drawn = svg(&Report::new(&model, Source::Trials, &trials, 0).unwrap(), &trials).unwrap();
    assert!(drawn.starts_with("<svg ") && drawn.ends_with("</svg>\n"));
    assert!(drawn.contains("a&lt;b&gt;&amp;c: 20000 target") && !drawn.contains("NaN") && !drawn.contains("inf"));
    assert_eq!(drawn.matches("<polyline").count(), 3);
    assert!(drawn.len() < 150_000, "{} bytes", drawn.len());
}

#[test]
fn normal_deviates_are_those_of_the_tables() {
    for (rate, deviate) in [(0.5, 0.0), (0.025, -1.959_964), (0.975, 1.959_964), (0.001, -3.090_232)] {
        let found = plot::normal_deviate(rate);
        assert!((found - deviate).abs() < 5e-4, "{rate}: {found}");
    }
}

/// A small generator, so that a failing case is named by its seed.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % limit
    }
}
