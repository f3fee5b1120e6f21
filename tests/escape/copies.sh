#!/bin/sh
# copies.sh - a copy of a running program has the isolation of its own box: in a fork, and in a box that was resumed from
# the disk. The tests of the other files are run again, unchanged: what they ask for is done by a program that was
# captured before and continues in a copy, without another execve (copied.c).
#
#	tests/escape/copies.sh			what ./check runs: some of the tests
#	COPIES=all tests/escape/copies.sh	all tests that apply, in both, and one without each step of a copy (`atoll policy
#						copy`; needs build-test): make escape-copies, minutes
. "$(dirname "$0")/lib.sh"
[ "$tier" = container ] || { echo "1..0 # SKIP only boxes without an engine are captured with their programs"; exit 0; }
need_keeper
loading=yes
eval "$(sed -n '/^run_tests() {/,/^}/{s/^run_tests/run_these/;p}' "$here/../system/lib.sh")"
need_keeper() { :; }
run_tests() { :; }
files='identity files kernel network limits neighbours ending'
for file in $files; do
	. "$here/$file.sh"
done

# About the command line of `atoll run` and its record, about flags of `mutant`, or about the keeper without a box.
not_for_copies='the_file_size_limit_is_enforced a_box_has_its_own_terminals
	a_keeper_with_a_controlling_terminal_creates_no_boxes the_record_does_not_follow_links_out_of_the_box
	memfd_shared_memory_pipes_and_sockets_count_as_memory a_busy_box_gets_no_more_than_its_cpu_limit
	unread_output_is_bounded a_box_cannot_hang_its_client a_pooled_box_ends_with_its_keeper
	the_keeper_is_not_dumpable_and_its_folders_are_private the_keeper_passes_no_descriptor_to_a_box
	the_keeper_clears_the_environment_of_its_starter a_release_build_cannot_skip_isolation_steps
	a_record_lists_the_active_isolation_features without_seccomp_no_box_is_created
	with_a_missing_system_call_a_box_is_fully_isolated_or_not_created
	an_ordinary_user_has_fewer_isolation_features_and_they_are_listed
	a_keeper_that_exits_leaves_no_cgroup_record_or_file'
forked='host_files_are_out_of_reach rlimits_are_those_of_the_policy the_oom_killer_prefers_boxes_to_host_processes
	every_process_of_a_box_is_in_its_cgroups_with_its_limits each_box_has_its_own_boot_id'
resumed='each_box_has_its_own_boot_id a_program_runs_as_user_and_has_no_other_ids no_namespace_can_be_created_or_entered
	the_oom_killer_prefers_boxes_to_host_processes'
if [ "${COPIES-}" = all ]; then
	forked=$(for file in $files; do tests_of "$here/$file.sh"; done)
	for name in $not_for_copies; do
		forked=$(echo "$forked" | grep -vx "$name")
	done
	resumed=$forked
fi

names=
for name in $forked; do
	eval "in_a_fork_$name() { place=copied; $name; }"
	names="$names in_a_fork_$name"
done
for name in $resumed; do
	eval "in_a_resumed_box_$name() { place=resumed; $name; }"
	names="$names in_a_resumed_box_$name"
done

# ---- without a step ----

