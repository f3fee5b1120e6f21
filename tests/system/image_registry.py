"""image_registry.py - a registry of hostile images, for images.sh: image_registry.py FOLDER. Prints "hostile=PORT" and
serves until its stdin ends. The first part of a name decides what happens:
  denied  401        busy  429        missing  404        half  the middle of a blob is the end
  digest  a blob with other bytes     arch  for another processor     secret  needs tester:s3cret-word
  slow  a blob is sent when FOLDER/go exists; FOLDER/asked shows that it was requested
  anything else: an image of the hostile layer with that name"""
import base64, gzip, http.server, io, json, os, socketserver, sys, tarfile, threading, time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import image

MARK = sys.argv[2]  # a name that must appear nowhere outside of a layer
AUTH = "Basic " + base64.b64encode(b"tester:s3cret-word").decode()


def archive(*entries):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, kind, data, facts in entries:
            info = tarfile.TarInfo(name)
            info.type, info.size = kind, len(data)
            for key, value in facts.items():
                setattr(info, key, value)
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def file(name, data=b"x", **facts):
    return (name, tarfile.REGTYPE, data, facts)


def link(name, target):
    return (name, tarfile.SYMTYPE, b"", dict(linkname=target))


def hard(name, target):
    return (name, tarfile.LNKTYPE, b"", dict(linkname=target))


LAYERS = {
    "dots": archive(file("../../../../../../tmp/" + MARK)),
    "hard": archive(hard("passwd", "/etc/passwd")),
    "owner": archive(file("a", uid=70000)),
    "below": archive(file("a"), file("a/b")),
    "circle": archive(link("a", "b"), link("b", "a"), file("a/x")),
    "truncated": archive(file("a", b"y" * 5000))[:3000],
    "rubbish": archive(file("a")) + b"rubbish" * 100,
    "no-tar": b"this is not an archive" * 50,
    # Harmless: unpacked, and nothing of them is outside.
    "links": archive(*sum(([link("l%d" % i, to), file("l%d/%s" % (i, MARK))] for i, to in enumerate([
        "/", "/tmp", "/etc", "/proc/self/root/tmp", "/proc/self/cwd", "/proc/1/root", "../../../../tmp", "/dev/shm", "/run"])), [])),
    "devices": archive(("sda", tarfile.BLKTYPE, b"", dict(devmajor=8)), ("hidden", tarfile.CHRTYPE, b"", {}),
                       ("null", tarfile.CHRTYPE, b"", dict(devmajor=1, devminor=3)), file("a")),
    "plain": archive(file("hello", b"hello")),
}


def blobs_of(kind):
    """Blobs by digest, and the manifest."""
    layer = LAYERS.get(kind, LAYERS["plain"])
    packed = gzip.compress(layer, 6, mtime=0)
    config = json.dumps({"architecture": "mips" if kind == "arch" else image.ARCH, "os": "linux", "config": {},
                         "rootfs": {"type": "layers", "diff_ids": ["sha256:" + image.digest(layer)]}}).encode()
    blobs = {image.digest(config): config, image.digest(packed): packed}
    manifest = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
                "config": {"mediaType": "application/vnd.oci.image.config.v1+json",
                           "digest": "sha256:" + image.digest(config), "size": len(config)},
                "layers": [{"mediaType": "application/vnd.oci.image.layer.v1.tar+gzip",
                            "digest": "sha256:" + image.digest(packed), "size": len(packed)}]}
    return blobs, json.dumps(manifest).encode(), image.digest(packed)


class Registry(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def answer(self, status, body=b"", kind="application/json", cut=0, **headers):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for key, value in headers.items():
            self.send_header(key.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body[:len(body) - cut])
        if cut:
            self.close_connection = True

    def error(self, status, code, **headers):
        self.answer(status, json.dumps({"errors": [{"code": code, "message": code.lower()}]}).encode(), **headers)

    def do_GET(self):
        if self.path == "/v2/" and not self.headers.get("Authorization"):  # clients send credentials only if asked here
            return self.error(401, "UNAUTHORIZED", WWW_Authenticate='Basic realm="test"')
        if self.path == "/v2/":
            return self.answer(200, b"{}")
        parts = self.path.split("/")  # "", v2, KIND, x, manifests | blobs, REFERENCE
        kind, what, name = parts[2], parts[-2], parts[-1]
        if kind == "denied" or (kind == "secret" and self.headers.get("Authorization") != AUTH):
            return self.error(401, "UNAUTHORIZED", WWW_Authenticate='Basic realm="test"')
        if kind == "busy":
            return self.error(429, "TOOMANYREQUESTS", Retry_After="0")  # skopeo tries again after this time
        if kind == "missing":
            return self.error(404, "MANIFEST_UNKNOWN")
        blobs, manifest, layer = blobs_of(kind)
        if what == "manifests":
            return self.answer(200, manifest, "application/vnd.oci.image.manifest.v1+json",
                               Docker_Content_Digest="sha256:" + image.digest(manifest))
        found = blobs.get(name.split(":")[1])
        if found is None:
            return self.error(404, "BLOB_UNKNOWN")
        if kind == "slow" and image.digest(found) == layer:
            open(sys.argv[1] + "/asked", "w").close()
            while not os.path.exists(sys.argv[1] + "/go"):
                time.sleep(0.02)
        if kind == "digest" and image.digest(found) == layer:
            found = bytes([found[0]]) + found[1:-1] + bytes([found[-1] ^ 1])
        self.answer(200, found, "application/octet-stream",
                    cut=len(found) // 2 if kind == "half" and image.digest(found) == layer else 0)

    do_HEAD = do_GET


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True


server = Server(("127.0.0.1", 0), Registry)
threading.Thread(target=server.serve_forever, daemon=True).start()
print("hostile=%d" % server.server_address[1], flush=True)
sys.stdin.read()
