#!/usr/bin/python3
"""serve_test.py - the processes of a daemon are killed at any time, and nothing is lost.

Boxes by the hundred, a program in each that counts aloud, a reader for each that resumes at the
byte it has. Meanwhile server, keeper and supervisor are killed at random, the configuration is read
again and the binary is executed anew. Afterwards every byte of every stream must have come exactly
once, every program must have its record, every box must still be there; and once all are deleted
nothing may be left of them.

    ATOLL=b/atoll tests/stress/serve_test.py      TAP; needs root, python3 and nothing else

SERVE_BOXES (300), SERVE_KILLS (20), SERVE_SEED set the size; SERVE_ROUNDS (1) repeats it against one
state folder, or SERVE_SECONDS until that much time has passed. tests/soak.sh does."""

import asyncio
import base64
import collections
import hashlib
import json
import os
import random
import shutil
import signal
import socket
import struct
import sys
import tempfile
import time

ATOLL = os.environ.get("ATOLL", "build/atoll")
BOXES = int(os.environ.get("SERVE_BOXES", "300"))
KILLS = int(os.environ.get("SERVE_KILLS", "20"))
SEED = int(os.environ.get("SERVE_SEED", "0")) or random.SystemRandom().randrange(1 << 32)
ROUNDS = int(os.environ.get("SERVE_ROUNDS", "1"))
SECONDS = int(os.environ.get("SERVE_SECONDS", "0"))
AT_ONCE = 16  # simultaneous requests that create and delete boxes
LINES_PER_S = 8
LATE_S = 5.0  # how late a box may end while processes are killed ...
KILL_S = 1.0  # ... and how much more for each kill in this time (plus the time without a free processor)
SERVER_MIB, KEEPER_MIB = 64, 32  # the most memory that they may use
CALM_MIB = 4  # growth after boxes were created and deleted: SQLite's page cache (2 MiB), and a margin
PATIENCE_S = 60  # a reader without progress for that long is stuck

rnd = random.Random(SEED)
failed = False
count = 0


def say(text):
    print("# " + text, flush=True)


def is_sanitised():
    """with a sanitizer freed memory is kept in quarantine, and sizes mean nothing"""
    with open(ATOLL, "rb") as f:
        return b"__asan_init" in f.read()


def memory_verdict(name, problems):
    global count
    if not is_sanitised():
        verdict(name, problems)
        return
    count += 1
    print("ok %d - %s # SKIP a sanitized build retains freed memory" % (count, name), flush=True)


def verdict(name, problems):
    global failed, count
    count += 1
    for p in problems[:10]:
        say(p)
    if len(problems) > 10:
        say("... %d in all" % len(problems))
    failed |= bool(problems)
    print("%sok %d - %s" % ("not " if problems else "", count, name), flush=True)


# ---- processes ----


def stat_of(pid):
    """state, parent; None when the process no longer exists"""
    try:
        with open("/proc/%d/stat" % pid) as f:
            rest = f.read().rpartition(")")[2].split()
        return rest[0], int(rest[1])
    except (OSError, IndexError):
        return None


def name_of(pid):
    try:
        with open("/proc/%d/comm" % pid) as f:
            return f.read().strip()
    except OSError:
        return ""


def pids():
    return [int(p) for p in os.listdir("/proc") if p.isdigit()]


def rss_mib(pid, field="VmRSS:"):
    try:
        with open("/proc/%d/status" % pid) as f:
            for line in f:
                if line.startswith(field):
                    return int(line.split()[1]) / 1024
    except OSError:
        pass
    return 0


def descriptors(pid, but=()):
    """the number of open files, without those of these names"""
    n = 0
    try:
        for fd in os.listdir("/proc/%d/fd" % pid):
            try:
                n += not os.readlink("/proc/%d/fd/%s" % (pid, fd)).startswith(but)
            except OSError:
                pass
    except OSError:
        pass
    return n


# Descriptors of cgroups and networks that a keeper caches for other boxes, a dozen each: at most as many as
# there were boxes at once. The bound of the cache is checked elsewhere.
KEPT = ("net:", "/proc/", "/sys/fs/cgroup/")
KEPT_MOST = 5000


def holds(pid, file):
    """whether the process has that file open"""
    try:
        for fd in os.listdir("/proc/%d/fd" % pid):
            try:
                st = os.stat("/proc/%d/fd/%s" % (pid, fd))
            except OSError:
                continue
            if (st.st_dev, st.st_ino) == (file.st_dev, file.st_ino):
                return True
    except OSError:
        pass
    return False


