#!/usr/bin/python3
"""chaos.py - clients work while the processes of a daemon are killed, upgraded and reloaded.

Clients make boxes, run programs, read streams with a checksum and resume them, run cells in contexts that
keep a counter, and repeat requests with an Idempotency-Key. Every 1 to 3 seconds the server, the keeper, the
supervisor or egress is killed, the binary is executed anew, or the configuration is read again.

    ATOLL=build/atoll tests/stress/chaos.py        TAP; needs root and python3

CHAOS_SECONDS (600), CHAOS_CLIENTS (12), CHAOS_SEED. At the end: 0 boxes lost, 0 wrong checksums, 0 requests
without an answer, 0 contexts that do not answer, 0 keys executed twice. A request that is cut is repeated, as
a client would; a finding is an accepted request whose result is missing."""

import hashlib
import http.client
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

ATOLL = os.environ.get("ATOLL", "build/atoll")
SECONDS = int(os.environ.get("CHAOS_SECONDS", "600"))
CLIENTS = int(os.environ.get("CHAOS_CLIENTS", "12"))
SEED = int(os.environ.get("CHAOS_SEED", "0")) or random.SystemRandom().randrange(1 << 32)
ANSWER_S = 60   # a request without an answer by then hangs
PROMISE_S = 180  # the limit for a result of an accepted request, with all repetitions

lock = threading.Lock()
problems = {name: [] for name in ("lost", "checksum", "hanging", "context", "twice")}
counts = {}
stop = threading.Event()


def say(text):
    print("# " + text, flush=True)


def count(what, n=1):
    with lock:
        counts[what] = counts.get(what, 0) + n


def problem(kind, text):
    with lock:
        problems[kind].append(text)
    say("%s: %s" % (kind, text))


class Cut(Exception):
    """the connection ended before the answer was complete"""


class Daemon:
    def __init__(self, work):
        self.work = work
        self.run = work + "/run"
        self.state = work + "/state"
        self.sock = self.run + "/atoll.sock"
        self.env = dict(os.environ, ATOLL_RUN=self.run, ATOLL_EGRESS_ALLOW="example.org",
                        ATOLL_DEFAULT_LIFETIME="2h", ATOLL_DRAIN="5s", ATOLL_QUOTA_BOXES="1000")
        self.process = None
        self.log = open(work + "/serve.log", "ab")

    def start(self):
        self.process = subprocess.Popen([ATOLL, "serve", "--listen", "127.0.0.1:0", "--state", self.state],
                                        env=self.env, stdout=self.log, stderr=self.log)

    def seat(self):
        """pid of the supervisor and of the server that serves; 0: none"""
        try:
            with open(self.run + "/serve.pid") as f:
                words = f.read().split()
            return int(words[0]), int(words[2])
        except (OSError, IndexError, ValueError):
            return 0, 0

    def children(self, name):
        found = []
        for pid in os.listdir("/proc"):
            if not pid.isdigit():
                continue
            try:
                with open("/proc/%s/stat" % pid) as f:
                    head, _, rest = f.read().rpartition(")")
                if int(rest.split()[1]) == self.process.pid and head.partition("(")[2] == name:
                    found.append(int(pid))
            except (OSError, IndexError):
                pass
        return found

    def keeper(self):
        s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            s.connect(self.run + "/keeper.sock")
            return int.from_bytes(s.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)[:4], "little")
        except OSError:
            return 0
        finally:
            s.close()


