#!/usr/bin/env python3
"""checkpoint_kill.py - kill -9 of the processes of a checkpoint, of the keeper and of the server at random moments.

Started by tests/system/checkpoint_kill.sh, which has made the daemon. KILLS times: two files get a new value, a checkpoint (now
and then a rollback, a merge with a fork or a diff) is requested, and one process dies meanwhile. Every checkpoint that was
acknowledged must have all files with their values, a merge has changed the file of the fork or nothing, and a diff names what
differs; the program of the box runs on between rollbacks and merges; at the end no file, mount or process is left. Prints TAP.
ONLY=merge (or rollback, diff, checkpoint): all rounds after the first five are of this kind."""
import http.client
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time

HOST, PORT = os.environ["url"].split("//")[1].rsplit(":", 1)
KEY, RUN, STATE = os.environ["key"], os.environ["ATOLL_RUN"], os.environ["state"]
SUPERVISOR = int(os.environ["supervisor"])
KILLS = int(os.environ.get("KILLS", "40"))
SEED = int(os.environ.get("SEED", str(random.randrange(1 << 30))))
rng = random.Random(SEED)


def ask(method, path, body=None):
    """Status and document; (0, reason) without an answer."""
    try:
        c = http.client.HTTPConnection(HOST, int(PORT), timeout=60)
        c.request(method, path, None if body is None else json.dumps(body), {"X-API-Key": KEY, "Content-Type": "application/json"})
        r = c.getresponse()
        data = r.read()
        c.close()
        return r.status, data if path.find("/files?") > 0 else json.loads(data or b"null")
    except (OSError, http.client.HTTPException, ValueError) as e:
        return 0, repr(e)


def fail(text):
    print("not ok 1 - checkpoints survive kill -9 of every process\n# seed %d: %s" % (SEED, text))
    sys.exit(1)


def until(what, condition, seconds=60, explain=lambda: ""):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.05)
    fail("did not become true within %d s: %s %s" % (seconds, what, explain()))


def holds_lock(pid):
    try:
        return any(os.readlink("/proc/%d/fd/%s" % (pid, fd)) == RUN + "/keeper.lock" for fd in os.listdir("/proc/%d/fd" % pid))
    except OSError:
        return False


