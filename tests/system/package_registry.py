"""package_registry.py - registries for installs.sh: an npm registry with one real package, whose folder is given, a
Python index and a Go proxy with one small package each. `package_registry.py LOG FOLDER` prints "port=PORT" and serves
as registry.test (see registry.py) until its stdin ends. The path of each request is appended to LOG."""
import base64
import hashlib
import http.server
import io
import json
import os
import sys
import tarfile
import threading
import zipfile

log = open(sys.argv[1], "a", buffering=1)
folder = sys.argv[2]
about = json.load(open(os.path.join(folder, "package.json")))
pages = {}


def npm(base):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz", dereference=True) as t:
        t.add(folder, "package")
    name, version, tgz = about["name"], about["version"], packed.getvalue()
    file = f"/npm/{name}/-/{name}-{version}.tgz"
    pages[file] = tgz
    dist = {"tarball": base + file, "integrity": "sha512-" + base64.b64encode(hashlib.sha512(tgz).digest()).decode()}
    pages["/npm/" + name] = json.dumps({"name": name, "dist-tags": {"latest": version},
                                        "versions": {version: {**about, "dist": dist}}}).encode()


def pip():
    wheel = io.BytesIO()
    with zipfile.ZipFile(wheel, "w") as z:
        z.writestr("tiny.py", "def main(): print('tiny 1.0')\n")
        z.writestr("tiny-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
        z.writestr("tiny-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        z.writestr("tiny-1.0.dist-info/entry_points.txt", "[console_scripts]\ntiny-say = tiny:main\n")
        z.writestr("tiny-1.0.dist-info/RECORD", "")
    pages["/files/tiny-1.0-py3-none-any.whl"] = wheel.getvalue()
    pages["/simple/tiny/"] = b'<a href="../../files/tiny-1.0-py3-none-any.whl">tiny-1.0-py3-none-any.whl</a>'


def go():
    module = io.BytesIO()
    with zipfile.ZipFile(module, "w") as z:
        z.writestr("example.org/hello@v1.0.0/go.mod", "module example.org/hello\n")
        z.writestr("example.org/hello@v1.0.0/h.go", 'package hello\n\nconst Text = "hello 1.0.0"\n')
    at = "/go/example.org/hello/@v/"
    info = b'{"Version":"v1.0.0","Time":"2020-01-01T00:00:00Z"}'
    pages.update({at + "list": b"v1.0.0\n", at + "v1.0.0.info": info, at + "v1.0.0.mod": b"module example.org/hello\n",
                  at + "v1.0.0.zip": module.getvalue(), "/go/example.org/hello/@latest": info})


class Http(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def do_GET(self):
        log.write(self.path + "\n")
        body = pages.get(self.path)
        self.send_response(200 if body is not None else 404)
        body = body if body is not None else b"{}"
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Type", "text/html" if self.path.startswith("/simple") else "application/json")
        self.end_headers()
        self.wfile.write(body)


web = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Http)
npm(f"http://registry.test:{web.server_address[1]}")
pip()
go()
threading.Thread(target=web.serve_forever, daemon=True).start()
print("port=%d" % web.server_address[1], flush=True)
sys.stdin.read()
