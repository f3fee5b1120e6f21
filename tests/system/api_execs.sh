#!/bin/sh
# api_execs.sh - execs in a box: output streams, stdin, exits, readers.
. "$(dirname "$0")/daemon.lib"

py() { python3 "$here/execs.py" "$@"; }
# start BODY: an exec of $box; sets exec and at, the path of it.
start() {
	api POST "/v1/boxes/$box/execs" "$1"
	is "$code" 201 "$body"
	exec=$(get .id) at=/v1/boxes/$box/execs/$exec
}
runs() { # BODY: to its end
	api POST "/v1/boxes/$box/execs" "$1"
	is "$code" 200 "$body"
}
events() { curl -sS -N --max-time $((120 * time_scale)) -H "X-API-Key: $key" "$url$1"; }
send() { # BYTES [QUERY]
	code=$(printf "$1" | curl -sS -o body -w '%{http_code}' -H "X-API-Key: $key" --data-binary @- "$url$at/stdin${2:-}")
}
resident() { awk '/VmRSS/ { print $2 }' "/proc/$(server_pid)/status"; }

# ---- life ----

a_background_exec_is_listed_shown_and_waited_for() {
	new_box
	start '{"command":"read x; echo got $x","background":true,"open_stdin":true,"tag":"reader"}'
	is "$(get '.state + " " + .tag + " " + .kind')" "running reader exec"
	api GET "/v1/boxes/$box/execs?running=1"
	is "$(get '.items[0].id')" "$exec"
	api GET "$at"
	is "$(get .state)" running
	api GET "$at/wait?timeout_ms=50"
	is "$code" 202
	is "$(get .state)" running
	send 'line\n'
	is "$code" 200
	api GET "$at/wait"
	is "$(get '.state + " " + .cause')" "exited exit"
	api GET "$at/wait"
	is "$(get .cause)" exit
	api GET "/v1/boxes/$box/execs?running=1"
	is "$(get '.items | length')" 0
	is "$(curl -sS -H "X-API-Key: $key" "$url$at/output?raw=stdout")" "got line"
}

a_tag_finds_the_newest_exec_with_this_tag() {
	new_box
	start '{"command":"sleep 100","background":true,"tag":"web"}'
	first=$exec
	api GET "/v1/boxes/$box/execs/web"
	is "$(get .id)" "$first"
	api DELETE "/v1/boxes/$box/execs/web"
	is "$(get .signal)" SIGKILL
	# The exec has ended and is still found by its tag.
	api GET "/v1/boxes/$box/execs/web"
	is "$code" 200 "$body"
	is "$(get '.id + " " + .state')" "$first exited"
	start '{"command":"sleep 100","background":true,"tag":"web"}'
	api GET "/v1/boxes/$box/execs/web"
	is "$(get .id)" "$exec"
	api GET "/v1/boxes/$box/execs/nothing"
	is "$code" 404
	api GET "/v1/boxes/$box/execs/aaaaaaaaaaaa"
	is "$code" 404
}

a_signal_is_sent_to_the_whole_process_group() {
	new_box
	start '{"command":"trap \"echo caught; exit 5\" USR1; echo ready; sleep 100 & wait","background":true}'
	ready() { curl -sS -m 0.3 -H "X-API-Key: $key" "$url$at/output?raw=stdout" 2>/dev/null | grep -q ready; }
	soon ready
	api POST "$at/signal" '{"signal":"SIGUSR1"}'
	is "$code" 204
	api GET "$at/wait"
	is "$(get .status)" 5 "$body"
	api POST "$at/signal" '{"signal":"TERM"}'
	is "$code" 409
	for bad in '"NOPE"' 0 65 -1 '""' '[]' 1e3; do
		api POST "$at/signal" "{\"signal\":$bad}"
		is "$code" 400 "$bad"
	done
}

