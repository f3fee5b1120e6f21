#!/bin/sh
# net_matrix.sh - every range of addresses that boxes never reach, in every form in which a box could name
# it: no listener there sees a byte. Listeners are on all addresses of two network namespaces of this
# test: that of the daemon, and one that its default route leads to.
[ "$(id -u)" = 0 ] || { echo "1..0 # SKIP not root"; exit 0; }
if [ -z "${NET_MATRIX:-}" ]; then
	unshare -n true 2>/dev/null || { echo "1..0 # SKIP no network namespaces"; exit 0; }
	NET_MATRIX=1 exec unshare -n "$0" "$@"
fi
. "$(dirname "$0")/daemon.lib"

# ---- two namespaces ----
ip link set lo up
unshare -n sh -c "ip link set lo up; echo \$\$ >'$work/outside'; exec sleep 1000" &
holder=$!
end_holder() { kill "$holder" ${inner:+"$inner"} ${outer:+"$outer"} 2>/dev/null; }
trap 'end_holder; finish_daemon' EXIT
soon test -s "$work/outside"
outside() { nsenter -t "$(cat "$work/outside")" -n "$@"; }
ip link add near type veth peer name far netns "$(cat "$work/outside")"
ip addr add 203.0.114.1/24 dev near && ip -6 addr add 2600::1/64 dev near nodad && ip link set near up
outside sh -c 'ip addr add 203.0.114.2/24 dev far && ip -6 addr add 2600::2/64 dev far nodad && ip link set far up &&
	ip route add local 0.0.0.0/0 dev lo && ip -6 route add local ::/0 dev lo && ip route add 203.0.114.1 dev far && ip -6 route add 2600::1 dev far'
ip route add default via 203.0.114.2 && ip -6 route add default via 2600::2
python3 "$here/net_matrix.py" serve "$work/inner.log" &
inner=$!
nsenter -t "$(cat "$work/outside")" -n python3 "$here/net_matrix.py" serve "$work/outer.log" dns & # its pid is that of python
outer=$!
soon grep -q ready "$work/inner.log"
soon grep -q ready "$work/outer.log"
python3 "$here/net_matrix.py" addresses "$here/../../src/egress/ip_class.c" >"$work/addresses"

export ATOLL_EGRESS_DNS=203.0.114.2 ATOLL_EGRESS_ALLOW='open,0.0.0.0/0:*,[::]/0:*'
program='
import ipaddress, socket, sys

def ask(url):
    """The answer of the proxy to a request, redirects followed."""
    for _ in range(3):
        host = url.split("/")[2]
        s = socket.create_connection(("127.0.0.1", 3128), 20)
        s.sendall(("GET %s HTTP/1.1\r\nHost: %s\r\n\r\n" % (url, host)).encode())
        answer = s.makefile("rb").read().decode()
        where = [l[10:] for l in answer.split("\r\n") if l.lower().startswith("location: ")]
        if not where: return answer
        url = where[0]
    return answer

def tunnel(host):
    s = socket.create_connection(("127.0.0.1", 3128), 20)
    s.sendall(("CONNECT %s:80 HTTP/1.1\r\nHost: %s:80\r\n\r\nGET / HTTP/1.0\r\n\r\n" % (host, host)).encode())
    return s.makefile("rb").read().decode()

def direct(address):
    s = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    s.settimeout(5)
    try:
        s.connect((address, 80)); s.sendall(b"GET / HTTP/1.0\r\n\r\n"); return s.recv(4096).decode()
    except OSError: return "no connection"

def forms(a):
    """Hosts of URLs that mean this address, or hide it."""
    packed = a.packed.hex()
    yield "[%s]" % a if a.version == 6 else str(a)
    for how in "acm": yield "%s-%s.test" % (how, packed)
    if a.version == 4:
        for v6 in ("::ffff:%s" % a, "::%s" % a, "64:ff9b::%s" % a, "2002:%s:%s::1" % (packed[:4], packed[4:])):
            v6 = ipaddress.ip_address(v6)
            yield "[%s]" % v6
            yield "a-%s.test" % v6.packed.hex()

print(ask("http://public.test/"), ask("http://93.184.216.34/to/http://public.test/x"))
n = 0
for text in sys.stdin.read().split():
    a = ipaddress.ip_address(text)
    for host in forms(a):
        for answer in ask("http://%s/" % host), tunnel(host):
            n += 1
            if "REACHED" in answer or answer.split()[1] not in ("400", "403"): print("FAILED", a, host, answer)
    n += 3
    redirected = ask("http://93.184.216.34/to/http://%s/" % ("[%s]" % a if a.version == 6 else a))
    if "REACHED" in redirected or redirected.split()[1] not in ("400", "403"): print("FAILED redirect", a, redirected)
    again = [ask("http://r-%s.test/" % a.packed.hex()) for _ in range(3)]
    if sum("REACHED" in x for x in again) > 2: print("FAILED rebinding", a, again)
    if "REACHED" in direct(text) and a not in ipaddress.ip_network("127.0.0.0/8") and text != "::1": print("FAILED direct", a)
print(n, "tried")
'

no_listener_in_a_denied_range_is_reached() {
	new_box '{"network":{"allow":["open","0.0.0.0/0:*","[::]/0:*"]}}'
	api PUT "/v1/boxes/$box/files?path=matrix.py" "$program" -H 'Content-Type: text/plain'
	is "$code" 201 "$body"
	api PUT "/v1/boxes/$box/files?path=addresses" "$(cat "$work/addresses")" -H 'Content-Type: text/plain'
	api POST "/v1/boxes/$box/execs" '{"command":"python3 matrix.py <addresses"}'
	out=$(get .stdout)
	lacks "$out" FAILED
	has "$out" tried
	# The control: what is public was reached, by name, by address and by a redirect.
	is "$(echo "$out" | grep -c REACHED)" 2 "$out"
	is "$(grep -v '^\(::ffff:\)\?93.184.216.34 \|^ready' "$work/outer.log")" ""
	is "$(grep -v '^ready' "$work/inner.log")" ""
	[ "$(grep -c . "$work/addresses")" -ge 31 ] || fail "$(cat "$work/addresses")"
	api DELETE "/v1/boxes/$box"
}

run_daemon_tests
