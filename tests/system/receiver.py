# receiver.py - receives webhooks and mails for notify.sh: `receiver.py FOLDER KEY`. Writes its ports to FOLDER/ports,
# and each request as one line of JSON to FOLDER/requests, each mail to FOLDER/mails. While FOLDER/down exists, it
# answers 503. The ports are those of http, of mail, and of https with FOLDER/trusted.pem and FOLDER/unknown.pem.
import base64, hashlib, hmac, http.server, json, os, socketserver, ssl, sys, threading, time

folder, key = sys.argv[1:3]
lock = threading.Lock()


# As in docs/operations.md.
def verify(key, header, body):
    part = dict(p.split("=", 1) for p in header.split(","))
    mac = hmac.new(key.encode(), part["t"].encode() + b"." + body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(mac, part["v1"]) and abs(time.time() - int(part["t"])) < 300


# As E2B's documentation shows it.
def verify_e2b(key, header, body):
    digest = base64.b64encode(hashlib.sha256(key.encode() + body).digest()).decode()
    return digest.replace("+", "-").replace("/", "_").rstrip("=") == header


class Receiver(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        down = os.path.exists(folder + "/down")
        if self.path == "/redirect":
            self.answer(302, {"Location": "http://127.0.0.1:%d/elsewhere" % self.server.server_address[1]})
            return
        if not down:
            line = {
                "path": self.path,
                "headers": {k.lower(): v for k, v in self.headers.items()},
                "body": json.loads(body),
                "signed": verify(key, self.headers["Atoll-Signature"], body) if "Atoll-Signature" in self.headers else False,
                "e2b": verify_e2b(key, self.headers["e2b-signature"], body) if "e2b-signature" in self.headers else False,
            }
            with lock, open(folder + "/requests", "a") as f:
                f.write(json.dumps(line) + "\n")
        self.answer(503 if down else 200, {})

    def answer(self, status, headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args):
        pass


class Mails(socketserver.StreamRequestHandler):
    def handle(self):
        mail, data = [], False
        self.wfile.write(b"220 receiver\r\n")
        for line in self.rfile:
            line = line.decode().rstrip("\r\n")
            mail.append(line)
            if data and line != ".":
                continue
            if line == "DATA":
                data = True
                self.wfile.write(b"354 send it\r\n")
                continue
            if data:
                with lock, open(folder + "/mails", "a") as f:
                    f.write(json.dumps(mail) + "\n")
                data = False
            self.wfile.write(b"221 end\r\n" if line == "QUIT" else b"250 received\r\n")


class Mailserver(socketserver.ThreadingTCPServer):
    daemon_threads = True


def serve_tls(name):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder + "/" + name)
    # The handshake is done in the thread of the connection.
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    server.handle_error = lambda *args: None  # a client that does not trust the certificate
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_address[1]


web = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
mail = Mailserver(("127.0.0.1", 0), Mails)
threading.Thread(target=mail.serve_forever, daemon=True).start()
with open(folder + "/ports.new", "w") as f:
    f.write("%d %d %d %d\n" % (web.server_address[1], mail.server_address[1], serve_tls("trusted.pem"), serve_tls("unknown.pem")))
os.rename(folder + "/ports.new", folder + "/ports")
web.serve_forever()
