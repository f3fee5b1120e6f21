#!/bin/sh
# prove_mutants.sh - every isolation step of a container is left out once, and `atoll prove` is seen to fail where a probe covers it.
#
#	failed PROBE: WAY; ...   the proof fails, and these probes are among those that fail
#	closed              there is no box or no program: another step needs this one
#	holds               the proof passes: another step prevents the same, or the step is no boundary (a comment says which)
#
# Rows of engines and of the tier process (process_mutants.sh) have no effect on a container. `make prove-mutants`; it takes minutes.
. "$(dirname "$0")/../system/lib.sh"
. "$(dirname "$0")/mutants.lib"
if [ ! -x "${ATOLL_TEST_BIN-}" ]; then
	echo "1..0 # SKIP no build with test hooks: meson setup build-test -Dtest_hooks=true"
	exit 0
fi
ATOLL=$ATOLL_TEST_BIN ATOLL_STATE=$work/state
export ATOLL_STATE

table() {
	sed 's/#.*//; s/[ 	]*|[ 	]*/|/; s/[ 	]*$//; /^$/d' <<-'END'
		# The whole box: the probe runs on the host, as root.
		box                  | failed host files: by its path; host files: /proc/self/root; host files: the root of every process; host files: descriptors of other processes; host files: a symbolic link; host files: a hard link; host files: its file handle; host files: a bind mount; host files: chroot twice; host files: a new file beside it; host environment: environment of every process; host environment: own descriptors; host processes: kill; host processes: a signal by pidfd; host sockets: TCP at 127.0.0.1; host sockets: TCP at ::1; host sockets: UDP at 127.0.0.1; host sockets: an abstract socket; host sockets: a socket in a folder; other box: TCP at 127.0.0.1; other box: an abstract socket; other box: files in shared places; kernel: a user namespace; kernel: mount; kernel: bpf; kernel: io_uring; kernel: its log; kernel: its settings; kernel: sysfs; kernel: a device node; kernel: root of the box; kernel: the host name; kernel: no filter; output: all bytes; processes: no_new_privs; processes: filter; processes: namespaces; system calls: programs; identity: host name; identity: boot id
		boot id              | failed identity: boot id
		box root             | holds     # the builder has that id already
		capabilities         | closed
		capability bounds    | failed processes: capabilities
		cgroup view          | failed identity: cgroup path
		death signal         | holds     # about boxes that wait in the pool
		descriptors          | closed
		devices              | closed
		directory            | failed limits: disk bomb
		disk                 | closed
		engine files         | holds
		engine namespace limits | holds
		engine root          | holds
		engine system calls  | holds
		file size            | holds     # a limit that a request may set
		gid                  | closed
		groups               | holds     # init has none
		host name            | failed identity: host name
		identity             | holds
		keyring              | holds     # the filter
		keyring,system calls | failed kernel: keys
		landlock             | holds     # the mounts and the filter
		loopback             | holds     # a box without its own loopback
		masked proc          | failed kernel: its lists
		namespace limits     | failed kernel: inotify instances
		namespace limits,system calls | failed kernel: a user namespace
		network unused       | holds     # about network namespaces that are used again
		no new privileges    | closed
		no sysfs             | holds     # the root has no sysfs either
		no terminal          | holds     # this keeper has none
		own cgroups          | failed limits: memory bomb
		own descriptors      | closed
		private mounts       | holds     # the mount namespace of the keeper is private already
		process capabilities | holds
		process capability bounds | holds
		process children     | holds
		process folder       | holds
		process identity     | holds
		process landlock     | holds
		process session      | holds
		process supervisor   | holds
		process system calls | holds
		processes            | closed
		programs             | holds     # the files belong to root
		QEMU capabilities    | holds
		QEMU capability bounds | holds
		read back            | holds     # a check of the row before it
		read-only proc       | failed kernel: the own OOM score
		read-only sysctls    | holds
		resource limits      | holds
		root filesystem      | closed
		root switch          | closed
		root verified        | holds     # a check of the rows before it
		runsc capabilities   | holds
		runsc capability bounds | holds
		runsc namespace limits | holds
		session              | holds
		signals              | failed kernel: inherited signals
		stdio                | closed
		system calls         | failed system calls: programs
		uid                  | closed
		volumes              | holds     # these boxes have none
		working folder       | closed
	END
}

need_keeper
table >"$work/table"
while IFS='|' read -r rows want; do
	kill -0 "$keeper" 2>/dev/null || new_keeper
	set --
	rest=$rows,
	while [ "$rest" ]; do
		set -- "$@" --without "${rest%%,*}"
		rest=${rest#*,}
	done
	status=0 prove="$ATOLL prove"
	[ "$rows" != "own descriptors" ] || prove=prove_alone
	$prove container --json "$@" >"$work/out" 2>"$work/err" </dev/null || status=$?
	failed=$(jq -r '.[0].probes[] | select(.verdict == "failed") | .probe + ": " + .way' "$work/out" 2>/dev/null)
	case $status in 0) got=holds ;; 1) got=failed ;; *) got=closed ;; esac
	case $want in
	failed*)
		echo "${want#failed }" | sed 's/; /\n/g' | sort >"$work/wanted"
		lacking=$(echo "$failed" | sort | comm -13 - "$work/wanted")
		[ -z "$lacking" ] && got=$want || got="$got; these passed: $lacking; these failed:"
		;;
	esac
	[ "$got" = "$want" ] && tell ok "without $rows: $(echo "$want" | head -c 100)" || {
		tell "not ok" "without $rows: $(echo "$want" | head -c 100)"
		echo "# it was: $(echo $got $failed | head -c 300) $(head -c 200 "$work/err")"
	}
done <"$work/table"

{ "$ATOLL" policy steps --json | jq -r '.steps[].name'; "$ATOLL" policy exec --json | jq -r '.exec[].name'; } | sort -u >"$work/rows"
cut -d '|' -f 1 "$work/table" | tr , '\n' | sort -u >"$work/tried"
missing=$(comm -23 "$work/rows" "$work/tried")
[ -z "$missing" ] && tell ok "every row of both tables has been left out" || {
	tell "not ok" "every row of both tables has been left out"
	echo "# missing: $(echo $missing)"
}
echo "1..$count"
exit $bad
