"""image.py - images for tests, as OCI layouts.
  image.py debian FOLDER     a small root of the host's packages in three layers, tag `test`
  image.py list FOLDER       every entry of a tree, one line each: for comparison
The layers of the first have deletions, opaque folders, hard links, setuid programs, other owners, odd names."""
import gzip, hashlib, io, json, os, platform, stat, subprocess, sys, tarfile

ARCH = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
PACKAGES = """apt base-files base-passwd bash coreutils dash debianutils diffutils dpkg findutils gpgv grep gzip hostname
libc-bin libc6 libgcc-s1 libstdc++6 libtinfo6 login mawk passwd perl-base sed tar util-linux zlib1g libselinux1 libpcre2-8-0
libacl1 libattr1 libcrypt1 libzstd1 liblzma5 libbz2-1.0 libgmp10 libmd0 libsystemd0 libudev1 libapt-pkg6.0 libseccomp2
libssl3 libssl3t64 libapt-pkg7.0 libxxhash0 liblz4-1 libgcrypt20 libgpg-error0 libcap2 libblkid1 libmount1 libsmartcols1
libpam0g libaudit1 libaudit-common libcap-ng0""".split()
LEFT_OUT = ("/usr/share/doc", "/usr/share/locale", "/usr/share/man", "/usr/share/info", "/usr/share/lintian",
            "/usr/share/bash-completion", "/usr/lib/locale", "/usr/share/bug", "/usr/lib/x86_64-linux-gnu/gconv",
            "/usr/lib/aarch64-linux-gnu/gconv", "/usr/share/keyrings", "/usr/share/zoneinfo")


def digest(data):
    return hashlib.sha256(data).hexdigest()


class Layer:
    """A layer in the making; names without a leading slash."""

    def __init__(self):
        self.bytes = io.BytesIO()
        self.tar = tarfile.open(fileobj=self.bytes, mode="w", format=tarfile.PAX_FORMAT)
        self.names = set()

    def add(self, name, kind=tarfile.REGTYPE, data=b"", **facts):
        above = os.path.dirname(name.rstrip("/"))
        if above and above != "." and above not in self.names:
            self.folder(above)  # as builders of images do: a layer has the folders above its entries
        info = tarfile.TarInfo(name)
        info.type, info.size = kind, len(data)
        info.mode = 0o755 if kind == tarfile.DIRTYPE else 0o777 if kind == tarfile.SYMTYPE else 0o644
        info.mtime = 1500000000
        for key, value in facts.items():
            setattr(info, key, value)
        self.names.add(name)
        self.tar.addfile(info, io.BytesIO(data))

    def folder(self, name, **facts):
        self.add(name, tarfile.DIRTYPE, **facts)

    def link(self, name, target, **facts):
        self.add(name, tarfile.SYMTYPE, linkname=target, **facts)

    def hard(self, name, target):
        self.add(name, tarfile.LNKTYPE, linkname=target)

    def remove(self, name):
        self.add(os.path.join(os.path.dirname(name), ".wh." + os.path.basename(name)))

    def opaque(self, name):
        self.add(name + "/.wh..wh..opq")

    def host(self, path):
        """A file of this host, and the folders above it."""
        name = os.path.realpath(os.path.dirname(path)).lstrip("/") + "/" + os.path.basename(path)
        above = os.path.dirname(name)
        if name in self.names or not os.path.lexists("/" + name):
            return
        parts = above.split("/")
        for i in range(1, len(parts) + 1):
            if "/".join(parts[:i]) not in self.names:
                self.entry("/".join(parts[:i]))
        self.entry(name)

    def entry(self, name):
        st = os.lstat("/" + name)
        facts = dict(mode=stat.S_IMODE(st.st_mode), uid=min(st.st_uid, 60000), gid=min(st.st_gid, 60000),
                     mtime=st.st_mtime_ns // 10**9 + 0.25)
        if stat.S_ISDIR(st.st_mode):
            self.folder(name, **facts)
        elif stat.S_ISLNK(st.st_mode):
            self.link(name, os.readlink("/" + name), **facts)
        elif stat.S_ISREG(st.st_mode):
            with open("/" + name, "rb") as f:
                self.add(name, data=f.read(), **facts)

    def end(self):
        self.tar.close()
        return self.bytes.getvalue()


def write_layout(folder, layers, config=None, arch=ARCH, tag="test"):
    """layers: uncompressed archives, the lowest first. Returns the digests of blobs by their content's role."""
    blobs = os.path.join(folder, "blobs/sha256")
    os.makedirs(blobs, exist_ok=True)

    def put(data):
        with open(os.path.join(blobs, digest(data)), "wb") as f:
            f.write(data)
        return {"digest": "sha256:" + digest(data), "size": len(data)}

    packed = [dict(put(gzip.compress(one, 1, mtime=0)), mediaType="application/vnd.oci.image.layer.v1.tar+gzip")
              for one in layers]
    about = {"architecture": arch, "os": "linux", "config": config or {},
             "rootfs": {"type": "layers", "diff_ids": ["sha256:" + digest(one) for one in layers]},
             "history": [{"created_by": "image.py"} for _ in layers]}
    manifest = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
                "config": dict(put(json.dumps(about).encode()), mediaType="application/vnd.oci.image.config.v1+json"),
                "layers": packed}
    index = {"schemaVersion": 2, "manifests": [dict(put(json.dumps(manifest).encode()), mediaType=manifest["mediaType"],
             annotations={"org.opencontainers.image.ref.name": tag})]}
    with open(os.path.join(folder, "index.json"), "w") as f:
        json.dump(index, f)
    with open(os.path.join(folder, "oci-layout"), "w") as f:
        f.write('{"imageLayoutVersion": "1.0.0"}')


