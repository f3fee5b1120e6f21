#!/bin/sh
# mutants.sh - every isolation step is skipped once, and every test of tests/escape is seen to fail once.
#
# A test that was never seen to fail proves nothing. So each is run again where it must fail: in a box
# without the step of the launcher or of init that it depends on, or, where no step does, in a place
# without isolation. The table below has the expected results:
#
#	escaped   the test fails with `escaped`
#	closed    there is no box: a later step fails without this one
#	holds     another step also prevents it. Then there is a second line, without both
#
# Where:
#	steps:STEP,exec:STEP a box without these steps (a test build can do that)
#	host, user           no box: directly on this host, as root or as an ordinary user
#	wider FLAGS          a box with a higher limit than the test expects
#	shared               a mount namespace that receives mounts of the host
#	other                a process of the host that is not the keeper
#	itself [STEP]        not run here. Either the test checks both cases itself, or no box without
#	                     this step can be created from outside
#
# The last two tests compare the table with the code: it has every step and every test.
. "$(dirname "$0")/lib.sh"
if [ ! -x "$ATOLL_TEST_BIN" ] || [ ! -x "$(dirname "$ATOLL_TEST_BIN")/mutant" ]; then
	echo "1..0 # SKIP no build with test hooks: meson setup build-test -Dtest_hooks=true"
	exit 0
fi
ATOLL=$ATOLL_TEST_BIN
need_keeper

loading=yes
need_keeper() { :; }
run_tests() { :; }
promises='files identity root kernel network limits neighbours ending forks'
for file in $promises; do
	. "$here/$file.sh"
done

# ---- what only a mutant can break ----

# Checked from the host, while a program of /usr runs in the box: no file can be written into a box whose
# init cannot start a file worker.
init_does_not_run_as_root_of_the_box() {
	flags=-n brought=/bin/sleep name=a
	mkfifo a.in
	in_place later "60.$$"
	exec 7>a.in
	asleep() { program=$(processes "^/bin/sleep 60.$$"); [ "$program" ]; }
	soon asleep
	init=$(sed -n 's/^PPid:\t//p' "/proc/$program/status")
	read -r _ base _ <"/proc/$init/uid_map"
	uid=$(sed -n 's/^Uid:\t\([0-9]*\).*/\1/p' "/proc/$init/status")
	kill "$a"
	wait "$a" || :
	same "$uid" $((base + 65533))
}

# Until a box has its own descriptor table, it closes the descriptors of the keeper.
a_box_being_created_does_not_touch_the_keepers_descriptors() {
	own_keeper "$ATOLL"
	is "$said" R
	waiting() { [ "$(children "$keeper" atoll-init | wc -l)" = 2 ]; }
	soon waiting # two boxes in the pool, and a connection to each
	sockets() { ls -l "/proc/$keeper/fd" | sed -n 's/.* \([0-9]* -> socket:.*\)/\1/p' | sort; }
	sockets >before
	(inside facts uid) >said 2>&1 || :
	sockets | comm -23 before - >lost
	[ ! -s lost ] || escaped "the keeper has lost $(cat lost)"
	keeper_gone
}

# ---- the table ----