a_child_that_holds_the_output_open_does_not_block_the_exec() {
	new_box
	began=$(date +%s)
	runs '{"command":"sleep 60 & echo done"}'
	is "$(get .stdout)" "done"
	is "$(get .status)" 0
	[ $(($(date +%s) - began)) -lt 20 ] || fail "it waited for the child"
	is "$(get .evidence.streams_cut)" 3
	api POST "/v1/boxes/$box/execs" '{"command":"pgrep -x sleep"}'
	is "$(get .status)" 0 "the child was killed: $body"
}

a_client_disconnect_does_not_stop_a_background_exec() {
	new_box
	py leaves "/v1/boxes/$box/execs" '{"command":"echo first; sleep 0.3; echo second >f; echo end","tag":"left"}'
	has_ended() { api GET "/v1/boxes/$box/execs/left" && [ "$(get .state)" = exited ]; }
	soon has_ended
	is "$(get .cause)" exit
	runs '{"command":"cat f"}'
	is "$(get .stdout)" second
	py leaves /v1/run '{"command":"echo first; sleep 0.2; exit 9"}'
	ends_so() { api GET '/v1/runs?limit=1' && [ "$(get '.items[0].status')" = 9 ]; }
	soon ends_so
	box=$(get '.items[0].box')
	its_box_is_gone() { api GET "/v1/boxes/$box" && [ "$(get .state)" = deleted ]; }
	soon its_box_is_gone
}

# ---- input ----

stdin_can_be_sent_in_parts_and_closed() {
	new_box
	start '{"command":"cat","background":true,"open_stdin":true}'
	for piece in one two 'th\303' '\274r\000ee'; do send "$piece"; is "$code" 200; done
	send '' '?close=1'
	is "$code" 200
	api GET "$at/wait"
	is "$(get '.status, .stdout_bytes' | tr '\n' ' ')" "0 14 "
	is "$(curl -sS -H "X-API-Key: $key" "$url$at/output?raw=stdout" | od -An -tx1 | tr -d ' \n')" 6f6e6574776f7468c3bc72006565
	send more
	is "$code" 409
}

stdin_larger_than_the_pipe_arrives_complete() {
	new_box
	head -c 1000003 /dev/urandom >big
	start '{"command":"cat | (sleep 0.2; wc -c)","background":true,"open_stdin":true}'
	is "$(curl -sS -H "X-API-Key: $key" --data-binary @big "$url$at/stdin?close=1" | jq .accepted)" 1000003
	api GET "$at/wait"
	is "$(curl -sS -H "X-API-Key: $key" "$url$at/output?raw=stdout")" 1000003
	start '{"command":"sha256sum","background":true,"open_stdin":true}'
	curl -sS -H "X-API-Key: $key" -H 'Transfer-Encoding: chunked' -T big -X POST "$url$at/stdin?close=1" -o body
	is "$(get .accepted)" 1000003 "$(cat body)"
	api GET "$at/wait"
	is "$(curl -sS -H "X-API-Key: $key" "$url$at/output?raw=stdout" | cut -d ' ' -f 1)" "$(sha256sum big | cut -d ' ' -f 1)"
}

stdin_given_in_the_request_is_closed_after_it() {
	new_box
	runs '{"command":"cat; echo end","stdin":"a\nb"}'
	is "$(get .stdout)" "$(printf 'a\nbend')"
	runs '{"command":"cat; echo end","stdin":""}'
	is "$(get .stdout)" end
	runs '{"command":"cat; echo end"}'
	is "$(get .stdout)" end
	python3 -c 'import json; print(json.dumps({"command":"wc -c","stdin":"x"*900000}))' >large
	runs @large
	is "$(get .stdout)" 900000
}

sending_stdin_ends_when_the_exec_closes_its_stdin() {
	new_box
	start '{"command":"sleep 0.3; exec <&-; sleep 0.2","background":true,"open_stdin":true}'
	head -c 3000000 /dev/zero >big
	code=$(curl -sS -o body -w '%{http_code}' -m $((120 * time_scale)) -H "X-API-Key: $key" --data-binary @big "$url$at/stdin")
	case $code in 200 | 409) ;; *) fail "$code" ;; esac
	api GET "$at/wait"
	is "$(get .cause)" exit
	start '{"command":"true","background":true}'
	send x
	is "$code" 409
}

