#!/bin/sh
# fork_memory.sh - boxes forked with their running programs: variables, output, walls, refusals, kills.
. "$(dirname "$0")/daemon.lib"
slow_tests=checkpoints_with_memory_are_not_limited_by_the_images_that_wait
[ "${ATOLL_TIER:-container}" = container ] || { echo "1..0 # SKIP only boxes without an engine are forked with their programs"; exit 0; }

box() { # [BODY]
	api POST /v1/boxes "${1-"{}"}"
	is "$code" 201 "$body"
	b=$(get .id)
}
# A program that answers each line with a number of its own, from another thread.
program='import sys, threading, queue, os
q, n = queue.Queue(), 0
def work():
    global n
    while True:
        line = q.get()
        n += 1
        print(os.getpid(), n, line, open("/home/user/f").read().strip(), flush=True)
threading.Thread(target=work, daemon=True).start()
print("ready", flush=True)
for line in sys.stdin:
    q.put(line.strip())
'
start() { # BOX: sets x
	api PUT "/v1/boxes/$1/files?path=f" one
	api POST "/v1/boxes/$1/execs" "$(jq -nc --arg p "$program" '{command:["python3","-u","-c",$p], background:true, open_stdin:true}')"
	is "$code" 201 "$body"
	x=$(get .id)
	soon output_has "$1" "$x" ready
}
output() { # BOX EXEC
	curl -sS -m "${3:-0.5}" -H "X-API-Key: $key" "$url/v1/boxes/$1/execs/$2/output?raw=stdout" 2>/dev/null
}
send() { # BOX EXEC LINE
	code=$(printf '%s\n' "$3" | curl -sS -o body -w '%{http_code}' -H "X-API-Key: $key" --data-binary @- "$url/v1/boxes/$1/execs/$2/stdin")
	body=$(cat body)
	is "$code" 200 "$body"
}
running() { # BOX: the id of its exec with the program
	api GET "/v1/boxes/$1/execs?running=1"
	get "[.items[] | select(.command[0] == \"${2:-python3}\")][0].id"
}
fork() { # BOX [BODY]: sets copies
	api POST "/v1/boxes/$1/fork" "${2:-"{\"memory\":true}"}"
	is "$code" 201 "$body"
	is "$(get '[.items[] | select(.error)] | length')" 0 "$body"
	copies=$(get '.items[].box.id')
}

a_program_continues_in_eight_copies_with_its_threads_and_output() {
	box
	start "$b"
	send "$b" "$x" a
	soon output_has "$b" "$x" '[0-9]* 1 a one'
	pid=$(output "$b" "$x" | sed -n 's/ 1 a one//p')
	fork "$b" '{"memory":true,"count":8}'
	echo "# $(get '{frozen_us,took_us,memory}' | tr -d '\n')"
	i=0
	for c in $copies; do
		i=$((i + 1))
		y=$(running "$c")
		is "$(output "$c" "$y")" "ready
$pid 1 a one" # the log of the source
		send "$c" "$y" "copy$i"
		soon output_has "$c" "$y" "$pid 2 copy$i one"
	done
	send "$b" "$x" source
	soon output_has "$b" "$x" "$pid 2 source one"
	is "$(output "$b" "$x" | grep -c copy)" 0
	for c in $copies $b; do api DELETE "/v1/boxes/$c"; done
}

