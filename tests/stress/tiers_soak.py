#!/usr/bin/python3
"""tiers_soak.py - boxes of every isolation tier are created, used, paused, saved, restored and ended, while their
processes and those of the daemon are killed at random. Started by tests/stress/tiers_soak.sh in a pid namespace,
a /run and a mount namespace of its own: every process that it sees is its own.

    SOAK_TIERS   the tiers, in this order again and again (container plain gvisor microvm)
    SECONDS      1800

A round has one tier: a daemon with ATOLL_TIER, three clients, kills. Boxes of earlier rounds remain and are
adopted. At the end all boxes are ended, and nothing may remain: processes, mounts, files of the run folder and of
/dev/shm, cgroups, records, uid ranges; the memory of the processes is that of the start."""

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import chaos  # noqa: E402

SECONDS = int(os.environ.get("SECONDS", "1800"))
TIERS = os.environ.get("SOAK_TIERS", "container plain gvisor microvm").split()
SEED = chaos.SEED
ROUND_S = 45
WARM_UP_S = 20
CLIENTS = 3
ANSWER_S = 240  # a guest without KVM is slow, and two of them boot at a time
BOXES_MOST = 6
VICTIMS = ("runsc-sandbox", "runsc-gofer", "qemu-system", "atoll-mux", "atoll-guest", "atoll-init",
           "keeper", "server", "supervisor")

problems = []
stop = threading.Event()
say, count = chaos.say, chaos.count


def problem(text):
    problems.append(text)
    say("problem: " + text)


# ---- processes ----

def processes():
    """pid, name, command line of every process but this one and those that have ended"""
    for pid in os.listdir("/proc"):
        if not pid.isdigit() or int(pid) in (1, os.getpid()):
            continue
        try:
            with open("/proc/%s/stat" % pid) as f:
                head, _, rest = f.read().rpartition(")")
            with open("/proc/%s/cmdline" % pid, "rb") as f:
                line = f.read().replace(b"\0", b" ").decode(errors="replace")
            if rest.split()[0] not in "ZX":
                yield int(pid), head.partition("(")[2], line
        except (OSError, IndexError):
            pass


def is_named(name, line, what):
    if what.startswith("atoll-"):
        return name == what
    return os.path.basename(line.split(" ", 1)[0]).startswith(what)


def kill_one(d, rnd):
    what = rnd.choice(VICTIMS)
    if what == "keeper":
        chaos.kill(d.keeper(), signal.SIGKILL, "keeper killed")
    elif what == "server":
        chaos.kill(d.seat()[1], signal.SIGKILL, "server killed")
    elif what == "supervisor":
        d.process.kill()
        d.process.wait()
        count("supervisor killed")
        d.start()
    else:
        found = [pid for pid, name, line in processes() if is_named(name, line, what)]
        if found:
            chaos.kill(rnd.choice(found), signal.SIGKILL, what + " killed")
    if d.process.poll() is not None:
        d.start()


# ---- clients ----

def ask(d, method, path, body=None):
    """status and document; (0, {}): the connection was cut"""
    try:
        status, doc = chaos.once(d, method, path, body, timeout=ANSWER_S)
    except chaos.Cut:
        count("cut")
        time.sleep(0.2)
        return 0, {}
    except TimeoutError:
        problem("%s %s: no answer within %d s" % (method, path, ANSWER_S))
        return 0, {}
    # A box that was killed during the request is named as such.
    if status == 500 and not re.search("ended|SIGKILL", doc.get("error", {}).get("message", "")):
        problem("%s %s: 500 %s" % (method, path, str(doc)[:200]))
    return status, doc


def create(d, rnd, snapshots):
    body = {"limits": {"mem": 128 << 20, "disk": 32 << 20}, "lifetime_ms": 3600000}
    if snapshots and rnd.random() < 0.3:
        body["snapshot"] = rnd.choice(snapshots)
    status, doc = ask(d, "POST", "/v1/boxes", body)
    count("created" if status == 201 else "not created")
    if status == 201:
        count("created in " + d.env["ATOLL_TIER"])
    if status not in (0, 201, 404, 409, 500, 503):
        say("not created: %s" % str(doc)[:200])
    if status == 201 and "snapshot" in body:
        count("restored")
    return doc.get("id") if status == 201 else None


