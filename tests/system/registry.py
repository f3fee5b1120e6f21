"""registry.py - what a box wants to reach, for egress.sh: an HTTP server, one that sends back what it
gets, and a name server, all on the loopback. Prints "http=PORT echo=PORT dns=PORT" and serves until its
stdin ends. Requests are appended to the file given, a line each."""
import http.server, socket, socketserver, struct, sys, threading

log = open(sys.argv[1], "a", buffering=1)
NAMES = {
    "registry.test": ["127.0.0.1"],
    "inside.test": ["127.0.0.1"],
    "other.test": ["127.0.0.1"],
    "metadata.test": ["169.254.169.254"],
    "mixed.test": ["93.184.216.34", "10.0.0.1"],
}


class Http(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def note(self, body=b""):
        log.write("%s %s host=%s connection=%s secret=%s body=%d\n" % (
            self.command, self.path, self.headers["host"], self.headers["connection"],
            self.headers["x-secret"], len(body)))

    def do_GET(self):
        self.note()
        if self.path.startswith("/big/"):
            n = int(self.path[5:])
            self.send_response(200)
            self.send_header("Content-Length", str(n))
            self.end_headers()
            while n > 0:
                self.wfile.write(b"x" * min(n, 65536))
                n -= 65536
            return
        if self.path == "/chunked":
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for _ in range(3):
                self.wfile.write(b"5\r\nhello\r\n")
            self.wfile.write(b"0\r\n\r\n")
            return
        body = b"packages\n"
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.note(body)
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Echo(socketserver.BaseRequestHandler):
    def handle(self):
        log.write("echo\n")
        while True:
            got = self.request.recv(65536)
            if not got:
                return
            self.request.sendall(got)


class Threaded(socketserver.ThreadingMixIn, socketserver.TCPServer):
    daemon_threads = True

    allow_reuse_address = True

    def handle_error(self, *args):  # clients that disconnect early are part of the test
        pass


def serve_names(sock):
    while True:
        ask, who = sock.recvfrom(2048)
        at, labels = 12, []
        while ask[at]:
            labels.append(ask[at + 1:at + 1 + ask[at]].decode())
            at += ask[at] + 1
        kind = struct.unpack(">H", ask[at + 1:at + 3])[0]
        found = NAMES.get(".".join(labels).lower())
        answers = found if found and kind == 1 else []
        head = ask[:2] + struct.pack(">HHHHH", 0x8180 if found else 0x8183, 1, len(answers), 0, 0)
        rows = b"".join(b"\xc0\x0c" + struct.pack(">HHIH", 1, 1, 0, 4) + socket.inet_aton(a) for a in answers)
        log.write("dns %s\n" % ".".join(labels).lower())
        sock.sendto(head + ask[12:at + 5] + rows, who)


web = Threaded(("127.0.0.1", 0), Http)
echo = Threaded(("127.0.0.1", 0), Echo)
dns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
dns.bind(("127.0.0.1", 0))
for work in (web.serve_forever, echo.serve_forever, lambda: serve_names(dns)):
    threading.Thread(target=work, daemon=True).start()
print("http=%d echo=%d dns=%d" % (web.server_address[1], echo.server_address[1], dns.getsockname()[1]), flush=True)
sys.stdin.read()
