#!/usr/bin/env python3
"""pause_kill.py - kill -9 of server, keeper, its services, workers and what they have started, at random moments of pauses to the
disk and of resumes.

Started by pause_kill.sh, which has made the daemon. After each kill the box runs, or is paused and can be resumed; its
program has lost nothing, has answered each line once, and exists once. Prints TAP."""
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
KILLS = int(os.environ.get("KILLS", "6"))
SEED = int(os.environ.get("SEED", str(random.randrange(1 << 30))))
rng = random.Random(SEED)
MARK = "pause-kill-%d" % os.getpid()
PROGRAM = """import sys, os, threading
n = 0
for line in sys.stdin:
    n += 1
    print(os.getpid(), n, line.strip(), flush=True)
"""


def ask(method, path, body=None):
    """Status and document; (0, reason) without an answer."""
    try:
        c = http.client.HTTPConnection(HOST, int(PORT), timeout=20)
        data = body if isinstance(body, bytes) else None if body is None else json.dumps(body)
        c.request(method, path, data, {"X-API-Key": KEY})
        r = c.getresponse()
        text = r.read()
        c.close()
        return r.status, json.loads(text or b"null")
    except (OSError, http.client.HTTPException, ValueError) as e:
        return 0, repr(e)


def fail(text):
    log = os.environ.get("work", "") + "/serve.log"
    for line in open(log).read().splitlines()[-25:] if os.path.exists(log) else []:
        print("# " + line)
    print("not ok 1 - boxes survive kill -9 of every process while they are paused to the disk and resumed\n# seed %d: %s" % (SEED, text))
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


def parents():
    out = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/stat" % name) as f:
                text = f.read()
            out[int(name)] = (text[text.index("(") + 1 : text.rindex(")")], int(text.rpartition(")")[2].split()[1]))
        except OSError:
            pass
    return out


def processes():
    """name -> pids, of the keeper of this test and its descendants outside of boxes."""
    all, out = parents(), {}
    keepers = [pid for pid in all if all[pid][0] == "atoll-keeper" and all.get(all[pid][1], ("", 0))[0] != "atoll-keeper" and holds_lock(pid)]
    for pid, (name, up) in all.items():
        at = pid
        while at in all and at not in keepers:
            at = all[at][1]
        if at in keepers and name.startswith("atoll-") and name != "atoll-init":
            out.setdefault("keeper" if pid in keepers else "service" if up in keepers else name, []).append(pid)
    return out


def server():
    found = subprocess.run(["pgrep", "-P", str(SUPERVISOR), "-x", "atoll-server"], capture_output=True, text=True).stdout.split()
    return [int(pid) for pid in found]


def kill_one():
    kind = rng.choice(["server", "server", "keeper", "service", "atoll-image", "atoll-image", "atoll-capture", "atoll-cipher"])
    end = time.monotonic() + 0.5
    while time.monotonic() < end:  # a process of this kind may come and go
        found = server() if kind == "server" else processes().get(kind)
        if found:
            try:
                os.kill(rng.choice(found), signal.SIGKILL)
                return kind
            except ProcessLookupError:
                pass
    return "nothing"


def output(box, run):
    status, doc = ask("GET", "/v1/boxes/%s/execs/%s/output" % (box, run))
    return doc if status == 200 else None


def lines(box, run):
    try:
        c = http.client.HTTPConnection(HOST, int(PORT), timeout=1)
        c.request("GET", "/v1/boxes/%s/execs/%s/output?raw=stdout" % (box, run), None, {"X-API-Key": KEY})
        r = c.getresponse()
        text = b""
        try:
            while r.status == 200:
                part = r.read1(65536)
                if not part:
                    break
                text += part
        except OSError:
            pass
        c.close()
        return text.decode().splitlines()
    except (OSError, http.client.HTTPException):
        return []


def state(box):
    status, doc = ask("GET", "/v1/boxes/" + box)
    if status in (404, 410):
        fail("the box has ended: %s" % doc)
    return doc["state"] if status == 200 else None


