#!/usr/bin/python3
"""tiers_kill.py - each process of a box with an engine, the keeper and the server are killed at each of four moments:
while the box is created, while a program runs, while a snapshot is taken, while a box is restored from one. Started by
tests/stress/tiers_soak.sh (make kill-tiers) in namespaces of its own.

    KILL_MOMENTS some of: start exec snapshot restore
    SOAK_TIERS   the tiers (plain gvisor microvm; a container has no engine: tests/system/serve_restart.sh and others)

A second box of the tier runs all the time and must answer after every kill, with its file. The killed box ends with
cause host, and so does the record of its program; a kill of keeper or server ends no box. At the end nothing remains."""

import os
import shutil
import signal
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import chaos  # noqa: E402
import tiers_soak as soak  # noqa: E402

TIERS = [t for t in os.environ.get("SOAK_TIERS", "plain gvisor microvm").split() if t != "container"]
ENGINE = {"plain": ("atoll-mux", "atoll-guest", "atoll-init"),
          "gvisor": ("atoll-mux", "runsc-sandbox", "runsc-gofer"),
          "microvm": ("atoll-mux", "qemu-system")}  # guest stub and init are processes of the guest
MOMENTS = tuple(os.environ.get("KILL_MOMENTS", "start exec snapshot restore").split())
DATA_MIB = 12  # so that a snapshot and its restoration take a moment
PATIENCE_S = 120
problem, say = soak.problem, chaos.say


def of_engines(names):
    return {(pid, name) for pid, process, line in soak.processes() for name in names if soak.is_named(process, line, name)}


def ask(d, method, path, body=None):
    """repeated while the server starts again"""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        status, doc = soak.ask(d, method, path, body)
        if status not in (0, 502, 503):
            return status, doc
        time.sleep(0.1)
    problem("%s %s: no answer" % (method, path))
    return 0, {}


def box(d, snapshot=None):
    body = {"limits": {"mem": 128 << 20, "disk": 48 << 20}, "lifetime_ms": 3600000}
    if snapshot:
        body["snapshot"] = snapshot
    return body


def run(d, at, command):
    return ask(d, "POST", "/v1/boxes/%s/execs" % at, {"command": ["sh", "-c", command], "timeout_ms": 60000})


class Request(threading.Thread):
    """one request that is under way while something is killed"""

    def __init__(self, d, method, path, body):
        super().__init__()
        self.args, self.answer = (d, method, path, body), None
        self.start()

    def run(self):
        self.answer = soak.ask(*self.args)

    def result(self):
        self.join(2 * soak.ANSWER_S)
        return self.answer


def kill_engines(victim, names, mine, within_s):
    """every process of this name but those of the other box; waits until there is one. True: one was killed"""
    until = time.monotonic() + within_s
    while time.monotonic() < until:
        found = [pid for pid, name in of_engines(names) - mine if name == victim]
        for pid in found:
            chaos.kill(pid, signal.SIGKILL, victim + " killed")
        if found:
            return True
        time.sleep(0.002)
    return False


def kill(d, victim, names, mine, moment):
    if victim == "keeper":
        time.sleep(0.05)
        chaos.kill(d.keeper(), signal.SIGKILL, "keeper killed")
    elif victim == "server":
        time.sleep(0.05)
        chaos.kill(d.seat()[1], signal.SIGKILL, "server killed")
    elif not kill_engines(victim, names, mine, 60 if moment in ("start", "restore") else 5):
        return False
    return True


def ended(d, at):
    """the box has ended with cause host"""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        _, doc = ask(d, "GET", "/v1/boxes/" + at)
        if doc.get("state") == "deleted":
            return doc.get("cause") == "host"
        time.sleep(0.1)
    return False