def fnv(text):
    """as id_hash() computes it: the cgroups of a keeper are named by its run folder"""
    h = 2166136261
    for c in text.encode():
        h = ((h ^ c) * 16777619) & 0xFFFFFFFF
    return h


class Daemon:
    def __init__(self):
        self.home = tempfile.mkdtemp(prefix="serve.", dir=os.environ.get("TMPDIR", "/tmp"))
        os.chmod(self.home, 0o711)  # the server is another user
        self.run = os.path.join(self.home, "run")
        self.state = os.path.join(self.home, "state")
        self.env = dict(os.environ, ATOLL_RUN=self.run)
        self.port = 0
        self.starts = 0
        self.proc = None
        self.peak = collections.defaultdict(float)

    def log(self):
        return os.path.join(self.home, "serve.log")

    async def start(self):
        self.starts += 1
        begun = os.path.getsize(self.log()) if os.path.exists(self.log()) else 0
        with open(self.log(), "ab") as log:
            self.proc = await asyncio.create_subprocess_exec(
                ATOLL, "serve", "--listen", "127.0.0.1:%d" % self.port, "--state", self.state,
                env=dict(self.env, ATOLL_QUOTA_BOXES="none"), stdout=log, stderr=log)
        until = time.monotonic() + 20
        while True:
            with open(self.log(), "rb") as log:
                log.seek(begun)
                text = log.read().decode(errors="replace")
            if "serving on unix:" in text:
                break
            if self.proc.returncode is not None or time.monotonic() > until:
                raise RuntimeError("the daemon did not start: " + text[-400:])
            await asyncio.sleep(0.01)
        for line in text.splitlines():
            if line.startswith("atoll: serving on http://"):
                self.port = int(line.rpartition(":")[2])

    def servers(self):
        """all servers with the lock of the pidfile: a draining one still serves its readers, and so does one whose
        supervisor is dead"""
        try:
            seat = os.stat(os.path.join(self.run, "serve.pid"))
        except OSError:
            return []
        return [p for p in pids() if name_of(p) == "atoll-server" and holds(p, seat)]

    def server(self):
        return max(self.servers(), default=0)

    def keeper(self):
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
            try:
                s.connect(os.path.join(self.run, "keeper.sock"))
                pid = struct.unpack("3i", s.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
            except OSError:
                return 0
        return pid if stat_of(pid) and stat_of(pid)[0] != "Z" else 0

    def sample(self):
        for what, pid in (("server", self.server()), ("keeper", self.keeper())):
            if pid:
                self.peak[what] = max(self.peak[what], rss_mib(pid))

    def wal_mib(self):
        try:
            return os.path.getsize(os.path.join(self.state, "server/atoll.db-wal")) / (1 << 20)
        except OSError:
            return 0

    def cli(self, *words):
        return asyncio.create_subprocess_exec(ATOLL, *words, env=self.env,
                                              stdout=asyncio.subprocess.PIPE)

    async def ask(self, *words):
        p = await self.cli(*words)
        return (await p.communicate())[0].decode().strip()


# ---- a minimal HTTP client ----


class Cut(Exception):
    """the connection ended before the answer was complete"""


def fold(request):
    return request.replace("\n", "\r\n").encode()


class Api:
    def __init__(self, daemon, key):
        self.daemon, self.key = daemon, key
        self.refused = 0  # rejected connections while a supervisor ran
        self.no_supervisor = False

    async def open(self, method, path, body=None, headers=()):
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", self.daemon.port,
                                                           limit=1 << 22)
        except ConnectionRefusedError as e:
            self.refused += not self.no_supervisor
            raise Cut("refused") from e
        except OSError as e:
            raise Cut(str(e)) from e
        data = b"" if body is None else json.dumps(body).encode()
        head = ["%s %s HTTP/1.1" % (method, path), "Host: 127.0.0.1", "X-API-Key: " + self.key,
                "Connection: close"] + list(headers)
        if body is not None:
            head += ["Content-Type: application/json", "Content-Length: %d" % len(data)]
        try:
            writer.write(fold("\n".join(head) + "\n\n") + data)
            status = await reader.readline()
            if not status:
                raise Cut("no answer")
            code, fields = int(status.split()[1]), {}
            while True:
                line = (await reader.readline()).decode()
                if not line:
                    raise Cut("half a head")
                if not line.strip():
                    break
                name, _, value = line.partition(":")
                fields[name.strip().lower()] = value.strip()
            return code, fields, reader, writer
        except (OSError, IndexError, ValueError) as e:
            writer.close()
            raise Cut(str(e)) from e
        except Cut:
            writer.close()
            raise

    @staticmethod
    async def chunks(fields, reader):
        """the body; Cut when it is incomplete"""
        try:
            if fields.get("transfer-encoding", "").lower() == "chunked":
                while True:
                    size = await reader.readline()
                    if not size.endswith(b"\r\n"):
                        raise Cut("half a size")
                    n = int(size.split(b";")[0], 16)
                    piece = await reader.readexactly(n + 2)
                    if n == 0:
                        return
                    yield piece[:-2]
            elif fields.get("content-length", "0") != "0":
                yield await reader.readexactly(int(fields["content-length"]))
        except (OSError, asyncio.IncompleteReadError, ValueError) as e:
            raise Cut(str(e)) from e

    async def call(self, method, path, body=None, headers=()):
        """status and document"""
        code, fields, reader, writer = await self.open(method, path, body, headers)
        try:
            whole = b"".join([c async for c in self.chunks(fields, reader)])
            return code, json.loads(whole) if whole else None
        except ValueError as e:
            raise Cut(str(e)) from e
        finally:
            writer.close()

    async def insist(self, method, path, body=None, headers=(), again=(503,)):
        """the same until it is answered"""
        until = time.monotonic() + PATIENCE_S
        while True:
            try:
                code, doc = await self.call(method, path, body, headers)
                if code not in again:
                    return code, doc
            except Cut:
                pass
            if time.monotonic() > until:
                raise RuntimeError("%s %s: no answer for %d s" % (method, path, PATIENCE_S))
            await asyncio.sleep(0.02)


