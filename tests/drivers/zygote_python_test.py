#!/usr/bin/env python3
"""zygote_python_test.py - a context in a Python that has waited is as fresh as one in a Python that was started for it."""
import os
import struct
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from talk import Talk, driver, has, is_, need, report, run_tests  # noqa: E402

PYTHON = "/usr/bin/python3"
ENV = {"PATH": os.environ["PATH"], "HOME": "/", "ONLY": "this"}
STATE = """
import builtins, gc, linecache, os, signal, sys, threading
sorted(vars(builtins)), sorted(n for n in globals() if n[:1] != "_"), sys.argv, sys.path[0], sorted(linecache.cache), \\
    [getattr(f, "__name__", type(f).__name__) for f in sys.meta_path], len(os.listdir("/proc/self/fd")), threading.active_count(), \\
    [os.readlink("/proc/self/fd/%d" % fd)[:5] for fd in range(3)], signal.getsignal(signal.SIGINT).__name__, \\
    type(sys.stdout).__name__, type(sys.__stdout__).__name__, sys.stdout.line_buffering, input.__name__, \\
    [m for m in gc.get_objects() if type(m) is type(sys) and m.__name__ == "__main__" and hasattr(m, "x")]
"""


def waited(mode):
    """A driver in a Python that has waited in this mode."""
    need(PYTHON)
    t = Talk(PYTHON, driver("zygote_python.py"), mode)
    argv = ["python3", os.path.abspath(driver("python.py"))]
    words = ["/", str(len(argv))] + argv + ["%s=%s" % pair for pair in ENV.items()]
    body = b"".join(w.encode() + b"\0" for w in words)
    t.channel.sendall(struct.pack("<I", len(body)) + body)
    is_(t.ready()["language"], "python")
    t.drain()
    is_((t.cell.out, t.cell.err), (b"", b""))
    return t


def fresh():
    need(PYTHON)
    t = Talk(PYTHON, driver("python.py"))
    t.ready()
    return t


def a_rehearsal_leaves_nothing_that_a_cell_can_see():
    with fresh() as t:
        usual = t.run(STATE).text
    for mode in ("small", "cells"):
        with waited(mode) as t:
            cell = t.run(STATE)
            is_((cell.status, cell.text, cell.out, cell.err), ("ok", usual, b"", b""))
            has(t.run("1 / 0").error["text"], "<cell 2>")


def a_rehearsal_uses_no_random_number():
    first = []
    for _ in range(2):
        with waited("cells") as t:
            first.append(t.run("import random; random.random()").text)
    assert first[0] != first[1], first


def a_small_one_has_no_asyncio_and_awaits_nevertheless():
    with waited("small") as t:
        is_(t.run("import sys; 'asyncio' in sys.modules, 'ssl' in sys.modules").text, "(False, False)")
        is_(t.run("import asyncio\nawait asyncio.sleep(0, 5)").text, "5")


def what_a_cell_has_printed_and_forked_reaches_the_context_once():
    with waited("small") as t:
        is_(t.run("print('once')").out, b"once\n")
        cell = t.run("import os, sys\nif os.fork() == 0: print('child'); sys.stdout.flush(); os._exit(0)\nos.wait()[1]")
        is_((cell.out, cell.text), (b"child\n", "0"))


if __name__ == "__main__":
    sys.exit(report(run_tests(globals())))
