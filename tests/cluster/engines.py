#!/usr/bin/python3
"""engines.py BUILD SECONDS [postgres|etcd] - `make engines-down`: an engine of a cluster is away for SECONDS under load: first PostgreSQL,
with etcd as coordinator also etcd.
  - no stream is cut; no exec, file request or creation of a box without a name fails,
  - a creation with a name is answered with 503 within a second (with etcd as coordinator, only while etcd is away),
  - lists come from the nodes, and name a node that does not answer,
  - all rows of the time are in the directory 5 s after PostgreSQL is back."""
from rig import *

build, seconds = sys.argv[1], float(sys.argv[2])
engine = sys.argv[3] if len(sys.argv) > 3 else "postgres"
lock = threading.Lock()
counts, slowest, rows = {}, {}, {"boxes": set(), "runs": set()}
stop, away = threading.Event(), threading.Event()


def count(what, n=1):
    with lock:
        counts[what] = counts.get(what, 0) + n


def send(c, method, path, body=None, expect=(200,), headers={}):
    at = time.monotonic()
    try:
        status, text = random.choice(c.gateways).request(method, path, body, 30, None, headers)
    except Cut as e:
        report("cut: %s" % e)
        return None
    what = "%s %s" % (method, re.sub(r"[a-z2-7]{15}|\?.*", "", path))
    with lock:
        counts["requests"] = counts.get("requests", 0) + 1
        slowest[what] = max(slowest.get(what, 0), time.monotonic() - at)
    if status not in expect:
        report("%s %s: %s %s" % (method, path, status, text[:300]))
        return None
    return text


def follow(c, i):
    expected, tail = 1, b""
    conn = http.client.HTTPConnection(c.gateways[i % 2].address, 7070, timeout=20)
    try:
        conn.request("GET", "/v1/boxes/%s/execs/%s/output?raw=stdout" % (boxes[i], programs[i]), headers={"Host": "localhost", "X-API-Key": c.key})
        answer = conn.getresponse()
        while not stop.is_set():
            piece = answer.read1(65536)
            if not piece:
                raise OSError("ended")
            lines = (tail + piece).split(b"\n")
            tail = lines.pop()
            for line in lines:
                if int(line) != expected:
                    raise OSError("%r after %d" % (line, expected - 1))
                expected += 1
    except (OSError, ValueError, http.client.HTTPException) as e:
        report("stream %d: %s" % (i, e))
    count("lines", expected - 1)
    conn.close()


def work(c, i):
    n = 0
    while not stop.is_set():
        n += 1
        box = boxes[n % len(boxes)]
        text = send(c, "POST", "/v1/boxes/%s/execs" % box, {"command": "echo $((%d + 1))" % n})
        if text:
            run = json.loads(text)
            if run.get("stdout") != "%d\n" % (n + 1):
                report("exec: %s" % text[:300])
            with lock:
                rows["runs"].add(run["id"])
        if send(c, "PUT", "/v1/boxes/%s/files?path=/tmp/f%d" % (box, i), b"%d" % n, (200, 201, 204), {"Content-Type": "application/octet-stream"}) is not None:
            text = send(c, "GET", "/v1/boxes/%s/files?path=/tmp/f%d" % (box, i))
            if text is not None and text != b"%d" % n:
                report("file: %r, not %d" % (text[:100], n))
        text = send(c, "POST", "/v1/boxes", {}, (201,))
        if text:
            made = json.loads(text)["id"]
            with lock:
                rows["boxes"].add(made)
            with lock:  # a team has 256 boxes on a node
                kept.append(made)
                old = kept.pop(0 if len(kept) > 100 else -1) if n % 2 or len(kept) > 100 else None
            if old:
                send(c, "DELETE", "/v1/boxes/" + old, None, (204, 200, 202))


def check_names(c, refused):
    for gate in c.gateways:
        at = time.monotonic()
        status, text = gate.request("POST", "/v1/boxes", {"name": "n%x" % random.getrandbits(40)}, 20)
        took = time.monotonic() - at
        slowest["POST with a name"] = max(slowest.get("POST with a name", 0), took)
        if refused and (status != 503 or took > 1.0 or json.loads(text)["error"]["code"] != "unavailable"):
            report("a creation with a name at %s: %s after %.2f s: %s" % (gate.name, status, took, text[:300]))
        elif not refused and status != 201:
            report("a creation with a name at %s: %s %s" % (gate.name, status, text[:300]))
        count("creations with a name")


