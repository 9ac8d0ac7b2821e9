"""Writes the expressions, starts and times of cronsim.txt.gz: python3 cronsim.py 10000 | gzip -9n > cronsim.txt.gz

Needs the package cronsim (2.7), whose meaning of an expression is that of Debian's cron. A line is: expression|zone|start|gaps,
where the start is in minutes since 2026 and the gaps are the minutes between it and the first five times after it.
"""

import random
import sys
from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

RANDOM = random.Random(9)
ZONES = (
    "UTC Europe/Berlin Europe/London America/New_York America/Santiago Africa/Cairo Asia/Kolkata Asia/Kathmandu "
    "Australia/Lord_Howe Pacific/Auckland"
).split()
DAYS = "SUN MON TUE WED THU FRI SAT".split()
MONTHS = "JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC".split()
HOURS_OF_CHANGES = ["1", "2", "3", "2,14", "1-3", "*/2", "1/1", "0-4/2", "0,1,2,3", "*"]
BEGIN = datetime(2026, 1, 1, tzinfo=timezone.utc)
YEARS = 5
TIMES = 5
# Later ones are left out: libraries search for different numbers of years.
LAST_YEAR = 2060


def number(low, high, names, first):
    value = RANDOM.randint(low, high)
    named = value - first
    return names[named] if RANDOM.random() < 0.4 and named < len(names) else str(value)


def term(low, high, names, first):
    kind = RANDOM.random()
    if kind < 0.5:
        return number(low, high, names, first)
    start, end = sorted((RANDOM.randint(low, high), RANDOM.randint(low, high)))
    if kind < 0.75:
        return f"{start}-{end}"
    if kind < 0.9:
        return f"{start}-{end}/{RANDOM.randint(1, max(1, end - start))}"
    return f"{start}/{RANDOM.randint(1, high - low)}"


def field(low, high, star, names=(), first=0):
    kind = RANDOM.random() - star
    if kind < 0:
        return "*"
    if kind < 0.15:
        return f"*/{RANDOM.randint(1, min(high - low, 30))}"
    if kind < 0.19:
        return f"*,{RANDOM.randint(low, high)}"
    if kind < 0.45:
        return number(low, high, names, first)
    return ",".join(term(low, high, names, first) for _ in range(RANDOM.randint(1, 3)))


def expression():
    fields = [
        field(0, 59, 0.15),
        field(0, 23, 0.2),
        field(1, 31, 0.5),
        field(1, 12, 0.7, MONTHS, 1),
        field(0, 7, 0.5, DAYS),
    ]
    if RANDOM.random() < 0.5:
        fields[1] = RANDOM.choice(HOURS_OF_CHANGES)
    kind = RANDOM.random()
    if kind < 0.04:
        fields[2] = "L"
    elif kind < 0.06:
        fields[2] = "LW"
    elif kind < 0.1:
        fields[4] = f"{RANDOM.choice(DAYS)}#{RANDOM.randint(1, 5)}"
    elif kind < 0.13:
        fields[4] = f"{RANDOM.randint(0, 7)}L"
    return " ".join(fields)


def changes(zone):
    """When the clocks of a zone change."""
    found, time, before = [], BEGIN, None
    while time < BEGIN + timedelta(days=365 * YEARS):
        offset = time.astimezone(zone).utcoffset()
        if before is not None and offset != before:
            found.append(time)
        before = offset
        time += timedelta(minutes=30)
    return found


def times_after(start, simulation):
    found = []
    for time in simulation:
        time = time.astimezone(timezone.utc)
        if time.year > LAST_YEAR:
            break
        # In a repeated hour it forgets which of the two it is in, and of the times of a skipped hour each is at its end.
        if time > start and time not in found:
            found.append(time)
        if len(found) == TIMES:
            break
    return found


def minutes(time):
    return int((time - BEGIN).total_seconds() // 60)


CHANGES = {name: changes(ZoneInfo(name)) for name in ZONES}
left = int(sys.argv[1])
while left > 0:
    text, name = expression(), RANDOM.choice(ZONES)
    if CHANGES[name] and RANDOM.random() < 0.7:
        start = RANDOM.choice(CHANGES[name]) + timedelta(minutes=RANDOM.randint(-26 * 60, 90))
    else:
        start = BEGIN + timedelta(minutes=RANDOM.randint(0, YEARS * 525_600))
    try:
        found = times_after(start, CronSim(text, start.astimezone(ZoneInfo(name))))
    except CronSimError:
        continue
    gaps = [minutes(time) - minutes(before) for before, time in zip([start, *found], found)]
    print(f"{text}|{name}|{minutes(start)}|{' '.join(map(str, gaps))}")
    left -= 1
