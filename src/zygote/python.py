# What a Python zygote loads before it forks, and how a fork of it becomes a program.
# python.c runs this file twice, in a module of its own: first for load(), then, after the heap was
# compacted, for everything else. So the objects that children use are adjacent in memory, not in the
# gaps that loading has left.
#
# Using an object changes its reference count, and in a fork that copies a page. So the code that every
# child executes is short and uses few objects of the library.
import _random
import _thread
import atexit
import gc
import io
import logging
import os
import random
import stat
import sys
import threading
import weakref
from importlib.machinery import SourceFileLoader
from itertools import islice

# What small programs import. All of it is in the standard library; what an installation lacks is
# left out.
COMMON = """abc argparse ast asyncio base64 bisect collections collections.abc contextlib copy csv
dataclasses datetime decimal enum fractions functools glob hashlib heapq importlib.util inspect io
itertools json linecache logging math numbers operator pathlib pickle pprint queue random re shutil
signal statistics string struct subprocess tempfile textwrap threading time timeit tokenize traceback
types typing unittest urllib.parse uuid warnings weakref""".split()
DATA = "numpy pandas matplotlib.pyplot".split()
DRIVER = "/opt/atoll/python.py"
CHANNEL = 3

driver = None


def load_modules(names):
    loaded = 0
    for name in names:
        try:
            __import__(name)
            loaded += 1
        except ImportError:
            pass
    return loaded


def load_driver():
    global driver
    try:
        with open(DRIVER, "rb") as f:
            code = compile(f.read(), DRIVER, "exec")
    except OSError:
        return
    driver = type(sys)("_atoll_driver")
    driver.__file__ = DRIVER
    exec(code, driver.__dict__)
    driver.preload()


exits = [] # exit functions that the library registered while it was loaded


def load(kind):
    real = atexit.register
    if atexit._ncallbacks() == 1: # registered by an import of this file
        atexit._clear()
        exits.append((logging.shutdown, (), {}))

    def register(f, *args, **kwargs):
        exits.append((f, args, kwargs))
        return f

    atexit.register = register
    load_modules(COMMON)
    if kind == "python-data":
        os.environ["MPLBACKEND"] = "agg"
        if not load_modules(DATA):
            return 1
    load_driver()
    atexit.register = real
    sys.modules["_atoll_driver"] = driver, exits
    del sys.modules["_atoll_zygote"]
    return 0


def settle():
    global before, driver, exits, handlers, other_exits
    driver, exits = sys.modules.pop("_atoll_driver")
    handlers = len(logging._handlerList)
    sys.stdout.reconfigure(line_buffering=True) # as on a terminal
    other_exits = [row for row in exits if row[0] is not logging.shutdown]
    set_environment(USUAL)
    for _ in range(12): # after that Python has specialised the bytecode of these functions
        rehearse()
    del sys.modules["_atoll_zygote"]
    before = len(sys.modules)
    gc.collect()
    gc.freeze()
    fresh_main()
    plain.append((sys.argv, sys.orig_argv, sys.modules["__main__"].__dict__["__loader__"]))
    become(ASSUMED)
    return 0


# The environment of a program without variables of the request.
NO_REGISTRY = b"http://127.0.0.1:1/no-registry-is-configured-for-this-box/see-"
USUAL = [b"PATH=/home/user/.local/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/atoll/bin",
         b"HOME=/home/user", b"USER=user", b"LOGNAME=user", b"SHELL=/bin/bash", b"LANG=C.UTF-8",
         b"NPM_CONFIG_PREFIX=/home/user/.local", b"PIP_INDEX_URL=" + NO_REGISTRY + b"packages.pip_index",
         b"NPM_CONFIG_REGISTRY=" + NO_REGISTRY + b"packages.npm_registry", b"NPM_CONFIG_FETCH_RETRIES=0"]
# Packages that pip has installed for the user: only a fresh interpreter has their folder in its path.
USER_LIB = b"/home/user/.local/lib"
# The language file (runtimes/python.toml) adds this: it makes stdout of a plain start line-buffered. In a fork stdout
# is line-buffered already. The variable is removed, as in a plain start.
SITE = b"PYTHONPATH=/opt/atoll/python"
REHEARSAL = b"\0".join([b"/home/user", b"2", b"/usr/bin/python3", b"/home/user/none.py"] + USUAL + [SITE]) + b"\0"
# The most frequent start message. The zygote is prepared for it, so that a child only has to compare.
ASSUMED = b"\0".join([b"/home/user", b"2", b"/usr/bin/python3", b"/home/user/main.py"] + USUAL + [SITE]) + b"\0"
plain = [] # the values before that preparation
TRIAL = """import sys
class A:
    def f(self):
        return [i for i in range(3)]
print(*A().f()[3:], end='')
"""


