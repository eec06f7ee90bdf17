"""What the dashboard asks, row by row: the promises first, then why a voice has no name, then what the machine does.

Does not own how a panel is written down (see `grafana`). Job and instance are put into every selector there.
"""

from source.grafana import dashboard, panel
from source.slo import ALLOWED, DAYS, FAST, OVERRIDE_SECONDS, PROMISES

RATE = "$__rate_interval"
EXITS, LEGACY = "omi_speaker_id_budget_exits_total", 'omi_speaker_id_match_exits_total{reason="embedding_budget"}'
ATTEMPTS = "omi_speaker_id_embedding_attempts_total"
WAIT = "rollcall_selection_wait_seconds"


def per_second(metric, *labels, window=RATE):
    by = f" by ({', '.join(labels)})" if labels else ""
    return f"sum{by} (rate({metric}[{window}]))"


def quantiles(histogram, matchers="", named=""):
    buckets = f"sum by (le) (rate({histogram}_bucket{matchers}[{RATE}]))"
    return [(f"histogram_quantile({share}, {buckets})", f"{named}p{round(share * 100)}") for share in (0.5, 0.95, 0.99)]


def promises():
    return [
        *(panel(f"{says}, {DAYS} days",
                f"The share of the last {DAYS} days' events that kept the promise; {1 - ALLOWED:.0%} is promised. Young servers show the "
                "days that they have. Nothing is shown while nothing has happened.", "percentunit",
                (f'1 - rollcall:slo_errors:ratio_rate{DAYS}d{{slo="{name}"}}', "{{job}}"), kind="stat", width=5, height=5, max=1,
                decimals=3) for name, says, _, _ in PROMISES),
        panel("Allowance left", f"What is left of the {ALLOWED:.0%} of events that may fail in {DAYS} days: 100 % is untouched, below 0 the "
              "promise is broken. No new risk should be taken near 0.", "percentunit",
              (f"1 - rollcall:slo_errors:ratio_rate{DAYS}d / {ALLOWED}", "{{slo}}"), kind="stat", width=6, height=5, min=None),
        panel("Ready, a day", "The share of the day in which instances said that they are ready: able to extract, and taking sockets. A "
              "roll-out costs a little.", "percentunit", ("avg(avg_over_time(rollcall_ready[1d]))", "ready"), kind="stat", width=3,
              height=5, max=1, decimals=2),
        panel("Pace of spending", "How many times as fast as allowed the failures come: at 1 the allowance lasts exactly. The lines are where "
              "the fast alert fires, over six hours and over one.", "none",
              (f"rollcall:slo_errors:ratio_rate1h / {ALLOWED}", "{{slo}}, 1 h"),
              (f"rollcall:slo_errors:ratio_rate6h / {ALLOWED}", "{{slo}}, 6 h"), lines=tuple(sorted(pace for pace, *_ in FAST))),
        panel("Time to first examination", "From a voice's first segment to its first query: saying enough, and waiting for a turn. The "
              "first part is the speaker's, so this has no promise; \"Wait for a turn\" has.", "s",
              *quantiles("rollcall_first_examination_seconds"), exemplars=True),
        panel("Time to a verdict", "From the receipt of a segment to the verdict that it led to: waiting for a turn, the model, and the "
              "decision. Gaps are times without a verdict. Dots are single queries with a trace.", "s",
              *quantiles("rollcall_verdict_seconds"), exemplars=True),
        panel("Broken invariants and books", "All are 0 in a healthy process, and any other value is a bug: states that the program rules "
              "out, and what the accounts differ by (exits by cap against the budget's exits, attempts against their endings).", "short",
              ("sum(increase(rollcall_invariant_violations_total[$__range]))", "broken invariants"),
              (f"sum(abs(sum by (job, instance) ({EXITS}) - sum by (job, instance) ({LEGACY})))", "denials under no cap, or two"),
              (f'sum(abs(sum by (job, instance) ({ATTEMPTS}{{outcome="reserved"}}) - sum by (job, instance) '
               f'({ATTEMPTS}{{outcome!="reserved"}}) - sum by (job, instance) (rollcall_open_queries)))', "attempts lost or invented"),
              kind="stat", width=12, height=5, lines=(1,)),
        panel("Versions", "How many instances run which version. Two at once are a roll-out: compare counters old and new only over "
              "instances of one version.", "short", ("count by (version) (rollcall_build_info)", "{{version}}"), kind="stat", width=4,
              height=5),
        panel("Ready", "What each instance says at /readyz: able to extract, and taking sockets.", "short",
              ("rollcall_ready", "{{instance}}"), kind="state-timeline", says=("not ready", "ready"), width=8, height=5, max=1),
    ]


