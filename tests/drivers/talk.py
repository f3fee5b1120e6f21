"""talk.py - a driver with the other end of its channel in our hands, and the tests' TAP.

    with Talk("python.py") as t:
        cell = t.run("print(6 * 7)")
        cell.out, cell.result, cell.error, cell.status

A test is a function of a file in this folder whose name has three words or more: the promise. It
fails by an exception. What a driver needs and the machine has not is a Skip.
"""
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
DRIVERS = os.path.join(HERE, "..", "..", "share", "drivers")
LIMIT_S = 20  # for what should be immediate, on a machine that is busy


TALKS = []  # the latest one, for the report of a failure


class Skip(Exception):
    pass


class Dead(Exception):
    """The driver has ended; its status is the argument."""


class Cell:
    """What one cell said."""

    def __init__(self):
        self.events, self.parts = [], {"out": bytearray(), "err": bytearray()}

    @property
    def out(self):
        return bytes(self.parts["out"])

    @property
    def err(self):
        return bytes(self.parts["err"])

    def all(self, ev):
        return [e for e in self.events if e["ev"] == ev]

    @property
    def result(self):
        """The value of the last expression, or None."""
        main = [e for e in self.all("result") if e["main"]]
        assert len(main) < 2, main
        return main[0] if main else None

    @property
    def text(self):
        return self.result and self.result["data"]["text/plain"]

    @property
    def error(self):
        return self.all("error")[0] if self.all("error") else None

    @property
    def status(self):
        return self.all("end")[0]["status"]


