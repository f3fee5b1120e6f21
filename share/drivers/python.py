"""python.py - runs cells of Python, one after the other, in one namespace.

    front  ── run, input ──►  channel (a socket)  ──►  serve() ── run_cell() ── user's code
           ◄── ready, result, input, error, end ──┘        stdout, stderr: plain descriptors 1, 2

The lines on the channel are those of docs/languages.md. A program that loads this file as a module calls
main(fd); loading alone changes nothing.

The user's code lives in the same process and may break anything: it may delete builtins, patch os
and sys, close descriptors, replace signal handlers, fork. So this file keeps private references to
all that it uses, has a copy of the builtins of its own, and puts right what it needs before each
cell. What it does not survive is what no interpreter survives: os._exit, a crash, a kill.

An interrupt is SIGINT. It becomes KeyboardInterrupt only in frames that are not of this file, so
that no line on the channel is ever torn; one that arrives in between is remembered (S.pending) and
raised as soon as the user's code would continue.
"""
import _json
import _signal
import _thread
import binascii
import builtins
import fcntl
import io
import os
import select
import sys
from _ast import Expr, Expression
from _signal import SIG_UNBLOCK, SIGINT
from errno import EINVAL, EMFILE
from fcntl import F_DUPFD_CLOEXEC
from select import POLLIN

# Functions take their builtins from their module's globals: ours survive `del builtins.len`.
__builtins__ = dict(vars(builtins))

_os_read, _os_write, _os_close = os.read, os.write, os.close
_os_getpid, _os_fstat = os.getpid, os.fstat
_os_dup2, _os_exit, _os_open, _os_set_blocking = os.dup2, os._exit, os.open, os.set_blocking
_environ = os.environ
_signal_signal, _sigmask = _signal.signal, _signal.pthread_sigmask
_settrace, _setprofile = sys.settrace, sys.setprofile
_recursion, _set_recursion = sys.getrecursionlimit, sys.setrecursionlimit
_modules = sys.modules
_thread_id = _thread.get_ident
_fcntl, _poll = fcntl.fcntl, select.poll
_compile, _eval = compile, eval
_io_open, _bytes_io, _b64 = io.open, io.BytesIO, binascii.b2a_base64
_ascii_string, _make_scanner = _json.encode_basestring_ascii, _json.make_scanner

LINE_MAX = 16 << 20      # one line on the channel, both ways
TEXT_MAX = 1 << 20       # text/plain of a result
JSON_MAX = 4 << 20       # application/json of a list or dict, and `data` of a frame
ERROR_MAX = 256 << 10    # a traceback, and the value of an error
FRAMES_MAX = 100         # of a traceback, half of them from each end
SOURCES_MAX = 1000       # cells whose text is kept for tracebacks
WAITING_MAX = 64         # cells that may arrive while one waits for input
DEPTH_MAX = 64           # of nested JSON
HIGH_FD = 200            # ours live above what a program closes by counting from 3

ONLY_AST = 0x400
TOP_LEVEL_AWAIT = 0x2000
CO_COROUTINE = 0x80
# `from __future__ import annotations` holds for the cells after it, as in the shell.
FUTURE_FLAGS = 0x1000000

GLOBALS = globals()
OWN_FILE = (lambda: 0).__code__.co_filename


class State:
    """The state of the process. An instance, so that a zygote may load this file and start later."""

    def __init__(self):
        self.pid = -1
        self.keep = None         # the module __main__ before ours
        self.thread = 0
        self.channel = None
        self.cell = None         # the id of the cell that runs; None between cells
        self.count = 0
        self.user = False        # the user's code is running: an interrupt concerns it
        self.waiting = False     # ... and it waits in input()
        self.starting = False    # a cell has been read and is about to run
        self.pending = False     # an interrupt that has not been raised yet
        self.main = None         # the module __main__ of the cells
        self.loop = None         # the event loop, once a cell has awaited
        self.flags = 0           # of __future__
        self.sources = {}        # "<cell 3>": its text
        self.saved = {}          # descriptors 0..2, as they were
        self.streams = {}        # sys.stdin, stdout and stderr, as we made them
        self.shown = []          # figures that this cell has displayed already
        self.last = None         # what _ was when we set it
        self.displays = 0        # names given to displays


S = State()


# JSON ------------------------------------------------------------------------------------------
#
# The reader at the other end is strict: no NUL and no half of a surrogate pair in a string, no
# integer beyond 64 bits, no NaN. They are escaped here, as a repr would.

class Unrepresentable(Exception):
    pass


def clean(text):
    text = str.__str__(text)
    if "\0" in text:
        text = text.replace("\0", "\\x00")
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            text = text.encode("utf-8", "backslashreplace").decode()
    return text


def put_json(value, out, room, depth=0):
    """Appends the pieces of a value; returns the room that is left. Raises Unrepresentable."""
    if value is None:
        piece = "null"
    elif value is True:
        piece = "true"
    elif value is False:
        piece = "false"
    elif isinstance(value, str):
        piece = _ascii_string(clean(value))
    elif isinstance(value, int):
        whole = int.__int__(value)
        piece = int.__repr__(whole) if -(1 << 63) <= whole < 1 << 63 else _ascii_string(str(whole))
    elif isinstance(value, float):
        number = float.__float__(value)
        piece = float.__repr__(number) if number - number == 0 else "null"
    elif isinstance(value, (list, tuple, dict)):
        return put_container(value, out, room, depth)
    else:
        return put_json(plain(value), out, room, depth + 1)
    out.append(piece)
    if room < len(piece):
        raise Unrepresentable("too large")
    return room - len(piece) - 1


def put_container(value, out, room, depth):
    if depth > DEPTH_MAX:
        raise Unrepresentable("too deep")
    between = ""
    if isinstance(value, dict):
        out.append("{")
        names = set()
        for key in value:
            name = clean(key_of(key))
            if name in names:
                raise Unrepresentable("two keys of one name") # 1 and "1"
            names.add(name)
            out.append(between + _ascii_string(name) + ":")
            room = put_json(value[key], out, room - len(out[-1]), depth + 1)
            between = ","
        out.append("}")
    else:
        out.append("[")
        for item in value:
            out.append(between)
            room = put_json(item, out, room, depth + 1)
            between = ","
        out.append("]")
    return room - 2


def key_of(key):
    if isinstance(key, str):
        return key
    if key is None or isinstance(key, (bool, int, float)):
        return to_json(key)
    raise Unrepresentable("key")


def plain(value):
    """A scalar of a library as JSON."""
    kind = type(value)
    if kind.__module__.partition(".")[0] in ("numpy", "pandas", "datetime"):
        for method in ("isoformat", "tolist", "item"):
            found = getattr(kind, method, None)
            if found is not None:
                return found(value)
    if kind.__module__ == "decimal":
        return float(value)
    raise Unrepresentable(kind.__name__)


def to_json(value, room=LINE_MAX):
    out = []
    put_json(value, out, room)
    return "".join(out)


class _Scanner:
    strict = False
    object_hook = object_pairs_hook = array_hook = None
    parse_float, parse_int, parse_constant = float, int, float
    memo = {}


_scan = _make_scanner(_Scanner())


def from_json(line):
    """An object, or None."""
    try:
        text = line.decode("utf-8").strip()
        value, end = _scan(text, 0)
    except Exception: # of many kinds: the scanner is written in C and meant for its own module
        return None
    return value if isinstance(value, dict) and end == len(text) else None


# The channel -----------------------------------------------------------------------------------

class Gone(BaseException):
    """The server has closed the channel, or the user's code has closed our descriptor."""


class TooLong:
    """A line beyond LINE_MAX: its two ends, where its id may be found."""

    def __init__(self, head, tail):
        self.id = b""
        for part in (head, tail):
            _, found, rest = part.replace(b'"id": "', b'"id":"').partition(b'"id":"')
            if found and not self.id:
                self.id = rest.partition(b'"')[0][:100]


