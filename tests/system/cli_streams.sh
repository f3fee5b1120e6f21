#!/bin/sh
# cli_streams.sh - stdout has exactly the bytes of the program's stdout.
. "$(dirname "$0")/lib.sh"
need_keeper

stdout_and_stderr_are_not_mixed() {
	run -- sh -c 'echo out; echo err >&2'
	is "$out" out
	is "$err" err
	is "$status" 0
}

bytes_that_are_not_text_pass_unchanged() {
	run -- sh -c 'printf "\377\376\000\001\300\200"'
	is "$(od -An -tx1 out | tr -d ' \n')" fffe0001c080
}

stdin_and_its_end_are_passed_from_a_pipe() {
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

unread_stdin_does_not_delay_the_exit() {
	status=0
	head -c 10000000 /dev/zero | "$ATOLL" run -- sh -c 'exit 3' || status=$?
	is "$status" 3
}

a_closed_stdin_is_an_empty_stdin() {
	is "$("$ATOLL" run -- wc -c <&-)" 0
}

a_large_stdout_arrives_complete() {
	is "$("$ATOLL" run -- head -c 300000000 /dev/zero | wc -c)" 300000000
}

large_stdout_and_stderr_arrive_complete() {
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

a_closed_stdout_pipe_ends_the_program_without_a_message() {
	{ "$ATOLL" run -v -- yes flood-4714 2>err || echo $? >status; } | head -1 >line
	is "$(cat line)" flood-4714
	is "$(cat status)" 141
	box=$(sed -n 's/^atoll: box \([a-z2-7]*\) ready.*/\1/p' err)
	lacks "$(cat err)" "ended by"
	nothing_left flood-4714
}

a_closed_stdout_pipe_ends_a_program_that_ignores_sigpipe() {
	{ "$ATOLL" run -v -- /usr/bin/python3 -c 'while 1: print("flood-4715")' 2>err || echo $? >status; } | head -1 >line
	is "$(cat status)" 141
	box=$(sed -n 's/^atoll: box \([a-z2-7]*\) ready.*/\1/p' err)
	nothing_left flood-4715
}

a_closed_stdout_is_handled_like_a_closed_pipe() {
	status=0
	"$ATOLL" run -- sh -c 'echo x; exec sleep 4716' >&- || status=$?
	is "$status" 141
	soon no_process "sleep 4716"
}

a_full_disk_of_stdout_is_status_125() {
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

a_grandchild_that_holds_the_pipe_open_does_not_delay_the_exit() {
	run -- sh -c 'setsid sleep 4717 & echo done'
	is "$status" 0
	is "$out" done
	nothing_left "sleep 4717"
}

run_json_has_the_output_in_the_document() {
	atoll run --json -- sh -c 'echo out; printf "\377" >&2; exit 4'
	is "$status" 4
	is "$(json out 'd["stdout"]')" out
	is "$(json out 'd["stderr"] + d["stderr_encoding"]')" "/w==base64"
	is "$(json out 'd["truncated"]')" False
}

run_json_truncates_output_to_one_mebibyte_and_marks_it() {
	atoll run --json -- head -c 3000000 /dev/zero
	is "$(json out 'len(d["stdout"]), d["truncated"], d["stdout_bytes"]')" "(1048576, True, 3000000)"
}

run_tests
