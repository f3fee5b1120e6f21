#!/usr/bin/env python3
"""chaos.py - three machines (gateway, node, inits), a real engine, random faults: is an item ever active on two machines?

    chaos.py BUILD postgres|etcd FAULTS [WITHOUT]     WITHOUT: bit mask of rules that are left out (1 << rule)

Each machine has a network namespace; a further one forwards packets between them. All processes share CLOCK_MONOTONIC:
the logs of all machines are sorted and searched for overlaps. Exit status 1: an overlap, or an item without owner."""
import glob, os, random, signal, subprocess, sys, tempfile, time

build, engine, faults = sys.argv[1], sys.argv[2], int(sys.argv[3])
without = int(sys.argv[4]) if len(sys.argv) > 4 else 0
seed = int(os.environ.get('SEED', random.randrange(1 << 30)))
busy = int(os.environ.get('BUSY', 0))
random.seed(seed)
work = tempfile.mkdtemp(prefix='chaos-')
os.chmod(work, 0o711)
tag = 'ch%d' % os.getpid()
processes = {}
logs = {}
ITEMS, BOXES = 55, 30
machines = (1, 2, 3)
node_number = {m: 2 * m - 1 for m in machines}
gateway_number = {m: 2 * m for m in machines}
engine_members = 3 if engine == 'etcd' else 1


def now():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000


def sh(*command, check=True):
    return subprocess.run(command, check=check, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE if check else subprocess.DEVNULL)


def space(name):
    return '%s-%s' % (tag, name)


def inside(name, *command):
    return ['nsenter', '--net=/run/netns/' + space(name), *command]


