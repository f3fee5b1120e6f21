#!/bin/sh
# cli_status.sh - the exit status of a run is that of the program, or the documented one of its cause.
. "$(dirname "$0")/lib.sh"
need_keeper

run_returns_the_exit_status_of_the_program() {
	for want in 0 1 7 124 125 255; do
		run -- sh -c "exit $want"
		is "$status" $want
		is "$err" ""
	done
	nothing_left
}

a_signal_is_status_128_plus_its_number() {
	run -- sh -c 'kill -SEGV $$'
	is "$status" 139
	has "$err" "atoll: ended by SIGSEGV"
	has "$err" "[exit 139, cause=signal]"
}

the_wall_limit_is_status_124() {
	run --time 200ms -- sleep 4711
	is "$status" 124
	has "$err" "time limit reached: 200 ms"
	has "$err" "raise: atoll run --time"
	nothing_left "sleep 4711"
}

a_missing_command_is_status_127() {
	run -- nosuch-program
	is "$status" 127
	has "$err" "cannot execute 'nosuch-program': No such file"
	run -- /nosuch/program
	is "$status" 127
	nothing_left
}

a_file_that_is_not_executable_is_status_126() {
	run -- /etc/passwd
	is "$status" 126
	has "$err" "Permission denied"
}

a_program_that_dies_at_once_has_its_status_and_output() {
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		run -- sh -c 'echo last output; kill -KILL $$'
		is "$status" 137
		is "$out" "last output"
	done
	nothing_left
}

ten_megabytes_of_arguments_are_rejected_with_a_message() {
	# Rejected by the kernel or by the CLI: in both cases status 126 and a reason.
	status=0
	(ulimit -s unlimited && "$ATOLL" run -- true $(seq 1400000)) 2>err || status=$?
	is "$status" 126
	grep -q -e "too long" -e "at most" err
}

a_hundred_kilobytes_of_arguments_arrive() {
	long=$(head -c 100000 /dev/zero | tr '\0' x)
	run -- sh -c 'echo ${#1} ${#2} $#' sh "$long" "$long" c
	is "$status" 0 "$err"
	is "$out" "100000 100000 3"
}

two_megabytes_of_arguments_arrive_or_are_refused_by_execve() {
	run -- sh -c 'echo $#' $(seq 250000)
	[ "$status" = 0 ] || [ "$status" = 126 ] || fail "status $status: $err"
	[ "$status" = 126 ] || is "$out" 249999
}

a_binary_of_a_foreign_architecture_is_status_126() {
	# The head of a program for another machine: e_machine is 8 (MIPS).
	printf '\177ELF\2\1\1\0\0\0\0\0\0\0\0\0\2\0\10\0\1\0\0\0' >foreign
	head -c 4096 /dev/zero >>foreign
	run foreign
	is "$status" 126
	has "$err" "cannot execute"
	has "$err" "$(uname -m)"
	nothing_left
}

the_cli_killed_by_a_signal_leaves_nothing() {
	"$ATOLL" run -v -- sleep 4712 2>err &
	cli=$!
	soon grep -q ready err
	box=$(sed -n 's/^atoll: box \([a-z2-7]*\) ready.*/\1/p' err)
	# In a guest the program is no process of the host.
	if has_guest; then soon program_runs; else soon eval '[ "$(processes "sleep 4712" | wc -l)" -ge 2 ]'; fi
	kill -KILL $cli
	wait $cli 2>/dev/null || :
	nothing_left "sleep 4712"
}

the_end_of_a_killed_box_is_reported_and_it_leaves_nothing() {
	"$ATOLL" run -v -- sleep 4713 2>err &
	cli=$!
	soon grep -q ready err
	box=$(sed -n 's/^atoll: box \([a-z2-7]*\) ready.*/\1/p' err)
	is "$("$ATOLL" kill "$box")" "$box"
	status=0
	wait $cli || status=$?
	is "$status" 137
	has "$(cat err)" "cause=operator"
	nothing_left "sleep 4713"
}

run_tests
