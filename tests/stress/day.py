#!/usr/bin/python3
"""day.py RUNS - the load of a day, compressed: see day.sh, which starts the daemon.

Clients of 20 teams run programs in boxes of their own, in boxes that stay, and in batches. Every 2 to 4 seconds the
server or the keeper is killed with SIGKILL. A request that is cut is not repeated: a program either has a record with
its cost, and then the usage of its team contains it once, or it has none.

At the end, for each team and for the whole daemon:
  usage     equals the records, boxes and batches, to the last unit
  figures   atoll_executions_total is the number of records that have ended
  receipts  the chain is complete, `atoll receipt verify` accepts it, and each record has exactly one
  webhooks  each record has the event run.ended (batches have events of their own), each event that the daemon still has
            has arrived, and no event of a box arrived after a later one

DAY_SEED, DAY_CLIENTS (6), DAY_SECONDS (none: as long as RUNS take). Prints what was done and what differs; exits 1 if anything does."""

import http.client
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.parse
from decimal import Decimal

RUNS = int(sys.argv[1])
TEAMS = 20
CLIENTS = int(os.environ.get("DAY_CLIENTS", "6"))
SEED = int(os.environ.get("DAY_SEED", "0")) or random.SystemRandom().randrange(1 << 32)
URL = urllib.parse.urlparse(os.environ["url"])
OPERATOR = os.environ["key"]
SUPERVISOR = int(os.environ["DAY_SUPERVISOR"])
END = time.monotonic() + float(os.environ.get("DAY_SECONDS", "inf"))
WAIT_S = 180  # until the last program has ended

lock = threading.Lock()
stop = threading.Event()
counts = {}
taken = 0


def count(what, n=1):
    with lock:
        counts[what] = counts.get(what, 0) + n


class Cut(Exception):
    """the connection ended before the answer was complete"""


def ask(key, method, path, body=None, content="application/json"):
    c = http.client.HTTPConnection(URL.hostname, URL.port, timeout=60)
    try:
        c.request(method, path, body if body is None or isinstance(body, str) else json.dumps(body),
                  {"X-API-Key": key, "Content-Type": content})
        r = c.getresponse()
        text = r.read().decode()
        return r.status, text if content != "application/json" else json.loads(text) if text else {}
    except (OSError, http.client.HTTPException, ValueError) as e:
        raise Cut(str(e))
    finally:
        c.close()


def sure(key, method, path, body=None, content="application/json"):
    """the same, repeated until the daemon answers with success"""
    until = time.monotonic() + WAIT_S
    while True:
        try:
            status, doc = ask(key, method, path, body, content)
            if status < 300:
                return doc
            last = "%d %s" % (status, doc)
        except Cut as e:
            last = str(e)
        if time.monotonic() > until:
            raise SystemExit("%s %s: no success within %d s: %s" % (method, path, WAIT_S, last))
        time.sleep(0.1)


class Team:
    def __init__(self, number):
        self.name = "team%02d" % number
        sure(OPERATOR, "PUT", "/v1/teams/" + self.name, {})
        self.key = sure(OPERATOR, "POST", "/v1/keys", {"name": "day", "role": "owner", "team": self.name})["key"]
        self.box = None
        sure(self.key, "POST", "/v1/webhooks", {"name": "day", "url": "http://127.0.0.1:%s/" % os.environ["DAY_RECEIVER"],
                                                "events": ["*"]})

    def exec_in_box(self, tag):
        if not self.box:
            self.box = ask(self.key, "POST", "/v1/boxes", {"lifetime_ms": 7200000})[1].get("id")
        status, _ = ask(self.key, "POST", "/v1/boxes/%s/execs" % self.box, {"command": "true", "tag": tag})
        if status in (404, 409):
            self.box = None
        return status

    def batch(self):
        items = '{"command":"true"}\n' * 5
        return ask(self.key, "POST", "/v1/batch?record=true", items, "application/x-ndjson")[0]

    def all_of(self, path):
        rows, after = [], ""
        while True:
            page = sure(self.key, "GET", path + "&limit=1000" + after)
            rows += page["items"]
            if not page["next"]:
                return rows
            after = "&after=" + urllib.parse.quote(page["next"])


def work(teams, seed):
    global taken
    rand = random.Random(seed)
    while True:
        with lock:
            if taken >= RUNS or time.monotonic() > END:
                return
            n = taken
            taken += 1
        team = teams[n % TEAMS]
        tag = "tag%d" % rand.randrange(30)
        try:
            if n % 50 == 49:
                status = team.batch()
                count("batches")
            elif rand.random() < 0.3:
                status = team.exec_in_box(tag)
            else:
                status = ask(team.key, "POST", "/v1/run", {"command": "true", "tag": tag})[0]
            count("answers" if status < 300 else "refusals")
        except Cut:
            count("cut")