table() {
	sed 's/#.*//; s/[ 	][ 	]*/ /g; s/ $//; /^ *$/d' <<-'END'
		# the launcher, from top to bottom
		a_box_being_created_does_not_touch_the_keepers_descriptors               escaped  steps:own descriptors
		every_process_of_a_box_is_in_its_cgroups_with_its_limits                 escaped  steps:own cgroups
		the_cgroup_path_of_the_host_is_not_visible                               escaped  steps:cgroup view
		a_pooled_box_ends_with_its_keeper                                        escaped  itself steps:death signal  # only complete boxes are pooled; seen to fail before the step was moved after the last change of ids
		a_program_starts_in_its_home                                             closed   steps:working folder
		kernel_keys_of_the_starter_are_not_reachable                             holds    steps:keyring           # the filter
		kernel_keys_of_the_starter_are_not_reachable                             escaped  steps:keyring,steps:system calls
		a_program_runs_as_user_and_has_no_other_ids                              holds    steps:box root          # the builder has that id already
		mounts_do_not_propagate_between_box_and_host                             holds    steps:private mounts  # the mount namespace of the keeper is private already
		the_host_name_is_not_visible                                             escaped  steps:host name
		a_box_has_its_own_loopback                                               escaped  steps:loopback
		a_network_namespace_is_clean_for_every_box                               escaped  steps:network unused
		a_used_network_namespace_is_not_reused                                   escaped  steps:network unused
		the_disk_of_a_box_is_bounded                                             closed   steps:disk
		the_root_holds_what_a_box_needs_and_nothing_else                         closed   steps:root filesystem
		without_its_launch_step_a_box_has_no_volume                                      escaped  itself steps:volumes    # volumebox.c leaves it out
		the_hosts_programs_can_be_run_but_not_changed                            escaped  steps:programs
		only_harmless_devices_exist                                              closed   steps:devices
		every_mount_is_listed_in_the_policy                                      escaped  steps:no sysfs
		host_processes_are_not_visible                                           closed   steps:processes         # the row that verifies it
		host_processes_are_not_visible                                           escaped  steps:processes,steps:root verified
		inotify_instances_are_limited_per_box                                    escaped  steps:namespace limits
		no_namespace_can_be_created_or_entered                                   holds    steps:namespace limits  # the filter
		no_namespace_can_be_created_or_entered                                   holds    steps:system calls      # the limits
		no_namespace_can_be_created_or_entered                                   escaped  steps:namespace limits,steps:system calls
		kernel_settings_cannot_be_written                                        escaped  steps:read-only proc
		a_program_cannot_lower_its_oom_score                                     escaped  steps:read-only proc
		each_box_has_its_own_boot_id                                             escaped  steps:boot id
		kernel_memory_keys_and_logs_are_masked                                   escaped  steps:masked proc
		the_root_holds_what_a_box_needs_and_nothing_else                         closed   steps:root switch       # the row that verifies it
		the_root_holds_what_a_box_needs_and_nothing_else                         closed   steps:root switch,steps:root verified  # no /dev/tty there
		the_root_holds_what_a_box_needs_and_nothing_else                         closed   steps:root switch,steps:root verified,steps:no terminal  # no /dev/null there
		a_keeper_with_a_controlling_terminal_creates_no_boxes                    escaped  steps:no terminal
		rlimits_are_those_of_the_policy                                          escaped  steps:resource limits
		kernel_objects_are_limited                                               escaped  steps:resource limits
		a_program_has_no_capability_and_cannot_gain_one                          escaped  steps:capability bounds
		init_has_its_own_uid                                                     escaped  steps:identity
		init_does_not_run_as_root_of_the_box                                     escaped  steps:identity,exec:capability bounds
		a_program_has_no_capability_and_cannot_gain_one                          closed   steps:capabilities      # then init cannot change its uid
		no_program_gains_privileges                                              closed   steps:no new privileges # then no filter can be loaded
		no_program_gains_privileges                                              escaped  steps:no new privileges,exec:no new privileges,steps:landlock,steps:system calls
		no_device_node_can_be_created                                            holds    steps:landlock          # the filter
		no_device_node_can_be_created                                            holds    steps:system calls      # landlock
		no_device_node_can_be_created                                            escaped  steps:landlock,steps:system calls
		a_program_has_only_stdin_stdout_and_stderr_open                          closed   steps:descriptors
		no_signal_is_blocked_or_ignored                                          escaped  steps:signals
		the_seccomp_filter_is_active                                             escaped  steps:system calls
		system_calls_that_no_box_needs_are_rejected                              escaped  steps:system calls
		programs_of_another_abi_are_killed                                       escaped  steps:system calls
		sockets_open_in_four_families_and_few_protocols                          escaped  steps:system calls
		dangerous_sockets_do_not_open                                            escaped  steps:system calls
		the_upper_half_of_a_system_call_argument_bypasses_no_rule                escaped  steps:system calls
		sync_does_not_reach_the_hosts_disks                                      escaped  steps:system calls
		address_randomisation_cannot_be_switched_off                             escaped  steps:system calls
		a_program_cannot_inject_input_into_a_terminal                            escaped  steps:system calls
		file_handles_cannot_be_opened                                            escaped  steps:system calls
		a_box_cannot_mount_or_change_its_root                                    escaped  steps:system calls,steps:namespace limits,steps:landlock

		# init, from top to bottom
		a_program_leads_its_own_process_group                                    escaped  exec:session
		a_box_has_its_own_terminals                                              escaped  exec:session
		a_program_writes_its_output_to_pipes                                     escaped  exec:stdio
		the_file_size_limit_is_enforced                                          escaped  exec:file size
		a_program_runs_as_user_and_has_no_other_ids                              holds    exec:groups             # init has none
		a_program_runs_as_user_and_has_no_other_ids                              closed   exec:gid                # read back
		a_program_runs_as_user_and_has_no_other_ids                              escaped  exec:gid,exec:read back
		a_program_runs_as_user_and_has_no_other_ids                              closed   exec:uid                # read back
		a_program_runs_as_user_and_has_no_other_ids                              escaped  exec:uid,exec:read back
		a_program_runs_as_user_and_has_no_other_ids                              holds    exec:read back
		no_program_gains_privileges                                              holds    exec:no new privileges  # the launcher has set it
		a_program_has_no_capability_and_cannot_gain_one                          escaped  exec:capability bounds
		a_program_has_no_capability_and_cannot_gain_one                          escaped  exec:capabilities
		a_program_starts_in_its_home                                             escaped  exec:directory
		no_signal_is_blocked_or_ignored                                          escaped  exec:signals
		a_program_has_only_stdin_stdout_and_stderr_open                          holds    exec:descriptors        # all are close-on-exec

		# an interpreter that is forked into a box, from top to bottom
		a_forked_interpreter_has_only_its_three_streams_open                     escaped  seal:descriptors
		kernel_keys_of_the_starter_are_not_reachable                             holds    seal:keyring            # the filter
		kernel_keys_of_the_starter_are_not_reachable                             escaped  seal:keyring,seal:system calls
		a_forked_interpreter_is_a_child_of_init_in_the_namespaces_of_the_box     escaped  seal:namespaces
		files_of_a_forked_interpreter_have_the_default_mode                      escaped  seal:working folder
		a_forked_interpreter_is_a_child_of_init_in_the_namespaces_of_the_box     escaped  seal:session
		rlimits_are_those_of_the_policy                                          escaped  seal:resource limits
		a_program_has_no_capability_and_cannot_gain_one                          escaped  seal:capability bounds
		a_program_runs_as_user_and_has_no_other_ids                              escaped  seal:identity
		a_forked_interpreter_has_no_capability                                   escaped  seal:capabilities
		no_program_gains_privileges                                              holds    seal:no new privileges  # the zygote has set it
		no_device_node_can_be_created                                            holds    seal:landlock           # the filter
		no_device_node_can_be_created                                            escaped  seal:landlock,seal:system calls
		the_seccomp_filter_is_active                                             escaped  seal:system calls
		two_boxes_of_one_zygote_draw_different_random_numbers                    escaped  itself
		two_boxes_of_one_zygote_have_different_stack_canaries                    escaped  itself  # seen to fail with a child that keeps the canary of its zygote
		boxes_of_two_teams_share_no_zygote_secret                                escaped  itself  # seen to fail with one zygote for all teams
		a_renewed_stack_canary_breaks_no_program                                 escaped  itself
		writes_to_memory_shared_by_fork_stay_in_one_box                          escaped  itself
		no_writable_mapping_is_shared_with_the_zygote                            escaped  itself
		the_heap_image_of_a_zygote_cannot_be_opened                              escaped  itself
		nothing_of_the_zygotes_environment_is_left                               escaped  itself
		the_death_of_a_zygote_does_not_affect_its_boxes                          escaped  itself

		# root of the box
		root_of_a_box_has_only_eight_capabilities                                escaped  steps:capability bounds
		root_of_a_box_has_only_eight_capabilities                                escaped  exec:capabilities
		root_of_a_box_cannot_write_kernel_settings                               escaped  steps:read-only proc
		root_of_a_box_cannot_lower_its_oom_score                                 escaped  steps:read-only proc
		root_of_a_box_cannot_read_masked_paths                                   escaped  steps:masked proc
		root_of_a_box_cannot_mount_chroot_or_enter_namespaces                    escaped  steps:system calls
		root_of_a_box_is_an_unprivileged_user_of_the_host                        escaped  host
		root_of_a_box_cannot_read_files_of_the_hosts_root                        escaped  host
		root_of_a_box_cannot_hold_a_lease_on_host_programs                       escaped  host
		root_of_a_box_cannot_trace_or_kill_init                                  escaped  itself
		root_of_a_box_has_the_same_limits                                        escaped  wider --disk 64M --mem 256M

		# without a step: namespaces, id maps, the mount namespace of the keeper, init itself
		host_files_are_out_of_reach                                              escaped  host
		host_processes_are_not_visible                                           escaped  host
		the_root_holds_what_a_box_needs_and_nothing_else                         escaped  host
		the_oom_killer_prefers_boxes_to_host_processes                           escaped  host
		mounts_do_not_propagate_between_box_and_host                             escaped  shared
		every_namespace_belongs_to_the_box                                       escaped  host
		ids_of_a_box_are_mapped_to_unused_host_ids                               escaped  host
		init_runs_from_a_sealed_memfd_with_an_empty_environment                  escaped  host
		init_cannot_be_read_traced_or_killed                                     escaped  host
		the_environment_has_nothing_of_the_host                                  escaped  host
		a_box_cannot_read_host_programs_that_others_may_not_read                 escaped  host
		a_box_cannot_hold_a_lease_on_host_programs                               escaped  host
		only_harmless_devices_exist                                              escaped  host
		set_user_id_programs_gain_nothing                                        escaped  user
		sockets_of_the_host_are_not_reachable                                    escaped  host
		a_box_has_only_a_loopback_interface                                      escaped  host
		two_boxes_have_different_host_ids                                        escaped  host
		two_boxes_share_no_sockets                                               escaped  host
		two_boxes_share_no_memory_queues_or_files                                escaped  host
		two_boxes_cannot_see_or_signal_each_other                                escaped  host
		background_processes_end_with_their_box                                  escaped  host
		a_box_that_uses_all_inotify_instances_leaves_some_to_others              escaped  user

		# limits: cgroups, file systems, mounts
		every_process_of_a_box_is_in_its_cgroups_with_its_limits                 escaped  host
		a_memory_bomb_stays_in_its_box                                           escaped  wider --mem 512M --disk 8M
		memfd_shared_memory_pipes_and_sockets_count_as_memory                    escaped  wider --mem 512M --disk 8M
		a_fork_bomb_stays_in_its_box                                             escaped  wider --pids 512
		a_busy_box_gets_no_more_than_its_cpu_limit                               escaped  wider --cpu 2 --report r.json
		the_disk_of_a_box_is_bounded                                             escaped  wider --disk 64M --mem 256M
		the_disk_image_of_a_box_is_bounded                                       escaped  wider --disk 300M --mem 64M
		the_number_of_files_is_limited                                           escaped  wider --files 5000
		terminals_are_limited_per_box                                            escaped  host

		# the keeper
		the_keeper_is_not_dumpable_and_its_folders_are_private                   escaped  other
		the_keeper_passes_no_descriptor_to_a_box                                 escaped  other
		the_keeper_clears_the_environment_of_its_starter                         escaped  other
		a_release_build_cannot_skip_isolation_steps                              escaped  other

		a_core_limit_of_zero_is_raised_or_reported                               escaped  itself
		a_host_device_cannot_be_opened_from_the_cgroup_of_a_box                  escaped  itself
		the_record_does_not_follow_links_out_of_the_box                          escaped  itself
		unread_output_is_bounded                                                 escaped  itself
		a_memory_bomb_does_not_affect_another_box                                escaped  itself
		two_boxes_share_only_the_documented_host_files                           escaped  itself
		a_box_ends_with_its_client                                               escaped  itself
		a_box_cannot_hang_its_client                                             escaped  itself
		a_box_leaves_no_process_no_record_and_no_socket                          escaped  itself
		an_unused_network_namespace_is_reused                                    escaped  itself
		a_record_lists_the_active_isolation_features                             escaped  itself
		without_seccomp_no_box_is_created                                        escaped  itself
		with_a_missing_system_call_a_box_is_fully_isolated_or_not_created        escaped  itself
		an_ordinary_user_has_fewer_isolation_features_and_they_are_listed        escaped  itself
		a_keeper_that_exits_leaves_no_cgroup_record_or_file                      escaped  itself
	END
}