def stuck():
    """System calls of the processes of an image."""
    out = []
    for name, pids in processes().items():
        for pid in pids if name in ("atoll-image", "atoll-capture") else []:
            try:
                out.append((name, pid, open("/proc/%d/wchan" % pid).read(), open("/proc/%d/syscall" % pid).read().split()[:3]))
            except OSError:
                pass
    return out


def copies():
    return len(subprocess.run(["pgrep", "-fx", "python3 -uc .*# " + MARK], capture_output=True, text=True).stdout.split())


def main():
    box = until("a box", lambda: ask("POST", "/v1/boxes", {"lifetime_ms": 3600000})[1].get("id"))
    command = ["python3", "-uc", PROGRAM.replace("\n", "\n") + "# " + MARK]
    run = until("a program", lambda: ask("POST", "/v1/boxes/%s/execs" % box, {"command": command, "background": True, "open_stdin": True})[1].get("id"))
    done, seen = {}, {}
    for i in range(1, KILLS + 1):
        answer = []
        what = "pause" if i % 3 else "resume"
        if what == "resume":
            tried = []
            until("a pause", lambda: tried.append((round(time.time() % 1000, 1), ask("POST", "/v1/boxes/%s/pause" % box, {"to": "disk"}))) or tried[-1][1][0] == 200, 20, lambda: (stuck(), tried, i, seen, ask("POST", "/v1/boxes/%s/pause" % box, {"to": "disk"}), processes(), ask("GET", "/v1/boxes/%s/execs" % box)))
        request = threading.Thread(target=lambda: answer.append(ask("POST", "/v1/boxes/%s/%s" % (box, what), {"to": "disk"} if what == "pause" else {})))
        request.start()
        time.sleep(rng.random() * 0.25)
        killed = kill_one()
        request.join()
        now = until("a state after %s (%s killed, %s)" % (what, killed, answer), lambda: state(box) in ("running", "paused") and state(box))
        done[what, answer[0][0] == 200] = done.get((what, answer[0][0] == 200), 0) + 1
        seen[killed] = seen.get(killed, 0) + 1
        if what == "pause" and answer[0][0] == 200 and now != "paused":
            fail("round %d: an acknowledged pause is %s after a kill of %s" % (i, now, killed))
        last = []
        until("to run again (%s, %s killed, %s): %s" % (what, killed, answer, last), lambda: state(box) == "running" or last.append(ask("POST", "/v1/boxes/%s/resume" % box)) or last.__delitem__(slice(0, -1)))
        until("a line is accepted", lambda: ask("POST", "/v1/boxes/%s/execs/%s/stdin" % (box, run), b"line%d\n" % i)[0] == 200, 8, lambda: (i, what, killed, answer[0][0], ask("GET", "/v1/boxes/%s/execs/%s" % (box, run)), ask("POST", "/v1/boxes/%s/execs/%s/stdin" % (box, run), b"x\n")))
        got = until("an answer to line %d after %s, %s killed" % (i, what, killed), lambda: [x for x in lines(box, run) if x.endswith(" line%d" % i)])
        if [x.split()[1] for x in got] != [str(i)]:
            fail("round %d: the program answered %s" % (i, got))
    until("one program, there are %d" % copies(), lambda: copies() == 1)
    all = [x.split()[1] for x in lines(box, run)]
    if all != [str(i) for i in range(1, KILLS + 1)]:
        fail("the output is %s" % all)
    print("# seed %d: %s; killed: %s" % (SEED, ", ".join("%s %s %d" % (k[0], "done" if k[1] else "failed", n) for k, n in sorted(done.items())), seen))
    ask("DELETE", "/v1/boxes/" + box)
    for x in until("the list", lambda: ask("GET", "/v1/boxes/%s/checkpoints?limit=1000" % box)[1])["items"]:
        ask("DELETE", "/v1/checkpoints/" + x["id"])
    files = lambda: [f for d in ("layers", "index", "images") if os.path.isdir("%s/checkpoints/%s" % (STATE, d)) for f in os.listdir("%s/checkpoints/%s" % (STATE, d))]
    until("no files left: %s" % files(), lambda: not files(), 90)
    print("ok 1 - boxes survive kill -9 of every process while they are paused to the disk and resumed")


print("1..1")
main()
