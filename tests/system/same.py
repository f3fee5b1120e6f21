#!/usr/bin/python3
"""same.py - programs that end in every way, for same.sh: each is run by an interpreter that waited and
by a fresh one, and the program must not be able to distinguish the two.

	same.py items		the items of a batch
	same.py compare FILE	its results; prints what differs"""
import json
import re
import sys

PROGRAMS = {
    "plain": 'print(1)',
    "exit0": 'import sys; sys.exit()',
    "exit3": 'import sys; print("x"); sys.exit(3)',
    "exitmsg": 'import sys; sys.exit("bad thing")',
    "exitneg": 'import sys; sys.exit(-1)',
    "exitfloat": 'raise SystemExit(1.5)',
    "exitlist": 'raise SystemExit([1])',
    "exittuple": 'raise SystemExit((1,2))',
    "exittrue": 'import sys; sys.exit(True)',
    "raise": 'raise ValueError(7)',
    "syntax": 'def (',
    "del": """class A:
  def __del__(self): print("del", __name__ if __name__ else None)
a=A()""",
    "delfn": """class A:
  def __init__(s,n): s.n=n
  def __del__(self): print("del", self.n)
a=A(1)
b=A(2)
_c=A(3)
def f(): return a""",
    "delglobal": """import os
X=5
class A:
  def __del__(self): print(X, os)
a=A()""",
    "cycle": """class A:
  def __del__(self): print("cyc")
a=A(); a.me=a; del a
b=A(); b.me=b""",
    "atexit": """import atexit
atexit.register(print,"bye")
atexit.register(lambda: 1/0)
print("hi")""",
    "atexit_exit": """import atexit,sys
atexit.register(lambda: sys.exit(5))
print("hi")""",
    "thread": """import threading,time
def f():
  time.sleep(0.1); print("thread")
threading.Thread(target=f).start()
print("main")""",
    "daemon": """import threading,time
def f():
  time.sleep(5); print("thread")
threading.Thread(target=f,daemon=True).start()
print("main")""",
    "pool": """from concurrent.futures import ThreadPoolExecutor
e=ThreadPoolExecutor(2)
f=e.submit(print,"in pool")""",
    "mp": """import multiprocessing as m
def f(x): return x*x
if __name__=="__main__":
  with m.Pool(2) as p: print(p.map(f,[1,2,3]))""",
    "asyncio": """import asyncio
async def f():
  await asyncio.sleep(0.01); print("a")
asyncio.run(f())""",
    "log": """import logging
logging.warning("w")""",
    "noflush": """import sys
sys.stdout.write("no newline")""",
    "closed": """import sys
sys.stdout.close()""",
    "none": """import sys
print(1)
sys.stdout=None""",
    "stdoutbad": """import sys
class B:
  closed=False
  def write(s,x): pass
  def flush(s): raise OSError("no")
sys.stdout=B()""",
    "gen": """def g():
  try:
    yield 1
  finally:
    print("fin")
x=g(); next(x)""",
    "tmp": """import tempfile
t=tempfile.TemporaryDirectory()
print("ok")""",
    "weak": """import weakref
class A: pass
a=A()
weakref.finalize(a,print,"finalized")""",
    "kbd": 'raise KeyboardInterrupt',
    "sig": """import os,signal
os.kill(os.getpid(),signal.SIGTERM)""",
    "int": """import os,signal
os.kill(os.getpid(),signal.SIGINT)
import time; time.sleep(1)""",
    "abort": 'import os; os.abort()',
    "osexit": 'import os; print("x",flush=True); os._exit(9)',
    "file": """f=open("o","w"); f.write("hello")
import atexit
atexit.register(lambda: print(open("o").read()))""",
    "recur": """def f(): f()
f()""",
    "warn": 'open("o2","w")',
    "sub": """import subprocess
print(subprocess.run(["echo","x"],capture_output=True).stdout)""",
    "excepthook": """import sys
sys.excepthook=lambda *a: print("hook",a[0].__name__)
1/0""",
    "chain": """try:
  1/0
except Exception:
  raise KeyError("k")""",
    "main": """import __main__,sys
print(__main__.__file__, __name__, sys.argv, __spec__, __builtins__.__name__)""",
    "traces": """import gc,os,sys
print(sys.path, sys.argv, sys.orig_argv, os.getcwd(), dict(os.environ), sys.exc_info(), gc.garbage)
print(os.listdir("/proc/self/fd"), os.umask(0), sys.stdout.buffer.raw, sys.getrecursionlimit())
print([o for o in gc.get_objects() if getattr(o, "__module__", None) == "trial"])""",
    "stdin": 'print(input())',
    "vars": 'print(sorted(k for k in globals()), __builtins__.__name__, type(__loader__).__name__, __spec__, __doc__, __annotations__)',
    "ann": """x: int = 1
print(__annotations__)""",
    "pickle": """import pickle
class A: pass
print(type(pickle.loads(pickle.dumps(A()))))""",
    "own": """open("mod.py","w").write("class B:\\n  def __del__(s): print(5)\\nb=B()")
import sys; sys.path.insert(0,"/home/user")
import mod""",
    "dataclass": """from dataclasses import dataclass
@dataclass
class P:
  x:int
print(P(3))""",
    "typing": """from typing import get_type_hints
class P:
  x:"P"
print(get_type_hints(P))""",
    "inspect": """import inspect
def f(): pass
print(inspect.getsource(f))""",
    "unittest": """import unittest
class T(unittest.TestCase):
  def test(self): self.assertEqual(1,2)
unittest.main(argv=["x"])""",
    "doctest": """\"\"\"
>>> 1+1
2
\"\"\"
import doctest
print(doctest.testmod())""",
    "held": """import builtins,sys
class A:
  def __del__(s): print("del")
a=A()
builtins.kept=sys.modules["__main__"]""",
    "nogc": """import gc
gc.disable()
class A:
  def __del__(s): print("del")
a=A(); a.me=a""",
    "nostdout": """import sys
print("x"); del sys.stdout""",
    "nomain": """import sys
sys.modules["__main__"]=3""",
    "gonemain": """import sys
del sys.modules["__main__"]""",
    "flushraises": """import sys
class B:
  closed=False
  def write(s,x): return len(x)
  def flush(s): return s.inner()
  def inner(s): raise OSError("no")
sys.stderr.flush(); sys.stdout=B()""",
    "flushhook": """import sys
class B:
  closed=False
  def write(s,x): return len(x)
  def flush(s): raise OSError("no")
sys.unraisablehook=lambda a: print("hook", a.exc_value, a.err_msg, a.object is sys.stdout, file=sys.stderr)
sys.stdout=B()""",
    "closedraises": """import sys
class B:
  @property
  def closed(s): raise OSError("no")
sys.stdout=B()""",
    "after": """import sys
class A:
  def __del__(s): sys.stdout.write("late")
a=A(); b=[a]; b.append(b)""",
    "weakcall": """import weakref
class A: pass
a=A(); r=weakref.ref(a, lambda _: print("gone"))""",
    "ids": """import threading,os
print(threading.main_thread().native_id == threading.get_native_id(), threading.current_thread().ident == threading.get_ident())
print(sorted(threading.main_thread().__dict__))""",
    "paths": """import sys,os
print(sys.argv, sys.orig_argv, sys.path, os.getcwd(), __file__, __cached__, __loader__.name, __loader__.path)
print(list(globals()))""",
    "buffering": """import os,sys
print(sys.stdout.line_buffering, sys.stdout.write_through, sys.stderr.line_buffering, os.environ.get("PYTHONPATH"))
print(any("atoll" in p for p in [*sys.path, *sys.path_importer_cache]), sys.flags)
print(sys.modules.get("sitecustomize", sys).__name__)
sys.stdout.write("held back, and lost"); os.kill(os.getpid(), 9)""",
    "forked": """import os
print("once")
if os.fork() == 0: print("child"); os._exit(0)
os.wait()""",
    "warnm": """import warnings
warnings.warn("w")""",
}
PLAIN = ["/usr/bin/python3", "/home/user/main.py"]
ROW = {"PYTHONPATH": "/opt/atoll/python"}  # of runtimes/python.toml


def items():
    for name, code in PROGRAMS.items():
        # No program exits with this status: print both streams.
        both = {"stdin": "in\n", "timeout_ms": 30000, "expected": {"exit_code": 77}}
        print(json.dumps({"id": name + ":waited", "language": "python", "code": code, **both}))
        print(json.dumps({"id": name + ":fresh", "command": PLAIN, "env": ROW, "files": {"main.py": code}, **both}))


def end_of(result):
    """Without addresses and times, which no two runs share."""
    text = re.sub("0x[0-9a-f]+|in [0-9.]+s", "...", result.get("stderr", ""))
    return result.get("exit_code"), result.get("signal"), result.get("stdout"), text


def compare(path):
    with open(path) as file:
        lines = [json.loads(line) for line in file]
    results = {line["id"]: line for line in lines if line["type"] == "result"}
    for name in PROGRAMS:
        waited, fresh = (end_of(results[name + way]) for way in (":waited", ":fresh"))
        if waited != fresh:
            print("%s: %r, and not %r" % (name, waited, fresh))


if sys.argv[1] == "items":
    items()
else:
    compare(sys.argv[2])
