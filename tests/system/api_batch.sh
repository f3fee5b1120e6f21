#!/bin/sh
# api_batch.sh - /v1/batch and `atoll batch`: how results are compared, what continues after a crash, fairness between
# teams.
. "$(dirname "$0")/daemon.lib"

# send FILE [QUERY]: a batch; the events are in ./events, sets id.
send() {
	curl -sSN --max-time $((120 * time_scale)) -H "X-API-Key: $key" -H 'Content-Type: application/x-ndjson' \
		--data-binary "@$1" -o events "$url/v1/batch${2:-}"
	id=$(jq -r 'select(.type == "batch").id' <events)
}
# of ITEM FILTER: a field of the result of this item.
of() { jq -r "select(.type == \"result\" and .item == $1) | $2" <events; }
end() { jq -r "select(.type == \"end\") | $1" <events; }
state() { api GET "/v1/batch/$id"; get .state; }
is_state() { [ "$(state)" = "$1" ]; }
results() { api GET "/v1/batch/$id"; get .results; }
has_results() { [ "$(results)" -ge "$1" ]; }
# many N CODE: prints N items.
many() { seq 0 $(($1 - 1)) | sed "s/.*/{\"id\":\"i&\",\"command\":\"$2\"}/"; }

items_are_compared_by_output_and_exit_code() {
	cat >items <<-'X'
		{"id":"a","language":"python","code":"print(6*7)","expected":"42"}
		{"id":"b","language":"python","code":"print(6*7)","expected":"43"}
		{"id":"c","language":"python","code":"assert False"}
		{"id":"d","command":"cat; exit 3","stdin":"hello","expected":{"stdout":"hello","exit_code":3}}
		{"id":"e","command":["printf","a  b"],"expected":{"stdout":"a b","compare":"tokens"}}
		{"id":"f","command":["printf","a  b"],"expected":{"stdout":"a b","compare":"trimmed"}}
		{"id":"g","command":["printf","a"],"expected":{"stdout":"a\n","compare":"exact"}}
		{"id":"h","command":"exit 9","expected":{"exit_code":null}}
		{"id":7,"command":["cat","d/x.txt"],"files":{"d/x.txt":"from a file"},"expected":"from a file"}
		{"id":"j","command":"echo $A $0 $1","args":[],"env":{"A":"b"},"expected":"b /bin/bash"}
		{"id":"k","language":"bash","code":"echo $1; wc -c <b","args":["x y"],"files":{"b":{"base64":"AAEC"}},"expected":"x y\n3"}
	X
	send items
	is "$(jq -r .type <events | head -1)" batch
	is "$(jq -r .type <events | tail -1)" end
	is "$(jq -rs '[.[] | select(.type == "result")] | sort_by(.item) | map(.verdict + " " + .cause) | join(",")' <events)" \
		"passed exit,failed stdout,failed exit,passed exit,passed exit,failed stdout,failed stdout,passed exit,passed exit,passed exit,passed exit"
	is "$(jq -rs '[.[] | select(.type == "result").n] | . == [range(1; 12)]' <events)" true "numbers without a gap"
	is "$(of 0 '.id + .stdout + (.stderr | tostring)')" "a42
null" "what passed has no stderr"
	has "$(of 1 .message)" "line 1"
	has "$(of 2 .stderr)" AssertionError
	is "$(of 2 .exit_code)" 1
	is "$(of 8 .id)" 7
	is "$(end '[.items, .results, .passed, .failed, .errors, .state, .causes.stdout] | join(" ")')" "11 11 7 4 0 finished 3"
	api GET /metrics
	has "$body" 'atoll_batch_results_total{verdict="passed"} '
	has "$body" 'atoll_batches 0'
}

