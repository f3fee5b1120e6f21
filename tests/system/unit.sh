#!/bin/sh
# unit.sh - the systemd unit: well-formed, as restricted as docs/daemon.md states, and no more than that.
# There is no service manager in a test, so the script applies the restrictions of the unit itself.
. "$(dirname "$0")/lib.sh"
units=$here/../../systemd
unit=$units/atoll.service

analyze() { command -v systemd-analyze >/dev/null || skip "no systemd-analyze"; }
settings() { sed -n "s/^$1=//p" "$unit" | tr '\n' ' '; }

# try_run FOLDER CAPABILITY...: starts a keeper with only these capabilities and runs programs with it.
try_run() {
	[ "$(id -u)" = 0 ] || skip "not root"
	command -v setpriv >/dev/null || skip "no setpriv"
	export ATOLL_RUN="$PWD/$1" ATOLL_STATE="$PWD/$1/state"
	mkdir -p "$ATOLL_STATE"
	mkfifo ready
	shift
	caps=$(printf '%s\n' "$@" | tr A-Z a-z | sed 's/^cap_/+/' | paste -sd,)
	setpriv --no-new-privs --inh-caps=-all --bounding-set="-all,$caps" \
		"$ATOLL" keeper --pool 0 --ready-fd 3 3>ready >log 2>&1 &
	pid=$!
	result=$(dd bs=4096 count=1 2>/dev/null <ready)
	if [ "$result" = R ]; then
		result=$(timeout 120 "$ATOLL" run --mem 64M -- echo made 2>&1) || :
		# A disk that is an image: mkfs, a loop device, a mount.
		[ "$result" != made ] || result=$(timeout 120 "$ATOLL" run --disk 2G -- echo made 2>&1) || :
		kill $pid
	fi
	wait $pid || :
	rm -rf ready "$ATOLL_RUN"
}

the_units_are_well_formed() {
	analyze
	mkdir u
	# The executable under test replaces the installed path of the unit.
	sed "s,^ExecStart=atoll ,ExecStart=$ATOLL ,; /^Documentation/d" "$unit" >u/atoll.service
	sed '/^Documentation/d' "$units/atoll.socket" >u/atoll.socket
	said=$(SYSTEMD_UNIT_PATH=$PWD/u:/usr/lib/systemd/system:/lib/systemd/system \
		systemd-analyze verify --man=no u/atoll.service u/atoll.socket 2>&1 | grep 'atoll\.' || :)
	is "$said" ""
}

the_security_score_is_the_documented_one() {
	analyze
	score=$(systemd-analyze security --offline=true "$unit" 2>/dev/null | sed -n 's/.*level for atoll.service: \([0-9.]*\).*/\1/p')
	[ "$score" ] || skip "this systemd-analyze knows no --offline"
	told=$(sed -n 's/.*exposure of \([0-9.]*\).*/\1/p' "$here/../../docs/daemon.md")
	awk -v score="$score" -v told="$told" 'BEGIN { exit !(told > 0 && score <= told + 0.2) }' || fail "$score, not $told"
}

boxes_can_be_created_with_the_capabilities_of_the_unit() {
	try_run k $(settings CapabilityBoundingSet)
	is "$result" made
}

every_capability_of_the_unit_is_needed() {
	for cap in $(settings CapabilityBoundingSet); do
		folder=k
		case $cap in
		CAP_NET_BIND_SERVICE | CAP_KILL) continue ;; # for low ports and for killing boxes, which a run does not use
		CAP_SYS_RESOURCE) continue ;; # for the lower bound of oom_score_adj and for RLIMIT_CORE: identity.sh
		CAP_DAC_OVERRIDE)
			[ "$(stat -c %a /sys/fs/cgroup/pids 2>/dev/null || stat -c %a /sys/fs/cgroup)" = 555 ] || continue
			folder=new ;; # its cgroups do not exist yet
		esac
		try_run $folder $(settings CapabilityBoundingSet | sed "s/$cap//")
		[ "$result" != made ] || fail "boxes are made without $cap"
	done
}

the_unit_filters_no_system_call_that_a_box_may_use() {
	analyze
	"$ATOLL" policy seccomp --json >out
	for group in $(settings SystemCallFilter | tr -d '~'); do
		systemd-analyze syscall-filter "$group"
	done | sed -n 's/^    \([a-z_0-9]*\)$/\1/p' | sort -u >filtered
	[ "$(wc -l <filtered)" -gt 20 ] || fail "no groups of calls"
	json out '"\n".join(r["name"] for r in d["seccomp"] if r["what"] in ("allowed", "by argument"))' | sort >allowed
	is "$(comm -12 filtered allowed | xargs)" ""
}

