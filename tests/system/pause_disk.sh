#!/bin/sh
# pause_disk.sh - process images in files: checkpoints with memory after a restart of server and keeper, and boxes that are
# paused to the disk.
. "$(dirname "$0")/daemon.lib"
slow_tests="boxes_of_a_daemon_that_stops_continue_in_the_next_one_if_it_hibernates"
[ "${ATOLL_TIER:-container}" = container ] || { echo "1..0 # SKIP only boxes without an engine are captured with their programs"; exit 0; }

box() { # [BODY]
	api POST /v1/boxes "${1-"{}"}"
	is "$code" 201 "$body"
	b=$(get .id)
}
# A program that answers each line with a number of its own, from another thread, and reads a file that it has open.
program='import sys, threading, queue, os
q, n, f = queue.Queue(), 0, open("/home/user/f")
os.chdir("/tmp")
print(f.read(2), flush=True)
def work():
    global n
    while True:
        line = q.get()
        n += 1
        print(os.getpid(), threading.get_native_id(), n, line, f.read(1), os.getcwd(), flush=True)
threading.Thread(target=work, daemon=True).start()
print("ready", flush=True)
for line in sys.stdin:
    q.put(line.strip())
'
start() { # BOX: sets x, pid and tid
	api PUT "/v1/boxes/$1/files?path=f" abcdefghijklmnopqrstuvwxyz
	api POST "/v1/boxes/$1/execs" "$(jq -nc --arg p "$program" '{command:["python3","-u","-c",$p], background:true, open_stdin:true}')"
	is "$code" 201 "$body"
	x=$(get .id)
	send "$1" "$x" one
	soon output_has "$1" "$x" '[0-9]* [0-9]* 1 one c /tmp'
	pid=$(output "$1" "$x" | sed -n 's/ .* 1 one c .*//p')
	tid=$(output "$1" "$x" | sed -n 's/ 1 one c .*//p' | cut -d ' ' -f 2)
}
output() { # BOX EXEC
	curl -sS -m "${3:-0.5}" -H "X-API-Key: $key" "$url/v1/boxes/$1/execs/$2/output?raw=stdout" 2>/dev/null
}
send() { # BOX EXEC LINE
	code=$(printf '%s\n' "$3" | curl -sS -o body -w '%{http_code}' -H "X-API-Key: $key" --data-binary @- "$url/v1/boxes/$1/execs/$2/stdin")
	body=$(cat body)
	is "$code" 200 "$body"
}
running() { # BOX: the id of its exec
	api GET "/v1/boxes/$1/execs?running=1"
	get "[.items[] | select(.command[0] == \"${2:-python3}\")][0].id"
}
keeper() { "$ATOLL" doctor --json | grep -o 'pid [0-9]*' | head -n 1 | cut -d ' ' -f 2; }
server_answers() { api GET /v1/info && [ "$code" = 200 ]; }
# Server and keeper are killed; the next ones have neither zygotes nor the rows in memory.
restart_all() {
	old=$(keeper)
	kill -9 "$old" "$(server_pid)"
	gone() { [ ! -d "/proc/$old" ]; }
	soon gone
	soon server_answers
}
state_is() { # BOX STATE
	api GET "/v1/boxes/$1"
	[ "$(get .state)" = "$2" ]
}
local_boxes() { "$ATOLL" ps --local -q 2>/dev/null | wc -l; }
image() { echo "$state/checkpoints/images/$1"; }

a_checkpoint_with_memory_continues_after_a_restart_of_server_and_keeper() {
	box
	start "$b"
	api POST "/v1/boxes/$b/checkpoints" '{"name":"m","memory":true,"wait":"durable"}'
	is "$code" 201 "$body"
	is "$(get '"\(.durable) \(.memory.on_disk) \(.memory.processes | length)"')" "true true 1" "$body"
	k=$(get .id)
	is "$(stat -c '%a' "$(image "$k")") $(stat -c '%a' "$state/checkpoints/key")" "600 600"
	is "$(grep -c 'answers each line' "$(image "$k")")" 0 # nothing of the program is readable
	send "$b" "$x" two
	restart_all
	api GET "/v1/checkpoints/$k"
	is "$(get '.memory.processes[0].threads')" 2 "$body"
	api POST "/v1/boxes/$b/fork" '{"from":"m","memory":true,"count":2}'
	is "$code $(get '[.items[] | select(.error)] | length')" "201 0" "$body"
	copies=$(get '.items[].box.id')
	api POST /v1/boxes "{\"checkpoint\":\"$k\",\"memory\":true}"
	is "$code" 201 "$body"
	copies="$copies $(get .id)"
	for c in $copies; do
		y=$(running "$c")
		send "$c" "$y" copy
		soon output_has "$c" "$y" "$pid $tid 2 copy d /tmp" # pid, tid, variable, offset, folder
	done
	api POST "/v1/boxes/$b/rollback" "{\"to\":\"$k\",\"memory\":true}"
	is "$code" 200 "$body"
	y=$(running "$b")
	send "$b" "$y" back
	soon output_has "$b" "$y" "$pid $tid 2 back d /tmp"
	for c in $copies $b; do api DELETE "/v1/boxes/$c"; done
	api DELETE "/v1/checkpoints/$k"
	is "$code" 204 "$body"
	file_is_gone() { [ ! -e "$(image "$k")" ]; }
	soon file_is_gone
}