class Channel:
    def __init__(self, fd):
        self.fd = raise_fd(fd)
        _os_set_blocking(self.fd, True)
        self.ident = self.identity()
        self.got = bytearray()
        self.waiting = []       # lines that were read while another line was expected
        self.lock = _thread.allocate_lock()

    def identity(self):
        try:
            st = _os_fstat(self.fd)
        except OSError:
            return None
        # Not the inode: a copy of this process in a forked box has another socket there.
        return st.st_dev, st.st_mode & 0o170000

    def readable(self, timeout_ms):
        poll = _poll()
        poll.register(self.fd, POLLIN)
        return bool(poll.poll(timeout_ms))

    def check(self):
        # A program that closes descriptors by number may have opened a file under ours.
        if self.ident is None or self.identity() != self.ident:
            raise Gone

    def fill(self):
        self.check()
        try:
            # Memory of a large piece is mapped and unmapped each time: most lines are short.
            piece = _os_read(self.fd, 1 << 20 if len(self.got) > 1 << 16 else 1 << 16)
        except OSError:
            raise Gone from None
        if not piece:
            raise Gone
        return piece

    def line(self, wait):
        """The next line. wait() returns when there is something to read."""
        seen, head = 0, b""
        while True:
            end = self.got.find(b"\n", seen)
            if end >= 0:
                S.starting = True # before the bytes go: one of the two must tell on_interrupt
                line = bytes(self.got[:end])
                del self.got[:end + 1]
                return TooLong(head, line[-4096:]) if head else line
            if len(self.got) > LINE_MAX:
                head = head or bytes(self.got[:4096])
                del self.got[:-4096]
            seen = len(self.got)
            wait()
            self.got += self.fill()

    def send(self, line):
        data = memoryview(line.encode("ascii") + b"\n")
        with self.lock:
            self.check()
            while data:
                try:
                    data = data[_os_write(self.fd, data):]
                except OSError:
                    raise Gone from None


def raise_fd(fd, keep=False):
    """A copy of a descriptor, out of the way and closed by exec."""
    for least in (HIGH_FD, 10):
        try:
            high = _fcntl(fd, F_DUPFD_CLOEXEC, least)
        except OSError as e:
            if e.errno not in (EINVAL, EMFILE):
                raise
            continue
        if not keep:
            _os_close(fd)
        return high
    return fd


def emit(ev, **fields):
    if _os_getpid() != S.pid:
        return
    S.channel.send(to_json({"ev": ev, **fields}, LINE_MAX * 2))


def next_message():
    def wait():
        S.channel.readable(None)
        S.starting = True

    if S.channel.waiting:
        S.starting = True
        return S.channel.waiting.pop(0)
    return S.channel.line(wait)


# Interrupts ------------------------------------------------------------------------------------

def on_interrupt(signum, frame):
    if not S.user:
        # Nothing runs. But if a cell is on its way to us, it is the one that was meant.
        S.pending = S.starting or bool(S.channel.got) or S.channel.readable(0)
    elif frame is not None and frame.f_globals is GLOBALS and not S.waiting:
        S.pending = True
        # Raised by what of the user's runs next: it may wait without limit.
        while frame is not None and frame.f_globals is GLOBALS:
            frame = frame.f_back
        if frame is not None:
            frame.f_trace = trace_pending
        _settrace(trace_pending)
    else:
        S.pending = False
        raise KeyboardInterrupt


def trace_pending(frame, event, arg):
    if S.pending and S.user and frame.f_globals is not GLOBALS:
        S.pending = False
        _settrace(None)
        raise KeyboardInterrupt


def raise_pending():
    if S.pending and S.user and _thread_id() == S.thread:
        S.pending = False
        raise KeyboardInterrupt


def attempt(function, *args):
    """Calls something that is, or may call, the user's code: (value, None) or (None, exception)."""
    try:
        S.user = True
        raise_pending()
        value = function(*args)
        _settrace(None) # here, not in a function: a call would be traced
        S.user = False
        return value, None
    except Gone:
        raise
    except BaseException as e:
        _settrace(None)
        S.user = False
        return None, e


# Streams ---------------------------------------------------------------------------------------

class Stdin(io.TextIOBase):
    """sys.stdin of a cell: a line is asked for as input() asks."""
    encoding, errors, name, mode = "utf-8", "strict", "<stdin>", "r"

    def readable(self):
        return True

    def fileno(self):
        return 0

    def readline(self, size=-1):
        try:
            line = ask("", False) + "\n"
        except EOFError:
            return ""
        return line

    def __next__(self):
        line = self.readline()
        if not line:
            raise StopIteration
        return line

    def read(self, size=-1):
        raise io.UnsupportedOperation("a cell has no end of stdin to read to; use input()")


def new_stream(name, fd):
    if fd == 0:
        return Stdin()
    # By lines, as on a terminal: what is printed is seen, and one print is one write.
    return _io_open(fd, "w", buffering=1, encoding="utf-8", errors="backslashreplace",
                    newline="\n", closefd=False)


STREAMS = (("stdin", 0), ("stdout", 1), ("stderr", 2))


def adopt_streams():
    for name, fd in STREAMS:
        try:
            flush(getattr(sys, name, None))
            S.saved[fd] = raise_fd(fd, keep=True)
        except OSError:
            pass
        S.streams[name] = None
        restore_stream(name, fd)
        setattr(sys, "__%s__" % name, S.streams[name])


def restore_stream(name, fd):
    """What was closed is opened again; what was replaced is the user's business."""
    try:
        _os_fstat(fd)
    except OSError:
        try:
            _os_dup2(S.saved[fd], fd)
        except (KeyError, OSError):
            return
    ours, there = S.streams[name], getattr(sys, name, None)
    if ours is not None and not ours.closed and there is not None and not is_closed(there):
        return
    if ours is None or ours.closed:
        S.streams[name] = new_stream(name, fd)
    setattr(sys, name, S.streams[name])


def is_closed(stream):
    try:
        return stream.closed is True
    except BaseException:
        return False


def flush(stream):
    try:
        stream.flush()
    except (KeyboardInterrupt, Gone):
        raise
    except BaseException:
        pass


def flush_all():
    for name in ("stdout", "stderr"):
        there = getattr(sys, name, None)
        if there is not None:
            flush(there)
        if there is not S.streams.get(name):
            flush(S.streams.get(name))


def note(text):
    """A word to the user, where errors go."""
    try:
        print(text, file=S.streams["stderr"], flush=True)
    except (OSError, ValueError):
        pass


def ask(prompt, password):
    if S.cell is None or _os_getpid() != S.pid:
        raise EOFError("no cell is running that could be asked for input")
    if _thread_id() != S.thread:
        raise RuntimeError("input() works in the main thread only")
    prompt = str(prompt)
    flush_all()
    emit("input", id=S.cell, prompt=prompt[:ERROR_MAX], password=password)
    try:
        S.waiting = True
        raise_pending()
        return answer()
    finally:
        S.waiting = False


def answer():
    def wait():
        # With a limit: a signal between the check for one and the sleep would not end the sleep.
        while not S.channel.readable(250):
            raise_pending()
        S.waiting = False

    while True:
        S.waiting = True
        line = S.channel.line(wait)
        S.waiting = False
        message = None if isinstance(line, TooLong) else from_json(line)
        if message and message.get("op") == "input":
            if message.get("id") != S.cell:
                continue # for a cell that was interrupted while it asked
            text = message.get("text")
            if not isinstance(text, str):
                raise EOFError("end of input")
            return text[:-1] if text.endswith("\n") else text
        if len(S.channel.waiting) < WAITING_MAX:
            S.channel.waiting.append(line)


def cell_input(prompt="", /):
    return ask(prompt, False)


def cell_getpass(prompt="Password: ", stream=None, **_):
    return ask(prompt, True)


# From text to code -----------------------------------------------------------------------------

class UsageError(Exception):
    """A magic that is not there, or not so. It has no traceback worth reading."""


