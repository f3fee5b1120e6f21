#!/bin/sh
# cli_streams.sh - stdout carries the program's stdout and nothing else, byte by byte.
. "$(dirname "$0")/lib.sh"
need_keeper

streams_are_not_mixed() {
	run -- sh -c 'echo out; echo err >&2'
	is "$out" out
	is "$err" err
	is "$status" 0
}

bytes_that_are_no_text_pass_unchanged() {
	run -- sh -c 'printf "\377\376\000\001\300\200"'
	is "$(od -An -tx1 out | tr -d ' \n')" fffe0001c080
}

stdin_from_a_pipe_arrives_with_its_end() {
	status=0
	seq 100000 | "$ATOLL" run -- md5sum >out || status=$?
	is "$status" 0
	is "$(cut -c1-32 out)" "$(seq 100000 | md5sum | cut -c1-32)"
}

a_large_stdin_goes_through_and_back() {
	head -c 20000000 /dev/urandom >data
	"$ATOLL" run -- cat <data >back
	cmp data back
}

stdin_that_is_not_read_does_not_block_the_end() {
	status=0
	head -c 10000000 /dev/zero | "$ATOLL" run -- sh -c 'exit 3' || status=$?
	is "$status" 3
}

a_closed_stdin_is_an_empty_one() {
	is "$("$ATOLL" run -- wc -c <&-)" 0
}

a_flood_arrives_whole() {
	is "$("$ATOLL" run -- head -c 300000000 /dev/zero | wc -c)" 300000000
}

a_flood_of_both_streams_arrives_whole() {
	"$ATOLL" run -- sh -c 'head -c 20000000 /dev/zero & head -c 20000000 /dev/zero >&2; wait' >a 2>b
	is "$(cat a b | wc -c)" 40000000
}

a_slow_reader_of_stdout_does_not_stop_stderr() {
	mkfifo p
	"$ATOLL" run -- sh -c 'head -c 10000000 /dev/zero & sleep 0; echo here >&2; wait' >p 2>err &
	cli=$!
	exec 3<p
	soon grep -q here err
	is "$(wc -c <&3)" 10000000
	wait $cli
}

a_reader_that_leaves_ends_the_program_quietly() {
	{ "$ATOLL" run -v -- yes flood-4714 2>err || echo $? >status; } | head -1 >line
	is "$(cat line)" flood-4714
	is "$(cat status)" 141
	box=$(sed -n 's/^atoll: box \([a-z2-7]*\) ready.*/\1/p' err)
	lacks "$(cat err)" "ended by"
	nothing_left flood-4714
}

a_reader_that_leaves_ends_a_program_that_ignores_sigpipe() {
	{ "$ATOLL" run -v -- /usr/bin/python3 -c 'while 1: print("flood-4715")' 2>err || echo $? >status; } | head -1 >line
	is "$(cat status)" 141
	box=$(sed -n 's/^atoll: box \([a-z2-7]*\) ready.*/\1/p' err)
	nothing_left flood-4715
}

a_closed_stdout_is_a_reader_that_left() {
	status=0
	"$ATOLL" run -- sh -c 'echo x; exec sleep 4716' >&- || status=$?
	is "$status" 141
	soon no_process "sleep 4716"
}

a_full_disk_under_stdout_is_our_failure() {
	[ -w /dev/full ] || skip "no /dev/full"
	status=0
	"$ATOLL" run -- echo x >/dev/full 2>err || status=$?
	is "$status" 125
	has "$(cat err)" "write to stdout: No space left"
}

a_program_that_closes_its_stdout_runs_to_its_end() {
	run -- sh -c 'echo before; exec >&- 2>&-; exit 5'
	is "$status" 5
	is "$out" before
}

a_grandchild_that_holds_the_pipe_does_not_hold_the_run() {
	run -- sh -c 'setsid sleep 4717 & echo done'
	is "$status" 0
	is "$out" done
	nothing_left "sleep 4717"
}

json_carries_the_output_in_the_document() {
	atoll run --json -- sh -c 'echo out; printf "\377" >&2; exit 4'
	is "$status" 4
	is "$(json out 'd["stdout"]')" out
	is "$(json out 'd["stderr"] + d["stderr_encoding"]')" "/w==base64"
	is "$(json out 'd["truncated"]')" False
}

json_keeps_a_mebibyte_and_says_so() {
	atoll run --json -- head -c 3000000 /dev/zero
	is "$(json out 'len(d["stdout"]), d["truncated"], d["stdout_bytes"]')" "(1048576, True, 3000000)"
}

run_tests