# A client that resumes at an offset after a restart of the server: bytes are skipped or missing, never lost.
input_at_an_offset_is_skipped_or_rejected_and_closes_nothing() {
	new_box
	start '{"command":"cat","background":true,"open_stdin":true}'
	api POST "$at/stdin?offset=0" abcd
	is "$code" 200 "$body"
	api POST "$at/stdin?offset=2" cdef
	is "$code" 200 "$body"
	for bytes in xyz ''; do
		api POST "$at/stdin?offset=7&close=true" "$bytes"
		is "$code $(get .error.code)" "409 gap" "'$bytes': $body"
	done
	api POST "$at/stdin?offset=6&close=true" ''
	is "$code" 200 "$body"
	events "$at/output" >got
	is "$(jq -rj 'select(.type == "stdout").data' <got)" abcdef "$(cat got)"
}

# ---- terminals ----

a_terminal_has_a_size_and_can_be_resized() {
	new_box
	start '{"command":["/bin/bash","--norc"],"background":true,"pty":{"rows":33,"cols":101},"env":{"PS1":"$ "}}'
	is "$(get '.pty, .kind' | tr '\n' ' ')" "true pty "
	has "$(py terminal "$at" 'stty size; tty; echo "A"-mark\n' A-mark)" "33 101"
	api POST "$at/resize" '{"rows":44,"cols":202}'
	is "$code" 204
	has "$(py terminal "$at" 'stty size; echo "B"-mark\n' B-mark)" "44 202"
	for bad in '{}' '{"rows":0,"cols":1}' '{"rows":1,"cols":10001}' '{"rows":"1","cols":1}'; do
		api POST "$at/resize" "$bad"
		is "$code" 400 "$bad"
	done
	send 'exit 3\n'
	api GET "$at/wait"
	is "$(get .status)" 3
}

control_c_interrupts_the_foreground_process_of_the_terminal() {
	new_box
	start '{"command":["/bin/bash","--norc"],"background":true,"pty":{},"env":{"PS1":"$ "}}'
	has "$(py terminal "$at" 'stty size; echo "g"o-mark; sleep 100\n' go-mark)" "24 80"
	has "$(py terminal "$at" '\x03echo A$?-mark\n' 'A130-mark')" A130-mark
	send '\004'
	api GET "$at/wait"
	is "$(get .cause)" exit
}

an_exec_without_a_terminal_cannot_be_resized() {
	new_box
	start '{"command":"sleep 100","background":true}'
	api POST "$at/resize" '{"rows":1,"cols":1}'
	is "$code" 409
}

# ---- output ----

several_readers_get_the_output_of_one_exec() {
	new_box
	start '{"command":"read x; seq 100000","background":true,"open_stdin":true}'
	py many_readers "$at/output" 20 >counted &
	reader=$!
	curl -sS -H "X-API-Key: $key" "$url/metrics" -o /dev/null
	send 'go\n'
	wait $reader
	is "$(cat counted)" "1 588895"
}

a_reader_may_attach_before_the_exec_starts() {
	new_box
	timeout $((120 * time_scale)) python3 "$here/execs.py" at_once "/v1/boxes/$box/execs" 50 || fail "no output"
}

a_reader_over_the_limit_is_rejected() {
	new_box
	start '{"command":"sleep 100","background":true}'
	mkfifo hold
	py never_reads "$at/output" 48 <hold >asked &
	silent=$!
	exec 9>hold
	full() { [ "$(curl -sS -m 0.3 -o body -w '%{http_code}' -H "X-API-Key: $key" "$url$at/output" 2>curl.err)" = 429 ]; }
	soon full
	has "$(get .error.message)" "too many"
	runs '{"command":"echo alive"}'
	is "$(get .stdout)" alive
	exec 9>&-
	wait $silent
	api DELETE "$at"
	has_room() { api GET "$at/output" && [ "$code" = 200 ]; }
	soon has_room
}