# ---- programs that count, and their expected output ----

COUNT = r'''mkfifo f; exec 3<>f; i=0
while [ $i -lt %d ]; do
	printf 'program %%s, line %%06d: nothing may be lost, nothing may come twice\n' %d $i
	i=$((i + 1)); read -rt %.3f -u 3
done; exit 0'''

BURSTS = r'''
import hashlib, sys, time
def block(seed, stream, i):
    one = hashlib.sha256(b"%%d %%d %%d" %% (seed, stream, i)).digest()
    return one * (200 + one[0] * 2)
for i in range(%d):
    sys.stdout.buffer.write(block(%d, 0, i)); sys.stdout.buffer.flush()
    sys.stderr.buffer.write(block(%d, 1, i)); sys.stderr.buffer.flush()
    time.sleep(%.3f)
'''


def block(seed, stream, i):
    one = hashlib.sha256(b"%d %d %d" % (seed, stream, i)).digest()
    return one * (200 + one[0] * 2)


class Program:
    """one box, one program in it, one reader"""

    def __init__(self, number, kind, seconds):
        self.number, self.kind = number, kind
        self.box = self.id = None
        self.got = [bytearray(), bytearray()]
        self.record = None
        self.cuts = 0
        self.attached = False  # a stream is open right now
        self.trouble = []
        self.moved = time.monotonic()
        if kind == "bursts":
            n = min(40, int(seconds * 4))
            self.command = ["/usr/bin/python3", "-c", BURSTS % (n, number, number, seconds / n)]
            self.wanted = [b"".join(block(number, s, i) for i in range(n)) for s in (0, 1)]
        else:
            n = int(seconds * LINES_PER_S)
            text = "".join("program %d, line %06d: nothing may be lost, nothing may come twice\n" %
                           (number, i) for i in range(n))
            if kind == "pty":
                text = text.replace("\n", "\r\n")
            self.command = ["bash", "-c", COUNT % (n, number, 1 / LINES_PER_S)]
            self.wanted = [text.encode(), b""]

    def path(self):
        return "/v1/boxes/%s/execs/%s" % (self.box, self.id)

    async def make(self, api):
        code, doc = await api.insist("POST", "/v1/boxes", {"lifetime_ms": 3600000},
                                     ["Idempotency-Key: box %d %d" % (SEED, self.number)],
                                     again=(409, 503))
        if code != 201:
            raise RuntimeError("create: %d %s" % (code, doc))
        self.box = doc["id"]

    async def begin(self, api):
        body = {"command": self.command, "background": True, "tag": "counts"}
        if self.kind == "pty":
            body["pty"] = {"rows": 24, "cols": 200}
        while not self.id:
            try:
                code, doc = await api.call("POST", "/v1/boxes/%s/execs" % self.box, body)
                if code == 503:
                    continue
                if code != 201:
                    raise RuntimeError("exec: %d %s" % (code, doc))
            except Cut:
                # Its tag shows whether it has started.
                code, doc = await api.insist("GET", "/v1/boxes/%s/execs" % self.box)
                if code != 200:
                    raise RuntimeError("execs: %d %s" % (code, doc))
                begun = [x for x in doc["items"] if x.get("cause") != "host"]
                if not begun:
                    continue
                doc = begun[0]
            self.id = doc["id"]

    def take(self, event):
        """1: the stream has ended"""
        what = event["type"]
        if what in ("stdout", "stderr"):
            s = what == "stderr"
            data = (base64.b64decode(event["base64"]) if "base64" in event
                    else event["data"].encode())
            have = len(self.got[s])
            if event["offset"] != have:
                self.trouble.append("%s: %s at byte %d, wanted %d" %
                                    (self.path(), what, event["offset"], have))
                raise Cut("out of order")
            self.got[s] += data
            self.moved = time.monotonic()
        elif what == "reading" and event["dropped"]:
            self.trouble.append("%s: %d bytes dropped" % (self.path(), event["dropped"]))
        elif what == "error":
            raise Cut(event["error"]["message"])
        elif what == "exit":
            self.record = event
            return 1
        return 0

    async def read_once(self, api):
        code, fields, reader, writer = await api.open(
            "GET", "%s/output?stdout=%d&stderr=%d" % (self.path(), len(self.got[0]),
                                                      len(self.got[1])))
        try:
            rest = b""
            if code != 200:
                whole = b"".join([c async for c in api.chunks(fields, reader)])
                if code != 503:
                    self.trouble.append("%s: %d %s" % (self.path(), code, whole[:200]))
                raise Cut("%d" % code)
            self.attached = True
            async for piece in api.chunks(fields, reader):
                *lines, rest = (rest + piece).split(b"\n")
                for line in lines:
                    if self.take(json.loads(line)):
                        return
            raise Cut("an end without an exit")
        finally:
            self.attached = False
            writer.close()

    async def follow(self, api):
        while not self.record and len(self.trouble) < 5:
            try:
                await self.read_once(api)
            except Cut as e:
                self.cuts += 1
                if time.monotonic() - self.moved > PATIENCE_S:
                    self.trouble.append("%s: stuck: %s" % (self.path(), e))
                    return
                await asyncio.sleep(0.03)

    async def watch(self, api):
        try:
            await asyncio.wait_for(self.follow(api), 3600)
        except Exception as e:  # any exception is a failure of this reader
            self.trouble.append("%s: %r" % (self.path(), e))

    def stream_problems(self):
        out = list(self.trouble)
        for s in (0, 1):
            if self.got[s] != self.wanted[s]:
                at = next((i for i, (a, b) in enumerate(zip(self.got[s], self.wanted[s])) if a != b),
                          min(len(self.got[s]), len(self.wanted[s])))
                out.append("%s %s: stream %d: %d bytes, wanted %d; differs at %d" %
                           (self.path(), self.kind, s, len(self.got[s]), len(self.wanted[s]), at))
        return out

    def record_problems(self, doc):
        want = {"cause": "exit", "status": 0, "stdout_bytes": len(self.wanted[0]),
                "stderr_bytes": len(self.wanted[1])}
        has = {k: doc.get(k) for k in want}
        return [] if has == want else ["%s: %s, wanted %s" % (self.path(), has, want)]


