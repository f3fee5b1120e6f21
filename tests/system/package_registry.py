"""package_registry.py - registries for installs.sh: an npm registry with one real package, whose folder is given, a
Python index and a Go proxy with small packages. `package_registry.py LOG FOLDER` prints "port=PORT" and serves
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


def wheel(name, source, script=None):
    """A wheel of one module, and the page of the index that names it."""
    file, about = io.BytesIO(), f"{name}-1.0.dist-info"
    with zipfile.ZipFile(file, "w") as z:
        z.writestr(name + ".py", source)
        z.writestr(about + "/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        z.writestr(about + "/WHEEL", "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        z.writestr(about + "/entry_points.txt", f"[console_scripts]\n{script} = {name}:main\n" if script else "")
        z.writestr(about + "/RECORD", "")
    at = f"{name}-1.0-py3-none-any.whl"
    pages["/files/" + at] = file.getvalue()
    pages[f"/simple/{name}/"] = f'<a href="../../files/{at}">{at}</a>'.encode()


# Of streamlit and gradio only what the templates that come with the server use: they listen on their port and show app.py.
STREAMLIT = """import http.server, sys
title = write = print
def main():
    file, port = sys.argv[2], int(sys.argv[sys.argv.index("--server.port") + 1])
    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"streamlit shows " + open(file, "rb").read())
    http.server.HTTPServer(("127.0.0.1", port), Page).serve_forever()
"""
GRADIO = """import http.server, os
class Interface:
    def __init__(self, fn, inputs, outputs):
        self.fn = fn
    def launch(self):
        port = int(os.environ["GRADIO_SERVER_PORT"])
        class Page(http.server.BaseHTTPRequestHandler):
            def do_GET(page):
                page.send_response(200)
                page.end_headers()
                page.wfile.write(("gradio shows " + self.fn("you")).encode())
        http.server.HTTPServer(("127.0.0.1", port), Page).serve_forever()
"""


def pip():
    wheel("tiny", "def main(): print('tiny 1.0')\n", "tiny-say")
    wheel("streamlit", STREAMLIT, "streamlit")
    wheel("gradio", GRADIO)


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
