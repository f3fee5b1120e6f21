#!/usr/bin/python3
"""daemons.py BUILD FAULTS [SEED] - `make chaos-daemons`: two gateways, three nodes, PostgreSQL, boxes with on_loss restart, and
random faults, with the real daemons in network namespaces. Fails if a box was active on two nodes at once, if one has no owner
30 s after the last fault, if its name names another box, or if a finished run is missing in the directory."""
import json, os, random, re, shutil, signal, subprocess, sys, tempfile, threading, time, urllib.error, urllib.request

build, faults = sys.argv[1], int(sys.argv[2])
seed = int(sys.argv[3]) if len(sys.argv) > 3 else int(time.time())
random.seed(seed)
atoll = build + "/atoll"
BOXES = 6
work = tempfile.mkdtemp(prefix="atoll-chaos.", dir="/tmp")
os.chmod(work, 0o711)
bad, spaces, processes = [], [], []
failed = threading.Event()


def sh(*command, **more):
    return subprocess.run(command, check=more.pop("check", True), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more).stdout


def note(text):
    print("# %7.1f %s" % (time.monotonic() - began, text), flush=True)


def report(text):
    bad.append(text)
    note("BAD: " + text)


class Machine:
    def __init__(self, number, name, **settings):
        self.name, self.settings, self.number = name, settings, 0
        self.space, self.address = "atc%d-%d" % (os.getpid() % 10000, number), "10.9.0.%d" % number
        self.folder = os.path.join(work, name)
        os.mkdir(self.folder)
        sh("ip", "netns", "add", self.space)
        spaces.append(self.space)
        self.port = "v%d" % number
        sh("ip", "link", "add", self.port, "type", "veth", "peer", "name", "eth0", "netns", self.space)
        sh("ip", "link", "set", self.port, "master", "br0", "up")
        for command in ("addr add %s/24 dev eth0" % self.address, "link set eth0 up", "link set lo up"):
            sh("ip", "-n", self.space, *command.split())
        self.process = None

    def environment(self):
        e = dict(os.environ, ATOLL_RUN=self.folder + "/run", ATOLL_STATE=self.folder + "/state", ATOLL_LISTEN=self.address + ":7070",
                 ATOLL_CLUSTER_NAME=self.name, ATOLL_LOG_FORMAT="text", ATOLL_ISOLATION_PROVE="false", **self.settings)
        return e

    def run(self, *command):
        return sh("nsenter", "--net=/run/netns/" + self.space, *command, env=self.environment())

    def start(self):
        log = open(self.folder + "/log", "a")
        self.process = subprocess.Popen(["nsenter", "--net=/run/netns/" + self.space, atoll, "serve"], env=self.environment(),
                                        stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    def is_up(self):
        if self.process.poll() is not None:  # all keepers of the host were in use
            self.start()
        return state_of(self) == "up"

    def pids(self):
        return [self.process.pid] + [int(p) for p in sh("pgrep", "-P", str(self.process.pid), check=False).split()]

    def kill(self):
        for pid in self.pids():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.wait()

    def keeper(self):
        found = re.search(r"pid (\d+)", sh(atoll, "doctor", "--json", env=self.environment(), check=False))
        return int(found.group(1)) if found else 0

    def end_boxes(self):
        keeper = self.keeper()
        sh(atoll, "kill", "--all", "--local", "--quiet", env=self.environment(), check=False)
        if keeper:
            try:
                os.kill(keeper, signal.SIGKILL)
            except ProcessLookupError:
                pass


last_why = [""]


def ask(method, path, body=None, patience=2.0, gates=None):
    why = last_why[0] = None
    for gate in gates or random.sample(gateways, len(gateways)):
        request = urllib.request.Request("http://%s:7070%s" % (gate.address, path), method=method,
                                         data=None if body is None else json.dumps(body).encode(),
                                         headers={"Host": "localhost", "X-API-Key": key, "Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=patience) as answer:
                return answer.status, json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as e:
            why = last_why[0] = e.code, e.read()[:200]
            if method == "POST" and e.code < 500:
                return why
        except (OSError, ValueError) as e:
            why = 0, str(e)
        last_why[0] = why
    return why


def until(what, limit, check):
    end = time.monotonic() + limit
    while time.monotonic() < end:
        if check():
            return True
        time.sleep(0.1)
    report("not within %d s: %s (last answer: %s)" % (limit, what, last_why[0]))
    return False


def sql(text):
    return sh("psql", "-qAt", "-h", work + "/pg", "-U", "atoll", "postgres", "-c", text).split()


def postgres():
    folder = sorted(f for f in os.listdir("/usr/lib/postgresql"))[-1]
    bin = "/usr/lib/postgresql/%s/bin/" % folder
    user = ["setpriv", "--reuid", "postgres", "--regid", "postgres", "--clear-groups", "env", "HOME=/"]
    os.mkdir(work + "/pg")
    shutil.chown(work + "/pg", "postgres", "postgres")
    sh(*user, bin + "initdb", "-D", work + "/pg/data", "-A", "trust", "-U", "atoll", "--no-sync", "-E", "UTF8", "--locale", "C.UTF-8")
    processes.append(subprocess.Popen(user + [bin + "postgres", "-D", work + "/pg/data", "-k", work + "/pg", "-c", "listen_addresses=",
                                              "-c", "fsync=off"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
    while subprocess.run(["psql", "-qAt", "-h", work + "/pg", "-U", "atoll", "postgres", "-c", "select 1"], capture_output=True).returncode:
        time.sleep(0.1)


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
        status, answer = ask("POST", "/v1/boxes/%s/execs" % boxes[i],
                             {"command": "cat kept; pgrep -fx 'sleep %s' >/dev/null || (setsid sleep %s >/dev/null 2>&1 &)" % (mark(i), mark(i))})
        if status == 200 and answer.get("stdout", "").startswith("kept %d" % i):
            last_answer[i] = time.monotonic()
            runs.append(answer["id"])
        elif status in (200, 404):
            report("box %d: %s %s" % (i, status, str(answer)[:300]))
        time.sleep(0.3)


def state_of(node):
    status, answer = ask("GET", "/v1/nodes")
    return next((n["state"] for n in answer["items"] if n["name"] == node.name), None) if status == 200 else None


# ---- faults ----
times = {"lost": [], "answer": []}


def owned(node):
    moved = dict(line.split("|") for line in sql("select id, node from atoll.moved"))
    return [i for i in range(BOXES) if int(moved.get(boxes[i], sql_node[i])) == node.number]


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
        sh("ip", "link", "set", node.port, "down")
    else:
        chain = "INPUT" if kind == "inbound" else "OUTPUT"
        sh("nsenter", "--net=/run/netns/" + node.space, "iptables", "-A", chain, "-i" if chain == "INPUT" else "-o", "eth0", "-j", "DROP")
    if kind == "machine" or random.random() < 0.7:
        if until("%s is lost" % node.name, 30, lambda: state_of(node) == "lost"):
            times["lost"].append(time.monotonic() - at)
        if until("boxes %s answer" % mine, 45, lambda: all(last_answer.get(i, 0) > at + 2.6 for i in mine)) and mine:
            times["answer"].append(time.monotonic() - at)
    else:
        time.sleep(random.uniform(0.2, 3))
    if kind in ("daemon", "machine"):
        node.start()
    elif kind == "link":
        sh("ip", "link", "set", node.port, "up")
    else:
        sh("nsenter", "--net=/run/netns/" + node.space, "iptables", "-F")
    until("%s is up" % node.name, 60, node.is_up)
    until("copies on two other nodes", 60, copied)


def copied():
    held = []
    for n in nodes:
        held += sh("sqlite3", "-readonly", "-cmd", ".timeout 2000", n.folder + "/state/server/atoll.db", "select box from copies", check=False).split()
    return all(held.count(b) >= 2 for b in boxes)


def main():
    global gateways, nodes, key, boxes, sql_node
    sh("ip", "link", "set", "lo", "up")
    sh("ip", "link", "add", "br0", "type", "bridge")
    sh("ip", "addr", "add", "10.9.0.254/24", "dev", "br0")
    sh("ip", "link", "set", "br0", "up")
    postgres()
    of_gate = {"ATOLL_CLUSTER_ROLE": "gateway", "ATOLL_CLUSTER_SECRETS": work + "/secrets",
               "ATOLL_CLUSTER_DATABASE": "host=%s/pg user=atoll dbname=postgres" % work}
    gateways = [Machine(n, "gate%d" % n, ATOLL_CLUSTER_LISTEN="10.9.0.%d:7071" % n, **of_gate) for n in (1, 2)]
    for gate in gateways:
        gate.run(atoll, "cluster", "init")
        gate.start()
    key = ""
    tunnels = ",".join(g.address + ":7071" for g in gateways)
    nodes = [Machine(n, "node%d" % n, ATOLL_CLUSTER_ROLE="node", ATOLL_CLUSTER_GATEWAYS=tunnels) for n in (11, 12, 13)]
    key = gateways[0].run(atoll, "key", "new", "chaos", "--quiet").strip()
    token = gateways[0].run(atoll, "node", "token", "--uses", "3", "--quiet").strip()
    for node in nodes:
        end = time.monotonic() + 30
        while True:
            try:
                node.number = int(node.run(atoll, "node", "join", "https://" + gateways[0].address + ":7071", token, "--name", node.name).split()[-1])
                break
            except subprocess.CalledProcessError as e:
                if time.monotonic() > end:
                    raise SystemExit("join: " + e.stderr)
                time.sleep(0.3)
        node.start()
    for node in nodes:
        if not until(node.name + " is up", 90, node.is_up):
            return
    boxes, sql_node = [], []
    for i in range(BOXES):
        def create():
            status, answer = ask("POST", "/v1/boxes", {"name": "box%d" % i, "on_loss": "restart", "lifetime_ms": 7200000}, 20)
            if status == 201:
                boxes.append(answer["id"])
            return status == 201
        if not until("box %d" % i, 60, create):
            return
        ask("POST", "/v1/boxes/%s/execs" % boxes[i], {"command": "echo kept %d >kept" % i}, 20)
        ask("POST", "/v1/snapshots", {"box": boxes[i]}, 60)
        letters = "abcdefghijklmnopqrstuvwxyz234567"
        sql_node.append(sum(letters.index(boxes[i][k]) << 5 * (2 - k) for k in range(3)))
    if not until("copies on two other nodes", 60, copied):
        return
    threads = [threading.Thread(target=watch)] + [threading.Thread(target=use, args=(i,)) for i in range(BOXES)]
    for t in threads:
        t.start()
    note("%d boxes, seed %d" % (BOXES, seed))
    for n in range(faults):
        if n % 6 == 5:
            gate = random.choice(gateways)
            note("end of %s" % gate.name)
            gate.kill()
            time.sleep(random.uniform(0, 3))
            gate.start()
            until("%s serves" % gate.name, 60, lambda: ask("GET", "/v1/who", None, 2, [gate])[0] == 200)
        else:
            fault(random.choice(nodes), random.choice(("daemon", "machine", "link", "inbound", "outbound")))
        if bad:
            break
    at = time.monotonic()
    until("every box has an owner", 30, lambda: all(last_answer.get(i, 0) > at for i in range(BOXES)))
    for i in range(BOXES):
        status, answer = ask("GET", "/v1/boxes/box%d" % i, None, 10)
        if status != 200 or answer["id"] != boxes[i]:
            report("the name box%d: %s %s" % (i, status, str(answer)[:200]))
    done.set()
    for t in threads:
        t.join()
    until("every finished run is in the directory", 30, lambda: set(runs) <= set(sql("select id from atoll.runs")))
    for name, list_ in times.items():
        if list_:
            note("%s after s: median %.1f, most %.1f, of %d" % (name, sorted(list_)[len(list_) // 2], max(list_), len(list_)))
    note("%d finished runs" % len(runs))


began, done = time.monotonic(), threading.Event()
try:
    main()
finally:
    done.set()
    if bad and os.environ.get("KEEP"):
        print("# logs in " + work)
    for machine in globals().get("nodes", []) + globals().get("gateways", []):
        if machine.process:
            machine.kill()
            machine.end_boxes()
    for p in processes:
        p.kill()
        p.wait()
    for space in spaces:
        sh("ip", "netns", "del", space, check=False)
    if not (bad and os.environ.get("KEEP")):
        shutil.rmtree(work, ignore_errors=True)
print("%s: %d faults, seed %d" % ("failed" if bad else "passed", faults, seed))
sys.exit(1 if bad else 0)
