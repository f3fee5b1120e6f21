"""process.py - an E2B client as small as can be, for e2b_process.sh: `process.py WHAT [ARG...]`.
The environment has url, box and token."""
import base64
import concurrent.futures
import http.client
import json
import os
import signal
import socket
import struct
import sys
import time
import urllib.parse

at = urllib.parse.urlsplit(os.environ["url"])


def headers(**more):
    return {"E2b-Sandbox-Id": os.environ["box"], "E2b-Sandbox-Port": "49983",
            "X-Access-Token": os.environ["token"], "Connect-Protocol-Version": "1",
            **{k.replace("_", "-"): str(v) for k, v in more.items()}}


def pack(doc, flags=0):
    text = doc if isinstance(doc, bytes) else json.dumps(doc).encode()
    return struct.pack(">BI", flags, len(text)) + text


def unary(method, doc, **more):
    """The status and the answer."""
    c = http.client.HTTPConnection(at.hostname, at.port, timeout=120)
    c.request("POST", "/process.Process/" + method, json.dumps(doc),
              headers(Content_Type="application/json", **more))
    r = c.getresponse()
    assert r.headers["Content-Type"] == "application/json", r.headers["Content-Type"]
    return r.status, json.loads(r.read())


def done(method, doc):
    assert unary(method, doc) == (200, {}), unary(method, doc)


class Stream:
    """Messages of a server stream; `end` is what its last envelope said."""

    def __init__(self, method, doc, receive=0, **more):
        self.s = socket.socket()
        if receive:
            self.s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive)
        self.s.settimeout(30)
        self.s.connect((at.hostname, at.port))
        body = doc if isinstance(doc, bytes) else pack(doc)
        head = headers(Content_Type="application/connect+json", Host=at.netloc,
                       Content_Length=len(body), **more)
        self.s.sendall((f"POST /process.Process/{method} HTTP/1.1\r\n" +
                        "".join(f"{k}: {v}\r\n" for k, v in head.items()) + "\r\n").encode() + body)
        self.end = None

    def __iter__(self):
        r = http.client.HTTPResponse(self.s)
        r.begin()
        self.r = r
        assert r.status == 200 and r.headers["Content-Type"] == "application/connect+json", r.status
        while self.end is None:
            flags, n = struct.unpack(">BI", self.exactly(5))
            text = json.loads(self.exactly(n))
            if flags == 2:
                self.end = text
                assert r.read() == b""
            else:
                assert flags == 0 and list(text) == ["event"], (flags, text)
                yield text["event"]

    def exactly(self, n):
        got = b""
        while len(got) < n:
            piece = self.r.read(n - len(got))
            if not piece:
                raise EOFError
            got += piece
        return got

    def close(self):
        if hasattr(self, "r"):
            self.r.close()
        self.s.close()


def shell(line, **rest):
    return {"process": {"cmd": "/bin/bash", "args": ["-l", "-c", line], **rest.pop("process", {})},
            "stdin": False, **rest}


def started(stream):
    """An iterator behind `start`, and the pid."""
    events = iter(stream)
    first = next(events)
    assert list(first) == ["start"] and first["start"]["pid"] > 1, first
    return events, first["start"]["pid"]


def gather(events):
    """{stdout, stderr, pty, end}: the end must be the last."""
    got = {"stdout": b"", "stderr": b"", "pty": b"", "end": None, "keepalives": 0}
    for e in events:
        assert got["end"] is None, e
        if "data" in e:
            (kind, text), = e["data"].items()
            got[kind] += base64.b64decode(text, validate=True)
        elif "keepalive" in e:
            got["keepalives"] += 1
        else:
            got["end"] = e["end"]
    return got


def follow(method, doc, **more):
    s = Stream(method, doc, **more)
    events, pid = started(s)
    got = gather(events)
    got["pid"], got["error"] = pid, s.end.get("error", {}).get("code")
    return got


def run(doc, **more):
    return follow("Start", doc, **more)


def refusal(method, doc, **more):
    s = Stream(method, doc, **more)
    assert list(s) == [], "it was not refused"
    return s.end["error"]["code"], s.end["error"]["message"]


