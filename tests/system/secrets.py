"""secrets.py - for secrets.sh.

secrets.py serve FOLDER: an HTTPS server (cert.pem, key.pem of the folder), an HTTP server and a name server
on the loopback. Prints "https=PORT http=PORT dns=PORT" and serves until its stdin ends. A request is answered
with 200 if its Authorization header, or its query, has the content of FOLDER/expected; else with 401.

secrets.py scan TEXT-FILE PID: environment, arguments and memory of all processes in the pid namespace of PID.
Prints "processes=N found=M": in how many processes the content of the file was found."""
import base64, http.server, os, re, socket, socketserver, ssl, struct, sys, threading, urllib.parse


class Threaded(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True

    def handle_error(self, *args):  # clients that end a handshake are part of the test
        pass


def serve(folder):
    class Answer(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *args):
            pass

        def do_GET(self):
            with open(folder + "/requests", "a") as log:
                log.write("request\n")
            value = open(folder + "/expected").read()
            query = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query)
            given = self.headers.get("Authorization") or ""
            if given.startswith("Basic "):
                given = base64.b64decode(given[6:]).decode().replace("user:", "Bearer ")
            good = given == "Bearer " + value or query.get("key") == [value]
            body = b"authorised\n" if good else b"not authorised\n"
            self.send_response(200 if good else 401)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET

    def names(sock):
        while True:
            ask, who = sock.recvfrom(2048)
            at = 12
            while ask[at]:
                at += ask[at] + 1
            n = 1 if struct.unpack(">H", ask[at + 1:at + 3])[0] == 1 else 0
            rows = (b"\xc0\x0c" + struct.pack(">HHIH", 1, 1, 0, 4) + socket.inet_aton("127.0.0.1")) * n
            sock.sendto(ask[:2] + struct.pack(">HHHHH", 0x8180, 1, n, 0, 0) + ask[12:at + 5] + rows, who)

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder + "/cert.pem", folder + "/key.pem")
    secure, plain = Threaded(("127.0.0.1", 0), Answer), Threaded(("127.0.0.1", 0), Answer)
    secure.socket = context.wrap_socket(secure.socket, server_side=True, do_handshake_on_connect=False)
    dns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    dns.bind(("127.0.0.1", 0))
    for work in (secure.serve_forever, plain.serve_forever, lambda: names(dns)):
        threading.Thread(target=work, daemon=True).start()
    print("https=%d http=%d dns=%d" % (secure.server_address[1], plain.server_address[1], dns.getsockname()[1]), flush=True)
    sys.stdin.read()


def memory(pid):
    for name in ("environ", "cmdline"):
        yield open("/proc/%s/%s" % (pid, name), "rb").read()
    with open("/proc/%s/maps" % pid) as maps, open("/proc/%s/mem" % pid, "rb", 0) as mem:
        for line in maps:
            begin, end, rights = re.match(r"([0-9a-f]+)-([0-9a-f]+) (\S+)", line).groups()
            if "r" not in rights or line.rstrip().endswith(("[vvar]", "[vsyscall]")):
                continue
            try:
                mem.seek(int(begin, 16))
                yield mem.read(int(end, 16) - int(begin, 16))
            except (OSError, OverflowError, ValueError):
                pass


def scan(text_file, pid):
    text = open(text_file, "rb").read()
    inside = os.readlink("/proc/%s/ns/pid" % pid)
    processes = found = 0
    for other in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink("/proc/%s/ns/pid" % other) != inside:
                continue
        except OSError:  # it has ended, or belongs to another user namespace
            continue
        try:
            hit = any(text in part for part in memory(other))
        except (FileNotFoundError, ProcessLookupError):
            continue
        processes += 1
        found += hit
    print("processes=%d found=%d" % (processes, found))


if sys.argv[1] == "serve":
    serve(sys.argv[2])
else:
    scan(sys.argv[2], sys.argv[3])
