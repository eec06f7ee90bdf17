//! Goal: a recording plays as it was recorded, whatever happened in it; a recording that was tampered with is found out; and a
//! file that is none is refused with its line.
//! Method: every scenario is taped while it is played, line by line as a server tapes it, then read, followed and replayed.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use matcher_core::queue::Voice;
use matcher_core::{Dispatch, Embedding, Limits, Monotonic, Offer, Refusal, RequestId, Selection, Span};

use super::super::discipline::Discipline;
use super::super::slots::{Order, Slots};
use super::super::trace::line::{Heard, Joined, Reason, Selected};
use super::super::trace::{Event, Header, Line, RecordedLane, Settings};
use super::*;

type Lines = Rc<RefCell<Vec<Line>>>;

/// The service's order, and what it did.
struct Taped {
    slots: Slots,
    open: BTreeMap<RequestId, (Speaker, Monotonic)>,
    now: Monotonic,
    lines: Lines,
}

impl Taped {
    fn push(&self, event: Event) {
        self.lines.borrow_mut().push(Line { t: self.now.as_nanos(), lane: 1, event });
    }

    fn end(&mut self, request: RequestId, now: Monotonic, brought: bool) -> u32 {
        self.now = now;
        let (speaker, since) = self.open.remove(&request).unwrap();
        let took = u64::try_from(now.since(since).as_nanos()).unwrap();
        self.push(Event::Ran { voice: number(speaker), stream: 0, took, brought });
        number(speaker)
    }
}

/// Scenarios count from 0, recordings from 1.
fn number(speaker: Speaker) -> u32 {
    speaker.0 + 1
}

impl Discipline for Taped {
    fn handle_message(&mut self, offers: Vec<Offer>, ring: Option<Span>, now: Monotonic) {
        self.now = now;
        let segment = |offer: &Offer| {
            let (start, end) = (offer.window.start().0, offer.window.end().0);
            [u64::from(number(offer.speaker)), 0, start, end, offer.speech]
        };
        let ring_held = ring.map(|ring| [ring.start().0, ring.end().0]);
        self.push(Event::Heard(Heard { ring: ring_held, segments: offers.iter().map(segment).collect() }));
        self.slots.handle_message(offers, ring, now);
    }

    fn poll_dispatch(&mut self, now: Monotonic, free: usize) -> Option<Dispatch> {
        self.now = now;
        let dispatch = self.slots.poll_dispatch(now, free)?;
        let waited = u64::try_from(dispatch.waited.as_nanos()).unwrap();
        self.push(Event::Selected(Selected { voice: number(dispatch.speaker), stream: 0, waited }));
        self.open.insert(dispatch.request, (dispatch.speaker, now));
        Some(dispatch)
    }

    fn handle_reserved(&mut self, request: RequestId, selection: &Selection) {
        let voice = number(self.open[&request].0);
        let spans = selection.spans.iter().map(|span| [span.start().0, span.end().0]).collect();
        self.push(Event::Reserved { voice, stream: 0, spans });
        self.slots.handle_reserved(request, selection);
    }

    fn handle_refused(&mut self, request: RequestId, refusal: Refusal) {
        let (speaker, _) = self.open.remove(&request).unwrap();
        self.push(Event::Denied(Reason { voice: number(speaker), stream: 0, reason: "socket".into() }));
        self.slots.handle_refused(request, refusal);
    }

    fn handle_extracted(&mut self, request: RequestId, embedding: Embedding, now: Monotonic) {
        let voice = self.end(request, now, true);
        self.slots.handle_extracted(request, embedding, now);
        let class = self.slots.class(Voice { speaker: Speaker(voice - 1), scope: 0 });
        self.push(Event::Judged { voice, stream: 0, class });
    }

    fn handle_failed(&mut self, request: RequestId) {
        let now = self.now;
        self.end(request, now, false);
        self.slots.handle_failed(request);
    }

    fn waiting(&self) -> std::collections::BTreeSet<Speaker> {
        self.slots.waiting()
    }

    fn eligible(&self) -> std::collections::BTreeSet<Speaker> {
        self.slots.eligible()
    }

    fn is_rejected(&self, speaker: Speaker) -> bool {
        self.slots.is_rejected(speaker)
    }

    fn is_named(&self, speaker: Speaker) -> bool {
        self.slots.is_named(speaker)
    }
}

struct Tape {
    header: Header,
    lines: Vec<Line>,
    selected: Vec<u32>,
}