def parse(text, name):
    """A module's tree. Lines that begin with ! or % are rewritten where they are no Python."""
    flags = ONLY_AST | TOP_LEVEL_AWAIT | S.flags
    try:
        return _compile(text, name, "exec", flags, True)
    except SyntaxError as e:
        first, line = e, e.lineno
    lines = text.split("\n")
    for _ in range(min(len(lines), 200)):
        if not rewrite(lines, line or 0):
            break
        try:
            return _compile("\n".join(lines), name, "exec", flags, True)
        except SyntaxError as e:
            line = e.lineno
    raise first


def rewrite(lines, number):
    """The line of the error, if it is a command; else the first that is."""
    for at in ([number - 1] if 0 < number <= len(lines) else []) + list(range(len(lines))):
        if as_call(lines[at]) is None:
            continue
        joined, last = lines[at], at
        while joined.endswith("\\") and last + 1 < len(lines): # a command may have several lines
            last += 1
            joined = joined[:-1] + lines[last]
        lines[at:last + 1] = [as_call(joined)] + [""] * (last - at)
        return True
    return False


def as_call(line):
    bare = line.strip()
    indent = line[:len(line) - len(line.lstrip())]
    if bare.startswith("!"):
        return "%s__atoll_shell__(%r, %r)" % (indent, bare.lstrip("!"), bare.startswith("!!"))
    if bare.startswith("%") and not bare.startswith("%%"):
        return "%s__atoll_magic__(%r)" % (indent, bare[1:])
    if bare.split(" ")[0] in INSTALLERS and " " in bare:
        return "%s__atoll_magic__(%r)" % (indent, bare)
    if is_name(bare.strip("?")) and (bare.endswith("?") or bare.startswith("?")):
        return "%s__atoll_magic__(%r)" % (indent, "pinfo " + bare.strip("?"))
    target, mark, command = bare.partition("=")
    target, command = target.strip(), command.lstrip()
    if not mark or not target.isidentifier():
        return None
    if command.startswith("!"):
        return "%s%s = __atoll_shell__(%r, True)" % (indent, target, command[1:])
    if command.startswith("%"):
        return "%s%s = __atoll_magic__(%r)" % (indent, target, command[1:])
    return None


def is_name(text):
    return bool(text) and all(part.isidentifier() for part in text.split("."))


def dedented(text):
    """What all lines of a cell that was cut out of something else begin with goes away."""
    lines = text.split("\n")
    first = next((line for line in lines if line.strip()), "")
    indent = first[:len(first) - len(first.lstrip())]
    if not indent:
        return text
    return "\n".join(l[len(indent):] if l.startswith(indent) else l.lstrip() if not l.strip() else l
                     for l in lines)


def cell_magic(text):
    """%%bash and its like, as a call; anything else as it is."""
    bare = text.lstrip()
    if not bare.startswith("%%"):
        return text
    line, _, body = bare[2:].partition("\n")
    return "__atoll_cell__(%r, %r)" % (line, body)


def expand(command):
    """{expression} and $name stand for values, where there are such."""
    import re
    names = vars(S.main)

    def value(found):
        if found.group(1) is not None:
            try:
                return str(_eval(found.group(1).strip(), names))
            except Exception:
                return found.group(0)
        return str(names[found.group(2)]) if found.group(2) in names else found.group(0)

    return re.sub(r"(?<!\$)\{([^{}]+)\}|\$([A-Za-z_]\w*)", value, command)


def magic_shell(command, capture=False):
    return run_program(["/bin/bash", "-c", expand(command)], capture)


def run_program(argv, capture=False, text=None):
    import subprocess
    flush_all()
    done = subprocess.run(argv, stdout=subprocess.PIPE if capture else 1, stderr=2,
                          **({"input": text.encode()} if text is not None
                             else {"stdin": subprocess.DEVNULL}))
    vars(S.main)["_exit_code"] = done.returncode
    find_user_packages()
    return done.stdout.decode("utf-8", "replace").splitlines() if capture else None


def find_user_packages():
    """The program may have been a `pip install`, which creates the folder of the user's packages."""
    import importlib
    import site
    folder = site.getusersitepackages()
    if os.path.isdir(folder):
        if folder not in sys.path:
            site.addsitedir(folder)
        importlib.invalidate_caches()


# Magics ----------------------------------------------------------------------------------------
#
# The commands that notebooks use most. Each takes the rest of its line;
# those of a cell take the lines below it, too.

def run_text(text):
    """Some lines of Python as if they were the cell; the value of the last expression."""
    return run_code(*compile_cell(text, "<cell %d>" % S.count))


def magic_pip(rest):
    import shlex
    run_program(["python3", "-m", "pip"] + shlex.split(expand(rest)))


def magic_install(rest):
    raise UsageError("only %pip installs packages here; or name them when the box is made: "
                     "\"packages\": [\"NAME\"]")


def magic_cd(rest):
    os.chdir(os.path.expanduser(expand(rest).strip("'\"") or "~"))
    print(os.getcwd())


def magic_pwd(rest):
    return os.getcwd()


def magic_env(rest):
    name, mark, value = rest.partition("=")
    if not mark:
        name, mark, value = rest.partition(" ")
    if mark:
        _environ[name.strip()] = expand(value.strip())
        print("env: %s=%s" % (name.strip(), _environ[name.strip()]))
        return None
    if not rest:
        return dict(_environ)
    if rest not in _environ:
        raise UsageError("Environment does not have key: " + rest)
    return _environ[rest]


def user_names():
    hidden = ("_", "__", "_exit_code")
    return sorted(name for name in vars(S.main) if not name.startswith("__") and name not in hidden)


def magic_who(rest):
    names = [n for n in user_names() if not rest or type(vars(S.main)[n]).__name__ in rest.split()]
    print("\t ".join(names) if names else "Interactive namespace is empty.")


def magic_who_ls(rest):
    return user_names()


def magic_whos(rest):
    names = vars(S.main)
    rows = [(n, type(names[n]).__name__, short_repr(names[n])[:60].replace("\n", " "))
            for n in user_names()]
    if not rows:
        print("Interactive namespace is empty.")
        return
    wide = [max(len(row[i]) for row in rows + [("Variable", "Type", "")]) + 3 for i in (0, 1)]
    print("Variable".ljust(wide[0]) + "Type".ljust(wide[1]) + "Data/Info")
    print("-" * (sum(wide) + 9))
    for row in rows:
        print(row[0].ljust(wide[0]) + row[1].ljust(wide[1]) + row[2])


def magic_reset(rest):
    for name in user_names():
        del vars(S.main)[name]


def span_text(seconds, digits=3):
    for unit, size in (("s", 1), ("ms", 1e-3), ("\u00b5s", 1e-6), ("ns", 1e-9)):
        if seconds >= size or unit == "ns":
            break
    if seconds >= 60:
        return "%dmin %ds" % divmod(int(seconds), 60)
    return "%.*g %s" % (digits, seconds / size, unit)


def magic_time(rest, body=None):
    import time
    used, wall = os.times(), time.perf_counter()
    try:
        return run_text(rest if body is None else body)
    finally:
        wall, now = time.perf_counter() - wall, os.times()
        user, system = now.user - used.user, now.system - used.system
        print("CPU times: user %s, sys: %s, total: %s\nWall time: %s" % (
            span_text(user), span_text(system), span_text(user + system), span_text(wall)))


def timing_options(rest):
    """-n LOOPS -r RUNS, and the rest of the line."""
    loops, runs, quiet = 0, 7, False
    while rest.startswith("-"):
        option, _, rest = rest.partition(" ")
        if option[:2] in ("-n", "-r"):
            number = option[2:]
            if not number:
                number, _, rest = rest.lstrip().partition(" ")
            if not number.isdigit() or number == "0":
                raise UsageError("%timeit: -n and -r take a number")
            loops, runs = (int(number), runs) if option[1] == "n" else (loops, int(number))
        elif option == "-q":
            quiet = True
        elif option != "-o":
            raise UsageError("%timeit: no option " + option)
        rest = rest.lstrip()
    return loops, runs, quiet, rest


