"""Does a program pass these calls? Two processes: one that has the program and does not know what is expected,
and one that knows it and never has the program. The output of the first one is a text and is never evaluated.

stdin: {"source", "name", "calls": [text], "expected": [text], "word": a random text}
stdout: the word, a blank, and a 1 or a 0 for each call."""
import ast
import ctypes
import json
import math
import os
import re
import resource
import signal
import sys
import types

SAID_MOST = 256 * 1024  # bytes of a value
LIMIT_S = 2             # of a call, computing; one that waits has
WALL_S = 10
PR_SET_DUMPABLE = 4


def plain(v):
    """the value without its class: a Counter is a dict here"""
    for kind in (bool, int, float, str):
        if isinstance(v, kind):
            return kind(v)
    if isinstance(v, dict):
        return {plain(k): plain(x) for k, x in v.items()}
    for kind in (list, tuple, set, frozenset):
        if isinstance(v, kind):
            return kind(plain(x) for x in v)
    return v


def answer(code, name, call, to):
    """in a process of its own, which ends here"""
    try:
        signal.setitimer(signal.ITIMER_PROF, LIMIT_S)
        signal.setitimer(signal.ITIMER_REAL, WALL_S)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        module = types.ModuleType(re.sub(r"\W", "_", name.rsplit(".", 1)[0]))
        module.__file__ = name
        sys.modules[module.__name__] = module
        exec(code, module.__dict__)
        got = eval(call.strip(), module.__dict__)
        said = json.dumps([repr(plain(got)), str(got)]).encode()
        with open(to, "wb") as f:
            f.write(said if len(said) < SAID_MOST else b"")
    finally:
        os._exit(0)


def read_all(fd):
    said = b""
    while len(said) < SAID_MOST:
        piece = os.read(fd, 65536)
        if not piece:
            break
        said += piece
    os.close(fd)
    return said


def evaluate(asks, says):
    """has the program: a JSON list for each call, or an empty line"""
    ask = json.loads(asks.readline())
    code = compile(ask["source"], ask["name"], "exec")
    for call in ask["calls"]:
        r, w = os.pipe()
        pid = os.fork()
        if not pid:
            os.close(r)
            answer(code, ask["name"], call, w)
        os.close(w)
        said = read_all(r)
        os.waitpid(pid, 0)
        says.write(said.replace(b"\n", b" ") + b"\n")
        says.flush()


def same(said, expected):
    """said is [repr, str] of the value; both are texts from an enemy"""
    try:
        shown, text = json.loads(said)
        if expected.strip() in (shown, text):
            return True
        want = eval(expected, {"math": math, "inf": math.inf, "nan": math.nan})
        return shown == repr(want) or ast.literal_eval(shown) == want
    except Exception:
        return False


def main():
    ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)  # before there is a secret: our memory is ours
    ask_r, ask_w = os.pipe()
    say_r, say_w = os.pipe()
    sys.path.insert(0, os.getcwd())
    if not os.fork():
        os.close(ask_w)
        os.close(say_r)
        nothing = os.open("/dev/null", os.O_RDWR)
        for fd in range(3):
            os.dup2(nothing, fd)
        try:
            evaluate(os.fdopen(ask_r, "rb"), os.fdopen(say_w, "wb"))
        finally:
            os._exit(0)
    os.close(ask_r)
    os.close(say_w)
    ask = json.load(sys.stdin)  # only now: the other one has no copy of it
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    try:
        with os.fdopen(ask_w, "wb") as f:
            f.write(json.dumps({k: ask[k] for k in ("source", "name", "calls")}).encode() + b"\n")
    except BrokenPipeError:
        pass
    with os.fdopen(say_r, "rb") as f:
        bits = "".join("01"[same(f.readline(SAID_MOST), want)] for want in ask["expected"])
    print(ask["word"], bits)


if __name__ == "__main__":
    main()
