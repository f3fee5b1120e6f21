#!/bin/sh
# automatic_checkpoints.sh - checkpoints before programs, cells and calls of tools, and of an interval.
. "$(dirname "$0")/daemon.lib"
[ "${ATOLL_TIER:-container}" = container ] || { echo "1..0 # SKIP only boxes without an engine have checkpoints"; exit 0; }
config=$work/config.toml
echo '[limits]
checkpoint_wait = "10m"' >"$config" # a busy machine must not decide whether a step has a checkpoint
chmod a+r "$config"

runs() { # COMMAND: in $box; sets before
	api POST "/v1/boxes/$box/execs" "$(jq -nc --arg c "$1" '{command:$c}')"
	is "$code" 200 "$body"
	before=$(get .checkpoint_before)
}
listed() { # prints the reasons, newest first
	api GET "/v1/boxes/$box/checkpoints"
	get '[.items[].reason] | join(" ")'
}

a_step_is_undone_by_its_checkpoint() {
	new_box '{"checkpoints":{"auto":"exec"}}'
	is "$(get '.checkpoints | [.auto,.interval_ms,.keep] | join(" ")')" "exec 0 20" "$body"
	runs 'echo 1 >f'
	first=$before
	runs 'cat f; rm f; echo x >new'
	is "$(get .stdout)" 1
	run=$(get .id)
	api GET "/v1/runs/$run"
	is "$(get .checkpoint_before)" "$before" "$body"
	[ "$before" != "$first" ] || is "$before" "another checkpoint than $first"
	api GET "/v1/checkpoints/$before"
	is "$(get '[.reason,.parent] | join(" ")')" "exec $first" "$body"
	api POST "/v1/boxes/$box/rollback" "{\"to\":\"$before\"}"
	is "$code" 200 "$body"
	runs 'cat f; ls'
	is "$(get .stdout)" "1
f"
	api DELETE "/v1/boxes/$box"
}

indexes() { find "$state/checkpoints/index" -type f | wc -l; }
nothing_is_added_if_nothing_has_changed() {
	had=$(indexes)
	new_box '{"checkpoints":{"auto":"exec"}}'
	runs 'echo 1 >f'
	runs 'cat f'
	two=$before
	for each in 1 2 3; do
		runs 'cat f'
		is "$before" "$two"
	done
	is "$(listed)" "exec exec"
	api POST "/v1/boxes/$box/checkpoints" '{}' # on request there is one in any case
	is "$(get '[.same_as, .files.bytes < 100000] | join(" ")')" "$two true" "$body"
	same=$(get .id)
	[ ! -e "$state/checkpoints/layers/$same.erofs" ] || is "layers/$same.erofs" "no layer"
	only_three() { [ "$(indexes)" = $((had + 3)) ]; }
	soon only_three # the indexes of those without changes were removed
	api DELETE "/v1/boxes/$box"
}

without_the_field_there_are_none() {
	new_box
	is "$(get .checkpoints.auto)" off "$body"
	runs 'echo 1 >f'
	is "$(get 'has("checkpoint_before")')" false "$body"
	is "$(listed)" ""
	api PATCH "/v1/boxes/$box" '{"checkpoints":{"auto":"exec","keep":3}}'
	is "$(get '.checkpoints | [.auto,.keep] | join(" ")')" "exec 3" "$body"
	runs 'echo 2 >f'
	is "$(listed)" exec
	api PATCH "/v1/boxes/$box" '{"checkpoints":{"auto":"off"}}'
	is "$(get '.checkpoints | [.auto,.keep] | join(" ")')" "off 3" "$body"
	runs 'echo 3 >f'
	is "$(listed)" exec
	api DELETE "/v1/boxes/$box"
}