is_prepared() { api GET "/v1/boxes/$1" && [ "$(get .checkpoints.prepared)" = true ]; }
prepared_rows() { api GET "/v1/boxes/$1/checkpoints" && get '[.items[] | select(.reason == "prepared")] | length'; }
a_prepared_image_is_used_until_the_box_changes() {
	box '{"checkpoints":{"prepare":true}}'
	api POST "/v1/boxes/$b/execs" "{\"command\":[\"sleep\",\"86400.$$\"],\"background\":true}"
	start "$b"
	send "$b" "$x" a
	soon output_has "$b" "$x" '[0-9]* 1 a one'
	soon is_prepared "$b"
	for _ in first second; do
		fork "$b" '{"memory":true,"count":2}'
		is "$(get '[.frozen_us, .prepared.why, (.prepared.age_ms >= 0)] | map(tostring) | join(" ")')" "0 null true" "$body"
		echo "# prepared: $(get '{prepared,took_us}' | tr -d '\n ')"
		for c in $copies; do
			y=$(running "$c")
			send "$c" "$y" copy
			soon output_has "$c" "$y" '[0-9]* 2 copy one'
			api DELETE "/v1/boxes/$c"
		done
	done
	# A request has changed the box.
	send "$b" "$x" b
	soon output_has "$b" "$x" '[0-9]* 2 b one'
	fork "$b" '{"memory":true}'
	has "$(get .prepared.why)" 'being prepared'
	send "$copies" "$(running "$copies")" c
	soon output_has "$copies" "$(running "$copies")" '[0-9]* 3 c one'
	api DELETE "/v1/boxes/$copies"
	soon is_prepared "$b"
	is "$(prepared_rows "$b")" 1 "$body"
	# A program has run by itself: a signal that the server knows nothing of.
	pid=$(pgrep -o -f -x "sleep 86400.$$")
	kill -STOP "$pid"
	kill -CONT "$pid"
	fork "$b" '{"memory":true}'
	has "$(get .prepared.why)" 'programs of the box have run'
	api DELETE "/v1/boxes/$copies"
	# Files only: no image is needed.
	fork "$b" '{}'
	is "$(get '[.memory, .prepared] | map(tostring) | join(" ")')" "null null" "$body"
	api DELETE "/v1/boxes/$copies"
	api PATCH "/v1/boxes/$b" '{"checkpoints":{"prepare":false}}'
	not_kept() { [ "$(prepared_rows "$b")" = 0 ]; }
	soon not_kept
	keeper=$(keeper)
	soon no_images
	api DELETE "/v1/boxes/$b"
}
a_program_that_cannot_be_captured_is_not_prepared_and_is_named() {
	box '{"checkpoints":{"prepare":true}}'
	api POST "/v1/boxes/$b/execs" '{"command":["python3","-c","import socket, time\ns = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)\ntime.sleep(1000)"],"background":true}'
	named() { api GET "/v1/boxes/$b/events" && get '.items[] | select(.type == "checkpoint.failed") | .data | .reason + " " + .message' | grep -q 'prepared .*netlink'; }
	soon named
	is_prepared "$b" && fail "$body"
	is "$(prepared_rows "$b")" 0 "$body"
	api DELETE "/v1/boxes/$b"
}


# ---- walls ----

