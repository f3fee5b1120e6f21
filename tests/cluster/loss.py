#!/usr/bin/python3
"""loss.py BUILD FAULTS [postgres|etcd] [SEED] - `make node-loss`: single faults of nodes with real daemons: the daemon, the machine,
its link, one direction of it. After each one
  - both gateways call the node lost in less than LOST_S,
  - its boxes with on_loss restart answer on another node within RESTARTED_S,
  - its other boxes are reported with the time at which the node became unreachable,
  - the node that returns has all boxes that were not restarted, with their files and programs, and says how long they were
    unreachable; boxes that were restarted have ended there.
Prints medians and maxima of each kind of fault."""
from rig import *

LOST_S, RESTARTED_S = 5.0, 10.0
BOXES = 4
build, faults = sys.argv[1], int(sys.argv[2])
engine = sys.argv[3] if len(sys.argv) > 3 else "postgres"
seed = int(sys.argv[4]) if len(sys.argv) > 4 else int(time.time())
random.seed(seed)
kinds = os.environ.get("KINDS", "daemon machine link inbound outbound").split()
times = {}


class Poll(threading.Thread):
    """Repeats check() until it is true: when that was, from `at`."""

    def __init__(self, at, check, limit=30, pause=0.05):
        super().__init__(daemon=True)
        self.at, self.check, self.limit, self.pause, self.took = at, check, limit, pause, None
        self.start()

    def run(self):
        while time.monotonic() < self.at + self.limit:
            if self.check():
                self.took = time.monotonic() - self.at
                return
            time.sleep(self.pause)


def restarted(c, i):
    """Any gateway that has the node as away answers at once; one that does not know it yet may wait."""
    status, answer = c.ask("POST", "/v1/boxes/%s/execs" % boxes[i], {"command": "cat kept"}, 1.0)
    return status == 200 and answer.get("stdout") == "kept %d\n" % i


def owners(c):
    moved = dict(line.split("|") for line in c.sql("select id, node from atoll.moved"))
    return [int(moved.get(b, node_of(b))) for b in boxes]


def begin_fault(node, kind):
    if kind == "daemon":
        node.kill()
    elif kind == "machine":
        node.link(False)
        node.kill()
    elif kind == "link":
        node.link(False)
    else:
        node.drop("INPUT" if kind == "inbound" else "OUTPUT")


def end_fault(node, kind):
    if kind == "machine":
        node.end_boxes()
        node.link(True)
    if kind in ("daemon", "machine"):
        node.start()
    elif kind == "link":
        node.link(True)
    else:
        node.undrop()


def check_reported(c, node, at_unix):
    """Boxes that are not restarted elsewhere: the API names state and time."""
    for gate in c.gateways:
        try:
            status, text = gate.request("GET", "/v1/boxes/" + plain[node.name])
        except Cut as e:
            report(str(e))
            continue
        error = json.loads(text).get("error", {}) if status == 503 else {}
        since = error.get("since")
        if error.get("code") != "unreachable" or error.get("state") != "lost" or not since:
            report("%s reports %s %s" % (gate.name, status, text[:300]))
            continue
        if not -1 < time_of(since) - at_unix < LOST_S + 1:
            report("%s: unreachable since %s, the fault was at %s" % (gate.name, since, at_unix))
    listed = lambda: ((c.ask("GET", "/v1/boxes?limit=100", None, 5)[1] or {}) or {}).get("items", [])
    if not any(b["id"] == plain[node.name] and b["state"] == "lost" for b in listed()):
        report("the list does not show %s as lost" % plain[node.name])


def time_of(since):
    if isinstance(since, (int, float)):
        return since / 1000.0
    import datetime
    return datetime.datetime.fromisoformat(since.replace("Z", "+00:00")).timestamp()


def make_plain(c, node):
    box = c.create_on(node)
    c.execute(box, "echo %s >kept; echo 0 >beat; (setsid sh -c 'while :; do echo $(($(cat beat) + 1)) >beat; sleep 1; done' >/dev/null 2>&1 &)" % node.name)
    plain[node.name] = box
    returns[box] = 0