a_damaged_or_foreign_image_is_refused_with_the_reason() {
	box
	start "$b"
	api POST "/v1/boxes/$b/checkpoints" '{"memory":true,"wait":"durable"}'
	is "$code" 201 "$body"
	k=$(get .id)
	restart_all
	file=$(image "$k")
	cp "$file" whole
	refused() { # TEXT
		api POST /v1/boxes "{\"checkpoint\":\"$k\",\"memory\":true}"
		is "$code" 409 "$body"
		case $body in *"$1"*) ;; *) is "$body" "*$1*" ;; esac
		restore "$file"
	}
	restore() { cat whole >"$1"; }
	truncate -s -1 "$file"
	refused truncated
	printf x >>"$file"
	refused 'bytes after its end'
	printf '\377' | dd of="$file" bs=1 seek=5000 conv=notrunc status=none
	refused 'frame 0 of the process image was changed'
	printf '\011' | dd of="$file" bs=1 seek=8 conv=notrunc status=none
	refused 'version 9, this program reads 1'
	printf '\007' | dd of="$file" bs=1 seek=12 conv=notrunc status=none
	refused 'another architecture'
	printf x | dd of="$file" bs=1 seek=40 conv=notrunc status=none
	refused 'another team'
	mv "$state/checkpoints/key" key
	refused 'key in the state folder) is missing'
	sed 's/^./0/;t' key | tr '0-9a-f' '1-9a-f0' >"$state/checkpoints/key"
	chmod 600 "$state/checkpoints/key"
	refused 'was encrypted with key'
	cp key "$state/checkpoints/key"
	chmod 644 "$state/checkpoints/key"
	refused 'other users can read'
	chmod 600 "$state/checkpoints/key"
	mv "$file" away
	api POST /v1/boxes "{\"checkpoint\":\"$k\",\"memory\":true}"
	is "$code" 404 "$body"
	mv away "$file"
	api POST /v1/boxes "{\"checkpoint\":\"$k\",\"memory\":true}"
	is "$code" 201 "$body"
	c=$(get .id)
	api DELETE "/v1/boxes/$c"
	api DELETE "/v1/boxes/$b"
	api DELETE "/v1/checkpoints/$k"
}

a_checkpoint_that_is_deleted_or_loses_its_layer_while_boxes_start_from_it_harms_no_box() {
	box
	start "$b"
	for turn in 1 2 3; do
		api POST "/v1/boxes/$b/checkpoints" '{"memory":true,"wait":"durable"}'
		is "$code" 201 "$body"
		k=$(get .id)
		curl -sS -o forked -H "X-API-Key: $key" -d "{\"from\":\"$k\",\"memory\":true,\"count\":4}" "$url/v1/boxes/$b/fork" &
		asked=$!
		sleep "0.0$turn"
		api DELETE "/v1/checkpoints/$k"
		is "$code" 204 "$body"
		wait $asked
		for c in $(jq -r '.items[]?.box.id? // empty' forked); do # those that were created are whole
			y=$(running "$c")
			send "$c" "$y" copy
			soon output_has "$c" "$y" "$pid $tid 2 copy d /tmp"
			api DELETE "/v1/boxes/$c"
		done
	done
	api PUT "/v1/boxes/$b/files?path=another" x # else it would have no layer
	api POST "/v1/boxes/$b/checkpoints" '{"memory":true,"wait":"durable"}'
	is "$code" 201 "$body"
	k=$(get .id)
	rm "$state/checkpoints/layers/$k.erofs"
	for memory in true false; do
		api POST /v1/boxes "{\"checkpoint\":\"$k\",\"memory\":$memory}"
		case $code in 404 | 409) ;; *) is "$code" "404 or 409" "$body" ;; esac
		case $body in *layer*) ;; *) is "$body" "*layer*" ;; esac
	done
	send "$b" "$x" two
	soon output_has "$b" "$x" "$pid $tid 2 two d /tmp"
	api DELETE "/v1/boxes/$b"
	api DELETE "/v1/checkpoints/$k"
	is "$code" 204 "$body"
}

