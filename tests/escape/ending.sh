#!/bin/sh
# ending.sh - the end of a box, the keeper, and hosts with fewer features.
. "$(dirname "$0")/lib.sh"
need_keeper

word=atoll-daemon-$$
alive() { [ "$(named "$1")" ]; }
none() { ! alive "$1"; }

# HostDoS: neither a session, nor a second fork, nor ignored signals help
background_processes_end_with_their_box() {
	inside daemon "$word"
	is "$status" 0
	if [ "$place" = host ]; then
		soon alive "$word"
		kill -9 $(named "$word")
		escaped "a daemon outlived its starter"
	fi
	soon none "$word"
}

# HostDoS
a_box_ends_with_its_client() {
	held 8 a
	kill -9 "$a"
	gone() { [ ! -d "/proc/$program" ] && [ ! -d "/proc/$init" ]; }
	soon gone
	exec 8>&-
}

# HostDoS: a program that stops every process of its user, including file workers
a_box_cannot_hang_its_client() {
	status=0
	timeout -s KILL 60 "$ATOLL" run --time 1s --report r.json -- sh -c \
		'(setsid sh -c "while :; do kill -STOP -1; done" >/dev/null 2>&1 &) ; sleep 60' </dev/null 2>err || status=$?
	[ "$status" != 137 ] || escaped "its client waits without limit"
	is "$status" 124 # the wall limit
}

sockets() { [ "$(find "$ATOLL_RUN/boxes" -type s | wc -l)" = "$1" ]; }
# A slot of the record file has 2048 bytes; the first is the head of the file, and a free one starts with zeroes.
records() {
	[ "$(tail -c +2049 "$ATOLL_RUN/records" | od -A n -v -t u8 -w2048 | awk '$1 != 0' | wc -l)" = "$1" ]
}

# HostDoS
a_box_leaves_no_process_no_record_and_no_socket() {
	waiting=$pool
	held 8 a
	dir=$(cgroup_of memory "$program")
	soon records $((waiting + 1)) # ours, and pooled boxes
	freed 8 a
	empty_cgroup() { [ ! -d "$dir" ] || [ -z "$(cat "$dir/cgroup.procs")" ]; } # or the cgroup is kept for another box
	gone() { empty_cgroup && sockets $waiting && records $waiting; }
	soon gone
	lacks "$("$ATOLL" ps -q)" .
}

# HostDoS: no client would end a box that was not claimed. Init is stopped, so that it cannot notice the
# death of its keeper itself: the kernel has to kill it.
a_pooled_box_ends_with_its_keeper() {
	container_only "others are pooled after a request"
	own_keeper "${executable:-$ATOLL}"
	is "$said" R
	waiting() { boxes=$(children "$keeper" atoll-init); [ "$(echo "$boxes" | wc -w)" = 2 ]; }
	soon waiting
	kill -9 "$keeper" # before init is executed, the death signal ends it, later the end of its first connection
	wait "$keeper" 2>/dev/null || :
	if ! (soon ended $boxes) >/dev/null; then
		kill -9 $boxes
		escaped "waiting boxes outlive their keeper"
	fi
}
children() { # PID NAME
	for p in $(cat /proc/"$1"/task/*/children); do
		[ "$(cat "/proc/$p/comm" 2>/dev/null)" != "$2" ] || echo "$p"
	done
}
ended() { # PID...
	for p; do
		case $(sed -n 's/^State:\t//p' "/proc/$p/status" 2>/dev/null) in '' | Z* | X*) ;; *) return 1 ;; esac
	done
}

# HostLeak
the_keeper_is_not_dumpable_and_its_folders_are_private() {
	is "$(stat -c %a "$ATOLL_RUN") $(stat -c %a "$ATOLL_RUN/boxes")" "700 700"
	same "$(sed -n 's/^Umask:\t//p' "/proc/$keeper/status")" 0077
	same "$(awk '/Max core file size/ { print $5, $6 }' "/proc/$keeper/limits")" "$(core_limit)"
	# Not dumpable: even its own uid may not read its memory without a capability.
	setpriv --bounding-set -all --inh-caps -all -- cat "/proc/$keeper/environ" >seen 2>/dev/null &&
		escaped "the keeper's memory is readable"
	:
}

# HostLeak
the_keeper_passes_no_descriptor_to_a_box() {
	for fd in /proc/"$keeper"/fd/*; do
		n=${fd##*/}
		[ "$n" -le 2 ] || grep -q '^flags:.*02[0-9]\{6\}$' "/proc/$keeper/fdinfo/$n" ||
			escaped "descriptor $n, $(readlink "$fd"), survives an exec"
	done
}

# HostLeak
the_keeper_clears_the_environment_of_its_starter() {
	case $(tr '\0' '\n' <"/proc/$keeper/environ") in *"$ATOLL_CANARY"*) escaped "it is all still there" ;; esac
}

# Escape
a_release_build_cannot_skip_isolation_steps() {
	container_only "tests/tiers has a test build"
	mutant=$(dirname "$ATOLL")/mutant
	"$mutant" "$bin/probe" facts uid >out
	"$mutant" -w "steps:system calls" "$bin/probe" facts uid >out 2>said && escaped "the launcher left out a row"
	has "$(cat said)" "test builds only"
	"$mutant" -w "exec:capabilities" "$bin/probe" facts uid >out 2>said && escaped "init left out a row"
	has "$(cat said)" "only a test build"
	"$ATOLL" run --without "system calls" -- true 2>said && escaped "the command line offers it"
	:
}

# ---- hosts that offer less ----

