#!/bin/sh
# egress_kill.sh - 200 transfers of boxes while each process of the daemon is killed.
. "$(dirname "$0")/daemon.lib"
. "$libs/registry.lib"

export ATOLL_EGRESS_INTERNAL="registry.test:$http"

# transfers FILE: in the box of the test, 50 transfers at once: half of them through the proxy, half of them by
# programs that know of none. Prints how many are open; when the file exists, how many continue; then how each ended.
transfers() {
	cat <<-'X' | sed "s/HTTP_PORT/$http/g" | jq -Rs --arg go "$1" '{command: ["python3", "-c", ., $go], background: true}'
	import os, select, socket, sys, time
	def begin(n):
	    s = socket.create_connection(("127.0.0.1", 3128) if n % 2 else ("registry.test", HTTP_PORT))
	    s.sendall(b"GET %s/big/99999999 HTTP/1.1\r\nHost: registry.test:HTTP_PORT\r\n\r\n" % (b"http://registry.test:HTTP_PORT" if n % 2 else b""))
	    assert s.recv(8192).startswith(b"HTTP/1.1 200")
	    return s
	def end(s):
	    p = select.poll()
	    p.register(s, select.POLLRDHUP)
	    p.poll() # without reading: a whole file could arrive
	    try:
	        while s.recv(65536): pass
	        return "regular end"
	    except ConnectionResetError:
	        return "reset"
	def says(text):
	    with open("said", "a") as f: f.write(text + "\n")
	all = [begin(n) for n in range(50)]
	says("%d open" % len(all))
	while not os.path.exists(sys.argv[1]): time.sleep(0.05)
	says("%d continue" % sum(len(s.recv(500000, socket.MSG_WAITALL)) == 500000 for s in all))
	ends = [end(s) for s in all]
	for kind in sorted(set(ends)): says("%d %s" % (ends.count(kind), kind))
	X
}
said() { says "cat said 2>/dev/null" && has_line "$out" "$1"; }
has_line() { case "
$1
" in *"
$2
"*) ;; *) return 1 ;; esac; }

two_hundred_transfers_survive_all_but_the_end_of_egress() {
	boxes=
	for _ in 1 2 3 4; do
		new_box "{\"network\":{\"allow\":[\"registry.test:$http\"]}}"
		soon way_open
		boxes="$boxes $box"
		api POST "/v1/boxes/$box/execs" "$(transfers go)"
		is "$code" 201 "$body"
	done
	for box in $boxes; do soon said "50 open"; done
	keeper=$("$ATOLL" doctor --json | grep -o 'pid [0-9]*' | head -1 | cut -d ' ' -f 2)
	server=$(server_pid)
	kill -9 "$keeper" "$server"
	soon sh -c "new=\$(pgrep -P $supervisor -x atoll-server) && [ \"\$new\" != $server ]"
	for box in $boxes; do
		soon way_open
		says "touch go"
	done
	for box in $boxes; do soon said "50 continue"; done
	old=$(egress)
	kill -9 "$old"
	soon sh -c "new=\$(pgrep -P $supervisor -x atoll-egress) && [ \"\$new\" != $old ]"
	for box in $boxes; do
		soon said "50 reset"
		soon network_is '[.open, .allow[0], .bytes_in > 25000000] | @csv' "true,\"registry.test:$http\",true" # rules and budget are the same
		soon reaches_again
		api DELETE "/v1/boxes/$box"
	done
}

run_daemon_tests
exec 8>&-