def execute(d, rnd, box):
    """an answer is right, or it says that the box has ended"""
    n = rnd.randrange(1 << 30)
    status, doc = ask(d, "POST", "/v1/boxes/%s/execs" % box,
                      {"command": ["sh", "-c", "echo $((%d + 1)); echo %d >>f" % (n, n)], "timeout_ms": 60000})
    if status == 200 and doc.get("cause") == "exit" and doc.get("exit_code") == 0:
        if doc.get("stdout") != "%d\n" % (n + 1):
            problem("box %s: wrong output %r" % (box, doc.get("stdout")))
        count("executed")
    return status


def client(d, seed):
    rnd = random.Random(seed)
    boxes, snapshots = [], []
    while not stop.is_set():
        if not boxes or (len(boxes) < BOXES_MOST // CLIENTS and rnd.random() < 0.5):
            box = create(d, rnd, snapshots)
            if box:
                boxes.append(box)
            continue
        box = rnd.choice(boxes)
        what = rnd.choice(("run", "run", "run", "pause", "snapshot", "end"))
        status = 0
        if what == "run":
            status = execute(d, rnd, box)
        elif what == "pause":
            status, _ = ask(d, "POST", "/v1/boxes/%s/pause" % box, {})
            count("paused" if status == 200 else "not paused")
            ask(d, "POST", "/v1/boxes/%s/resume" % box, {})
        elif what == "snapshot":
            status, doc = ask(d, "POST", "/v1/snapshots", {"box": box})
            count("saved" if status == 201 else "not saved")
            if status == 201:
                snapshots.append(doc["id"])
        else:
            ask(d, "DELETE", "/v1/boxes/" + box)
            status = 404
        if status in (404, 410) or (status == 409 and rnd.random() < 0.3):
            boxes.remove(box)
    for box in boxes[1:]:  # one remains, for the next rounds
        ask(d, "DELETE", "/v1/boxes/" + box)


def round_of(d, tier, rnd, seconds):
    stop.clear()
    d.env["ATOLL_TIER"] = tier
    d.start()
    if not chaos.wait_for_server(d, 120):
        problem("the daemon does not start")
        return
    threads = [threading.Thread(target=client, args=(d, rnd.randrange(1 << 30))) for _ in range(CLIENTS)]
    for t in threads:
        t.start()
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        time.sleep(rnd.uniform(1, 4))
        kill_one(d, rnd)
    stop.set()
    chaos.wait_for_server(d, 120)
    for t in threads:
        t.join(2 * ANSWER_S)
        if t.is_alive():
            problem("tier %s: a client did not come to its end" % tier)
    leave(d)


def leave(d):
    """ends supervisor and server; keeper and boxes stay"""
    d.process.terminate()
    try:
        d.process.wait(120)
    except subprocess.TimeoutExpired:
        problem("the daemon did not end within 120 s")
        d.process.kill()
        d.process.wait()


# ---- what is there ----

def remaining(d):
    """what may not remain when all boxes are ended"""
    found = {}
    for pid, name, line in processes():
        if any(is_named(name, line, v) for v in VICTIMS) or "mkfs.erofs" in line:
            found["process %d %s" % (pid, name)] = 1
    with open("/proc/self/mountinfo") as f:
        for line in f:
            found["mount " + line.split()[4]] = 1
    for folder in (d.run, "/dev/shm", "/run"):
        for at, _, files in os.walk(folder):
            for name in files:
                found["file %s/%s" % (at, name)] = 1
    for at, dirs, _ in os.walk("/sys/fs/cgroup"):
        for name in dirs:
            if re.search(r"/atoll", at) and d.cgroup and d.cgroup in at:
                found["cgroup %s/%s" % (at, name)] = 1
    layers = d.state + "/layers"
    for name in os.listdir(layers) if os.path.isdir(layers) else ():
        if name.startswith(("new.", "drop.", "image.new.")):
            found["layer " + name] = 1
    return set(found)


def own_cgroup(pid):
    """the folder of the keeper's boxes: that of the keeper's own children is below it"""
    try:
        with open("/proc/%d/cgroup" % pid) as f:
            m = re.search(r"/(atoll-[0-9a-f]+)", f.read())
    except OSError:
        return None
    return m.group(1) if m else None


def end_all(d):
    """ends every box through the API, so that records and rows agree"""
    d.env["ATOLL_TIER"] = "container"
    d.start()
    if not chaos.wait_for_server(d, 120):
        problem("the daemon does not start")
        return
    until = time.monotonic() + 300
    while time.monotonic() < until:
        _, doc = ask(d, "GET", "/v1/boxes?limit=100")
        items = doc.get("items")
        if items == []:
            break
        for box in items or ():
            ask(d, "DELETE", "/v1/boxes/" + box["id"])
        time.sleep(0.5)
    else:
        problem("boxes remain: %s" % [b["id"] for b in items or ()])
    _, doc = ask(d, "GET", "/v1/snapshots?limit=100")
    for s in doc.get("items", ()):
        ask(d, "DELETE", "/v1/snapshots/" + s["id"])


def one_of_each(d):
    """every tier is used once; keeper and server have loaded what they load"""
    for tier in TIERS:
        d.env["ATOLL_TIER"] = tier
        d.start()
        if not chaos.wait_for_server(d, 120):
            problem("the daemon does not start")
            return
        box = create(d, random.Random(1), [])
        if not box:
            problem("no box of tier " + tier)
        else:
            d.cgroup = d.cgroup or next((own_cgroup(pid) for pid, name, _ in processes()
                                         if name in ("atoll-init", "atoll-mux") and own_cgroup(pid)), None)
            execute(d, random.Random(1), box)
            ask(d, "DELETE", "/v1/boxes/" + box)
        leave(d)


def memory():
    """anonymous memory of supervisor, server, keeper and their helpers, in KiB; boxes in a pool do not count"""
    total, of = 0, {}
    for pid, name, line in processes():
        if not os.path.basename(line.split(" ", 1)[0]).startswith("atoll"):
            continue
        try:
            with open("/proc/%d/status" % pid) as f:
                own = sum(int(x.split()[1]) for x in f if x.startswith("RssAnon:"))
        except OSError:
            continue
        total += own
        of[name] = of.get(name, 0) + own
    say("KiB of memory: " + ", ".join("%s %d" % x for x in sorted(of.items())))
    return total


def settled(d):
    """after one box of each tier: the memory; after the end of the keeper: what is there"""
    one_of_each(d)
    end_all(d)
    mem = memory()
    leave(d)
    chaos.kill(d.keeper(), signal.SIGTERM, "keepers ended")
    until = time.monotonic() + 60
    while time.monotonic() < until and any(x.startswith("process") for x in remaining(d)):
        time.sleep(0.5)
    return mem, remaining(d)


def made_in(tier):
    return chaos.counts.get("created in " + tier, 0)


def main():
    if os.geteuid() != 0:
        print("1..0 # SKIP not root")
        return 0
    work = tempfile.mkdtemp(prefix="soak.")
    os.chmod(work, 0o711)
    d = chaos.Daemon(work)
    d.cgroup = None
    rnd = random.Random(SEED)
    say("seed %d, %d s, tiers %s" % (SEED, SECONDS, " ".join(TIERS)))
    for tier in TIERS:  # server and egress need more memory once there are records: a step, not a growth
        round_of(d, tier, rnd, WARM_UP_S)
    mem_before, before = settled(d)
    say("start: %d KiB of memory" % mem_before)
    made = {tier: made_in(tier) for tier in TIERS}
    until, n = time.monotonic() + SECONDS, 0
    while time.monotonic() < until:
        tier = TIERS[n % len(TIERS)]
        n += 1
        say("round %d: %s, %d s to go" % (n, tier, until - time.monotonic()))
        round_of(d, tier, rnd, min(ROUND_S, max(5, until - time.monotonic())))
    for tier in TIERS[:n]:
        if made_in(tier) == made[tier]:
            problem("tier %s: no box was created" % tier)
    mem_after, after = settled(d)
    say("end: %d KiB of memory" % mem_after)
    say(", ".join("%s %d" % x for x in sorted(chaos.counts.items())))
    new = sorted(after - before)
    good = [chaos.verdict(1, "every request is answered, every result is right", problems),
            chaos.verdict(2, "no process, mount, file, cgroup and layer is left", new),
            chaos.verdict(3, "memory is that of the start", [] if abs(mem_after - mem_before) <= mem_before // 20
                          else ["%d KiB, at the start %d" % (mem_after, mem_before)])]
    print("1..3")
    if all(good):
        shutil.rmtree(work, ignore_errors=True)
    else:
        say("logs are in " + work)
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