def until(events, what, kind="stdout"):
    """Reads until these bytes have come; all bytes so far."""
    got = b""
    while what not in got:
        got += base64.b64decode(next(events).get("data", {}).get(kind, ""))
    return got


def b64(data):
    return base64.b64encode(data).decode()


# ---- tests ----

def output_and_exit():
    got = run(shell("echo out; echo err >&2; exit 3"))
    assert (got["stdout"], got["stderr"]) == (b"out\n", b"err\n"), got
    assert got["end"] == {"exitCode": 3, "exited": True, "status": "exit status 3",
                          "error": "exit status 3"}, got
    assert run(shell("true"))["end"] == {"exited": True, "status": "exit status 0"}
    got = run(shell("kill -SEGV $$"))
    assert got["end"]["exitCode"] == -1 and got["end"]["error"] == "signal: segmentation fault", got


def many_bytes():
    got = run(shell("head -c 8000000 /dev/zero | tr '\\0' x; echo end >&2"))
    assert got["stdout"] == b"x" * 8000000 and got["stderr"] == b"end\n"
    every = run(shell(r"printf '\0\377\303\050'"))["stdout"]
    assert every == b"\0\377\303\050", every


def surroundings():
    words = run(shell("echo $HOME $USER $LOGNAME $PWD $MINE; id -un",
                      process={"envs": {"MINE": "a b"}}))["stdout"]
    assert words == b"/home/user user user /home/user a b\nuser\n", words
    assert run(shell("echo [$MINE]"))["stdout"] == b"[]\n"
    root = {"Authorization": "Basic " + b64(b"root:")}
    words = run(shell("echo $HOME $USER $LOGNAME $PWD; id -un"), **root)["stdout"]
    assert words == b"/root root root /root\nroot\n", words
    assert refusal("Start", shell("true"), Authorization="Basic " + b64(b"bob:")) == (
        "unauthenticated", "invalid username: 'bob'")
    assert run(shell("echo quiet"))["stderr"] == b""


def folders():
    run(shell("mkdir -p a/b"))
    for asked, is_in in (("/tmp", "/tmp"), ("~", "/home/user"), ("~/a", "/home/user/a"),
                         ("a/b", "/home/user/a/b"), ("", "/home/user")):
        got = run(shell("pwd", process={"cwd": asked}))["stdout"].decode()
        assert got == is_in + "\n", (asked, got)
    assert refusal("Start", shell("pwd", process={"cwd": "/nope"})) == (
        "invalid_argument", "cwd '/nope' does not exist")
    assert refusal("Start", shell("pwd", process={"cwd": "x"}))[1] == "cwd '/home/user/x' does not exist"


def standard_input():
    assert run(shell("cat; echo end"))["stdout"] == b"end\n"
    for more in ({}, {"stdin": True}):
        doc = {"process": {"cmd": "cat"}, **more}
        events, pid = started(Stream("Start", doc))
        who = {"process": {"pid": pid}}
        done("SendInput", {**who, "input": {"stdin": b64(b"one\n")}})
        done("SendInput", {**who, "input": {"stdin": b64(b"two").rstrip("=")}})
        done("CloseStdin", who)
        assert gather(events)["stdout"] == b"one\ntwo"
    events, pid = started(Stream("Start", {"process": {"cmd": "sleep", "args": ["100"]}}))
    done("CloseStdin", {"process": {"pid": pid}})
    done("CloseStdin", {"process": {"pid": pid}})
    done("SendSignal", {"process": {"pid": pid}, "signal": 9})
    events, pid = started(Stream("Start", shell("sleep 100")))
    assert unary("SendInput", {"process": {"pid": pid}, "input": {"stdin": "eA=="}})[0] == 500
    assert unary("SendInput", {"process": {"pid": pid}, "input": {"pty": "eA=="}})[0] == 500
    assert unary("SendInput", {"process": {"pid": pid}, "input": {"stdin": "?"}})[0] == 400
    assert unary("SendInput", {"process": {"pid": pid}})[0] == 400
    done("SendSignal", {"process": {"pid": pid}, "signal": 9})


