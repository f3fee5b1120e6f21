# lib.sh - for shell tests that drive $ATOLL. Source it, write functions, end with `run_tests`.
#
#	. "$(dirname "$0")/lib.sh"
#	run_returns_the_exit_status_of_the_program() {
#		run -- sh -c 'exit 7'
#		is "$status" 7
#	}
#	run_tests
#
# A test is a function whose name has three words or more and states what is checked. Helpers have fewer. It runs
# in a subshell, in an empty folder of its own, and fails by `fail`, by a check below or by any
# command that fails. The keeper belongs to this script and is killed by its pid at the end.
set -u
here=$(cd "$(dirname "$0")" && pwd)
: "${ATOLL:?the executable under test}"
TMPDIR=${TMPDIR:-/tmp}
work=$(mktemp -d "$TMPDIR/s.XXXXXX")
export ATOLL ATOLL_RUN="$work/run"
export ATOLL_ISOLATION_PROVE=${ATOLL_ISOLATION_PROVE:-false} # their daemons live for seconds
keeper=

finish() {
	if [ "$keeper" ]; then
		kill "$keeper" 2>/dev/null
		wait "$keeper" 2>/dev/null
	fi
	rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT TERM HUP

# Some tests need no keeper; those that do call this first. A pool of two is enough.
need_keeper() {
	[ "$(id -u)" = 0 ] || { echo "1..0 # SKIP not root"; exit 0; }
	soon start_keeper "$ATOLL" --pool 2
	[ "$said" = R ] || { echo "Bail out! keeper: ${said#E}"; exit 1; }
}
# start_keeper ATOLL FLAG...: sets keeper and said. Fails while other tests have all keepers that a host can have.
start_keeper() {
	executable=$1
	shift
	rm -f "$work/ready"
	mkfifo "$work/ready"
	"$executable" keeper --ready-fd 3 "$@" 3>"$work/ready" 2>"$work/keeper.err" &
	keeper=$!
	said=$(dd bs=4096 count=1 2>/dev/null <"$work/ready")
	case $said in
	'E8 keepers'*) sleep 0.5 && return 1 ;;
	esac
}

fail() { echo "# $*"; exit 1; }
skip() { echo "$*" >"$work/skip"; exit 77; }
is() { [ "$1" = "$2" ] || fail "'$1' is not '$2'${3:+: $3}"; }
# is_json TEXT TEXT [NOTE]: the same value; keys of an object have no order.
is_json() { is "$(printf '%s\n' "$1" | jq -cS .)" "$(printf '%s\n' "$2" | jq -cS .)" "${3-}"; }
has() { case $1 in *"$2"*) ;; *) fail "'$2' is not in: $(echo "$1" | head -c 400)" ;; esac; }
lacks() { case $1 in *"$2"*) fail "'$2' is in: $(echo "$1" | head -c 400)" ;; esac; }

# Runs the CLI with these arguments. Sets status, out, err and, from the output of -v, box.
atoll() {
	status=0
	"$ATOLL" "$@" >out 2>err || status=$?
	out=$(tr '\0' '?' <out) err=$(cat err)
}
run() {
	status=0
	"$ATOLL" run -v "$@" >out 2>err || status=$?
	box=$(sed -n 's/^atoll: box \([a-z2-7]*\) ready.*/\1/p' err)
	sed -i '/^atoll: box .* ready/d; /^atoll: copied /d' err
	out=$(tr '\0' '?' <out) err=$(cat err)
}

# How many times as long as elsewhere something may take. Programs of emulated guests (tests/tiers microvm) are several times slower.
export time_scale=1
[ "${ATOLL_TIER-}" != microvm ] || time_scale=5

# Waits until a command succeeds, and fails after a minute: a machine under load is ten times slower than a free one.
# soon_limit: another number of seconds, where a test expects that it stays false.
uptime_s() { read -r uptime _ </proc/uptime && uptime=${uptime%.*}; } # sets uptime
soon() {
	uptime_s
	soon_most=${soon_limit:-$((60 * time_scale))}
	soon_end=$((uptime + soon_most))
	soon_pause=0.01
	until "$@" >/dev/null 2>&1; do
		uptime_s
		[ "$uptime" -lt "$soon_end" ] || fail "did not become true within $soon_most s: $*"
		sleep $soon_pause
		# Longer and longer: a check that starts programs all the time takes the processor from what it waits for.
		case $soon_pause in
		0.01) soon_pause=0.02 ;;
		0.02) soon_pause=0.05 ;;
		*) soon_pause=0.1 ;;
		esac
	done
}

processes() { pgrep -f -- "$1"; } # with this text on their command line
no_process() { ! processes "$1"; }
# Isolation tiers in which the processes of a box are not processes of the host (tests/tiers).
has_guest() { case ${ATOLL_TIER:-container} in gvisor | microvm) ;; *) return 1 ;; esac }
seen_on_host() { ! has_guest || skip "the processes of a guest are not processes of the host"; }
# A program with this text on its command line has been started: seen on the host, or at least its engine is.
program_runs() {
	if has_guest; then processes '^runsc-sandbox|qemu-system'; else processes "$1"; fi
}
no_trace() {
	! "$ATOLL" ps -q | grep -q . &&
		[ -z "$(find "$ATOLL_RUN" -name "*$1*")" ] &&
		[ -z "$(find /sys/fs/cgroup -maxdepth 4 -type d -name "*$1*" 2>/dev/null)" ] &&
		! grep -q "$1" /proc/self/mountinfo
}
# Waits until nothing of the box and no process with the given word is left: the CLI does not wait for that.
nothing_left() {
	[ "$box" ] || fail "no box was named"
	soon no_trace "$box"
	[ $# = 0 ] || soon no_process "$1"
}

# json FILE EXPRESSION: prints the value of a Python expression over the document d.
json() {
	/usr/bin/python3 -c 'import json, sys; d = json.load(open(sys.argv[1])); print(eval(sys.argv[2]))' "$1" "$2"
}

# A file may set slow_tests="NAME ...": ./check leaves these out, ./check --all and a call by hand run them.
slow_tests=
is_left_out() {
	[ "${ATOLL_QUICK:-0}" = 1 ] || return 1
	case " $(echo $slow_tests) " in *" $1 "*) ;; *) return 1 ;; esac
}
tests_of() { sed -n 's/^\([a-z][a-z0-9]*_[a-z0-9]*_[a-z0-9_]*\)() {.*/\1/p' "$1"; }

run_tests() { # [NAME...]: those, or all of this script
	count=0 failed=0
	for name in ${*:-$(tests_of "$0")} ${last_test:-}; do
		! is_left_out "$name" || continue
		count=$((count + 1))
		mkdir "$work/$count"
		sentence=$(echo "$name" | tr _ ' ')
		(set -e; cd "$work/$count"; $name; ${after_each:-true}) </dev/null
		case $? in
		0) echo "ok $count - $sentence" ;;
		77) echo "ok $count - $sentence # SKIP $(cat "$work/skip")" ;;
		*)
			echo "not ok $count - $sentence"
			failed=1
			[ ! -f "$work/$count/err" ] || head -c 600 "$work/$count/err" | sed 's/^/#   /'
			;;
		esac
		rm -rf "${work:?}/$count"
	done
	echo "1..$count"
	exit $failed
}
