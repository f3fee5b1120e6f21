"""checkpoint_tree.py - files that are hard to store; checkpoint_hostile.sh runs it in boxes.

    checkpoint_tree.py make FOLDER   makes them
    checkpoint_tree.py list FOLDER   prints one number of everything that a checkpoint keeps of them, and how many they are
    checkpoint_tree.py change FOLDER changes files at full speed until FOLDER/stop exists"""
import hashlib
import os
import random
import resource
import socket
import stat
import sys

sys.setrecursionlimit(20000)
here = os.fsencode(sys.argv[2])


def put(path, content=b"x"):
    with open(path, "wb") as f:
        f.write(content)


def attribute(path, name, value):
    """Attributes of overlays are refused or escaped by the kernel, which is as good."""
    try:
        os.setxattr(path, name, value)
        return 1
    except OSError:
        return 0


def make():
    os.mkdir(here)
    os.chdir(here)
    for name in (b"n" * 255, b"new\nline", b"\xff\xfe\x80", b".wh.x", b".wh..wh..opq", b".atoll-x", b"!below", b"-b", b"...", b" ", b"\x01", "ü".encode()):
        put(name, name)
        os.mkdir(b"folders" + name[:100])
        put(b"folders" + name[:100] + b"/" + name, name)
    os.mkdir("links")
    os.link("new\nline", "links/hard")
    os.link("links/hard", "links/" + "h" * 255)
    os.symlink("s" * 4000, "links/long")
    os.symlink("/../../../etc/shadow", "links/outside")
    os.mkfifo("fifo")
    with socket.socket(socket.AF_UNIX) as s:
        s.bind("socket")
    put("sparse", b"begin")
    with open("sparse", "r+b") as f:
        f.seek(1 << 35)
        f.write(b"middle")
        f.truncate(1 << 36)
    put("empty", b"")
    put("attributes")
    attribute("attributes", "user.big", b"v" * 30000)
    for i in range(100):
        attribute("attributes", "user.a%d" % i, b"%d" % i)
    os.mkdir("forged")
    put("forged/kept")
    for name in ("opaque", "redirect", "whiteout", "metacopy", "origin"):
        attribute("forged", "user.overlay." + name, b"y")
        attribute("forged/kept", "user.overlay." + name, b"/etc")
    for mode in (0o000, 0o777, 0o1777, 0o2755, 0o4755):
        put("mode%o" % mode)
        os.chmod("mode%o" % mode, mode)
    os.utime("empty", ns=(-1, -(10**9)))
    os.utime("fifo", ns=(0, 2**33 * 10**9))
    top = os.open(".", os.O_RDONLY)
    for _ in range(1000):
        os.mkdir("d")
        os.chdir("d")
    put("deepest", b"at the bottom")
    os.fchdir(top)


def attributes(fd):
    return sorted((n, os.getxattr(fd, n)) for n in os.listxattr(fd) if n.startswith("user.") and not n.startswith("user.overlay."))


def entries(folder, to):
    for name in sorted(os.listdir(folder), key=os.fsencode):
        st = os.lstat(name, dir_fd=folder)
        kind = stat.S_IFMT(st.st_mode)
        if kind == stat.S_IFSOCK:
            continue  # not part of a checkpoint
        one = [os.fsencode(name), st.st_mode, st.st_uid, st.st_gid, st.st_mtime_ns, 0 if kind == stat.S_IFDIR else (st.st_size, st.st_nlink)]
        if kind == stat.S_IFLNK:
            one.append(os.readlink(name, dir_fd=folder))
        elif kind == stat.S_IFREG and st.st_mode & 0o400:
            fd = os.open(name, os.O_RDONLY, dir_fd=folder)
            one.append(attributes(fd))
            # Layers do not show where holes are: of a large file, only these places are read.
            for at in (0, 1 << 35, st.st_size - 65536) if st.st_size > 1 << 30 else range(0, st.st_size, 65536):
                one.append((at, os.pread(fd, 65536, at).rstrip(b"\0")))
            os.close(fd)
        to.update(repr(one).encode("utf-8", "surrogateescape"))
        count[0] += 1
        if kind == stat.S_IFDIR:
            fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=folder)
            to.update(repr(attributes(fd)).encode())
            entries(fd, to)
            os.close(fd)
    to.update(b"up")


def change():
    os.mkdir(here)
    os.chdir(here)
    print("ready", flush=True)
    while not os.path.exists("stop"):
        name = "f%d" % random.randrange(40)
        what = random.randrange(6)
        try:
            if what == 0:
                put(name, random.randbytes(random.randrange(300000)))
            elif what == 1:
                os.unlink(name)
            elif what == 2:
                with open(name, "ab") as f:
                    f.write(random.randbytes(100000))
            elif what == 3:
                os.truncate(name, random.randrange(1000))
            elif what == 4:
                os.mkdir(name)
            else:
                os.rename(name, "f%d" % random.randrange(40))
        except OSError:
            try:
                os.rmdir(name)
            except OSError:
                pass


count = [0]
if sys.argv[1] == "make":
    make()
elif sys.argv[1] == "change":
    change()
else:
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    whole = hashlib.sha256()
    entries(os.open(here, os.O_RDONLY), whole)
    print(whole.hexdigest(), count[0])
