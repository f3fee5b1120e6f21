#!/usr/bin/python3
"""scaling.py BUILD [SECONDS] - `make bench-scaling`: creations per second through one gateway with one node and with three, each node
on processors of its own, interleaved in the same run.

A quarter of the processors is for the gateway, PostgreSQL and the clients, a quarter for each node. With 16 processors or more the
rate with three nodes must be 2.7 times that with one; with fewer, the ratio is printed. Each client creates a box and deletes it,
again and again; its node deletes boxes on its own processors, so a creation costs it both. Also prints the processor time of the
gateway per creation, its directory row included (limit on two processors: 150 us)."""
from rig import *

build = sys.argv[1]
seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 8.0
ROUNDS, CLIENTS, THREADS, RATIO, GATEWAY_US = 3, 2, 8, 2.7, 150  # CLIENTS: processes for each node

every = sorted(os.sched_getaffinity(0))
part = max(1, len(every) // 4)
ours = every[:part]


def client(address, key, seconds, out):
    """In a process of its own: threads that create and delete, for so many seconds."""
    end, made, failed, lock = time.monotonic() + seconds, [0], [], threading.Lock()

    def work():
        conn = http.client.HTTPConnection(address, 7070, timeout=30)
        headers = {"Host": "localhost", "X-API-Key": key, "Content-Type": "application/json"}
        while time.monotonic() < end:
            try:
                conn.request("POST", "/v1/boxes", b"{}", headers)
                answer = conn.getresponse()
                text = answer.read()
                if answer.status == 201:
                    with lock:
                        made[0] += 1
                    conn.request("DELETE", "/v1/boxes/" + json.loads(text)["id"], None, headers)
                    conn.getresponse().read()
                else:
                    failed.append(text[:200].decode())
                    time.sleep(0.05)
            except (OSError, http.client.HTTPException) as e:
                failed.append(str(e))
                conn.close()
    threads = [threading.Thread(target=work) for _ in range(THREADS)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    os.write(out, json.dumps([made[0], len(failed), failed[:1]]).encode())


def ticks(pids):
    total = 0
    for pid in pids:
        try:
            fields = open("/proc/%d/stat" % pid).read().rsplit(")", 1)[1].split()
            total += int(fields[11]) + int(fields[12])
        except OSError:
            pass
    return total / os.sysconf("SC_CLK_TCK")


def database(c):
    return [c.postgres.pid] + [int(p) for p in sh("pgrep", "-P", str(c.postgres.pid), check=False).split()]


def rate(c, gate, nodes):
    """Creations per second, and microseconds of the gateway and of the database for each."""
    pipes, before, backends = [], ticks(gate.pids()), database(c)
    in_database = ticks(backends)
    for _ in range(CLIENTS * nodes):
        read, write = os.pipe()
        if os.fork() == 0:
            code = 1
            try:
                client(gate.address, c.key, seconds, write)
                code = 0
            finally:
                os._exit(code)
        os.close(write)
        pipes.append(read)
    made = refused = 0
    why = []
    for read in pipes:
        text = b""
        while piece := os.read(read, 65536):
            text += piece
        os.close(read)
        n, f, w = json.loads(text)
        made, refused, why = made + n, refused + f, why + w
    for _ in pipes:
        os.wait()
    if refused * 100 > made:
        report("%d of %d creations were refused: %s" % (refused, made + refused, why[:1]))
    return made / seconds, (ticks(gate.pids()) - before) * 1e6 / max(made, 1), (ticks(backends) - in_database) * 1e6 / max(made, 1)


def pin(c):
    for i, node in enumerate(c.nodes):
        cpus = every[part * (i + 1):part * (i + 2)] or every
        node.pin = ["taskset", "-c", ",".join(map(str, cpus))]


os.sched_setaffinity(0, ours)
rates, gateway_us, database_us = {1: [], 3: []}, [], []
with Cluster(build, 1, 3, before=pin) as c:
    gate = c.gateways[0]
    for round in range(ROUNDS + 1):
        for nodes in (1, 3):
            for node in c.nodes[1:]:
                status, answer = c.ask("POST", "/v1/nodes/%s/%s" % (node.name, "undrain" if nodes == 3 else "drain"), {}, 10)
                if status not in (200, 204):
                    report("drain %s: %s %s" % (node.name, status, answer))
            time.sleep(1)
            found, us, db = rate(c, gate, nodes)
            note("%d node%s: %.0f creations/s, %.0f us of the gateway each, %.0f of PostgreSQL" % (nodes, "s"[:nodes - 1], found, us, db))
            if round:  # the first one fills pools and caches
                rates[nodes].append(found)
                gateway_us.append(us)
                database_us.append(db)
median = lambda list: sorted(list)[len(list) // 2]
ratio = median(rates[3]) / median(rates[1])
note("%d processors, %d for each node: %.0f creations/s with one node, %.0f with three: %.2f x (limit %.1f with 16 processors)" % (
    len(every), part, median(rates[1]), median(rates[3]), ratio, RATIO))
note("gateway: %.0f us per creation (limit %d); PostgreSQL: %.0f us" % (median(gateway_us), GATEWAY_US, median(database_us)))
if len(every) >= 16 and ratio < RATIO:
    report("three nodes create %.2f times as many boxes as one, not %.1f" % (ratio, RATIO))
finish("creations through one gateway with one node and three")
