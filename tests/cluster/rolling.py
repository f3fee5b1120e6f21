#!/usr/bin/python3
"""rolling.py BUILD [PREVIOUS-BUILD] - `make rolling-restart`: all gateways and nodes of a cluster restart, one after the other, under load.
  - `atoll upgrade` of each machine, with PREVIOUS-BUILD from that release to this one, the gateways first,
  - then SIGTERM and a new daemon for each machine, ROUNDS (1) times.
No box is lost: files and programs. No byte of output is lost or repeated: streams continue at their offset. No request fails, except
those in flight on a connection that was cut; a client that gets no connection to a gateway uses the other one, and repeats nothing else."""
from rig import *

build = sys.argv[1]
previous = sys.argv[2] if len(sys.argv) > 2 else ""
STREAMS, CLIENTS = 4, 3
lock = threading.Lock()
counts, cuts = {}, []
stop = threading.Event()


def count(what, n=1):
    with lock:
        counts[what] = counts.get(what, 0) + n


def send(c, method, path, body=None, expect=(200,), headers={}):
    """The answer, or None if the connection was cut. A gateway that accepts no connection is left for the other one."""
    end = time.monotonic() + 30
    while time.monotonic() < end:
        for gate in random.sample(c.gateways, len(c.gateways)):
            try:
                status, text = gate.request(method, path, body, 30, None, headers)
            except Cut as e:
                if not e.sent:
                    count("connections that were refused")
                    continue
                count("requests on a connection that was cut")
                with lock:
                    cuts.append((time.monotonic() - began, str(e)))
                return None
            count("requests")
            if status not in expect:
                report("%s %s at %s: %s %s" % (method, path, gate.name, status, text[:300]))
                return None
            return text
        time.sleep(0.05)
    report("no gateway accepts a connection")
    return None


LINES = """import sys, time
n = 0
while True:
    for i in range(50):
        n += 1
        sys.stdout.write("%%09d %s\\n" %% n)
    sys.stdout.flush()
    time.sleep(0.02)
""" % ("x" * 90)


def follow(c, i):
    """Every line of a program that prints without end, each exactly once, from connection to connection."""
    offset, expected, tail = 0, 1, b""
    while not stop.is_set():
        gate = random.choice(c.gateways)
        conn = http.client.HTTPConnection(gate.address, 7070, timeout=15)
        try:
            conn.request("GET", "/v1/boxes/%s/execs/%s/output?raw=stdout&stdout=%d" % (boxes[i], programs[i], offset),
                         headers={"Host": "localhost", "X-API-Key": c.key})
            answer = conn.getresponse()
            if answer.status != 200:
                report("stream %d at %s: %s %s" % (i, gate.name, answer.status, answer.read()[:300]))
                time.sleep(0.2)
                continue
            while not stop.is_set():
                piece = answer.read1(65536)
                if not piece:
                    if not stop.is_set():
                        count("streams that ended early")  # at a chunk: continued as a cut one
                    break
                offset += len(piece)
                lines = (tail + piece).split(b"\n")
                tail = lines.pop()
                for line in lines:
                    if int(line[:9]) != expected or len(line) != 100:
                        report("stream %d: line %r after %d" % (i, line[:20], expected - 1))
                        return
                    expected += 1
        except ConnectionRefusedError:
            time.sleep(0.05)
            continue
        except (OSError, http.client.HTTPException) as e:
            if isinstance(e, TimeoutError):
                report("stream %d at %s: nothing for 15 s" % (i, gate.name))
        finally:
            conn.close()
        count("resumed streams")
    count("lines", expected - 1)