def funnel():
    def over(metric):
        return f"sum(increase({metric}[$__range]))"

    return [
        panel("How many got how far", "How many got how far in the chosen time. Numbers heard for the first time; turns that were a number's "
              "first; queries, firsts and repeats; voiceprints; decisions that named somebody. A voice may need several queries, and be "
              "named again.", "short", (over("rollcall_voices_total"), "voices heard"),
              (over('rollcall_selections_total{class="first"}'), "first turns"), (over(f'{ATTEMPTS}{{outcome="reserved"}}'), "queries"),
              (over(f'{ATTEMPTS}{{outcome="succeeded"}}'), "voiceprints"),
              (over('omi_speaker_id_live_decisions_total{decision="accepted"}'), "names given"), kind="bargauge"),
        panel("Attempts by outcome", "Voiceprint queries. `reserved` has spent an attempt and a token before anything was awaited; "
              "`succeeded` brought a voiceprint, which is not yet a name; `failed` is everything else. Neither ending refunds. Endings lag "
              "reservations.", "reqps", (per_second(ATTEMPTS, "outcome"), "{{outcome}}")),
        panel("Decisions", "What was decided about voices, by whom it was about. `pending` lacks evidence, `ambiguous` is two people too "
              "near or two voices that claim the owner, `rejected` is nobody known.", "ops",
              (per_second("omi_speaker_id_live_decisions_total", "target", "decision"), "{{target}} {{decision}}"), stacked=True),
        panel("Exits by reason", "Updates that led to no verdict, each under one reason. `already_mapped` and `window_shorter_than_minimum` "
              "are everyday; `embedding_budget` is a denial; `authority_unavailable` is a store that cannot be read.", "ops",
              (per_second("omi_speaker_id_match_exits_total", "reason"), "{{reason}}"), stacked=True),
        panel("Denials by cap", "Every denied query under exactly one cap. `voice`: its attempts are spent; `socket`: the tokens are; "
              "`both`. Repeated updates of one voice count again, and coalescing alone can make them fewer: read it beside the incidence.",
              "ops", (per_second(EXITS, "cap"), "{{cap}}"), stacked=True),
        panel("Sum of the caps against the old counter", "The three exclusive caps together, and the counter that dashboards had before. "
              "The lines lie on each other on instances of one version; a gap is a mixed roll-out or a bug.", "ops",
              (per_second(EXITS, window="1h"), "sum of the caps"), (per_second(LEGACY, window="1h"), "match_exits, embedding_budget")),
    ]


