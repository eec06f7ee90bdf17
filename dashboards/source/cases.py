"""The rules' tests: a healthy service, and for each alert a service that differs in the one thing it is about.

Every case names the whole set of alerts that fire at a minute, so that each is also a test that no other one does. A case that stays
just below a limit, or that is over, names none. Nothing is taken from the rules: a wrong name or number there fails here.
"""

import re

WHERE = 'job="rollcall", instance="a"'
PAGE, TICKET = "page", "ticket"


def flow(*steps):
    """A counter that rises: (minutes, events a minute) after one another, as promtool notates it."""
    value, parts = 0, []
    for minutes, each in steps:
        parts.append(f"{value}+{each}x{minutes - 1}")
        value += minutes * each
    return " ".join(parts)


def level(*steps):
    """A level that holds: (minutes, value) after one another; None is a scrape without the series."""
    return " ".join(f"_x{minutes - 1}" if value is None else f"{value}x{minutes - 1}" for minutes, value in steps)


def series(name, **labels):
    pairs = "".join(f', {key}="{value}"' for key, value in labels.items())
    return f"{name}{{{WHERE}{pairs}}}"


EXITS = {cap: series("omi_speaker_id_budget_exits_total", cap=cap) for cap in ("voice", "socket", "both")}
LEGACY = series("omi_speaker_id_match_exits_total", reason="embedding_budget")
UNREAD = series("omi_speaker_id_match_exits_total", reason="authority_unavailable")
TRIED = {end: series("omi_speaker_id_embedding_attempts_total", outcome=end) for end in ("reserved", "succeeded", "failed")}
FAILURES = {kind: series("rollcall_extraction_failures_total", kind=kind) for kind in ("extraction", "cancelled")}
BROKEN = series("rollcall_invariant_violations_total", kind="lane_books")
REFUSED = {why: series("rollcall_refused_total", reason=why) for why in ("capacity", "malformed")}
LEFT = series("omi_owner_reconnect_total", outcome="rejected", reason="corrupt")
CIRCUIT = {at: series("rollcall_endpoint_circuit", endpoint=at, state="closed") for at in (0, 1)}
BUILD, UP, OPEN = series("rollcall_build_info", version="1"), series("up"), series("rollcall_open_queries")
WORKERS, WORKERS_UP = series("rollcall_workers"), series("rollcall_workers_up")
RESTARTS, AGE = series("rollcall_worker_restarts_total"), series("rollcall_queue_oldest_age_seconds")
SLOTS, CAPACITY = series("rollcall_queue_slots"), series("rollcall_queue_capacity")
SOCKETS, SOCKETS_MAX = series("rollcall_sockets"), series("rollcall_sockets_max")
TALKS, TALKS_MAX = series("rollcall_conversations"), series("rollcall_conversations_max")
FILES, FILES_MAX = series("rollcall_process_open_fds"), series("rollcall_process_max_fds")
MEMORY, MEMORY_MAX = series("rollcall_process_resident_memory_bytes"), series("rollcall_process_memory_max_bytes")
ROWS, ROWS_MAX = series("rollcall_history_backlog_rows"), series("rollcall_history_backlog_rows_max")
UNWRITTEN, LOST = series("rollcall_history_write_failures_total"), series("rollcall_history_lost_rows_total")
EXPORTED = {end: series("rollcall_telemetry_items_total", signal="traces", outcome=end) for end in ("sent", "dropped")}
TURNS = {(kind, aged): series("rollcall_selections_total", **{"class": kind, "override": aged})
         for kind in ("first", "repeat") for aged in ("yes", "no")}


def wait(bound, kind="first"):
    return series("rollcall_selection_wait_seconds_bucket", **{"class": kind, "le": bound})


WAITS = {kind: series("rollcall_selection_wait_seconds_count", **{"class": kind}) for kind in ("first", "repeat")}
VERDICTS, VERDICT_IN_TIME = series("rollcall_verdict_seconds_count"), series("rollcall_verdict_seconds_bucket", le="2.5")


