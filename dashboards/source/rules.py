"""The recording and alerting rules, as data. Does not own their tests (see `cases`) nor what to do (see `runbook.md`)."""

from source.slo import ALLOWED, FAST, PROMISES, SLOW, WINDOWS

# Below this many events a percentage says nothing: one failure in the night is not a failing service.
EVENTS_HOUR_MIN = 20
EVENTS_DAY_MIN = 100
EACH = "job, instance"


def recorded():
    for name, _, share, events in PROMISES:
        for window in WINDOWS:
            yield {"record": f"rollcall:slo_errors:ratio_rate{window}", "expr": share(window), "labels": {"slo": name}}
        for window in ("1h", "1d"):
            yield {"record": f"rollcall:slo_events:increase{window}", "expr": events(window), "labels": {"slo": name}}


def burning(paces, enough):
    def clause(pace, long, short):
        most = round(pace * ALLOWED, 6)
        return (f"rollcall:slo_errors:ratio_rate{long} > {most} and rollcall:slo_errors:ratio_rate{short} > {most}")

    return f"({' or '.join(clause(*pace) for pace in paces)}) and {enough}"


def alert(name, expr, severity, summary, description, hold=None):
    made = {"alert": name, "expr": expr}
    if hold:
        made["for"] = hold
    return made | {"labels": {"severity": severity},
                   "annotations": {"summary": summary, "description": description,
                                   "runbook_url": f"dashboards/runbook.md#{name.lower()}"}}


def promises():
    yield alert("RollcallBurnsFast", burning(FAST, f"rollcall:slo_events:increase1h >= {EVENTS_HOUR_MIN}"), "page",
                "{{ $labels.slo }}: the month's allowance of failures is being spent within hours",
                "{{ $labels.job }} fails its promise \"{{ $labels.slo }}\" at six times the allowed pace or more.", "2m")
    yield alert("RollcallBurnsSlowly", burning(SLOW, f"rollcall:slo_events:increase1d >= {EVENTS_DAY_MIN}"), "ticket",
                "{{ $labels.slo }}: the month's allowance of failures will not last",
                "{{ $labels.job }} fails its promise \"{{ $labels.slo }}\" faster than the allowance comes in.", "15m")


def correctness():
    yield alert("RollcallInvariantBroken", "increase(rollcall_invariant_violations_total[15m]) > 0", "page",
                "{{ $labels.instance }}: invariant {{ $labels.kind }} is broken",
                "A state that the program rules out has come about: a bug. The counter is 0 in a healthy process.")
    exits = f"sum by ({EACH}) (omi_speaker_id_budget_exits_total)"
    legacy = f'sum by ({EACH}) (omi_speaker_id_match_exits_total{{reason="embedding_budget"}})'
    reserved = f'sum by ({EACH}) (omi_speaker_id_embedding_attempts_total{{outcome="reserved"}})'
    settled = f'sum by ({EACH}) (omi_speaker_id_embedding_attempts_total{{outcome!="reserved"}})'
    yield alert("RollcallBooksDiffer",
                f"{exits} != {legacy} or {reserved} - {settled} != sum by ({EACH}) (rollcall_open_queries)", "page",
                "{{ $labels.instance }}: the accounts do not balance",
                "Exits by cap differ from the budget's exits, or attempts reserved from those settled and open. They agree in "
                "every scrape of a healthy process.")


def availability():
    yield alert("RollcallAbsent", "absent(rollcall_build_info)", "page", "No Rollcall is being scraped",
                "No instance has answered a scrape for five minutes.", "5m")
    yield alert("RollcallUnreachable", f"up == 0 and on ({EACH}) max_over_time(rollcall_build_info[6h])", "page",
                "{{ $labels.instance }} does not answer scrapes", "It answered within the last six hours.", "2m")
    yield alert("RollcallNoWorker", "rollcall_workers_up == 0 and rollcall_workers > 0", "page",
                "{{ $labels.instance }}: no extraction worker is able to extract",
                "Voices wait and nobody new is named; no budget is spent meanwhile.", "1m")
    yield alert("RollcallNoEndpoint", f'sum by ({EACH}) (rollcall_endpoint_circuit{{state="closed"}}) == 0', "page",
                "{{ $labels.instance }}: every extraction server is out of service",
                "Voices wait and nobody new is named; no budget is spent meanwhile.", "1m")