items_that_did_not_exit_have_a_cause() {
	cat >items <<-'X'
		{"command":"sleep 60","timeout_ms":200}
		{"language":"python","code":"x = b'x' * (300 << 20)","limits":{"mem":67108864}}
		{"command":"kill -SEGV $$"}
		{"language":"c","code":"int main( {"}
		{"language":"c","code":"#include <stdio.h>\nint main(){puts(\"hi\");}","expected":"hi"}
		{"command":"yes","expected":"y"}
		{"command":["/no/such/program"]}
		{"command":"head -c 100000 /dev/zero | tr '\\0' x"}
		{"command":"printf 'xx\\303\\244\\303\\244'","max_output":5}
		{"command":"printf '\\377'"}
	X
	send items
	is "$(of 0 '.verdict + .cause + .signal + .hint')" "failedwallSIGKILLraise timeouts.run_ms"
	is "$(of 1 '.verdict + .cause')" failedmemory
	is "$(of 2 '.verdict + .cause + .signal')" failedsignalSIGSEGV
	is "$(of 3 '.verdict + .cause + .step')" failedcompilecompile
	has "$(of 3 .stderr)" error
	is "$(of 4 .verdict)" passed
	is "$(of 5 '.verdict + .cause + (.truncated | tostring)')" failedoutputtrue
	is "$(of 6 '.verdict + .cause')" failedexit
	is "$(of 7 '.verdict + (.stdout | length | tostring) + (.truncated | tostring)')" passed16384true
	is "$(of 8 '.stdout + (.truncated | tostring)')" xxätrue "no half characters"
	is "$(of 9 '.stdout + .stdout_encoding')" /w==base64
}

invalid_lines_do_not_stop_the_other_items() {
	{
		echo '{"id":"first","command":"true"}'
		echo 'garbage'
		echo
		printf '\377\376\n'
		echo '{"id":"x","command":"true","comand":"oops"}'
		echo '{"id":"y","language":"klingon","code":"x"}'
		echo '[1]'
		printf '{"id":"big","command":"'; head -c 10000000 /dev/zero | tr '\0' x; printf '"}\n'
		echo '{"id":"twice","command":"true"}'
		printf '{"id":"twice","command":"exit 1"}' # and no newline
	} >items
	send items
	is "$(end '[.items, .passed, .failed, .errors] | join(" ")')" "9 2 1 6"
	is "$(of 1 '.cause + (.line | tostring)')" invalid2
	is "$(of 2 .line)" 4 "empty lines are no items, but they are lines"
	has "$(of 3 '.id + .message')" "xcomand: there is no such field"
	has "$(of 4 '.id + .message')" "ylanguage: 'klingon'"
	has "$(of 6 .message)" "at most"
	is "$(of 7 .verdict)$(of 8 .verdict)" passedfailed "ids are the client's own; two are two"
}

an_empty_batch_is_accepted() {
	: >items
	send items
	is "$(end '[.items, .results, .state] | join(" ")')" "0 0 finished"
	is "$(jq -r .type <events | tr '\n' ' ')" "batch end "
	printf '\n\n' >items
	send items
	is "$(end .items)" 0
}

a_batch_can_be_one_json_document() {
	api POST /v1/batch '{"items":[{"code":"print(1)","expected":"1"},7,{"command":"true"}],"language":"python"}'
	is "$code" 200
	is "$(jq -r 'select(.type == "end") | [.passed, .errors] | join(" ")' <body)" "2 1"
	api POST /v1/batch '{"items":7}'
	is "$code" 400
	api POST /v1/batch '{"item":[]}'
	is "$code" 400
	api POST '/v1/batch?jobs=none' '{"items":[]}'
	is "$code" 400
}

