#!/bin/sh
# limits.sh - how many resources of the host a box can use.
# That the record names the limit is in system/cli_limits.sh;
# here it is checked that the limit is enforced, with the counters of the host.
. "$(dirname "$0")/lib.sh"
need_keeper

# within MOST: got must not be larger
within() { [ "$guest" ] || [ "$got" -le "$1" ] || escaped "got $got, more than $1"; }
# The limits of the host for a box, in bytes and processes: docs/tiers.md.
outermemory() { # MEBIBYTES
	case $tier in container) extra=0 ;; plain) extra=4 ;; gvisor) extra=48 ;; microvm) extra=416 ;; esac
	echo $((($1 + extra) << 20))
}
outerpids() { # NUMBER
	case $tier in container) echo "$1" ;; plain) echo $(($1 + 2)) ;; gvisor) echo $(($1 * 4 + 64)) ;; microvm) echo $(($1 + 64)) ;; esac
}
knob() { # CONTROLLER V1-FILE V2-FILE: its value, from the host
	dir=$(cgroup_of "$1" "$program")
	file=$3
	[ -f /sys/fs/cgroup/cgroup.controllers ] || file=$2
	cat "$dir/$file"
}

# HostDoS: for each controller, including the init of the box
every_process_of_a_box_is_in_its_cgroups_with_its_limits() {
	for how in "" --cold; do
		limits="--mem 64M --disk 16M --pids 33 --cpu 0.5 $how"
		held 8 a
		for ctl in memory pids cpu; do
			dir=$(cgroup_of $ctl "$program")
			case $dir in */atoll*/*) ;; *) escaped "$ctl: the program is in '$dir'" ;; esac
			[ "$(cgroup_of $ctl "$init")" = "$dir" ] || escaped "$ctl: init is in '$(cgroup_of $ctl "$init")'"
		done
		is "$(knob memory memory.limit_in_bytes memory.max)" "$(outermemory 64)"
		is "$(knob pids pids.max pids.max)" "$(outerpids 33)"
		case $(knob cpu cpu.cfs_quota_us cpu.max) in 50000*) ;; *) escaped "cpu" ;; esac
		[ ! -f "$(cgroup_of memory "$program")/memory.memsw.limit_in_bytes" ] ||
			is "$(knob memory memory.memsw.limit_in_bytes -)" "$(outermemory 64)"
		[ ! -f "$(cgroup_of memory "$program")/memory.swap.max" ] ||
			is "$(knob memory - memory.swap.max)" 0
		freed 8 a
		rm a.*
	done
}

# HostDoS
a_memory_bomb_stays_in_its_box() {
	limits="--mem 64M --disk 8M"
	used memory 192
	within 64
	is "$status" 137
}

# HostDoS: none of these is a page of the program itself
memfd_shared_memory_pipes_and_sockets_count_as_memory() {
	for what in memfd segments; do
		limits="--mem 64M --disk 8M"
		used $what 192
		within 64
	done
	for what in pipes sockets; do
		limits="--mem 32M --disk 8M --report r.json"
		used $what 2000
		[ "$(json r.json "d['mem_peak'] <= $(outermemory 32)")" = True ] || escaped "$what: $(json r.json 'd["mem_peak"]')"
	done
}

# HostDoS
a_fork_bomb_stays_in_its_box() {
	limits="--pids 50"
	for what in processes threads; do
		used $what 300
		within 50
	done
}

# PeerDoS: on a busy host the box may get less CPU, so its throttling is checked
a_busy_box_gets_no_more_than_its_cpu_limit() {
	limits="--cpu 0.1 --report r.json"
	inside spin 400 4
	got=$(fact spin)
	[ "$got" ]
	[ "$(json r.json 'd["evidence"]["throttled_us"]')" -gt 0 ] || escaped "never held back"
	within 200
}

# HostDoS
the_disk_of_a_box_is_bounded() {
	for what in disk tmp shm; do
		limits="--disk 16M --mem 128M"
		used $what 64
		within 16
	done
}

# HostDoS: a disk larger than the memory
the_disk_image_of_a_box_is_bounded() {
	[ -c /dev/loop-control ] || skip "no loop devices here"
	limits="--disk 64M --mem 64M"
	loops=$(losetup -n -O BACK-FILE | grep -c "$ATOLL_STATE" || :)
	used disk 200
	within 64
	[ "$guest" ] || [ "$got" -gt 40 ] || fail "only $got of 64 MiB could be written"
	gone() { [ "$(losetup -n -O BACK-FILE | grep -c "$ATOLL_STATE" || :)" = "$loops" ]; }
	soon gone
	is "$(find "$ATOLL_STATE" -type f)" ""
}

# HostDoS
the_number_of_files_is_limited() {
	limits="--files 500"
	used files 2000
	within 500
}

# HostDoS: kernel memory used by objects
kernel_objects_are_limited() {
	used descriptors 20000
	within 1024
	used timers 20000
	within 4096
	used locked 64
	within 8
	used queues 200
	within 20
}

# PeerDoS: counted per user of the host without a user namespace
inotify_instances_are_limited_per_box() {
	used inotify 500
	within 64
	[ "$guest" ] || [ "$got" -ge 32 ] || fail "only $got"
}

# PeerDoS
terminals_are_limited_per_box() {
	used terminals 200
	within 64
}

# HostDoS: unread output is stored in a few pages, and then the program waits
unread_output_is_bounded() {
	container_only "the processes of a guest are not those of the host"
	mkfifo output
	"$ATOLL" run --mem 64M -- bash -c "exec -a flood-$$ yes" </dev/null >output 2>err &
	client=$!
	exec 7<output
	flood() { program=$(processes "^flood-$$"); [ "$program" ]; }
	soon flood
	full() { [ "$(sed -n 's/^State:\t\(.\).*/\1/p' "/proc/$program/status")" = S ]; }
	soon full
	used=$(knob memory memory.usage_in_bytes memory.current)
	[ "$used" -lt 16777216 ] || escaped "$used bytes"
	kill "$client"
	exec 7<&-
	wait "$client" || :
}

run_tests