def debian_base():
    layer = Layer()
    layer.folder("./")
    for name in "bin sbin lib lib64".split():
        if os.path.islink("/" + name):
            layer.link(name, os.readlink("/" + name))
    for name, facts in {"etc": {}, "usr": {}, "usr/bin": {}, "usr/sbin": {}, "usr/lib": {}, "usr/lib64": {}, "var": {},
                        "root": dict(mode=0o700), "tmp": dict(mode=0o1777), "run": {}, "proc": {}, "sys": {}, "dev": {},
                        "home": {}, "opt": {}, "srv": {}, "var/mail": dict(gid=8, mode=0o2775), "var/tmp": dict(mode=0o1777),
                        "var/lib": {}, "var/lib/dpkg": {}}.items():
        layer.folder(name, **facts)
    listed = subprocess.run(["dpkg", "-L"] + PACKAGES, capture_output=True, text=True).stdout.split("\n")
    for path in sorted(set(listed)):
        if path.startswith("/") and not path.startswith(LEFT_OUT) and os.path.lexists(path) and not (
                os.path.isdir(path) and not os.path.islink(path)):
            layer.host(path)
    loader = next((p for p in os.listdir("/usr/lib64") if p.startswith("ld-linux")), None) if os.path.isdir("/usr/lib64") else None
    if loader:
        layer.host("/usr/lib64/" + loader)
    layer.add("etc/passwd", data=b"root:x:0:0:root:/root:/bin/bash\nmail:x:8:8:mail:/var/mail:/bin/sh\n"
                                 b"app:x:1234:1234::/srv/app:/bin/bash\nnobody:x:65534:65534::/:/bin/false\n")
    layer.add("etc/group", data=b"root:x:0:\nmail:x:8:\nshadow:x:42:\napp:x:1234:\nnogroup:x:65534:\n")
    layer.add("etc/shadow", data=b"root:*:1::::::\n", mode=0o640, gid=42)
    layer.add("etc/os-release", data=b'NAME="Test image"\nID=test\n')
    layer.add("var/lib/dpkg/status", data=b"")
    for name in "old/a old/b old/sub/c kept/a kept/b".split():
        layer.add("srv/" + name, data=name.encode())
    layer.add("srv/file", data=b"becomes a folder")
    layer.folder("srv/folder")
    layer.add("srv/folder/x", data=b"becomes a file")
    layer.link("srv/link", "/etc/passwd")
    layer.add("srv/again/a", data=b"is removed, and its folder is made again")
    return layer.end()