def healthy(n):
    """Sixty queries a minute, all well, new voices at once and repeats late, as they may be; two denials a minute; two workers, two
    servers, three sockets."""
    quiet = [FAILURES["extraction"], FAILURES["cancelled"], TRIED["failed"], BROKEN, UNREAD, LEFT, RESTARTS, *REFUSED.values(),
             EXITS["both"], TURNS["first", "yes"], TURNS["repeat", "yes"], UNWRITTEN, LOST, EXPORTED["dropped"], wait("1.0", "repeat")]
    busy = [TRIED["reserved"], TRIED["succeeded"], *WAITS.values(), VERDICTS, VERDICT_IN_TIME, wait("1.0"), EXPORTED["sent"], TURNS["first", "no"],
            TURNS["repeat", "no"]]
    return ({name: flow((n, 0)) for name in quiet} | {name: flow((n, 60)) for name in busy}
            | {EXITS["voice"]: flow((n, 1)), EXITS["socket"]: flow((n, 1)), LEGACY: flow((n, 2))}
            | {name: level((n, 1)) for name in (BUILD, UP, *CIRCUIT.values())}
            | {WORKERS: level((n, 2)), WORKERS_UP: level((n, 2)), OPEN: level((n, 0)), AGE: level((n, 0.2)),
               SLOTS: level((n, 90)), CAPACITY: level((n, 300)), SOCKETS: level((n, 3)), SOCKETS_MAX: level((n, 10)),
               TALKS: level((n, 2)), TALKS_MAX: level((n, 10)), FILES: level((n, 40)), FILES_MAX: level((n, 1000)),
               MEMORY: level((n, 200)), MEMORY_MAX: level((n, 1000)), ROWS: level((n, 3)), ROWS_MAX: level((n, 20000))})


def failing(*steps):
    """Of sixty queries a minute so many fail, in quarters, which add up exactly: the books balance all the same."""
    bad = flow(*steps)
    return {FAILURES["extraction"]: bad, TRIED["failed"]: bad, TRIED["succeeded"]: flow(*((m, 60 - each) for m, each in steps))}


def little_after_much(minutes, rest):
    """So many good queries at first that over three days hardly any fails; over the day after them one in twenty does."""
    bad = flow((minutes, 0), (rest, 3))
    return {FAILURES["extraction"]: bad, TRIED["failed"]: bad, TRIED["succeeded"]: flow((minutes, 60000), (rest, 57)),
            TRIED["reserved"]: flow((minutes, 60000), (rest, 60))}


def denied(*steps):
    """Denials by the cap `both`, above the two a minute of the others."""
    return {EXITS["both"]: flow(*steps), LEGACY: flow(*((m, each + 2) for m, each in steps))}


def slow(*names):
    return {name: flow((60, 50)) for name in names}


def aged(*steps):
    """Repeats, of sixty a minute, that age alone decided; none of the new voices', which are as many."""
    # Twice: the share is of all turns.
    return {TURNS["repeat", "yes"]: flow(*((m, 2 * each) for m, each in steps)),
            TURNS["repeat", "no"]: flow(*((m, 60 - 2 * each) for m, each in steps))}