def rehearse():
    """Executes the code that every program executes."""
    become(REHEARSAL)
    del sys.path[0]
    exec(compile(TRIAL, "<trial>", "exec"), {"__name__": "trial"})
    for name in DATA:
        if name in sys.modules:
            __import__(name)
    flush(sys.stdout)
    flush(sys.stderr)
    return 0


def warm_up():
    """In a pooled child: executes the code that every program executes, and leaves no trace."""
    become_other(ASSUMED)
    return 0


def warmed_up():
    sink.seek(0)
    sys.stdout.buffer.raw.write(b"") # writes no byte, but executes the code
    flush(sys.stdout)
    return 0


def reseed_numpy():
    sys.modules["numpy"].random.seed()


def plainly(argv, env=()):
    try:
        if SITE in env:
            os.environb[b"PYTHONPATH"] = SITE.partition(b"=")[2]
        os.execvp(argv[0], argv)
    except OSError as e:
        os.write(2, ("%s: %s\n" % (argv[0], e.strerror)).encode(errors="replace"))
        os._exit(126 if e.errno == 13 else 127)


def set_environment(pairs):
    want = dict(pair.split(b"=", 1) for pair in pairs if b"=" in pair[1:])
    have = os.environb
    for key in [key for key in have if key not in want]:
        del have[key]
    for key, value in want.items():
        if have.get(key) != value:
            have[key] = value


def special(argv, env):
    """True for arguments and variables that only a fresh interpreter can apply."""
    if len(argv) < 2:
        return True
    if argv[1].startswith(b"-") and (argv[1] != b"-c" or len(argv) < 3):
        return True
    return any(e.startswith(b"PYTHON") and not e.startswith(b"PYTHONPATH=") for e in env)


def add_python_path():
    """As a fresh interpreter does it: before the folders of the installation."""
    at = 0
    for folder in os.environ.get("PYTHONPATH", "").split(":"):
        if folder:
            sys.path.insert(at, folder)
            at += 1


def folder_of(path, argv, env):
    """The folder of its modules. A folder or an archive is executed by a fresh interpreter."""
    folder = path.rpartition("/")[0]
    try:
        mode = lstat(path).st_mode
    except OSError:
        return folder
    if is_file(mode) and folder == "/home/user":
        return folder
    if os.path.isdir(path):
        plainly(argv, env)
    return os.path.dirname(os.path.realpath(path))


def fresh_main():
    """A __main__ that the garbage collector examines: it skips objects from before the fork."""
    old = sys.modules["__main__"].__dict__
    new = sys.modules["__main__"] = type(sys)("__main__")
    for name in "__doc__", "__package__", "__loader__", "__spec__", "__annotations__", "__builtins__":
        new.__dict__[name] = old.get(name)
    new.__dict__["__annotations__"] = {}


def text(word):
    return word.decode() if word.isascii() else os.fsdecode(word)


def become(words):
    """0: run the file argv[1]; 1: run the driver; 2: run the code argv[2]. Does not return if it
    executes a fresh interpreter."""
    parts = words.split(b"\0")[:-1]
    argc = int(parts[1])
    argv, told = parts[2:2 + argc], parts[2 + argc:]
    env = [pair for pair in told if pair != SITE]
    if env != USUAL:
        set_environment(env)
    chdir(parts[0] or b"/home/user")
    own = os.access(USER_LIB, 0)
    if argv[1:] == DRIVEN:
        if driver is not None and not own:
            return 1
        os.set_inheritable(CHANNEL, True)
        plainly(argv)
    if own or special(argv, env if env != USUAL else ()):
        plainly(argv, told)
    if env != USUAL:
        add_python_path()
    path = text(argv[1])
    sys.argv = [text(a) for a in argv[1:]]
    sys.orig_argv = [text(a) for a in argv]
    if path == "-c":
        del sys.argv[1]
        sys.path.insert(0, "")
        return 2
    sys.path.insert(0, folder_of(path, argv, told))
    main = sys.modules["__main__"].__dict__
    main["__file__"] = path
    main["__cached__"] = None
    main["__loader__"] = Loader("__main__", path)
    return 0