# Of the process with this pid in the box, as the host sees it: prints its host pid.
host_pid() { # BOX-INIT PID
	for p in $(cat /proc/"$1"/task/*/children); do
		[ "$(awk '/^NSpid:/ { print $NF }' "/proc/$p/status")" = "$2" ] && echo "$p" && return
	done
}
# The host pid of a program that init of the box itself has started. Its parent is init.
plain_program() { # BOX
	naps=$((${naps:-0} + 1))
	nap="1000$naps$(echo "$1" | cksum | cut -d " " -f 1)" # no box of another test has it
	api POST "/v1/boxes/$1/execs" "{\"command\":[\"sleep\",\"$nap\"],\"background\":true}"
	is "$code" 201 "$body"
	plain_found() { plain=$(pgrep -fx "sleep $nap"); }
	soon plain_found
	init=$(awk '/^PPid:/ { print $2 }' "/proc/$plain/status")
}
facts() { # HOST-PID: of all threads, one line each
	for t in /proc/"$1"/task/*; do
		awk '/^(Uid|Gid|Groups|CapInh|CapPrm|CapEff|CapBnd|CapAmb|NoNewPrivs|Seccomp|Seccomp_filters):/ { printf "%s ", $0 }' "$t/status"
		echo
	done | tr '\t' ' ' | sort -u
}

every_thread_of_a_copy_is_confined_like_a_program_of_its_own_box() {
	box
	start "$b"
	send "$b" "$x" a
	soon output_has "$b" "$x" '[0-9]* 1 a one'
	pid=$(output "$b" "$x" | sed -n 's/ 1 a one//p')
	fork "$b"
	c=$copies
	plain_program "$b"
	source=$(host_pid "$init" "$pid")
	plain_program "$c"
	own=$plain i=$init
	p=$(host_pid "$i" "$pid")
	is "$(ls /proc/"$p"/task | wc -l)" 2
	is "$(facts "$p")" "$(facts "$own")"
	case $(facts "$p") in *"CapEff: 0000000000000000"*"NoNewPrivs: 1"*"Seccomp: 2"*) ;; *) is "$(facts "$p")" confined ;; esac
	for t in /proc/"$p"/task/*; do
		is "$(cat "$t/cgroup")" "$(cat "/proc/$own/cgroup")"
		for n in user mnt pid net ipc uts cgroup; do is "$(readlink "$t/ns/$n")" "$(readlink "/proc/$own/ns/$n")"; done
	done
	is "$(awk '/^PPid:/ { print $2 }' "/proc/$p/status")" "$i"
	is "$(readlink "/proc/$p/exe")" "$(readlink "/proc/$source/exe")"
	for n in $c $b; do api DELETE "/v1/boxes/$n"; done
}

# ---- trees ----

# Bash with a pipeline, a child that has ended, and Python with four children that share memory and a socket.
tree='import os, socket, mmap, sys
m, s = mmap.mmap(-1, 4096), socket.socketpair()
for i in range(4):
    if os.fork() == 0:
        while True:
            s[1].recv(1); m[0] += 1; s[1].send(bytes([m[0]]))
if os.fork() == 0: os._exit(7)
for n, line in enumerate(sys.stdin):
    s[0].send(b"x"); print(os.getpid(), s[0].recv(1)[0], flush=True)
    if n == 1: print(sorted({os.waitstatus_to_exitcode(os.wait()[1])}), flush=True)
'
a_tree_of_processes_continues_with_its_pids_and_each_thread_is_confined() {
	box
	api POST "/v1/boxes/$b/execs" "$(jq -nc --arg p "$tree" '{command:["bash","-c","set -m; sleep 1000 | cat & python3 -uc \"$0\"",$p], background:true, open_stdin:true}')"
	is "$code" 201 "$body"
	x=$(get .id)
	send "$b" "$x" a
	soon output_has "$b" "$x" '[0-9]* 1'
	pid=$(output "$b" "$x" | sed -n 's/ 1$//p')
	plain_program "$b"
	here=$init
	shape() { # INIT: of all processes but the nap and those of init, as their own namespace has them
		for p in $(pgrep --ns "$1" --nslist pid -f . | sort -n); do
			[ "$p" = "$1" ] || awk '/^(Name|State|NSpid|NSpgid|NSsid|PPid|Threads):/ { if ($1 == "PPid:") next; printf "%s %s ", $1, $NF } END { print "" }' "/proc/$p/status"
		done | sed 's/State: [^ ]* //' | grep -v '^Name: \(sleep.*NSpid: \([0-9]*\) NSpgid: \2 \|atoll-init\)' | sort
	}
	fork "$b" '{"memory":true,"count":2}'
	for c in $copies; do
		plain_program "$c"
		is "$(shape "$init")" "$(shape "$here")"
		own=$plain
		for p in $(pgrep --ns "$init" --nslist pid -f . | sort -n); do
			[ "$p" != "$init" ] && [ -e "/proc/$p/exe" ] || continue
			[ "$(cat "/proc/$p/comm")" != atoll-init ] || continue
			is "$(facts "$p")" "$(facts "$own")"
			is "$(cat "/proc/$p/cgroup")" "$(cat "/proc/$own/cgroup")"
			for n in user mnt pid net ipc uts cgroup; do is "$(readlink "/proc/$p/ns/$n")" "$(readlink "/proc/$own/ns/$n")"; done
		done
		y=$(running "$c" bash)
		send "$c" "$y" b
		soon output_has "$c" "$y" "$pid 2"
		soon output_has "$c" "$y" '\[7\]'
	done
	send "$b" "$x" b
	soon output_has "$b" "$x" "$pid 2"
	soon output_has "$b" "$x" '\[7\]'
	for c in $copies $b; do api DELETE "/v1/boxes/$c"; done
}

# ---- kernel objects ----

# Timers and watches whose numbers have gaps, a terminal of its own, a child that is stopped.
objects='import ctypes, os, pty, signal, struct, subprocess, sys, time
libc, n = ctypes.CDLL(None), 0
def tick(*a):
    global n
    n += 1
signal.signal(signal.SIGUSR1, tick)
timers = []
for i in range(4):
    t = ctypes.c_void_p()
    assert libc.timer_create(1, struct.pack("Qii48x", 0, signal.SIGUSR1, 0), ctypes.byref(t)) == 0
    timers.append(t)
libc.timer_delete(timers[1])
libc.timer_settime(timers[2], 0, struct.pack("4q", 0, 5000000, 0, 5000000), None)
f, w = libc.inotify_init(), []
for name in ("/tmp", "/home/user", "/"): w.append(libc.inotify_add_watch(f, name.encode(), 0x100))
libc.inotify_rm_watch(f, w[0])
os.set_blocking(f, False)
os.read(f, 99)
m, s = pty.openpty()
p = subprocess.Popen(["sleep", "1000"])
p.send_signal(signal.SIGSTOP)
os.waitpid(p.pid, os.WUNTRACED)
print("ready", flush=True)
for line in sys.stdin:
    n, i = 0, 0
    while n < 2 and i < 1000: time.sleep(0.01); i += 1
    open("/home/user/new" + line.strip(), "w").close()
    os.write(m, b"word\n")
    print(os.getpid(), n > 1, struct.unpack("iIII", os.read(f, 999)[:16])[:2], os.read(s, 99).strip(), os.ttyname(s),
          open(f"/proc/{p.pid}/stat").read().split()[2], flush=True)
'
timers_watches_terminals_and_stopped_children_continue() {
	box
	api POST "/v1/boxes/$b/execs" "$(jq -nc --arg p "$objects" '{command:["python3","-uc",$p], background:true, open_stdin:true}')"
	is "$code" 201 "$body"
	x=$(get .id)
	soon output_has "$b" "$x" ready
	fork "$b" '{"memory":true,"count":2}'
	for c in $copies $b; do
		y=$(running "$c")
		send "$c" "$y" a
		soon output_has "$c" "$y" "[0-9]* True (2, 256) b'word' /dev/pts/0 T" || echo "# $(output "$c" "$y")"
		api DELETE "/v1/boxes/$c"
	done
}

a_shell_continues_in_its_terminal_with_its_jobs() {
	box
	api POST "/v1/boxes/$b/execs" '{"command":["bash","--norc"],"background":true,"pty":{"rows":31,"cols":97},"open_stdin":true}'
	is "$code" 201 "$body"
	x=$(get .id)
	shows() { output "$1" "$2" | tr -d '\r' | grep -q -- "^$3\$"; }
	send "$b" "$x" 'n=1; sh -c "echo begun; exec sleep 1001"; echo "ended with $?"'
	soon shows "$b" "$x" begun
	send "$b" "$x" "$(printf '\032')"
	soon shows "$b" "$x" '.*Stopped .*sleep 1001.*'
	fork "$b" '{"memory":true,"count":2}'
	for c in $copies $b; do
		y=$(running "$c" bash)
		send "$c" "$y" 'echo "n is $((n + 1)) in $(tty) of $(stty size), $(jobs -s | wc -l) stopped"'
		soon shows "$c" "$y" 'n is 2 in /dev/pts/0 of 31 97, 1 stopped' || echo "# $(output "$c" "$y")"
		send "$c" "$y" fg
		soon shows "$c" "$y" 'sh -c .*sleep 1001.*'
		send "$c" "$y" "$(printf '\003')"
		ended() { shows "$c" "$y" 'ended with 130' || { send "$c" "$y" "$(printf '\003')" && false; }; }
		send "$c" "$y" 'echo "ended with $?"'
		soon ended
		api DELETE "/v1/boxes/$c"
	done
}

# ---- contexts ----

a_context_continues_with_its_variables_and_cell_numbers() {
	box
	api POST "/v1/boxes/$b/contexts" '{"language":"python"}'
	is "$code" 201 "$body"
	k=$(get .id)
	cell() { # BOX CONTEXT CODE
		api POST "/v1/boxes/$1/contexts/$2/cells" "$(jq -nc --arg c "$3" '{code:$c}')"
		is "$code" 200 "$body"
	}
	cell "$b" "$k" 'import threading; v = {"a": [1, 2]}; print(len(v))'
	fork "$b" '{"memory":true,"count":2}'
	for c in $copies; do
		api GET "/v1/boxes/$c/contexts"
		is "$(get '.items | length')" 1 "$body"
		y=$(get '.items[0].id')
		cell "$c" "$y" 'v["a"].append(3); print(v)'
		is "$(get '.stdout + (.cell|tostring)')" "{'a': [1, 2, 3]}
2" "$body"
	done
	cell "$b" "$k" 'print(v)'
	is "$(get .stdout)" "{'a': [1, 2]}"
	for c in $copies $b; do api DELETE "/v1/boxes/$c"; done
}

# ---- checkpoints ----

a_checkpoint_with_memory_starts_several_boxes_later() {
	box
	start "$b"
	send "$b" "$x" first
	soon output_has "$b" "$x" '[0-9]* 1 first one'
	api POST "/v1/boxes/$b/checkpoints" '{"name":"m","memory":true}'
	is "$code" 201 "$body"
	is "$(get '.memory.processes[0].threads')" 2 "$body"
	k=$(get .id)
	api PUT "/v1/boxes/$b/files?path=f" two
	send "$b" "$x" second
	soon output_has "$b" "$x" '[0-9]* 2 second two'
	fork "$b" '{"memory":true,"from":"m","count":2}'
	for c in $copies; do
		y=$(running "$c")
		send "$c" "$y" copy
		soon output_has "$c" "$y" '[0-9]* 2 copy one' # files and memory of the same moment
	done
	api DELETE "/v1/checkpoints/$k"
	api POST "/v1/boxes/$b/fork" "{\"memory\":true,\"from\":\"$k\"}"
	is "$code" 404 "$body"
	for c in $copies; do send "$c" "$(running "$c")" after; done # copies outlive the image
	for c in $copies $b; do api DELETE "/v1/boxes/$c"; done
}

# The keeper has zygotes of 64 images: the next image ends the oldest ones, which are in files.
checkpoints_with_memory_are_not_limited_by_the_images_that_wait() {
	box
	old=$b
	start "$old"
	send "$old" "$x" first
	soon output_has "$old" "$x" '[0-9]* 1 first one'
	api POST "/v1/boxes/$old/checkpoints" '{"name":"oldest","memory":true}'
	is "$code" 201 "$body"
	taken=$(get .id)
	box
	for _ in $(seq 1 65); do
		api POST "/v1/boxes/$b/checkpoints" '{"memory":true}'
		is "$code" 201 "$body"
		taken="$taken $(get .id)"
		api DELETE "/v1/boxes/$b"
		box
	done
	fork "$old" '{"memory":true,"from":"oldest"}'
	y=$(running "$copies")
	send "$copies" "$y" copy
	soon output_has "$copies" "$y" '[0-9]* 2 copy one'
	for c in $copies $old $b; do api DELETE "/v1/boxes/$c"; done
	for c in $taken; do api DELETE "/v1/checkpoints/$c"; done # with their zygotes
}

# ---- refusals ----

# The last state of the process that captures, read again and again until the request has its answer.
cat >"$work/watch_capture.py" <<'END'
import os, subprocess, sys
request, last, space = subprocess.Popen(sys.argv[1:]), None, None
while request.poll() is None:
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            status = open(f"/proc/{pid}/status").read()
            if status.startswith("Name:\tatoll-capture\n"):
                space = os.readlink(f"/proc/{pid}/ns/user")
                last = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
        except OSError:
            pass
if not last:
    sys.exit("no capture was seen")
print(*(last[k] for k in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp")),
      *set(last["Uid"].split() + last["Gid"].split()) & {"0"}, "same" if space == os.readlink("/proc/self/ns/user") else "own")
END
the_capture_has_three_capabilities_in_the_box_none_on_the_host_and_a_filter() {
	api POST /v1/boxes '{"limits":{"mem":1073741824}}'
	b=$(get .id)
	# Long enough for its capture to be seen.
	api POST "/v1/boxes/$b/execs" '{"command":["python3","-u","-c","x = [bytes(100) for i in range(1000000)]; print(\"ready\"); input()"], "background":true, "open_stdin":true}'
	x=$(get .id)
	soon output_has "$b" "$x" ready
	is "$(/usr/bin/python3 "$work/watch_capture.py" curl -sS -o answer -H "X-API-Key: $key" -d '{"memory":true}' "$url/v1/boxes/$b/fork")" \
		"0000000000000000 0000010000080002 0000010000080002 0000010000080002 0000000000000000 1 2 own" "$(cat answer)"
	is "$(jq '[.items[].error] | length' answer) $(jq .memory.processes answer | jq length)" "1 1" "$(cat answer)"
	for c in $(jq -r '.items[].box.id' answer) $b; do api DELETE "/v1/boxes/$c"; done
}

what_cannot_be_captured_is_named_and_not_harmed() {
	box
	refused() { # TEXT COMMAND: as JSON
		text=$1
		api POST "/v1/boxes/$b/execs" "{\"command\":$2,\"background\":true}"
		is "$code" 201 "$body"
		x=$(get .id)
		soon output_has "$b" "$x" ready
		api POST "/v1/boxes/$b/fork" '{"memory":true}'
		is "$code $(get .error.code)" "409 not_capturable" "$body"
		case $body in *"$text"*) ;; *) is "$body" "*$text*" ;; esac
		api GET "/v1/boxes/$b/execs/$x"
		is "$(get .state)" running "$body"
		api DELETE "/v1/boxes/$b/execs/$x"
	}
	refused 'raw, packet and netlink' '["python3","-uc","import socket,time; s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW); print(\"ready\"); time.sleep(1000)"]'
	refused 'deleted or replaced' '["sh","-c","cp /bin/sleep .; (sleep 1; rm sleep; echo ready) & exec ./sleep 1000"]'
	api POST "/v1/boxes/$b/fork" '{"memory":true,"on_unsupported":"drop"}'
	is "$code" 400 "$body"
	fork "$b" '{"memory":true}' # nothing runs
	is "$(get '.memory.processes | length')" 0 "$body"
	for c in $copies $b; do api DELETE "/v1/boxes/$c"; done
}


# ---- kill -9 ----

keeper() { "$ATOLL" doctor --json | grep -o 'pid [0-9]*' | head -n 1 | cut -d ' ' -f 2; }
images() { for p in $(pgrep -P "$(pgrep -P "$keeper" -x atoll-images)"); do echo "$p"; pgrep -P "$p" || :; done; }
no_images() { [ -z "$(images)" ]; }
# The source answers, and nothing of a fork is left but whole boxes.
# The program and the nap; and processes of init itself that serve requests for files.
only_two() {
	[ "$(for p in $(cat /proc/"$init"/task/*/children); do cat "/proc/$p/comm"; done | grep -vc '^atoll-init$')" = 2 ]
}
unharmed() {
	turns=$((${turns:-0} + 1))
	send "$b" "$x" "turn$turns"
	soon output_has "$b" "$x" "$pid $turns turn$turns one"
	soon only_two
	is "$(awk '/^TracerPid:/ { print $2 }' "/proc/$source/status")" 0
}

