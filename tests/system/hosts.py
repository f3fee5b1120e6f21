"""hosts.py - hosts that a box wants to reach without a proxy, for capture.sh: HTTP, HTTPS, one that sends
back what it gets, one that sends first (as SSH does), and a name server. All on the address given, in the
network namespace of the test. Prints "http=PORT tls=PORT echo=PORT first=PORT dns=PORT" and serves until
its stdin ends. Connections are appended to the log, a line each. Paths below /files/ are files of the folder
given."""
import http.server, os, socket, socketserver, ssl, struct, sys, threading

log = open(sys.argv[1], "a", buffering=1)
here, certificate, folder = sys.argv[2:5]
NAMES = {"host.test": [here], "other.test": [here], "metadata.test": ["169.254.169.254"]}


class Http(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def do_GET(self):
        name = "https" if isinstance(self.request, ssl.SSLSocket) else "http"
        log.write("%s %s host=%s\n" % (name, self.path, self.headers["host"]))
        body = b"x" * int(self.path[5:]) if self.path.startswith("/big/") else b"welcome\n"
        if self.path.startswith("/files/"):
            body = self.file(self.path[7:].split("?")[0])
        self.send_response(200 if body is not None else 404)
        self.send_header("Content-Length", str(len(body or b"")))
        self.end_headers()
        self.wfile.write(body or b"")

    def file(self, path):
        try:
            with open(os.path.join(folder, path), "rb") as f:
                return f.read()
        except OSError:
            return None


class Echo(socketserver.BaseRequestHandler):
    def handle(self):
        log.write("echo\n")
        while got := self.request.recv(65536):
            self.request.sendall(got)


class First(socketserver.BaseRequestHandler):
    def handle(self):
        log.write("first\n")
        self.request.sendall(b"220 ready\r\n")
        self.request.sendall(b"you said " + self.request.recv(100))


class Threaded(socketserver.ThreadingMixIn, socketserver.TCPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 128

    def handle_error(self, *args):  # clients that disconnect early are part of the test
        pass


class Tls(Threaded):
    def get_request(self):
        sock, client = super().get_request()
        return context.wrap_socket(sock, server_side=True, do_handshake_on_connect=False), client


def serve_names(sock):
    while True:
        ask, client = sock.recvfrom(2048)
        at, labels = 12, []
        while ask[at]:
            labels.append(ask[at + 1:at + 1 + ask[at]].decode())
            at += ask[at] + 1
        kind = struct.unpack(">H", ask[at + 1:at + 3])[0]
        name = ".".join(labels).lower()
        found = NAMES.get(name)
        answers = found if found and kind == 1 else []
        head = ask[:2] + struct.pack(">HHHHH", 0x8180 if found else 0x8183, 1, len(answers), 0, 0)
        rows = b"".join(b"\xc0\x0c" + struct.pack(">HHIH", 1, 1, 0, 4) + socket.inet_aton(a) for a in answers)
        log.write("dns %s\n" % name)
        sock.sendto(head + ask[12:at + 5] + rows, client)


context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(certificate)
servers = {"http": Threaded((here, 0), Http), "tls": Tls((here, 0), Http),
           "echo": Threaded((here, 0), Echo), "first": Threaded((here, 0), First)}
dns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
dns.bind((here, 0))
for work in [s.serve_forever for s in servers.values()] + [lambda: serve_names(dns)]:
    threading.Thread(target=work, daemon=True).start()
ports = {name: s.server_address[1] for name, s in servers.items()} | {"dns": dns.getsockname()[1]}
print(" ".join("%s=%d" % item for item in ports.items()), flush=True)
sys.stdin.read()