def magic_timeit(rest, body=None):
    import timeit
    loops, runs, quiet, statement = timing_options(rest)
    setup = "pass"
    if body is not None:
        setup, statement = statement or "pass", body
    timer = timeit.Timer(statement, setup, globals=vars(S.main))
    if not loops:
        loops = timer.autorange()[0]
    took = [t / loops for t in timer.repeat(runs, loops)]
    mean = sum(took) / runs
    spread = (sum((t - mean) ** 2 for t in took) / runs) ** 0.5
    if not quiet:
        print("%s \u00b1 %s per loop (mean \u00b1 std. dev. of %d run%s, %s loop%s each)" % (
            span_text(mean), span_text(spread), runs, "s" * (runs > 1), format(loops, ","),
            "s" * (loops > 1)))


def magic_run(rest):
    words = rest.split()
    if not words:
        raise UsageError("%run: which file?")
    import runpy
    argv, sys.argv = sys.argv, words
    try:
        vars(S.main).update(runpy.run_path(words[0], run_name="__main__"))
    finally:
        sys.argv = argv


def magic_pinfo(rest):
    import inspect
    try:
        obj = _eval(rest, vars(S.main))
    except NameError:
        print("Object `%s` not found." % rest)
        return
    try:
        print("Signature: %s%s" % (rest, inspect.signature(obj)))
    except (TypeError, ValueError):
        pass
    print("Type:      " + type(obj).__name__)
    print("Docstring: " + (inspect.getdoc(obj) or "<no docstring>"))


def magic_nothing(rest):
    """What it asks for is so: figures are always shown inline."""


def magic_lsmagic(rest):
    print("Available line magics:\n%" + "  %".join(sorted(LINE_MAGICS)) +
          "\n\nAvailable cell magics:\n%%" + "  %%".join(sorted(CELL_MAGICS)))


def magic_capture(rest, body):
    """Its output goes into a variable, or nowhere."""
    out, err = sys.stdout, sys.stderr
    kept = io.StringIO()
    sys.stdout = sys.stderr = kept
    try:
        run_text(body)
    finally:
        sys.stdout, sys.stderr = out, err
        if rest.isidentifier():
            vars(S.main)[rest] = Captured(kept.getvalue())


class Captured:
    def __init__(self, text):
        self.stdout = text

    def show(self):
        sys.stdout.write(self.stdout)

    def __str__(self):
        return self.stdout


def magic_writefile(rest, body):
    words = rest.split()
    more = words[:1] == ["-a"]
    if len(words) != 1 + more:
        raise UsageError("%%writefile takes the name of one file")
    there = os.path.exists(words[-1])
    with _io_open(os.path.expanduser(words[-1]), "a" if more else "w", encoding="utf-8") as f:
        f.write(body)
    print(("Appending to " if more else "Overwriting " if there else "Writing ") + words[-1])


def run_script(argv, body):
    """A program that reads the cell; its failure is the cell's."""
    import subprocess
    run_program(argv, text=body)
    status = vars(S.main)["_exit_code"]
    if status:
        raise subprocess.CalledProcessError(status, body)


def magic_script(rest, body):
    import shlex
    run_script(shlex.split(rest) or ["/bin/bash"], body)


def shows(mime):
    return lambda rest, body: display({mime: body, "text/plain": "<%s>" % mime}, raw=True)


def runs(*argv):
    return lambda rest, body: run_script(list(argv), body)


INSTALLERS = ("pip", "conda", "mamba", "micromamba", "uv")
LINE_MAGICS = {
    "cd": magic_cd, "pwd": magic_pwd, "env": magic_env, "set_env": magic_env, "who": magic_who,
    "who_ls": magic_who_ls, "whos": magic_whos, "reset": magic_reset, "time": magic_time,
    "timeit": magic_timeit, "run": magic_run, "pinfo": magic_pinfo, "lsmagic": magic_lsmagic,
    "matplotlib": magic_nothing, "config": magic_nothing, "pylab": magic_nothing,
    "sx": lambda rest: magic_shell(rest, True), "system": lambda rest: magic_shell(rest, True),
    **{name: magic_install for name in INSTALLERS},
    "pip": magic_pip,
    **{name: (lambda rest, name=name: magic_shell(name + " " + rest))
       for name in ("ls", "cat", "cp", "mv", "rm", "mkdir", "rmdir")},
}
CELL_MAGICS = {
    "time": magic_time, "timeit": magic_timeit, "capture": magic_capture,
    "writefile": magic_writefile, "script": magic_script,
    "bash": runs("/bin/bash"), "sh": runs("/bin/sh"),
    "!": lambda rest, body: magic_shell(body), "python": runs("python3"),
    "python3": runs("python3"), "perl": runs("perl"), "ruby": runs("ruby"),
    "js": shows("application/javascript"), "javascript": shows("application/javascript"),
    "html": shows("text/html"), "HTML": shows("text/html"), "svg": shows("image/svg+xml"),
    "SVG": shows("image/svg+xml"), "markdown": shows("text/markdown"), "latex": shows("text/latex"),
}


def magic_line(line):
    word, _, rest = line.strip().partition(" ")
    magic = LINE_MAGICS.get(word)
    if magic is None:
        raise UsageError("Line magic function `%%%s` not found." % word)
    return magic(rest.strip())


def magic_cell(line, body):
    word, _, rest = line.strip().partition(" ")
    magic = CELL_MAGICS.get(word)
    if magic is None:
        raise UsageError("Cell magic `%%%%%s` not found." % word)
    return magic(rest.strip(), body)


def is_silenced(text, node):
    """A semicolon after the last expression: the value is not wanted."""
    lines = text.split("\n")
    if not 0 < node.end_lineno <= len(lines):
        return False
    tail = lines[node.end_lineno - 1].encode("utf-8", "replace")[node.end_col_offset:]
    return tail.lstrip(b" \t)").startswith(b";")


def compile_cell(text, name):
    """(code of the statements, code of the last expression or None)"""
    text = cell_magic(dedented(text))
    tree = parse(text, name)
    flags = TOP_LEVEL_AWAIT | S.flags
    last = None
    if tree.body and isinstance(tree.body[-1], Expr) and not is_silenced(text, tree.body[-1]):
        last = Expression(tree.body.pop().value)
    body = _compile(tree, name, "exec", flags, True)
    S.flags |= body.co_flags & FUTURE_FLAGS
    if last is not None:
        last = _compile(last, name, "eval", flags | body.co_flags & FUTURE_FLAGS, True)
    return body, last


def run_code(body, last):
    """The value of the last expression, or None."""
    names = vars(S.main)
    codes = [body, last] if last is not None else [body]
    if any(code.co_flags & CO_COROUTINE for code in codes):
        return run_await(in_turn(codes, names))
    for code in codes:
        value = _eval(code, names)
    return value


async def in_turn(codes, names):
    for code in codes:
        value = _eval(code, names)
        if code.co_flags & CO_COROUTINE:
            value = await value
    return value


def run_await(coroutine):
    """One loop for all cells: what a cell has started continues whenever a later one waits."""
    import asyncio
    if S.loop is None or S.loop.is_closed():
        S.loop = asyncio.new_event_loop()
    asyncio.set_event_loop(S.loop)
    task = S.loop.create_task(coroutine)
    try:
        return S.loop.run_until_complete(task)
    except BaseException:
        if not task.done():
            task.cancel()
            S.loop.run_until_complete(asyncio.wait([task], timeout=1))
        if task.done() and not task.cancelled():
            task.exception() # seen: the loop need not complain
        raise


# What a value looks like -----------------------------------------------------------------------

REPRS = (
    ("_repr_html_", "text/html"),
    ("_repr_markdown_", "text/markdown"),
    ("_repr_svg_", "image/svg+xml"),
    ("_repr_png_", "image/png"),
    ("_repr_jpeg_", "image/jpeg"),
    ("_repr_pdf_", "application/pdf"),
    ("_repr_latex_", "text/latex"),
    ("_repr_json_", "application/json"),
    ("_repr_javascript_", "application/javascript"),
)


