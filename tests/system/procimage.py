"""procimage.py - a program with one of everything that a copy keeps, for tests/system/procimage.sh.

	procimage.py FOLDER PORT

Prints "ready", waits until FOLDER/check exists, and then compares everything with what it had before. The source and
each copy print one line: "checked", a number drawn at the start, the pid, what became of a connection, and "ok" or the
differences."""
import ctypes, mmap, os, select, signal, socket, subprocess, sys, threading, time

folder, port = sys.argv[1], int(sys.argv[2])
drawn = os.urandom(8).hex()
counter = [0]
lock = threading.Lock()
local = threading.local()
results = []


def work(number):
    local.number = number
    while not os.path.exists(folder + "/check"):
        with lock:
            counter[0] += 1
        time.sleep(0.005)
    with lock:
        results.append((number, local.number, threading.get_native_id()))


threads = [threading.Thread(target=work, args=(i,)) for i in range(3)]
for t in threads:
    t.start()
tids = sorted(t.native_id for t in threads)

file = open(folder + "/file", "w+b")
file.write(b"0123456789")
file.flush()
file.seek(4)
same_file = os.dup(file.fileno())
reader, writer = os.pipe()
os.write(writer, b"in the pipe")
full_reader, full_writer = os.pipe()
os.set_blocking(full_writer, False)
os.write(full_writer, b"x" * 60000)
ended_reader, ended_writer = os.pipe()
os.write(ended_writer, b"the rest")
os.close(ended_writer)
broken_reader, broken_writer = os.pipe()
os.close(broken_reader)
event = os.eventfd(7)
left, right = socket.socketpair()
left.send(b"to the right")
right.send(b"to the left")
listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind(("127.0.0.1", port))
listener.listen(5)
abstract = socket.socket(socket.AF_UNIX)
abstract.bind("\0procimage-%d" % port)
abstract.listen(3)
client = socket.create_connection(listener.getsockname())
server, _ = listener.accept()
poll = select.epoll()
for fd in (reader, event, right.fileno()):
    poll.register(fd, select.EPOLLIN)
deleted = open(folder + "/deleted", "w+b")
deleted.write(b"deleted content")
deleted.flush()
os.unlink(folder + "/deleted")
memory = os.memfd_create("memory")
os.write(memory, b"memfd content")
shared = mmap.mmap(-1, 8192)
shared[:6] = b"shared"
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
hidden = libc.mmap(None, ctypes.c_size_t(8192), 3, 0x22, -1, ctypes.c_size_t(0))
ctypes.memmove(hidden, b"hidden", 6)
libc.mprotect(ctypes.c_void_p(hidden), ctypes.c_size_t(8192), 0)
sparse = mmap.mmap(-1, 64 << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)  # more separate runs than one scan returns
sparse.madvise(mmap.MADV_NOHUGEPAGE)
for i in range(0, 64 << 20, 32768):
    sparse[i] = 7
timer = libc.timerfd_create(1, 0)
libc.timerfd_settime(timer, 0, ctypes.byref((ctypes.c_long * 4)(0, 0, 3600, 0)), None)
signals = []
signal.signal(signal.SIGUSR1, lambda *_: signals.append(1))
os.chdir("/usr")
os.umask(0o027)
print("ready", drawn, os.getpid(), flush=True)
before = counter[0]
while not os.path.exists(folder + "/check"):
    time.sleep(0.02)

bad = []


def want(name, got, expected):
    if got != expected:
        bad.append("%s: %r is not %r" % (name, got, expected))


for t in threads:
    t.join()
want("thread locals", [r[0] == r[1] for r in results], [True] * 3)
want("tids", sorted(r[2] for r in results), tids)
want("threads have run", counter[0] > before, True)
want("offset", os.read(same_file, 2), b"45")
want("offset of the other number", os.lseek(file.fileno(), 0, 1), 6)
want("pipe", os.read(reader, 100), b"in the pipe")
want("full pipe", len(os.read(full_reader, 100000)), 60000)
want("pipe without writers", (os.read(ended_reader, 100), os.read(ended_reader, 100)), (b"the rest", b""))
try:
    want("pipe without readers", os.write(broken_writer, b"x"), "BrokenPipeError")
except BrokenPipeError:
    pass
want("non-blocking", os.get_blocking(full_writer), False)
want("epoll", sorted(fd for fd, _ in poll.poll(0)), sorted([event, right.fileno()]))
want("eventfd", os.eventfd_read(event), 7)
want("socket pair", (left.recv(99), right.recv(99)), (b"to the left", b"to the right"))
one = socket.create_connection(("127.0.0.1", port), timeout=10)
two, _ = listener.accept()
one.send(b"new")
want("listener", two.recv(9), b"new")
want("unix listener", abstract.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN), 1)
try:
    server.send(b"old")
    connection = client.recv(9).decode()
except OSError as problem:
    connection = type(problem).__name__
deleted.seek(0)
want("deleted file", deleted.read(), b"deleted content")
want("memfd", os.pread(memory, 99, 0), b"memfd content")
want("shared memory", shared[:6], b"shared")
want("sparse memory", {sparse[i] for i in range(0, 64 << 20, 32768)}, {7})
libc.mprotect(ctypes.c_void_p(hidden), ctypes.c_size_t(8192), 3)
want("memory that was not readable", ctypes.string_at(hidden, 6), b"hidden")
left_over = (ctypes.c_long * 4)()
libc.timerfd_gettime(timer, ctypes.byref(left_over))
want("timerfd", 3000 < left_over[2] <= 3600, True)
os.kill(os.getpid(), signal.SIGUSR1)
for _ in range(1000):  # the interpreter calls the handler between two instructions of its own
    if signals:
        break
    time.sleep(0.01)
want("signal handler", signals, [1])
want("working folder", os.getcwd(), "/usr")
want("umask", os.umask(0), 0o027)
want("first thread", os.getpid(), threading.main_thread().native_id)
want("heap", len(b"".join(bytes([i % 256]) * 1000 for i in range(3000))), 3000000)
want("fork and exec", subprocess.run(["/bin/echo", "child"], stdout=subprocess.PIPE).stdout, b"child\n")
# In one write: copies of a copy share a file.
os.write(1, ("checked %s %d %s %s\n" % (drawn, os.getpid(), connection, "; ".join(bad) or "ok")).encode())
os._exit(0)