# What is the case, at which minute, what differs, who fires. A minute's samples include the one at minute 0.
def cases():
    yield "a healthy service is silent for hours", 480, {}, {}
    yield "one failure in two hundred and forty is within the promise", 480, failing((481, 0.25)), {}
    yield "a quarter failing for fifty minutes after six good hours", 410, failing((361, 0), (50, 15)), {
        "RollcallBurnsFast": PAGE, "RollcallBurnsSlowly": TICKET}
    yield "one in twenty failing for a day of little traffic after two busy hours", 1590, little_after_much(120, 1471), {
        "RollcallBurnsSlowly": TICKET}
    # Two looks after the end: a rule that is asked before the one that it reads sees what that said five minutes ago.
    yield "half failing for half an hour, which ended", 410, failing((363, 0), (30, 30), (18, 0)), {"RollcallBurnsSlowly": TICKET}
    yield "seven in a hundred failing all day long", 480, failing((481, 4.5)), {
        "RollcallBurnsFast": PAGE, "RollcallBurnsSlowly": TICKET}
    yield "two in a hundred failing all day long", 480, failing((481, 1.25)), {"RollcallBurnsSlowly": TICKET}
    yield "all have failed for nine minutes, a moment ago enough for the alert", 409, failing((400, 0), (10, 60)), {}
    yield "callers who leave are nobody's failure", 60, {
        FAILURES["cancelled"]: flow((61, 30)), TRIED["failed"]: flow((61, 30)), TRIED["succeeded"]: flow((61, 30))}, {}
    yield "few queries, all failing, are too few to tell", 59, {
        name: flow((60, each)) for name, each in ((TRIED["reserved"], 0.25), (TRIED["failed"], 0.25), (TRIED["succeeded"], 0),
                                                  (FAILURES["extraction"], 0.25))}, {}
    yield "a sixth of the turns come late", 59, slow(wait("1.0")), {"RollcallBurnsFast": PAGE, "RollcallBurnsSlowly": TICKET}
    yield "a sixth of the verdicts come late", 59, slow(VERDICT_IN_TIME), {
        "RollcallBurnsFast": PAGE, "RollcallBurnsSlowly": TICKET}
    yield "the text format writes the bounds without a fraction", 59, {wait("1.0"): None, wait("1"): flow((60, 60))}, {}

    yield "an invariant breaks", 30, {BROKEN: flow((25, 0), (1, 1), (5, 0))}, {"RollcallInvariantBroken": PAGE}
    yield "it broke long ago", 45, {BROKEN: flow((25, 0), (1, 1), (20, 0))}, {}
    yield "a denial is booked under no cap", 30, {LEGACY: flow((28, 2), (3, 3))}, {"RollcallBooksDiffer": PAGE}
    yield "an attempt is lost", 30, {TRIED["succeeded"]: flow((28, 60), (3, 59))}, {"RollcallBooksDiffer": PAGE}
    yield "what is open explains the difference", 30, {
        TRIED["succeeded"]: f'0x0 {flow((30, 60))}', OPEN: level((1, 0), (30, 60))}, {}

    yield "an instance stops answering", 34, {UP: level((30, 1), (5, 0)), BUILD: level((30, 1), (5, None))}, {
        "RollcallUnreachable": PAGE}
    yield "it stopped a minute ago", 31, {UP: level((30, 1), (2, 0)), BUILD: level((30, 1), (2, None))}, {}
    yield "nothing is left to scrape", 12, {".*": None}, {"RollcallAbsent": PAGE}
    yield "nothing has been scraped yet", 3, {".*": None}, {}
    yield "something else is down", 30, {'up{job="other", instance="z"}': level((31, 0))}, {}
    yield "the only worker is down", 30, {WORKERS: level((31, 1)), WORKERS_UP: level((28, 1), (3, 0))}, {"RollcallNoWorker": PAGE}
    yield "no worker has been up just now", 30, {WORKERS_UP: level((30, 2), (1, 0))}, {}
    yield "a server that is configured without workers has none to miss", 30, {WORKERS: level((31, 0)), WORKERS_UP: level((31, 0))}, {}
    yield "one worker is down for a quarter of an hour", 30, {WORKERS_UP: level((15, 2), (16, 1))}, {"RollcallWorkersMissing": TICKET}
    yield "one worker is down for five minutes", 30, {WORKERS_UP: level((25, 2), (6, 1))}, {}
    yield "every server is out", 30, {at: level((28, 1), (3, 0)) for at in CIRCUIT.values()}, {"RollcallNoEndpoint": PAGE}
    yield "every server is out just now", 30, {at: level((30, 1), (1, 0)) for at in CIRCUIT.values()}, {}
    yield "one server is out for a quarter of an hour", 30, {CIRCUIT[1]: level((15, 1), (16, 0))}, {"RollcallEndpointOut": TICKET}
    yield "one server is out for five minutes", 30, {CIRCUIT[1]: level((25, 1), (6, 0))}, {}

    yield "workers restart every other minute", 30, {RESTARTS: flow((31, 0.5))}, {"RollcallWorkersRestart": TICKET}
    yield "one worker restarts", 30, {RESTARTS: flow((20, 0), (1, 1), (10, 0))}, {}
    yield "a third of the turns waited beyond the override", 59, aged((60, 20)), {"RollcallOverrideShare": TICKET}
    yield "a fifth of them did", 59, aged((60, 12)), {}
    yield "half of them have for a few minutes", 59, aged((52, 0), (8, 30)), {}
    yield "few turns, all of them old, are too few to tell", 59, {
        TURNS["first", "no"]: flow((60, 0)), TURNS["repeat", "no"]: flow((60, 0)), TURNS["repeat", "yes"]: flow((60, 1))}, {}
    yield "the oldest voice waits for twenty seconds", 30, {AGE: level((20, 1), (11, 20))}, {"RollcallQueueOld": TICKET}
    yield "it waits for ten", 30, {AGE: level((31, 10))}, {}
    yield "it waited for twenty just now", 30, {AGE: level((28, 1), (3, 20))}, {}
    yield "the queues are nearly full", 30, {SLOTS: level((20, 90), (11, 270))}, {"RollcallQueuesFull": TICKET}
    yield "they are nearly full just now", 30, {SLOTS: level((28, 90), (3, 270))}, {}
    yield "as many wait in larger queues", 30, {SLOTS: level((31, 270)), CAPACITY: level((31, 600))}, {}
    yield "full queues without a socket are a moment between two levels", 30, {
        SLOTS: level((31, 270)), CAPACITY: level((31, 0))}, {}
    yield "denials by one cap rise thirtyfold", 480, denied((420, 1), (61, 30)), {"RollcallExitsRise": TICKET}
    yield "they have risen for ten minutes", 430, denied((421, 1), (10, 60)), {}
    yield "denials were always many", 480, denied((481, 30)), {}
    yield "the door refuses for want of room", 30, {REFUSED["capacity"]: flow((31, 12))}, {"RollcallRefuses": TICKET}
    yield "it has refused for five minutes", 30, {REFUSED["capacity"]: flow((25, 0), (6, 30))}, {}
    yield "clients send nonsense", 30, {REFUSED["malformed"]: flow((31, 60))}, {}
    yield "corrections cannot be read", 30, {UNREAD: flow((25, 0), (6, 1))}, {"RollcallAuthorityUnavailable": TICKET}
    yield "what a device left behind cannot be read", 30, {LEFT: flow((25, 0), (6, 1))}, {"RollcallReconnectUnreadable": TICKET}

    yield "nearly every place of a socket is taken", 30, {SOCKETS: level((15, 3), (16, 10))}, {"RollcallSocketsFull": TICKET}
    yield "nearly every place of a conversation is taken", 30, {TALKS: level((15, 2), (16, 10))}, {"RollcallSocketsFull": TICKET}
    yield "the places are taken just now", 30, {SOCKETS: level((25, 3), (6, 10))}, {}
    yield "descriptors run short", 30, {FILES: level((15, 40), (16, 900))}, {"RollcallFilesShort": TICKET}
    yield "they ran short just now", 30, {FILES: level((25, 40), (6, 900))}, {}
    yield "memory runs short", 30, {MEMORY: level((20, 200), (11, 950))}, {"RollcallMemoryShort": PAGE}
    yield "it ran short just now", 30, {MEMORY: level((28, 200), (3, 950))}, {}
    yield "much of it is in use", 30, {MEMORY: level((31, 800))}, {}
    yield "history waits for the disk", 30, {ROWS: level((25, 3), (6, 15000))}, {"RollcallHistoryBehind": TICKET}
    yield "history fails to be written", 30, {UNWRITTEN: flow((20, 0), (11, 12))}, {"RollcallHistoryBehind": TICKET}
    yield "history waits for the disk just now", 30, {ROWS: level((29, 3), (2, 15000))}, {}
    yield "one writing failed", 30, {UNWRITTEN: flow((25, 0), (1, 1), (5, 0))}, {}
    yield "the collector is away", 40, {EXPORTED["dropped"]: flow((10, 0), (31, 60))}, {"RollcallTelemetryLost": TICKET}
    yield "the collector was away for a moment", 40, {EXPORTED["dropped"]: flow((30, 0), (1, 60), (10, 0))}, {}
    yield "history is left out", 30, {LOST: flow((25, 0), (1, 40), (5, 0))}, {"RollcallHistoryLost": TICKET}