async def in_turn(things, do):
    """do(thing) for each, AT_ONCE at the same time"""
    queue = list(things)

    async def worker():
        while queue:
            await do(queue.pop())

    await asyncio.gather(*[worker() for _ in range(AT_ONCE)])


# ---- other load ----


class Meanwhile:
    """boxes that are created and deleted during the kills; none may be left"""

    def __init__(self, api):
        self.api = api
        self.over = False
        self.made = self.runs = self.cut_runs = 0
        self.trouble = []

    async def come_and_go(self, number):
        while not self.over:
            key = "Idempotency-Key: meanwhile %d %d %d" % (SEED, number, self.made)
            code, doc = await self.api.insist("POST", "/v1/boxes", {}, [key], again=(409, 503))
            if code != 201:
                self.trouble.append("create: %d %s" % (code, doc))
                return
            self.made += 1
            if rnd.random() < 0.5:
                await asyncio.sleep(rnd.random() * 0.2)
            code, doc = await self.api.insist("DELETE", "/v1/boxes/" + doc["id"])
            if code not in (204, 404):  # 404: the answer to the first request was cut
                self.trouble.append("delete: %d %s" % (code, doc))

    async def run_once(self):
        """the box of a run ends with it, also when the answer was cut"""
        while not self.over:
            try:
                code, doc = await self.api.call("POST", "/v1/run", {"command": "sleep 0.2; echo x"})
                if code == 200 and doc.get("stdout") != "x\n":
                    self.trouble.append("run: %s" % doc)
                elif code not in (200, 503):
                    self.trouble.append("run: %d %s" % (code, doc))
                self.runs += 1
            except Cut:
                self.cut_runs += 1
                await asyncio.sleep(0.02)

    async def guarded(self, what):
        try:
            await what
        except Exception as e:
            self.trouble.append(repr(e))