def become_other(words):
    """As become(), if the start message is not the prepared one."""
    main = sys.modules["__main__"].__dict__
    del sys.path[0], main["__file__"], main["__cached__"]
    sys.argv, sys.orig_argv, main["__loader__"] = plain[0]
    return become(words)


# ---- the exit ----
#
# Finalising an interpreter writes to all its objects, and every page that is written in a fork is
# copied: that takes longer than most programs. So a fork finalises what the program created, in the
# order of Python, and leaves what the zygote had loaded to the kernel.


def asked_for(e):
    """The status of a SystemExit."""
    code = e.code
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 255
    print(code, file=sys.stderr)
    return 1


def is_closed(stream):
    try:
        return bool(stream.closed)
    except BaseException: # treated as open
        return False


def flush(stream):
    """False: it failed, and the error was reported."""
    try:
        if stream is not None and not is_closed(stream):
            stream.flush()
        return True
    except BaseException as e:
        complain_of(e, stream, e.__traceback__ and e.__traceback__.tb_next)
        return False


def complain(e, about, trace, words=None):
    """Reports an exception as the interpreter does it at its exit."""
    try:
        sys.unraisablehook(unraisable((type(e), e, trace, words, about)))
    except BaseException:
        pass


def complain_of(e, stream, trace):
    if sys.version_info < (3, 13):
        complain(e, stream, trace)
    else: # newer versions name the stream
        complain(e, None, trace, "Exception ignored on flushing sys.stdout")


def kind_of_complaint():
    """The type of the argument of sys.unraisablehook, which has no public name."""
    class Bad:
        def __del__(self):
            raise ValueError

    seen, was = [], sys.unraisablehook
    sys.unraisablehook = lambda given: seen.append(type(given))
    Bad()
    sys.unraisablehook = was
    return seen[0]


def clear(module):
    names = module.__dict__
    for private in True, False:
        for key in list(names):
            if isinstance(key, str) and key != "__builtins__" and (not private or (key[:1] == "_" and key[1:2] != "_")):
                names[key] = None


def drop_modules():
    """Destroys the modules of the program, so that its destructors run now."""
    # The modules that were loaded last; the others are not touched, so that no page is copied.
    names = ["__main__", *islice(reversed(sys.modules), max(0, len(sys.modules) - before))]
    alive = []
    for name in names:
        try:
            alive.append(reference(sys.modules[name]))
        except (KeyError, TypeError):
            pass
        sys.modules[name] = None
    found = collect()
    for ref in alive:
        module = ref()
        if module is not None:
            clear(module)
            found = True
    module = None
    if found: # more objects may be unreachable now
        collect()


chdir, lstat, is_file, Loader = os.chdir, os.lstat, stat.S_ISREG, SourceFileLoader
DRIVEN = [os.fsencode(DRIVER)]
# One dictionary instead of two; and a small number as native id, which is never freed.
threading.main_thread().__dict__ = main_thread = {**threading.main_thread().__dict__, "_native_id": 0}
none, threads = None, _thread._count
reseed_generator = _random.Random.seed.__get__(random._inst)
more_random = reseed_numpy if "numpy" in sys.modules else None
thread_exits = getattr(threading, "_threading_atexits", None)
collect, unraisable, reference = gc.collect, kind_of_complaint(), weakref.ref
exit_count, open_handlers = atexit._ncallbacks, logging._handlerList
before = handlers = 0
other_exits = []
sink = io.TextIOWrapper(io.BytesIO())


def attempt(step, *args, **kwargs):
    try:
        step(*args, **kwargs)
    except BaseException as e:
        complain(e, step, e.__traceback__ and e.__traceback__.tb_next)


def leave(status):
    if threads() or thread_exits or thread_exits is None:
        attempt(threading._shutdown)
    if exit_count():
        attempt(atexit._run_exitfuncs)
    steps = other_exits if len(open_handlers) == handlers else exits
    for step, args, kwargs in reversed(steps): # the first registered runs last
        attempt(step, *args, **kwargs)
    if not flush(sys.stdout):
        status = 120
    flush(sys.stderr)
    try:
        drop_modules()
    except BaseException as e:
        complain(e, drop_modules, e.__traceback__ and e.__traceback__.tb_next)
    for stream in sys.__stdout__, sys.__stderr__: # output of destructors; and the original streams
        flush(stream)
    return status


def drive(sock):
    driver.main(sock)