def method_of(obj, name):
    # Of the type: an object that answers to every name must not answer to this one.
    if isinstance(obj, type):
        return None
    method = getattr(type(obj), name, None)
    return method if callable(method) else None


def represent(obj):
    """(data, extra, names of what was cut). Raises what the object's __repr__ raises."""
    data, extra, cut = {}, {}, []
    asked = call_repr(obj, "_repr_mimebundle_")
    if isinstance(asked, tuple) and asked:
        asked = asked[0]
    if isinstance(asked, dict):
        for mime, value in list(asked.items()):
            add_mime(data, str(mime), value, obj)
    for name, mime in REPRS:
        if mime not in data:
            add_mime(data, mime, call_repr(obj, name), obj)
    if is_figure(obj):
        add_figure(obj, data, extra)
    elif is_frame(obj):
        add_frame(obj, extra, cut)
    elif type(obj) in (list, dict) and "application/json" not in data:
        add_json(obj, data)
    if not isinstance(data.get("text/plain"), str):
        data["text/plain"] = short_repr(obj)
    if len(data["text/plain"]) > TEXT_MAX:
        data["text/plain"] = data["text/plain"][:TEXT_MAX]
        cut.append("text/plain")
    return data, extra, cut


def call_repr(obj, name):
    method = method_of(obj, name)
    if method is None:
        return None
    try:
        return method(obj)
    except (KeyboardInterrupt, Gone):
        raise
    except BaseException as e:
        # A frame with its HTML switched off raises this exception; it is not shown.
        if type(e).__name__ != "NotImplementedError":
            note("%s.%s: %s" % (type(obj).__name__, name, one_line(e)))
        return None


def add_mime(data, mime, value, obj):
    if isinstance(value, tuple) and value:
        value = value[0] # with metadata, which we have no place for
    if value is None:
        return
    if isinstance(value, (bytes, bytearray, memoryview)):
        value = _b64(value, newline=False).decode("ascii")
    if mime == "application/json" or mime.endswith("+json"):
        try:
            to_json(value, LINE_MAX * 2)
        except (Unrepresentable, ValueError):
            note("%s: its %s is no JSON" % (type(obj).__name__, mime))
            return
    elif not isinstance(value, str):
        note("%s: its %s is %s, not a string" % (type(obj).__name__, mime, type(value).__name__))
        return
    data[mime] = value


def short_repr(obj):
    """repr(), but a huge builtin is not written out only to be cut."""
    kind = type(obj)
    if kind in (str, bytes) and len(obj) > TEXT_MAX:
        return repr(obj[:TEXT_MAX + 1])
    if kind not in (list, tuple) or len(obj) < 10000:
        return repr(obj)
    pieces, size = [], 0
    for item in obj:
        pieces.append(repr(item))
        size += len(pieces[-1]) + 2
        if size > TEXT_MAX:
            return ("[" if kind is list else "(") + ", ".join(pieces)
    return ("[%s]" if kind is list else "(%s)") % ", ".join(pieces)


def add_json(obj, data):
    try:
        to_json(obj, JSON_MAX)
        data["application/json"] = obj
    except Exception:
        pass # it has text/plain


def is_frame(obj):
    pandas = _modules.get("pandas")
    kind = getattr(pandas, "DataFrame", None)
    return isinstance(kind, type) and isinstance(obj, kind)


def add_frame(frame, extra, cut):
    """`data`: {column: [values]}"""
    try:
        if frame.size > JSON_MAX // 4:
            raise Unrepresentable("too large")
        columns = {}
        for name, values in frame.to_dict(orient="list").items():
            columns[name if isinstance(name, str) else str(name)] = [cell_value(v) for v in values]
        to_json(columns, JSON_MAX)
        extra["data"] = columns
    except (KeyboardInterrupt, Gone):
        raise
    except BaseException:
        cut.append("data")


def cell_value(value):
    if value is None or isinstance(value, (str, int, float, list, tuple, dict)):
        return value
    if type(value).__name__ == "NaTType":
        return None
    try:
        return plain(value)
    except Unrepresentable:
        return str(value)


def send_result(obj, main, display_id=None, update=False, only=None, without=None, raw=False):
    data, extra, cut = (dict(obj), {}, []) if raw else represent(obj)
    if only:
        data = {k: v for k, v in data.items() if k in only}
    if without:
        data = {k: v for k, v in data.items() if k not in without}
    if display_id is not None:
        extra["display_id"] = display_id
        extra["update"] = update
    flush_all()
    if S.cell is None or _os_getpid() != S.pid:
        if not main:
            print(data.get("text/plain", ""))
        return
    S.channel.send(result_line(data, extra, cut, main))
    raise_pending()


def result_line(data, extra, cut, main):
    """The line of a result. The largest entries go until it is short enough."""
    parts = {}
    for place, entries in (("data", data), ("extra", extra)):
        for key, value in entries.items():
            parts[place, key] = _ascii_string(clean(key)) + ":" + to_json(value, LINE_MAX * 8)
    room = LINE_MAX - 4096 - 200 * len(parts)
    while parts and sum(map(len, parts.values())) > room:
        largest = max(parts, key=lambda key: len(parts[key]))
        cut.append(largest[1])
        del parts[largest]
    line = '{"ev":"result","id":%s,"main":%s' % (to_json(S.cell), "true" if main else "false")
    for place in ("data", "extra"):
        line += ',"%s":{%s}' % (place, ",".join(v for k, v in parts.items() if k[0] == place))
    return line + (',"truncated":%s}' % to_json(cut) if cut else "}")


class DisplayHandle:
    def __init__(self, display_id):
        self.display_id = display_id

    def display(self, obj, **options):
        display(obj, display_id=self.display_id, **options)

    def update(self, obj, **options):
        update_display(obj, display_id=self.display_id, **options)

    def __repr__(self):
        return "<DisplayHandle display_id=%s>" % self.display_id


def display(*objs, include=None, exclude=None, metadata=None, transient=None, display_id=None,
            raw=False, clear=False, **_):
    """Shows objects in the richest form that they know. With display_id they can be updated."""
    if display_id is True:
        S.displays += 1
        display_id = "display-%d-%d" % (S.pid, S.displays)
    for obj in objs:
        send_result(obj, False, display_id, False, include, exclude, raw)
    return None if display_id is None else DisplayHandle(display_id)


def update_display(obj, *, display_id, include=None, exclude=None, raw=False, **_):
    send_result(obj, False, display_id, True, include, exclude, raw)


def clear_output(wait=False):
    """There is nothing to clear: output is a record, not a screen."""


# Figures and charts ----------------------------------------------------------------------------

def is_figure(obj):
    kind = getattr(_modules.get("matplotlib.figure"), "Figure", None)
    return isinstance(kind, type) and isinstance(obj, kind)


def add_figure(figure, data, extra):
    if not any(figure is known for known in S.shown):
        S.shown.append(figure)
    out = _bytes_io()
    figure.savefig(out, format="png", bbox_inches="tight")
    data["image/png"] = _b64(out.getvalue(), newline=False).decode("ascii")
    try:
        chart = chart_of_figure(figure)
        to_json(chart, JSON_MAX)
        extra["chart"] = chart
    except (KeyboardInterrupt, Gone):
        raise
    except BaseException:
        extra["chart"] = {} # drawn, but by means that are no chart we know


def show_figures(*_, **__):
    """plt.show(), and what happens after each cell: every figure that was not shown yet."""
    pyplot = _modules.get("matplotlib.pyplot")
    if pyplot is None:
        return
    for number in pyplot.get_fignums():
        figure = pyplot.figure(number)
        if not any(figure is known for known in S.shown):
            send_result(figure, False)
    pyplot.close("all")


def drop_figures():
    pyplot = _modules.get("matplotlib.pyplot")
    if pyplot is not None:
        pyplot.close("all")


def chart_of_figure(figure):
    axes = figure.get_axes()
    if not any(ax.has_data() for ax in axes):
        return {}
    if len(axes) == 1:
        return chart_of_axes(axes[0])
    title = figure._suptitle.get_text() if getattr(figure, "_suptitle", None) else ""
    return {"type": "superchart", "title": title, "elements": [chart_of_axes(ax) for ax in axes]}


