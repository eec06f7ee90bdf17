"""What Rollcall promises, as ratios of failures to events, and the windows they are taken over.

Both the rules and the dashboard read it, so that a picture and an alert cannot mean different things.
"""

# The share of events that may fail in 28 days. One figure for all: the three promises are of one kind, and one alert serves.
ALLOWED = 0.01
DAYS = 28
WINDOWS = ["5m", "30m", "1h", "2h", "6h", "1d", "3d", f"{DAYS}d"]
# Spent in the time of the long window at this many times the allowed pace; the short window says that it still goes on.
# 14.4 over an hour is 2 % of the month's allowance, 6 over six hours 5 %, 3 over a day and 1 over three days 10 %.
FAST = [(14.4, "1h", "5m"), (6, "6h", "30m")]
SLOW = [(3, "1d", "2h"), (1, "3d", "6h")]
# The waits that still count as good.
EXAMINED_SECONDS = 1
VERDICT_SECONDS = 2.5
# At this age the oldest voice goes first.
OVERRIDE_SECONDS = 5


def bucket(seconds):
    """A matcher for one bound of a histogram: the two formats of a scrape write whole numbers as `5` and as `5.0`."""
    return f'le=~"{seconds}(\\\\.0)?"' if seconds == int(seconds) else f'le="{seconds}"'


def late(histogram, seconds, window, matcher=""):
    """The share of a histogram's events that took longer. Without any event there is no series, and no alert."""
    of, whole = (f", {matcher}", f"{{{matcher}}}") if matcher else ("", "")
    within = f"sum by (job) (rate({histogram}_bucket{{{bucket(seconds)}{of}}}[{window}]))"
    return f"1 - {within} / (sum by (job) (rate({histogram}_count{whole}[{window}])) > 0)"


def failed(window):
    """The share of queries that brought no voiceprint. A caller who left is nobody's failure."""
    bad = f'sum by (job) (rate(rollcall_extraction_failures_total{{kind!="cancelled"}}[{window}]))'
    good = f'sum by (job) (rate(omi_speaker_id_embedding_attempts_total{{outcome="succeeded"}}[{window}]))'
    return f"{bad} / ({bad} + {good} > 0)"


# A repeat may wait: its voice was examined before, and the order lets new ones go ahead of it.
FIRST = 'class="first"'

# Name, what the operator reads, the share of failures over a window, the number of events in a window.
PROMISES = [
    ("extraction", "Queries that bring a voiceprint", failed,
     lambda w: f'sum by (job) (increase(omi_speaker_id_embedding_attempts_total{{outcome="reserved"}}[{w}]))'),
    ("examined", f"New voices whose turn comes within {EXAMINED_SECONDS} s",
     lambda w: late("rollcall_selection_wait_seconds", EXAMINED_SECONDS, w, FIRST),
     lambda w: f"sum by (job) (increase(rollcall_selection_wait_seconds_count{{{FIRST}}}[{w}]))"),
    ("verdict", f"Verdicts within {VERDICT_SECONDS} s of their segment",
     lambda w: late("rollcall_verdict_seconds", VERDICT_SECONDS, w),
     lambda w: f"sum by (job) (increase(rollcall_verdict_seconds_count[{w}]))"),
]