def work(c, i):
    n = 0
    while not stop.is_set():
        n += 1
        box = boxes[n % len(boxes)]
        text = send(c, "POST", "/v1/boxes/%s/execs" % box, {"command": "echo $((%d + 1))" % n})
        if text and json.loads(text).get("stdout") != "%d\n" % (n + 1):
            report("exec: %s" % text[:300])
        if send(c, "PUT", "/v1/boxes/%s/files?path=/tmp/f%d" % (box, i), b"%d" % n, (200, 201, 204), {"Content-Type": "application/octet-stream"}) is not None:
            text = send(c, "GET", "/v1/boxes/%s/files?path=/tmp/f%d" % (box, i))
            if text is not None and text != b"%d" % n:
                report("file: %r, not %d" % (text[:100], n))
        text = send(c, "POST", "/v1/boxes", {"name": "w%d-%d" % (i, n)} if n % 2 else {}, (201,))
        if text:
            send(c, "DELETE", "/v1/boxes/" + json.loads(text)["id"], None, (204, 200, 202))
        send(c, "GET", "/v1/boxes?limit=5")


def install(where, there):
    """As a package does: the files are replaced, programs that run keep theirs."""
    for name in ("atoll", "atolld"):
        shutil.copy2(where + "/" + name, "%s/%s.new" % (there, name))
        os.rename("%s/%s.new" % (there, name), "%s/%s" % (there, name))


def server_of(machine):
    try:
        return open(machine.folder + "/run/serve.pid").read().split()[2]
    except (OSError, IndexError):
        return "0"


def settled(c):
    for machine in c.gateways + c.nodes:
        until("%s serves" % machine.name, 60, lambda: machine.process.poll() is None and server_of(machine) != "0")
    for gate in c.gateways:
        until("all nodes are up at %s" % gate.name, 60, lambda: c.states(gate) == ["up"] * len(c.nodes))


def upgrade(c):
    for machine in c.gateways + c.nodes:
        before = server_of(machine)
        note("upgrade of %s" % machine.name)
        sh(machine.atoll, "upgrade", "--quiet", env=machine.environment(), check=False)
        until("%s has a new server" % machine.name, 60, lambda: server_of(machine) not in ("0", before))
        settled(c)
        time.sleep(random.uniform(0.5, 2))


def restart(c):
    for machine in c.gateways + c.nodes:
        note("restart of %s" % machine.name)
        machine.process.send_signal(signal.SIGTERM)
        machine.process.wait()
        note("%s has ended" % machine.name)
        machine.start()
        settled(c)
        time.sleep(random.uniform(0.5, 2))


binaries = tempfile.mkdtemp(prefix="atoll-bin.", dir="/tmp")
os.chmod(binaries, 0o755)
install(previous or build, binaries)
try:
    with Cluster(binaries, 2, 2) as c:
        if previous:
            note("before: " + sh(binaries + "/atoll", "--version").strip())
        boxes, programs, first = [], [], []
        for i in range(STREAMS):
            boxes.append(c.create(name="box%d" % i))
            c.execute(boxes[i], "echo kept %d >kept" % i)
            status, answer = c.ask("POST", "/v1/boxes/%s/execs" % boxes[i], {"command": ["python3", "-c", LINES], "background": True}, 20)
            programs.append(answer.get("exec") or answer.get("id"))
            first.append(c.execute(boxes[i], "cat kept; pgrep -f sys.stdout"))
        threads = [threading.Thread(target=follow, args=(c, i), daemon=True) for i in range(STREAMS)]
        threads += [threading.Thread(target=work, args=(c, i), daemon=True) for i in range(CLIENTS)]
        for t in threads:
            t.start()
        time.sleep(2)
        if previous:
            install(build, binaries)
        upgrade(c)
        note("now: " + sh(binaries + "/atoll", "--version").strip())
        for _ in range(int(os.environ.get("ROUNDS", "1"))):
            restart(c)
        time.sleep(2)
        stop.set()
        for t in threads:
            t.join(60)
        for i in range(STREAMS):
            now = c.execute(boxes[i], "cat kept; pgrep -f sys.stdout")
            if now.split()[:2] != first[i].split()[:2] or not set(first[i].split()[2:]) & set(now.split()[2:]):
                report("box %d has %r, before %r" % (i, now, first[i]))
        note(", ".join("%s: %d" % x for x in sorted(counts.items())))
        for at, why in cuts:
            note("cut at %.1f: %s" % (at, why))
finally:
    shutil.rmtree(binaries, ignore_errors=True)
finish("%s, then a restart of each machine" % ("upgrade from the previous build" if previous else "upgrade"))
