#!/bin/sh
# root.sh - root of a box has rights over the files of the box, and over nothing else.
. "$(dirname "$0")/lib.sh"
need_keeper

# Escape
root_of_a_box_has_only_eight_capabilities() {
	as_root
	facts uid groups caps switches
	shows uid "0 0 0"
	shows groups ""
	shows effective 0000004fb # chown dac_override fowner fsetid kill setgid setuid net_bind_service
	shows permitted 0000004fb
	shows bounding 0000004fb
	shows inheritable 000000000
	shows ambient 000000000
	shows no_new_privs 1
	shows seccomp 2
}

# Escape
root_of_a_box_is_an_unprivileged_user_of_the_host() {
	as_root
	held 8 a
	read -r _ base _ <"/proc/$init/uid_map"
	uid=$(sed -n 's/^Uid:\t\([0-9]*\).*/\1/p' "/proc/$program/status")
	[ "$uid" -ge 65536 ] || escaped "it is $uid of the host"
	[ "$guest" ] || is "$uid" "$base"
	freed 8 a
}

# Escape: these files belong to root of the user namespace, which root of the box is
root_of_a_box_cannot_write_kernel_settings() {
	as_root
	refused write=/proc/sys/net/ipv4/ip_forward write=/proc/sys/kernel/core_pattern \
		write=/proc/sys/kernel/hostname write=/proc/sys/kernel/shmmax write=/proc/sys/user/max_user_namespaces \
		write=/proc/sys/vm/drop_caches write=/proc/sysrq-trigger write=/proc/irq/default_smp_affinity
}

# HostDoS
root_of_a_box_cannot_lower_its_oom_score() {
	as_root
	facts oom
	shows oom_score_adj 500
	refused write=/proc/self/oom_score_adj write=/proc/self/oom_adj write=/proc/thread-self/oom_score_adj
}

# HostLeak
root_of_a_box_cannot_read_masked_paths() {
	as_root
	policy masks 'r["what"] == "hidden" and r["name"] or ""' | grep . >all
	refused $(while read -r at; do [ -d "$at" ] && echo "list=$at" || echo "read=$at"; done <all)
}

# Escape
root_of_a_box_cannot_mount_chroot_or_enter_namespaces() {
	as_root
	refused mount bind=/usr remount=/usr umount=/proc/cmdline pivot chroot=/home/user nested calls sync \
		mknod-char=node mknod-block=node mknod-whiteout=/dev/shm/node unshare=0x10000000 \
		unshare=0x40000000 clone=0x20000 clone3=0x10000000 setns=/proc/self/ns/net host-name=x \
		create=/usr/x touch=/usr/bin/env chmod=/usr/bin/env write=/usr/bin/env create=/dev/x create=/sys/x \
		socket=17,3,0 socket=2,3,1 socket=38,5,0 socket=40,1,0,1 "key=$key" raise-limit priority real-time \
		"see=$ATOLL_RUN" "signal=$$" see=/proc/1/root
}

# Escape: root of the box may change to any uid of the box, including that of init
root_of_a_box_cannot_trace_or_kill_init() {
	as_root
	refused ptrace=1 memory=1 take-fd=1 read-memory=1 read=/proc/1/environ list=/proc/1/fd "trace-as=65533"
	held 8 a
	inside try kill=1
	[ -d "/proc/$init" ]
	freed 8 a
}

# HostLeak
root_of_a_box_cannot_read_files_of_the_hosts_root() {
	private_programs
	as_root
	refused $(printf 'read=%s ' $private)
}

# HostDoS: the owner of a file may lease it, and then every other process waits
root_of_a_box_cannot_hold_a_lease_on_host_programs() {
	as_root
	refused lease=/usr/bin/base32 lease=/usr/share/common-licenses/GPL-3
}

# HostDoS
root_of_a_box_has_the_same_limits() {
	limits="--disk 16M --mem 128M --pids 50"
	as_root
	used disk 64
	[ "$got" -le 16 ] || escaped "$got MiB"
	used processes 300
	[ "$guest" ] || [ "$got" -le 50 ] || escaped "$got processes"
	used inotify 500
	[ "$guest" ] || [ "$got" -le 64 ] || escaped "$got inotify instances"
}

run_tests
