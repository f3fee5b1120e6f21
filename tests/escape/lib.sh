# lib.sh - for tests of the isolation of a box. Source it, write tests, end with `run_tests`.
#
#	. "$(dirname "$0")/lib.sh"
#	need_keeper
#	# HostLeak
#	the_host_name_is_hidden() {
#		facts hostname
#		shows hostname atoll
#	}
#	run_tests
#
# A test checks both sides: what a hostile program got, which the probe reports from inside, and that
# the host is unchanged. It calls `escaped` when the isolation failed, and fails in any other way when
# something else went wrong. mutants.sh skips the isolation steps one by one and expects `escaped`:
# a test that was never seen to fail proves nothing.
#
# tests/tiers runs these files in other isolation tiers (ATOLL_TIER). With a kernel of their own (gvisor, microvm) programs
# may do things to that kernel: `refused` accepts the attempts of guest_may, and `shows` concludes nothing. Instead each
# test ends with `unharmed`: what the host shows of itself has not changed; and `held` checks every process of a box from
# outside (`confined`). A test of something that only containers have calls container_only.
#
# The word above a test is gVisor's class of what would happen without the isolation:
#	Escape    code of a box acts as the host          HostLeak  it learns what is the host's
#	Lateral   it acts on another box, or learns of it HostDoS   it uses up the host
#	PeerDoS   it uses up what another box has         SelfDoS   it harms itself beyond repair
[ -z "${loading-}" ] || return 0 # mutants.sh sources the tests of a file, and has all this already
. "$(dirname "$0")/../system/lib.sh"
export ATOLL_STATE="$work/state" ATOLL_CANARY="a word from outside"
: "${PROBE:?the probe, built beside atoll}"
mkdir "$work/bin"
cp "$PROBE" "$work/bin/probe"
bin=$work/bin
key=atoll-canary-$$

# Changed by mutants.sh: where `inside` runs, which steps are skipped, other limits.
place=box without= instead=

# ---- isolation tiers ----

tier=${ATOLL_TIER:-container} pool=2
guest= # the programs of a box have a kernel of their own
[ "$tier" = container ] || pool=0 # each box on the host is one of a test
case $tier in gvisor | microvm) guest=yes ;; esac
container_only() { [ "$tier" = container ] || skip "only boxes without an engine: $*"; }

