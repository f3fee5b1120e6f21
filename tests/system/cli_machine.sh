#!/bin/sh
# cli_machine.sh - the verbs around a run: ps, kill, doctor, policy, bench, version, help.
. "$(dirname "$0")/lib.sh"
need_keeper

version_says_which() {
	atoll version
	has "$out" "atoll 0."
	atoll --version
	has "$out" "atoll 0."
	is "$("$ATOLL" version --json | cut -c1-12)" '{"version":"'
}

help_explains_every_verb() {
	for v in run shell ps kill doctor policy config bench completion version help; do
		atoll help $v
		is "$status" 0
		has "$out" "atoll $v"
		short=$("$ATOLL" $v -h)
		has "$short" --json
	done
}

examples_of_run_are_flags_that_exist() {
	"$ATOLL" run -h | sed -n 's/^  atoll run \(.*\)/\1/p' | grep -o -e '--[a-z-]*' | sort -u | while read -r f; do
		[ "$f" = -- ] || "$ATOLL" run -h | grep -q -e "$f"
	done
}

ps_lists_a_box_until_it_is_gone() {
	is "$("$ATOLL" ps)" ""
	"$ATOLL" run -q -- sleep 4730 &
	cli=$!
	soon eval '"$ATOLL" ps | grep -q base'
	box=$("$ATOLL" ps -q)
	is "$("$ATOLL" ps --json | /usr/bin/python3 -c 'import json, sys; print(json.load(sys.stdin)[0]["id"])')" "$box"
	"$ATOLL" kill -q "$box"
	wait $cli || :
	is "$("$ATOLL" ps -q)" ""
	nothing_left "sleep 4730"
}

kill_all_ends_all() {
	"$ATOLL" run -q -- sleep 4731 & one=$!
	"$ATOLL" run -q -- sleep 4731 & two=$!
	soon eval '[ "$("$ATOLL" ps -q | wc -l)" = 2 ]'
	atoll kill --all
	is "$status" 0
	wait $one || :
	wait $two || :
	soon no_process "sleep 4731"
}

a_box_that_is_not_there_is_3() {
	atoll kill aaaaaaaaaaaa
	is "$status" 3
	has "$err" "no box named 'aaaaaaaaaaaa'"
}

doctor_has_one_line_per_question() {
	atoll doctor
	is "$status" 0 "$out"
	has "$out" "user namespaces"
	has "$out" "seccomp"
	atoll doctor --json
	is "$(json out 'len(d) > 10 and all(r["status"] in ("ok", "warn", "fail") for r in d)')" True
}

policy_prints_the_tables() {
	atoll policy
	has "$out" "system calls"
	has "$out" io_uring_setup
	has "$out" /proc/kcore
	atoll policy seccomp --json
	is "$(json out '[r["what"] for r in d["seccomp"] if r["name"] == "clone3"]')" "['not there']"
}

bench_measures_a_process_and_three_boxes() {
	atoll bench -n 3 --json
	is "$status" 0 "$err"
	is "$(json out 'sorted(d)')" "['cold', 'exec', 'pooled', 'process']"
}

run_tests
