#!/bin/sh
# pause_boot.sh - boxes that are paused to the disk, and checkpoints with memory, after another boot of the machine: other ids of
# the boot, clocks that have begun again, no keeper, no mounts, an empty run folder. The first daemon runs in a time namespace
# whose clocks are 11 days ahead; the next one outside of it, with another boot id.
. "$(dirname "$0")/daemon.lib"
slow_tests="a_server_a_session_with_data_and_a_download_continue_after_another_boot
a_portable_image_continues_with_another_libc_and_another_one_is_refused_with_the_file_named
programs_continue_with_the_code_of_another_kernel"
[ "${ATOLL_TIER:-container}" = container ] || { echo "1..0 # SKIP only boxes without an engine are captured with their programs"; exit 0; }
[ -e /proc/self/timens_offsets ] || { echo "1..0 # SKIP this kernel has no time namespaces"; exit 0; }
[ "$(id -u)" = 0 ] || { echo "1..0 # SKIP not root"; exit 0; }

real=$ATOLL ahead=1000000 libc=$(readlink -f "$(ldd /bin/sh | sed -n 's/.*=> *\(.*libc\.so[^ ]*\).*/\1/p')")
# machine N: what the daemon runs in from now on; 1: the clocks are ahead; 3: with another libc.
machine() {
	printf '%08d-0000-4000-8000-000000000000\n' "$1" >"$work/boot$1"
	[ "$1" = 1 ] && enter="nsenter -T -t $clock" || enter=
	cat >"$work/inside$1" <<-END
		#!/bin/sh
		mount --bind $work/boot$1 /proc/sys/kernel/random/boot_id || exit
		[ $1 != 3 ] || mount --bind $work/libc $libc || exit
		exec $real "\$@"
	END
	cat >"$work/atoll$1" <<-END
		#!/bin/sh
		[ "\$1" = serve ] || exec $real "\$@"
		exec $enter unshare --mount --propagation private $work/inside$1 "\$@"
	END
	chmod a+rx "$work/inside$1" "$work/atoll$1"
	ATOLL=$work/atoll$1
}
unshare --time --monotonic $ahead --boottime $ahead --fork sh -c 'echo $$ >"$0"; exec sleep 1000000' "$work/clock" &
holder=$!
clock_exists() { [ -s "$work/clock" ]; }
soon clock_exists
clock=$(cat "$work/clock")
end_clock() { kill "$clock" "$holder" 2>/dev/null; finish_daemon; }
trap end_clock EXIT
machine 1

# The power fails: nothing of the daemon, its keeper and the boxes is left but the state folder.
reboot_to() { # MACHINE
	old=$("$ATOLL" doctor --json | grep -o 'pid [0-9]*' | head -n 1 | cut -d ' ' -f 2)
	server=$(server_pid)
	kill -9 "$supervisor" "$server" "$old"
	"$ATOLL" kill --local --all >/dev/null 2>&1 || :
	gone() { [ ! -d "/proc/$old" ] && [ ! -d "/proc/$server" ]; }
	soon gone
	rm -rf "$work/run"
	machine "$1"
	start_daemon
	echo "$url" >"$work/url"
}
# Each test is a subshell: the daemon that the one before it has left.
present() {
	machine 1
	[ ! -e "$work/url" ] || read -r url <"$work/url"
	supervisor=$(cat "$work/supervisor")
}
box() { # [BODY]
	api POST /v1/boxes "${1-"{}"}"
	is "$code" 201 "$body"
	b=$(get .id)
}
send() { # BOX EXEC LINE
	code=$(printf '%s\n' "$3" | curl -sS -o body -w '%{http_code}' -H "X-API-Key: $key" --data-binary @- "$url/v1/boxes/$1/execs/$2/stdin")
	body=$(cat body)
	is "$code" 200 "$body"
}
begin() { # BOX PROGRAM, of Python: sets x
	api POST "/v1/boxes/$1/execs" "$(jq -nc --arg p "$2" '{command:["python3","-u","-c",$p], background:true, open_stdin:true}')"
	is "$code" 201 "$body"
	x=$(get .id)
}
# What a program prints next: sets line.
ask() { # BOX EXEC LINE
	send "$1" "$2" "$3"
	soon output_has "$1" "$2" "$3 .*"
	line=$(sed -n "s/^$3 //p" has | tail -n 1)
}
says() { # BOX COMMAND
	api POST "/v1/boxes/$1/execs" "$(jq -nc --arg c "$2" '{command:$c}')"
	get .stdout
}

