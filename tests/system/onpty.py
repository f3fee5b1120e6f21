"""onpty.py - runs a command on a terminal of its own and plays the person in front of it.

    onpty.py STEP... -- COMMAND...

Steps, in order: wait=TEXT (until it was printed), send=TEXT (\\x03 is Ctrl-C), insist=TEXT (twice a
second until the command ends: a Ctrl-C before it may have eaten it), size=ROWSxCOLS, leave (the
terminal goes away). Then waits for the command. Prints what the terminal showed; the
exit status is the command's, 128+N for a signal. Gives up after 120 s with 99.
"""
import fcntl, os, pty, select, signal, struct, sys, termios, time

split = sys.argv.index("--")
steps, command = sys.argv[1:split], sys.argv[split + 1:]
deadline = time.monotonic() + 120
seen = insisted = b""


def size(fd, rows, cols):
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))


def typed(text):
    return text.encode().decode("unicode_escape").encode("latin-1")


def read(fd):
    """Some output, or b"" at the end."""
    global seen
    while insisted and not select.select([fd], [], [], 0.5)[0] and time.monotonic() < deadline:
        os.write(fd, insisted)
    if not select.select([fd], [], [], max(0, deadline - time.monotonic()))[0]:
        sys.stdout.buffer.write(seen)
        print("\n# onpty: gave up")
        sys.exit(99)
    try:
        got = os.read(fd, 65536)
    except OSError:
        got = b""
    seen += got
    return got


pid, fd = pty.fork()
if pid == 0:
    size(0, 24, 80)  # before the command can look
    os.execvp(command[0], command)
mark = 0
for step in steps:
    action, _, text = step.partition("=")
    if action == "wait":
        while text.encode() not in seen[mark:]:
            if not read(fd):
                break
        mark = seen.find(text.encode(), mark) + len(text)
    elif action == "send":
        os.write(fd, typed(text))
    elif action == "insist":
        insisted = typed(text)
        os.write(fd, insisted)
    elif action == "size":
        rows, cols = text.split("x")
        size(fd, int(rows), int(cols))
        os.kill(pid, signal.SIGWINCH)
    elif action == "leave":
        os.close(fd)
        fd = -1
while fd >= 0 and read(fd):
    pass
_, status = os.waitpid(pid, 0)
sys.stdout.buffer.write(seen)
sys.stdout.flush()
sys.exit(128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status))