def input_that_is_not_read():
    """Writing to a process that does not read waits, and ends when the process ends."""
    events, pid = started(Stream("Start", {"process": {"cmd": "sleep", "args": ["100"]}}))
    doc = {"process": {"pid": pid}, "input": {"stdin": b64(b"x" * 1000000)}}
    with concurrent.futures.ThreadPoolExecutor() as pool:
        writers = [pool.submit(unary, "SendInput", doc) for _ in range(5)]
        done_now, waiting = concurrent.futures.wait(writers, timeout=1)
        assert len(waiting) >= 4, len(waiting)
        done("SendSignal", {"process": {"pid": pid}, "signal": "SIGNAL_SIGKILL"})
        assert all(w.result()[0] in (404, 500) for w in waiting)  # 404: it was read after the end
    stream = Stream("Start", {"process": {"cmd": "bash", "args": ["-c", "sleep 1; wc -c"]}})
    events, pid = started(stream)
    doc["process"]["pid"] = pid
    with concurrent.futures.ThreadPoolExecutor() as pool:
        writers = [pool.submit(unary, "SendInput", doc) for _ in range(5)]
        concurrent.futures.wait(writers, timeout=0.5)
        go = pool.submit(unary, "SendInput", {**doc, "input": {"stdin": b64(b"\n")}})
        assert all(w.result() == (200, {}) for w in writers + [go])
    done("CloseStdin", {"process": {"pid": pid}})
    assert gather(events)["stdout"] == b"5000001\n"


def input_stream():
    def ask(*messages):
        s = Stream("StreamInput", b"".join(messages))
        r = http.client.HTTPResponse(s.s)
        r.begin()
        assert r.status == 200
        return r.read()

    events, pid = started(Stream("Start", {"process": {"cmd": "cat"}, "tag": "cat"}))
    start = pack({"start": {"process": {"tag": "cat"}}})
    data = pack({"data": {"input": {"stdin": b64(b"hello ")}}})
    big = [pack({"data": {"input": {"stdin": b64(b"y" * 100000)}}})] * 30
    whole = pack({}) + pack({}, 2)
    assert ask(start, pack({"keepalive": {}}), data, *big) == whole
    for bad in (data, start + b"\0\0\0\1\0{}", start + pack({}, 1), start + pack({}, 2),
                start + pack({}, 128), start + b"\0\xff\xff\xff\xff", start + b"\0\0",
                start + pack(b"not json"), start + start, start + pack({"data": 7}), pack({})):
        answer = ask(bad)
        assert answer[0] == 2 and b"invalid_argument" in answer, (bad, answer)
    assert b"not_found" in ask(pack({"start": {"process": {"pid": 99999}}}))
    done("CloseStdin", {"process": {"pid": pid}})
    assert gather(events)["stdout"] == b"hello " + b"y" * 3000000


def listing():
    events, pid = started(Stream("Start", shell("sleep 100", tag="here", process={
        "envs": {"A": "b"}, "cwd": "/tmp"})))
    (one,) = [p for p in unary("List", {})[1]["processes"] if p["pid"] == pid]
    assert one == {"config": {"cmd": "/bin/bash", "args": ["-l", "-c", "sleep 100"],
                              "envs": {"A": "b"}, "cwd": "/tmp"}, "pid": pid, "tag": "here"}, one
    assert run(shell(f"kill -0 {pid}"))["end"]["exited"]
    done("SendSignal", {"process": {"tag": "here"}, "signal": "SIGNAL_SIGTERM"})
    assert gather(events)["end"]["status"] == "signal: terminated"
    assert pid not in [p["pid"] for p in unary("List", {})[1]["processes"]]
    assert run(shell(f"kill -0 {pid}"))["end"]["exitCode"] == 1


