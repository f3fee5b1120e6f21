"""rig.py - the machines of a cluster for the programs of this folder: real daemons, PostgreSQL and etcd in network namespaces.
Run these programs as root in a network namespace of their own (unshare --net): its bridge is the network of the machines."""
import base64, http.client, json, os, random, re, shutil, signal, subprocess, sys, tempfile, threading, time

signal.signal(signal.SIGTERM, lambda *_: sys.exit(2))  # with all that was started
began, done = time.monotonic(), threading.Event()
bad, last_why = [], [""]


def sh(*command, **more):
    return subprocess.run(command, check=more.pop("check", True), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more).stdout


def note(text):
    print("# %7.1f %s" % (time.monotonic() - began, text), flush=True)


def report(text):
    bad.append(text)
    note("BAD: " + text)


def until(what, limit, check, pause=0.1):
    end = time.monotonic() + limit
    while time.monotonic() < end:
        if check():
            return True
        time.sleep(pause)
    report("not within %d s: %s (last answer: %s)" % (limit, what, last_why[0]))
    return False


def node_of(id):
    """The number in the first letters of an id."""
    letters = "abcdefghijklmnopqrstuvwxyz234567"
    return sum(letters.index(id[k]) << 5 * (2 - k) for k in range(3))


class Cut(Exception):
    """The connection ended before the answer was complete, or none could be made."""

    def __init__(self, why, sent):
        super().__init__(why)
        self.sent = sent  # the request was sent, so its outcome is not known


class Machine:
    def __init__(self, cluster, number, name, **settings):
        self.cluster, self.name, self.settings, self.number, self.process = cluster, name, settings, 0, None
        self.space, self.address = "atc%d-%d" % (os.getpid() % 10000, number), "10.9.0.%d" % number
        self.folder, self.port, self.atoll = os.path.join(cluster.work, name), "v%d" % number, cluster.atoll
        self.conns, self.rules, self.pin = threading.local(), [], []  # pin: a command that sets its processors
        os.mkdir(self.folder)
        sh("ip", "netns", "add", self.space)
        cluster.spaces.append(self.space)
        sh("ip", "link", "add", self.port, "type", "veth", "peer", "name", "eth0", "netns", self.space)
        sh("ip", "link", "set", self.port, "master", "br0", "up")
        for command in ("addr add %s/24 dev eth0" % self.address, "link set eth0 up", "link set lo up"):
            sh("ip", "-n", self.space, *command.split())

    def environment(self):
        return dict(os.environ, ATOLL_RUN=self.folder + "/run", ATOLL_STATE=self.folder + "/state", ATOLL_LISTEN=self.address + ":7070",
                    ATOLL_CLUSTER_NAME=self.name, ATOLL_LOG_FORMAT="text", ATOLL_ISOLATION_PROVE="false", **self.settings)

    def inside(self, *command):
        return ["nsenter", "--net=/run/netns/" + self.space, *command]

    def run(self, *command):
        return sh(*self.inside(*command), env=self.environment())

    # ---- processes ----
    def start(self):
        log = open(self.folder + "/log", "a")
        self.process = subprocess.Popen(self.inside(*self.pin, self.atoll, "serve"), env=self.environment(), stdout=log, stderr=log,
                                        stdin=subprocess.DEVNULL)

    def wait_for_tunnels(self):
        end = time.monotonic() + 60
        while subprocess.run(self.inside("bash", "-c", "exec 3<>/dev/tcp/%s/7071" % self.address), stderr=subprocess.DEVNULL).returncode:
            ended = self.process.poll()
            if ended is not None or time.monotonic() > end:
                raise SystemExit("%s does not accept tunnels (it %s): %s" % (
                    self.name, "runs" if ended is None else "ended with %d" % ended, sh("tail", "-n", "8", self.folder + "/log")))
            time.sleep(0.1)

    def is_up(self):
        if self.process.poll() is not None:  # all keepers of the host were in use
            self.start()
        return self.cluster.state_of(self) == "up"

    def pids(self):
        """The supervisor and its processes, without the keeper and its boxes."""
        return [self.process.pid] + [int(p) for p in sh("pgrep", "-P", str(self.process.pid), check=False).split()]

    def signal(self, number):
        for pid in self.pids():
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass

    def kill(self):
        self.signal(signal.SIGKILL)
        self.process.wait()

    def keeper(self):
        found = re.search(r"pid (\d+)", sh(self.atoll, "doctor", "--json", env=self.environment(), check=False))
        return int(found.group(1)) if found else 0

    def end_boxes(self):
        keeper = self.keeper()
        sh(self.atoll, "kill", "--all", "--local", "--quiet", env=self.environment(), check=False)
        if keeper:
            try:
                os.kill(keeper, signal.SIGKILL)
            except ProcessLookupError:
                pass

    # ---- network ----
    def refuse_connections(self):
        sh(*self.inside("iptables", "-A", "INPUT", "-i", "eth0", "-p", "tcp", "--syn", "-j", "DROP"))

    def link(self, up):
        sh("ip", "link", "set", self.port, "up" if up else "down")

    def drop(self, chain, *match):
        """Packets to (INPUT) or from (OUTPUT) this machine are dropped."""
        self.rules.append([chain, "-i" if chain == "INPUT" else "-o", "eth0", *match, "-j", "DROP"])
        sh(*self.inside("iptables", "-A", *self.rules[-1]))

    def undrop(self):
        while self.rules:
            sh(*self.inside("iptables", "-D", *self.rules.pop()))

    # ---- requests ----
    def request(self, method, path, body=None, patience=10.0, key=None, headers={}):
        """Status, bytes. On a connection that is used again, as clients do; raises Cut."""
        conn, fresh = getattr(self.conns, "c", None), False
        if not conn:
            conn, fresh = http.client.HTTPConnection(self.address, 7070, timeout=patience), True
            try:
                conn.connect()
            except OSError as e:
                raise Cut("connect: %s" % e, False)
        self.conns.c = None
        conn.sock.settimeout(patience)
        try:
            data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
            conn.request(method, path, data, dict({"Host": "localhost", "X-API-Key": key or self.cluster.key,
                                                   "Content-Type": "application/json"}, **headers))
            answer = conn.getresponse()
            text = answer.read()
        except TimeoutError:
            conn.close()
            raise Cut("%s %s at %s: no answer within %d s" % (method, path, self.name, patience), True)
        except (OSError, http.client.HTTPException) as e:
            conn.close()
            raise Cut("%s %s: %s" % (method, path, e or type(e).__name__), True)
        if answer.will_close:
            conn.close()
        else:
            self.conns.c = conn
        return answer.status, text