fn tape(scenario: Scenario, seed: u64) -> Tape {
    let script = scenario.script(seed);
    let setup = script.within(&Setup::default());
    let workers = std::num::NonZeroUsize::new(script.machine.workers).unwrap();
    let header = Header { rollcall_trace: 1, workers, settings: Settings::of(&setup.limits, &setup.budget) };
    let joined =
        Joined { rate: std::num::NonZeroU32::new(16_000).unwrap(), tokens: setup.budget.burst.get(), resumed: false };
    let lines: Lines = Rc::new(RefCell::new(vec![Line { t: 0, lane: 1, event: Event::Joined(joined) }]));
    let taped = lines.clone();
    let discipline = |script: &Script, limits: Limits| -> Box<dyn Discipline> {
        let slots = Slots::new(script.rate, limits, Order::Service, script.cast.clone());
        Box::new(Taped { slots, open: BTreeMap::new(), now: Monotonic::ZERO, lines: taped })
    };
    let outcome = world::run_with(script, discipline, &Setup::default());
    let lines = lines.borrow().clone();
    Tape { header, lines, selected: outcome.selected.into_iter().map(number).collect() }
}

impl Tape {
    fn text(&self) -> Vec<String> {
        let header = serde_json::to_string(&self.header).unwrap();
        let lines = self.lines.iter().map(|line| serde_json::to_string(line).unwrap());
        std::iter::once(header).chain(lines).collect()
    }

    fn read(&self) -> Trace {
        read(&self.text()).unwrap()
    }
}

fn read(lines: &[String]) -> Result<Trace, String> {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    Trace::parse(text.as_bytes())
}

#[test]
fn every_scenario_is_followed_to_its_end_in_the_recorded_order() {
    for scenario in Scenario::ALL {
        for seed in 0..scenario.runs(50) {
            let tape = tape(scenario, seed);
            let report = tape.read().replay(None);
            let followed = &report.lanes[0].recorded_order;
            assert_eq!((followed.difference, followed.not_compared), (None, 0), "{scenario:?}, seed {seed}");
            assert_eq!((followed.same, followed.selections), (tape.selected.len() as u64, tape.selected.len() as u64));
        }
    }
}

#[test]
fn a_replay_with_the_recorded_runs_and_verdicts_selects_what_was_selected() {
    for scenario in Scenario::ALL {
        for seed in 0..scenario.runs(50) {
            let tape = tape(scenario, seed);
            let trace = tape.read();
            let lane: &RecordedLane = &trace.lanes[0];
            let outcome = world::run(trace.script(lane), Policy::Fair, &trace.header.settings.setup());
            let selected: Vec<u32> = outcome.selected.iter().map(|speaker| speaker.0).collect();
            assert_eq!(selected, tape.selected, "{scenario:?}, seed {seed}");
            let played = simulate(scenario, Policy::Fair, seed).figures;
            let replayed = &trace.replay(Some(Policy::Fair)).lanes[0].policies[0].figures;
            assert_eq!(replayed.owner_named_after_s, played.owner_named_after_s, "{scenario:?}, seed {seed}");
            assert_eq!(replayed.worst_wait_s, played.worst_wait_s, "{scenario:?}, seed {seed}");
        }
    }
}

#[test]
fn a_recording_in_order_of_arrival_would_differ_at_its_first_unfair_choice() {
    let mut tape = tape(Scenario::Overload, 1);
    let began = |line: &Line| {
        let Event::Selected(selected) = &line.event else { return None };
        Some(line.t - selected.waited)
    };
    let selections: Vec<(usize, u64)> =
        tape.lines.iter().enumerate().filter_map(|(at, line)| Some((at, began(line)?))).collect();
    // Of those who began to wait together, either may be the first.
    let pairs = selections.windows(2).enumerate().skip(20);
    let (at, pair) =
        pairs.filter(|(_, pair)| pair[0].1 != pair[1].1).map(|(at, pair)| (at, pair.to_vec())).next().unwrap();
    let (first, second) = tape.lines.split_at_mut(pair[1].0);
    std::mem::swap(&mut first[pair[0].0].event, &mut second[0].event);
    let report = tape.read().replay(Some(Policy::Fair));
    let followed = &report.lanes[0].recorded_order;
    let (difference, same) = (followed.difference.unwrap(), at as u64);
    assert_eq!((followed.same, difference.selection), (same, same + 1));
    assert_eq!((difference.recorded, difference.selected), (tape.selected[at + 1], Some(tape.selected[at])));
    let words = report.to_string();
    assert!(words.contains(&format!("selection {} was of voice", at + 1)), "{words}");
}

