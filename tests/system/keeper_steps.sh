#!/bin/sh
# keeper_steps.sh - a box that cannot be created leaves nothing behind, at whichever step it failed.
# A build with test hooks fails in the step that a file in the run folder names.
. "$(dirname "$0")/lib.sh"
[ "$(id -u)" = 0 ] || { echo "1..0 # SKIP not root"; exit 0; }
[ -x "$ATOLL_TEST_BIN" ] || { echo "1..0 # SKIP no build with test hooks: $ATOLL_TEST_BIN"; exit 0; }
ATOLL=$ATOLL_TEST_BIN

# Without a pool: its boxes would meet the faults.
mkfifo "$work/ready"
"$ATOLL" keeper --pool 0 --ready-fd 3 3>"$work/ready" 2>"$work/keeper.err" &
keeper=$!
said=$(dd bs=4096 count=1 2>/dev/null <"$work/ready")
[ "$said" = R ] || { echo "Bail out! keeper: ${said#E}"; exit 1; }

# What the keeper holds: descriptors, processes and sockets of boxes. It keeps network namespaces and cgroups
# for later boxes; their descriptors are not counted.
held() {
	ls -l "/proc/$keeper/fd" | grep -vc -e ' net:' -e '/net/' -e /sys/fs/cgroup/
	pgrep -P "$keeper" | wc -l
	find "$ATOLL_RUN" -type s | wc -l
}
# A leak in one step leaves 5 more.
not_grown() {
	held | paste - before | while read -r now was; do [ "$now" -lt $((was + 5)) ] || exit 1; done
}

# STEP [FLAG...]: five boxes are not created, and the answer names the step.
fails_in() {
	step=$1
	shift
	for _ in 1 2 3 4 5; do
		: >"$ATOLL_RUN/build-fails-$step"
		run "$@" -- true
		[ "$status" != 0 ] || fail "step $step: the box was created"
		has "$err" "fault in step '$step'"
	done
}

boxes_that_fail_in_a_step_leave_nothing_behind() {
	run -- true
	held >before
	for step in record cgroup network launch zygote; do
		fails_in "$step"
	done
	fails_in disk --disk 2G
	fails_in launch --disk 2G
	soon not_grown
	run -- echo works
	is "$out" works
}

run_tests