class Cluster:
    """with Cluster(build, ...) as c: daemons, engines and namespaces end with the block."""

    def __init__(self, build, gateways=2, nodes=3, etcd=False, gateway_settings={}, node_settings={}, before=None, pg_size=""):
        """pg_size: of a file system for the database. before: called with the cluster when its machines exist and no node has joined."""
        self.atoll, self.spaces, self.processes, self.key = build + "/atoll", [], [], ""
        self.work = tempfile.mkdtemp(prefix="atoll-rig.", dir="/tmp")
        os.chmod(self.work, 0o711)
        self.gateways, self.nodes, self.pg_size, self.etcds = [], [], pg_size, {}
        try:
            self.begin(gateways, nodes, etcd, gateway_settings, node_settings, before)
        except BaseException:
            self.end()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *why):
        self.end()

    def begin(self, gateways, nodes, etcd, gateway_settings, node_settings, before):
        for command in ("link set lo up", "link add br0 type bridge", "addr add 10.9.0.254/24 dev br0", "link set br0 up"):
            sh("ip", *command.split())
        self.postgres_init()
        settings = dict({"ATOLL_CLUSTER_ROLE": "gateway", "ATOLL_CLUSTER_SECRETS": self.work + "/secrets",
                         "ATOLL_CLUSTER_DATABASE": "host=%s/pg user=atoll dbname=postgres" % self.work}, **gateway_settings)
        if etcd:
            self.etcd_start()
            settings["ATOLL_CLUSTER_ETCD"] = ",".join("http://10.9.0.254:%d" % (2379 + i) for i in range(3))
        for n in range(1, gateways + 1):
            self.gateways.append(Machine(self, n, "gate%d" % n, ATOLL_CLUSTER_LISTEN="10.9.0.%d:7071" % n, **settings))
        tunnels = ",".join(g.address + ":7071" for g in self.gateways)
        for n in range(11, 11 + nodes):
            self.nodes.append(Machine(self, n, "node%d" % (n - 10), **dict({"ATOLL_CLUSTER_ROLE": "node",
                                                                           "ATOLL_CLUSTER_GATEWAYS": tunnels}, **node_settings)))
            self.nodes[-1].refuse_connections()  # a node needs no open port: none of these programs uses one
        if before:
            before(self)
        for gate in self.gateways:
            gate.run(gate.atoll, "cluster", "init")
            gate.start()
            gate.wait_for_tunnels()
        self.key = self.gateways[0].run(self.gateways[0].atoll, "key", "new", "rig", "--quiet").strip()
        token = self.gateways[0].run(self.gateways[0].atoll, "node", "token", "--uses", str(nodes or 1), "--quiet").strip()
        for node in self.nodes:
            self.join(node, token)
            node.start()
        for node in self.nodes:
            if not until(node.name + " is up", 90, node.is_up):
                raise SystemExit("a node does not start: " + sh("tail", "-n", "3", node.folder + "/log"))
        for gate in self.gateways:
            if not until(gate.name + " knows the key and all nodes", 30, lambda: self.states(gate) == ["up"] * nodes):
                raise SystemExit("a gateway is not ready")

    def join(self, node, token):
        end = time.monotonic() + 30
        while True:
            try:
                node.number = int(node.run(node.atoll, "node", "join", "https://" + self.gateways[0].address + ":7071", token, "--name",
                                           node.name).split()[-1])
                return
            except subprocess.CalledProcessError as e:
                if time.monotonic() > end:
                    raise SystemExit("join: %s\n%s" % (e.stderr, sh("tail", "-n", "5", self.gateways[0].folder + "/log")))
                time.sleep(0.3)

    def end(self):
        done.set()
        if bad and os.environ.get("KEEP"):
            print("# logs in " + self.work)
        for machine in self.nodes + self.gateways:
            if machine.process:
                machine.signal(signal.SIGCONT)
                machine.kill()
                if machine in self.nodes:
                    machine.end_boxes()
        for p in self.processes:
            p.kill()
            p.wait()
        for space in self.spaces:
            sh("ip", "netns", "del", space, check=False)
        if self.pg_size:
            sh("umount", "-l", self.work + "/pg", check=False)
        if not (bad and os.environ.get("KEEP")):
            shutil.rmtree(self.work, ignore_errors=True)

    # ---- engines ----
    def postgres_init(self):
        self.pg_bin = "/usr/lib/postgresql/%s/bin/" % sorted(os.listdir("/usr/lib/postgresql"))[-1]
        self.as_postgres = ["setpriv", "--reuid", "postgres", "--regid", "postgres", "--clear-groups", "env", "HOME=/"]
        os.mkdir(self.work + "/pg")
        shutil.chown(self.work + "/pg", "postgres", "postgres")
        if self.pg_size:
            sh("mount", "-t", "tmpfs", "-o", "size=" + self.pg_size, "tmpfs", self.work + "/pg")
            shutil.chown(self.work + "/pg", "postgres", "postgres")
        sh(*self.as_postgres, self.pg_bin + "initdb", "-D", self.work + "/pg/data", "-A", "trust", "-U", "rig", "--no-sync", "-E", "UTF8",
           "--locale", "C.UTF-8")
        self.postgres_start()
        self.sql("create role atoll login")
        self.sql("grant all on database postgres to atoll")

    def postgres_start(self):
        self.postgres = subprocess.Popen(self.as_postgres + [self.pg_bin + "postgres", "-D", self.work + "/pg/data", "-k", self.work + "/pg",
                                                             "-c", "listen_addresses=", "-c", "fsync=off"],
                                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.processes.append(self.postgres)
        while subprocess.run(["psql", "-qAt", "-h", self.work + "/pg", "-U", "rig", "postgres", "-c", "select 1"],
                             capture_output=True).returncode:
            time.sleep(0.1)

    def postgres_stop(self):
        """As its machine would end: no connection is closed by the server's own decision."""
        self.postgres.send_signal(signal.SIGQUIT)
        self.postgres.wait()
        self.processes.remove(self.postgres)

    def etcd_start(self, members=(0, 1, 2)):
        """Three members at the bridge, with ports of their own."""
        at = lambda i, port: "http://10.9.0.254:%d" % (port + i)
        peers = ",".join("m%d=%s" % (i, at(i, 2480)) for i in range(3))
        for i in members:
            self.etcds[i] = subprocess.Popen(
                ["env", "ETCD_UNSUPPORTED_ARCH=arm64", "etcd", "--name", "m%d" % i, "--data-dir", self.work + "/etcd%d" % i, "--logger", "zap",
                 "--log-level", "error", "--listen-client-urls", at(i, 2379), "--advertise-client-urls", at(i, 2379), "--listen-peer-urls",
                 at(i, 2480), "--initial-advertise-peer-urls", at(i, 2480), "--initial-cluster", peers],
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            self.processes.append(self.etcds[i])
        while any(subprocess.run(["curl", "-sf", "-m", "5", at(i, 2379) + "/health"], capture_output=True).returncode for i in members):
            time.sleep(0.1)

    def etcd_stop(self, members=(0, 1, 2)):
        for i in members:
            self.etcds[i].kill()
            self.etcds[i].wait()
            self.processes.remove(self.etcds[i])

    def sql(self, text):
        return sh("psql", "-qAt", "-h", self.work + "/pg", "-U", "rig", "postgres", "-c", text).split()

    # ---- requests ----
    def ask(self, method, path, body=None, patience=2.0, gates=None):
        """Of any gateway, as a client with all their addresses: a refused or cut request is sent to the next one. Status, document."""
        why = None
        for gate in gates or random.sample(self.gateways, len(self.gateways)):
            try:
                status, text = gate.request(method, path, body, patience)
                if status < 300:
                    return status, json.loads(text or b"null")
                why = status, text[:300]
                if method == "POST" and status < 500:
                    break
            except Cut as e:
                why = 0, str(e)
        last_why[0] = why
        return why

    def states(self, gate):
        status, answer = self.ask("GET", "/v1/nodes", None, 2, [gate])
        return [n["state"] for n in answer["items"]] if status == 200 else None

    def state_of(self, node, gates=None):
        status, answer = self.ask("GET", "/v1/nodes", None, 2, gates)
        return next((n["state"] for n in answer["items"] if n["name"] == node.name), None) if status == 200 else None

    def create(self, **fields):
        """A new box; waits until the cluster creates it."""
        found = []

        def try_it():
            status, answer = self.ask("POST", "/v1/boxes", dict({"lifetime_ms": 7200000}, **fields), 20)
            if status == 201:
                found.append(answer["id"])
            return status == 201
        if not until("a box with %s" % fields, 60, try_it):
            raise SystemExit("no box")
        return found[0]

    def create_on(self, node, **fields):
        while True:
            box = self.create(**fields)
            if node_of(box) == node.number:
                return box
            self.ask("DELETE", "/v1/boxes/" + box, None, 20)

    def execute(self, box, command, patience=20):
        status, answer = self.ask("POST", "/v1/boxes/%s/execs" % box, {"command": command}, patience)
        if status != 200:
            report("exec in %s: %s %s" % (box, status, answer))
            return ""
        return answer.get("stdout", "")

    def has_copies(self, boxes):
        held = []
        for n in self.nodes:
            held += sh("sqlite3", "-readonly", "-cmd", ".timeout 2000", n.folder + "/state/server/atoll.db", "select box from copies",
                       check=False).split()
        return all(held.count(b) >= 2 for b in boxes)


def finish(title):
    print("%s: %s" % ("failed" if bad else "passed", title))
    sys.exit(1 if bad else 0)