def fairness():
    turns = "rollcall_selections_total"
    aged = f'sum by (class) (rate({turns}{{override="yes"}}[{RATE}]))'
    return [
        panel("How long voices waited for their turn", f"Each column's turns by how long they waited. The row that begins at {OVERRIDE_SECONDS} s "
              "and all above it were taken because of their age.", "s",
              (f"sum by (le) (increase({WAIT}_bucket[{RATE}]))", "{{le}}"), kind="heatmap", width=12),
        panel("Wait for a turn", "From the moment a voice could be examined to its dispatch; first tries go before repeats. The line is the "
              f"age of {OVERRIDE_SECONDS} s at which the oldest goes before everything.", "s",
              *quantiles(WAIT, '{class="first"}', "first try, "),
              (f'histogram_quantile(0.99, sum by (le) (rate({WAIT}_bucket{{class="repeat"}}[{RATE}])))', "repeat, p99"),
              ("max(rollcall_queue_oldest_age_seconds)", "oldest that waits now"), width=12, lines=(OVERRIDE_SECONDS,), exemplars=True),
        panel("Turns by class", "Voices whose turn came: for the first time in their generation, or again; and whether age alone gave it to "
              "them.", "ops", (per_second(turns, "class", "override"), "{{class}}, override {{override}}"), stacked=True,
              width=6),
        panel("Turns by age override", "The share of turns that age alone decided. Above a quarter (the line) the order is close to "
              "first-in-first-out, and first tries lose their lead: there is more to examine than the engine can.", "percentunit",
              (f"{aged} / (sum by (class) (rate({turns}[{RATE}])) > 0)", "{{class}}"),
              (f'sum(rate({turns}{{override="yes"}}[{RATE}])) / (sum(rate({turns}[{RATE}])) > 0)', "all"), lines=(0.25,), max=1, width=6),
        panel("Voices that wait", "In all queues together, by instance. A queue that is never empty is normal while people talk; one that only "
              "grows is more to examine than the engine can.", "short",
              ("sum by (instance) (rollcall_queue_slots)", "{{instance}}"), width=6),
        panel("How full the queues are", "What waits over what the queues of all open sockets hold. When a queue is full, speech stays with its "
              "voice for the next update. At the line an alert fires.", "percentunit",
              ("sum by (instance) (rollcall_queue_slots) / (sum by (instance) (rollcall_queue_capacity) > 0)", "{{instance}}"),
              lines=(0.8,), max=1, width=6),
    ]


def budgets():
    def over(metric, window="1d"):
        return f"sum(increase({metric}[{window}]))"

    def incidence(metric):
        return f"sum by (cap) (increase({metric}[1d]))"

    return [
        panel("Queries an open socket and hour", "What sockets spend of their refill: 240 an hour by default is the ceiling beyond the "
              "burst. Far below it with many denials by `voice` is a few insistent voices.", "short",
              (f'sum by (instance) (increase({ATTEMPTS}{{outcome="reserved"}}[1h])) / (sum by (instance) '
               "(avg_over_time(rollcall_sockets[1h])) > 0)", "{{instance}}")),
        panel("Queries by attempt of their voice", "Each column's queries by which attempt of their voice they were. Most belong at the bottom: "
              "a voice that is examined again and again is somebody not enrolled, or hard to tell apart.", "short",
              (f"sum by (le) (increase(rollcall_attempt_of_voice_bucket[{RATE}]))", "{{le}}"), kind="heatmap"),
        panel("Speech that went unexamined", "Seconds of speech a second that left a voice's list of ranges because newer speech came. "
              "Some is normal when a voice speaks on while it is denied.", "none",
              (per_second("rollcall_evicted_range_seconds_total"), "seconds a second")),
        panel("Voices denied at all, a day", "Each voice once in its generation, by the first cap. Cohorts, not people: a rollover counts "
              "anew. When it happened, not who is denied now.", "short", (incidence("omi_speaker_id_budget_voices_total"), "{{cap}}")),
        panel("Sockets denied at all, a day", "Each socket once in its life, by the first cap; also when only a voice's attempts were "
              "spent.", "short", (incidence("omi_speaker_id_budget_sockets_total"), "{{cap}}")),
        panel("Repeats: denials a denied voice, a day", "Denials over denied voices and over denied sockets. Many repeats and few voices is "
              "insistence; few repeats and many voices is a budget that is too tight.", "short",
              (f"{over(EXITS)} / ({over('omi_speaker_id_budget_voices_total')} > 0)", "denials a denied voice"),
              (f"{over(EXITS)} / ({over('omi_speaker_id_budget_sockets_total')} > 0)", "denials a denied socket")),
    ]