# Waits in a thread for moments of the monotonic clock; answers with its pid, clocks and what it has counted.
program='import os, sys, threading, time
count = 0
def work():
    global count
    while True:
        threading.Event().wait(0.1)
        count += 1
threading.Thread(target=work, daemon=True).start()
timer = time.clock_gettime(time.CLOCK_BOOTTIME)
for line in sys.stdin:
    boot = open("/proc/sys/kernel/random/boot_id").read().strip()
    print(line.strip(), os.getpid(), int(time.monotonic()), int(time.clock_gettime(time.CLOCK_BOOTTIME)), int(time.clock_gettime(time.CLOCK_MONOTONIC_RAW)), count, boot, *(int(name in open("/proc/self/maps").read()) for name in ("memfd:libc", "memfd:vdso")), flush=True)
'
# The clocks have not gone back, and have gone on for as long as the test has taken at most.
clocks_continue() { # LINE LINE
	for i in 2 3 4; do
		was=$(echo "$1" | cut -d ' ' -f $i) now=$(echo "$2" | cut -d ' ' -f $i)
		[ "$now" -ge "$was" ] && [ "$now" -le $((was + 600)) ] || fail "a clock was $was and is $now: $1, $2"
	done
	is "$(echo "$1" | cut -d ' ' -f 1,6)" "$(echo "$2" | cut -d ' ' -f 1,6)" # pid and boot id
}
counts_on() { # BOX EXEC: the thread is not waiting for a moment that is 11 days away
	ask "$1" "$2" "t$(date +%s%N)"
	from=$(echo "$line" | cut -d ' ' -f 5)
	counted() {
		ask "$1" "$2" "t$(date +%s%N)"
		[ "$(echo "$line" | cut -d ' ' -f 5)" -gt $((from + 3)) ]
	}
	soon counted "$1" "$2"
}

a_paused_box_and_a_checkpoint_continue_after_another_boot_with_clocks_that_do_not_go_back() {
	present
	box
	begin "$b" "$program"
	ask "$b" "$x" one
	before=$line
	[ "$(echo "$before" | cut -d ' ' -f 2)" -gt $ahead ] || fail "the first daemon is not ahead: $before"
	api POST "/v1/boxes/$b/checkpoints" '{"name":"m","memory":true,"wait":"durable"}'
	is "$code" 201 "$body"
	api POST "/v1/boxes/$b/pause" '{"to":"disk"}'
	is "$code $(get .paused_to)" "200 disk" "$body"
	reboot_to 2
	api POST "/v1/boxes/$b/resume"
	is "$code $(get .state)" "200 running" "$body"
	ask "$b" "$x" two
	after=$line
	clocks_continue "$before" "$after"
	counts_on "$b" "$x"
	# A copy of it, and one that was on the disk again, have the same clocks.
	api POST "/v1/boxes/$b/fork" '{"memory":true,"count":2}'
	is "$code $(get '[.items[] | select(.error)] | length')" "201 0" "$body"
	for c in $(get '.items[].box.id'); do
		api GET "/v1/boxes/$c/execs?running=1"
		y=$(get '.items[0].id')
		ask "$c" "$y" copy
		clocks_continue "$after" "$line"
		counts_on "$c" "$y"
		api DELETE "/v1/boxes/$c"
	done
	api POST "/v1/boxes/$b/pause" '{"to":"disk"}'
	is "$code" 200 "$body"
	api POST "/v1/boxes/$b/resume"
	is "$code" 200 "$body"
	ask "$b" "$x" three
	clocks_continue "$after" "$line"
	api POST "/v1/boxes/$b/rollback" '{"to":"m","memory":true}'
	is "$code" 200 "$body"
	api GET "/v1/boxes/$b/execs?running=1"
	y=$(get '.items[0].id')
	ask "$b" "$y" back
	clocks_continue "$before" "$line"
	counts_on "$b" "$y"
	# Programs that are started now have the clock of the machine.
	[ "$(says "$b" 'cut -d . -f 1 /proc/uptime')" -lt $ahead ] || fail "a new program: $body"
	api DELETE "/v1/boxes/$b"
	is "$code" 204 "$body"
	reboot_to 1
}