def case(d, tier, moment, victim, mine, other, snapshot):
    what = "%s, %s killed at %s" % (tier, victim, moment)
    is_engine = victim in ENGINE[tier]
    at, run_id = None, None
    if moment in ("exec", "snapshot"):
        status, doc = ask(d, "POST", "/v1/boxes", box(d))
        at = doc.get("id")
        if status != 201 or run(d, at, "head -c %dM /dev/urandom >data" % DATA_MIB)[1].get("exit_code") != 0:
            problem("%s: no box: %s" % (what, str(doc)[:200]))
            return
    if moment == "exec":
        status, doc = ask(d, "POST", "/v1/boxes/%s/execs" % at, {"command": ["sh", "-c", "echo on; sleep 2; echo off"], "background": True})
        run_id = doc.get("id")
        if not kill(d, victim, ENGINE[tier], mine, moment):
            problem(what + ": there was nothing to kill")
    else:
        if moment == "snapshot":
            request = Request(d, "POST", "/v1/snapshots", {"box": at})
        else:
            request = Request(d, "POST", "/v1/boxes", box(d, snapshot if moment == "restore" else None))
        if not kill(d, victim, ENGINE[tier], mine, moment):
            problem(what + ": there was nothing to kill")
        status, doc = request.result() or (None, {})
        if status is None:
            problem(what + ": no answer")
        elif status == 201 and moment != "snapshot":
            at = doc["id"]
        elif status == 201:
            ask(d, "DELETE", "/v1/snapshots/" + doc["id"])
        elif status and "error" not in doc:
            problem("%s: %d without a reason" % (what, status))
        chaos.count("%s: %s" % (moment, status))
    if run_id and is_engine:
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            _, doc = ask(d, "GET", "/v1/runs/" + run_id)
            if doc.get("state") == "exited":
                break
            time.sleep(0.1)
        if doc.get("cause") != "host" or doc.get("status") != 125:
            problem("%s: the record says %s %s" % (what, doc.get("cause"), doc.get("status")))
        if not ended(d, at):
            problem(what + ": the box has not ended with cause host")
    elif run_id:
        status, doc = ask(d, "GET", "/v1/boxes/%s/execs/%s/wait" % (at, run_id))
        if doc.get("cause") != "exit" or doc.get("stdout", "on\noff\n") != "on\noff\n":
            problem("%s: the program: %d %s" % (what, status, str(doc)[:300]))
    elif at and not is_engine:
        status, doc = run(d, at, "echo alive")
        if doc.get("stdout") != "alive\n":
            problem("%s: the box does not answer: %d %s" % (what, status, str(doc)[:300]))
    if at:
        ask(d, "DELETE", "/v1/boxes/" + at)
    status, doc = run(d, other, "cat f")
    if doc.get("stdout") != "kept":
        problem("%s: the other box: %d %s" % (what, status, str(doc)[:300]))
    chaos.count("cases")


def cases_of(d, tier):
    d.env["ATOLL_TIER"] = tier
    d.start()
    if not chaos.wait_for_server(d, 120):
        problem("the daemon does not start")
        return
    names = ENGINE[tier]
    status, doc = ask(d, "POST", "/v1/boxes", box(d))
    mine = of_engines(names)  # the pool is filled after the second request
    other = doc.get("id")
    if status != 201 or run(d, other, "printf kept >f")[1].get("exit_code") != 0:
        problem("no box of tier %s: %s" % (tier, str(doc)[:200]))
        soak.leave(d)
        return
    status, doc = ask(d, "POST", "/v1/boxes", box(d))
    run(d, doc.get("id"), "head -c %dM /dev/urandom >data" % DATA_MIB)
    _, snapshot = ask(d, "POST", "/v1/snapshots", {"box": doc.get("id")})
    ask(d, "DELETE", "/v1/boxes/%s" % doc.get("id"))
    for moment in MOMENTS:
        for victim in names + ("keeper", "server"):
            began = time.monotonic()
            case(d, tier, moment, victim, mine, other, snapshot.get("id"))
            say("%s: %s at %s, %.1f s" % (tier, victim, moment, time.monotonic() - began))
    soak.leave(d)


def main():
    if os.geteuid() != 0:
        print("1..0 # SKIP not root")
        return 0
    work = tempfile.mkdtemp(prefix="kill.")
    os.chmod(work, 0o711)
    d = chaos.Daemon(work)
    d.cgroup = None
    soak.TIERS = TIERS
    _, before = soak.settled(d)
    for tier in TIERS:
        cases_of(d, tier)
    _, after = soak.settled(d)
    say(", ".join("%s %d" % x for x in sorted(chaos.counts.items())))
    want = sum(len(MOMENTS) * (len(ENGINE[t]) + 2) for t in TIERS)
    if chaos.counts.get("cases", 0) != want:
        problem("%d of %d cases" % (chaos.counts.get("cases", 0), want))
    good = [chaos.verdict(1, "%d kills: records are right, other boxes answer" % want, soak.problems),
            chaos.verdict(2, "no process, mount, file, cgroup and layer is left", sorted(after - before))]
    print("1..2")
    if all(good):
        shutil.rmtree(work, ignore_errors=True)
    else:
        say("logs are in " + work)
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