# Attempts that the kernel of a guest may permit: they concern itself. `unharmed` has looked at the host.
guest_may='calls sync call=* socket=* unshare=* clone=* clone3=* type-in* console-* priority personality=* mknod-whiteout=* mknod-high=* nested
	create=/dev/x see=/sys/* see=/proc/1/* list=/proc/1/* read=/proc/1/* read=/proc/cmdline read=/proc/cgroups list=/proc/* trace-as=*
	write=/proc/self/oom_score_adj write=/proc/thread-self/oom_score_adj write=/proc/sys/* write=/dev/fuse write=/dev/net/tun'
# Linux has more of such files than gVisor: those of the guest show and change the guest.
[ "$tier" != microvm ] || guest_may="$guest_may read=/proc/* write=/proc/* create=/sys/x lease=/usr/*"
is_permitted() { # ACTION: by the kernel of a guest
	[ "$guest" ] || return 1
	set -f
	for pattern in $guest_may; do
		case $1 in $pattern) set +f; return 0 ;; esac
	done
	set +f
	return 1
}

# What a program that leaves its box could change or stop on the host, one fact per line.
host_facts() {
	for at in kernel/core_pattern kernel/modprobe kernel/hostname kernel/shmmax kernel/random/boot_id net/ipv4/ip_forward \
		user/max_user_namespaces vm/overcommit_memory; do
		echo "$at $(cat "/proc/sys/$at" 2>/dev/null)"
	done
	stat -c '%n %y %z %a %h %s' /usr/bin/env /etc/passwd "$work/canary"
	echo "canary $(cat "$work/canary") $(sed -n 's/^\(State\|Uid\|TracerPid\|SigPnd\|ShdPnd\):\t//p' "/proc/$canary_process/status" | tr '\n' ' ')"
	echo "canary $(cat "/proc/$canary_process/oom_score_adj") $(cut -d ' ' -f 19 "/proc/$canary_process/stat") $(cksum <"/proc/$canary_process/limits")"
	readlink /proc/$canary_process/ns/*
	grep -c -e "$work" -e lowerdir=l, /proc/self/mountinfo || :
}
watch_host() {
	echo "a word from outside, $$" >"$work/canary"
	sleep 1000000 &
	canary_process=$!
	trap 'kill "$canary_process" 2>/dev/null; finish' EXIT
	soon runs_sleep
	host_facts >"$work/host_facts"
}
runs_sleep() { [ "$(cat "/proc/$canary_process/comm")" = sleep ]; }
unharmed() {
	host_facts >"$work/host_facts.now"
	cmp -s "$work/host_facts" "$work/host_facts.now" || escaped "the host has changed: $(diff "$work/host_facts" "$work/host_facts.now" | tr '\n' ';')"
}

# All processes below this one.
below() { for pid in $(cat /proc/"$1"/task/*/children 2>/dev/null); do echo "$pid"; below "$pid"; done; }
# The engine of an outer box: not the program that has only started it.
engine_of() {
	for pid in $(below "$1"); do
		case $(tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline") in runsc-sandbox* | *qemu-system*) echo "$pid" && break ;; esac
	done
}
# confined MUX: every process of an outer box, seen from the host.
confined() {
	read -r _ base _ <"/proc/$1/uid_map"
	for pid in $1 $(below "$1"); do
		status=$(cat "/proc/$pid/status" 2>/dev/null) || continue # it has ended
		value() { echo "$status" | sed -n "s/^$1:\t\([0-9]*\).*/\1/p"; }
		[ "$(value Uid)" -ge "$base" ] && [ "$(value Uid)" -lt $((base + 65536)) ] || escaped "process $pid has host uid $(value Uid)"
		[ "$(value NoNewPrivs) $(value Seccomp)" = "1 2" ] || escaped "process $pid: no_new_privs $(value NoNewPrivs), seccomp $(value Seccomp)"
		[ "$(cat "/proc/$pid/oom_score_adj" 2>/dev/null || echo 500)" = 500 ] || escaped "process $pid: oom_score_adj"
		for ns in user mnt pid net ipc; do
			[ "$(readlink "/proc/$pid/ns/$ns")" != "$(readlink "/proc/self/ns/$ns")" ] || escaped "process $pid: $ns is the host's"
		done
	done
	status=0
}
# The outer boxes of the keeper, the newest last.
outer_boxes() { for pid in $(cat /proc/"$keeper"/task/*/children); do [ "$(cat "/proc/$pid/comm" 2>/dev/null)" != atoll-mux ] || echo "$pid"; done | sort -n; }

# Starts a keeper with things that a box must not get: a variable, a key in its keyring, groups, an
# ignored signal.
keeper_here() { # EXECUTABLE [WRAPPER...]: sets keeper
	executable=$1
	shift
	rm -f "$work/ready"
	mkfifo "$work/ready"
	(
		trap '' USR2
		exec "$@" "$PROBE" with-key "$key" setpriv --groups 4,20,24 -- \
			"$executable" keeper --pool "$pool" --ready-fd 3
	) 3>"$work/ready" 2>"$work/keeper.err" &
	keeper=$!
	said=$(dd bs=4096 count=1 2>/dev/null <"$work/ready")
}
need_keeper() {
	[ "$(id -u)" = 0 ] || { echo "1..0 # SKIP not root"; exit 0; }
	keeper_here "${1:-$ATOLL}"
	for _ in $(seq 60); do # other tests have keepers, too
		case $said in *'have all user ids'*) ;; *) break ;; esac
		sleep 1
		keeper_here "${1:-$ATOLL}"
	done
	[ "$said" = R ] || { echo "Bail out! keeper: ${said#E}"; exit 1; }
	[ -z "$guest" ] || { watch_host && after_each=unharmed; }
}

escaped() { echo "# escaped: $*"; exit 9; }
closed() { echo "# refused: $*"; exit 8; } # no box was created: nothing could escape

# ---- inside ----

# The command line of a probe: in a box, in a copy of a running one (copied, resumed), in a box with skipped steps, or on
# the host.
in_place() { # COMMAND_NAME WORD...: "$@" of the named function gets the whole command line
	then=$1
	shift
	case $place in
	box) $then "$ATOLL" run ${instead:-$limits} -w "$bin" -- ./probe "$@" ;;
	copied) $then "$(dirname "$ATOLL")/copied" ${instead:-$limits} "$bin/probe" "$@" ;;
	resumed) $then "$(dirname "$ATOLL")/copied" -d ${instead:-$limits} "$bin/probe" "$@" ;;
	zygote) $then "$(dirname "$ATOLL")/mutant" -s $flags "$bin/probe" "$@" ;;
	python) $then "$(dirname "$ATOLL")/mutant" $flags "$brought" "$@" ;;
	library) $then "$(dirname "$ATOLL")/mutant" $flags "$bin/probe" "$@" ;;
	host) $then "$bin/probe" "$@" ;;
	shared) $then unshare -m --propagation shared -- "$bin/probe" "$@" ;;
	user) $then setpriv --reuid 1000 --regid 1000 --clear-groups -- /proc/self/fd/9 "$@" ;;
	mutant)
		set -- "${brought:-$bin/probe}" "$@"
		rest=$without,
		while [ "$rest" ]; do
			set -- -w "${rest%%,*}" "$@"
			rest=${rest#*,}
		done
		case $without in *seal:*) set -- -s "$@" ;; esac
		$then "$(dirname "$ATOLL_TEST_BIN")/mutant" $flags "$@"
		;;
	esac
}
now() {
	status=0
	"$@" >out 2>err </dev/null 9<"$bin/probe" || status=$?
	out=$(tr '\0\r' '?\n' <out | grep . || :) err=$(cat err) # a terminal ends lines in two ways
	case $err in *refused:*) closed "$err" ;; esac
	! grep -qF -e "$ATOLL_CANARY" -e "$(cat /proc/sys/kernel/random/boot_id)" out || escaped "a word from outside is inside"
}
limits= flags= brought=
inside() { in_place now "$@"; }

facts() { # KEY...
	inside facts "$@"
	is "$status" 0 "$err"
	[ "$out" ] || [ "$guest" ] || escaped "the probe's words did not arrive"
}
fact() { echo "$out" | sed -n "/^$1\( \|\$\)/{s/^$1 \{0,1\}//;p}"; }
same() { [ "$1" = "$2" ] || escaped "'$1' is not '$2'${3:+: $3}"; } # as `is`, for the isolation
shows() { [ "$guest" ] || [ "$(fact "$1")" = "$2" ] || escaped "$1 is '$(fact "$1" | head -c 300)', not '$2'"; }

verdicts() { # ACTION...
	inside try "$@"
	is "$status" 0 "$err"
	[ "$(echo "$out" | grep -Ec ' (ok|E[A-Z0-9]+|killed SIG[A-Z]+)$')" = $# ] || fail "not $# verdicts: $out"
}
refused() { # ACTION...: each of them fails
	verdicts "$@"
	for action in $(echo "$out" | sed -n 's/ ok$//p'); do
		is_permitted "$action" || escaped $(echo "$out" | sed -n 's/ ok$//p')
	done
}
works() { # ACTION...: each of them works
	verdicts "$@"
	[ "$(echo "$out" | grep -c ' ok$')" = $# ] || escaped "does not work: $(echo "$out" | grep -v ' ok$')"
}

# From here on probes run as root of the box, which has a few capabilities in it.
as_root() {
	limits="$limits --root" flags="$flags -r"
	[ -z "$instead" ] || instead="$instead --root"
}

# used WHAT MOST: allocates up to MOST; sets got. A probe that was killed for it got nothing.
used() {
	inside use "$@"
	got=$(echo "$out" | sed -n "s/^$1 \([0-9]*\).*/\1/p")
	got=${got:-0}
}

# ---- boxes that stay ----

# held FD NAME ACTION...: starts a box that keeps the results of these until `freed FD NAME`; FD is 7 or 8.
# Sets program and init, the process ids on the host.
later() { "$@" <"$name.in" >"$name.out" 2>"$name.err" 7>&- 8>&- 9<"$bin/probe" & eval "$name=\$!"; }
held() {
	fd=$1 name=$2
	shift 2
	mkfifo "$name.in"
	in_place later hold "$@" "named=$name-$$-held"
	eval "exec $fd>\$name.in"
	eval "client=\$$name"
	for _ in $(seq 6000); do
		grep -q '^ready' "$name.out" && break
		[ -d "/proc/$client" ] || case $(cat "$name.err") in
		*refused:*) closed "$(cat "$name.err")" ;;
		*) fail "no box: $(cat "$name.err")" ;;
		esac
		sleep 0.01
	done
	if [ "$guest" ]; then
		init=$(outer_boxes | tail -n 1) program=$(engine_of "$init")
	else
		program=$(named "$name-$$-held")
	fi
	[ "$program" ] || fail "no program on the host's side"
	[ "$guest" ] && confined "$init" || init=$(sed -n 's/^PPid:\t//p' "/proc/$program/status")
}
named() { # WORD: processes of the probe with WORD on their command line, which a checkpoint zygote (atoll-image) has, too
	grep -ls -- "$1" /proc/[0-9]*/cmdline | while IFS=/ read -r _ _ pid _; do
		line=$(tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline") || continue
		read -r comm 2>/dev/null <"/proc/$pid/comm" || continue
		case $comm:${line%% *} in atoll-image:*) ;; *:probe | */probe) echo "$pid" ;; esac
	done
}
freed() {
	eval "exec $1>&-"
	eval "wait \$$2" || fail "$2: $(cat "$2.err")"
}