killed_workers_captures_and_zygotes_harm_no_program_and_leave_no_process() {
	box
	start "$b"
	turns=0
	send "$b" "$x" "turn1"
	turns=1
	soon output_has "$b" "$x" '[0-9]* 1 turn1 one'
	pid=$(output "$b" "$x" | sed -n 's/ 1 turn1 one//p')
	plain_program "$b"
	source=$(host_pid "$init" "$pid")
	keeper=$(keeper)
	for moment in 1 2 3 4; do
		curl -sS -o answer -H "X-API-Key: $key" -d '{"memory":true,"count":2}' "$url/v1/boxes/$b/fork" &
		asked=$!
		one_exists() { [ "$(images)" ] || ! kill -0 $asked 2>/dev/null; }
		soon one_exists
		# The worker, or what it has started by then: a capture or a zygote.
		images >pids
		kill -9 $(if [ $((moment % 2)) = 0 ]; then head -n 1 pids; else tail -n 1 pids; fi) 2>/dev/null || :
		wait $asked
		for c in $(jq -r '.items[]?.box.id? // empty' answer); do
			send "$c" "$(running "$c")" whole # what was created is complete
			soon output_has "$c" "$(running "$c")" "$pid $((turns + 1)) whole one"
			api DELETE "/v1/boxes/$c"
		done
		soon no_images
		unharmed
	done
	api GET /v1/boxes
	is "$(get '.items | length')" 1 "$body"
	api POST "/v1/boxes/$b/checkpoints" '{"memory":true}'
	is "$code" 201 "$body"
	k=$(get .id)
	images >pids
	is "$(wc -l <pids)" 3 # a worker and two zygotes
	kill -9 "$keeper"
	ended() { for p in $(cat pids); do [ ! -d "/proc/$p" ] || return 1; done; }
	soon ended
	unharmed
	api POST "/v1/boxes/$b/fork" "{\"memory\":true,\"from\":\"$k\"}"
	is "$code $(get '[.items[] | select(.error)] | length')" "201 0" "$body" # the zygotes have ended with their keeper, not the file
	api DELETE "/v1/boxes/$(get '.items[0].box.id')"
	fork "$b"
	api DELETE "/v1/boxes/$copies"
	kill -9 "$(server_pid)"
	source_answers() { api GET "/v1/boxes/$b" && [ "$code" = 200 ]; }
	soon source_answers
	unharmed
	api DELETE "/v1/boxes/$b"
}

run_daemon_tests
