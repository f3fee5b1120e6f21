"""execs.py - clients that curl cannot be, for api_execs.sh: `execs.py WHAT ARG...`.
The environment has url and key."""
import base64
import http.client
import json
import os
import socket
import sys
import time
import urllib.parse

at = urllib.parse.urlsplit(os.environ["url"])
head = {"X-API-Key": os.environ["key"]}
TIME_SCALE = int(os.environ.get("time_scale", 1))  # of lib.sh


def connect(receive=0):
    """A socket to the daemon; receive: bytes of its buffer."""
    s = socket.socket()
    if receive:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive)
    s.connect((at.hostname, at.port))
    return s


def ask(method, path, body=None):
    c = http.client.HTTPConnection(at.hostname, at.port, timeout=120 * TIME_SCALE)
    c.request(method, path, None if body is None else json.dumps(body), head)
    return c, c.getresponse()


def request(s, method, path, body=b""):
    s.sendall((f"{method} {path} HTTP/1.1\r\nHost: {at.netloc}\r\nX-API-Key: {os.environ['key']}\r\n"
               f"Accept: application/x-ndjson\r\nContent-Length: {len(body)}\r\n\r\n").encode() + body)


def joined(lines, stream="stdout"):
    """The bytes of a stream; every piece must begin where the one before ended."""
    out, at_byte = b"", None
    for line in lines:
        e = json.loads(line)
        if e["type"] != stream:
            continue
        piece = e["data"].encode() if "data" in e else base64.b64decode(e["base64"])
        assert at_byte is None or e["offset"] == at_byte, (e["offset"], at_byte)
        at_byte = e["offset"] + len(piece)
        out += piece
    return out


def bytes_of():
    """stdin: events; prints the bytes of a stream, after checking their offsets."""
    sys.stdout.buffer.write(joined(sys.stdin, *sys.argv[2:]))


def never_reads():
    """N clients that ask for the output of an exec and read nothing of it, until stdin ends."""
    path, n = sys.argv[2], int(sys.argv[3])
    all_of = [connect(receive=4096) for _ in range(n)]
    for s in all_of:
        request(s, "GET", path)
    print("asked", flush=True)
    sys.stdin.read()


def leaves():
    """Starts a program, reads until its first output, and is gone."""
    s = connect()
    request(s, "POST", sys.argv[2], sys.argv[3].encode())
    got = b""
    while b'"stdout"' not in got:
        more = s.recv(4096)
        assert more, got
        got += more
    s.close()


def many_readers():
    """N clients read the same exec to its end; prints how many different outputs there were."""
    path, n = sys.argv[2], int(sys.argv[3])
    all_of = [ask("GET", path) for _ in range(n)]
    outs = {joined(r.read().decode().splitlines()) for _, r in all_of}
    print(len(outs), len(outs.pop()))


def at_once():
    """Starts programs in the background and reads each before it can have begun."""
    path, n = sys.argv[2], int(sys.argv[3])
    for _ in range(n):
        _, r = ask("POST", path, {"command": "echo hello; sleep 100", "background": True})
        run = json.loads(r.read())["id"]
        c, r = ask("GET", f"{path}/{run}/output")
        assert any(json.loads(line).get("data") == "hello\n" for line in r)
        c.close()
        ask("DELETE", f"{path}/{run}")[1].read()


def resumes():
    """Reads an exec in N connections, each a piece from where the last one stopped."""
    path, n, total, at_byte = sys.argv[2], int(sys.argv[3]), b"", 0
    for i in range(n):
        c, r = ask("GET", f"{path}?stdout={at_byte}")
        got = []
        for line in r:
            got.append(line)
            if i + 1 < n and sum(map(len, got)) > 10000:
                break
        piece = joined(got)
        total += piece
        at_byte += len(piece)
        c.close()
    sys.stdout.buffer.write(total)


def terminal():
    """On the terminal of an exec: types TEXT (python escapes), reads until MARK."""
    path, text, mark = sys.argv[2], sys.argv[3].encode().decode("unicode_escape"), sys.argv[4]
    c, r = ask("GET", path + "/output")
    seen = ""
    k = http.client.HTTPConnection(at.hostname, at.port, timeout=120 * TIME_SCALE)
    k.request("POST", path + "/stdin", text.encode("latin-1"), head)
    assert k.getresponse().status == 200
    end = time.monotonic() + 60 * TIME_SCALE
    for line in r:
        e = json.loads(line)
        seen += e.get("data", "")
        if mark in seen or time.monotonic() > end:
            break
    print(seen)


globals()[sys.argv[1]]()