def chart_of_axes(ax):
    from matplotlib.collections import PathCollection
    from matplotlib.lines import Line2D
    from matplotlib.patches import PathPatch, Rectangle, Wedge
    from matplotlib.text import Text

    drawn = [a for a in ax._children if not isinstance(a, Text)]
    solid = [a for a in drawn if not (isinstance(a, Line2D) and is_grid_line(a))]
    for kinds, artists, make in (
            (Line2D, drawn, line_chart),
            ((PathPatch, Line2D), drawn, box_chart),
            (PathCollection, solid, scatter_chart),
            (Wedge, solid, pie_chart),
            (Rectangle, solid, bar_chart)):
        if all(isinstance(a, kinds) for a in artists):
            return make(ax)
    return {"type": "unknown", "title": ax.get_title() or None, "elements": []}


def is_grid_line(line):
    x, y = line.get_xdata(), line.get_ydata()
    return len(x) == 2 and len(y) == 2 and bool(x[0] == x[1] or y[0] == y[1])


def labelled(ax, kind):
    chart = {"type": kind, "title": ax.get_title() or None}
    for axis, label in (("x", ax.get_xlabel() or None), ("y", ax.get_ylabel() or None)):
        chart[axis + "_label"] = label
        chart[axis + "_unit"] = unit_of(label)
    chart["elements"] = []
    return chart


def unit_of(label):
    """"Distance (km)" and "Distance[km]" are in km."""
    import re
    found = re.search(r"\s\((.*?)\)|\[(.*?)\]", label or "")
    return (found.group(1) or found.group(2)) if found else None


def turn(chart):
    for what in ("label", "unit"):
        chart["x_" + what], chart["y_" + what] = chart["y_" + what], chart["x_" + what]


def point_chart(ax, kind):
    chart = labelled(ax, kind)
    for name, axis in (("x", ax.xaxis), ("y", ax.yaxis)):
        labels = [t.get_text() for t in axis.get_ticklabels()]
        ticks = axis.get_ticklocs()
        get = getattr(axis, "get_converter", None)
        dates = type(get() if get else axis.converter).__name__ == "_SwitchableDateConverter"
        if dates:
            from matplotlib.dates import num2date
            ticks = [num2date(t).isoformat() for t in ticks]
        else:
            ticks = [chart_number(t) for t in ticks]
        chart[name + "_ticks"] = ticks
        chart[name + "_tick_labels"] = labels
        chart[name + "_scale"] = "datetime" if dates else scale_of(axis.get_scale(), ticks, labels)
    return chart


def scale_of(scale, ticks, labels):
    """Ticks 0, 1, 2 that are called something else are categories."""
    if scale != "linear":
        return scale
    for i, (tick, label) in enumerate(zip(ticks, labels)):
        if not isinstance(tick, (int, float)) or tick != i or label == str(i):
            return "linear"
    return "categorical"


def chart_number(value):
    if isinstance(value, (int, float)):
        return float(value)
    return chart_point(value)


def chart_point(value):
    if type(value).__name__ == "datetime64":
        return str(value.astype("datetime64[s]"))
    return value if isinstance(value, (str, int, float)) else plain(value)


def points_of(pairs):
    return [[chart_point(x), chart_point(y)] for x, y in pairs]


def line_chart(ax):
    chart = point_chart(ax, "line")
    for line in ax.get_lines():
        if is_grid_line(line):
            continue
        label = line.get_label()
        if label.startswith("_child"):
            label = "Line " + label[6:]
        points = points_of(zip(line.get_xdata(), line.get_ydata()))
        chart["elements"].append({"label": label, "points": points})
    return chart


def scatter_chart(ax):
    chart = point_chart(ax, "scatter")
    for dots in ax.collections:
        points = points_of(dots.get_offsets())
        chart["elements"].append({"label": dots.get_label(), "points": points})
    return chart


def pie_chart(ax):
    chart = {"type": "pie", "title": ax.get_title() or None, "elements": []}
    for wedge in ax.patches:
        angle = abs(round_off(float(wedge.theta2) - float(wedge.theta1)))
        chart["elements"].append({"label": wedge.get_label(), "angle": angle,
                                  "radius": float(wedge.r)})
    return chart


def bar_chart(ax):
    chart = labelled(ax, "bar")
    for bars in ax.containers:
        group = bars.get_label()
        if group.startswith("_container"):
            group = "Group " + group[10:]
        values = [bar.get_height() for bar in bars]
        names = ax.get_xticklabels()
        if lies(bars, values):
            turn(chart)
            values = [bar.get_width() for bar in bars]
            names = ax.get_yticklabels()
        for name, value in zip(names, values):
            chart["elements"].append({"label": name.get_text(), "group": group,
                                      "value": float(value)})
    return chart


def lies(bars, heights):
    way = getattr(bars, "orientation", None)
    return way == "horizontal" if way else all(h == heights[0] for h in heights)


def round_off(number):
    """About nine digits: what the arithmetic of drawing has added goes away."""
    number = float(number)
    return float("%.*g" % (max(1, 8 - exponent(number)), number))


def exponent(number):
    return int(("%e" % number).partition("e")[2]) if number else 0


def box_chart(ax):
    chart = labelled(ax, "box_and_whisker")
    boxes = []
    for name, patch in zip(ax.get_xticklabels(), ax.patches):
        corners = patch.get_path().vertices
        xs, ys = ([round_off(v) for v in corners[:, i]] for i in (0, 1))
        boxes.append({"label": name.get_text(), "x": (min(xs), max(xs)), "y": (min(ys), max(ys)),
                      "min": min(ys), "max": max(ys), "median": min(ys), "outliers": []})
    # The first lines are whiskers. Those that go from left to right belong to boxes that lie.
    ends = [(l.get_xdata(), l.get_ydata()) for l in ax.lines if len(l.get_xdata()) == 2]
    lying = any(x[0] != x[1] for x, y in ends[:2])
    if lying:
        turn(chart)
        for box in boxes:
            box["x"], box["y"] = box["y"], box["x"]
            box["min"], box["max"] = box["y"]
    for line in ax.lines:
        xs, ys = [round_off(v) for v in line.get_xdata()], [round_off(v) for v in line.get_ydata()]
        if lying:
            xs, ys = ys, xs
        place_line(boxes, xs, ys)
    for box in boxes:
        low, high = box["y"]
        chart["elements"].append({
            "label": box["label"], "min": box["min"], "first_quartile": low,
            "median": box["median"], "third_quartile": high, "max": box["max"],
            "outliers": box["outliers"]})
    return chart


def place_line(boxes, xs, ys):
    """A line of a box plot: an outlier, the median, a whisker, or a cap."""
    if not xs:
        return
    for box in boxes:
        if box["x"][0] <= min(xs) and max(xs) <= box["x"][1]:
            break
    else:
        return
    low, high = box["y"]
    if len(ys) != 2:
        if len(set(xs)) == 1:
            box["outliers"] += ys
    elif ys[0] == ys[1] and low <= ys[0] <= high:
        box["median"] = ys[0]
    elif max(ys) == low:
        box["min"] = min(ys)
    elif min(ys) == high:
        box["max"] = max(ys)


# Modules that learn about cells when they are loaded -------------------------------------------

def patch_linecache(module):
    for name, text in S.sources.items():
        put_source(module, name, text)


def put_source(linecache, name, text):
    linecache.cache[name] = (len(text), None, [line + "\n" for line in text.split("\n")], name)


def patch_getpass(module):
    module.getpass = cell_getpass


def patch_pyplot(module):
    module.show = show_figures


def patch_pil(module):
    kind = module.Image
    save = kind.save

    def show(self, *_, **__):
        display(self)

    def save_and_show(self, fp, format=None, **options):
        save(self, fp, format, **options)
        if isinstance(fp, str) and S.cell is not None:
            display(self)

    kind.show, kind.save = show, save_and_show