def causes():
    yield alert("RollcallEndpointOut", 'rollcall_endpoint_circuit{state="closed"} == 0', "ticket",
                "{{ $labels.instance }}: extraction server {{ $labels.endpoint }} is out of service",
                "The label is its place in remote.endpoints, from 0.", "10m")
    yield alert("RollcallWorkersMissing", "rollcall_workers_up < rollcall_workers", "ticket",
                "{{ $labels.instance }}: not every extraction worker is able to extract",
                "The pool runs on fewer workers than it was configured with.", "10m")
    yield alert("RollcallWorkersRestart", "increase(rollcall_worker_restarts_total[15m]) > 3", "ticket",
                "{{ $labels.instance }}: extraction workers are being started again and again",
                "More than three panics, hangs or lost threads in a quarter of an hour.")
    turns = f"sum by ({EACH}) (increase(rollcall_selections_total{{}}[10m]))"
    aged, every = turns.format('{override="yes"}'), turns.format("")
    yield alert("RollcallOverrideShare", f"{aged} / {every} > 0.25 and {every} >= {EVENTS_HOUR_MIN}", "ticket",
                "{{ $labels.instance }}: over a quarter of the turns go by age alone",
                "The order of examination is close to first-in-first-out: there is more to examine than the engine can.", "10m")
    yield alert("RollcallQueueOld", "rollcall_queue_oldest_age_seconds > 15", "ticket",
                "{{ $labels.instance }}: a voice has waited for its turn three times the age override",
                "Turns come too slowly, or not at all.", "5m")
    yield alert("RollcallQueuesFull", "rollcall_queue_slots / (rollcall_queue_capacity > 0) > 0.8", "ticket",
                "{{ $labels.instance }}: the queues of its sockets are four fifths full on average",
                "Beyond what a queue holds, speech stays with its voice for the next update.", "5m")
    denials = f"sum by ({EACH}, cap) (rate(omi_speaker_id_budget_exits_total[{{}}]))"
    now, before = denials.format("30m"), denials.format("1d").replace("[1d]", "[1d] offset 1h")
    yield alert("RollcallExitsRise", f"{now} > 0.1 and {now} > 4 * {before}", "ticket",
                "{{ $labels.instance }}: denials by the cap {{ $labels.cap }} are rising fast",
                "Four times the rate of the day before, and more than one in ten seconds.", "15m")
    yield alert("RollcallRefuses",
                f'sum by ({EACH}, reason) (rate(rollcall_refused_total{{reason=~"capacity|slow_client"}}[10m])) > 0.1', "ticket",
                "{{ $labels.instance }} refuses at its door: {{ $labels.reason }}",
                "More than one refusal in ten seconds, for ten minutes.", "10m")
    yield alert("RollcallAuthorityUnavailable",
                f'sum by ({EACH}) (increase(omi_speaker_id_match_exits_total{{reason="authority_unavailable"}}[10m])) > 0', "ticket",
                "{{ $labels.instance }} could not read what people decided",
                "No voice is named while corrections cannot be read: the store is slow, locked or broken.")
    yield alert("RollcallReconnectUnreadable",
                f'sum by ({EACH}, reason) (increase(omi_owner_reconnect_total{{reason=~"corrupt|unavailable"}}[1h])) > 0', "ticket",
                "{{ $labels.instance }}: what a device left behind is {{ $labels.reason }}",
                "Owners who come back are examined from the start: the store is slow, locked or damaged.")


def room():
    yield alert("RollcallSocketsFull",
                "rollcall_sockets / rollcall_sockets_max > 0.9 or rollcall_conversations / rollcall_conversations_max > 0.9", "ticket",
                "{{ $labels.instance }} has taken nine tenths of the sockets or conversations that it may",
                "At the limit new ones are refused with 503.", "10m")
    yield alert("RollcallFilesShort", "rollcall_process_open_fds / rollcall_process_max_fds > 0.8", "ticket",
                "{{ $labels.instance }} has four fifths of the file descriptors open that it may",
                "At the limit neither sockets nor the store can be opened.", "10m")
    yield alert("RollcallMemoryShort", "rollcall_process_resident_memory_bytes / rollcall_process_memory_max_bytes > 0.9", "page",
                "{{ $labels.instance }} uses nine tenths of the memory that it may",
                "At the limit the kernel ends it, and every conversation on it with it.", "5m")
    yield alert("RollcallHistoryBehind",
                "rollcall_history_backlog_rows / rollcall_history_backlog_rows_max > 0.5 or "
                f"sum by ({EACH}) (increase(rollcall_history_write_failures_total[10m])) > 5", "ticket",
                "{{ $labels.instance }} cannot write its history",
                "Conversations go on; what they said of who spoke when waits in memory, and is left out beyond a limit.", "2m")
    yield alert("RollcallHistoryLost", "increase(rollcall_history_lost_rows_total[15m]) > 0", "ticket",
                "{{ $labels.instance }} has left out some of its history",
                "The store failed for so long that more waited than may. Live names are not affected.")


def telemetry():
    lost = f'sum by ({EACH}, signal) (increase(rollcall_telemetry_items_total{{outcome=~"dropped|refused"}}[15m]))'
    yield alert("RollcallTelemetryLost", f"{lost} > 0", "ticket", "{{ $labels.instance }}: {{ $labels.signal }} do not reach the collector",
                "The collector is slow, away or refuses them. Names are given all the same; what it lacks, nobody can look up later.", "15m")


def groups():
    made = [("rollcall_slo_records", recorded), ("rollcall_slo", promises), ("rollcall_correctness", correctness),
            ("rollcall_availability", availability), ("rollcall_causes", causes), ("rollcall_room", room), ("rollcall_telemetry", telemetry)]
    return {"groups": [{"name": name, "rules": list(rules())} for name, rules in made]}