each_kind_of_step_has_its_own_word() {
	new_box '{"checkpoints":{"auto":"tool"}}'
	runs 'echo 1 >f' # not a tool
	is "$before" null
	api POST "/v1/boxes/$box/tools/write_file" '{"path":"f","content":"2"}'
	is "$code" 200 "$body"
	tool=$(get .data.checkpoint_before)
	api POST "/v1/boxes/$box/tools/read_file" '{"path":"f"}' # changes nothing
	is "$(get '.data | has("checkpoint_before")')" false "$body"
	api POST "/v1/boxes/$box/tools/run_command" '{"command":"cat f; echo 3 >f"}'
	is "$(get '.data.checkpoint_before != null')" true "$body"
	is "$(listed)" "tool tool"
	api POST "/v1/boxes/$box/rollback" "{\"to\":\"$tool\"}"
	api PATCH "/v1/boxes/$box" '{"checkpoints":{"auto":"cell"}}'
	runs 'cat f; echo 4 >f'
	is "$(get .stdout)" 1
	api POST "/v1/boxes/$box/cells" '{"language":"bash","code":"cat f; echo 5 >f"}'
	is "$code $(get .stdout)" "200 4" "$body"
	cell=$(get .checkpoint_before)
	api GET "/v1/checkpoints/$cell"
	is "$(get .reason)" cell "$body"
	api DELETE "/v1/boxes/$box"
}

a_step_beside_another_one_has_none() {
	new_box '{"checkpoints":{"auto":"exec"}}'
	runs 'mkfifo gate; touch changed'
	curl -sS -H "X-API-Key: $key" -H 'Content-Type: application/json' -d '{"command":"echo >began; read x <gate"}' \
		"$url/v1/boxes/$box/execs" >first &
	began() { api GET "/v1/boxes/$box/files?path=began" && [ "$code" = 200 ]; }
	soon began
	runs 'echo >gate'
	is "$(get '[.checkpoint_before, .checkpoint_skipped[:5]] | join(" ")')" " busy:" "$body"
	wait $!
	is "$(jq '.checkpoint_before != null' <first)" true "$(cat first)"
	api POST "/v1/boxes/$box/execs" '{"command":"touch more; exec sleep 100","background":true}'
	runs true # a program in the background does not count
	is "$(get '.checkpoint_before != null')" true "$body"
	api DELETE "/v1/boxes/$box"
}

old_ones_are_deleted_first() {
	new_box '{"checkpoints":{"auto":"exec","keep":2}}'
	runs 'echo 0 >f'
	first=$before
	api PATCH "/v1/checkpoints/$first" '{"pin":true}'
	for each in 1 2 3 4; do runs "echo $each >f"; done
	is "$(listed)" "exec exec exec"
	api GET "/v1/checkpoints/$first"
	is "$code" 200
	api POST "/v1/boxes/$box/rollback" "{\"to\":\"$before\"}"
	runs 'cat f'
	is "$(get .stdout)" 3
	api DELETE "/v1/boxes/$box"
}

an_interval_takes_them_while_programs_run() {
	new_box '{"checkpoints":{"interval_ms":1000}}'
	api POST "/v1/boxes/$box/execs" '{"command":"echo 1 >f; exec sleep 1000","background":true}'
	one_is_there() { [ "$(listed)" = interval ]; }
	soon one_is_there
	api DELETE "/v1/boxes/$box"
}

programs_take_them_where_the_box_allows_it() {
	new_box '{"checkpoints":{"self":true}}'
	is "$(get .checkpoints.self)" true "$body"
	runs 'echo 1 >f; checkpoint first; cat f'
	is "$(get .exit_code)" 0 "$body"
	first=$(get .stdout | head -1)
	api GET "/v1/checkpoints/$first"
	is "$(get '[.name,.reason,.memory] | join(" ")')" "first program " "$body"
	runs 'echo 2 >f; /opt/atoll/bin/checkpoint >/dev/null; echo 3 >f'
	is "$(listed)" "program program"
	api POST "/v1/boxes/$box/rollback" '{"to":"first"}'
	is "$code" 200 "$body"
	runs 'cat f; checkpoint third >/dev/null; echo $?' # another generation has another network
	is "$(get .stdout)" "1
0" "$body"
	runs 'checkpoint first; echo $?'
	is "$(get .stdout)" 1 "$body"
	case $(get .stderr) in *"first"*) ;; *) is "$body" "the name that exists" ;; esac
	runs 'checkpoint "a b"; checkpoint -x; checkpoint a b; echo $?'
	is "$(get .stdout)" 2 "$body"
	case $(get .stderr) in *"not a name"*usage:*usage:*) ;; *) is "$body" "rejected" ;; esac
	api DELETE "/v1/boxes/$box"
}