class Timed:
    """a box whose lifetime or idle time ends during the kills"""

    def __init__(self, field, ms):
        self.field, self.ms = field, ms
        self.box = self.made = self.gone = None

    async def make(self, api):
        # Without an idempotency key: a repeated request must not return the same box with an older start time.
        code, doc = await api.insist("POST", "/v1/boxes", {self.field: self.ms})
        if code != 201:
            raise RuntimeError("create: %d %s" % (code, doc))
        self.box = doc["id"]
        if self.field == "lifetime_ms":
            await api.insist("POST", "/v1/boxes/%s/execs" % self.box,
                             {"command": "sleep 1000", "background": True})

    async def problems(self, api, queue):
        until = time.monotonic() + 30
        while True:
            code, doc = await api.insist("GET", "/v1/boxes/" + self.box)
            # A request is activity: an idle box is queried rarely enough.
            if code == 200 and doc["state"] == "deleted":
                break
            if time.monotonic() > until:
                return ["box %s: %s has passed for 30 s, and it still runs" % (self.box, self.field)]
            await asyncio.sleep(self.ms / 1000 + 0.5)
        out = []
        why = self.field.partition("_")[0]
        if doc["cause"] != why:
            out.append("box %s: cause %s, wanted %s" % (self.box, doc["cause"], why))
        lived = moment(doc["ended"]) - moment(doc["created"])
        if lived < self.ms / 1000 - 0.001:  # times have milliseconds, rounded down
            out.append("box %s: %s after %.3f s, asked for %.3f" % (self.box, why, lived,
                                                                    self.ms / 1000))
        if self.field == "lifetime_ms":
            self.late = lived - self.ms / 1000
            kills = sum(moment(doc["ended"]) - self.late <= at <= moment(doc["ended"])
                        for at in killed_at)
            queued = queue.between(moment(doc["ended"]) - self.late, moment(doc["ended"]))
            self.slack = LATE_S + kills * KILL_S + queued - self.late
            if self.slack < 0:
                out.append("box %s: %.3f s late, with %d kills and %.3f s without a free processor" %
                           (self.box, self.late, kills, queued))
            code, doc = await api.insist("GET", "/v1/runs?box=" + self.box)
            out += ["run %s: cause %s, wanted lifetime" % (x["id"], x.get("cause"))
                    for x in doc["items"] if x.get("cause") != "lifetime"]
        return out


def moment(text):
    """a time in seconds; the fraction may have any length"""
    whole, _, fraction = text.rstrip("Z").partition(".")
    import calendar
    return (calendar.timegm(time.strptime(whole, "%Y-%m-%dT%H:%M:%S")) +
            float("0." + (fraction or "0")))


# ---- a machine with other load ----


class Queue:
    """How long servers and keepers waited for a processor. The kernel
    counts it for each process; one that was killed takes the last quarter second of its with it. And how
    long there was no supervisor: this process starts it, and waits for a processor as well."""

    def __init__(self, daemon):
        self.daemon, self.total, self.seen = daemon, 0.0, {}
        self.points, self.down = [(time.time(), 0.0)], []

    @staticmethod
    def waited(pid):
        try:
            with open("/proc/%d/schedstat" % pid) as f:
                return int(f.read().split()[1]) / 1e9
        except (OSError, IndexError):
            return None

    async def watch(self):
        while True:
            for pid in self.daemon.servers() + [self.daemon.keeper()]:
                now = self.waited(pid) if pid else None
                if now is not None:
                    self.total += now - self.seen.get(pid, 0.0)
                    self.seen[pid] = now
            self.points.append((time.time(), self.total))
            await asyncio.sleep(0.25)

    def between(self, begin, end):
        inside = [n for at, n in self.points if begin - 0.5 <= at <= end + 0.5]
        down = sum(max(0.0, min(end, b) - max(begin, a)) for a, b in self.down)
        return down + (inside[-1] - inside[0] if inside else 0.0)


# ---- kills ----

killed_at = []  # wall clock times: the process that should have ended a box did not run then