def patch_ipython(module):
    module.display, module.update_display = display, update_display
    module.clear_output = clear_output


PATCHES = {
    "linecache": patch_linecache,
    "getpass": patch_getpass,
    "matplotlib.pyplot": patch_pyplot,
    "PIL.Image": patch_pil,
    "IPython.display": patch_ipython,
    "IPython.core.display_functions": patch_ipython,
}


class Finder:
    """First on sys.meta_path: finds what the others find, and patches it once it has run."""
    busy = set()

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name not in PATCHES or name in cls.busy:
            return None
        cls.busy.add(name)
        try:
            for finder in sys.meta_path:
                spec = finder.find_spec(name, path, target) if finder is not cls else None
                if spec is not None:
                    return cls.wrapped(spec)
        finally:
            cls.busy.discard(name)
        return None

    @staticmethod
    def wrapped(spec):
        loader = spec.loader
        if isinstance(loader, type) or not hasattr(loader, "exec_module"):
            return spec
        real = loader.exec_module

        def exec_module(module):
            real(module)
            PATCHES[spec.name](module)

        loader.exec_module = exec_module
        return spec


# IPython, where there is none ------------------------------------------------------------------

class Shell:
    """What get_ipython() gives a cell: magics and commands by their names."""

    def run_line_magic(self, name, line="", *_):
        return magic_line(name + " " + line)

    def run_cell_magic(self, name, line, cell):
        return magic_cell(name + " " + line, cell)

    def magic(self, line):
        return magic_line(line.lstrip("%"))

    def run_cell(self, text, *_, **__):
        return run_text(text)

    def system(self, command):
        magic_shell(command)

    def getoutput(self, command, *_, **__):
        return magic_shell(command, True)

    @property
    def user_ns(self):
        return vars(S.main)


SHELL = Shell()


class Shown:
    """Data of one type, for display()."""
    mime = "text/plain"

    def __init__(self, data=None, url=None, filename=None, **options):
        if filename is not None:
            with _io_open(filename, "r", encoding="utf-8") as f:
                data = f.read()
        self.data, self.url, self.filename, self.options = data, url, filename, options

    def _repr_mimebundle_(self, **_):
        return {self.mime: self.data} if self.data is not None else {}


class Image(Shown):
    """By its bytes, a file, or an address that only the reader looks up."""

    def __init__(self, data=None, url=None, filename=None, format=None, embed=None, **options):
        if isinstance(data, str):
            data, url, filename = (None, data, None) if "://" in data else (None, None, data)
        if filename is not None:
            with _io_open(filename, "rb") as f:
                data = f.read()
        super().__init__(data, url, **options)

    def _repr_mimebundle_(self, **_):
        if self.data is None:
            return {"text/html": '<img src="%s"/>' % self.url}
        data = bytes(self.data)
        return {"image/jpeg" if data[:2] == b"\xff\xd8" else "image/png": data}


def shown_as(name, mime):
    return type(name, (Shown,), {"mime": mime})


SHOWN = {
    "display": display, "update_display": update_display, "clear_output": clear_output,
    "DisplayHandle": DisplayHandle, "Image": Image, "DisplayObject": Shown,
    "get_ipython": lambda: None,  # as in any program that is no notebook: libraries ask
    **{name: shown_as(name, mime) for name, mime in (
        ("HTML", "text/html"), ("Markdown", "text/markdown"), ("Latex", "text/latex"),
        ("Math", "text/latex"), ("SVG", "image/svg+xml"), ("JSON", "application/json"),
        ("Javascript", "application/javascript"), ("Pretty", "text/plain"), ("Code", "text/plain"))},
}


class StandIn:
    """Last on sys.meta_path: as much of IPython as cells import, if it is not installed."""
    FOLDERS = ("IPython", "IPython.core")
    NAMES = FOLDERS + ("IPython.display", "IPython.core.display", "IPython.core.getipython")

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name not in cls.NAMES:
            return None
        from importlib.machinery import ModuleSpec
        return ModuleSpec(name, cls, is_package=name in cls.FOLDERS)

    @staticmethod
    def create_module(spec):
        return None

    @staticmethod
    def exec_module(module):
        vars(module).update(SHOWN)
        module.version_info, module.__version__ = (0, 0, 0, ""), "0.0.0"


# Errors ----------------------------------------------------------------------------------------

def one_line(exc):
    try:
        said = str(exc)
    except BaseException:
        said = "<its __str__ fails>"
    return type(exc).__name__ + (": " + said if said else "")