# ---- running it ----

said=$work/said count=0 bad=0
tell() { # ok|"not ok" NAME
	count=$((count + 1))
	echo "$1 $count - $2"
	[ "$1" = ok ] || { bad=1 && sed 's/^/#   /; /^#   *$/d' "$said" | head -n 12; }
}

somewhere() { # WHERE
	case $1 in
	host | user | shared) place=$1 ;;
	wider*) instead=${1#wider } ;;
	other)
		sleep 60 7</dev/null &
		keeper=$!
		trap 'kill "$keeper"' EXIT
		soon grep -qx sleep "/proc/$keeper/comm"
		;;
	*) place=mutant without=$1 ;;
	esac
	# On the host pid 1 is the init of the host, so a process of this test is the target.
	case $place in host | user) target=$$ ;; esac
}

broken() { # PROMISE WANT WHERE
	mkdir "$work/m"
	(set -e && cd "$work/m" && somewhere "$3" && $1) </dev/null >"$said" 2>&1
	case $? in 9) got=escaped ;; 8) got=closed ;; 0) got=holds ;; 77) got=skipped ;; *) got=failed ;; esac
	rm -rf "$work/m"
	name="$(echo "$1" | tr _ ' '), $(case $3 in *:*) echo "without $3" ;; *) echo "on $3" ;; esac): $2"
	case $got in
	"$2") tell ok "$name" ;;
	skipped) tell ok "$name # SKIP $(cat "$work/skip")" ;;
	*) echo "# it was $got" && tell "not ok" "$name" ;;
	esac
}

