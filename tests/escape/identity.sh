#!/bin/sh
# identity.sh - the ids, capabilities and descriptors of a program, and what it can do to other processes.
. "$(dirname "$0")/lib.sh"
need_keeper

owner() { sed -n "s/^$2:\t\([0-9]*\).*/\1/p" "/proc/$1/status"; }

# Escape: host uid 0 without any capability may still write core_pattern
ids_of_a_box_are_mapped_to_unused_host_ids() {
	held 8 a
	read -r first base count <"/proc/$init/uid_map"
	same "$first $count" "0 65536"
	[ "$base" -ge 65536 ] || escaped "host users are mapped: $base"
	is "$(cat "/proc/$init/gid_map")" "$(cat "/proc/$init/uid_map")"
	[ "$guest" ] || is "$(owner "$program" Uid) $(owner "$program" Gid)" "$((base + 1000)) $((base + 1000))"
	# The kernel counts some resources for the creator of the namespace, which must not be root.
	is "$("$PROBE" names "$init" | sed -n 's/^owner //p')" "$base"
	freed 8 a
}

# Escape
a_program_runs_as_user_and_has_no_other_ids() {
	facts uid gid groups
	shows uid "1000 1000 1000"
	shows gid "1000 1000 1000"
	shows groups ""
}

# Escape
init_has_its_own_uid() {
	container_only "mux is root of the box, without capabilities"
	held 8 a
	read -r _ base _ <"/proc/$init/uid_map"
	[ "$(owner "$init" Uid)" = $((base + 65533)) ] || escaped "init runs as $(owner "$init" Uid) of $base"
	freed 8 a
}

# Escape
a_program_has_no_capability_and_cannot_gain_one() {
	facts caps
	for set in effective permitted inheritable bounding ambient; do
		shows $set 000000000
	done
}

# Escape
no_program_gains_privileges() {
	facts switches
	shows no_new_privs 1
}

# HostLeak: session keyrings are inherited, and no namespace isolates them
kernel_keys_of_the_starter_are_not_reachable() {
	"$PROBE" with-key "$key" "$PROBE" try "key=$key" | grep -q ' ok$' || skip "no keyrings in this kernel"
	refused "key=$key" call=keyctl call=add_key call=request_key
}

# Escape: a program could inject input into its terminal
a_program_cannot_inject_input_into_a_terminal() {
	facts terminal
	shows terminal ENXIO
	refused type-in console-menu console-take
}

# Escape: a terminal of a box is in its own devpts
a_box_has_its_own_terminals() {
	flags=-t
	[ "$place" != box ] || place=library
	facts terminal fds process
	shows stdio "terminal terminal terminal"
	shows terminal yes
	shows session "$(fact pid)"
	[ "$guest" ] || [ "$(fact fd | cut -d ' ' -f 2 | sort -u)" = /dev/pts/0 ] || escaped "$(fact fd)"
	refused type-in type-in=1
}

# Escape: a session with the terminal of the keeper
a_keeper_with_a_controlling_terminal_creates_no_boxes() {
	keeper_on_terminal "$ATOLL"
	if inside facts terminal && [ "$status" = 0 ]; then
		escaped "a box was made; terminal: $(fact terminal)"
	fi
	has "$err" "terminal would be inherited"
	keeper_gone
}

# SelfDoS: a signal to the group of one program must not reach another program
a_program_leads_its_own_process_group() {
	facts process
	shows group own
}

# SelfDoS: signals that the keeper ignores would stay ignored
no_signal_is_blocked_or_ignored() {
	facts signals
	shows blocked ""
	shows ignored ""
}

# HostDoS
rlimits_are_those_of_the_policy() {
	facts limits
	policy limits 'r["name"] + " " + r["what"].replace(" /", "")' | sed "s/^CORE .*/CORE $(core_limit)/" >want
	[ "$(wc -l <want)" -ge 8 ]
	while read -r line; do
		[ "$guest" ] || fact limit | grep -qx "$line" || escaped "$(fact limit | tr '\n' ';') lacks $line"
	done <want
	refused raise-limit priority real-time
}

