#!/usr/bin/env python3
"""table.py - times of cron expressions, computed without Atoll, with Python's own time
zones: all days of the period are looked at. Reads lines "CASE|AFTER|UNTIL|ZONE|EXPRESSION", times in seconds, and
prints one line per time: CASE SECONDS.
"""
import sys
from datetime import datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()
DAYS = "sun mon tue wed thu fri sat".split()


def value(text, names, first):
    text = text.lower()
    return names.index(text) + first if text in names else int(text)


def field(text, low, high, names=()):
    found = set()
    for part in text.split(","):
        span, _, step = part.partition("/")
        if span == "*":
            a, b = low, high
        elif "-" in span:
            a, b = (value(x, names, low) for x in span.split("-"))
            if b == 0 and a > 0 and names:
                b = 7
        else:
            a = b = value(span, names, low)
        found.update(range(a, b + 1, int(step or 1)))
    return found


class Cron:
    def __init__(self, text):
        m, h, d, mo, w = text.split()
        self.minutes, self.hours = field(m, 0, 59), field(h, 0, 23)
        self.days, self.months = field(d, 1, 31), field(mo, 1, 12, MONTHS)
        self.weekdays = {x % 7 for x in field(w, 0, 7 if w[0] != "*" else 6, DAYS)}
        self.star_hour = h[0] == "*"
        self.both = d[0] == "*" or w[0] == "*"

    def day(self, t):
        day, weekday = t.day in self.days, t.isoweekday() % 7 in self.weekdays
        return t.month in self.months and (day and weekday if self.both else day or weekday)


@lru_cache(maxsize=None)
def times(text, zone, since, until):
    """All times in (since, until]."""
    cron, tz = Cron(text), ZoneInfo(zone)
    found = set()
    if cron.star_hour:
        # A distance: every moment whose local time matches. Clocks change at a quarter of an hour.
        for quarter in range(since - since % 900, until + 1, 900):
            local = datetime.fromtimestamp(quarter, tz)
            if cron.day(local) and local.hour in cron.hours:
                found.update(quarter + 60 * m for m in range(15) if local.minute + m in cron.minutes)
        return [t for t in sorted(found) if since < t <= until]
    # Named hours: every local time of the calendar that matches, exactly one moment each.
    local = datetime.fromtimestamp(since, tz).replace(tzinfo=None, second=0) - timedelta(days=3)
    end = datetime.fromtimestamp(until, tz).replace(tzinfo=None) + timedelta(days=2)
    local = local.replace(hour=0, minute=0)
    while local <= end:
        if cron.day(local):
            for h in sorted(cron.hours):
                for m in sorted(cron.minutes):
                    found.add(moment(local.replace(hour=h, minute=m), tz))
        local += timedelta(days=1)
    return [t for t in sorted(found) if since < t <= until]


def moment(local, tz):
    first = local.replace(tzinfo=tz, fold=0)
    seconds = int(first.timestamp())
    back = datetime.fromtimestamp(seconds, tz).replace(tzinfo=None)
    if back == local:
        return seconds
    # It does not exist: the first moment whose local time is later, found by bisection.
    low, high = seconds - 2 * 86400, seconds + 2 * 86400
    while high - low > 1:
        middle = (low + high) // 2
        if datetime.fromtimestamp(middle, tz).replace(tzinfo=None) > local:
            high = middle
        else:
            low = middle
    return high


for line in sys.stdin:
    line = line.rstrip("\n")
    if line:
        case, since, until, zone, text = line.split("|")
        for t in times(text, zone, int(since), int(until)):
            print(case, t)
