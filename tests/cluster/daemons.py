#!/usr/bin/python3
"""daemons.py BUILD FAULTS [SEED] - `make chaos-daemons`: two gateways, three nodes, PostgreSQL, with ENGINE=etcd also etcd, boxes
with on_loss restart, and random faults, with the real daemons in network namespaces; every third time boxes move away from a node
that drains. Fails if a box was active on two nodes at once, if one has no owner 30 s after the last fault, if its name names another
box, if a request for it gets 404, or if a finished run is missing in the directory."""
from rig import *

build, faults = sys.argv[1], int(sys.argv[2])
seed = int(sys.argv[3]) if len(sys.argv) > 3 else int(time.time())
random.seed(seed)
BOXES = 6


# ---- what runs ----
def mark(i):
    return "%d%05d" % (900000 + i, os.getpid() % 100000)


def active():
    """Running programs of the boxes: mark -> network namespaces, of which each keeper has another one."""
    found = {}
    marks = {mark(i).encode(): i for i in range(BOXES)}
    for pid in os.listdir("/proc"):
        if not pid.isdigit():
            continue
        try:
            with open("/proc/%s/cmdline" % pid, "rb") as f:
                words = f.read().split(b"\0")
            if len(words) < 2 or words[0] != b"sleep" or words[1] not in marks:
                continue
            with open("/proc/%s/stat" % pid) as f:
                state = f.read().rsplit(")", 1)[1].split()[0]
            if state in "TtZXx":
                continue
            found.setdefault(marks[words[1]], set()).add(os.readlink("/proc/%s/ns/pid" % pid))
        except OSError:
            pass
    return found


def watch():
    while not done.is_set():
        for i, where in active().items():
            if len(where) > 1:
                time.sleep(0.02)  # a process that ends at this moment
                if len(active().get(i, ())) > 1:
                    report("box %d is active on %d nodes" % (i, len(where)))
        time.sleep(0.05)


runs, last_answer = [], {}


def use(i):
    """A program in each box, again after each restart; finished runs must be in the directory."""
    while not done.is_set():
        status, answer = c.ask("POST", "/v1/boxes/%s/execs" % boxes[i],
                             {"command": "cat kept; pgrep -fx 'sleep %s' >/dev/null || (setsid sleep %s >/dev/null 2>&1 &)" % (mark(i), mark(i))})
        if status == 200 and answer.get("stdout", "").startswith("kept %d" % i):
            last_answer[i] = time.monotonic()
            runs.append(answer["id"])
        elif status == 404 or (status == 200 and answer.get("exit_code") is not None):  # programs of a box that moves are ended
            report("box %d: %s %s" % (i, status, [answer.get(k) for k in ("error", "cause", "exit_code", "signal", "stdout", "stderr")]))
        time.sleep(0.3)


# ---- faults ----
times = {"lost": [], "answer": [], "moved": []}


def owned(node):
    moved = dict(line.split("|") for line in c.sql("select id, node from atoll.moved"))
    return [i for i in range(BOXES) if int(moved.get(boxes[i], node_of(boxes[i]))) == node.number]


def fault(node, kind):
    mine = owned(node)
    note("%s of %s, which has boxes %s" % (kind, node.name, mine))
    at = time.monotonic()
    if kind == "daemon":
        node.kill()
    elif kind == "machine":
        node.kill()
        node.end_boxes()
        at = time.monotonic()
    elif kind == "link":
        node.link(False)
    else:
        node.drop("INPUT" if kind == "inbound" else "OUTPUT")
    if kind == "machine" or random.random() < 0.7:
        if until("%s is lost" % node.name, 30, lambda: c.state_of(node) == "lost"):
            times["lost"].append(time.monotonic() - at)
        if until("boxes %s answer" % mine, 45, lambda: all(last_answer.get(i, 0) > at + 2.6 for i in mine)) and mine:
            times["answer"].append(time.monotonic() - at)
    else:
        time.sleep(random.uniform(0.2, 3))
    if kind in ("daemon", "machine"):
        node.start()
    elif kind == "link":
        node.link(True)
    else:
        node.undrop()
    until("%s is up" % node.name, 60, node.is_up)
    until("copies on two other nodes", 60, lambda: c.has_copies(boxes))


def move(node):
    """Its boxes move to the other nodes; meanwhile a gateway or the node may end."""
    mine = owned(node)
    ends = random.choice((None, None, c.gateways[0], c.gateways[1], node))
    note("boxes %s move from %s; end of %s" % (mine, node.name, ends and ends.name))
    status, answer = c.ask("POST", "/v1/nodes/%s/drain" % node.name, {"move": True}, 20)
    if status != 200:
        report("drain of %s: %s %s" % (node.name, status, str(answer)[:300]))
    at = time.monotonic()
    if ends:
        time.sleep(random.uniform(0, 2))
        ends.kill()
        time.sleep(random.uniform(0, 1))
        ends.start()
    until("%s has no boxes" % node.name, 60, lambda: not owned(node))
    until("boxes %s answer" % mine, 45, lambda: all(last_answer.get(i, 0) > at + 2.6 for i in mine))
    times["moved"].append(time.monotonic() - at)
    until("%s is up" % node.name, 60, node.is_up)
    until("%s takes boxes again" % node.name, 20, lambda: c.ask("POST", "/v1/nodes/%s/undrain" % node.name, None, 5)[0] == 200)
    until("copies on two other nodes", 60, lambda: c.has_copies(boxes))


def run():
    for i in range(BOXES):
        boxes.append(c.create(name="box%d" % i, on_loss="restart"))
        c.execute(boxes[i], "echo kept %d >kept" % i)
        c.ask("POST", "/v1/snapshots", {"box": boxes[i]}, 60)
    if not until("copies on two other nodes", 60, lambda: c.has_copies(boxes)):
        return
    threads = [threading.Thread(target=watch)] + [threading.Thread(target=use, args=(i,)) for i in range(BOXES)]
    for t in threads:
        t.start()
    note("%d boxes, seed %d" % (BOXES, seed))
    for n in range(faults):
        if n % 6 == 5:
            gate = random.choice(c.gateways)
            note("end of %s" % gate.name)
            gate.kill()
            time.sleep(random.uniform(0, 3))
            gate.start()
            until("%s serves" % gate.name, 60, lambda: c.ask("GET", "/v1/who", None, 2, [gate])[0] == 200)
        elif n % 3 == 1:
            move(random.choice([x for x in c.nodes if owned(x)]))
        else:
            fault(random.choice(c.nodes), random.choice(("daemon", "machine", "link", "inbound", "outbound")))
        if bad:
            break
    at = time.monotonic()
    until("every box has an owner", 30, lambda: all(last_answer.get(i, 0) > at for i in range(BOXES)))
    for i in range(BOXES):
        status, answer = c.ask("GET", "/v1/boxes/box%d" % i, None, 10)
        if status != 200 or answer["id"] != boxes[i]:
            report("the name box%d: %s %s" % (i, status, str(answer)[:200]))
    done.set()
    for t in threads:
        t.join()
    until("every finished run is in the directory", 30, lambda: set(runs) <= set(c.sql("select id from atoll.runs")))
    for name, list_ in times.items():
        if list_:
            note("%s after s: median %.1f, most %.1f, of %d" % (name, sorted(list_)[len(list_) // 2], max(list_), len(list_)))
    note("%d finished runs" % len(runs))


boxes = []
with Cluster(build, 2, 3, os.environ.get("ENGINE") == "etcd") as c:
    run()
finish("%d faults, seed %d" % (faults, seed))
