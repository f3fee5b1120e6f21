"""net_matrix.py - the world around a box, for net_matrix.sh.

    net_matrix.py serve LOG [dns]    HTTP on port 80 of every address; with dns, a name server on port 53, too
    net_matrix.py addresses FILE     prints an address of each range of the table in FILE (ip_class.c)

A request to HTTP is appended to LOG with the address that it was sent to. /to/URL answers with a
redirect to that URL. Names: a-HEX.test has the address HEX; c-HEX.test leads to it over five
CNAMEs; m-HEX.test has a public address, too; r-HEX.test has a public address and HEX in turns."""
import http.server, ipaddress, re, socket, socketserver, struct, sys, threading

PUBLIC = "93.184.216.34"


class Http(http.server.BaseHTTPRequestHandler):
    def log_message(self, *args):
        pass

    def do_GET(self):
        log.write("%s %s\n" % (self.connection.getsockname()[0], self.path))
        self.send_response(302 if self.path.startswith("/to/") else 200)
        if self.path.startswith("/to/"):
            self.send_header("Location", self.path[4:])
        self.end_headers()
        self.wfile.write(b"REACHED")


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    address_family = socket.AF_INET6

    def server_bind(self):
        self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        super().server_bind()


def name_bytes(name):
    return b"".join(bytes([len(l)]) + l.encode() for l in name.split(".")) + b"\0"


turns = {}


def records(name, kind):
    """The answer section for a query: (owner, type, data)."""
    how, _, rest = name.partition("-")
    if name == "public.test":
        return [(name, 1, socket.inet_aton(PUBLIC))] if kind == 1 else []
    address = ipaddress.ip_address(bytes.fromhex(rest.split(".")[0]))
    own = 1 if address.version == 4 else 28
    rows, at = [], name
    if how == "c":
        for i in range(5):
            rows.append((at, 5, name_bytes("%d-%s" % (i, rest))))
            at = "%d-%s" % (i, rest)
    if how == "r":
        turns[name, kind] = turns.get((name, kind), 0) + 1
        if turns[name, kind] % 2:
            return [(name, 1, socket.inet_aton(PUBLIC))] if kind == 1 else []
    if how == "m" and kind == 1:
        rows.append((name, 1, socket.inet_aton(PUBLIC)))
    if kind == own:
        rows.append((at, own, address.packed))
    return rows


def serve_names(sock):
    while True:
        ask, who = sock.recvfrom(2048)
        at, labels = 12, []
        while ask[at]:
            labels.append(ask[at + 1:at + 1 + ask[at]].decode().lower())
            at += ask[at] + 1
        kind = struct.unpack(">H", ask[at + 1:at + 3])[0]
        try:
            found = records(".".join(labels), kind)
        except ValueError:
            found = None
        head = ask[:2] + struct.pack(">HHHHH", 0x8183 if found is None else 0x8180, 1, len(found or []), 0, 0)
        rows = b"".join(name_bytes(n) + struct.pack(">HHIH", t, 1, 0, len(d)) + d for n, t, d in found or [])
        sock.sendto(head + ask[12:at + 5] + rows, who)


if sys.argv[1] == "addresses":
    for text in re.findall(r'\{ "([0-9a-f:./]+)", IP_', open(sys.argv[2]).read()):
        net = ipaddress.ip_network(text)
        print(net[min(5, net.num_addresses - 1)])
else:
    log = open(sys.argv[2], "a", buffering=1)
    web = Server(("::", 80), Http)
    if "dns" in sys.argv:
        dns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        dns.bind(("0.0.0.0", 53))
        threading.Thread(target=serve_names, args=(dns,), daemon=True).start()
    log.write("ready\n")
    web.serve_forever()
