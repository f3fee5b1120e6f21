#!/bin/sh
# neighbours.sh - what one box can do to another, or learn about it.
. "$(dirname "$0")/lib.sh"
need_keeper

word=atoll-$$ port=$((20000 + $$ % 12000)) # below the ephemeral ports

# Lateral
two_boxes_have_different_host_ids() {
	held 7 a
	one=$(cat "/proc/$init/uid_map")
	held 8 b
	two=$(cat "/proc/$init/uid_map")
	set -- $one $two
	[ $(($2 + $3)) -le "$5" ] || [ $(($5 + $6)) -le "$2" ] || escaped "ranges $one and $two overlap"
	freed 8 b
	freed 7 a
}

# Lateral
two_boxes_share_no_sockets() {
	held 7 a "hold-abstract=$word" "hold-tcp=$port"
	is "$(got_from a "hold-tcp=$port")" ok
	verdicts "abstract=$word" "tcp=$port"
	freed 7 a
	case $out in *" ok"*) escaped "$out" ;; esac
}

# Lateral
two_boxes_share_no_memory_queues_or_files() {
	[ "$place" != host ] || trap 'ipcrm -M 4242 2>/dev/null; rm -f "/dev/shm/$word" "/tmp/$word"' EXIT
	# A message queue may be denied, but not shared.
	held 7 a hold-segment=4242 "hold-queue=$word" "hold-shm=/$word" "hold-file=/tmp/$word"
	is "$(got_from a hold-segment=4242) $(got_from a "hold-shm=/$word")" "ok ok"
	verdicts segment=4242 "queue=$word" "shm=/$word" "see=/tmp/$word"
	freed 7 a
	case $out in *" ok"*) escaped "$out" ;; esac
}

# Lateral
two_boxes_cannot_see_or_signal_each_other() {
	held 7 a
	theirs=$(sed -n 's/^NSpid:.*\t//p' "/proc/$program/status")
	facts processes process
	[ "$guest" ] || [ "$(fact process)" = "$(fact pid)" ] || escaped "sees $(fact process | tr '\n' ' ')"
	# By its pid on the host, and by its pid in its own box.
	refused "signal=$program" "ptrace=$program" "signal=$init"
	[ -d "/proc/$program" ] || escaped "the other is gone"
	inside try "kill=$theirs"
	[ -d "/proc/$program" ] || escaped "the other is gone"
	freed 7 a
}

# PeerDoS: the kernel charges these to the creator of the namespace
a_box_that_uses_all_inotify_instances_leaves_some_to_others() {
	name=greedy
	mkfifo greedy.in
	in_place later use +inotify 500
	exec 7>greedy.in
	soon grep -q '^inotify' greedy.out
	used inotify 500
	freed 7 greedy
	[ "$got" -ge 32 ] || escaped "the neighbour has $got"
}

# PeerDoS
a_memory_bomb_does_not_affect_another_box() {
	held 7 a
	limits="--mem 32M --disk 8M"
	used memory 64
	[ "$guest" ] || is "$status" 137
	[ -d "/proc/$program" ] || escaped "the other is gone"
	freed 7 a
}

# A known limit, documented in docs/sandbox.md: all boxes share the inodes of the host's /usr, so a lock
# or a watch on one of its files is visible in other boxes. Nothing can be written that way, but two
# cooperating boxes can communicate, and a box can see which programs of the host others start.
two_boxes_share_only_the_documented_host_files() {
	container_only "locks and watches belong to the kernel of a guest"
	held 7 a lock=/usr/bin/env
	verdicts lock=/usr/bin/env
	freed 7 a
	is "$out" "lock=/usr/bin/env EAGAIN"
	verdicts lock=/etc/passwd # the template file is shared, but each box has its own overlay
	is "$out" "lock=/etc/passwd ok"

	name=watcher
	mkfifo watcher.in
	in_place later watch /usr/bin/env
	exec 7>watcher.in
	soon grep -q '^ready' watcher.out
	cat /usr/bin/env >/dev/null
	freed 7 watcher
	[ "$(got_from watcher opened)" -ge 1 ] || fail "no longer seen: tell it in docs/sandbox.md"
}

run_tests