programs_of_a_box_cannot_take_many() {
	new_box '{"checkpoints":{"self":true,"keep":2}}'
	runs 'for i in $(seq 40); do echo $i >f; checkpoint n$i >/dev/null || exit 3; done'
	is "$(get .exit_code)" 3 "$body"
	case $(get .stderr) in *"one checkpoint per second"*"try again in "*" ms"*) ;; *) is "$body" "limited" ;; esac
	is "$(listed)" "program program" # a name does not keep them: keep does
	# Lines that are too long, and connections without a line.
	runs 'python3 -c "
import socket
def ask(data):
	s = socket.create_connection((\"127.0.0.1\", 3129))
	s.sendall(data)
	return s.recv(1000)
print(ask(b\"x\" * 100)[:20], ask(b\"\\0\\n\")[:3], ask(b\"../x\\n\")[:10])
idle = [socket.create_connection((\"127.0.0.1\", 3129)) for i in range(100)]
"'
	is "$(get .stdout)" "b'the name is longer t' b'not' b'not a name'" "$body"
	api GET /healthz
	is "$code" 200
	api DELETE "/v1/boxes/$box"
}

programs_of_other_boxes_take_none() {
	new_box
	runs 'checkpoint; echo $?'
	is "$(get .stdout)" 1 "$body"
	case $(get .stderr) in *"checkpoints.self"*) ;; *) is "$body" "the field" ;; esac
	is "$(listed)" ""
	ATOLL_HOST=unix:$sock "$ATOLL" set "$box" --checkpoints self >/dev/null || is "set" "done"
	runs 'checkpoint >/dev/null; echo $?'
	is "$(get .stdout)" 0 "$body"
	api PATCH "/v1/boxes/$box" '{"checkpoints":{"self":false}}'
	closed() { runs 'python3 -c "import socket; socket.create_connection((\"127.0.0.1\", 3129))" 2>/dev/null; echo $?' && [ "$(get .stdout)" = 1 ]; }
	soon closed
	api DELETE "/v1/boxes/$box"
}

a_late_one_does_not_delay_the_program() {
	echo '[limits]
checkpoint_wait = "none"' >"$config"
	old=$(server_pid)
	kill -HUP "$supervisor"
	is_replaced() { now=$(server_pid) && [ "$now" ] && [ "$now" != "$old" ] && api GET /healthz && [ "$code" = 200 ]; }
	soon is_replaced
	new_box '{"checkpoints":{"auto":"exec"}}'
	for i in 1 2 3 4 5 6; do # one may be complete at once, and is not late
		runs "echo $i >f"
		[ "$(get .checkpoint_before)" != null ] || break
	done
	is "$(get '[.checkpoint_before, .checkpoint_skipped[:5]] | join(" ")')" " late:" "$body"
	api GET "/v1/runs/$(get .id)"
	is "$(get '.checkpoint_skipped[:5]')" late: "$body"
	api DELETE "/v1/boxes/$box"
}

bad_values_are_rejected() {
	for bad in '{"auto":"always"}' '{"auto":7}' '{"keep":0}' '{"keep":1001}' '{"interval_ms":999}' '{"interval_ms":-1}' '{"track":1}' '{"self":1}' '[]' '"exec"'; do
		api POST /v1/boxes "{\"checkpoints\":$bad}"
		is "$code" 400 "$bad: $body"
	done
	new_box
	api PATCH "/v1/boxes/$box" '{"checkpoints":{"interval_ms":1}}'
	is "$code" 400 "$body"
	own=$key key=$viewer
	api PATCH "/v1/boxes/$box" '{"checkpoints":{"auto":"exec"}}'
	key=$own
	is "$code" 403 "$body"
	api DELETE "/v1/boxes/$box"
}

run_daemon_tests --config "$config"
