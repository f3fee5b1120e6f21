"""compare.py PRINT FOLDER - our TOML tree against Python's, file by file, as TAP.

FOLDER/valid     both read it, and see the same
FOLDER/invalid   both refuse it
FOLDER/stricter  Python reads it, we refuse: numbers that do not fit, bounds
A refusal of ours names line and column.
"""
import datetime
import json
import math
import pathlib
import re
import subprocess
import sys
import tomllib

TIMES = {
    "datetime": datetime.datetime,
    "datetime-local": datetime.datetime,
    "date-local": datetime.date,
    "time-local": datetime.time,
}


def ours(node):
    kind, value = node["type"], node["value"]
    if kind == "table":
        table = {key: ours(child) for key, child in value}
        assert len(table) == len(value), "a key twice"
        return table
    if kind == "array":
        return [ours(child) for child in value]
    if kind == "integer":
        return int(value)
    if kind == "float":
        return float(value)
    if kind == "bool":
        return value == "true"
    if kind == "string":
        return value
    moment = TIMES[kind].fromisoformat(value.upper())
    if isinstance(moment, datetime.datetime):
        assert (moment.tzinfo is not None) == (kind == "datetime")
    return moment


def same(a, b):
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, float):
        return math.isnan(a) and math.isnan(b) or (a, math.copysign(1, a)) == (b, math.copysign(1, b))
    return a == b


def python_reads(text):
    try:
        return tomllib.loads(text.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError):
        return None


def verdict(program, kind, text):
    """None, or what is wrong."""
    run = subprocess.run([program], input=text, capture_output=True)
    theirs = python_reads(text)
    if run.returncode not in (0, 1) or run.stderr:
        return f"exit {run.returncode}: {run.stderr[:400]}"
    if kind != "valid":
        said = run.stdout.decode()
        if (theirs is None) != (kind == "invalid"):
            return "Python does not agree with the folder"
        if run.returncode == 0:
            return "accepted"
        return None if re.match(r"stdin:[1-9]\d*:[1-9]\d*: \S", said) else f"no place: {said}"
    if run.returncode:
        return run.stdout.decode()
    mine = ours(json.loads(run.stdout))
    return None if same(mine, theirs) else f"{mine} is not {theirs}"


def main(program, folder):
    files = sorted(pathlib.Path(folder).glob("*/*.toml"))
    print(f"1..{len(files)}")
    bad = 0
    for number, file in enumerate(files, 1):
        wrong = verdict(program, file.parent.name, file.read_bytes())
        print(f"{'not ok' if wrong else 'ok'} {number} - {file.parent.name} {file.stem}")
        if wrong:
            bad = 1
            print("#", wrong)
    return bad


sys.exit(main(*sys.argv[1:]))