def check_return(c, node, kind, away_s, mine):
    box = plain[node.name]
    if kind == "machine":  # its boxes ended with it
        make_plain(c, node)
    else:
        if c.execute(box, "cat kept").strip() != node.name:
            report("%s of %s has lost its files" % (box, node.name))
        first = c.execute(box, "cat beat")
        if not until("the program of %s continues" % box, 10, lambda: c.execute(box, "cat beat") not in ("", first)):
            return
        status, answer = c.ask("GET", "/v1/boxes/%s/events?order=newest&limit=100" % box, None, 10)
        stated = [e["data"]["unreachable_ms"] / 1000.0 for e in answer["items"] if e["type"] == "box.reachable"] if status == 200 else []
        returns[box] = returns.get(box, 0) + 1
        if len(stated) < min(returns[box], 3) or not away_s - 1.5 < stated[0] < away_s + 2.5:
            report("%s was away for %.1f s, and said %s (%s)" % (node.name, away_s, stated[:3], status))
        superseded = "select count(*) from boxes where state = 'gone' and cause = 'superseded' and id in (%s)" % ",".join("'%s'" % boxes[i] for i in mine)
        until("%s ends %d boxes that were restarted" % (node.name, len(mine)), 20, lambda: int(sh(
            "sqlite3", "-readonly", "-cmd", ".timeout 2000", node.folder + "/state/server/atoll.db", superseded, check=False) or 0) == len(mine))


def fault(c, number, node, kind):
    mine = [i for i, at in enumerate(owners(c)) if at == node.number]
    at, at_unix = time.monotonic(), time.time()
    begin_fault(node, kind)
    lost = [Poll(at, lambda g=g: c.state_of(node, [g]) == "lost") for g in c.gateways]
    runs = [Poll(time.monotonic(), lambda i=i: restarted(c, i)) for i in mine]
    for p in lost + runs:
        p.join()
    took = [p.took for p in lost]
    again = [p.took for p in runs]
    note("%d: %s of %s: lost after %s s; %d boxes answer after %s s (load %.1f)" % (
        number, kind, node.name, " ".join("%.2f" % (t or 99) for t in took), len(mine),
        " ".join("%.2f" % (t or 99) for t in again), os.getloadavg()[0]))
    if None in took or max(took) >= LOST_S:
        report("lost after %s" % took)
    if None in again or (again and max(again) >= RESTARTED_S):
        report("restarted after %s" % again)
    times.setdefault(("lost", kind), []).append(max(t or 99 for t in took))
    if again:
        times.setdefault(("restarted", kind), []).append(max(t or 99 for t in again))
    check_reported(c, node, at_unix)
    back = time.monotonic()
    end_fault(node, kind)
    if until("%s is up at both" % node.name, 60, lambda: node.is_up() and all(c.state_of(node, [g]) == "up" for g in c.gateways)):
        check_return(c, node, kind, time.monotonic() - at, mine)
        times.setdefault(("up again", kind), []).append(time.monotonic() - back)
    until("copies on two other nodes", 60, lambda: c.has_copies(boxes))


with Cluster(build, 2, 3, engine == "etcd") as c:
    boxes, plain, returns = [], {}, {}
    for i in range(BOXES):
        boxes.append(c.create(name="box%d" % i, on_loss="restart"))
        c.execute(boxes[i], "echo kept %d >kept" % i)
        c.ask("POST", "/v1/snapshots", {"box": boxes[i]}, 60)
    for node in c.nodes:
        make_plain(c, node)
    until("copies on two other nodes", 60, lambda: c.has_copies(boxes))
    note("%d restartable boxes, 2 gateways, 3 nodes, %s, seed %d" % (BOXES, engine, seed))
    made = 0
    for number in range(1, faults + 1):
        if len(bad) > 20:
            break
        # Mostly a node that has boxes to restart.
        fault(c, number, random.choice(c.nodes if number % 4 == 0 else [n for n in c.nodes if n.number in owners(c)]), kinds[number % len(kinds)])
        made = number
    for (what, kind), values in sorted(times.items()):
        values.sort()
        note("%s after %s: median %.2f s, most %.2f s, of %d" % (what, kind, values[len(values) // 2], values[-1], len(values)))
finish("%d faults with %s, seed %d" % (made, engine, seed))