table >"$work/table"
# On cgroup v2 a box is created in its cgroup: the step does nothing there.
[ ! -f /sys/fs/cgroup/cgroup.controllers ] || sed -i 's/escaped steps:own cgroups/escaped itself steps:own cgroups/' "$work/table"
while read -r promise want where; do
	case $where in itself*) ;; *) broken "$promise" "$want" "$where" ;; esac
done <"$work/table"

# Rows for engines only do not apply to these boxes.
{ policy steps '"steps:" + r["name"] if not r["what"] or "container" in r["what"].split() else ""' | sed '/^$/d' && policy exec '"exec:" + r["name"]' && policy seal '"seal:" + r["name"]'; } >"$work/rows"
cut -d ' ' -f 3- "$work/table" | sed 's/^itself //' | tr , '\n' | sort -u >"$work/tried"
sort "$work/rows" | comm -23 - "$work/tried" >"$said"
tell "$([ -s "$said" ] && echo not\ )ok" "every row of both tables has been left out"

cd "$here" && sed -n 's/^\([a-z][a-z0-9_]*_[a-z0-9_]*\)() {.*/\1/p' $(printf '%s.sh ' $promises) | sort >"$work/rows"
awk '$2 != "holds" { print $1 }' "$work/table" | sort -u | comm -23 "$work/rows" - >"$said"
tell "$([ -s "$said" ] && echo not\ )ok" "every promise has been broken"

echo "1..$count"
exit $bad