#[test]
fn nothing_is_compared_after_people_decided_or_where_voices_came_along() {
    let mut decided = tape(Scenario::Overload, 1);
    let middle = decided.lines.len() / 2;
    let t = decided.lines[middle].t;
    decided.lines.insert(middle, Line { t, lane: 1, event: Event::Changed {} });
    let report = decided.read().replay(Some(Policy::Fair));
    let followed = &report.lanes[0].recorded_order;
    assert!(followed.same > 0 && followed.not_compared > 0 && followed.difference.is_none(), "{followed}");
    assert_eq!(followed.same + followed.not_compared, followed.selections);

    let mut resumed = tape(Scenario::Overload, 1);
    if let Event::Joined(joined) = &mut resumed.lines[0].event {
        joined.resumed = true;
    }
    let report = resumed.read().replay(Some(Policy::Fair));
    let followed = &report.lanes[0].recorded_order;
    assert_eq!((followed.same, followed.not_compared), (0, followed.selections));
}

#[test]
fn a_recording_whose_lane_had_spent_its_tokens_is_replayed_without_them() {
    let mut tape = tape(Scenario::Household, 1);
    if let Event::Joined(joined) = &mut tape.lines[0].event {
        joined.tokens = 2;
    }
    let played = |trace: Trace| trace.replay(Some(Policy::Fair)).lanes[0].policies[0].figures.reserved;
    assert_eq!(played(tape.read()) + 14, simulate(Scenario::Household, Policy::Fair, 1).figures.reserved);
}