def service(minutes, differences):
    """The healthy service with the differences; a pattern or a series with None goes."""
    made = healthy(minutes + 1)
    for name, values in differences.items():
        if values is not None:
            made[name] = values
            continue
        made = {other: kept for other, kept in made.items() if other != name and not (name == ".*" and re.fullmatch(name, other))}
    return made


def inputs(minutes, differences):
    return [{"series": one, "values": values} for one, values in service(minutes, differences).items()]


def case_test(name, minute, differences, firing):
    expected = [{"labels": f'{{alertname="{alert}", severity="{severity}"}}', "value": 1} for alert, severity in firing.items()]
    return {"name": name, "interval": "1m", "input_series": inputs(minute, differences), "promql_expr_test": [
        {"expr": 'count by (alertname, severity) (ALERTS{alertstate="firing"})', "eval_time": f"{minute}m", "exp_samples": expected}]}


def alert_tests(alert):
    """What is about one alert, each case as a file of its own: the cases in which it fires, and then those that differ in the same things and are silent; each from the
    shortest to the longest."""
    loud = [case for case in cases() if alert in case[-1]]
    moved = {one for _, _, differences, _ in loud for one in differences}
    silent = [case for case in cases() if alert not in case[-1] and (moved & case[2].keys() or not case[2])]
    ordered = sorted(loud, key=lambda case: case[1]) + sorted(silent, key=lambda case: case[1])
    made = (case_test(*case[:-1], {name: severity for name, severity in case[-1].items() if name == alert}) for case in ordered)
    return [document([test], every="5m" if is_long(case[1]) else "1m") for case, test in zip(ordered, made)]