def child(name):
    found = subprocess.run(["pgrep", "-P", str(SUPERVISOR), "-x", name], capture_output=True, text=True).stdout.split()
    return int(found[0]) if found else 0


def keeper():
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        s.connect(os.environ["ATOLL_RUN"] + "/keeper.sock")
        return int.from_bytes(s.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)[:4], "little")
    except OSError:
        return 0
    finally:
        s.close()


def kill(seed):
    rand = random.Random(seed)
    while not stop.wait(2 + 2 * rand.random()):
        what = rand.choice(("server", "server", "keeper"))
        pid = child("atoll-server") if what == "server" else keeper()
        if not pid:
            continue
        try:
            os.kill(pid, signal.SIGKILL)
            count("kills of the " + what)
        except ProcessLookupError:
            pass


def nano(cost):
    return int(Decimal(cost["amount"]) * 10**9)


def sums(rows):
    """runs, and cost in 10^-9, CPU and memory in base units"""
    rows = [r for r in rows if "cost" in r]
    return (sum(r.get("runs", 1) for r in rows), sum(nano(r["cost"]) for r in rows),
            sum(r["usage"]["cpu_us"] for r in rows), sum(r["usage"]["memory_mib_ms"] for r in rows))


def settle(team):
    until = time.monotonic() + WAIT_S
    while time.monotonic() < until:
        running = team.all_of("/v1/runs?running=1")
        batches = [b for b in team.all_of("/v1/batch?") if not b.get("ended")]
        if not running and not batches:
            break
        time.sleep(0.2)
    else:
        raise SystemExit("%s: %d programs and %d batches have not ended" % (team.name, len(running), len(batches)))
    for box in team.all_of("/v1/boxes?state=running"):
        ask(team.key, "DELETE", "/v1/boxes/" + box["id"])
    while team.all_of("/v1/boxes?state=running") and time.monotonic() < until:
        time.sleep(0.1)


def compare(team, report):
    """sentences about what differs"""
    records = team.records = team.all_of("/v1/runs?")
    by_tag = sure(team.key, "GET", "/v1/usage?by=tag")
    of_runs = [r for r in by_tag["items"] if r["value"] != "(box)"]
    count("records", len(records))
    count("records without a cost, whose end this load has cut", sum("cost" not in r for r in records))
    if sums(records) != sums(of_runs):
        yield "%s: records are %s, usage is %s (runs, cost, CPU, memory)" % (team.name, sums(records), sums(of_runs))
    whole = sum(nano(r["cost"]) for r in by_tag["items"])
    parts = sum(nano(r["cost"]) for r in team.all_of("/v1/boxes?state=all") + team.all_of("/v1/batch?"))
    if whole != parts:
        yield "%s: usage is %d, boxes and batches are %d" % (team.name, whole, parts)
    mine = [r for r in report["items"] if r["value"] == team.name]
    if whole != sum(nano(r["cost"]) for r in mine):
        yield "%s: usage is %d, the report of all teams has %s" % (team.name, whole, mine)
    count("cost, in 10^-9", whole)


def check_figures(records):
    text = sure(OPERATOR, "GET", "/metrics", content="text/plain")
    total = sum(float(line.split()[-1]) for line in text.splitlines() if line.startswith("atoll_executions_total{"))
    count("executions in the figures", int(total))
    if total != len(records):
        yield "atoll_executions_total is %d, and there are %d records" % (total, len(records))


def check_receipts(records):
    """records: ids of all teams"""
    atoll, path = os.environ["ATOLL"], os.environ["DAY_WORK"] + "/receipts"
    env = dict(os.environ, ATOLL_KEY=OPERATOR)
    subprocess.run([atoll, "-H", os.environ["url"], "receipt", "export", path], env=env, check=True)
    done = subprocess.run([atoll, "receipt", "verify", path, "--key", os.environ["state"] + "/receipts.pub"], env=env,
                          capture_output=True, text=True)
    if done.returncode != 0:
        yield "receipt verify: " + (done.stdout + done.stderr).strip()
    else:
        print("# " + done.stdout.strip())
    seen = {}
    with open(path) as f:
        for line in f:
            run = json.loads(line)["receipt"]["run"]
            seen[run] = seen.get(run, 0) + 1
    count("receipts", sum(seen.values()))
    for what, runs in (("records without a receipt", [r for r in records if r not in seen]),
                       ("receipts without a record", [r for r in seen if r not in records]),
                       ("runs with several receipts", [r for r in seen if seen[r] > 1])):
        if runs:
            yield "%s: %d, for example %s" % (what, len(runs), runs[0])