def engine():
    return [
        panel("Pool", "Workers that are able to extract beside those configured, queries under way, and turns: how many queries may be under "
              "way.", "short", ("sum(rollcall_workers_up)", "workers able"),
              ("sum(rollcall_workers)", "workers configured"), ("sum(rollcall_open_queries)", "queries under way"),
              ("sum(rollcall_turns)", "turns")),
        panel("Time of a query", "From the reservation to the settlement, waiting in the pool and running together. The line is the deadline "
              "at which a query is given up.", "s", *quantiles("rollcall_extraction_seconds"), lines=(5,), exemplars=True),
        panel("Failures by kind", "Queries that brought no voiceprint. `cancelled` is a caller who left; `deadline_passed` and `queue_full` "
              "are overload; the others are the model, a worker or a clip.", "ops",
              (per_second("rollcall_extraction_failures_total", "kind"), "{{kind}}"), stacked=True),
        panel("Worker restarts, an hour", "Workers that were started again after a panic, a hang or a lost thread.", "short",
              ("sum by (instance) (increase(rollcall_worker_restarts_total[1h]))", "{{instance}}")),
        panel("What computes", "Instances by execution provider; `remote` asks extraction servers.", "short",
              ("count by (provider) (rollcall_engine_info)", "{{provider}}"), kind="stat", width=4),
        panel("Servers in service", "Whether an extraction server is asked, or given a rest or being tried. Servers are told apart by their "
              "place in remote.endpoints, from 0. Empty where voiceprints are computed in the process.", "short",
              ('rollcall_endpoint_circuit{state="closed"}', "{{instance}} {{endpoint}}"), kind="state-timeline",
              says=("out", "in service"), width=12, max=1),
        panel("Queries a server works on", "Under way at each extraction server. Empty where voiceprints are computed in the process.", "short",
              ("rollcall_endpoint_under_way", "{{instance}} {{endpoint}}")),
        panel("Answers of a server", "Queries that it answered with a voiceprint. Empty where voiceprints are computed in the process.", "reqps",
              (per_second("rollcall_endpoint_answered_total", "instance", "endpoint"), "{{instance}} {{endpoint}}")),
        panel("Failures of servers", "Queries that were sent to a server in vain, by what went wrong. Some were then answered by another. "
              "Empty where voiceprints are computed in the process.", "ops",
              (per_second("rollcall_endpoint_failures_total", "endpoint", "kind"), "{{endpoint}} {{kind}}"), stacked=True),
    ]


def sockets():
    return [
        panel("Sockets and conversations", "Open now. A conversation may hold several sockets, and outlives one that drops for a while.",
              "short", ("sum(rollcall_sockets)", "sockets"), ("sum(rollcall_conversations)", "conversations"), width=6),
        panel("Places taken", "Sockets and conversations over their limits (sockets.sockets_max and conversations_max). At 100 % new ones are "
              "refused; at the line it is time for another instance.", "percentunit",
              ("sum by (instance) (rollcall_sockets) / sum by (instance) (rollcall_sockets_max)", "{{instance}} sockets"),
              ("sum by (instance) (rollcall_conversations) / sum by (instance) (rollcall_conversations_max)",
               "{{instance}} conversations"), lines=(0.9,), max=1, width=6),
        panel("Frames", "What sockets send: audio and messages. Ten audio frames a socket and second are common.", "ops",
              (per_second("rollcall_frames_total", "kind"), "{{kind}}"), width=6),
        panel("Refusals at the door", "Audio, messages and sockets that were refused. `capacity` is a limit, `slow_client` does not read its "
              "events, `draining` is a shutdown; the others are clients that break the protocol.", "ops",
              (per_second("rollcall_refused_total", "reason"), "{{reason}}"), stacked=True, width=6),
    ]


def identity():
    return [
        panel("Named voices at a rollover, an hour", "What carried a name into the next conversation: a person's decision, evidence that was "
              "accepted again, or nothing, and the voice is examined anew.", "short",
              ("sum by (carried, target) (increase(omi_live_speaker_rollover_total[1h]))", "{{target}} {{carried}}"), stacked=True, width=6),
        panel("Reconnects, an hour", "Owners who came back on a device: looked up, recognised early, or not. `rejected` without a device name "
              "is every client that sends none.", "short",
              ("sum by (outcome) (increase(omi_owner_reconnect_total[1h]))", "{{outcome}}"), width=6),
        panel("Why a reconnect was not early, an hour", "`absent` and `no_device` are everyday; `acoustic` and `arbitration` are voices that do "
              "not fit; `corrupt` and `unavailable` are the store.", "short",
              ('sum by (reason) (increase(omi_owner_reconnect_total{outcome="rejected"}[1h]))', "{{reason}}"), stacked=True, width=6),
        panel("Collapsed numbers, an hour", "Runs in which a provider seems to have put several people under one number. Their verdicts do "
              "not hold; a rise after a provider's update is worth asking it.", "short",
              ("sum(increase(omi_live_speaker_collapse_total[1h]))", "runs"), width=6),
    ]