def record_tests():
    """An hour in which a quarter of the queries, a sixth of the new voices' turns and a tenth of the verdicts fail: whatever the
    window, the recorded share is that, and the recorded events are those of the hour."""
    failing_hour = failing((61, 15)) | {wait("1.0"): flow((61, 50)), VERDICT_IN_TIME: flow((61, 54))}
    shares = {"extraction": 0.25, "examined": 0.167, "verdict": 0.1}
    windows = ["5m", "30m", "1h", "2h", "6h", "1d", "3d", "28d"]

    def asked(name, values):
        samples = [{"labels": f'{{job="rollcall", slo="{slo}"}}', "value": value} for slo, value in values.items()]
        return {"expr": f"round({name}, 0.001)", "eval_time": "60m", "exp_samples": samples}

    events = {slo: 3600 for slo in shares}
    return [{"name": "what is recorded of an hour with failures", "interval": "1m", "input_series": inputs(60, failing_hour),
             "promql_expr_test": [*(asked(f"rollcall:slo_errors:ratio_rate{window}", shares) for window in windows),
                                  *(asked(f"rollcall:slo_events:increase{window}", events) for window in ("1h", "1d"))]}]


def is_long(minute):
    """What takes hours is looked at every five minutes, which takes a fifth of the time and changes nothing: no case ends within a hold."""
    return minute > 120 and minute % 5 == 0


def document(tests, every="1m", rules="rules.yml"):
    return {"rule_files": [rules], "evaluation_interval": every, "tests": tests}


def tests():
    """What `rules_test.yml` says: everything within two hours."""
    return document([case_test(*case) for case in cases() if not is_long(case[1])] + record_tests())


def long_tests():
    """What `rules_hours_test.yml` says."""
    return document([case_test(*case) for case in cases() if is_long(case[1])], every="5m")


def fired():
    return {alert for *_, firing in cases() for alert in firing}