class Talk:
    def __init__(self, *argv, env=None, cwd=None):
        ours, theirs = socket.socketpair()
        self.channel, self.lines = ours, b""
        fd = theirs.fileno()

        def to_three():
            os.setpgid(0, 0)
            os.dup2(fd, 3)
            os.set_inheritable(3, True)
            for other in map(int, os.listdir("/proc/self/fd")):
                try:
                    os.set_inheritable(other, other <= 3)
                except OSError:
                    pass  # the folder itself

        self.p = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, preexec_fn=to_three, close_fds=False,
                                  env=env, cwd=cwd)
        theirs.close()
        for stream in (self.p.stdout, self.p.stderr):
            os.set_blocking(stream.fileno(), False)
        self.cell = Cell()
        self.number = 0
        TALKS[:] = [self]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.channel.close()
        try:
            os.killpg(self.p.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.p.wait()
        self.p.stdout.close()
        self.p.stderr.close()

    def drain(self):
        """As init does: what was printed before a line on the channel is read before it."""
        for name, stream in (("out", self.p.stdout), ("err", self.p.stderr)):
            while True:
                piece = None
                try:
                    piece = os.read(stream.fileno(), 1 << 20)
                except BlockingIOError:
                    pass
                if not piece:
                    break
                self.cell.parts[name] += piece

    def event(self):
        """The next line of the driver."""
        end = time.monotonic() + LIMIT_S
        while b"\n" not in self.lines:
            if time.monotonic() > end:
                raise AssertionError("no word from the driver: %r %r" % (self.cell.out[-300:], self.cell.err[-300:]))
            ready, _, _ = select.select([self.channel, self.p.stdout, self.p.stderr], [], [], 0.5)
            if self.channel in ready:
                try:
                    piece = self.channel.recv(1 << 20)
                except ConnectionResetError:
                    piece = b""
                self.drain()
                if not piece:
                    raise Dead(self.p.wait(LIMIT_S))
                self.lines += piece
                continue
            self.drain()
            if self.p.poll() is not None and self.channel not in select.select([self.channel], [], [], 0)[0]:
                raise Dead(self.p.returncode)
        line, _, self.lines = self.lines.partition(b"\n")
        assert len(line) <= 16 << 20, "a line of %d bytes" % len(line)
        event = json.loads(line.decode("ascii"), parse_constant=lambda c: 1 / 0, object_pairs_hook=unique)
        check(event)
        self.cell.events.append(event)
        return event

    def until(self, ev):
        while True:
            event = self.event()
            if event["ev"] == ev:
                return event

    def ready(self):
        event = self.event()
        assert event["ev"] == "ready", event
        return event

    def send(self, **message):
        self.channel.sendall(json.dumps(message).encode() + b"\n")

    def start(self, code, env=None):
        self.number += 1
        self.cell = Cell()
        self.send(op="run", id=str(self.number), code=code, env=env or {})

    def finish(self):
        end = self.until("end")
        self.drain()
        assert end["id"] == str(self.number), end
        return self.cell

    def run(self, code, env=None):
        self.start(code, env)
        return self.finish()

    def interrupt(self):
        os.killpg(self.p.pid, signal.SIGINT)

    def asleep(self):
        """Waits until the driver has taken its signals and waits for us again."""
        end = time.monotonic() + LIMIT_S
        while time.monotonic() < end:
            with open("/proc/%d/status" % self.p.pid) as f:
                status = dict(line.split(":\t", 1) for line in f if ":\t" in line)
            if status["State"][0] == "S" and not int(status["ShdPnd"], 16) | int(status["SigPnd"], 16):
                return
        raise AssertionError("the driver does not rest")

    def seen(self, text, stream="out"):
        """Waits until a cell has printed this."""
        end = time.monotonic() + LIMIT_S
        while text not in self.cell.parts[stream]:
            assert time.monotonic() < end, "%r was not printed" % text
            select.select([self.p.stdout, self.p.stderr], [], [], 0.5)
            self.drain()

    def interrupted(self, code, sleeps=False):
        """Runs a cell that never ends, interrupts it once it has begun: the cell and the seconds."""
        self.start(code)
        self.seen(b"began")
        if sleeps:
            self.asleep()
        # An interpreter loses a signal that arrives between its last check for signals and its wait. So the
        # interrupt is sent again.
        again = threading.Timer(1, self.interrupt)
        at = time.monotonic()
        self.interrupt()
        again.start()
        try:
            cell = self.finish()
        finally:
            again.cancel()
        return cell, time.monotonic() - at


SHAPES = {
    "ready": {"language": str, "version": str},
    "result": {"id": str, "main": bool, "data": dict, "extra": dict},
    "input": {"id": str, "prompt": str, "password": bool},
    "error": {"id": str, "name": str, "value": str, "frames": list, "text": str},
    "end": {"id": str, "status": str, "count": int},
}


def check(event):
    """A line is what docs/languages.md says, and nothing else."""
    shape = SHAPES[event["ev"]]
    for key, kind in shape.items():
        assert type(event.get(key)) is kind, (key, str(event)[:300])
    rest = set(event) - set(shape) - {"ev"}
    assert rest <= ({"truncated"} if event["ev"] == "result" else {"code"}), event
    for frame in event.get("frames", []):
        assert {k: type(v) for k, v in frame.items()} == {
            "file": str, "line": int, "name": str, "text": str}, frame
    assert event.get("status", "ok") in ("ok", "error", "interrupted")
    plain_strings(event)


def unique(pairs):
    assert len(dict(pairs)) == len(pairs), "a key twice"
    return dict(pairs)


def plain_strings(value):
    if type(value) is int:
        assert -(1 << 63) <= value < 1 << 63, value
    elif isinstance(value, str):
        assert "\0" not in value
        value.encode()
    elif isinstance(value, dict):
        for k, v in value.items():
            plain_strings(k)
            plain_strings(v)
    elif isinstance(value, list):
        for v in value:
            plain_strings(v)


def is_(a, b):
    assert a == b, "%.500r is not %.500r" % (a, b)


def has(text, part):
    assert part in text, "%.300r is not in %.800r" % (part, text)


def need(*commands):
    for command in commands:
        if not shutil.which(command):
            raise Skip("no %s" % command)


def driver(name):
    return os.path.join(DRIVERS, name)


def run_tests(names):
    """Every function of the caller's module that is a promise. Arguments choose by part of a name."""
    tests = [(n, f) for n, f in names.items()
             if callable(f) and n.count("_") >= 2 and not n.startswith("_")]
    chosen = [t for t in tests if not sys.argv[1:] or any(a in t[0] for a in sys.argv[1:])]
    for n, f in chosen:
        yield n.replace("_", " "), f


def report(tests):
    """TAP of (sentence, function) pairs."""
    count = failed = 0
    for sentence, test in tests:
        count += 1
        at = time.monotonic()
        back = os.getcwd()
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                test()
                print("ok %d - %s" % (count, sentence))
            except Skip as why:
                print("ok %d - %s # SKIP %s" % (count, sentence, why))
            except Exception as e:
                failed = 1
                print("not ok %d - %s" % (count, sentence))
                lines = ("%s: %s" % (type(e).__name__, e)).split("\n")
                lines += TALKS[-1].cell.err.decode("utf-8", "replace").split("\n")[-12:] if TALKS else []
                where = e.__traceback__
                while where is not None:
                    lines.append("%s:%d" % (os.path.basename(where.tb_frame.f_code.co_filename), where.tb_lineno))
                    where = where.tb_next
                print("\n".join("#   " + line[:1500] for line in lines))
            finally:
                os.chdir(back)
        if "TALK_TIMES" in os.environ:
            print("# %.0f ms" % ((time.monotonic() - at) * 1000))
        sys.stdout.flush()
    print("1..%d" % count)
    return failed