def check_list(c, missing):
    for gate in c.gateways:
        status, text = gate.request("GET", "/v1/boxes?limit=5", None, 20)
        answer = json.loads(text)
        stated = answer.get("incomplete")
        if status != 200 or len(answer["items"]) != 5 or (stated or []) != missing:
            report("list at %s, with %s away: %s, %d items, incomplete: %s" % (gate.name, missing, status, len(answer.get("items", [])), stated))
        count("lists")


def outage(c, name):
    """While the engine is away; the third node does not answer in the last third."""
    coordinates = name == engine
    note("%s is away" % name)
    end = time.monotonic() + seconds
    if coordinates:
        time.sleep(1)  # what has been sent is answered
    idle = c.nodes[-1]
    while time.monotonic() < end:
        left = end - time.monotonic()
        if left < seconds / 3 and not away.is_set():
            idle.signal(signal.SIGSTOP)
            away.set()
            time.sleep(4)
        check_names(c, coordinates)
        if name == "postgres":
            check_list(c, [idle.name] if away.is_set() else [])
        time.sleep(1)
    if away.is_set():
        idle.signal(signal.SIGCONT)
        away.clear()
        note("the third node answers again")


def stored(c, want=None):
    with lock:
        want = want or {k: set(v) for k, v in rows.items()}
    return all(want[table] <= set(c.sql("select id from atoll." + table)) for table in want)


with Cluster(build, 2, 3, engine == "etcd") as c:
    boxes, programs, kept = [], [], []
    for i in range(4):
        boxes.append(c.create_on(c.nodes[i % 2]))
        status, answer = c.ask("POST", "/v1/boxes/%s/execs" % boxes[i],
                               {"command": "i=0; while :; do i=$((i + 1)); echo $i; sleep 0.05; done", "background": True}, 20)
        programs.append(answer.get("exec") or answer.get("id"))
    for node in c.nodes:
        for _ in range(3):
            kept.append(c.create_on(node))
    # No work for the third node, which is stopped for a while.
    status, text = c.gateways[0].request("POST", "/v1/nodes/%s/drain" % c.nodes[-1].name)
    if status not in (200, 202, 204):
        report("drain: %s %s" % (status, text))
    threads = [threading.Thread(target=follow, args=(c, i), daemon=True) for i in range(4)]
    threads += [threading.Thread(target=work, args=(c, i), daemon=True) for i in range(2)]
    for t in threads:
        t.start()
    time.sleep(2)
    for name in ("postgres", "etcd") if engine == "etcd" else ("postgres",):
        (c.postgres_stop if name == "postgres" else c.etcd_stop)()
        outage(c, name)
        at = time.monotonic()
        (c.postgres_start if name == "postgres" else c.etcd_start)()
        back = time.monotonic()
        if name == "postgres":
            with lock:
                missed = {k: set(v) for k, v in rows.items()}  # of the time without PostgreSQL
            if until("the rows are in the directory", 60, lambda: stored(c, missed)):
                took = time.monotonic() - back
                note("%d rows were in the directory %.1f s after PostgreSQL was back" % (sum(map(len, missed.values())), took))
                if took > 5:
                    report("the rows needed more than 5 s")
            else:
                for table in missed:
                    left = sorted(missed[table] - set(c.sql("select id from atoll." + table)))
                    note("%d of %d %s are missing: %s" % (len(left), len(missed[table]), table, left[:5]))
            until("all rows are in the directory", 5, lambda: stored(c))
        until("names are given again", 30, lambda: c.ask("POST", "/v1/boxes", {"name": "after-%s" % name}, 10)[0] in (201, 409))
        until("all nodes are up", 30, lambda: c.states(c.gateways[0]) == ["up"] * 3)
    stop.set()
    for t in threads:
        t.join(30)
    note(", ".join("%s: %d" % x for x in sorted(counts.items())) + ", boxes: %d, runs: %d" % (len(rows["boxes"]), len(rows["runs"])))
    note("longest: " + ", ".join("%s %.2f s" % x for x in sorted(slowest.items())))
finish("%s away for %d s" % ("PostgreSQL, then etcd," if engine == "etcd" else "PostgreSQL", seconds))
