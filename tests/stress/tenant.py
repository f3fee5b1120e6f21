#!/usr/bin/env python3
"""tenant.py - one tenant with an editor's key attacks the machine while another team sends GET /v1/who.

Started by tenant.sh, which has made the daemon and the keys. For each attack, in turn: the latency without it, the
attack for SECONDS, the latency meanwhile. Holds if every answer to the other team came and was 200, the 99th
percentile is at most RATIO times that without the attack, the host could fork all the time and its disk did not fill.
Prints TAP. All of it stays below the daemon that tenant.sh started; nothing else of the host is touched."""
import http.client
import json
import os
import resource
import socket
import subprocess
import sys
import threading
import time

URL = os.environ["url"].split("//")[1]
HOST, PORT = URL.rsplit(":", 1)
KEY, OTHER = os.environ["TENANT_KEY"], os.environ["OTHER_KEY"]
STATE = os.environ["state"]
SECONDS = float(os.environ.get("TENANT_SECONDS", "15"))
RATIO = float(os.environ.get("TENANT_RATIO", "10"))  # 0: latency is printed and not checked
FLOOR_MS = float(os.environ.get("TENANT_FLOOR_MS", "5"))  # a 99th percentile below this counts as this
FORK_S, DISK_LEFT = 5.0, 1 << 30
ONLY = sys.argv[1:]

stop = threading.Event()


class Client:
    def __init__(self, key):
        self.key, self.c = key, None

    def ask(self, method, path, body=None, timeout=30, headers=None):
        """Status and bytes; (0, reason) without an answer."""
        h = {"X-API-Key": self.key, "Content-Type": "application/json"} if self.key else {}
        h.update(headers or {})
        data = json.dumps(body).encode() if isinstance(body, (dict, list)) else body
        try:
            if not self.c:
                self.c = http.client.HTTPConnection(HOST, int(PORT), timeout=timeout)
            self.c.request(method, path, data, h)
            r = self.c.getresponse()
            return r.status, r.read()
        except (OSError, http.client.HTTPException) as e:
            self.close()
            return 0, repr(e).encode()

    def close(self):
        if self.c:
            self.c.close()
        self.c = None


def box(c, body=None):
    code, data = c.ask("POST", "/v1/boxes", dict({"lifetime_ms": 600000}, **(body or {})))
    return json.loads(data)["id"] if code == 201 else None


def background(c, b, command):
    return c.ask("POST", "/v1/boxes/%s/execs" % b, {"command": command, "background": True})


def clean():
    """All boxes and volumes of the tenant; they are those of its key only."""
    c = Client(KEY)
    for path in ("/v1/boxes", "/v1/volumes", "/v1/snapshots", "/v1/batch"):
        for _ in range(50):
            code, data = c.ask("GET", path + "?limit=100")
            items = json.loads(data).get("items", []) if code == 200 else []
            if not items:
                break
            for x in items:
                c.ask("DELETE", "%s/%s" % (path, x["id"]))
    c.close()


# ---- measurement ----

def watch():
    """The other team, in a separate process so that the attack takes no time of this interpreter: sends requests until
    its input ends, on a connection that it reopens when it is lost. Prints its measurements."""
    seen = {"times": [], "bad": [], "forks": [], "disk": 1 << 62}
    done = threading.Event()

    def fork():
        while not done.is_set():
            t = time.perf_counter()
            try:
                subprocess.run(["/bin/true"], check=True, timeout=30)
                seen["forks"].append(time.perf_counter() - t)
            except (OSError, subprocess.SubprocessError) as e:
                seen["bad"].append(("fork", repr(e)))
            v = os.statvfs(STATE)
            seen["disk"] = min(seen["disk"], v.f_bavail * v.f_frsize)
            time.sleep(0.25)

    def ask():
        c = Client(OTHER)
        while not done.is_set():
            t = time.perf_counter()
            code, data = c.ask("GET", "/v1/who", timeout=20)
            if not code:  # the server may have closed an idle connection
                code, data = c.ask("GET", "/v1/who", timeout=20)
            seen["times"].append((time.perf_counter() - t) * 1000)
            if code != 200:
                seen["bad"].append((code, data[:120].decode(errors="replace")))
            time.sleep(0.003)
        c.close()

    threads = [threading.Thread(target=t, daemon=True) for t in (ask, fork)]
    for t in threads:
        t.start()
    sys.stdin.read()
    done.set()
    for t in threads:
        t.join(60)
    json.dump(seen, sys.stdout)