def signals():
    stream = Stream("Start", shell("sleep 100 & echo $!; wait"))
    events, pid = started(stream)
    child = int(until(events, b"\n"))
    assert unary("SendSignal", {"process": {"pid": pid}, "signal": 2})[0] == 501
    assert unary("SendSignal", {"process": {"pid": pid}, "signal": "SIGNAL_UNSPECIFIED"})[0] == 501
    done("SendSignal", {"process": {"pid": pid}, "signal": "SIGNAL_SIGKILL"})
    got = gather(events)  # though the child holds its stdout
    assert got["end"] == {"exitCode": -1, "status": "signal: killed", "error": "signal: killed"}, got
    assert stream.end == {}
    assert "exitCode" not in run(shell(f"kill -0 {child} && kill {child}"))["end"]
    for selector in ({"pid": pid}, {"tag": "missing"}):
        status, answer = unary("SendSignal", {"process": selector, "signal": 9})
        assert (status, answer["code"]) == (404, "not_found"), answer
    assert unary("SendSignal", {"signal": 9})[1]["code"] == "invalid_argument"


def streams_to_their_end():
    began = time.monotonic()
    got = run(shell("(sleep 0.4; echo late) & echo early"))
    assert got["stdout"] == b"early\nlate\n" and time.monotonic() - began > 0.3, got


def timeouts():
    """The timeout of Start ends the process, and every follower gets the end. That of Connect ends the follower."""
    events, pid = started(Stream("Start", shell("echo $$; sleep 100")))
    assert follow("Connect", {"process": {"pid": pid}}, Connect_Timeout_Ms=100)["error"] == "deadline_exceeded"
    assert run(shell(f"kill -0 {pid}"))["end"]["exited"]
    done("SendSignal", {"process": {"pid": pid}, "signal": 9})
    stream = Stream("Start", shell("echo $$; sleep 100"), Connect_Timeout_Ms=2000)
    events, pid = started(stream)
    with concurrent.futures.ThreadPoolExecutor() as pool:
        other = pool.submit(follow, "Connect", {"process": {"pid": pid}})
        got = gather(events)
        assert got["end"] is None and stream.end["error"]["code"] == "deadline_exceeded", got
        assert other.result()["error"] == "deadline_exceeded" and other.result()["end"] is None
    assert run(shell(f"kill -0 {pid}"))["end"]["exitCode"] == 1


def followers():
    """Several followers, each from the moment it connects, and one that connects after the end."""
    events, pid = started(Stream("Start", {"process": {"cmd": "cat"}, "tag": "echo"}))
    say = lambda text: done("SendInput", {"process": {"pid": pid}, "input": {"stdin": b64(text)}})
    say(b"before ")
    until(events, b"before ")
    others = [Stream("Connect", {"process": selector}) for selector in ({"pid": pid}, {"tag": "echo"})]
    pairs = [started(s) for s in others]
    assert [p for _, p in pairs] == [pid, pid]
    say(b"now")
    done("CloseStdin", {"process": {"pid": pid}})
    rest = [gather(e) for e, _ in pairs]
    assert all(r["end"]["exited"] and r["stdout"] == b"now" for r in rest), rest
    assert gather(events)["end"]["exited"]
    late = follow("Connect", {"process": {"pid": pid}})
    assert late["pid"] == pid and late["end"]["exited"] and late["stdout"] == b"", late
    assert refusal("Connect", {"process": {"pid": 99999}}) == (
        "not_found", "process with pid 99999 not found")


def late_followers():
    """Whenever one comes, the program runs, ends, or has ended: it is never unknown."""
    def one(_):
        events, pid = started(Stream("Start", shell("exit 3")))
        late = Stream("Connect", {"process": {"pid": pid}})
        assert gather(started(late)[0])["end"]["exitCode"] == 3, late.end
        assert gather(events)["end"]["exitCode"] == 3

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(one, range(120)))


def a_client_disconnect_kills_no_process():
    s = Stream("Start", {"process": {"cmd": "cat"}})
    events, pid = started(s)
    s.close()
    more, _ = started(Stream("Connect", {"process": {"pid": pid}}))
    done("SendInput", {"process": {"pid": pid}, "input": {"stdin": b64(b"still here")}})
    until(more, b"still here")
    done("SendSignal", {"process": {"pid": pid}, "signal": 9})