# Escape: a piped core handler is a program that runs as the host's root; unit/limits: with one no box starts
a_core_limit_of_zero_is_raised_or_reported() {
	own_keeper "$ATOLL" prlimit --core=0:0
	is "$said" R
	facts limits
	[ "$guest" ] || [ "$(fact limit | grep CORE)" = "CORE $(core_limit 0)" ] || escaped "$(fact limit | grep CORE)"
	"$ATOLL" doctor >told || :
	case $(core_limit 0) in "0 0") has "$(grep 'core pattern' told)" "RLIMIT_CORE of boxes is 0" ;; esac
	keeper_gone
}

# HostDoS
the_file_size_limit_is_enforced() {
	flags="-f 4096"
	[ "$place" != box ] || place=library
	facts limits
	[ "$guest" ] || fact limit | grep -qx "FSIZE 4096 4096" || escaped "$(fact limit | grep FSIZE)"
}

# HostDoS: when the host runs out of memory, boxes are killed first
the_oom_killer_prefers_boxes_to_host_processes() {
	facts oom
	shows oom_score_adj 500
}

# HostDoS: the lower bound of oom_score_adj is set only by writers with CAP_SYS_RESOURCE
a_program_cannot_lower_its_oom_score() {
	refused write=/proc/self/oom_score_adj write=/proc/self/oom_adj write=/proc/thread-self/oom_score_adj
	facts oom
	shows oom_score_adj 500
}

# SelfDoS
a_program_writes_its_output_to_pipes() {
	facts terminal
	shows stdio "pipe pipe pipe"
}

# Escape: init has capabilities, and sockets to the host
init_cannot_be_read_traced_or_killed() {
	refused "read=/proc/${target:=1}/environ" "read=/proc/$target/maps" "list=/proc/$target/fd" \
		"see=/proc/$target/exe" "memory=$target" "ptrace=$target" "take-fd=$target" \
		"read-memory=$target" "signal=$target" "limits-of=$target"
}

# Escape: the first program of a box is the init of Atoll
init_runs_from_a_sealed_memfd_with_an_empty_environment() {
	held 8 a
	same "$(wc -c <"/proc/$init/environ")" 0 "init has an environment"
	has "$(readlink "/proc/$init/exe")" "/memfd:"
	"$PROBE" names "$init" >names
	is "$(sed -n 's/^mode //p' names)" 111
	seals=$(sed -n 's/^seals //p' names)
	[ $((seals & 0xf)) = 15 ] || escaped "seals $seals"
	# Not dumpable: its files in /proc belong to root.
	is "$(stat -c %u "/proc/$init/environ")" 0
	freed 8 a
}

# HostLeak, HostDoS
host_processes_are_not_visible() {
	facts processes process
	[ "$guest" ] || [ "$(fact process)" = "$(fact pid)" ] || escaped "sees $(fact process | tr '\n' ' ')"
	refused "signal=$$" "read=/proc/$$/cmdline" "ptrace=$$" "limits-of=$$"
}

# Escape, Lateral
every_namespace_belongs_to_the_box() {
	if [ "$guest" ]; then
		held 8 a # all its processes are looked at
		freed 8 a
		return
	fi
	facts ns
	for ns in user mnt pid net ipc uts cgroup; do
		theirs=$(fact ns | sed -n "s/^$ns //p")
		[ "$theirs" ]
		[ "$theirs" != "$(readlink "/proc/self/ns/$ns")" ] || escaped "$ns is the host's"
	done
}

# HostLeak
the_host_name_is_not_visible() {
	facts hostname
	shows hostname atoll
}

# HostLeak: at most the last part of the path, which names the box itself
the_cgroup_path_of_the_host_is_not_visible() {
	held 8 a
	case $(cut -d : -f 3 "/proc/$program/cgroup") in *atoll*) ;; *) fail "not in a cgroup of ours" ;; esac
	freed 8 a
	facts cgroup
	others=$(fact cgroup | grep -v ':/[a-z2-7]\{0,15\}$' || :)
	[ "$guest" ] || [ -z "$others" ] || escaped "$others"
}

run_tests
