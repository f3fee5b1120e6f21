#!/bin/sh
# cli_limits.sh - a program that exceeds a limit is stopped, and the record names the limit.
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

out_of_memory_is_detected_by_the_kernel_counter() {
	cause memory --mem 64M -- /usr/bin/python3 -c 'x = bytearray(256 << 20)'
	is "$status" 137
	has "$err" "memory limit reached: 64 MiB"
	has "$err" "raise: atoll run --mem 128M"
	[ "$(json r.json 'd["evidence"].get("guest", d["evidence"])["oom_kills"]')" -ge 1 ] || fail "$(cat r.json)"
	nothing_left
}

the_memory_limit_of_a_pooled_box_can_be_raised() {
	for i in 1 2 3; do
		run --mem 700M -- /usr/bin/python3 -c 'x = bytearray(600 << 20); print(len(x) >> 20)'
		is "$out" 600 "$err"
	done
}

an_oom_kill_of_a_child_is_reported() {
	cause memory --mem 64M -- sh -c '/usr/bin/python3 -c "x = bytearray(256 << 20)"; exit 9'
	is "$status" 9
}

a_fork_bomb_stays_in_its_box() {
	cause processes --pids 50 --time 60s -- /usr/bin/python3 -c '
import os, time
while True:
    if os.fork() == 0:
        time.sleep(4718)'
	is "$(json r.json 'd["evidence"].get("guest", d["evidence"])["pids_hits"] > 0')" True
	has "$err" "process limit reached: 50"
	nothing_left 4718
}

a_persistent_fork_bomb_ends_at_the_wall_limit() {
	wall=1s
	[ "${ATOLL_TIER-}" != gvisor ] || wall=20s # so that a busy machine, too, reaches the process limit first (docs/tiers.md, "Differences")
	run --pids 40 --time $wall -- /usr/bin/python3 -c '
import os
while True:
    try:
        os.fork()
    except OSError:
        pass' bomb-4719
	is "$status" 124
	nothing_left bomb-4719
}

# As the setting box.disk documents: the disk of a box without --disk.
the_default_disk_is_half_of_the_memory_and_at_most_256_mib() {
	size() { run "$@" -- sh -c 'echo $(($(stat -f -c "%b * %S" .) >> 20))'; is "$status" 0 "$err"; }
	size --disk none
	is "$out" 256
	size --mem 100M --disk 8M --disk none
	is "$out" 50
	size --disk none --disk 8M
	is "$out" 8
}

a_full_disk_is_reported() {
	cause disk --disk 8M -- sh -c 'head -c 20000000 /dev/zero >big'
	has "$err" "disk limit reached: 8 MiB"
	nothing_left
}

too_many_files_are_reported() {
	cause disk --files 500 -- /usr/bin/python3 -c '
for i in range(1000000):
    open(f"f{i}", "w").close()'
	has "$err" "file limit reached: 500"
	is "$(json r.json 'd["evidence"]["files_free"]')" 0
	nothing_left
}

a_box_with_a_million_files_is_deleted_soon() {
	files=200000
	[ "${ATOLL_TIER-}" != microvm ] || files=20000 # memory of the guest, which the host does not search; an emulated guest makes few in a second
	run --files $files --disk 256M -- /usr/bin/python3 -c '
try:
    for i in range(1000000):
        open(f"f{i}", "w").close()
except OSError:
    pass'
	is "$status" 0
	nothing_left
}

a_box_with_a_deep_tree_is_deleted_soon() {
	run -- /usr/bin/python3 -c '
import os
for i in range(3000):
    os.mkdir("d")
    os.chdir("d")
print("deep")'
	is "$out" deep
	nothing_left
}

the_wall_limit_is_reported() {
	cause wall --time 300ms -- sleep 4720
	is "$status" 124
	nothing_left "sleep 4720"
}

cpu_time_includes_all_processes() {
	cause cpu --cpu-time 300ms --time 20s -- sh -c 'while :; do :; done & while :; do :; done'
	has "$err" "CPU time limit reached: 300 ms"
	nothing_left
}

half_a_cpu_limits_cpu_time_to_half_of_the_wall_time() {
	run --cpu 0.5 --report r.json --time 600ms -- sh -c 'while :; do :; done'
	[ "$(json r.json 'd["cpu_s"] < 0.75e-6 * d["timings"]["run_us"]')" = True ] || fail "$(json r.json 'd["cpu_s"], d["timings"]')"
}

a_filtered_system_call_returns_an_error_and_does_not_kill() {
	run -- /usr/bin/python3 -c '
import ctypes, os
print(ctypes.CDLL(None, use_errno=True).syscall(425, 1, 0) < 0)'
	is "$status" 0
	is "$out" True
}

death_by_sigsys_has_cause_policy() {
	cause policy -- sh -c 'kill -SYS $$'
	is "$status" 159
}

a_limit_out_of_range_is_rejected_with_the_range() {
	run --mem 1k -- true
	is "$status" 2
	if has_guest; then # its kernel needs more
		has "$err" "memory limit of 1024: a box of the isolation tier $ATOLL_TIER has at least"
	else
		has "$err" "memory limit of 1024 is not between 4194304"
	fi
	run --pids 2000000000 -- true
	is "$status" 2
}

symlinks_and_proc_paths_of_the_program_do_not_reach_the_host() {
	run -- sh -c 'ln -s /proc/1/root escape; cat escape/etc/shadow; cat /proc/1/environ; ls /proc/1/fd'
	# In a guest these are processes of its own kernel, and gVisor lists their descriptors to every user.
	[ "$status" != 0 ] || has_guest || fail "it could: $out"
	lacks "$out" root:
	lacks "$out" PATH=
	nothing_left
}

run_tests
