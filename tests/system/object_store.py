#!/usr/bin/env python3
"""A small S3 server on loopback: objects are files of a folder. It verifies signed URLs with code of its own.

    object_store.py FOLDER BUCKET ACCESS SECRET REGION

It prints its port. FOLDER/objects has the objects, FOLDER/log one line per request (method, key, status) and FOLDER/urls the
URLs. FOLDER/fault, if it exists, says what it does instead: "503", "other" (bytes), "half" (an object, then the end),
"longer", "slow" (a byte every second), "silent" (no answer)."""
import calendar
import hashlib
import hmac
import os
import sys
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

folder, bucket, access, secret, region = sys.argv[1:6]
objects = os.path.join(folder, "objects")


def mac(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def signed(handler, path, query):
    """Is this request the one that the URL permits, and now?"""
    fields = dict(urllib.parse.parse_qsl(query, keep_blank_values=True))
    signature = fields.pop("X-Amz-Signature", "")
    day = fields.get("X-Amz-Date", "")[:8]
    scope = f"{day}/{region}/s3/aws4_request"
    if fields.get("X-Amz-Credential") != f"{access}/{scope}" or fields.get("X-Amz-SignedHeaders") != "host":
        return False
    quote = lambda text: urllib.parse.quote(text, safe="-._~")
    canonical = "&".join(f"{quote(k)}={quote(v)}" for k, v in sorted(fields.items()))
    request = "\n".join([handler.command, path, canonical, f"host:{handler.headers['Host']}", "", "host", "UNSIGNED-PAYLOAD"])
    text = "\n".join(["AWS4-HMAC-SHA256", fields["X-Amz-Date"], scope, hashlib.sha256(request.encode()).hexdigest()])
    key = f"AWS4{secret}".encode()
    for part in (day, region, "s3", "aws4_request"):
        key = mac(key, part)
    begin = calendar.timegm(time.strptime(fields["X-Amz-Date"], "%Y%m%dT%H%M%SZ"))
    return hmac.compare_digest(mac(key, text).hex(), signature) and -60 < time.time() - begin < int(fields["X-Amz-Expires"])


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def note(self, status):
        with open(os.path.join(folder, "log"), "a") as log:
            log.write(f"{self.command} {self.key} {status}\n")

    def reply(self, status, body=b"", length=None):
        self.note(status)
        self.send_response(status)
        if status != 204:
            self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def fault(self):
        try:
            with open(os.path.join(folder, "fault")) as f:
                return f.read().strip()
        except FileNotFoundError:
            return ""

    def serve(self):
        path, _, query = self.path.partition("?")
        self.key = urllib.parse.unquote(path)[len(bucket) + 2:]
        fault = self.fault()
        with open(os.path.join(folder, "urls"), "a") as urls:
            urls.write(f"{self.command} http://{self.headers['Host']}{self.path}\n")
        if not path.startswith(f"/{bucket}/") or not signed(self, path, query):
            self.close_connection = True
            self.reply(403, b"<Error><Code>SignatureDoesNotMatch</Code></Error>")
        elif fault == "503":
            self.close_connection = True
            self.reply(503, b"<Error><Code>SlowDown</Code></Error>")
        elif fault == "silent":
            self.note("silent")
            time.sleep(60)
        else:
            getattr(self, "object_" + self.command.lower())(os.path.join(objects, self.key.replace("/", "_")), fault)

    do_GET = do_PUT = do_DELETE = do_HEAD = serve

    def object_put(self, file, fault):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if fault == "half":  # it says that it has all
            body = body[:len(body) // 2]
        elif fault == "other":
            body = bytes(len(body))
        with open(file + ".part", "wb") as f:
            f.write(body)
        os.rename(file + ".part", file)
        self.reply(200)

    def object_get(self, file, fault):
        if not os.path.exists(file):
            self.reply(404)
            return
        with open(file, "rb") as f:
            body = f.read()
        if fault == "other":
            body = body[:-100] + bytes(100)
        elif fault == "longer":
            body += bytes(1 << 20)
        if fault == "half":
            self.reply(200, body[:len(body) // 2], len(body))
            self.close_connection = True
        elif fault == "slow":
            self.reply(200, b"", len(body))
            for byte in body[:60]:
                self.wfile.write(bytes([byte]))
                time.sleep(1)
        else:
            self.reply(200, body)

    object_head = object_get

    def object_delete(self, file, fault):
        if os.path.exists(file):
            os.unlink(file)
        self.reply(204)


os.makedirs(objects, exist_ok=True)
server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[6]) if len(sys.argv) > 6 else 0), Handler)
server.daemon_threads = True
print(server.server_port, flush=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
while os.path.isdir(folder):  # it ends with the test
    time.sleep(1)
