#!/usr/bin/python3
"""credentials.py BUILD - what a node must not have: the password of the database, an API key of a client, the key of the CA. They are searched
in its files and in the memory of all its processes, after requests on every kind of path; the same search finds each of them at the gateway.
Its nodes drop all inbound connections (rig.py)."""
from rig import *

build = sys.argv[1]
password = "pw" + base64.b32encode(os.urandom(20)).decode().lower()


def secrets_of(c):
    folder = c.work + "/secrets"
    os.mkdir(folder, 0o700)
    with open(folder + "/database", "w") as f:
        f.write(password + "\n")
    os.chmod(folder + "/database", 0o600)


def needles(c):
    with open(c.work + "/secrets/ca.key") as f:
        pem = f.read()
    der = base64.b64decode("".join(line for line in pem.splitlines() if not line.startswith("-")))
    at = der.index(b"\x02\x01\x01\x04\x20") + 5  # ECPrivateKey: version 1, 32 bytes
    scalar = der[at:at + 32]
    return {"the password of the database": [password.encode()], "the API key of a client": [c.key.encode()],
            "the key of the CA": [pem.splitlines()[1].encode(), scalar, scalar[::-1]]}


def descendants(pid):
    found = [pid]
    for child in sh("pgrep", "-P", str(pid), check=False).split():
        found += descendants(int(child))
    return found


def processes_of(machine):
    found = descendants(machine.process.pid)
    keeper = machine.keeper() if machine in c.nodes else 0
    return sorted(set(found + (descendants(keeper) if keeper else [])))


def search_memory(pid, wanted):
    """Names of what was found, bytes that were read."""
    found, size = set(), 0
    try:
        with open("/proc/%d/maps" % pid) as maps, open("/proc/%d/mem" % pid, "rb", 0) as mem:
            for line in maps:
                where, rights = line.split()[:2]
                if rights[0] != "r" or line.rstrip().endswith(("[vvar]", "[vsyscall]", "[vvar_vclock]")):
                    continue
                begin, end = (int(x, 16) for x in where.split("-"))
                kept = b""
                while begin < end:
                    try:
                        mem.seek(begin)
                        piece = mem.read(min(end - begin, 4 << 20))
                    except OSError:
                        break
                    if not piece:
                        break
                    size += len(piece)
                    for name, values in wanted.items():
                        if any(v in kept + piece for v in values):
                            found.add(name)
                    kept = piece[-64:]
                    begin += len(piece)
    except OSError as e:
        if os.path.exists("/proc/%d" % pid) and open("/proc/%d/stat" % pid).read().rsplit(")", 1)[1].split()[0] != "Z":
            report("the memory of process %d cannot be read: %s" % (pid, e))
    return found, size


def search_files(folder, wanted):
    found, n = set(), 0
    for at, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(at, name)
            if not os.path.isfile(path) or os.path.islink(path):
                continue
            n += 1
            with open(path, "rb") as f:
                data = f.read()
            found |= {"%s (%s)" % (what, path) for what, values in wanted.items() if any(v in data for v in values)}
    return found, n


def use(c):
    """Requests with the key in every place where a client may have it."""
    gate = c.gateways[0]
    box = c.create(name="kept", on_loss="stop")
    c.execute(box, "sleep 600 & echo a")
    for path, headers in (("/v1/boxes/" + box, {}), ("/v1/boxes/%s/files/list?path=/" % box, {}), ("/v1/boxes/%s/stats" % box, {}),
                          ("/v1/who", {"Authorization": "Bearer " + c.key}), ("/v1/boxes/kept", {"Authorization": "Bearer " + c.key}),
                          ("/sandboxes/" + box, {}), ("/v1/volumes", {}), ("/volumes", {}), ("/v1/templates", {}), ("/v1/snapshots", {})):
        gate.request("GET", path, None, 20, None, headers)
    status, text = gate.request("POST", "/sandboxes", {"templateID": "base"}, 20)
    if status != 201:
        report("POST /sandboxes: %s %s" % (status, text[:200]))
    sandbox = json.loads(text).get("sandboxID", "")
    for headers in ({"E2b-Sandbox-Id": sandbox, "E2b-Sandbox-Port": "49983"}, {"E2b-Sandbox-Id": sandbox, "E2b-Sandbox-Port": "8000"}):
        gate.request("GET", "/health", None, 20, None, headers)
    gate.request("POST", "/volumes", {"name": "vol"}, 20)
    gate.request("POST", "/v1/run", {"command": "echo b"}, 20)
    gate.request("POST", "/v1/run", {"language": "python", "code": "print(1)"}, 30)
    gate.request("PUT", "/v1/boxes/%s/files?path=/tmp/f" % box, b"x", 20, None, {"Content-Type": "application/octet-stream"})
    gate.request("POST", "/v1/snapshots", {"box": box}, 60)
    gate.request("POST", "/mcp", {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}, 20, None,
        {"Accept": "application/json, text/event-stream"})
    socket_key = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}
    conn = http.client.HTTPConnection(gate.address, 7070, timeout=10)
    conn.request("GET", "/v1/socket", None, dict({"Host": "localhost", "X-API-Key": c.key}, **socket_key))
    conn.getresponse()
    conn.close()


with Cluster(build, 1, 2, before=secrets_of) as c:
    use(c)
    wanted = needles(c)
    gate = c.gateways[0]
    found, total = set(), 0
    for pid in processes_of(gate):
        f, n = search_memory(pid, wanted)
        found |= f
    if found != set(wanted):
        report("the search does not find at the gateway: %s" % sorted(set(wanted) - found))
    for node in c.nodes:
        pids = processes_of(node)
        total = 0
        for pid in pids:
            f, n = search_memory(pid, wanted)
            total += n
            if f:
                report("%s, process %d (%s) has in its memory: %s" % (node.name, pid, open("/proc/%d/comm" % pid).read().strip(), sorted(f)))
        f, files = search_files(node.folder, wanted)
        if f:
            report("%s has in files: %s" % (node.name, sorted(f)))
        note("%s: %d processes, %d MB of memory, %d files" % (node.name, len(pids), total >> 20, files))
        if len(pids) < 5 or files < 5:
            report("too little of %s was searched" % node.name)
finish("no credential at nodes that drop all inbound connections")