a_box_that_is_paused_to_the_disk_continues_after_everything_was_killed() {
	box '{"name":"sleeper"}'
	start "$b"
	api POST "/v1/boxes/$b/contexts" '{"language":"python"}'
	is "$code" 201 "$body"
	ctx=$(get .id)
	api POST "/v1/boxes/$b/contexts/$ctx/cells" '{"code":"v = [1]; print(v)"}'
	is "$code" 200 "$body"
	before=$(local_boxes)
	api POST "/v1/boxes/$b/pause" '{"to":"disk"}'
	is "$code $(get '"\(.state) \(.paused_to)"')" "200 paused disk" "$body"
	api POST "/v1/boxes/$b/pause" '{"to":"disk"}'
	is "$code" 200 "$body"
	api POST "/v1/boxes/$b/execs" '{"command":["true"]}'
	is "$code" 409 "$body"
	nothing_runs() { [ "$(local_boxes)" = $((before - 1)) ]; } # its programs, init and memory are gone
	soon nothing_runs
	api GET "/v1/boxes/$b/checkpoints"
	k=$(get '[.items[] | select(.reason == "pause")][0].id')
	size=$(stat -c %s "$(image "$k")")
	api DELETE "/v1/checkpoints/$k"
	is "$code" 409 "$body"
	restart_all
	state_is "$b" paused
	is "$(get .paused_to)" disk "$body"
	api POST "/v1/boxes/$b/resume"
	is "$code $(get .state)" "200 running" "$body"
	send "$b" "$x" two
	soon output_has "$b" "$x" "$pid $tid 2 two d /tmp" # the same exec
	api POST "/v1/boxes/$b/contexts/$ctx/cells" '{"code":"v.append(2); print(v)"}'
	is "$code $(get '"\(.stdout)\(.cell)"')" "200 [1, 2]
2" "$body"
	api POST "/v1/boxes/$b/pause" '{"to":"disk"}' # again, and without a restart
	is "$code" 200 "$body"
	api POST "/v1/boxes/$b/resume"
	is "$code" 200 "$body"
	send "$b" "$x" three
	soon output_has "$b" "$x" "$pid $tid 3 three e /tmp"
	restart_server() { kill -9 "$(server_pid)"; soon server_answers; }
	restart_server
	send "$b" "$x" four
	soon output_has "$b" "$x" "$pid $tid 4 four f /tmp"
	restart_all # with the processes through whose mounts the program has mapped its libraries
	api POST "/v1/boxes/$b/pause" '{"to":"disk"}'
	is "$code" 200 "$body"
	api GET "/v1/boxes/$b/checkpoints"
	k=$(get '[.items[] | select(.reason == "pause")] | max_by(.created) | .id')
	[ "$(stat -c %s "$(image "$k")")" -lt $((size * 3 / 2)) ] || fail "the image grew from $size to $(stat -c %s "$(image "$k")") bytes"
	api POST "/v1/boxes/$b/resume"
	is "$code" 200 "$body"
	send "$b" "$x" five
	soon output_has "$b" "$x" "$pid $tid 5 five g /tmp"
	api DELETE "/v1/boxes/$b"
	is "$code" 204 "$body"
}

readers_and_waiters_continue_over_a_pause_to_the_disk() {
	box
	api POST "/v1/boxes/$b/execs" '{"command":["python3","-uc","for line in iter(input, \"end\"): print(\"got\", line)"], "background":true, "open_stdin":true}'
	is "$code" 201 "$body"
	x=$(get .id)
	curl -sSN -H "X-API-Key: $key" "$url/v1/boxes/$b/execs/$x/output?raw=stdout" >followed &
	reader=$!
	curl -sS -H "X-API-Key: $key" "$url/v1/boxes/$b/execs/$x/wait" >waited &
	waiter=$!
	send "$b" "$x" a
	followed() { grep -qx "got $1" followed; }
	soon followed a
	api POST "/v1/boxes/$b/pause" '{"to":"disk"}'
	is "$code" 200 "$body"
	api POST "/v1/boxes/$b/resume"
	is "$code" 200 "$body"
	send "$b" "$x" b
	soon followed b
	send "$b" "$x" end
	wait $reader
	wait $waiter
	is "$(cat followed)" "got a
got b"
	is "$(jq -r '"\(.state) \(.exit_code)"' waited)" "exited 0" "$(cat waited)"
	api DELETE "/v1/boxes/$b"
}

a_program_that_was_started_just_before_a_pause_is_in_the_image() {
	for turn in 1 2 3; do
		box
		api POST "/v1/boxes/$b/execs" '{"command":["sed","-u","s/^/got /"], "background":true, "open_stdin":true}'
		is "$code" 201 "$body"
		x=$(get .id)
		api POST "/v1/boxes/$b/pause" '{"to":"disk"}'
		is "$code" 200 "$body"
		api POST "/v1/boxes/$b/resume"
		is "$code" 200 "$body"
		send "$b" "$x" "line$turn"
		soon output_has "$b" "$x" "got line$turn"
		api DELETE "/v1/boxes/$b"
	done
}

