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

boxes_survive_the_end_of_the_service() {
	is "$(settings KillMode)" "process "
	is "$(settings RuntimeDirectoryPreserve)" "yes "
	is "$(settings OOMPolicy)" "continue "
}

run_tests