# Does what the service manager does with atoll.socket: makes its sockets, here below the test's folder, and starts the daemon.
activate() {
	/usr/bin/python3 - "$units/atoll.socket" "$ATOLL" <<-'END' >log 2>&1 &
		import os, re, socket, sys
		fds = []
		for where in re.findall(r"^ListenStream=(.*)$", open(sys.argv[1]).read(), re.M):
		    if where.startswith("/"):
		        s = socket.socket(socket.AF_UNIX)
		        s.bind(os.environ["ATOLL_RUN"] + "/" + where.rsplit("/", 1)[1])
		    else:
		        s = socket.socket()
		        s.bind(("127.0.0.1", 0))
		        open("port", "w").write(str(s.getsockname()[1]))
		    s.listen(64)
		    fds.append(s)
		copies = [os.dup(s.fileno()) for s in fds]
		for i, fd in enumerate(copies):
		    os.dup2(fd, 3 + i)
		os.environ.update(LISTEN_FDS=str(len(fds)), LISTEN_PID=str(os.getpid()))
		os.execv(sys.argv[2], [sys.argv[2], "serve"])
	END
	daemon=$!
}

the_daemon_serves_on_the_sockets_of_the_service_manager() {
	[ "$(id -u)" = 0 ] || skip "not root"
	chmod a+x "$TMPDIR" "$work" . # the server runs as another user
	export ATOLL_STATE="$PWD/state"
	mkdir -p "$ATOLL_RUN" "$ATOLL_STATE"
	activate
	serves() { ! kill -0 $daemon 2>/dev/null || curl -fs --unix-socket "$ATOLL_RUN/atoll.sock" http://x/healthz; }
	soon serves
	kill -0 $daemon 2>/dev/null || fail "$(cat log)"
	is "$(curl -fs "http://127.0.0.1:$(cat port)/healthz" >/dev/null; echo $?)" 0
	"$ATOLL" upgrade -q
	"$ATOLL" stop --all -q
	wait $daemon || :
	# It belongs to the service manager, which listens on it while the daemon restarts.
	[ -S "$ATOLL_RUN/atoll.sock" ] || fail "the daemon has removed a socket that it did not make"
}

# as_user GROUP,...: GET /v1/boxes as a user with these groups; the status of the answer, 000 if it cannot connect.
as_user() {
	setpriv --reuid 54321 --regid 54321 --groups "$1" \
		curl -s -o /dev/null -w '%{http_code}' --unix-socket "$ATOLL_RUN/atoll.sock" http://x/v1/boxes || :
}

members_of_serve_group_use_the_socket_without_a_key() {
	[ "$(id -u)" = 0 ] || skip "not root"
	# A folder that others may enter; the folders of tests are not such.
	top=$(mktemp -d /tmp/atoll-unit.XXXXXX)
	chmod 711 "$top"
	export ATOLL_RUN=$top/run ATOLL_STATE=$top/state ATOLL_LISTEN=127.0.0.1:0
	ATOLL_GROUP=54322 "$ATOLL" serve >log 2>&1 &
	daemon=$!
	serves() { ! kill -0 $daemon 2>/dev/null || curl -fs --unix-socket "$ATOLL_RUN/atoll.sock" http://x/healthz; }
	soon serves
	kill -0 $daemon 2>/dev/null || fail "$(cat log)"
	member=$(as_user 1,54322,7) stranger=$(as_user 1,7)
	chmod 777 "$ATOLL_RUN" "$ATOLL_RUN/atoll.sock"
	keyless=$(as_user 1,7)
	"$ATOLL" stop --all -q
	wait $daemon || :
	rm -rf "$top"
	is "$member $stranger $keyless" "200 000 401"
}

serve_group_must_exist_and_not_be_the_one_of_root() {
	for name in no-such-group 0 root 5x 99999999999; do
		status=0
		ATOLL_STATE="$PWD/s" ATOLL_GROUP=$name ATOLL_LISTEN=127.0.0.1:0 timeout 60 "$ATOLL" serve >log 2>&1 || status=$?
		[ "$status" != 0 ] && [ "$status" != 124 ] || fail "$name: status $status"
		has "$(cat log)" "serve.group:"
	done
}

# The command kill is not on every system; that of a shell is.
reloading_the_service_needs_no_further_package() {
	command=$(settings ExecReload)
	case $command in "sh -c "*) ;; *) fail "$command" ;; esac
	sleep 100 &
	sleeper=$!
	env -i PATH=/nonexistent MAINPID=$sleeper /bin/sh -c "$(echo "$command" | sed "s/^sh -c '//; s/' *\$//; s/-HUP/-KILL/")"
	status=0
	wait $sleeper || status=$?
	is "$status" 137
}

boxes_survive_the_end_of_the_service() {
	is "$(settings KillMode)" "process "
	is "$(settings RuntimeDirectoryPreserve)" "yes "
	is "$(settings OOMPolicy)" "continue "
}

run_tests