class Watch:
    def __init__(self):
        self.p = subprocess.Popen([sys.executable, __file__, "--watch"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def end(self):
        seen = json.loads(self.p.communicate(timeout=120)[0])
        self.times, self.bad, self.forks, self.disk = (seen[k] for k in ("times", "bad", "forks", "disk"))
        return self

    def p99(self):
        v = sorted(self.times)
        return v[min(len(v) - 1, int(len(v) * 0.99))] if v else float("inf")


def measure(seconds):
    w = Watch()
    time.sleep(seconds)
    return w.end()


# ---- attacks: each runs until stop is set ----

def at_once(n, work):
    threads = [threading.Thread(target=work, args=(i,), daemon=True) for i in range(n)]
    for t in threads:
        t.start()
    stop.wait()
    for t in threads:
        t.join(60)


def again_and_again(n, ask):
    """ask(client, i) on n connections."""
    def work(i):
        c = Client(KEY)
        while not stop.is_set():
            ask(c, i)
        c.close()
    at_once(n, work)


def boxes_with(n, command, body=None):
    c = Client(KEY)
    for _ in range(n):
        if stop.is_set():
            break
        b = box(c, body)
        if b:
            background(c, b, command)
    c.close()
    stop.wait()


def huge_boxes():
    def ask(c, i):
        for body in ({"limits": {"mem": 1 << 40, "pids": 1000000, "cpu_milli": 64000}},
                     {"limits": {"mem": 1 << 40, "disk": 1 << 39, "files": 100000000}}):
            code, data = c.ask("POST", "/v1/boxes", body)
            assert code in (400, 429), data
    again_and_again(4, ask)


def memory_of_many_boxes():
    boxes_with(24, "python3 -c 'x = []\nwhile 1: x.append(bytearray(1 << 22))' ; sleep 600", {"limits": {"mem": "1G"}})


def fork_bombs():
    boxes_with(48, "python3 -c '\nimport os, time\nwhile 1:\n  try:\n    if os.fork() == 0: time.sleep(600)\n"
                   "  except OSError: time.sleep(0.01)'")


def miners():
    boxes_with(32, "for i in 1 2 3 4; do (while :; do :; done) & done; wait")


def disk_fill():
    boxes_with(12, "while :; do dd if=/dev/zero of=/home/user/$RANDOM bs=1M count=4096 2>/dev/null || sleep 1; done",
               {"limits": {"disk": "8G"}})


def volumes():
    def ask(c, i):
        code, _ = c.ask("POST", "/v1/volumes", {"name": "v%d-%d" % (i, time.monotonic_ns()), "size": 1 << 36})
        time.sleep(0 if code == 201 else 0.05)
    again_and_again(2, ask)


def json_floods():
    flat = json.dumps({"command": "true", "env": {"k%d" % i: "" for i in range(300000)}}).encode()[:3500000]
    deep = b'{"command":' + b"[" * 100000 + b"]" * 100000 + b"}"
    wide = b'{"files":{' + b",".join(b'"f%d":""' % i for i in range(200000)) + b"}}"
    again_and_again(4, lambda c, i: c.ask("POST", "/v1/run", (flat, deep, wide)[i % 3]))


def connection_floods():
    held = []
    while not stop.is_set():
        try:
            s = socket.create_connection((HOST, int(PORT)), 5)
            if len(held) % 2:
                s.send(b"GET /v1/who HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
            held.append(s)
        except OSError:
            time.sleep(0.05)
        if len(held) > 9000:
            for s in held[:1000]:
                s.close()
            del held[:1000]
    for s in held:
        s.close()


def history_growth():
    body = {"command": "true", "stdin": "x" * 44000}
    again_and_again(6, lambda c, i: c.ask("POST", "/v1/run", body))


def request_floods():
    paths = ("/v1/boxes?limit=100", "/v1/runs?limit=100", "/openapi.json", "/files?signature=x&path=/a", "/v1/languages")
    again_and_again(8, lambda c, i: c.ask("GET", paths[i % len(paths)]))


def guessed_keys():
    def work(i):
        n = 0
        while not stop.is_set():
            c = Client("e2b_%040x" % n)
            c.ask("GET", "/v1/boxes")
            c.close()
            n += 1
    at_once(8, work)


def output_floods():
    boxes_with(16, "while :; do seq 1000000; done")


def readers_that_do_not_read():
    c = Client(KEY)
    b, held = box(c), []
    while b and not stop.is_set() and len(held) < 200:
        code, data = background(c, b, "yes")
        if code != 201:
            break
        s = socket.create_connection((HOST, int(PORT)), 5)
        s.send(b"GET /v1/boxes/%s/execs/%s/output HTTP/1.1\r\nHost: localhost\r\nX-API-Key: %s\r\n\r\n" %
               (b.encode(), json.loads(data)["id"].encode(), KEY.encode()))
        held.append(s)
    stop.wait()
    for s in held:
        s.close()


def batches():
    items = b"".join(b'{"command":"seq 10000; (while :; do :; done) & sleep 1"}\n' for _ in range(2000))
    again_and_again(2, lambda c, i: c.ask("POST", "/v1/batch?detach=1", items,
                                          headers={"Content-Type": "application/x-ndjson"}))


def snapshots():
    c = Client(KEY)
    b = box(c)
    c.ask("POST", "/v1/boxes/%s/execs" % b, {"command": "head -c 100M /dev/urandom >x"})
    while not stop.is_set():
        c.ask("POST", "/v1/snapshots", {"box": b})


ATTACKS = [huge_boxes, memory_of_many_boxes, fork_bombs, miners, disk_fill, volumes, json_floods, connection_floods,
           history_growth, request_floods, guessed_keys, output_floods, readers_that_do_not_read, batches, snapshots]


def one(number, attack):
    name = attack.__name__.replace("_", " ")
    quiet = measure(max(1.0, SECONDS / 5))
    stop.clear()
    thread = threading.Thread(target=attack, daemon=True)
    loud = Watch()
    thread.start()
    time.sleep(SECONDS)
    loud.end()
    stop.set()
    thread.join(90)
    clean()
    base = max(quiet.p99(), FLOOR_MS)
    wrong = ["%s: %s" % tuple(x) for x in loud.bad[:3]]
    if max(loud.forks, default=float("inf")) > FORK_S:
        wrong.append("a fork took %.1f s" % max(loud.forks, default=float("inf")))
    if loud.disk < DISK_LEFT:
        wrong.append("only %d MB of the disk were left" % (loud.disk >> 20))
    if RATIO and loud.p99() > RATIO * base:
        wrong.append("p99 %.1f ms is more than %g times %.1f ms" % (loud.p99(), RATIO, base))
    print("# %-26s p99 %7.1f ms, without %6.1f; %5d answers, slowest fork %.2f s" %
          (name, loud.p99(), quiet.p99(), len(loud.times), max(loud.forks, default=-1)))
    for x in wrong:
        print("# " + x)
    print("%sok %d - %s leave the host and the other team alone" % ("not " if wrong else "", number, name), flush=True)
    return not wrong


def main():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 20000), hard))
    attacks = [a for a in ATTACKS if not ONLY or any(w in a.__name__ for w in ONLY)]
    print("1..%d" % len(attacks), flush=True)
    good = [one(i + 1, a) for i, a in enumerate(attacks)]
    sys.exit(0 if all(good) else 1)


if ONLY == ["--watch"]:
    watch()
else:
    main()