a_reader_resumes_at_a_byte_offset() {
	new_box
	start '{"command":"seq 60000","background":true}'
	py resumes "$at/output" 12 >got
	seq 60000 | cmp - got || fail "not the same"
}

offsets_are_exact_inside_characters_and_invalid_utf8() {
	new_box
	runs '{"command":"printf \"aä€𝄞z\"","tag":"t"}'
	at=/v1/boxes/$box/execs/$(get .id)
	printf 'aä€𝄞z' >whole
	for from in 0 1 2 3 4 5 6 7 8 9 10 11; do
		events "$at/output?stdout=$from" | py bytes_of >got
		tail -c +$((from + 1)) whole | cmp - got || fail "from $from"
		is "$(curl -sS -H "X-API-Key: $key" "$url$at/output?raw=stdout&stdout=$from" | cksum)" "$(cksum <got)"
	done
	runs '{"command":"printf \"ok\\377\\376\"; sleep 0.05; printf \"\\303\"; sleep 0.05; printf \"\\274\\303\""}'
	is "$(get .stdout_encoding)" base64
	is "$(get .stdout | base64 -d | od -An -tx1 | tr -d ' \n')" 6f6bfffec3bcc3
	at=/v1/boxes/$box/execs/$(get .id)
	is "$(events "$at/output" | py bytes_of | od -An -tx1 | tr -d ' \n')" 6f6bfffec3bcc3
}

reading_from_an_offset_after_the_end_returns_only_the_exit() {
	new_box
	runs '{"command":"echo hello"}'
	at=/v1/boxes/$box/execs/$(get .id)
	events "$at/output?stdout=1000" >got
	is "$(jq -r 'select(.type=="stdout").data' <got)" ""
	is "$(jq -r 'select(.type=="reading" and .stream=="stdout") | "\(.from) \(.tip)"' <got)" "1000 6"
	is "$(tail -1 got | jq -r .type)" exit
	events "$at/output?stdout=9223372036854775807" >got
	is "$(tail -1 got | jq -r .type)" exit
	# Reading waits for output that is not written yet.
	start '{"command":"read x; echo 0123456789","background":true,"open_stdin":true}'
	events "$at/output?stdout=4" >got &
	reader=$!
	send 'x\n'
	wait $reader
	is "$(py bytes_of <got)" "456789" "$(cat got)"
	for bad in -1 x 99999999999999999999 ''; do
		api GET "$at/output?stdout=$bad"
		is "$code" 400 "$bad"
	done
	api GET "$at/output?raw=both"
	is "$code" 400
}

unread_output_is_stored_up_to_a_limit_and_the_rest_is_reported_dropped() {
	new_box
	start '{"command":"head -c 25000000 /dev/zero | tr \"\\\\0\" x; echo END","background":true}'
	api GET "$at/wait"
	is "$(get .stdout_bytes)" 25000004
	is "$(get .truncated)" true
	events "$at/output" >got
	dropped=$(jq -r 'select(.type=="reading" and .stream=="stdout").dropped' <got)
	[ "$dropped" -gt 3000000 ] || fail "dropped $dropped"
	[ "$dropped" -lt 8300000 ] || fail "dropped $dropped: less than 16 MiB were kept"
	py bytes_of <got >bytes
	is $(($(wc -c <bytes) + dropped)) 25000004
	is "$(tail -c 4 bytes)" END
	# Nothing of the stored output is dropped.
	is "$(events "$at/output?stdout=24999990" | jq -r 'select(.type=="reading" and .stream=="stdout").dropped')" 0
}

unread_output_uses_a_bounded_part_of_the_memory_of_the_box() {
	new_box '{"limits":{"mem":67108864}}'
	for i in 1 2 3 4 5 6 7 8 9 10 11 12; do
		runs '{"command":"head -c 4000000 /dev/zero; head -c 4000000 /dev/zero >&2; echo END","background":false,"max_output":0}'
		is "$(get .cause)" exit "$body"
	done
	start '{"command":"head -c 3000000 /dev/zero | tr \"\\\\0\" x; echo END","background":true}'
	api GET "$at/wait"
	is "$(events "$at/output" | jq -r 'select(.type=="reading" and .stream=="stdout").dropped')" 0
}