def store():
    return [
        panel("Enrolled people", "People whom voices can be named after. A step down is a deletion.", "short",
              ("sum by (instance) (rollcall_people)", "{{instance}}"), width=6),
        panel("Store on disk", "Size of the store on disk: people, corrections, what is remembered of conversations.", "bytes",
              ("sum by (instance) (rollcall_store_bytes)", "{{instance}}"), width=6),
        panel("History that waits for the disk", "Segments and voices that are not written yet. A healthy disk empties it every 0.6 s; beyond "
              "rollcall_history_backlog_rows_max (20 000) the oldest are left out.", "short",
              ("sum by (instance) (rollcall_history_backlog_rows)", "{{instance}}"), width=6),
        panel("History that failed, an hour", "Writings that failed and were tried again, and segments and voices that were left out for good.",
              "short", ("sum(increase(rollcall_history_write_failures_total[1h]))", "writings that failed"),
              ("sum(increase(rollcall_history_lost_rows_total[1h]))", "rows left out"), width=6),
    ]


def process():
    def share(used, most, legend):
        return f"sum by (instance) ({used}) / sum by (instance) ({most})", "{{instance}} " + legend

    return [
        panel("CPU", "Cores in use, user and system together.", "short",
              (per_second("rollcall_process_cpu_seconds_total", "instance"), "{{instance}}")),
        panel("Memory", "Resident memory of each process.", "bytes",
              ("sum by (instance) (rollcall_process_resident_memory_bytes)", "{{instance}}")),
        panel("Memory a socket", "Resident memory over open sockets. It falls as sockets come and nears a ring of audio; a steady climb at the "
              "same load is a leak.", "bytes", ("sum by (instance) (rollcall_process_resident_memory_bytes) / (sum by (instance) "
                                                "(rollcall_sockets) > 0)", "{{instance}}")),
        panel("Shares of limits", "CPU over the cores, memory over the least limit of control groups and machine, open files over the limit "
              "(ulimit -n). Alerts fire for files at 80 % and for memory at 90 %.", "percentunit",
              share(f"rate(rollcall_process_cpu_seconds_total[{RATE}])", "rollcall_process_cores", "CPU"),
              share("rollcall_process_resident_memory_bytes", "rollcall_process_memory_max_bytes", "memory"),
              share("rollcall_process_open_fds", "rollcall_process_max_fds", "files"), lines=(0.8, 0.9), max=1),
        panel("Open files and threads", "Open files include sockets, and come and go with them. Threads are flat.", "short",
              ("sum by (instance) (rollcall_process_open_fds)", "{{instance}} files"),
              ("sum by (instance) (rollcall_process_threads)", "{{instance}} threads")),
        panel("Traces and logs for the collector", "What became of traces and log records that a collector is to get, where one is configured. "
              "`dropped` found the queue full: the collector is slow or away. Nothing else waits for it.", "ops",
              (per_second("rollcall_telemetry_items_total", "signal", "outcome"), "{{signal}} {{outcome}}")),
    ]


def model():
    rows = [("Promises", promises()), ("From a voice to a name", funnel()), ("Fairness", fairness()), ("Budgets", budgets()),
            ("Engine", engine()), ("Sockets", sockets()), ("Identity over time", identity()), ("Store", store()), ("Process", process())]
    # A version that was not there five minutes ago.
    return dashboard(rows, "count by (version) (rollcall_build_info) unless count by (version) (rollcall_build_info offset 5m)")