#[test]
fn what_is_no_recording_is_refused_with_its_line() {
    let good = tape(Scenario::Seed, 1).text();
    let with = |at: usize, line: &str| {
        let mut lines = good.clone();
        lines[at] = line.to_owned();
        read(&lines).unwrap_err()
    };
    assert!(read(&[]).unwrap_err().contains("--record"));
    assert!(with(0, "{}").starts_with("line 1: is not the first line of a recording"));
    let newer = good[0].replace("\"rollcall_trace\":1", "\"rollcall_trace\":2");
    assert!(with(0, &newer).contains("version 2"), "{}", with(0, &newer));
    let endless = good[0].replace("\"socket_burst\":16", "\"socket_burst\":4000000000");
    assert!(with(0, &endless).contains("socket_burst is 4000000000"), "{}", with(0, &endless));
    for (line, trouble) in [
        ("nonsense", "expected"),
        (r#"{"t":1,"lane":7,"left":{}}"#, "lane 7 did not join before"),
        (r#"{"t":1,"lane":1,"heard":{"ring":[5,5],"segments":[]}}"#, "heard.ring"),
        (r#"{"t":1,"lane":1,"heard":{"ring":[0,18446744073709551615],"segments":[]}}"#, "heard.ring"),
        (r#"{"t":1,"lane":1,"heard":{"ring":null,"segments":[[1,0,0,18446744073709551615,1]]}}"#, "heard.segments[0]"),
        (r#"{"t":1,"lane":1,"ran":{"voice":1,"stream":0,"took":18446744073709551615,"brought":true}}"#, "ran.took"),
        (r#"{"t":18446744073709551615,"lane":1,"left":{}}"#, "t is 18446744073709551615"),
        (r#"{"t":1,"lane":1,"heard":{"ring":null,"segments":[[1,0,9,9,1]]}}"#, "heard.segments[0]"),
        (r#"{"t":1,"lane":1,"reserved":{"voice":1,"stream":0,"spans":[]}}"#, "reserved.spans"),
    ] {
        let said = with(2, line);
        assert!(said.starts_with("line 3: ") && said.contains(trouble), "{said}");
    }
    let last = good.len();
    let back = [good.clone(), vec![r#"{"t":0,"lane":1,"left":{}}"#.to_owned()]].concat();
    assert_eq!(read(&back).unwrap_err(), format!("line {}: lane 1 goes back in time", last + 1));
}

#[test]
fn what_the_recorder_could_not_keep_is_said() {
    let mut lines = tape(Scenario::Seed, 1).text();
    lines.push(r#"{"t":99000000000,"lane":0,"lost":{"entries":3}}"#.to_owned());
    lines.push(r#"{"t":99000000000,"lane":0,"full":{}}"#.to_owned());
    let report = read(&lines).unwrap().replay(Some(Policy::Fair));
    assert_eq!((report.lost, report.is_cut), (3, true));
    let words = report.to_string();
    assert!(words.contains("3 entries") && words.contains("full size"), "{words}");
}

#[test]
fn a_recording_whose_server_died_in_the_middle_of_a_line_is_read_to_the_line_before() {
    let lines = tape(Scenario::Seed, 1).text();
    let whole: String = lines.iter().map(|line| format!("{line}\n")).collect();
    for missing in [2, 20] {
        let cut = Trace::parse(&whole.as_bytes()[..whole.len() - missing]).unwrap();
        assert!(cut.replay(Some(Policy::Fair)).is_cut, "{missing} bytes are missing");
    }
    // Only the end of the last line is missing: everything was said.
    let all = Trace::parse(&whole.as_bytes()[..whole.len() - 1]).unwrap();
    assert_eq!(all, Trace::parse(whole.as_bytes()).unwrap());
    let middle = whole.replacen("\"heard\"", "\"hea", 1);
    assert!(Trace::parse(middle.as_bytes()).unwrap_err().starts_with("line 3: "), "a line that has its end is no cut");
}

#[test]
fn the_largest_positions_and_times_that_a_recording_may_hold_are_played() {
    let mut lines = tape(Scenario::Seed, 1).text();
    let most = 1_u64 << 60;
    let (ring, segment) = (format!("[{},{most}]", most - 960_000), format!("[1,0,{},{most},{most}]", most - 80_000));
    lines.push(format!(r#"{{"t":{most},"lane":1,"heard":{{"ring":{ring},"segments":[{segment}]}}}}"#));
    lines.push(format!(r#"{{"t":{most},"lane":1,"ran":{{"voice":1,"stream":0,"took":{most},"brought":true}}}}"#));
    for policy in Policy::ALL {
        let report = read(&lines).unwrap().replay(Some(policy));
        assert!(report.lanes[0].policies[0].figures.updates > 90, "{report}");
    }
}

#[test]
fn a_lane_that_had_spent_two_thousand_tokens_before_it_joined_is_played_without_them() {
    let mut tape = tape(Scenario::Household, 1);
    tape.header.settings.socket_burst = std::num::NonZeroU32::new(2_000).unwrap();
    if let Event::Joined(joined) = &mut tape.lines[0].event {
        joined.tokens = 0;
    }
    let played = &tape.read().replay(Some(Policy::Fair)).lanes[0].policies[0].figures;
    // Five minutes: twenty tokens come back.
    assert!((15..=20).contains(&played.reserved) && played.denied > 0, "{played}");
}

#[test]
fn a_recording_that_numbers_anew_is_followed_where_a_number_decides_between_equals() {
    let taped = tape(Scenario::Seed, 1);
    let rename = |voice: u32| 1_000 - voice;
    let mut renamed = taped.lines.clone();
    for line in &mut renamed {
        match &mut line.event {
            Event::Heard(heard) => heard.segments.iter_mut().for_each(|segment| segment[0] = 1_000 - segment[0]),
            Event::Selected(selected) => selected.voice = rename(selected.voice),
            Event::Denied(reason) | Event::Refused(reason) => reason.voice = rename(reason.voice),
            Event::Reserved { voice, .. }
            | Event::Ran { voice, .. }
            | Event::Judged { voice, .. }
            | Event::Moved { voice, .. } => *voice = rename(*voice),
            Event::Undelivered(_)
            | Event::Joined(_)
            | Event::Changed {}
            | Event::Left {}
            | Event::Lost { .. }
            | Event::Full {} => {}
        }
    }
    let report = Tape { lines: renamed, ..taped }.read().replay(Some(Policy::Fair));
    let followed = &report.lanes[0].recorded_order;
    assert_eq!((followed.difference, followed.same), (None, followed.selections));
}

/// One message of equals, and one of somebody who has said more: a tie is the recorder's to tell, and nothing else is.
#[test]
fn only_a_tie_is_decided_as_it_was_recorded() {
    let followed = |first: u32, second: u32| {
        let mut lines = vec![tape(Scenario::Seed, 1).text()[0].clone()];
        lines.push(r#"{"t":0,"lane":1,"joined":{"rate":16000,"tokens":16,"resumed":false}}"#.to_owned());
        let segments = "[[1,0,0,48000,48000],[2,0,48000,96000,48000],[3,0,96000,176000,80000]]";
        lines.push(format!(r#"{{"t":1,"lane":1,"heard":{{"ring":[0,176000],"segments":{segments}}}}}"#));
        for voice in [3, first, second] {
            lines.push(format!(r#"{{"t":2,"lane":1,"selected":{{"voice":{voice},"stream":0,"waited":1}}}}"#));
        }
        read(&lines).unwrap().replay(Some(Policy::Fair)).lanes[0].recorded_order.clone()
    };
    assert_eq!((followed(1, 2).same, followed(2, 1).same), (3, 3));
    let early = followed(3, 1);
    assert_eq!((early.same, early.difference.map(|difference| difference.recorded)), (1, Some(3)), "{early}");
}

#[test]
fn a_voice_that_another_ones_verdict_moved_is_followed_out_of_its_name_and_into_it() {
    let follow = |moved: &str, last: u32| {
        let mut lines = vec![tape(Scenario::Seed, 1).text()[0].clone()];
        let line = |t: u64, what: &str| format!(r#"{{"t":{t},"lane":1,{what}}}"#);
        let ring = r#""ring":[0,640000]"#;
        lines.push(line(0, r#""joined":{"rate":16000,"tokens":16,"resumed":false}"#));
        for (t, voice, start) in [(10, 1, 0), (20, 2, 96_000)] {
            let end = start + 96_000;
            lines.push(line(t, &format!(r#""heard":{{{ring},"segments":[[{voice},0,{start},{end},96000]]}}"#)));
            let of = format!(r#""voice":{voice},"stream":0"#);
            lines.push(line(t + 1, &format!(r#""selected":{{{of},"waited":1}}"#)));
            lines.push(line(t + 1, &format!(r#""reserved":{{{of},"spans":[[{start},{end}]]}}"#)));
            lines.push(line(t + 2, &format!(r#""ran":{{{of},"took":1,"brought":true}}"#)));
            lines.push(line(t + 2, &format!(r#""judged":{{{of},"class":"owner"}}"#)));
        }
        if !moved.is_empty() {
            lines.push(line(22, moved));
        }
        let segments = "[[1,0,192000,288000,96000],[2,0,288000,384000,96000],[3,0,384000,448000,64000]]";
        lines.push(line(30, &format!(r#""heard":{{{ring},"segments":{segments}}}"#)));
        lines.push(line(31, r#""selected":{"voice":3,"stream":0,"waited":1}"#));
        lines.push(line(31, &format!(r#""selected":{{"voice":{last},"stream":0,"waited":1}}"#)));
        read(&lines).unwrap().replay(Some(Policy::Fair)).lanes[0].recorded_order.clone()
    };
    let moved = follow(r#""moved":{"voice":1,"stream":0,"class":"near_owner"}"#, 1);
    assert_eq!((moved.same, moved.difference), (4, None), "the first lost its name to the second");
    let difference = follow("", 1).difference.unwrap();
    assert_eq!((difference.recorded, difference.selected), (1, None), "without the line, both have theirs");
}

#[test]
fn no_bound_is_told_where_one_number_speaks_in_several_streams() {
    let mut lines = vec![tape(Scenario::Seed, 1).text()[0].clone()];
    lines.push(r#"{"t":0,"lane":1,"joined":{"rate":16000,"tokens":16,"resumed":false}}"#.to_owned());
    let segments: Vec<String> =
        (0..8_u64).map(|n| format!("[1,{n},{},{},32000]", n * 32_000, (n + 1) * 32_000)).collect();
    let segments = segments.join(",");
    lines.push(format!(r#"{{"t":1,"lane":1,"heard":{{"ring":[0,256000],"segments":[{segments}]}}}}"#));
    lines.push(r#"{"t":2,"lane":1,"ran":{"voice":1,"stream":0,"took":3000000000,"brought":true}}"#.to_owned());
    let report = read(&lines).unwrap().replay(Some(Policy::Fair));
    let figures = &report.lanes[0].policies[0].figures;
    assert!(figures.worst_wait_s > 3.0 && figures.bound_s.is_infinite() && figures.first_bound_s.is_infinite());
    let told = serde_json::to_value(&report).unwrap();
    assert!(told["lanes"][0]["policies"][0]["bound_s"].is_null());
    assert!(report.to_string().contains(" s / none"), "{report}");
}