def processes():
    """pid -> generation below the keeper of this test, of it and of its descendants outside of boxes."""
    parents, out = {}, {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/stat" % name) as f:
                text = f.read()
            if "(atoll-keeper)" in text:
                parents[int(name)] = int(text.rpartition(")")[2].split()[1])
        except OSError:
            pass
    keepers = [pid for pid in parents if parents[pid] not in parents and holds_lock(pid)]
    for pid in parents:
        depth, up = 0, pid
        while up in parents and up not in keepers:
            depth, up = depth + 1, parents[up]
        if up in keepers:
            out[pid] = depth
    return out


def is_quiet(services):
    """One keeper with its services; a process of the pool; at most one worker of checkpoints, with its two processes."""
    depths = sorted(processes().values())
    return depths[: services + 1] == [0] + [1] * services and depths[services + 1 :] in ([], [2], [2, 3, 3], [2, 2, 3, 3])


def states(services):
    """Generation, state and last system call of each process."""
    out = ["%d services" % services]
    for pid, depth in sorted(processes().items(), key=lambda x: x[1]):
        try:
            with open("/proc/%d/stat" % pid) as f, open("/proc/%d/wchan" % pid) as w:
                out.append("%d:%s:%s" % (depth, f.read().rpartition(")")[2].split()[0], w.read()))
        except OSError:
            pass
    return " ".join(out)


def strangers():
    """Processes that have a file of checkpoints open, and are not below the keeper."""
    known, out = processes(), []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            links = [os.readlink("/proc/%s/fd/%s" % (name, fd)) for fd in os.listdir("/proc/%s/fd" % name)]
        except OSError:
            continue
        if int(name) not in known and any(link.startswith(STATE + "/checkpoints/") for link in links):
            out.append(name)
    return out


def server():
    found = subprocess.run(["pgrep", "-P", str(SUPERVISOR), "-x", "atoll-server"], capture_output=True, text=True).stdout.split()
    return [int(pid) for pid in found]


def victims():
    kind = rng.choice(["server", "keeper", "store", "worker", "worker", "inner", "inner", "inner"])
    if kind == "server":
        return server()
    depth = ["keeper", "store", "worker", "inner"].index(kind)
    return [pid for pid, d in processes().items() if d == depth]


def kill_one():
    for _ in range(200):  # a process of this kind may come and go
        found = victims()
        if found:
            try:
                os.kill(rng.choice(found), signal.SIGKILL)
                return
            except ProcessLookupError:
                pass


def run(box, command, background=False):
    body = {"command": command}
    if background:
        body["background"] = True
    return ask("POST", "/v1/boxes/%s/execs" % box, body)


def value_of(box):
    status, doc = run(box, "cat f g h")
    return doc["stdout"].split() if status in (200, 201) and doc.get("exit_code") == 0 else None


def count_starts(box):
    status, _ = run(box, "while :; do echo >>/tmp/count; sleep 0.02; done", True)
    return status in (200, 201, 202)


def count(box):
    status, doc = run(box, "wc -l </tmp/count")
    return int(doc["stdout"]) if status in (200, 201) and doc.get("exit_code") == 0 else None


def file_of(checkpoint, name):
    status, data = ask("GET", "/v1/checkpoints/%s/files?path=%s" % (checkpoint, name))
    return data if status == 200 else None


def kill_services(box):
    """Each service of the keeper is started again by the same keeper, and what needs it works at once."""
    keeper, services = [pid for pid, d in processes().items() if d == 0], [pid for pid, d in processes().items() if d == 1]
    for pid in services:
        os.kill(pid, signal.SIGKILL)
        id = until("a checkpoint without service %d" % pid, lambda: ask("POST", "/v1/boxes/%s/checkpoints" % box, {})[1].get("id"), 5)
        until("a file of it", lambda: file_of(id, "file.7") == b"7\n", 5)
    now = processes()
    until("the services", lambda: list(processes().values()).count(1) == len(services), 5)
    if [pid for pid, d in now.items() if d == 0] != keeper or set(services) & set(now):
        fail("keeper %s with services %s became %s" % (keeper, services, now))


class Round:
    """One request and what the box may have afterwards: lists of the values of f, g (its own) and h (of its fork)."""

    def __init__(self, number, box, fork, had_h, acknowledged):
        kinds = ["checkpoint"] * 11 + ["rollback"] * 3 + ["merge"] * 4 + ["diff"] * 2
        self.kind = os.environ.get("ONLY") if number > 5 and os.environ.get("ONLY") else rng.choice(kinds)
        if not acknowledged:
            self.kind = "checkpoint"
        self.number, self.before, self.after = number, [str(number)] * 2 + [had_h], None
        self.method, self.body = "POST", {}
        if self.kind == "checkpoint":
            self.path = "/v1/boxes/%s/checkpoints" % box
        elif self.kind == "merge":
            until("a change of the fork", lambda: run(fork, "echo %d >h" % number)[1].get("exit_code") == 0)
            self.path, self.body = "/v1/boxes/%s/merge" % box, {"from": fork, "on_conflict": "theirs"}
            self.after = [str(number)] * 3
        else:
            id, self.other = rng.choice(acknowledged)
            if self.kind == "rollback":
                self.path, self.body, self.after = "/v1/boxes/%s/rollback" % box, {"to": id}, self.other
            else:
                self.method, self.path, self.body = "GET", "/v1/checkpoints/%s/diff" % id, None
        self.ends_programs = self.after is not None
        self.status, self.doc = 0, None

    def send(self):
        self.status, self.doc = ask(self.method, self.path, self.body)

    def is_acknowledged(self):
        return self.status in (200, 201)

    def check(self, values):
        allowed = [self.after] if self.after and self.is_acknowledged() else [self.before] + ([self.after] if self.after else [])
        if values not in allowed:
            fail("round %d, %s: the files are %s, not %s (%d)" % (self.number, self.kind, values, allowed, self.status))
        if self.kind == "diff" and self.status == 200:
            named = {x["path"].rsplit("/", 1)[-1] for x in self.doc["items"]}
            differ = {name for name, a, b in zip("fgh", self.other, self.before) if a != b}
            if not differ <= named:
                fail("round %d: the diff names %s, and %s differ" % (self.number, sorted(named), sorted(differ)))


def main():
    box = until("a box", lambda: ask("POST", "/v1/boxes", {})[1].get("id"))
    acknowledged, services, kinds = [], list(processes().values()).count(1), {}
    run(box, "echo 0 >h; for i in $(seq 200); do echo $i >file.$i; done")
    fork = until("a fork", lambda: ask("POST", "/v1/boxes/%s/fork" % box, {})[1]["items"][0].get("box"))["id"]
    had_h = "0"
    kill_services(box)
    until("a program", lambda: count_starts(box))
    for i in range(1, KILLS + 1):
        until("new values", lambda: run(box, "echo %d >f; echo %d >g" % (i, i))[1].get("exit_code") == 0)
        now = Round(i, box, fork, had_h, acknowledged)
        request = threading.Thread(target=now.send)
        request.start()
        time.sleep(rng.random() * 0.008)
        kill_one()
        request.join()
        until("the box", lambda: ask("GET", "/v1/boxes/" + box)[0] == 200)
        if now.is_acknowledged():
            kinds[now.kind] = kinds.get(now.kind, 0) + 1
        if now.status == 201:
            acknowledged.append((now.doc["id"], now.before))
        values = until("the files", lambda: value_of(box))
        now.check(values)
        had_h = values[2]
        if now.ends_programs:
            until("a program", lambda: count_starts(box))
        before = until("the count", lambda: count(box) or None)
        until("the program to continue", lambda: (count(box) or 0) > before)
    for id, values in acknowledged:
        for name, value in zip("fgh", values):
            # The first request after the last kill can be the one that finds a process gone.
            data = until("file %s of checkpoint %s" % (name, id), lambda: file_of(id, name))
            if data.split() != [value.encode()]:
                fail("checkpoint %s has %r in %s, not %s" % (id, data[:200], name, value))
    print("# seed %d: %d kills, acknowledged: %s" % (SEED, KILLS, json.dumps(kinds, sort_keys=True)))
    if sum(kinds.values()) < KILLS / 5:
        fail("few requests were acknowledged: a box does not recover from a kill")
    for one in (box, fork):
        ask("DELETE", "/v1/boxes/" + one)
    for one in (box, fork):
        for x in until("the list", lambda: ask("GET", "/v1/boxes/%s/checkpoints?limit=1000" % one)[1])["items"]:
            ask("DELETE", "/v1/checkpoints/" + x["id"])
    files = lambda: [f for d in ("layers", "index") for f in os.listdir("%s/checkpoints/%s" % (STATE, d))]
    until("no files left", lambda: not files(), 90)
    until("only the keeper, its services and the worker that waits", lambda: is_quiet(services), 90, lambda: states(services))  # a worker that waits ends after a minute
    until("no process with files of checkpoints outside of them", lambda: not strangers(), 20)
    mounts = subprocess.run(["grep", "-c", STATE + "/checkpoints", "/proc/self/mountinfo"], capture_output=True, text=True).stdout.strip()
    if mounts != "0":
        fail("%s mounts are left" % mounts)
    print("ok 1 - checkpoints survive kill -9 of every process")


print("1..1")
main()