def slow_reader():
    """A client that does not read blocks the process and does not fill the memory of the daemon."""
    s = Stream("Start", {"process": {"cmd": "yes"}}, receive=4096)
    events, pid = started(s)

    def written():
        return run(shell(f"awk '/^wchar/ {{ print $2 }}' /proc/{pid}/io"))["stdout"]

    before = None
    while before is None or before != written():
        before = written()
        time.sleep(0.3)
    assert int(before) < 40 << 20, before
    done("SendSignal", {"process": {"pid": pid}, "signal": 9})
    s.close()


def keepalives():
    began = time.monotonic()
    stream = Stream("Start", shell("sleep 2.3"), Keepalive_Ping_Interval=1)
    events, _ = started(stream)
    got = gather(events)
    assert 1 <= got["keepalives"] <= time.monotonic() - began and got["end"]["exited"], got


def terminal():
    stream = Stream("Start", {"process": {"cmd": "/bin/bash", "args": ["-i", "-l"],
                                          "envs": {"PS1": "$ ", "TERM": "dumb"}},
                              "pty": {"size": {"cols": 80, "rows": 24}}})
    events, pid = started(stream)
    who = {"process": {"pid": pid}}
    say = lambda text: done("SendInput", {**who, "input": {"pty": b64(text)}})
    say(b"stty size\n")
    until(events, b"24 80", "pty")
    done("Update", {**who, "pty": {"size": {"cols": 132, "rows": 50}}})
    say(b"stty size\n")
    until(events, b"50 132", "pty")
    assert unary("CloseStdin", who)[1]["code"] == "unknown"
    assert unary("Update", {**who, "pty": {"size": {"cols": 0, "rows": "x"}}})[0] == 400
    assert unary("SendInput", {**who, "input": {"stdin": "eA=="}})[0] == 500
    say(b"exit 7\n")
    assert gather(events)["end"]["exitCode"] == 7
    events, pid = started(Stream("Start", shell("sleep 100")))
    assert unary("Update", {"process": {"pid": pid}, "pty": {"size": {"cols": 1, "rows": 1}}})[0] == 500
    done("SendSignal", {"process": {"pid": pid}, "signal": 9})


def hundred():
    with concurrent.futures.ThreadPoolExecutor(100) as pool:
        all_of = list(pool.map(lambda i: run(shell(f"sleep 0.2; echo {i}"))["stdout"], range(100)))
    assert all_of == [f"{i}\n".encode() for i in range(100)], all_of


def nonsense():
    good = shell("true")
    for doc in ({}, {"process": {}}, {"process": {"cmd": ""}}, {"process": {"cmd": 7}}, {"process": []},
                {"process": {"cmd": "true", "args": "x"}}, {"process": {"cmd": "true", "args": [1]}},
                {"process": {"cmd": "true", "envs": {"A": 1}}}, {"process": {"cmd": "true", "envs": {"A=": "1"}}},
                {"process": {"cmd": "true", "cwd": 7}}, {"process": {"cmd": "true", "cwd": "/" + "x" * 5000}},
                {**good, "tag": "x" * 1000}, {**good, "tag": ":helper"}, {**good, "tag": 7}, {**good, "stdin": 7},
                {**good, "pty": {"size": {"cols": -1}}}, {"process": {"cmd": "a\0b"}},
                {"process": {"cmd": "/no/such/program"}}, {"process": {"cmd": "/etc/passwd"}}):
        code, message = refusal("Start", doc)
        assert code == "invalid_argument" and message, (doc, code)
    for body in (b"", b"\0\0\0", b"\0\0\0\1\0{}", pack(good, 1), pack(good, 2), pack(good, 4),
                 pack(b"{"), pack(b"\xff\xfe"), pack(b"[]" * 9), b"\0\xff\xff\xff\xff{}"):
        assert refusal("Start", body)[0] == "invalid_argument", body
    code, message = refusal("Start", {"process": {"cmd": "true", "args": ["x" * 200000]}})
    assert code == "resource_exhausted", (code, message)
    for method in ("SendSignal", "SendInput", "CloseStdin", "Update"):
        for selector in (None, {}, [], {"pid": 0}, {"pid": -1}, {"pid": "7"}, {"pid": 1 << 40}, {"tag": ""}):
            status, answer = unary(method, {"process": selector, "signal": 9})
            assert (status, answer["code"]) == (400, "invalid_argument"), (method, selector, answer)
    assert run(good)["end"]["exited"]