def end(pid, signo=signal.SIGKILL):
    if pid > 1:
        try:
            os.kill(pid, signo)
            return True
        except ProcessLookupError:
            pass
    return False


class Chaos:
    def __init__(self, daemon, api, programs, queue):
        self.daemon, self.api, self.programs, self.queue = daemon, api, programs, queue
        self.done = collections.Counter()
        self.trouble = []
        self.unfelt = []
        self.felt = 0
        self.down_s = 0.0

    async def feel(self, what, readers):
        """A kill that no reader notices proves nothing: each reader with an open stream must lose it, or its
        program has just ended."""
        until = time.monotonic() + 5
        left = dict(readers)
        while left and time.monotonic() < until:
            left = {p: n for p, n in left.items() if p.cuts == n and not p.record}
            await asyncio.sleep(0.01)
        self.felt += sum(p.cuts > n for p, n in readers.items())
        if left:
            self.unfelt.append("%d of %d readers did not notice: %s killed" % (len(left),
                                                                             len(readers), what))

    def readers(self):
        return {p: p.cuts for p in self.programs if p.attached}

    def server(self):
        return sum([end(p) for p in self.daemon.servers()]) > 0

    def keeper(self):
        return end(self.daemon.keeper())

    def both(self):
        pair = [self.server, self.keeper]
        rnd.shuffle(pair)
        return pair[0]() + pair[1]() > 0

    async def supervisor(self):
        begun, since = time.monotonic(), time.time()
        self.api.no_supervisor = True
        end(self.daemon.proc.pid)
        await self.daemon.proc.wait()
        await self.daemon.start()
        self.api.no_supervisor = False
        self.queue.down.append((since, time.time()))
        self.down_s = max(self.down_s, time.monotonic() - begun)

    async def go(self, kills, extra):
        todo = [rnd.choice(["server", "keeper", "both"]) for _ in range(kills)] + extra
        rnd.shuffle(todo)
        for what in todo:
            await asyncio.sleep(rnd.uniform(0.1, 1.5))
            self.daemon.sample()
            readers = self.readers()
            killed_at.append(time.time())
            try:
                if what == "supervisor":
                    await self.supervisor()
                elif what == "reload":
                    end(self.daemon.proc.pid, signal.SIGHUP)
                elif what == "upgrade":
                    said = await self.daemon.ask("upgrade")
                    if not said.startswith("upgraded from"):
                        self.trouble.append("upgrade said: '%s'" % said)
                else:
                    # There may be no process: the last one was killed and is being replaced.
                    until = time.monotonic() + 5
                    while not getattr(self, what)() and time.monotonic() < until:
                        await asyncio.sleep(0.01)
                        readers = self.readers()
                self.done[what] += 1
                if what in ("server", "both", "supervisor"):
                    await self.feel(what, readers)
            except Exception as e:
                self.trouble.append("%s: %r" % (what, e))
                return


# ---- nothing may be left ----


def is_ours(pid, parent):
    try:
        with open("/proc/%d/cgroup" % pid) as f:
            return parent in f.read() and stat_of(pid)[0] != "Z"
    except (OSError, TypeError):
        return False


def leftovers(daemon):
    parent = "atoll-%08x" % fnv(daemon.run)
    out = ["process %d %s" % (p, name_of(p)) for p in pids() if is_ours(p, parent)]
    for top, folders, _ in os.walk("/sys/fs/cgroup"):
        if top.count("/") > 6:
            folders.clear()
        out += ["cgroup %s/%s" % (top, f) for f in folders if f == parent]
    with open("/proc/self/mountinfo") as f:
        out += ["mount " + line.strip() for line in f if daemon.home in line]
    known = {"keeper.lock", "start.lock", "keeper.log", "serve.pid"}
    for top, _, files in os.walk(daemon.run):
        out += ["file %s" % os.path.join(top, f) for f in files if f not in known]
    return out


async def stop(daemon):
    """stops the daemon, then the keeper, by pid, when they have nothing left to do"""
    keeper = daemon.keeper()
    end(daemon.proc.pid, signal.SIGTERM)
    await daemon.proc.wait()
    end(keeper, signal.SIGTERM)
    until = time.monotonic() + 20
    while stat_of(keeper) and stat_of(keeper)[0] != "Z" and time.monotonic() < until:
        await asyncio.sleep(0.02)


# ---- the run ----


async def all_boxes(api):
    out, after = [], ""
    while True:
        code, doc = await api.insist("GET", "/v1/boxes?limit=100" + after)
        if code != 200:
            raise RuntimeError("list: %d %s" % (code, doc))
        out += doc["items"]
        if not doc["next"]:
            return out
        after = "&after=" + doc["next"]