def arrivals():
    """Team, number, box, type and run of each delivery, when no more are expected."""
    with open(os.environ["DAY_ARRIVED"]) as f:
        rows = [line.rstrip("\n").split("\t") for line in f]
    return [(team, int(seq), box, what, run) for team, seq, box, what, run in rows]


def settle_webhooks(teams):
    until = time.monotonic() + WAIT_S
    for team in teams:
        last = max([e["seq"] for e in team.all_of("/v1/events?")], default=0)
        while time.monotonic() < until:
            hook = sure(team.key, "GET", "/v1/webhooks/day")
            if hook["waiting"] == 0 and any(t == team.name and seq >= last for t, seq, _, _, _ in arrivals()):
                break
            time.sleep(0.2)


def check_webhooks(teams, records):
    """records: of runs with events, id -> team"""
    rows = arrivals()
    count("deliveries", len(rows))
    count("repeated deliveries", len(rows) - len({seq for _, seq, _, _, _ in rows}))
    ended = {}
    for team, seq, _, what, run in rows:
        if what == "run.ended":
            ended.setdefault(run, set()).add(seq)
    missing = [r for r in records if r not in ended]
    if missing:
        yield "records without an arrived run.ended: %d, for example %s of %s" % (len(missing), missing[0], records[missing[0]])
    twice = [r for r in ended if len(ended[r]) > 1]
    if twice:
        yield "runs with two events run.ended: %d, for example %s" % (len(twice), twice[0])
    unknown = [r for r in ended if r not in records]
    if unknown:
        yield "events run.ended without a record: %d, for example %s" % (len(unknown), unknown[0])
    newest = {}
    for _, seq, box, what, _ in rows:
        if box and seq < newest.get(box, 0):
            yield "box %s: event %d (%s) arrived after %d" % (box, seq, what, newest[box])
        newest[box] = max(seq, newest.get(box, 0))
    arrived = {seq for _, seq, _, _, _ in rows}
    for team in teams:
        hook = sure(team.key, "GET", "/v1/webhooks/day")
        if hook["waiting"] or hook["failed"] or hook["lost"]:
            yield "%s: webhook has %s" % (team.name, {k: hook[k] for k in ("waiting", "failed", "lost", "error")})
        since = min((seq for t, seq, _, _, _ in rows if t == team.name), default=0)
        lost = [e for e in team.all_of("/v1/events?") if e["seq"] >= since and e["seq"] not in arrived]
        if lost:
            yield "%s: %d events have not arrived, for example %s" % (team.name, len(lost), lost[0])


def main():
    print("# seed %d, %d runs, %d teams, %d clients" % (SEED, RUNS, TEAMS, CLIENTS), flush=True)
    teams = [Team(i) for i in range(TEAMS)]
    began = time.monotonic()
    killer = threading.Thread(target=kill, args=(SEED,), daemon=True)
    clients = [threading.Thread(target=work, args=(teams, SEED + i)) for i in range(CLIENTS)]
    killer.start()
    for c in clients:
        c.start()
    for c in clients:
        c.join()
    seconds = time.monotonic() - began
    stop.set()
    killer.join()
    for team in teams:
        settle(team)
    report = sure(OPERATOR, "GET", "/v1/usage?by=team")
    differences = [text for team in teams for text in compare(team, report)]
    records = {r["id"]: team.name for team in teams for r in team.records}
    of_batches = {r["id"] for team in teams for r in team.records if r.get("tag", "").startswith("batch-")}
    settle_webhooks(teams)
    checks = {"usage of %d teams equals their records, boxes and batches" % TEAMS: differences,
              "the figures count each record": list(check_figures(records)),
              "each record has one receipt, and the chain is complete": list(check_receipts(records)),
              "each run's end has arrived at a webhook, in the order of its box":
                  list(check_webhooks(teams, {r: t for r, t in records.items() if r not in of_batches}))}
    for what in sorted(counts):
        print("# %s: %d" % (what, counts[what]))
    print("# %d runs in %.0f s, %.0f per second" % (taken, seconds, taken / seconds))
    for n, (what, texts) in enumerate(checks.items(), 1):
        for text in texts[:20]:
            print("# " + text)
        print("%s %d - %s" % ("not ok" if texts else "ok", n, what))
    print("1..%d" % len(checks))
    sys.exit(1 if any(checks.values()) else 0)


main()