def enums():
    """An unknown enum name or number is rejected, and the process keeps running."""
    stream = Stream("Start", {"process": {"cmd": "cat"}})
    events, pid = started(stream)
    for word in ("SIGNAL_SIGNOPE", "", "9", 1 << 40, -1, 1.5, None, [], {}):
        status, answer = unary("SendSignal", {"process": {"pid": pid}, "signal": word})
        assert (status, answer["code"]) in ((400, "invalid_argument"), (501, "unimplemented")), (word, answer)
    assert pid in [p["pid"] for p in unary("List", {})[1]["processes"]]
    done("SendSignal", {"process": {"pid": pid}, "signal": "SIGNAL_SIGTERM"})
    assert gather(events)["end"]["status"] == "signal: terminated"


def reader(pid):
    """Another process that follows a program; returns when it does."""
    told, tell = os.pipe()
    child = os.fork()
    if not child:
        events, _ = started(Stream("Connect", {"process": {"pid": pid}}))
        os.write(tell, b"reads")
        list(events)
        os._exit(0)
    os.close(tell)
    assert os.read(told, 5) == b"reads"
    os.close(told)
    return child


def killed_readers():
    """More of them than may read at once: each that was shot has made room."""
    events, pid = started(Stream("Start", {"process": {"cmd": "cat"}}))
    for _ in range(10):
        for child in [reader(pid) for _ in range(10)]:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    done("SendInput", {"process": {"pid": pid}, "input": {"stdin": b64(b"still there")}})
    done("CloseStdin", {"process": {"pid": pid}})
    assert gather(events)["stdout"] == b"still there"


def thousand(*boxes):
    """ID:TOKEN...: forty simultaneous followers in each sandbox; every one gets the output printed then."""
    crowds = []
    for box in boxes:
        os.environ["box"], os.environ["token"] = box.split(":")
        events, pid = started(Stream("Start", {"process": {"cmd": "cat"}}))
        crowds.append((box, pid, [started(Stream("Connect", {"process": {"pid": pid}})) for _ in range(40)], events))
    assert sum(len(c[2]) for c in crowds) == 1000
    for box, pid, listeners, events in crowds:
        os.environ["box"], os.environ["token"] = box.split(":")
        done("SendInput", {"process": {"pid": pid}, "input": {"stdin": b64(box.encode())}})
        done("CloseStdin", {"process": {"pid": pid}})
    for box, pid, listeners, events in crowds:
        for received, _ in listeners + [(events, pid)]:
            assert gather(received)["stdout"] == box.encode()


def outlives():
    """Without a pid: starts a long-running process and prints its pid; with a pid: follows it."""
    if len(sys.argv) < 3:
        s = Stream("Start", {"process": {"cmd": "cat"}})
        print(started(s)[1])
        return
    pid = int(sys.argv[2])
    s = Stream("Connect", {"process": {"pid": pid}})
    events, _ = started(s)
    done("SendInput", {"process": {"pid": pid}, "input": {"stdin": b64(b"back again")}})
    done("CloseStdin", {"process": {"pid": pid}})
    got = gather(events)
    assert got["end"]["exited"], got
    print("followed")


def box_ends():
    s = Stream("Start", shell("echo here; sleep 100"))
    events, _ = started(s)
    until(events, b"here")
    print("here", flush=True)
    try:
        print(list(events), s.end)
    except (http.client.IncompleteRead, ConnectionError, EOFError):
        print("cut")


def command(line):
    print(run(shell(line))["stdout"].decode(), end="")


globals()[sys.argv[1]](*(sys.argv[2:] if sys.argv[1] in ("thousand", "command") else ()))