# ---- the host's side ----

# Creates files below /usr of the host that other users may not read: one of root, and one of the host user
# with the uid number of a box user. Sets private.
private_programs() {
	private="/usr/local/share/atoll-canary-$$.0 /usr/local/share/atoll-canary-$$.1000"
	trap 'rm -f $private' EXIT
	for file in $private; do
		echo secret >"$file" 2>/dev/null || skip "this host's /usr is read-only"
		chmod 600 "$file"
		chown "${file##*.}:${file##*.}" "$file"
	done
}

# cgroup_of CONTROLLER PID: prints its folder on the host; nothing without this controller.
cgroup_of() {
	if [ -f /sys/fs/cgroup/cgroup.controllers ]; then
		echo "/sys/fs/cgroup$(sed -n 's/^0:://p' "/proc/$2/cgroup")"
	else
		at=$(awk -v c="$1" '$3 == "cgroup" && $4 ~ "(^|,)" c "(,|$)" { print $2; exit }' /proc/self/mounts)
		[ -z "$at" ] || echo "$at$(sed -n "s/^[0-9]*:\([^:]*,\)*$1\(,[^:]*\)*://p" "/proc/$2/cgroup")"
	fi
}
# mounted PATH: options, type and options of the file system, from `facts mounts`.
mounted() { fact mount | awk -v at="$1" '$5 == at { print $6, $(NF - 2), $NF }'; }