# The same text but for one word of its version: programs that are started later have it.
other_libc() {
	sed 's/GNU C Library/GNU C libRARY/' "$libc" >"$work/libc"
	chmod 755 "$work/libc"
	! cmp -s "$work/libc" "$libc" || skip "the libc of this host has no such text"
}
a_portable_image_continues_with_another_libc_and_another_one_is_refused_with_the_file_named() {
	other_libc
	present
	box
	portable=$b
	begin "$b" "$program"
	px=$x
	ask "$b" "$x" one
	before=$line
	api POST "/v1/boxes/$b/checkpoints" '{"name":"m","memory":true,"portable":true,"wait":"durable"}'
	is "$code" 201 "$body"
	api POST "/v1/boxes/$b/pause" '{"to":"disk","portable":true}'
	is "$code" 200 "$body"
	box
	begin "$b" "$program"
	ask "$b" "$x" one
	api POST "/v1/boxes/$b/pause" '{"to":"disk"}'
	is "$code" 200 "$body"
	reboot_to 3
	api POST "/v1/boxes/$b/resume"
	is "$code" 409 "$body"
	has "$body" "the mapped file $libc has changed"
	api GET "/v1/boxes/$b"
	is "$(get .state)" paused
	api POST "/v1/boxes/$portable/resume"
	is "$code $(get .state)" "200 running" "$body"
	ask "$portable" "$px" two
	clocks_continue "$before" "$line"
	counts_on "$portable" "$px"
	is "$(echo "$line" | cut -d ' ' -f 7)" 1 "$line" # it has the libc of the image
	# It can be captured again: what it has mapped is in the image.
	api POST "/v1/boxes/$portable/fork" '{"memory":true}'
	is "$code $(get '[.items[] | select(.error)] | length')" "201 0" "$body"
	c=$(get '.items[0].box.id')
	api GET "/v1/boxes/$c/execs?running=1"
	y=$(get '.items[0].id')
	ask "$c" "$y" copy
	counts_on "$c" "$y"
	api DELETE "/v1/boxes/$c"
	api POST "/v1/boxes/$portable/pause" '{"to":"disk"}'
	is "$code" 200 "$body"
	reboot_to 1 # with the libc of the beginning
	for each in "$portable $px" "$b $x"; do
		api POST "/v1/boxes/${each% *}/resume"
		is "$code $(get .state)" "200 running" "$body"
		ask "${each% *}" "${each#* }" three
		counts_on "${each% *}" "${each#* }"
		api DELETE "/v1/boxes/${each% *}"
	done
}

# In a test build, as if it had been written with another kernel.
programs_continue_with_the_code_of_another_kernel() {
	/usr/bin/python3 -c 'import json, sys; sys.exit(not any(o["name"] == "test_hooks" and o["value"] for o in json.load(open(sys.argv[1]))))' "${real%/*}/meson-info/intro-buildoptions.json" 2>/dev/null ||
		skip "no build with test hooks"
	present
	box
	begin "$b" "$program"
	ask "$b" "$x" one
	before=$line
	api POST "/v1/boxes/$b/pause" '{"to":"disk"}'
	is "$code" 200 "$body"
	reboot_to 2
	echo 1 >"$ATOLL_RUN/image-kernel"
	api POST "/v1/boxes/$b/resume"
	is "$code $(get .state)" "200 running" "$body"
	ask "$b" "$x" two
	clocks_continue "$before" "$line"
	is "$(echo "$line" | cut -d ' ' -f 8)" 1 "$line"
	counts_on "$b" "$x"
	rm "$ATOLL_RUN/image-kernel"
	api POST "/v1/boxes/$b/fork" '{"memory":true}'
	is "$code $(get '[.items[] | select(.error)] | length')" "201 0" "$body"
	api DELETE "/v1/boxes/$(get '.items[0].box.id')"
	api DELETE "/v1/boxes/$b"
	reboot_to 1
}