the_output_of_a_foreground_exec_is_complete() {
	new_box
	curl -sS -N -H "X-API-Key: $key" -H 'Accept: application/x-ndjson' "$url/v1/boxes/$box/execs" \
		-d '{"command":"head -c 8000000 /dev/urandom | tee >(sha256sum >&2)"}' >got
	is "$(py bytes_of <got | sha256sum | cut -d ' ' -f 1)" "$(py bytes_of stderr <got | cut -d ' ' -f 1)"
}

long_output_is_truncated_in_a_plain_answer_and_marked() {
	new_box
	runs '{"command":"seq 100000","max_output":10}'
	is "$(get '.stdout, .truncated' | tr '\n' ' ')" "1 2 3 4 5  true "
	runs '{"command":"seq 100000","max_output":0}'
	is "$(get '.stdout, .truncated' | tr '\n' ' ')" " true "
	runs '{"command":"head -c 3000000 /dev/zero | tr \"\\\\0\" x"}'
	is "$(get '.stdout | length')" 1048576
}

clients_that_never_read_use_little_memory_and_do_not_block_others() {
	new_box
	start '{"command":"while :; do echo 0123456789012345678901234567890123456789; done","background":true}'
	loud=$at
	api GET /v1/info
	before=$(resident)
	mkfifo hold
	py never_reads "$loud/output" 40 <hold >asked &
	silent=$!
	exec 9>hold
	soon grep -q asked asked
	for i in 1 2 3 4 5 6 7 8 9 10; do
		runs '{"command":"echo alive; head -c 300000 /dev/zero | tr \"\\\\0\" y"}'
		has "$(get .stdout | head -c 5)" alive
	done
	after=$(resident)
	echo "# rss $before -> $after KiB with 40 silent readers"
	# A sanitizer retains freed memory for a while.
	grep -q __asan_init "$ATOLL" || [ $((after - before)) -lt 20000 ] || fail "rss grew from $before to $after KiB"
	exec 9>&-
	wait $silent
	api DELETE "$loud"
	is "$(get .signal)" SIGKILL
}

# ---- many, and odd ones ----

# repeats N BODY: the same exec N times, by one curl.
repeats() {
	cat >ask <<-END
		url = "$url/v1/boxes/$box/execs"
		header = "X-API-Key: $key"
		data = "$(echo "$2" | sed 's/"/\\"/g')"
		output = /dev/null
		silent
	END
	for i in $(seq "$1"); do echo next; cat ask; done | sed 1d >all
	curl -sS -K all
}

the_129th_simultaneous_exec_of_a_box_is_rejected() {
	new_box
	repeats 127 '{"command":["sleep","100"],"background":true}'
	start '{"command":["sleep","100"],"background":true}'
	api GET "/v1/boxes/$box/execs?running=1&limit=200"
	is "$(get '.items | length')" 128
	api POST "/v1/boxes/$box/execs" '{"command":["true"]}'
	is "$code" 429 "$body"
	has "$(get .error.message)" "128 programs"
	api DELETE "$at"
	is "$code" 200
	runs '{"command":["echo","room"]}'
	is "$(get .stdout)" room
}

three_hundred_short_execs_leave_no_processes() {
	new_box
	repeats 300 '{"command":["true"]}'
	api GET "/v1/boxes/$box/execs?limit=1000"
	is "$(get '.items | length')" 300
	is "$(get '[.items[] | select(.cause=="exit" and .status==0)] | length')" 300
	api GET "/v1/boxes/$box"
	is "$(get .running)" 0
}