got_from() { sed -n "s|^$2 ||p" "$1.out"; } # NAME FACT

policy() { # SECTION EXPRESSION over its rows r, one line each
	"$ATOLL" policy "$1" --json | /usr/bin/python3 -c '
import json, sys
for r in json.load(sys.stdin)[sys.argv[1]]:
    print(eval(sys.argv[2]))' "$1" "$2"
}

# RLIMIT_CORE of a keeper that was started with this hard limit, and of its boxes: 1, which stops handlers,
# too. A hard limit of 0 (Debian's sudo sets it) can be raised with CAP_SYS_RESOURCE only.
core_limit() { # [HARD_LIMIT]
	caps=$(sed -n 's/^CapEff:\t//p' /proc/self/status)
	[ "${1:-$(ulimit -Hc)}" = 0 ] && [ $((0x$caps >> 24 & 1)) = 0 ] && echo "0 0" || echo "1 1"
}

# ---- keepers of their own ----

# For tests that stop or damage their keeper: in the folder of the test, ended with it at the latest.
own_keeper() { # EXECUTABLE [WRAPPER...]
	export ATOLL_RUN="$PWD/run" ATOLL_STATE="$PWD/state"
	keeper_here "$@"
	trap 'kill -9 "$keeper" 2>/dev/null || :' EXIT
}

# Starts a keeper that leads a session with a terminal, which it cannot leave.
keeper_on_terminal() {
	export ATOLL_RUN="$PWD/run" ATOLL_STATE="$PWD/state"
	rm -f "$work/ready"
	mkfifo "$work/ready"
	"$PROBE" on-terminal "$1" keeper --pool 0 --ready-fd 3 3>"$work/ready" >terminal.pid 2>"$work/keeper.err" &
	said=$(dd bs=4096 count=1 2>/dev/null <"$work/ready")
	is "$said" R
	keeper=$(sed -n 's/^pid //p' terminal.pid)
	trap 'kill -9 "$keeper" 2>/dev/null || :' EXIT
}
keeper_gone() {
	kill "$keeper"
	soon keeper_has_ended
}
keeper_has_ended() {
	[ ! -d "/proc/$keeper" ] || case $(sed -n 's/^State:\t//p' "/proc/$keeper/status") in Z*) ;; *) return 1 ;; esac
}