results_can_be_read_again_from_any_item_number() {
	many 5 true >items
	send items
	[ "$(find "$work" -name "$id.*" | wc -l)" = 3 ] || fail "where are its files?"
	api GET "/v1/batch/$id/results?after=3"
	is "$(jq -rs 'map(.type + (.n // "" | tostring)) | join(" ")' <body)" "batch result4 result5 end"
	api GET "/v1/batch/$id/results?after=99"
	is "$(jq -rs 'map(.type) | join(" ")' <body)" "batch end"
	api GET "/v1/batch/$id/results?after=4" '' -H 'Accept: text/event-stream'
	has "$body" "id: 5
data: {\"type\":\"result\",\"n\":5,"
	api GET "/v1/batch/$id"
	is "$(get '.state + (.passed | tostring)')" finished5
	api GET /v1/batch
	is "$(get '.items[0].id')" "$id"
	api DELETE "/v1/batch/$id?forget=1"
	is "$code" 200
	api GET "/v1/batch/$id"
	is "$code" 404
	is "$(find "$work" -name "$id.*")" ""
}

items_are_stored_as_runs_only_with_record_true() {
	many 2 'exit 4' >items
	send items
	api GET /v1/runs
	is "$(get "[.items[] | select(.tag == \"batch-$id\")] | length")" 0
	send items '?record=true'
	api GET /v1/runs
	is "$(get "[.items[] | select(.tag == \"batch-$id\")]"' | map([.command[2], .cause, .status] | join(" ")) | join(",")')" "exit 4 exit 4,exit 4 exit 4"
}

# cached N: N items were taken from the compile cache.
cached() { is "$(jq -rs '[.[] | select(.cached)] | length' <events)" "$1" "compiled before"; }

the_same_source_is_compiled_once_per_team() {
	cat >items <<-'X'
		{"language":"c","code":"#include <stdio.h>\nint main(int n, char **v){int unused; puts(v[n-1]);return n;}","args":["a"],"expected":{"stdout":"a","exit_code":2}}
		{"language":"java","code":"class A { static class B { static String c = \"inner\"; } public static void main(String[] v) { System.out.println(B.c + System.getProperty(\"x\")); } }","expected":"innernull"}
	X
	[ -x /usr/bin/javac ] || sed -i '/"java"/d' items
	n=$(wc -l <items)
	send items
	is "$(end .passed)" "$n"
	cached 0
	send items
	is "$(end .passed)" "$n" "$(cat events)"
	cached "$n"
	sed 's/"a"/"b"/g' items >others # other arguments for the first program, the same source
	send others
	is "$(end .passed)" "$n" "$(cat events)"
	cached "$n"
	sed 's/return n/return 1+n-1/; s/inner/other/g' items >others
	send others
	is "$(end .passed)" "$n" "$(cat events)"
	cached 0
	sed 's/"args"/"env":{"CFLAGS":"-O0"},"args"/; s/"code"/"env":{"Z":"1"},"code"/2' items | head -n 1 >others
	send others
	is "$(end .passed)" 1
	cached 0
	api PUT /v1/teams/umber '{}'
	own=$key
	key=$("$ATOLL" key new u1 --team umber --state "$gateway_state" --quiet)
	send items
	key=$own
	is "$(end .passed)" "$n"
	cached 0
}

a_damaged_cache_entry_is_compiled_again() {
	echo '{"language":"c","code":"int main(){return 0;}"}' >items
	send items
	send items
	cached 1
	for f in $(find "$work" -path "*/made/*"); do
		printf X | dd of="$f" bs=1 seek=100 conv=notrunc 2>/dev/null
	done
	send items
	is "$(end .passed)" 1
	cached 0
	send items
	cached 1
}

compiled_programs_are_not_shared_between_teams() {
	api PUT /v1/teams/red '{}'
	red=$("$ATOLL" key new r1 --team red --state "$gateway_state" --quiet)
	many 1 true >items
	send items
	for path in "/v1/batch/$id" "/v1/batch/$id/results"; do
		is "$(curl -sS -o /dev/null -w '%{http_code}' -H "X-API-Key: $red" "$url$path")" 404
	done
	is "$(curl -sS -o /dev/null -w '%{http_code}' -X DELETE -H "X-API-Key: $red" "$url/v1/batch/$id")" 404
	is "$(curl -sS -o /dev/null -w '%{http_code}' -H "X-API-Key: $viewer" --data-binary '{}' "$url/v1/batch")" 403
}

a_cancelled_batch_leaves_no_boxes() {
	many 50 'sleep 77' >items
	send items >/dev/null 2>&1 &
	sent=$!
	soon grep -q '"batch"' events
	id=$(jq -r .id <events | head -1)
	soon program_runs 'sleep 77'
	api DELETE "/v1/batch/$id"
	is "$(get .state)" cancelled
	wait $sent
	is "$(end .state)" cancelled
	soon no_process 'sleep 77'
	api DELETE "/v1/batch/$id"
	is "$(get .state)" cancelled "again is no harm"
}

a_batch_continues_after_its_client_disconnects() {
	many 30 'sleep 0.05' >items
	curl -sSN -H "X-API-Key: $key" --data-binary @items -o events "$url/v1/batch" &
	curl=$!
	soon grep -q '"result"' events
	kill -9 $curl
	id=$(jq -r .id <events | head -1)
	soon is_state finished
	is "$(results)" 30
	api GET "/v1/batch/$id/results?follow=0"
	is "$(jq -s '[.[] | select(.type == "result").item] | unique | length' <body)" 30
}

with_detach_false_a_disconnect_cancels_the_batch() {
	many 30 'sleep 78' >items
	curl -sSN -H "X-API-Key: $key" --data-binary @items -o events "$url/v1/batch?detach=false" &
	curl=$!
	soon grep -q '"batch"' events
	soon program_runs 'sleep 78'
	kill -9 $curl
	id=$(jq -r .id <events | head -1)
	soon is_state cancelled
	soon no_process 'sleep 78'
}

the_items_of_an_incomplete_upload_are_executed() {
	# Announces more bytes than it sends, and disconnects.
	{
		printf 'POST /v1/batch HTTP/1.1\r\nHost: 127.0.0.1\r\nX-API-Key: %s\r\nContent-Length: 5000\r\n\r\n' "$key"
		many 3 true
		printf '{"id":"half","comm'
	} >request
	/usr/bin/python3 -c '
import socket, sys
s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
s.sendall(open("request", "rb").read())
print(s.recv(4096).decode())
s.close()' "${url##*:}" >answer
	id=$(sed -n 's/.*"type":"batch","id":"\([a-z2-7]*\)".*/\1/p' answer)
	soon is_state finished
	api GET "/v1/batch/$id"
	is "$(get '[.items, .passed, .whole] | map(tostring) | join(" ")')" "3 3 false"
}

a_batch_continues_after_the_server_is_killed() {
	many 60 'sleep 0.05; echo \\"$RANDOM\\"' >items
	curl -sSN -H "X-API-Key: $key" --data-binary @items -o events "$url/v1/batch" &
	soon grep -q '"result"' events
	kill -9 "$(server_pid)"
	wait $! || :
	sed -i '${/}$/!d}' events # a line that was cut
	id=$(jq -r .id <events | head -1)
	seen=$(jq -sr '[.[] | select(.type == "result").n] | max' <events)
	soon grep -q '"n":' events
	soon is_state finished
	is "$(results)" 60
	curl -sSN -H "X-API-Key: $key" "$url/v1/batch/$id/results?after=$seen" >rest
	cat events rest | jq -c 'select(.type == "result")' >all
	is "$(jq -s 'map(.n) | . == [range(1; 61)]' <all)" true "every number once, in order"
	is "$(jq -s 'map(.item) | sort | . == [range(0; 60)]' <all)" true "every item once"
}

a_batch_continues_after_the_keeper_is_killed() {
	many 40 'sleep 0.05' >items
	curl -sSN -H "X-API-Key: $key" --data-binary @items -o events "$url/v1/batch" &
	sent=$!
	soon grep -q '"result"' events
	kill -9 "$("$ATOLL" doctor --json 2>/dev/null | grep -o 'pid [0-9]*' | head -1 | cut -d ' ' -f 2)"
	wait $sent
	is "$(end '[.passed, .results] | join(" ")')" "40 40" "$(jq -c 'select(.verdict == "error")' <events | head -2)"
}

a_large_batch_does_not_delay_the_batch_of_another_team() {
	api PUT /v1/teams/blue '{}'
	blue=$("$ATOLL" key new b1 --team blue --state "$gateway_state" --quiet)
	many 400 'sleep 0.05' >items
	curl -sSN -H "X-API-Key: $key" --data-binary @items -o events "$url/v1/batch" &
	sent=$!
	soon grep -q '"result"' events
	many 8 true >few
	curl -sSN -H "X-API-Key: $blue" --data-binary @few -o theirs "$url/v1/batch"
	is "$(jq -r 'select(.type == "end").passed' <theirs)" 8
	id=$(jq -r .id <events | head -1)
	is "$(state)" running "the large one is not through yet"
	api DELETE "/v1/batch/$id"
	wait $sent
}

each_item_over_the_quota_reports_the_quota() {
	api PUT /v1/teams/poor '{"executions_per_day":3}'
	poor=$("$ATOLL" key new p1 --team poor --state "$gateway_state" --quiet)
	many 5 true >items
	curl -sSN -H "X-API-Key: $poor" --data-binary @items -o events "$url/v1/batch"
	is "$(end '[.passed, .errors, .causes.quota] | join(" ")')" "3 2 2"
}

atoll_batch_prints_failures_and_a_summary() {
	cat >items <<-'X'
		{"id":"good","code":"print(1)","expected":"1"}
		{"id":"bad","code":"raise ValueError(7)"}
	X
	atoll batch -l python -j 2 items
	is "$status" 1 "$err"
	has "$out" "failed  bad  exit  ValueError: 7"
	has "$out" "1 passed, 1 failed: exit 1; 2 programs in"
	lacks "$out" good
	head -1 items >one
	status=0; "$ATOLL" batch --json -l python - <one >out 2>err || status=$?
	is "$status" 0 "$(cat err)"
	is "$(jq -rs 'map(.type) | join(" ")' <out)" "batch result end"
	id=$(jq -r 'select(.type == "batch").id' <out)
	atoll batch --resume "$id" --json
	is "$(jq -rs 'map(.type) | join(" ")' <out)" "result end"
	atoll batch --list
	has "$out" "$id"
	atoll batch --cancel "$id"
	has "$out" "1 passed"
	atoll batch
	is "$status" 2
	has "$err" "batch: missing file"
	atoll batch --list items
	is "$status" 2
	atoll batch no-such-file
	is "$status" 3
	atoll batch --resume aaaaaaaaaaaa
	is "$status" 3
}

atoll_batch_continues_after_the_server_is_killed() {
	many 40 'sleep 0.05' >items
	"$ATOLL" batch --json items >out 2>err &
	sent=$!
	soon grep -q '"result"' out
	kill -9 "$(server_pid)"
	wait $sent || fail "$(cat err)"
	is "$(jq -rs '[.[] | select(.type == "result").item] | sort | . == [range(0; 40)]' <out)" true
	is "$(jq -r 'select(.type == "end").passed' <out)" 40
}

atoll_batch_continues_during_a_reload() {
	many 60 'sleep 0.03' >items
	"$ATOLL" batch --json items >out 2>err &
	sent=$!
	soon grep -q '"result"' out
	kill -HUP "$(cat "$work/supervisor")"
	wait $sent || fail "$(cat err)"
	is "$(jq -rs '[.[] | select(.type == "result").n] | . == [range(1; 61)]' <out)" true
	is "$(jq -rs '[.[] | select(.type == "result").item] | sort | . == [range(0; 60)]' <out)" true
}

# Creating and removing cgroups takes a tenth of the time of a short program.
a_long_batch_reuses_cgroups() {
	[ "${ATOLL_TIER:-container}" = container ] || skip "only boxes without an engine reuse cgroups"
	[ ! -f /sys/fs/cgroup/cgroup.controllers ] || skip "on cgroup v2 each box makes its own"
	pid=$("$ATOLL" doctor --json | grep -o 'pid [0-9]*' | head -1 | cut -d ' ' -f 2)
	parent=$(readlink /proc/$pid/fd/* | grep -x '/sys/fs/cgroup/pids/atoll-[^/]*' | head -1)
	yes '{"language":"python","code":"print(1)"}' | head -100 >items
	send items
	ls "$parent" | grep -E '^[a-z0-9]{12,15}$' >before
	send items
	send items
	is "$(end .passed)" 100 "$(head -3 events)"
	# After 200 boxes the same cgroups exist, not 200 new ones.
	[ "$(ls "$parent" | grep -cFx -f before)" -ge $(($(wc -l <before) / 2)) ] ||
		fail "of $(wc -l <before) $(ls "$parent" | grep -cFx -f before) are left"
}

run_daemon_tests