def cast(seconds, first):
    """the programs: most print lines, some use terminals, some print bursts of binary data"""
    return [Program(first + i, "bursts" if i % 30 == 7 else "pty" if i % 15 == 3 else "lines",
                    seconds * rnd.uniform(0.4, 1.0)) for i in range(BOXES)]


async def one_round(daemon, api, number):
    seconds = 6 + KILLS * 1.2
    programs = cast(seconds, number * 1000000)  # Idempotency-Keys do not expire during the test
    begun = time.monotonic()
    await in_turn(programs, lambda p: p.make(api))
    made = time.monotonic()

    async def begin(p):
        await p.begin(api)
        p.reader = asyncio.ensure_future(p.watch(api))

    await in_turn(programs, begin)
    say("%d boxes in %.1f s, their programs in %.1f s" % (BOXES, made - begun,
                                                          time.monotonic() - made))
    timed = [Timed("lifetime_ms", int(1000 * rnd.uniform(3, KILLS * 0.7 + 4))) for _ in range(20)]
    timed += [Timed("idle_ms", int(1000 * rnd.uniform(1, 4))) for _ in range(5)]
    await in_turn(timed, lambda t: t.make(api))
    meanwhile = Meanwhile(api)
    others = [asyncio.ensure_future(meanwhile.guarded(t)) for t in
              [meanwhile.come_and_go(number * 10 + i) for i in range(3)] + [meanwhile.run_once()]]
    queue = Queue(daemon)
    chaos = Chaos(daemon, api, programs, queue)
    watching = asyncio.ensure_future(queue.watch())
    await chaos.go(KILLS, EXTRA)
    meanwhile.over = True
    await asyncio.gather(*others)
    await asyncio.gather(*[p.reader for p in programs])
    daemon.sample()

    total = sum(len(p.got[0]) + len(p.got[1]) for p in programs)
    say("done: %s; %d streams, %d bytes, %.1f s" % (dict(chaos.done), len(programs), total,
                                                    time.monotonic() - begun))
    say("open streams that kills have cut: %d; at least %d and at most %d resumptions of one" %
        (chaos.felt, min(p.cuts for p in programs), max(p.cuts for p in programs)))
    say("meanwhile: %d boxes were created and deleted, %d runs, %d of them cut; connections refused: %d; "
        "longest without a daemon %.1f s" % (meanwhile.made, meanwhile.runs, meanwhile.cut_runs,
                                             api.refused, chaos.down_s))
    say("servers and keepers waited for a processor for %.1f s of %.1f" % (queue.total, time.time() - queue.points[0][0]))
    say("memory at most: server %.1f MiB, keeper %.1f MiB; log of the store: %.1f MiB" %
        (daemon.peak["server"], daemon.peak["keeper"], daemon.wal_mib()))
    # Where servers wait for a processor all the time, the next kill happens before the readers reconnect.
    wanted = BOXES if queue.total < 0.3 * (time.time() - queue.points[0][0]) else 0
    verdict("every process that is killed is replaced", chaos.trouble)
    verdict("every kill of a server cuts its streams", chaos.unfelt +
            ([] if chaos.felt >= wanted else ["only %d streams were ever cut" % chaos.felt]))
    verdict("no connection is refused while a supervisor runs",
            ["%d were" % api.refused] if api.refused else [])
    verdict("no byte of any stream is lost or repeated",
            [x for p in programs for x in p.stream_problems()])
    verdict("boxes can be created and deleted all the time", meanwhile.trouble)

    problems = []

    async def look(p):
        code, doc = await api.insist("GET", p.path())
        problems.extend(p.record_problems(doc) if code == 200 else ["%s: %d" % (p.path(), code)])

    await in_turn(programs, look)
    verdict("every program has its record", problems)
    late = [x for t in timed for x in await t.problems(api, queue)]
    say("lifetimes were honoured %.3f s late at most, %.3f s before it would be too late" % (
        max([getattr(t, "late", 0) for t in timed], default=0),
        min([getattr(t, "slack", LATE_S) for t in timed], default=0)))
    watching.cancel()
    verdict("a box ends when its time has passed, with that cause", late)

    ids = {b["id"]: b for b in await all_boxes(api)}
    wanted = {p.box for p in programs}
    until = time.monotonic() + 5  # the last boxes of runs are being deleted
    while set(ids) - wanted and time.monotonic() < until:
        await asyncio.sleep(0.1)
        ids = {b["id"]: b for b in await all_boxes(api)}
    verdict("exactly the expected boxes exist",
            ["lost: " + b for b in wanted - set(ids)] +
            ["unexpected: %s" % ids[b] for b in set(ids) - wanted] +
            ["%s is %s" % (b, ids[b]["state"]) for b in wanted & set(ids)
             if ids[b]["state"] != "running"])
    code, doc = await api.insist("GET", "/v1/runs?running=true&limit=100")
    verdict("no ended program is listed as running",
            ["run %s of box %s" % (r["id"], r["box"]) for r in doc["items"]])

    problems = []

    async def delete(p):
        code, _ = await api.insist("DELETE", "/v1/boxes/" + p.box)
        if code not in (204, 404):
            problems.append("box %s: %d" % (p.box, code))

    await in_turn(programs, delete)
    left = await daemon.ask("ps", "-q")
    verdict("every box can be deleted", problems + ["still there: " + x for x in left.split()])
    memory_verdict("memory stays bounded (server %d MiB, keeper %d MiB)" % (SERVER_MIB, KEEPER_MIB),
                   ["%s: %.1f MiB" % (w, daemon.peak[w]) for w, most in (("server", SERVER_MIB),
                                                                         ("keeper", KEEPER_MIB))
                    if daemon.peak[w] > most])