def make_network():
    sh('ip', 'netns', 'add', space('sw'))
    sh(*inside('sw', 'sh', '-c', 'echo 1 >/proc/sys/net/ipv4/ip_forward'))
    for name in ['m1', 'm2', 'm3', 'e1', 'e2', 'e3'][:3 + engine_members]:
        sh('ip', 'netns', 'add', space(name))
        sh(*inside('sw', 'ip', 'link', 'add', name, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', space(name)))
        sh(*inside(name, 'ip', 'address', 'add', address_of(name) + '/32', 'dev', 'eth0'))
        sh(*inside(name, 'ip', 'link', 'set', 'eth0', 'up'))
        sh(*inside(name, 'ip', 'link', 'set', 'lo', 'up'))
        sh(*inside(name, 'ip', 'route', 'add', 'default', 'via', '10.77.0.254', 'dev', 'eth0', 'onlink'))
        sh(*inside('sw', 'ip', 'address', 'add', '10.77.0.254/32', 'dev', name))
        connect(name)


def connect(name):
    sh(*inside('sw', 'ip', 'link', 'set', name, 'up'))
    sh(*inside('sw', 'ip', 'route', 'replace', address_of(name) + '/32', 'dev', name))


def address_of(name):
    return '10.77.0.%d' % (int(name[1]) + (10 if name[0] == 'e' else 0))


def drop_network():
    for name in ['sw', 'm1', 'm2', 'm3', 'e1', 'e2', 'e3']:
        sh('ip', 'netns', 'del', space(name), check=False)


def start(name, where, command, as_postgres=False):
    if name in processes:
        return  # two faults of one process end
    if name not in logs:
        logs[name] = open(os.path.join(work, name + '.log'), 'ab')
    if as_postgres:
        command = ['setpriv', '--reuid', 'postgres', '--regid', 'postgres', '--clear-groups', *command]
    errors = open(os.path.join(work, name + '.err'), 'ab')
    processes[name] = subprocess.Popen(inside(where, *command), stdout=logs[name], stderr=errors, cwd=work)


def stop(name):
    p = processes.pop(name, None)
    if p:
        p.kill()
        p.wait()


def start_engine(member=1):
    where = 'e%d' % member
    if engine == 'postgres':
        start('engine', where, [postgres + '/postgres', '-D', work + '/pg/data', '-k', work + '/pg', '-c', 'listen_addresses=10.77.0.11',
                                '-c', 'shared_buffers=8MB'], as_postgres=True)
        return
    ip = '10.77.0.%d' % (10 + member)
    start('engine%d' % member, where, ['env', 'ETCD_UNSUPPORTED_ARCH=arm64', 'etcd', '--name', where, '--data-dir', '%s/etcd%d' % (work, member),
                    '--logger', 'zap', '--log-level', 'error', '--listen-client-urls', 'http://%s:2379' % ip,
                    '--advertise-client-urls', 'http://%s:2379' % ip, '--listen-peer-urls', 'http://%s:2380' % ip,
                    '--initial-advertise-peer-urls', 'http://%s:2380' % ip,
                    '--initial-cluster', ','.join('e%d=http://10.77.0.%d:2380' % (i, 10 + i) for i in (1, 2, 3))])


def make_engine():
    global postgres, address
    if engine == 'etcd':
        address = ','.join('http://10.77.0.%d:2379' % i for i in (11, 12, 13))
        for i in (1, 2, 3):
            start_engine(i)
        return
    postgres = sorted(glob.glob('/usr/lib/postgresql/*/bin'))[-1]
    os.mkdir(work + '/pg')
    sh('chown', 'postgres:postgres', work + '/pg')
    subprocess.run(['setpriv', '--reuid', 'postgres', '--regid', 'postgres', '--clear-groups', postgres + '/initdb', '-D', work + '/pg/data',
                    '-A', 'trust', '-U', 'atoll', '-E', 'UTF8', '--locale', 'C.UTF-8'], check=True, stdout=subprocess.DEVNULL, cwd=work)
    with open(work + '/pg/data/pg_hba.conf', 'a') as f:
        f.write('host all all 10.77.0.0/24 trust\n')
    address = 'host=10.77.0.11 user=atoll dbname=postgres'
    start_engine()


def start_gateway(m):
    start('gateway%d' % m, 'm%d' % m, [build + '/chaos_machine', 'gateway', str(gateway_number[m]), engine, address, str(without)])


def start_node(m):
    start('node%d' % m, 'm%d' % m, [build + '/chaos_machine', 'node', str(node_number[m]), '%s/m%d' % (work, m), str(without),
                                    *['%d=10.77.0.%d' % (gateway_number[i], i) for i in machines]])


def start_inits(m):
    start('inits%d' % m, 'm%d' % m, [build + '/chaos_machine', 'inits', str(node_number[m]), '%s/m%d' % (work, m)])


def stop_inits(m):
    """Its items end at the latest now: the process cannot write that itself."""
    stop('inits%d' % m)
    for item in range(ITEMS):
        os.write(logs['inits%d' % m].fileno(), b'! %d %d\n' % (item, now()))


# ---- faults: each returns the function that ends it ----

def disconnect(name):
    sh(*inside('sw', 'ip', 'link', 'set', name, 'down'))


def fault_link(m):
    disconnect('m%d' % m)
    return lambda: connect('m%d' % m)


def filter_packets(m, chain, *how):
    rule = [chain, '-i' if chain == 'INPUT' else '-o', 'eth0', *how, '-j', 'DROP']
    sh(*inside('m%d' % m, 'iptables', '-A', *rule))
    return lambda: sh(*inside('m%d' % m, 'iptables', '-D', *rule))


def fault_in(m):
    return filter_packets(m, 'INPUT')


def fault_out(m):
    return filter_packets(m, 'OUTPUT')


def fault_loss(m):
    return filter_packets(m, 'INPUT', '-m', 'statistic', '--mode', 'random', '--probability', '0.3')


def fault_peers(m):
    """Alone with the engine."""
    ends = [filter_packets(m, 'INPUT', '-s', '10.77.0.%d' % i) for i in machines if i != m]
    return lambda: [end() for end in ends]


def fault_node(m):
    stop('node%d' % m)
    return lambda: start_node(m)


def fault_gateway(m):
    stop('gateway%d' % m)
    return lambda: start_gateway(m)


def fault_machine(m):
    disconnect('m%d' % m)
    stop('gateway%d' % m)
    stop('node%d' % m)
    stop_inits(m)

    def end():
        connect('m%d' % m)
        start_inits(m)
        start_node(m)
        start_gateway(m)
    return end


def pause(name):
    p = processes.get(name)
    if p:
        p.send_signal(signal.SIGSTOP)
    return lambda: p and p.poll() is None and p.send_signal(signal.SIGCONT)


def fault_stall(m):
    return pause('gateway%d' % m)


def fault_stall_alone(m):
    ends = [fault_peers(m), pause('gateway%d' % m)]
    time.sleep(random.uniform(1, 7))
    ends.pop()()
    return ends[0]


def fault_taken_for_dead(m):
    """A gateway is stopped until others have declared its node lost, and continues while only that node is connected."""
    ends = [fault_peers(m), pause('gateway%d' % m)]
    time.sleep(random.uniform(4.7, 6))
    ends.pop()()
    time.sleep(4)
    return ends[0]


def fault_stall_node(m):
    return pause('node%d' % m)


def fault_engine_restart(m):
    name = 'engine' if engine == 'postgres' else 'engine%d' % m
    if engine == 'postgres':
        # The children of a killed server end by themselves; the next one waits for them.
        processes[name].send_signal(signal.SIGQUIT)
        processes.pop(name).wait()
    else:
        stop(name)
    return lambda: start_engine(m if engine == 'etcd' else 1)


def fault_engine_away(m):
    name = 'e1' if engine == 'postgres' else 'e%d' % m
    disconnect(name)
    return lambda: connect(name)


kinds = [fault_link, fault_link, fault_in, fault_out, fault_loss, fault_peers, fault_node, fault_node, fault_gateway, fault_machine,
         fault_stall, fault_stall_alone, fault_taken_for_dead, fault_stall_node, fault_engine_restart, fault_engine_away]
if without == 1 << 4:
    kinds = [fault_node, fault_node, fault_stall]  # connections that close at once while boxes continue
if without == 1 << 5:
    kinds = [fault_taken_for_dead]
# Faults that make the machine's node lost if they last, and when nothing else is broken.
losing = {'fault_link', 'fault_in', 'fault_out', 'fault_node', 'fault_machine', 'fault_stall_node'}


def read_events():
    events = []
    for m in machines:
        for line in open('%s/inits%d.log' % (work, m), errors='replace'):
            what, item, at = line.split()
            events.append((int(at), m, what, int(item)))
    return sorted(events)


def check(events):
    """Overlaps, and the owner of each item at the end."""
    active, overlaps = {}, []
    for at, m, what, item in events:
        owners = active.setdefault(item, set())
        if what == '+':
            if owners - {m}:
                overlaps.append((at, item, sorted(owners | {m})))
            owners.add(m)
        else:
            owners.discard(m)
    return overlaps, [item for item in range(ITEMS) if len(active.get(item, ())) != 1]


def gateway_events(word):
    found = []
    for m in machines:
        for line in open('%s/gateway%d.log' % (work, m), errors='replace'):
            if line.startswith(word + ' '):
                found.append((int(line.split()[2]), int(line.split()[1])))
    return sorted(found)


def settled(limit):
    """All items have one owner; waits at most this long."""
    end = time.monotonic() + limit
    while time.monotonic() < end:
        if not check(read_events())[1]:
            return True
        time.sleep(0.5)
    return False


def run():
    history, loads = [], []
    make_network()
    make_engine()
    for m in machines:
        os.mkdir('%s/m%d' % (work, m))
        start_inits(m)
        start_gateway(m)
        start_node(m)
    if not settled(60):
        print('the items have no owners after 60 s')
        return 2
    for number in range(busy):
        processes['busy%d' % number] = subprocess.Popen(['sh', '-c', 'while :; do :; done'])
    begin = time.monotonic()
    while len(history) < faults:
        batch = random.choice([1, 1, 2]) if len(kinds) > 1 else 1
        ends = []
        for _ in range(batch):
            kind, m = random.choice(kinds), random.choice(machines)
            try:
                history.append((now(), kind.__name__, m, batch))
                loads.append(os.getloadavg()[0])
                ends.append(kind(m))
            except (KeyError, subprocess.CalledProcessError):
                history.pop()
                loads.pop()
        time.sleep(random.choice([0.5, 2, 5, 6, 6, 9]))
        for end in ends:
            end()
        time.sleep(random.choice([0.3, 1, 3]))
        if without and check(read_events())[0]:
            break  # the missing rule was found
    for name in [n for n in processes if n.startswith('busy')]:
        stop(name)
    owned = without or settled(30)
    overlaps, orphans = check(read_events())
    lost = gateway_events('lost')
    times = {}
    for i, (at, kind, m, batch) in enumerate(history):
        if batch > 1 or kind not in losing:
            continue
        after = [t for t, n in lost if n == node_number[m] and t > at]
        following = history[i + 1][0] if i + 1 < len(history) else now()
        if after and after[0] < following:
            times.setdefault(kind, []).append((after[0] - at) / 1e6)
    print('%s, seed %d, without %d, %d busy processes: %d faults in %d s, %d of them at a load above 20, %d nodes lost, %d boxes moved; on two '
          'machines at once: %d; without an owner 30 s after the last fault: %d' % (
              engine, seed, without, busy, len(history), time.monotonic() - begin, sum(load > 20 for load in loads), len(lost),
              len(gateway_events('moved')), len(overlaps), len(orphans)))
    for kind, values in sorted(times.items()):
        values.sort()
        print('  time to lost after %s: median %.1f s, maximum %.1f s, n = %d' % (kind[6:], values[len(values) // 2], values[-1], len(values)))
    for at, item, owners in overlaps[:5]:
        print('  item %d on machines %s at %d us; faults before: %s' % (item, owners, at, [h for h in history if at - 15e6 < h[0] < at]))
    if orphans:
        print('  without owner: %s' % orphans)
    return 1 if overlaps or (not without and (orphans or not owned)) else 0


signal.signal(signal.SIGTERM, lambda *_: sys.exit(2))  # with all that it has started
status = 2
try:
    status = run()
finally:
    for name in list(processes):
        processes[name].send_signal(signal.SIGCONT)
        stop(name)
    drop_network()
    if status == 0 and not os.environ.get('KEEP'):
        sh('rm', '-rf', work)
    else:
        print('logs: ' + work)
sys.exit(status)