variables_of_the_exec_override_the_box_which_overrides_the_defaults() {
	new_box '{"env":{"A":"box","B":"box","LANG":"box"}}'
	runs '{"command":"echo $A $B $C $HOME $LANG","env":{"B":"own","C":"own","HOME":"/tmp"}}'
	is "$(get .stdout)" "box own own /tmp box"
	runs '{"command":"echo \"$E\"","env":{"E":""}}'
	is "$(get .stdout)" ""
	for bad in '{"":"x"}' '{"a=b":"x"}' '{"a":1}' '[]'; do
		api POST "/v1/boxes/$box/execs" "{\"command\":\"true\",\"env\":$bad}"
		is "$code" 400 "$bad"
	done
}

a_missing_working_directory_is_named() {
	new_box
	runs '{"command":"pwd","cwd":"/tmp"}'
	is "$(get .stdout)" /tmp
	runs '{"command":"pwd","cwd":"/not/there"}'
	is "$(get '.cause, .status' | tr '\n' ' ')" "exit 127 " "$body"
	has "$(get .summary)" /not/there
	runs '{"command":"pwd"}'
	is "$(get .stdout)" /home/user
}

the_user_of_an_exec_may_be_user_or_root() {
	new_box
	runs '{"command":"id -u"}'
	is "$(get .stdout)" 1000
	runs '{"command":"id -u","user":"user"}'
	is "$(get .stdout)" 1000
	runs '{"command":"id -u","user":"root"}'
	is "$(get .stdout)" 0 "$body"
	api POST "/v1/boxes/$box/execs" '{"command":"id -u","user":"nobody"}'
	is "$code" 400
}

large_arguments_arrive_complete_or_are_rejected() {
	new_box
	python3 -c 'import json; print(json.dumps({"command":["sh","-c","echo $# ${#1}","sh"]+["x"*100]*8000}))' >many
	runs @many
	is "$(get .stdout)" "8000 100"
	python3 -c 'import json; print(json.dumps({"command":["true","x"*200000]}))' >long
	api POST "/v1/boxes/$box/execs" @long
	is "$code" 413 "$body"
	python3 -c 'import json; print(json.dumps({"command":["true"]+["x"*1000]*9000}))' >lots
	api POST "/v1/boxes/$box/execs" @lots
	is "$code" 413
	for bad in '[]' '[1]' '7' 'null' '{}'; do
		api POST "/v1/boxes/$box/execs" "{\"command\":$bad}"
		is "$code" 400 "$bad"
	done
	runs '{"command":[""]}'
	is "$(get .status)" 127
	runs '{"command":""}'
	is "$(get .status)" 0
}

# ---- files of a one-shot run ----

files_that_a_run_created_are_returned_as_artifacts() {
	api POST /v1/run '{"language":"python","code":"import os\nopen(\"output.png\",\"wb\").write(b\"\\x89PNG\\0\")\nos.makedirs(\"x/y\")\nopen(\"x/y/b.txt\",\"w\").write(\"ä\")\nopen(\"in.csv\",\"a\").write(\"2\")\nos.remove(\"gone.txt\")\nopen(\"/tmp/t.txt\",\"w\")","files":{"in.csv":"1","same.txt":"s","gone.txt":"g"},"artifacts":["*.png","*.txt","in.csv"]}'
	is "$code" 200 "$body"
	is "$(get '.artifacts | sort_by(.path) | .[] | [.path, .size, .text, .base64] | @json')" '["in.csv",2,"12",null]
["output.png",5,null,"iVBORwA="]
["x/y/b.txt",2,"ä",null]' "$body"
	is "$(get '.files_changed | sort_by(.path) | .[] | .kind + " " + .path')" "deleted /home/user/gone.txt
modified /home/user/in.csv
added /home/user/output.png
added /home/user/x/y/b.txt
added /tmp/t.txt" "$body"
	is "$(get '.artifacts_truncated, .files_truncated | tostring' | tr '\n' ' ')" "false false "
	wall_ms=300
	[ "${ATOLL_TIER-}" != microvm ] || wall_ms=10000 # a shell of an emulated guest starts in a third of a second, or in seconds
	api POST /v1/run "{\"command\":\"echo a >a; echo b >/tmp/b; sleep 60\",\"timeout_ms\":$wall_ms,\"artifacts\":[\"a\",\"/tmp/*\"]}"
	is "$(get '.cause + " " + ([.artifacts[].path] | sort | join(","))')" "wall /tmp/b,a" "$body"
	api POST /v1/run '{"command":"echo c >c; exit 3","artifacts":[]}'
	is "$(get '"\(.exit_code) \(.artifacts | length) \(.files_changed[0].path)"')" "3 0 /home/user/c" "$body"
	api POST /v1/run '{"command":"echo c >c"}'
	is "$(get 'has("artifacts") or has("files_changed")')" false
	api POST /v1/run '{"command":"echo s >s","artifacts":["s"]}' -H 'Accept: application/x-ndjson'
	is "$(jq -r 'select(.type == "exit") | .artifacts[0].text' <body)" s "$body"
}

