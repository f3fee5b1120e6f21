"""The clients of http_hostile.sh that curl cannot be: raw bytes, and many at once."""
import base64
import json
import select
import socket
import statistics
import sys
import urllib.parse

WHAT, URL, ARG = sys.argv[1:4]
AT = urllib.parse.urlsplit(URL)


def dial():
    s = socket.create_connection((AT.hostname, AT.port))
    s.settimeout(20)
    return s


def exchange(data):
    """The status of the first answer, "none" without one; and the answer."""
    s, got = dial(), b""
    try:
        s.sendall(data)
        while True:
            piece = s.recv(65536)
            if not piece:
                break
            got += piece
    except OSError:
        pass
    s.close()
    return (got[9:12].decode() if got.startswith(b"HTTP/1.") else "none"), got


def request(method, path, key, body=None):
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nX-API-Key: {key}\r\nConnection: close\r\n"
    if body is not None:
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    return exchange(head.encode() + b"\r\n" + (body or b""))


def wrong_keys():
    seen = [request("GET", "/v1/who", "e2b_%040x" % i)[0] for i in range(200)]
    assert set(seen) == {"401", "429"}, set(seen)
    assert seen[:10] == ["401"] * 10 and seen.count("429") > 100, (seen[:10], seen.count("429"))
    for _ in range(20):
        assert request("GET", "/v1/who", ARG)[0] == "200"


def json_bodies():
    def post(path, body):
        return request("POST", path, ARG, body)

    many = b'{"command":"true","files":{' + b",".join(b'"f%d":1' % i for i in range(300000)) + b"}}"
    status, answer = post("/v1/run", many)
    assert status == "413" and b"members" in answer, answer[:400]
    for deep in (b"[" * 1000000, b'{"a":' * 100 + b"1" + b"}" * 100, b'{"files":' + b"[" * 65 + b"]" * 65 + b"}"):
        status, answer = post("/v1/run", deep)
        assert status == "413" and b"nested" in answer, (deep[:20], answer[:400])
    # Brackets and commas in a text are text, also behind escapes.
    text = json.dumps({"command": "printf %s '" + "[{,]" * 5000 + "\\\\' | tail -c 5", "timeout_ms": 20000}).encode()
    status, answer = post("/v1/run", text)
    assert status == "200" and b"]\\\\" in answer, answer[:600]
    for bad in (b'{"a":"\\', b'{"a":"\\"', b'"', b'{"a":"' + b"\\" * 99999, b"\0" * 50000, b"{" + b" " * 60000 + b"x", b"[" + b" " * 60000 + b"]"):
        status, answer = post("/v1/run", bad)
        assert status == "400", (bad[:20], answer[:400])
    # Large ones are parsed aside, and answered as small ones.
    big = json.dumps({"language": "bash", "code": "echo " + "x" * 3000000 + " | wc -c"}).encode()
    status, answer = post("/v1/run", big)
    assert status == "200" and b"3000001" in answer, answer[:600]
    # One that leaves meanwhile takes nothing along.
    for _ in range(8):
        s = dial()
        s.sendall(b"POST /v1/run HTTP/1.1\r\nHost: localhost\r\nX-API-Key: " + ARG.encode() +
                  b"\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(big) + big)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        s.close()
    assert request("GET", "/v1/who", ARG)[0] == "200"


def silence():
    """Ten times more connections than there may be, none of which asks."""
    flood = []
    for i in range(3000):
        flood.append(dial())
    for _ in range(5):
        assert exchange(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")[0] == "200"
    for s in flood:
        s.close()


def turns():
    """Forty connections of one team ask at once, then one of another team: how many are answered before it? The
    order is what counts, so the machine's speed does not matter."""
    greedy, modest = ARG.split(",")

    def ask(s, path, key):
        s.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nX-API-Key: {key}\r\n\r\n".encode())

    def answer(s):
        got = b""
        while b"\r\n\r\n" not in got:
            got += s.recv(65536)
        head, body = got.split(b"\r\n\r\n", 1)
        assert head.startswith(b"HTTP/1.1 200"), got[:300]
        length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        while len(body) < length:
            body += s.recv(65536)

    many, one, before = [dial() for _ in range(40)], dial(), []
    for i in range(60):
        for s in many:
            ask(s, "/v1/languages", greedy)
        ask(one, "/v1/who", modest)
        answer(one)
        before.append(len(select.select(many, [], [], 0)[0]))
        for s in many:
            answer(s)
    before = before[20:]  # by then the greedy team has used more than its part
    assert statistics.median(before) < 20, before


if WHAT == "raw":
    print(exchange(base64.b64decode(ARG))[0])
else:
    {"wrong_keys": wrong_keys, "json": json_bodies, "silence": silence, "turns": turns}[WHAT]()