server_program='import http.server, os
data = bytes(range(256)) * 40000
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        rest = b"%d" % os.getpid() if self.path == "/pid" else data[int(self.path[1:]):]
        self.send_response(200)
        self.send_header("Content-Length", str(len(rest)))
        self.end_headers()
        self.wfile.write(rest)
    def log_message(self, *a): pass
http.server.ThreadingHTTPServer(("127.0.0.1", 8000), Handler).serve_forever()
'
# Reads a part for each line. A connection that was reset begins again where it was, as curl -C - does.
download_program='import hashlib, http.client, os, sys
at, answer, again, total, h = 0, None, 0, 10240000, hashlib.sha256()
for line in sys.stdin:
    want = total if line.strip() == "rest" else at + 1000000
    while at < want:
        try:
            if not answer:
                c = http.client.HTTPConnection("127.0.0.1", 8000, timeout=60)
                c.request("GET", "/%d" % at)
                answer = c.getresponse()
            piece = answer.read(min(65536, want - at))
            if not piece: raise ConnectionError
        except (OSError, http.client.HTTPException):
            answer, again = None, again + 1
            continue
        h.update(piece)
        at += len(piece)
    print(line.strip(), os.getpid(), at, again, h.hexdigest()[:16], flush=True)
'
cell() { # CODE: prints its output
	api POST "/v1/boxes/$b/contexts/$ctx/cells" "$(jq -nc --arg c "$1" '{code:$c}')"
	is "$code" 200 "$body" >&2
	get .stdout
}
a_server_a_session_with_data_and_a_download_continue_after_another_boot() {
	present
	api POST /sandboxes '{"templateID":"base","timeout":3000,"metadata":{"atoll.pause":"disk"}}'
	is "$code" 201 "$body"
	b=$(get .sandboxID)
	begin "$b" "$server_program"
	api POST "/v1/boxes/$b/contexts" '{"language":"python"}'
	is "$code" 201 "$body"
	ctx=$(get .id)
	cell 'import os
try:
    import pandas
    data = pandas.DataFrame({"x": range(2000000)})
    total = lambda: int(data.x.sum())
except ImportError:
    data = list(range(2000000))
    total = lambda: sum(data)
print(os.getpid(), total())' >first
	is "$(cut -d ' ' -f 2 first)" 1999999000000 "$(cat first)"
	begin "$b" "$download_program"
	ask "$b" "$x" part
	has "$line" " 1000000 0 "
	download=${line%% *}
	serves() { says "$b" "python3 -c 'import urllib.request as u; print(u.urlopen(\"http://127.0.0.1:8000/pid\").read().decode())'"; }
	before=$(serves)
	[ "$before" -gt 1 ] || fail "the server: $before"
	api POST "/sandboxes/$b/pause" '{}'
	is "$code" 204 "$body"
	reboot_to 2
	api POST "/sandboxes/$b/connect" '{"timeout":3000}'
	is "$code" 201 "$body"
	is "$(serves)" "$before" "$(cat body)"
	is "$(cell 'print(os.getpid(), total())')" "$(cat first)"
	ask "$b" "$x" rest
	whole=$(python3 -c 'import hashlib; print(hashlib.sha256(bytes(range(256)) * 40000).hexdigest()[:16])')
	is "$line" "$download 10240000 1 $whole"
	api DELETE "/sandboxes/$b"
	is "$code" 204 "$body"
	reboot_to 1
}

run_daemon_tests
