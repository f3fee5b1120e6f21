# python.py - executed once by `atoll tier prepare wasm`: after the imports the state of the interpreter is saved.
# Every program continues at the marked line.
import sys
import os
import atexit
import codecs
import encodings.ascii
import encodings.latin_1
import encodings.utf_8
import functools
import gc
import io
import linecache
import re
import traceback
import types

_FOLDER = '/usr/local/lib'


def _warm_up():
    """What every program needs once: tables of the compiler, of encodings, of exceptions."""
    exec(compile('import os\n\ndef f(x=1):\n    return [n for n in range(x)]\n\nclass A:\n    pass\n\ntry:\n    f()\n    1 / 0\n'
                 'except ZeroDivisionError as e:\n    text = f"{e!r}"\nprint(end="")\n', '<warm-up>', 'exec'), {'__name__': 'warm'})
    os.environ.clear()
    os.environ.update([('HOME', '/home/user')])
    with open(_FOLDER + '/python3.11/os.py', 'rb') as f:
        f.read()
    try:
        os.chdir('/home/user')
    except OSError:
        pass
    os.chdir('/')
    'x\0y\0\0'.encode().decode(errors='surrogateescape').split('\0')
    sys.stdout.reconfigure(line_buffering=True)
    gc.collect()
    gc.freeze()  # collections leave out what exists now


def _start_texts():
    """Working folder, arguments and environment of this run."""
    fd = os.open(_FOLDER + '/.atoll-start', os.O_RDONLY)  # the state is saved here
    data = b''
    while chunk := os.read(fd, 65536):
        data += chunk
    os.close(fd)
    texts = iter(data.decode(errors='surrogateescape').split('\0'))
    return next(texts), list(iter(lambda: next(texts), '')), list(iter(lambda: next(texts), ''))


def _program(arguments):
    """The code of the program, and its name."""
    if arguments[:1] == ['-c'] and len(arguments) > 1:
        sys.argv = ['-c'] + arguments[2:]
        sys.path.insert(0, '')
        return arguments[1], '<string>'
    if not arguments or arguments[0] == '-':
        sys.argv = arguments or ['']
        sys.path.insert(0, '')
        return sys.stdin.read(), '<stdin>'
    sys.argv = arguments
    sys.path.insert(0, os.path.dirname(arguments[0]))
    try:
        with open(arguments[0], 'rb') as f:
            return f.read(), arguments[0]
    except OSError as e:
        print(f"python: can't open file {arguments[0]!r}: [Errno {e.errno}] {e.strerror}", file=sys.stderr)
        _end(2)


def _end(status):
    for step in (atexit._run_exitfuncs, sys.stdout.flush, sys.stderr.flush):
        try:
            step()
        except BaseException:
            status = status or 120
    os._exit(status)


def _exit_status(e):
    if e.code is None:
        return 0
    if isinstance(e.code, int):
        return e.code & 255
    print(e.code, file=sys.stderr)
    return 1


def _run():
    folder, arguments, environment = _start_texts()
    os.environ.clear()
    os.environ.update(line.split('=', 1) for line in environment if '=' in line)
    try:
        os.chdir(folder)
    except OSError:
        pass
    code, name = _program(arguments[1:])
    main = types.ModuleType('__main__')
    main.__builtins__ = __builtins__
    if name[0] != '<':
        main.__file__ = name
    sys.modules['__main__'] = main
    try:
        exec(compile(code, name, 'exec'), main.__dict__)
    except SystemExit as e:
        _end(_exit_status(e))
    except BaseException as e:
        tb = e.__traceback__.tb_next  # without this file
        sys.excepthook(type(e), e.with_traceback(tb), tb)
        _end(1)
    _end(0)


_warm_up()
_run()