# As in mutants.sh: escaped: the test fails with `escaped`; closed: there is no copy; holds: something else prevents it, too.
table() {
	sed 's/#.*//; s/[ 	][ 	]*/ /g; s/ $//; /^ *$/d' <<-'END'
		the_oom_killer_prefers_boxes_to_host_processes            escaped  OOM score
		every_process_of_a_box_is_in_its_cgroups_with_its_limits  escaped  cgroups
		every_namespace_belongs_to_the_box                        escaped  namespaces
		no_device_node_can_be_created                             holds    landlock             # the filter
		no_device_node_can_be_created                             holds    system calls         # landlock
		no_device_node_can_be_created                             escaped  landlock,system calls
		kernel_keys_of_the_starter_are_not_reachable              holds    keyring              # the filter
		kernel_keys_of_the_starter_are_not_reachable              escaped  keyring,system calls
		a_program_starts_in_its_home                              holds    working folder       # the image has one
		a_program_has_no_capability_and_cannot_gain_one           escaped  capability bounds
		a_program_runs_as_user_and_has_no_other_ids               escaped  identity
		a_program_has_no_capability_and_cannot_gain_one           holds    capabilities         # the change of the uid
		no_program_gains_privileges                               holds    no new privileges    # landlock needs it, too
		no_program_gains_privileges                               closed   no new privileges,landlock  # then no filter can be loaded
		no_program_gains_privileges                               escaped  no new privileges,landlock,system calls
		the_seccomp_filter_is_active                              escaped  system calls
		system_calls_that_no_box_needs_are_rejected               escaped  system calls
		rlimits_are_those_of_the_policy                           escaped  resource limits
	END
}
mask_of() { # STEP,STEP...
	mask=0
	echo "$1" | tr , '\n' >steps
	while read -r step; do
		at=$(policy copy 'r["name"]' | grep -nx "$step" | cut -d : -f 1)
		[ "$at" ] || fail "there is no step '$step'"
		mask=$((mask | 1 << (at - 1)))
	done <steps
	echo $mask
}
left_out() { # TEST WANT STEPS
	mask=$(mask_of "$3")
	ATOLL=$ATOLL_TEST_BIN
	own_keeper "$ATOLL"
	is "$said" R
	echo "$mask" >run/copy-without
	mkdir test
	status=0
	(set -e && cd test && place=copied && $1) >said 2>&1 </dev/null || status=$?
	keeper_gone
	case $status in 9) got=escaped ;; 8) got=closed ;; 0) got=holds ;; 77) skip "$(cat "$work/skip")" ;; *) got="failed: $(cat said)" ;; esac
	is "$got" "$2" "$(head -n 3 said)"
}
every_step_of_a_copy_is_left_out_once() {
	policy copy 'r["name"]' | sort >rows
	table | cut -d ' ' -f 3- | tr , '\n' | sort -u >tried
	is "$(comm -23 rows tried)" ""
}

# ---- hostile images ----

# A capture is a process of the box: what it sends is whatever the box wants. Here its images are changed at random. A copy
# is refused, ends, or does something else; nothing else changes.
a_hostile_image_harms_its_own_box_only() {
	ATOLL=$ATOLL_TEST_BIN
	own_keeper "$ATOLL"
	is "$said" R
	trap 'kill "$canary_process" 2>/dev/null; kill -9 "$keeper" 2>/dev/null || :' EXIT
	watch_host_of_test
	place=box
	held 8 a # a neighbour
	neighbour=$program
	n=0
	while [ $n -lt "${IMAGES:-300}" ]; do
		n=$((n + 1))
		echo $((n * 7919 + ${SEED:-1})) >run/image-spoil
		status=0
		timeout -s KILL 60 "$(dirname "$ATOLL")/copied" "$bin/probe" facts uid caps switches ns >out 2>err </dev/null || status=$?
		if [ $status = 125 ]; then
			refused=$((${refused:-0} + 1))
		elif [ $status = 0 ] && grep -q '^uid' out; then
			whole=$((${whole:-0} + 1))
			case $(sed -n 's/^\(uid\|bounding\|no_new_privs\|seccomp\) //p' out | tr '\n' ' ') in
			'1000 1000 1000 000000000 1 2 ') ;;
			*) escaped "image $n: $(tr '\n' ';' <out)" ;;
			esac
		fi
		unharmed
		[ -d "/proc/$neighbour" ] || escaped "image $n: the neighbour has ended"
		[ "$(sed -n 's/^State:\t\(.\).*/\1/p' "/proc/$keeper/status")" != Z ] || escaped "image $n: the keeper has ended"
	done
	echo "# of $n images ${refused:-0} were refused, ${whole:-0} copies worked as without a change"
	freed 8 a
	only_the_pool() { [ "$("$ATOLL" ps -q | wc -l)" = 0 ] && [ -z "$(pgrep -x atoll-image)" ]; }
	soon only_the_pool
	rm run/image-spoil
	place=copied
	facts uid
	shows uid "1000 1000 1000"
	keeper_gone
}
watch_host_of_test() {
	echo "a word from outside, $$" >"$work/canary"
	sleep 1000000 &
	canary_process=$!
	soon runs_sleep
	host_facts >"$work/host_facts"
}
if [ "${COPIES-}" = all ] && [ -x "$(dirname "$ATOLL_TEST_BIN")/copied" ]; then
	names="$names a_hostile_image_harms_its_own_box_only every_step_of_a_copy_is_left_out_once"
	table >"$work/table"
	while read -r promise want steps; do
		name=$(echo "without_${steps}_${promise}_$want" | tr ' ,A-Z' '__a-z')
		eval "$name() { left_out $promise $want '$steps'; }"
		names="$names $name"
	done <"$work/table"
fi
run_these $names