async def calm(daemon, api):
    """without kills: boxes that are created and deleted leave no memory or descriptors in the processes"""
    async def one(_):
        code, doc = await api.insist("POST", "/v1/boxes", {})
        path = "/v1/boxes/" + doc["id"]
        await api.insist("POST", path + "/execs", {"command": "head -c 100000 /dev/zero"})
        await api.insist("DELETE", path)

    sizes = []
    for _ in range(4):
        await in_turn(range(100), one)
        # Without file pages: SQLite maps the index of its WAL, and the kernel may drop it.
        sizes.append([rss_mib(daemon.server(), "RssAnon:"), rss_mib(daemon.keeper(), "RssAnon:"),
                      descriptors(daemon.server()), descriptors(daemon.keeper(), KEPT)])
    say("after 100, 200, 300, 400 boxes: server %s MiB, keeper %s MiB, descriptors %s, %s" %
        tuple("/".join("%.4g" % s[i] for s in sizes) for i in range(4)))
    problems = []
    for i, what in enumerate(("server", "keeper")):
        if sizes[-1][i] - sizes[0][i] > CALM_MIB:
            problems.append("%s grew by %.1f MiB" % (what, sizes[-1][i] - sizes[0][i]))
        # The first boxes fill the caches of the keeper: networks, cgroups.
        more = sizes[-1][i + 2] - sizes[1][i + 2]
        if more > 30:
            problems.append("%s has %d descriptors more after 200 boxes" % (what, more))
    kept = descriptors(daemon.keeper()) - sizes[-1][3]
    say("the keeper caches %d descriptors for other boxes" % kept)
    if kept > KEPT_MOST:
        problems.append("the keeper caches %d descriptors for other boxes" % kept)
    memory_verdict("deleted boxes leave no memory in use (%d MiB)" % CALM_MIB, problems)


EXTRA = ["supervisor"] * 3 + ["reload"] * 2 + ["upgrade"] * 2


async def play():
    daemon = Daemon()
    try:
        await daemon.start()
        api = Api(daemon, await daemon.ask("key", "new", "stress", "--state", daemon.state, "--quiet"))
        number, begun = 0, time.monotonic()
        while number < ROUNDS or time.monotonic() - begun < SECONDS:
            await one_round(daemon, api, number)
            number += 1
        await calm(daemon, api)
        await stop(daemon)
        left = leftovers(daemon)
        until = time.monotonic() + 5
        while left and time.monotonic() < until:
            await asyncio.sleep(0.1)
            left = leftovers(daemon)
        verdict("nothing is left: no process, cgroup, mount or file", left)
    finally:
        if failed:
            say("log of the daemon:")
            with open(daemon.log(), errors="replace") as f:
                for line in f.read().splitlines()[-40:]:
                    say(line[:300])
            if os.environ.get("SERVE_KEEP"):
                return
        for pid in (daemon.proc.pid if daemon.proc and daemon.proc.returncode is None else 0,
                    daemon.keeper()):
            end(pid)
        shutil.rmtree(daemon.home, ignore_errors=True)


def main():
    if os.geteuid() != 0:
        print("1..0 # SKIP needs root")
        return 0
    say("seed %d" % SEED)
    asyncio.run(play())
    print("1..%d" % count)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