# elsewhere CALL...: runs a box with a keeper on a kernel without these calls; sets made and said.
elsewhere() {
	rm -rf run state
	own_keeper "$ATOLL" "$PROBE" block "$@" --
	made=no
	[ "$said" = R ] || return 0
	limits="--report r.json"
	if "$ATOLL" run $limits -w "$bin" -- ./probe facts >out 2>err </dev/null; then
		made=yes out=$(cat out)
	else
		said=$(cat err)
	fi
	keeper_gone
}

# Escape
a_record_lists_the_active_isolation_features() {
	container_only "the features of an outer box are in docs/tiers.md"
	limits="--report r.json"
	facts switches
	"$ATOLL" policy layers --json | json /dev/stdin '[r["name"] for r in d["layers"]]' >all
	is "$(json r.json 'd["layers"]')" "$(cat all)"
	# Without one feature the box runs, and the record does not list it.
	elsewhere landlock
	is "$made" yes "$said"
	is "$(json r.json '[l for l in '"$(cat all)"' if l not in d["layers"]]')" "['landlock']"
}

# Escape
without_seccomp_no_box_is_created() {
	elsewhere seccomp
	is "$made" no
	has "$said" system-calls
}

# Escape: no warn and continue
with_a_missing_system_call_a_box_is_fully_isolated_or_not_created() {
	container_only "an engine starts, or the box is not created"
	for call in openat2 close_range mount_setattr open_tree move_mount fsopen clone3 keyctl; do
		elsewhere $call
		echo "# without $call: $([ $made = yes ] && echo whole || echo "none: $(echo "$said" | head -n 1)")"
		[ $made = yes ] || { [ "$said" ] || fail "without $call: no reason given"; continue; }
		shows uid "1000 1000 1000"
		shows bounding 000000000
		shows no_new_privs 1
		shows seccomp 2
		shows hostname atoll
		case $(mounted /usr) in ro,nosuid,nodev*) ;; *) escaped "without $call: /usr is $(mounted /usr)" ;; esac
		case $(mounted /proc) in ro,*) ;; *) escaped "without $call: /proc is $(mounted /proc)" ;; esac
		[ "$(fact fd | wc -l)" = 3 ] || escaped "without $call: $(fact fd)"
	done
}

# Escape: the boxes of an ordinary user have the uid of that user, so only the other features separate them
an_ordinary_user_has_fewer_isolation_features_and_they_are_listed() {
	container_only "an engine needs a keeper with root"
	newline='
'
	dir=$(mktemp -d /tmp/atoll-user.XXXXXX)
	trap 'kill -9 "$keeper" 2>/dev/null || :; rm -rf "$dir"' EXIT
	mkdir "$dir/bin"
	cp "$ATOLL" "${ATOLL}d" "$dir"
	cp "$bin/probe" "$dir/bin"
	echo secret >"$dir/canary"
	chown -R 12345:12345 "$dir"
	as() {
		setpriv --reuid 12345 --regid 12345 --clear-groups -- env -i PATH="$PATH" ATOLL_RUN="$dir/run" \
			ATOLL_STATE="$dir/state" ASAN_OPTIONS="${ASAN_OPTIONS-}" "$@"
	}
	as unshare -U true 2>/dev/null || skip "ordinary users make no user namespaces here"
	mkfifo ready
	as "$dir/atoll" keeper --pool 0 --ready-fd 3 3>ready 2>keeper.err &
	said=$(dd bs=4096 count=1 2>/dev/null <ready)
	is "$said" R
	keeper=$(as "$dir/atoll" doctor --json | sed -n 's/.*"pid \([0-9]*\),.*/\1/p')

	as "$dir/atoll" run --report "$dir/r.json" -w "$dir/bin" -- ./probe facts >out </dev/null
	out=$(cat out)
	for wall in uid-range memory-limit process-limit cpu-limit devices; do
		lacks "$(json "$dir/r.json" 'd["layers"]')" "'$wall'"
	done
	# Agents, Jupyter kernels and the sudo shim are programs of /opt/atoll.
	is "$(as "$dir/atoll" run -- sh -c 'sudo echo shim; /opt/atoll/bin/boxagent 2>&1; touch /opt/atoll/x 2>/dev/null || echo read-only')" \
		"shim${newline}boxagent: the server starts this program; it cannot be started by hand${newline}read-only"
	shows uid "1000 1000 1000"
	shows bounding 000000000
	shows no_new_privs 1
	shows seccomp 2
	shows interface lo
	as "$dir/atoll" run -w "$dir/bin" -- ./probe try "read=$dir/canary" "climb=$dir/canary" \
		"through-proc=$dir/canary" "socket-at=$dir/run/keeper.sock" "signal=$keeper" ptrace=1 memory=1 \
		take-fd=1 list=/proc/1/fd create=/usr/x create=/etc/x nested calls set-user-id=/usr/bin/su >out
	grep ' ok$' out && escaped "$(grep ' ok$' out)"
	is "$(wc -l <out)" 14

	# A limit that cannot be enforced is rejected.
	for limit in "--mem 64M" "--pids 5" "--cpu 0.5"; do
		as "$dir/atoll" run $limit -- true 2>err && escaped "$limit was promised"
		has "$(cat err)" "cannot be enforced"
	done
	keeper_gone
}

# The last test: a keeper that is asked to exit removes everything of its own.
a_keeper_that_exits_leaves_no_cgroup_record_or_file() {
	held 8 a
	dir=$(dirname "$(cgroup_of memory "$program")")
	freed 8 a
	keeper_gone
	gone() { [ ! -d "$dir" ] && [ -z "$(find "$ATOLL_RUN/boxes" "$ATOLL_STATE" -type f)" ] && [ ! -e "$ATOLL_RUN/records" ]; }
	soon gone
	is "$(grep -c "$work" /proc/self/mountinfo || :)" 0
}

run_tests
