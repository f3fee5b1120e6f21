# zygote_python.py - the warm interpreter of a template that has a python3 of its own, and of guests of isolation tiers: started in a
# box by init, it waits for a program.
#
#	python3 /opt/atoll/zygote_python.py warm      descriptor 3: a blocking stream socket
#	python3 /opt/atoll/zygote_python.py small     with the driver of cells loaded: descriptor 3 becomes its channel
#	python3 /opt/atoll/zygote_python.py cells     with asyncio, too, which is 7 MB
#	python3 /opt/atoll/zygote_python.py data      with numpy, pandas and matplotlib, too
#	python3 /opt/atoll/zygote_python.py check     prints the version: this interpreter can wait
#
# Boxes of base are served by src/zygote instead: a process that forks into boxes has privileges, so it must not execute files of a
# template. It receives one message: a length (u32, little-endian), then that many bytes: cwd, argc, argv..., env..., each followed by
# NUL. What an interpreter reads only at its start (options, variables of PLAIN, the user's site folder) is left to a fresh one.
#
# A program can see these differences: frames of this file are below its own in sys._getframe() and inspect.stack().
import os
import sys

SITE = "/opt/atoll/python"
DRIVER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "python.py")
DATA = ("numpy", "pandas", "matplotlib.pyplot")
PLAIN = ("LD_", "MALLOC_", "GLIBC_", "TZ=")
KNOWN = ("PYTHONPATH=", "PYTHONDONTWRITEBYTECODE=", "PYTHON_VERSION=", "PYTHON_PIP_VERSION=", "PYTHON_SHA256=", "PYTHON_SETUPTOOLS_VERSION=",
         "PYTHON_GET_PIP_URL=", "PYTHON_GET_PIP_SHA256=")
LOCALES = ("", "C", "POSIX", "C.UTF-8", "C.utf8")


def read_exactly(size):
    data = b""
    while len(data) < size:
        part = os.read(3, size - len(data))
        if not part:
            os._exit(0)  # the box is not needed
        data += part
    return data


def is_plain(argv, env):
    """True for arguments and variables that only a fresh interpreter can apply."""
    if len(argv) < 2 or argv[1].startswith("-") or not os.path.isfile(argv[1]):
        return True
    for pair in env:
        name, _, value = pair.partition("=")
        if pair.startswith(PLAIN) or (pair.startswith("PYTHON") and not pair.startswith(KNOWN)):
            return True
        if (name == "LANG" or name.startswith("LC_")) and value not in LOCALES:
            return True
    site = sys.modules.get("site")
    own = site and site.ENABLE_USER_SITE and site.getusersitepackages()
    return bool(own and own not in sys.path and os.path.isdir(own))


def set_environment(env):
    for name in list(os.environ):
        del os.environ[name]
    for pair in env:
        name, equals, value = pair.partition("=")
        if name and equals:
            os.environ[name] = value


def set_path(path):
    """The folder of the program, then PYTHONPATH; without SITE, whose sitecustomize makes stdout line-buffered."""
    folders = [f for f in os.environ.pop("PYTHONPATH", "").split(":") if f]
    if SITE in folders:
        sys.stdout.reconfigure(line_buffering=True)
        folders = [f for f in folders if f != SITE]
    if folders:
        os.environ["PYTHONPATH"] = ":".join(folders)
    sys.path[0:1] = [os.path.dirname(os.path.realpath(path))] + folders
    sys.path_importer_cache.pop("/opt/atoll", None)
    if os.environ.get("PYTHONDONTWRITEBYTECODE"):
        sys.dont_write_bytecode = True


def new_main(path):
    main = type(sys)("__main__")
    main.__dict__.update(__builtins__=__builtins__, __file__=path, __cached__=None, __annotations__={},
                         __loader__=type(__loader__)("__main__", path))
    sys.modules["__main__"] = main
    return main.__dict__


def run(path, names):
    try:
        with open(path, "rb") as file:
            source = file.read()
        exec(compile(source, path, "exec", dont_inherit=True), names)
    except SystemExit:
        raise
    except BaseException as e:
        sys.last_type, sys.last_value, sys.last_traceback = type(e), e, e.__traceback__ and e.__traceback__.tb_next
        e.__traceback__ = sys.last_traceback
        sys.excepthook(type(e), e, e.__traceback__)
        if isinstance(e, KeyboardInterrupt):
            import signal
            sys.stdout.flush()
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGINT)
        sys.exit(1)


def load_driver(mode):
    """The module of the driver, for the modes that have it; else None."""
    if mode not in ("small", "cells", "data"):
        return None
    if mode == "data":
        os.environ["MPLBACKEND"] = "agg"
        for name in DATA:
            try:
                __import__(name)
            except ImportError:
                pass
    driver = type(sys)("_atoll_driver")
    driver.__file__ = DRIVER
    with open(DRIVER, "rb") as file:
        exec(compile(file.read(), DRIVER, "exec"), driver.__dict__)
    if mode != "small":
        driver.preload()
    driver.rehearse()
    return driver


def main(mode):
    driver = load_driver(mode)
    words = read_exactly(int.from_bytes(read_exactly(4), "little")).split(b"\0")[:-1]
    argc = int(words[1])
    argv, env = [os.fsdecode(w) for w in words[2:2 + argc]], [os.fsdecode(w) for w in words[2 + argc:]]
    os.chdir(words[0] or b"/home/user")
    set_environment(env)
    driven = argv[1:] == [DRIVER]
    if is_plain(argv, env) or driven and not driver:
        os.set_inheritable(3, driven)
        os.execvp(argv[0], argv)
    sys.argv = argv[1:]
    if hasattr(sys, "orig_argv"):
        sys.orig_argv = argv
    set_path(argv[1])
    if driven:
        new_main(argv[1])
        return driver.main(3)
    os.close(3)
    run(argv[1], new_main(argv[1]))


if sys.argv[1:] == ["check"]:
    sys.stdout.reconfigure(line_buffering=True)
    print("%d.%d.%d" % sys.version_info[:3])
else:
    main(sys.argv[1])
