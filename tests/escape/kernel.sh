#!/bin/sh
# kernel.sh - which kernel interfaces a box can use.
# tests/unit/seccomp_test.c checks the filter call by call;
# here it is checked that the filter is active for a real program.
. "$(dirname "$0")/lib.sh"
need_keeper

# Escape
system_calls_that_no_box_needs_are_rejected() {
	refused calls
}

# Escape
the_seccomp_filter_is_active() {
	facts switches
	shows seccomp 2
}

# Escape: another ABI has another table of calls, and the filter would use the wrong one
programs_of_another_abi_are_killed() {
	(place=host && cd "$work" && verdicts other-abi && echo "$out") | grep -q ' ok$' ||
		skip "this machine runs no program of another ABI"
	verdicts other-abi
	[ -z "$guest" ] || return 0 # the kernel of the guest may run it
	case $out in *" ok") escaped "it ran" ;; esac
	is "$out" "other-abi killed SIGSYS"
	[ "$(uname -m)" != x86_64 ] || { verdicts x32; [ "$out" = "x32 killed SIGSYS" ] || escaped "$out"; }
}

# Escape
sockets_open_in_four_families_and_few_protocols() {
	facts families
	shows families "1 2 10 16"
	shows netlinks 0
	shows inet "1:0 1:6 2:0 2:1 2:17"
	shows inet6 "1:0 1:6 2:0 2:17 2:58"
}

# Escape: AF_ALG is Copy Fail, AF_VSOCK connects to the hypervisor
dangerous_sockets_do_not_open() {
	refused socket=38,5,0 socket=40,1,0 socket=17,3,0 socket=2,3,1 socket=15,3,2 socket=33,2,10 \
		socket=44,3,0 socket=30,5,0 socket=29,3,1 socket=31,3,1 socket=43,1,0 socket=41,2,0 \
		socket=42,2,0 socket=2,1,132 socket=2,6,33 socket=2,2,136 socket=2,1,262 socket=16,3,9 \
		socket=16,3,12 socket=16,3,6
}

# Escape: the kernel ignores the upper half of an int argument, and so must the filter
the_upper_half_of_a_system_call_argument_bypasses_no_rule() {
	refused socket=38,5,0,1 socket=40,1,0,1 socket=40,1,0,0x80000000 socket=16,3,12,1 type-in=1 \
		console-menu=1 console-take=0x7fffffff clone=0x110000000 mknod-high=/dev/shm/node \
		personality=0x100040000
}

# Escape: in a new user namespace a program has every capability, and reaches most kernel code
no_namespace_can_be_created_or_entered() {
	for flag in 0x10000000 0x20000 0x20000000 0x40000000 0x8000000 0x4000000 0x2000000 0x80; do
		set -- "$@" "unshare=$flag" "clone3=$flag"
		[ $flag = 0x80 ] || set -- "$@" "clone=$flag"
	done
	for ns in user mnt pid net ipc uts cgroup; do
		set -- "$@" "setns=/proc/self/ns/$ns"
	done
	refused "$@"
}

# HostDoS: sync() waits for every disk of the host
sync_does_not_reach_the_hosts_disks() {
	refused sync
}

# Escape: an exploit needs known addresses
address_randomisation_cannot_be_switched_off() {
	refused personality=0x0040000 personality=0x0400000
	facts mounts # a call that is allowed
}

run_tests