artifacts_of_control_characters_do_not_inflate_the_answer() {
	api POST /v1/run '{"language":"python","code":"open(\"c.txt\",\"w\").write(\"\\1\" * 1000000)\nopen(\"q.txt\",\"w\").write(chr(34) * 9000)\nopen(\"e.txt\",\"w\").write(\"\\33[1mx\" * 9)","artifacts":["*.txt"]}'
	is "$code" 200
	is "$(get '.artifacts | sort_by(.path) | .[] | [.path, .size, (.text | length), (.base64 | length)] | @json')" '["c.txt",1000000,0,1333336]
["e.txt",45,45,0]
["q.txt",9000,9000,0]' "$(head -c 300 body)"
}

the_number_and_size_of_artifacts_is_bounded_and_patterns_are_checked() {
	api POST /v1/run '{"command":"head -c 9000000 /dev/zero >big; for i in $(seq 70); do echo $i >f$i.dat; done; ln -s /etc/passwd l.dat; mkfifo p.dat; printf x >\"$(printf \"n\\377\\nq.data\")\"; (while :; do date >z; done) &","artifacts":["big","*.dat"]}'
	is "$(get '"\(.artifacts | length) \(.artifacts_truncated)"')" "64 true" "$(get '.artifacts | length')"
	is "$(get '[.artifacts[] | select(.path == "l.dat" or .path == "p.dat")] | length')" 0
	api POST /v1/run '{"command":"head -c 9000000 /dev/zero >big; printf x >\"$(printf \"n\\377\\nq\")\"; echo x >no; chmod 0 no","artifacts":["*"]}'
	is "$(get '.artifacts[] | select(.path == "big") | "\(.size) \(.omitted) \(has("base64"))"')" "9000000 too_large false" "$body"
	is "$(get '.artifacts[] | select(.path_base64) | .path_base64')" "bv8KcQ==" "$body"
	for bad in '"x"' '[1]' '[""]' '["["]' "[\"$(printf 'a%.0s' $(seq 200))\"]" '["a\u0000b"]' \
		'["a","a","a","a","a","a","a","a","a","a","a","a","a","a","a","a","a"]'; do
		api POST /v1/run "{\"command\":\"true\",\"artifacts\":$bad}"
		is "$code" 400 "$bad: $body"
	done
}

the_end_of_a_box_ends_its_output_streams() {
	new_box
	start '{"command":"echo here; sleep 100","background":true}'
	events "$at/output" >got &
	reader=$!
	said() { grep -q here got; }
	soon said
	curl -sS -o waited -H "X-API-Key: $key" "$url$at/wait" &
	waiter=$!
	all_there() { api GET /metrics && [ "$(sed -n 's/^atoll_http_connections //p' body)" -ge 3 ]; }
	soon all_there
	api DELETE "/v1/boxes/$box"
	wait $reader $waiter
	is "$(tail -1 got | jq -r '.type + " " + .cause')" "exit operator"
	# A request after the end of the box is answered with 404.
	case $(jq -r '.cause // .error.code' waited) in operator | not_found) ;; *) fail "$(cat waited)" ;; esac
}

run_daemon_tests