def debian_app():
    layer = Layer()
    layer.folder("srv/app", uid=1234, gid=1234, mode=0o2750, mtime=1600000000.5)
    layer.add("srv/app/run", data=b"#!/bin/sh\necho from the image\n", mode=0o755, uid=1234, gid=1234)
    layer.add("srv/app/suid", data=b"s", mode=0o4755)
    layer.hard("srv/app/run2", "srv/app/run")
    layer.hard("srv/app/run3", "srv/app/run2")
    layer.link("srv/app/abs", "/srv/app/run")
    layer.hard("srv/app/abs2", "srv/app/abs")
    layer.add("srv/app/pipe", tarfile.FIFOTYPE, mode=0o620, uid=7)
    layer.add("srv/app/e\u0301-decomposed", data=b"1")
    layer.add("srv/app/\u00e9-composed", data=b"2")
    layer.add("srv/app/" + "n" * 200 + "/" + "m" * 200, data=b"long")
    layer.link("srv/app/long-link", "t" * 300)
    layer.add("srv/app/65534", data=b"n", uid=65534, gid=65534)
    layer.remove("srv/old/a")
    layer.remove("srv/old/sub")
    layer.opaque("srv/kept")
    layer.folder("srv/kept")
    layer.add("srv/kept/new", data=b"only this")
    layer.folder("srv/file", mode=0o711)
    layer.add("srv/file/x", data=b"now a folder")
    layer.add("srv/folder", data=b"now a file")
    layer.add("srv/link", data=b"now a file, and /etc/passwd has not changed")
    return layer.end()


def debian_last():
    layer = Layer()
    layer.remove("srv/again")
    layer.folder("srv/again", uid=5)
    layer.add("srv/again/b", data=b"new")
    layer.remove("srv/app/suid")
    layer.remove("etc/nothing")
    layer.add("etc/os-release", data=b'NAME="Test image, changed"\nID=test\n')
    return layer.end()


def list_tree(top):
    """Names, kinds, modes, owners, times, sizes, content, targets, and which names are the same file."""
    first, lines = {}, []
    for folder, folders, files in os.walk(top):
        for name in folders + files:
            path = os.path.join(folder, name)
            short, st = os.path.relpath(path, top), os.lstat(path)
            what = "%s %o %d:%d %d" % (stat.filemode(st.st_mode)[0], stat.S_IMODE(st.st_mode), st.st_uid, st.st_gid, st.st_mtime_ns)
            if stat.S_ISLNK(st.st_mode):
                what += " -> " + os.readlink(path)
            if stat.S_ISREG(st.st_mode):
                with open(path, "rb") as f:
                    what += " %d %s" % (st.st_size, digest(f.read()))
            if not stat.S_ISDIR(st.st_mode):
                first.setdefault((st.st_dev, st.st_ino), []).append(short)
            lines.append((short, what))
    group = {short: min(names) for names in first.values() for short in names}
    for short, what in sorted(lines):
        print(ascii(short), what, "=", ascii(group.get(short, "")))


if __name__ == "__main__":
    if sys.argv[1] == "debian":
        write_layout(sys.argv[2], [debian_base(), debian_app(), debian_last()], {
            "Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "FROM_IMAGE=yes"],
            "WorkingDir": "/srv/app", "User": "app", "Cmd": ["/srv/app/run"], "ExposedPorts": {"8080/tcp": {}},
            "Labels": {"made.by": "image.py"}})
    else:
        list_tree(sys.argv[2])
