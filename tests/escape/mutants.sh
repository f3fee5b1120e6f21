#!/bin/sh
# mutants.sh - every wall is taken out once, and every promise is broken once.
#
# A promise that was never seen to fail is not known to hold. So each is run again where it must not
# hold: in a box without the row of the launcher's or of init's table that makes it true, or, where
# no row does, in a place without walls. The table below says what is to be seen:
#
#	escaped   the promise is broken, and says so
#	closed    there is no box: a later row refuses to go on without this one
#	holds     another wall holds it up. Then the row has a second line, without both
#
# Where:
#	steps:ROW,exec:ROW   a box without these rows (a test build can do that)
#	host, user           no box: right on this host, as root or as somebody
#	wider FLAGS          a box with more of what the promise says is bounded
#	shared               a mount namespace that hears of the host's mounts
#	other                a process of the host that is not the keeper
#	itself [ROW]         not run here. Either the promise looks at both cases itself, or no box without
#	                     this row can be brought about from outside
#
# The last two tests hold the table to the code: every row, every promise.
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

# Seen from the host, while a program of the host's /usr runs in it: nothing can be put into a box
# whose init can start no file worker.
init_is_not_the_boxs_root() {
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

# Until it has a table of its own, what a box closes is closed for the keeper.
a_box_being_made_leaves_the_keepers_descriptors_alone() {
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
		a_box_being_made_leaves_the_keepers_descriptors_alone   escaped  steps:own descriptors
		every_process_of_a_box_is_in_its_cgroups_with_its_limits  escaped  steps:own cgroups
		the_cgroup_tree_is_not_told                             escaped  steps:cgroup view
		a_waiting_box_dies_with_its_keeper                      escaped  itself steps:death signal  # only whole boxes wait; seen before it moved behind the last change of ids
		a_program_starts_in_its_home                            closed   steps:working folder
		the_starters_keys_are_out_of_reach                      holds    steps:keyring           # the filter
		the_starters_keys_are_out_of_reach                      escaped  steps:keyring,steps:system calls
		a_program_is_the_user_and_nobody_else                   holds    steps:box root          # its maker has that id already
		no_mount_of_a_box_shows_on_the_host_or_the_other_way_round  holds  steps:private mounts  # the stage is private already
		the_hosts_name_is_not_told                              escaped  steps:host name
		a_box_has_a_loopback_of_its_own                         escaped  steps:loopback
		a_network_is_as_new_for_every_box                       escaped  steps:network unused
		a_network_that_was_used_goes_with_its_box               escaped  steps:network unused
		what_a_box_writes_has_an_end                            closed   steps:disk
		the_root_holds_what_a_box_needs_and_nothing_else        closed   steps:root filesystem
		without_its_row_a_box_has_no_volume                     escaped  itself steps:volumes    # volumebox.c leaves it out
		the_hosts_programs_can_be_run_but_not_changed           escaped  steps:programs
		only_harmless_devices_are_there                         closed   steps:devices
		every_mount_is_the_one_that_the_policy_names            escaped  steps:no sysfs
		host_processes_are_out_of_sight                         closed   steps:processes         # the row that verifies it
		host_processes_are_out_of_sight                         escaped  steps:processes,steps:root verified
		inotify_instances_are_counted_per_box                   escaped  steps:namespace limits
		no_namespace_can_be_made_or_entered                     holds    steps:namespace limits  # the filter
		no_namespace_can_be_made_or_entered                     holds    steps:system calls      # the limits
		no_namespace_can_be_made_or_entered                     escaped  steps:namespace limits,steps:system calls
		kernel_settings_cannot_be_written                       escaped  steps:read-only proc
		a_program_cannot_change_its_place_in_the_oom_order      escaped  steps:read-only proc
		a_boot_id_is_the_boxs_own                               escaped  steps:boot id
		kernel_memory_keys_and_logs_are_masked                  escaped  steps:masked proc
		the_root_holds_what_a_box_needs_and_nothing_else        closed   steps:root switch       # the row that verifies it
		the_root_holds_what_a_box_needs_and_nothing_else        closed   steps:root switch,steps:root verified  # no /dev/tty there
		the_root_holds_what_a_box_needs_and_nothing_else        closed   steps:root switch,steps:root verified,steps:no terminal  # no /dev/null there
		a_keeper_with_a_terminal_makes_no_boxes                 escaped  steps:no terminal
		resource_limits_are_those_of_the_policy                 escaped  steps:resource limits
		objects_of_the_kernel_are_counted                       escaped  steps:resource limits
		a_program_has_no_capability_and_can_get_none            escaped  steps:capability bounds
		init_has_an_id_of_its_own                               closed   steps:identity          # then it cannot drop the bounds
		init_is_not_the_boxs_root                               escaped  steps:identity,exec:capability bounds
		a_program_has_no_capability_and_can_get_none            closed   steps:capabilities      # then init cannot become anybody
		no_program_gains_privileges                             closed   steps:no new privileges # then no filter can be loaded
		no_program_gains_privileges                             escaped  steps:no new privileges,exec:no new privileges,steps:landlock,steps:system calls
		no_device_node_can_be_made                              holds    steps:landlock          # the filter
		no_device_node_can_be_made                              holds    steps:system calls      # landlock
		no_device_node_can_be_made                              escaped  steps:landlock,steps:system calls
		a_program_holds_its_three_streams_and_nothing_else      closed   steps:descriptors
		no_signal_is_blocked_or_ignored                         escaped  steps:signals
		the_filter_is_there                                     escaped  steps:system calls
		calls_that_no_box_needs_are_refused                     escaped  steps:system calls
		programs_of_another_abi_are_killed                      escaped  steps:system calls
		sockets_open_in_four_families_and_few_protocols         escaped  steps:system calls
		dangerous_sockets_do_not_open                           escaped  steps:system calls
		the_upper_half_of_an_argument_opens_nothing             escaped  steps:system calls
		sync_does_not_reach_the_hosts_disks                     escaped  steps:system calls
		address_randomisation_cannot_be_switched_off            escaped  steps:system calls
		there_is_no_terminal_to_type_into                       escaped  steps:system calls
		files_have_no_handles                                   escaped  steps:system calls
		nobody_mounts_or_changes_the_root                       escaped  steps:system calls,steps:namespace limits,steps:landlock

		# init, from top to bottom
		a_program_leads_a_group_of_its_own                      escaped  exec:session
		a_terminal_of_a_box_is_its_own                          escaped  exec:session
		output_goes_to_whoever_asked_for_it                     escaped  exec:stdio
		a_limit_on_file_sizes_binds                             escaped  exec:file size
		a_program_is_the_user_and_nobody_else                   holds    exec:groups             # init has none
		a_program_is_the_user_and_nobody_else                   closed   exec:gid                # read back
		a_program_is_the_user_and_nobody_else                   escaped  exec:gid,exec:read back
		a_program_is_the_user_and_nobody_else                   closed   exec:uid                # read back
		a_program_is_the_user_and_nobody_else                   escaped  exec:uid,exec:read back
		a_program_is_the_user_and_nobody_else                   holds    exec:read back
		no_program_gains_privileges                             holds    exec:no new privileges  # the launcher has said so
		a_program_has_no_capability_and_can_get_none            escaped  exec:capability bounds
		a_program_has_no_capability_and_can_get_none            escaped  exec:capabilities
		a_program_starts_in_its_home                            escaped  exec:directory
		no_signal_is_blocked_or_ignored                         escaped  exec:signals
		a_program_holds_its_three_streams_and_nothing_else      holds    exec:descriptors        # all are close-on-exec

		# an interpreter that is forked into a box, from top to bottom
		an_interpreter_holds_its_three_streams_and_nothing_else escaped  seal:descriptors
		the_starters_keys_are_out_of_reach                      holds    seal:keyring            # the filter
		the_starters_keys_are_out_of_reach                      escaped  seal:keyring,seal:system calls
		an_interpreter_is_a_child_of_init_in_its_namespaces     escaped  seal:namespaces
		an_interpreters_files_have_the_usual_mode               escaped  seal:working folder
		an_interpreter_is_a_child_of_init_in_its_namespaces     escaped  seal:session
		resource_limits_are_those_of_the_policy                 escaped  seal:resource limits
		a_program_has_no_capability_and_can_get_none            escaped  seal:capability bounds
		a_program_is_the_user_and_nobody_else                   escaped  seal:identity
		an_interpreter_has_no_capability                        escaped  seal:capabilities
		no_program_gains_privileges                             holds    seal:no new privileges  # the zygote has said so
		no_device_node_can_be_made                              holds    seal:landlock           # the filter
		no_device_node_can_be_made                              escaped  seal:landlock,seal:system calls
		the_filter_is_there                                     escaped  seal:system calls
		two_boxes_of_one_parent_draw_different_numbers          escaped  itself
		two_boxes_of_one_parent_have_their_own_canary           escaped  itself  # seen with a child that keeps its parent's
		boxes_of_two_teams_share_no_secret                      escaped  itself  # seen with one zygote for all teams
		a_renewed_canary_harms_no_program                       escaped  itself
		what_one_box_writes_into_common_memory_stays_in_it      escaped  itself
		no_writable_mapping_is_shared                           escaped  itself
		the_file_that_an_interpreter_comes_from_cannot_be_opened escaped itself
		nothing_of_the_parents_environment_is_left              escaped  itself
		a_parent_that_dies_harms_no_box                         escaped  itself

		# the box's root
		the_boxs_root_has_eight_capabilities_and_no_more        escaped  steps:capability bounds
		the_boxs_root_has_eight_capabilities_and_no_more        escaped  exec:capabilities
		the_boxs_root_cannot_write_kernel_settings              escaped  steps:read-only proc
		the_boxs_root_cannot_change_the_oom_order               escaped  steps:read-only proc
		the_boxs_root_cannot_look_behind_the_masks              escaped  steps:masked proc
		the_boxs_root_cannot_leave                              escaped  steps:system calls
		the_boxs_root_is_nobody_outside                         escaped  host
		the_boxs_root_cannot_read_what_is_the_host_roots        escaped  host
		the_boxs_root_cannot_hold_up_the_hosts_programs         escaped  host
		the_boxs_root_cannot_become_init                        escaped  itself
		the_boxs_root_is_bound_by_the_same_limits               escaped  wider --disk 64M --mem 256M

		# what no row does: namespaces, id maps, the stage, init itself
		host_files_are_out_of_reach                             escaped  host
		host_processes_are_out_of_sight                         escaped  host
		the_root_holds_what_a_box_needs_and_nothing_else        escaped  host
		the_kernel_ends_boxes_before_the_hosts_own_processes    escaped  host
		no_mount_of_a_box_shows_on_the_host_or_the_other_way_round  escaped  shared
		every_namespace_is_the_boxs_own                         escaped  host
		ids_inside_mean_nothing_outside                         escaped  host
		init_is_sealed_empty_and_not_the_hosts_executable       escaped  host
		init_cannot_be_read_traced_or_ended                     escaped  host
		the_environment_is_made_from_nothing                    escaped  host
		what_others_may_not_read_of_the_hosts_programs_is_not_for_boxes  escaped  host
		no_lease_holds_up_the_hosts_programs                    escaped  host
		only_harmless_devices_are_there                         escaped  host
		set_user_id_programs_gain_nothing                       escaped  user
		the_hosts_sockets_are_out_of_reach                      escaped  host
		there_is_no_network_but_loopback                        escaped  host
		neighbours_have_different_ids_on_the_host               escaped  host
		neighbours_share_no_sockets                             escaped  host
		neighbours_share_no_memory_queues_or_files              escaped  host
		neighbours_cannot_see_or_signal_each_other              escaped  host
		daemons_end_with_their_box                              escaped  host
		a_box_without_inotify_instances_leaves_its_neighbour_some  escaped  user

		# limits: cgroups, file systems, mounts
		every_process_of_a_box_is_in_its_cgroups_with_its_limits  escaped  host
		a_memory_bomb_stays_in_its_box                          escaped  wider --mem 512M --disk 8M
		memory_by_other_names_is_memory_too                     escaped  wider --mem 512M --disk 8M
		a_fork_bomb_stays_in_its_box                            escaped  wider --pids 512
		a_busy_box_has_its_share_of_processors_and_no_more      escaped  wider --cpu 2 --report r.json
		what_a_box_writes_has_an_end                            escaped  wider --disk 64M --mem 256M
		what_a_box_writes_to_a_real_disk_has_an_end_too         escaped  wider --disk 300M --mem 64M
		files_are_counted                                       escaped  wider --files 5000
		terminals_are_counted_per_box                           escaped  host

		# the keeper
		the_keeper_keeps_to_itself                              escaped  other
		the_keeper_passes_no_descriptor_on                      escaped  other
		the_keeper_forgets_its_starters_environment             escaped  other
		rows_cannot_be_left_out_of_a_real_build                 escaped  other

		a_core_limit_of_zero_is_raised_or_reported              escaped  itself
		a_device_that_appears_could_not_be_opened               escaped  itself
		links_out_of_the_box_lead_the_record_nowhere            escaped  itself
		output_that_nobody_reads_does_not_grow                  escaped  itself
		a_neighbours_memory_bomb_is_not_noticed                 escaped  itself
		what_is_shared_of_usr_is_shared_as_documented           escaped  itself
		a_box_ends_with_the_client_that_leads_it                escaped  itself
		a_box_cannot_hang_its_client                            escaped  itself
		a_box_leaves_nobody_no_record_and_no_socket             escaped  itself
		a_network_that_was_not_used_is_used_again               escaped  itself
		a_record_lists_the_walls_that_are_there                 escaped  itself
		without_a_filter_no_box_is_made                         escaped  itself
		an_older_kernel_makes_whole_boxes_or_none               escaped  itself
		an_ordinary_user_has_fewer_walls_and_is_told_so         escaped  itself
		nothing_is_left_behind                                  escaped  itself
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
	# On the host init is anybody's first process; a target of our own is not to be missed.
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
# Born in it, a box on cgroup v2 has nothing to enter: the row does nothing there.
[ ! -f /sys/fs/cgroup/cgroup.controllers ] || sed -i 's/escaped steps:own cgroups/escaped itself steps:own cgroups/' "$work/table"
while read -r promise want where; do
	case $where in itself*) ;; *) broken "$promise" "$want" "$where" ;; esac
done <"$work/table"

{ policy steps '"steps:" + r["name"]' && policy exec '"exec:" + r["name"]' && policy seal '"seal:" + r["name"]'; } >"$work/rows"
cut -d ' ' -f 3- "$work/table" | sed 's/^itself //' | tr , '\n' | sort -u >"$work/tried"
sort "$work/rows" | comm -23 - "$work/tried" >"$said"
tell "$([ -s "$said" ] && echo not\ )ok" "every row of both tables has been left out"

cd "$here" && sed -n 's/^\([a-z][a-z0-9_]*_[a-z0-9_]*\)() {.*/\1/p' $(printf '%s.sh ' $promises) | sort >"$work/rows"
awk '$2 != "holds" { print $1 }' "$work/table" | sort -u | comm -23 "$work/rows" - >"$said"
tell "$([ -s "$said" ] && echo not\ )ok" "every promise has been broken"

echo "1..$count"
exit $bad