def frames_of(exc):
    """The user's frames, outermost first."""
    found, entry = [], exc.__traceback__
    while entry is not None:
        code = entry.tb_frame.f_code
        if code.co_filename != OWN_FILE:
            found.append((code.co_filename, entry.tb_lineno or 0, code.co_name))
        entry = entry.tb_next
    for i, (file, _, _) in enumerate(found):
        if file in S.sources: # before it: the event loop that ran the cell
            found = found[i:]
            break
    if len(found) > FRAMES_MAX:
        found = found[:FRAMES_MAX // 2] + found[-FRAMES_MAX // 2:]
    if not found and isinstance(exc, SyntaxError) and isinstance(exc.lineno, int):
        found = [(str(exc.filename), exc.lineno, "<module>")]
    return [{"file": f, "line": n, "name": name, "text": source_line(f, n)} for f, n, name in found]


def source_line(file, number):
    if file in S.sources:
        lines = S.sources[file].split("\n")
        return lines[number - 1].strip()[:1000] if 0 < number <= len(lines) else ""
    try:
        import linecache
        return linecache.getline(file, number).strip()[:1000]
    except BaseException:
        return ""


def is_ours(file):
    return file == OWN_FILE


def traceback_text(exc):
    if isinstance(exc, UsageError):
        return "UsageError: %s" % exc
    import traceback
    whole = traceback.TracebackException(type(exc), exc, exc.__traceback__)
    todo, seen = [whole], set()
    while todo:
        one = todo.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        if one.stack is not None:
            kept = [f for f in one.stack if not is_ours(f.filename)]
            first = [i for i, f in enumerate(kept) if f.filename in S.sources][:1]
            one.stack[:] = kept[first[0]:] if first else kept
            if not one.stack:
                one.stack = one.exc_traceback = None # the second for Python 3.9
        todo += [one.__cause__, one.__context__] + list(getattr(one, "exceptions", None) or [])
    return "".join(whole.format()).rstrip("\n")


def plain_traceback(exc, value):
    """For the case that the user has broken what the other one needs."""
    lines = ["Traceback (most recent call last):"]
    for frame in frames_of(exc):
        lines.append('  File "%(file)s", line %(line)d, in %(name)s' % frame)
        lines += ["    " + frame["text"]] if frame["text"] else []
    return "\n".join(lines + [type(exc).__name__ + (": " + value if value else "")])


def said_by(exc):
    value = str(exc)
    return value if isinstance(value, str) else ""


def send_error(exc):
    """Every part may call the user's code, so every part may fail or be interrupted."""
    value, bad = attempt(said_by, exc)
    text, worse = attempt(traceback_text, exc) if bad is None else (None, bad)
    if worse is not None:
        value = value or "<its __str__ fails>"
        text, _ = attempt(plain_traceback, exc, value)
    frames, _ = attempt(frames_of, exc)
    name = type.__getattribute__(type(exc), "__name__")
    emit("error", id=S.cell, name=name if isinstance(name, str) else "Exception",
         value=(value or "")[:ERROR_MAX], frames=frames or [],
         text=cut_middle(text or name, ERROR_MAX))


def cut_middle(text, most):
    half = most // 2
    return text if len(text) <= most else text[:half] + "\n ... \n" + text[-half:]


# A cell ----------------------------------------------------------------------------------------

def remember_source(name, text):
    while len(S.sources) >= SOURCES_MAX:
        old = next(iter(S.sources))
        del S.sources[old]
        cache = getattr(_modules.get("linecache"), "cache", None)
        if isinstance(cache, dict):
            cache.pop(old, None)
    S.sources[name] = text
    linecache = _modules.get("linecache")
    if isinstance(getattr(linecache, "cache", None), dict):
        put_source(linecache, name, text)


def set_env(env):
    before = {}
    for name, value in env.items():
        if not isinstance(value, str):
            raise TypeError("env: %s is not a string" % name)
        before[name] = _environ.get(name)
        _environ[name] = value
    return before


def unset_env(before):
    for name, value in before.items():
        if value is None:
            _environ.pop(name, None)
        else:
            _environ[name] = value


def repair():
    """What a cell needs, whatever the one before has done."""
    _modules["__main__"] = S.main
    vars(S.main).setdefault("__builtins__", builtins)
    vars(S.main).setdefault("__name__", "__main__")
    _signal_signal(SIGINT, on_interrupt)
    _sigmask(SIG_UNBLOCK, (SIGINT,))
    for name, fd in STREAMS:
        restore_stream(name, fd)


def keep_value(value):
    """_ and __, until the user takes the name for something else."""
    names = vars(S.main)
    if "_" in names and names["_"] is not S.last:
        return
    if "_" in names:
        names["__"] = names["_"]
    names["_"] = S.last = value


def execute(body, last):
    value = run_code(body, last)
    if value is not None:
        keep_value(value)
        send_result(value, True)


def tidy():
    """After the user's code: nothing of it may reach into ours."""
    _setprofile(None)
    if _recursion() < 500:
        _set_recursion(1000)


def child_ends(exc):
    """A process that the cell has forked came back out of it. It is not the one that serves."""
    if exc is not None and not isinstance(exc, SystemExit):
        note(attempt(traceback_text, exc)[0] or type(exc).__name__)
    attempt(flush_all)
    code = exc.code if isinstance(exc, SystemExit) else exc is not None
    if code is not None and not isinstance(code, int):
        note(str(code))
    _os_exit(0 if code is None else code & 0xff if isinstance(code, int) else 1)


def run_cell(cell, text, env):
    S.cell, S.shown = cell, []
    S.count += 1
    name = "<cell %d>" % S.count
    before, failed = {}, None
    try:
        repair()
        remember_source(name, text)
        before = set_env(env)
        code = compile_cell(text, name)
    except Exception as e:
        failed = e
    if failed is None:
        _, failed = attempt(execute, *code)
        tidy()
        if _os_getpid() != S.pid:
            child_ends(failed)
        _, late = attempt(drop_figures if isinstance(failed, KeyboardInterrupt) else show_figures)
        failed = failed or late
    finish(failed, before)


def finish(failed, before):
    _, late = attempt(flush_all)
    failed = failed or late
    tidy()
    status = "ok"
    if failed is not None:
        status = "interrupted" if isinstance(failed, KeyboardInterrupt) else "error"
        send_error(failed)
        attempt(flush_all)
    unset_env(before)
    end_cell(S.cell, status)


def end_cell(cell, status):
    # All before the line goes: the next cell, and an interrupt of it, may be here at once.
    S.cell, S.shown = None, []
    S.starting = S.pending = False
    emit("end", id=cell, status=status, count=S.count)


def refuse(cell, name, why):
    """A cell that never ran."""
    emit("error", id=cell, name=name, value=why, frames=[], text="%s: %s" % (name, why))
    end_cell(cell, "error")


def handle(line):
    if isinstance(line, TooLong):
        refuse(line.id.decode("utf-8", "replace"), "CellTooLarge",
               "the message has more than %d MiB" % (LINE_MAX >> 20))
        return
    message = from_json(line)
    if message is None or message.get("op") != "run" or not isinstance(message.get("id"), str):
        S.starting = S.pending = False
        if message is None or message.get("op") != "input": # which came too late for its cell
            note("driver: not a message: %.80r" % line)
    else:
        cell, text, env = message["id"], message.get("code"), message.get("env") or {}
        if not isinstance(text, str) or not isinstance(env, dict):
            refuse(cell, "BadMessage", "code is a string, env an object")
        else:
            run_cell(cell, text, env)


# The whole -------------------------------------------------------------------------------------

def make_main():
    """A module of its own under the name of the program: what cells define can be pickled."""
    S.keep = _modules.get("__main__") # or its globals, perhaps ours, would be cleared
    S.main = type(sys)("__main__")
    vars(S.main).update(__builtins__=builtins, __annotations__={}, __spec__=None, __doc__=None)
    _modules["__main__"] = S.main
    builtins.input = cell_input
    builtins.display, builtins.update_display = display, update_display
    builtins.clear_output = clear_output
    builtins.__atoll_shell__, builtins.__atoll_magic__ = magic_shell, magic_line
    builtins.__atoll_cell__ = magic_cell
    builtins.get_ipython = lambda: SHELL
    sys.argv = [""]
    if sys.path and sys.path[0] == os.path.dirname(OWN_FILE):
        sys.path[0] = ""
    elif "" not in sys.path:
        sys.path.insert(0, "")


def load_patches():
    sys.meta_path.insert(0, Finder)
    sys.meta_path.append(StandIn)
    for name, patch in PATCHES.items():
        if name in _modules:
            patch(_modules[name])
    # There is no display to draw on. By the environment: children have none either.
    _environ.setdefault("MPLBACKEND", "agg")


def forget_channel():
    """In a process that a cell has forked."""
    try:
        _os_close(S.channel.fd)
    except OSError:
        pass


def begin(channel_fd):
    global _environ
    _environ = os.environ # a seed may have put another in its place
    S.__init__()
    S.pid, S.thread = _os_getpid(), _thread_id()
    S.channel = Channel(channel_fd)
    adopt_streams()
    make_main()
    _signal_signal(SIGINT, on_interrupt)


def serve():
    """Until the channel closes."""
    try:
        emit("ready", language="python", version="%d.%d.%d" % sys.version_info[:3])
        while True:
            handle(next_message())
    except Gone:
        pass
    attempt(flush_all)


def main(channel_fd):
    begin(channel_fd)
    load_patches()
    os.register_at_fork(after_in_child=forget_channel)
    serve()


REHEARSED = ("print('', end='')", "x = 1\nx + 1", "[x]", "print(x, 2)", "1 / 0") * 3


def rehearse():
    """For an interpreter that waits in a pool: some cells, all the way. Their memory is mapped and their bytecode
    specialised afterwards; no name, file, stream or handler of them is left."""
    import _socket, linecache, traceback  # noqa: E401, F401
    names = ("stdin", "stdout", "stderr", "__stdin__", "__stdout__", "__stderr__", "argv")
    before = {name: getattr(sys, name) for name in names}
    path, usual, handler = list(sys.path), dict(vars(builtins)), _signal.getsignal(SIGINT)
    program = _modules.get("__main__")
    null = _os_open(os.devnull, os.O_RDWR)
    kept = [raise_fd(fd, keep=True) for _, fd in STREAMS]
    ours, theirs = _socket.socketpair()
    for _, fd in STREAMS:
        _os_dup2(null, fd)
    try:
        theirs.sendall(b"".join(b'{"op":"run","id":"%d","code":%s}\n' % (i, _ascii_string(text).encode())
                                for i, text in enumerate(REHEARSED)))
        theirs.shutdown(_socket.SHUT_WR)
        begin(ours.detach())
        serve()
    finally:
        for fd, old in enumerate(kept):
            _os_dup2(old, fd)
        for fd in kept + [null, theirs.detach(), S.channel.fd] + list(S.saved.values()):
            _os_close(fd)
    for name, value in before.items():
        setattr(sys, name, value)
    sys.path[:], _modules["__main__"] = path, program
    vars(builtins).update(usual)
    for name in set(vars(builtins)).difference(usual):
        delattr(builtins, name)
    linecache.cache.clear()
    _signal_signal(SIGINT, handler)
    S.__init__()


def preload():
    """For a zygote: loads what a cell may need of the standard library, before the first cell."""
    import asyncio, linecache, subprocess, traceback  # noqa: E401, F401


if __name__ == "__main__":
    main(3)