a_box_with_a_program_that_cannot_be_captured_is_not_paused_and_continues() {
	box
	start "$b"
	api POST "/v1/boxes/$b/execs" '{"command":["python3","-uc","import socket,time; s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW); print(\"ready\"); time.sleep(1000)"],"background":true}'
	is "$code" 201 "$body"
	y=$(get .id)
	soon output_has "$b" "$y" ready
	api POST "/v1/boxes/$b/pause" '{"to":"disk"}'
	is "$code $(get .error.code)" "409 not_capturable" "$body"
	case $body in *netlink*) ;; *) is "$body" "*netlink*" ;; esac
	state_is "$b" running
	send "$b" "$x" two
	soon output_has "$b" "$x" "$pid $tid 2 two d /tmp"
	api DELETE "/v1/boxes/$b/execs/$y"
	api POST "/v1/boxes/$b/pause" '{"to":"disk","memory":false}'
	is "$code" 400 "$body"
	api POST "/v1/boxes/$b/pause" '{"to":"tape"}'
	is "$code" 400 "$body"
	api POST "/v1/boxes/$b/pause"
	is "$code $(get .paused_to)" "200 memory" "$body"
	api POST "/v1/boxes/$b/pause" '{"to":"disk"}'
	is "$code" 409 "$body"
	api POST "/v1/boxes/$b/resume"
	is "$code" 200 "$body"
	api DELETE "/v1/boxes/$b"
}

a_sandbox_of_e2b_with_the_mark_is_paused_to_the_disk_and_connected_after_a_restart() {
	api POST /sandboxes '{"templateID":"base","metadata":{"atoll.pause":"tape"}}'
	is "$code" 400 "$body"
	api POST /sandboxes '{"templateID":"base","timeout":600,"metadata":{"atoll.pause":"disk"}}'
	is "$code" 201 "$body"
	b=$(get .sandboxID)
	start "$b"
	api POST "/sandboxes/$b/pause" '{}'
	is "$code" 204 "$body"
	state_is "$b" paused
	is "$(get .paused_to)" disk "$body"
	restart_all
	api POST "/sandboxes/$b/connect" '{"timeout":300}'
	is "$code" 201 "$body"
	send "$b" "$x" two
	soon output_has "$b" "$x" "$pid $tid 2 two d /tmp"
	api DELETE "/sandboxes/$b"
	is "$code" 204 "$body"
}

a_box_whose_image_is_damaged_stays_on_the_disk_and_can_be_deleted() {
	box
	start "$b"
	api POST "/v1/boxes/$b/pause" '{"to":"disk"}'
	is "$code" 200 "$body"
	api GET "/v1/boxes/$b/checkpoints"
	k=$(get '[.items[] | select(.reason == "pause")][0].id')
	printf '\377' | dd of="$(image "$k")" bs=1 seek=5000 conv=notrunc status=none
	api POST "/v1/boxes/$b/resume"
	is "$code" 409 "$body"
	case $body in *'frame 0 of the process image was changed'*) ;; *) is "$body" damaged ;; esac
	state_is "$b" paused
	api DELETE "/v1/boxes/$b"
	is "$code" 204 "$body"
}

# The last test: the daemon gets another port.
boxes_of_a_daemon_that_stops_continue_in_the_next_one_if_it_hibernates() {
	stop_daemon
	export ATOLL_ON_SHUTDOWN=hibernate
	start_daemon
	box
	other=$b
	api POST "/v1/boxes/$other/execs" '{"command":["python3","-uc","import socket,time; s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW); print(\"ready\"); time.sleep(1000)"],"background":true}'
	is "$code" 201 "$body"
	y=$(get .id)
	soon output_has "$other" "$y" ready
	box
	start "$b"
	is "$(local_boxes)" 2
	kill -HUP "$supervisor" # another server takes over: that is no stop
	taken_over() { [ "$(grep -c '"serving"' "$work/serve.log")" = 2 ] && [ "$(pgrep -cP "$supervisor" -x atoll-server)" = 1 ]; }
	soon taken_over
	state_is "$b" running
	stop_daemon
	is "$(local_boxes)" 1 # the one that cannot be captured
	kill -9 "$keeper_pid"
	unset ATOLL_ON_SHUTDOWN
	start_daemon
	soon state_is "$b" running
	send "$b" "$x" two
	soon output_has "$b" "$x" "$pid $tid 2 two d /tmp"
	api GET "/v1/boxes/$b/checkpoints"
	is "$(get '[.items[] | select(.reason == "shutdown")] | length')" 1 "$body"
	api GET "/v1/boxes/$other/execs/$y"
	is "$(get .state)" running "$body"
	for c in $other $b; do api DELETE "/v1/boxes/$c"; done
}

run_daemon_tests
