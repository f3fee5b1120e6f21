#!/bin/sh
# cli_limits.sh - a program that runs against a limit is stopped there, and the record says which.
. "$(dirname "$0")/lib.sh"
need_keeper

# cause WANT WORD...: runs with a report and checks the cause in it and on stderr.
cause() {
	want=$1
	shift
	run --report r.json "$@"
	is "$(json r.json 'd["cause"]')" "$want" "$err"
	has "$err" "cause=$want]"
}

memory_is_known_by_the_kernels_own_count() {
	cause memory --mem 64M -- /usr/bin/python3 -c 'x = bytearray(256 << 20)'
	is "$status" 137
	has "$err" "memory limit reached: 64 MiB"
	has "$err" "raise: atoll run --mem 128M"
	[ "$(json r.json 'd["evidence"]["oom_kills"]')" -ge 1 ]
	nothing_left
}

a_waiting_box_can_be_given_more_memory_than_it_had() {
	for i in 1 2 3; do
		run --mem 700M -- /usr/bin/python3 -c 'x = bytearray(600 << 20); print(len(x) >> 20)'
		is "$out" 600 "$err"
	done
}

a_child_out_of_memory_is_known_too() {
	cause memory --mem 64M -- sh -c '/usr/bin/python3 -c "x = bytearray(256 << 20)"; exit 9'
	is "$status" 9
}

a_fork_bomb_stays_in_its_box() {
	cause processes --pids 50 --time 20s -- /usr/bin/python3 -c '
import os, time
while True:
    if os.fork() == 0:
        time.sleep(4718)'
	is "$(json r.json 'd["evidence"]["pids_hits"] > 0')" True
	has "$err" "process limit reached: 50"
	nothing_left 4718
}

a_fork_bomb_that_never_gives_up_ends_with_its_time() {
	run --pids 40 --time 1s -- /usr/bin/python3 -c '
import os
while True:
    try:
        os.fork()
    except OSError:
        pass' bomb-4719
	is "$status" 124
	nothing_left bomb-4719
}

# As in the setting box.disk: what a box gets that asked for nothing.
no_disk_size_is_half_of_the_memory_and_at_most_256_mib() {
	size() { run "$@" -- sh -c 'echo $(($(stat -f -c "%b * %S" .) >> 20))'; is "$status" 0 "$err"; }
	size --disk none
	is "$out" 256
	size --mem 100M --disk 8M --disk none
	is "$out" 50
	size --disk none --disk 8M
	is "$out" 8
}

a_full_disk_is_known() {
	cause disk --disk 8M -- sh -c 'head -c 20000000 /dev/zero >big'
	has "$err" "disk limit reached: 8 MiB"
	nothing_left
}

too_many_files_are_known() {
	cause disk --files 500 -- /usr/bin/python3 -c '
for i in range(1000000):
    open(f"f{i}", "w").close()'
	has "$err" "file limit reached: 500"
	is "$(json r.json 'd["evidence"]["files_free"]')" 0
	nothing_left
}

a_million_files_and_their_box_are_gone_soon() {
	run --files 200000 --disk 256M -- /usr/bin/python3 -c '
try:
    for i in range(1000000):
        open(f"f{i}", "w").close()
except OSError:
    pass'
	is "$status" 0
	nothing_left
}

a_deep_tree_and_its_box_are_gone_soon() {
	run -- /usr/bin/python3 -c '
import os
for i in range(3000):
    os.mkdir("d")
    os.chdir("d")
print("deep")'
	is "$out" deep
	nothing_left
}

the_time_limit_is_known() {
	cause wall --time 300ms -- sleep 4720
	is "$status" 124
	nothing_left "sleep 4720"
}

cpu_time_of_all_processes_is_known() {
	cause cpu --cpu-time 300ms --time 20s -- sh -c 'while :; do :; done & while :; do :; done'
	has "$err" "CPU time limit reached: 300 ms"
	nothing_left
}

half_a_cpu_is_half_a_cpu() {
	run --cpu 0.5 --report r.json --time 600ms -- sh -c 'while :; do :; done'
	[ "$(json r.json 'd["cpu_s"] < 0.45')" = True ] || fail "$(json r.json 'd["cpu_s"]') s of 0.6 s"
}

a_refused_system_call_is_no_death_but_an_error() {
	run -- /usr/bin/python3 -c '
import ctypes, os
print(ctypes.CDLL(None, use_errno=True).syscall(425, 1, 0) < 0)'
	is "$status" 0
	is "$out" True
}

a_death_by_sigsys_is_policy() {
	cause policy -- sh -c 'kill -SYS $$'
	is "$status" 159
}

a_limit_out_of_range_is_refused_with_the_range() {
	run --mem 1k -- true
	is "$status" 2
	has "$err" "memory limit of 1024: from 4194304"
	run --pids 2000000000 -- true
	is "$status" 2
}

a_symlink_or_proc_trick_of_the_program_reaches_nothing_outside() {
	run -- sh -c 'ln -s /proc/1/root escape; cat escape/etc/shadow; cat /proc/1/environ; ls /proc/1/fd' 
	[ "$status" != 0 ] || fail "it could: $out"
	lacks "$out" root:
	nothing_left
}

run_tests