class Connection(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def once(d, method, path, body=None, headers=None, timeout=ANSWER_S):
    """status and document; Cut without a complete answer, TimeoutError when it hangs"""
    c = Connection(d.sock, timeout)
    try:
        c.request(method, path, json.dumps(body) if body is not None else None,
                  dict(headers or {}, **{"Content-Type": "application/json"}))
        r = c.getresponse()
        text = r.read()
        return r.status, json.loads(text) if text else {}
    except (socket.timeout, TimeoutError):
        raise TimeoutError("%s %s" % (method, path))
    except (OSError, http.client.HTTPException, ValueError) as e:
        raise Cut(str(e))
    finally:
        c.close()


def ask(d, method, path, body=None, headers=None, timeout=ANSWER_S):
    """the same, repeated until there is an answer that is not 'later'; None: it hangs"""
    until = time.monotonic() + PROMISE_S
    last = "every connection was cut"
    while time.monotonic() < until:
        try:
            status, doc = once(d, method, path, body, headers, timeout)
        except Cut:
            count("cut")
            time.sleep(0.1)
            continue
        except TimeoutError as e:
            problem("hanging", "%s: no answer within %d s" % (e, timeout))
            return None
        if status in (409, 429, 502, 503, 507) and doc.get("error", {}).get("code") != "not_found":
            last = "the last answer: %d %s" % (status, str(doc)[:300])
            time.sleep(0.2)
            continue
        return status, doc
    problem("hanging", "%s %s: refused for %d s; %s" % (method, path, PROMISE_S, last))
    return None


def make_box(d, rnd, made):
    """with an Idempotency-Key, so that a request that was cut may be repeated; the id, or None"""
    key = "%x" % rnd.getrandbits(128)
    got = ask(d, "POST", "/v1/boxes", {}, {"Idempotency-Key": key})
    if not got:
        return None
    status, doc = got
    if status != 201:
        problem("lost", "POST /v1/boxes: %d %s" % (status, doc))
        return None
    again = ask(d, "POST", "/v1/boxes", {}, {"Idempotency-Key": key})
    if again and again[1].get("id") != doc["id"]:
        problem("twice", "key %s made %s and %s" % (key, doc["id"], again[1].get("id", again)))
    count("boxes")
    with lock:
        made.add(doc["id"])
    return doc["id"]


def check_run(d, rnd, box):
    """a program with a known result; repeated if the answer was cut, because then its state is unknown"""
    n = rnd.randrange(1 << 30)
    got = ask(d, "POST", "/v1/boxes/%s/execs" % box, {"command": "echo $((%d + 1))" % n})
    if got and (got[0] != 200 or got[1].get("stdout") != "%d\n" % (n + 1)):
        problem("lost" if got[0] == 404 else "checksum", "run in %s: %s" % (box, str(got)[:300]))
    count("runs")


STREAM = """import hashlib, os, sys, time
h = hashlib.sha256()
for i in range(%d):
    b = os.urandom(3000).hex().encode() + b"\\n"
    h.update(b)
    sys.stdout.buffer.write(b)
    sys.stdout.buffer.flush()
    time.sleep(0.01)
print("SUM " + h.hexdigest(), flush=True)"""


def check_stream(d, rnd, box):
    got = ask(d, "POST", "/v1/boxes/%s/execs" % box,
              {"command": ["python3", "-c", STREAM % rnd.randrange(50, 700)], "background": True})
    if not got or got[0] not in (200, 201, 202):
        if got:
            problem("lost" if got[0] == 404 else "checksum", "start of a stream in %s: %s" % (box, str(got)[:300]))
        return
    run = got[1].get("exec") or got[1].get("id")
    have, total, until = hashlib.sha256(), 0, time.monotonic() + PROMISE_S
    tail = b""
    while time.monotonic() < until:
        c = Connection(d.sock, ANSWER_S)
        try:
            c.request("GET", "/v1/boxes/%s/execs/%s/output?raw=stdout&stdout=%d" % (box, run, total))
            r = c.getresponse()
            if r.status != 200:
                text = r.read()
                if r.status == 404:
                    problem("lost", "stream %s of %s: %s" % (run, box, text[:200]))
                    return
                raise OSError("status %d" % r.status)
            while True:
                piece = r.read1(65536)
                if not piece:
                    break
                total += len(piece)
                tail += piece
                whole, _, rest = tail.rpartition(b"\n")
                for line in whole.split(b"\n") if whole else []:
                    if line.startswith(b"SUM "):
                        if line[4:].decode() != have.hexdigest():
                            problem("checksum", "stream %s of %s differs after %d bytes" % (run, box, total))
                        count("streams")
                        count("stream bytes", total)
                        return
                    have.update(line + b"\n")
                tail = rest if whole or tail.startswith(b"\n") else tail
        except (socket.timeout, TimeoutError):
            problem("hanging", "stream %s of %s makes no progress after %d bytes" % (run, box, total))
            return
        except (OSError, http.client.HTTPException):
            pass
        finally:
            c.close()
        count("resumes")
        time.sleep(0.1)
    problem("hanging", "stream %s of %s did not end, %d bytes" % (run, box, total))


def check_cells(d, rnd, box):
    """a counter in a context: each cell is run once, or refused; one that was cut, at most once"""
    path = "/v1/boxes/%s/contexts" % box
    # A request that was cut may have made one. A box may have 16, so those of earlier calls are removed.
    for c in (ask(d, "GET", path) or (0, {}))[1].get("items", []):
        ask(d, "DELETE", path + "/" + c["id"])
    got = ask(d, "POST", path, {"language": "python"})
    if not got or got[0] != 201:
        if got:
            problem("lost" if got[0] == 404 else "context", "context in %s: %s" % (box, str(got)[:300]))
        return
    path += "/" + got[1]["id"]
    least = most = 0
    for i in range(rnd.randrange(3, 12)):
        code = "n = globals().get('n', 0) + 1; print(n)" + ("\n# " + "x" * rnd.randrange(1000000) if rnd.random() < 0.2 else "")
        most += 1
        try:
            status, doc = once(d, "POST", path + "/cells", {"code": code})
        except Cut:
            count("cells cut")
            time.sleep(0.2)
            continue
        except TimeoutError:
            problem("hanging", "cell of %s: no answer" % path)
            return
        if status in (503, 502, 429):
            most -= 1
            time.sleep(0.2)
        elif status == 200 and doc.get("status") == "ok":
            least += 1
            n = int(doc["stdout"].split()[-1])
            if not least <= n <= most:
                problem("context", "%s counted %d, from %d to %d were possible" % (path, n, least, most))
                return
            least = n
            count("cells")
        elif status == 200 and doc.get("status") == "dropped":
            most -= 1
            count("cells refused")
        else:
            problem("lost" if status == 404 else "context", "cell of %s: %d %s" % (path, status, str(doc)[:300]))
            return
    # In every case the daemon answers.
    got = ask(d, "POST", path + "/cells", {"code": "print(n)"})
    if got and (got[0] != 200 or got[1].get("status") not in ("ok", "error")):
        problem("context", "%s answers no more: %s" % (path, str(got)[:300]))


def client(d, seed, made):
    rnd = random.Random(seed)
    mine = []
    while not stop.is_set():
        try:
            if len(mine) < 4:
                box = make_box(d, rnd, made)
                if box:
                    mine.append(box)
                continue
            rnd.choice((check_run, check_run, check_stream, check_cells))(d, rnd, rnd.choice(mine))
        except Exception as e:  # a client of ours that breaks is a finding, too
            problem("hanging", "client: %r" % e)


def kill(pid, signo, name):
    if pid <= 1:
        return
    try:
        os.kill(pid, signo)
        count(name)
    except OSError:
        pass


def trouble(d, rnd):
    what = rnd.choice(("server", "server", "server", "keeper", "keeper", "supervisor", "egress", "upgrade",
                       "upgrade keeper", "reload", "reload server"))
    supervisor, server = d.seat()
    if what.startswith("upgrade"):
        kill(supervisor, signal.SIGUSR2, "upgrades")
    if what.startswith("reload"):
        kill(supervisor, signal.SIGHUP, "reloads")
    if what.endswith("server"):
        time.sleep(rnd.random() * 0.3 if "reload" in what else 0)
        kill(d.seat()[1], signal.SIGKILL, "servers killed")
    if what.endswith("keeper"):
        time.sleep(rnd.random() * 0.3 if "upgrade" in what else 0)
        kill(d.keeper(), signal.SIGKILL, "keepers killed")
    if what == "egress":
        for pid in d.children("atoll-egress")[:1]:
            kill(pid, signal.SIGKILL, "egress killed")
    if what == "supervisor":
        d.process.kill()
        d.process.wait()
        count("supervisors killed")
        d.start()
    if d.process.poll() is not None:
        say("the supervisor left with %s; starting another" % d.process.returncode)
        d.start()


def serves(d):
    try:
        return once(d, "GET", "/healthz", timeout=5)[0] == 200
    except (Cut, TimeoutError):
        return False


def wait_for_server(d, seconds=60):
    until = time.monotonic() + seconds
    while not serves(d):
        if time.monotonic() > until:
            return False
        if d.process.poll() is not None:
            d.start()
        time.sleep(0.1)
    return True


def verdict(number, name, found):
    for p in found[:10]:
        say(p)
    print("%sok %d - %s" % ("not " if found else "", number, name), flush=True)
    return not found


def finish(d, made):
    for box in made:
        try:
            once(d, "DELETE", "/v1/boxes/" + box, timeout=20)
        except (Cut, TimeoutError):
            pass
    subprocess.run([ATOLL, "kill", "--local", "--all"], env=d.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    keeper = d.keeper()
    d.process.terminate()
    try:
        d.process.wait(30)
    except subprocess.TimeoutExpired:
        d.process.kill()
    if keeper > 1:
        try:
            os.kill(keeper, signal.SIGTERM)
        except OSError:
            pass


def main():
    if os.geteuid() != 0:
        print("1..0 # SKIP not root")
        return 0
    work = tempfile.mkdtemp(prefix="chaos.")
    os.chmod(work, 0o711)
    say("seed %d, %d s, %d clients" % (SEED, SECONDS, CLIENTS))
    rnd = random.Random(SEED)
    d = Daemon(work)
    d.start()
    if not wait_for_server(d):
        print("Bail out! the daemon does not start: " + open(work + "/serve.log").read()[-500:])
        return 1
    made = set()
    clients = [threading.Thread(target=client, args=(d, SEED + i, made)) for i in range(CLIENTS)]
    for c in clients:
        c.start()
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        time.sleep(rnd.uniform(1, 3))
        trouble(d, rnd)
    stop.set()
    say("calm: waiting for the clients")
    wait_for_server(d)
    for c in clients:
        c.join(2 * PROMISE_S)
        if c.is_alive():
            problem("hanging", "a client did not come to its end")
    for box in sorted(made):
        got = ask(d, "GET", "/v1/boxes/" + box)
        if not got or got[1].get("state") != "running":
            problem("lost", "box %s: %s" % (box, str(got)[:300]))
    say(", ".join("%s %d" % x for x in sorted(counts.items())))
    finish(d, made)
    names = (("lost", "no box and no program is lost"), ("checksum", "every stream and result is right"),
             ("hanging", "every request is answered"), ("context", "every cell is run once or refused"),
             ("twice", "no idempotency key is executed twice"))
    good = [verdict(i + 1, name, problems[kind]) for i, (kind, name) in enumerate(names)]
    print("1..%d" % len(names))
    if all(good):
        shutil.rmtree(work, ignore_errors=True)
    else:
        say("logs are in " + work)
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
