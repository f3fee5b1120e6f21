#!/bin/sh
# cli_signals.sh - signals, Ctrl-C and terminals are passed to the program, and the box ends with the run.
. "$(dirname "$0")/lib.sh"
need_keeper

# A program that prints the signals it receives. $1 on its command line identifies it.
cat >"$work/signals.py" <<'X'
import signal, sys, time
def tell(n, _):
    print("got", signal.Signals(n).name, flush=True)
    if n == signal.SIGTERM:
        sys.exit(33)
for n in (1, 2, 3, 10, 12, 15, 18):
    signal.signal(n, tell)
print("ready", flush=True)
while True:
    time.sleep(60)
X

begin() { # in the background: sets cli and box
	"$ATOLL" run -v "$@" >out 2>err &
	cli=$!
	soon grep -q ready out
	box=$(sed -n 's/^atoll: box \([a-z2-7]*\) ready.*/\1/p' err)
}

ended() {
	status=0
	wait $cli || status=$?
	err=$(sed '/^atoll: box .* ready/d' err)
}

run_forwards_signals_to_the_program() {
	begin -- /usr/bin/python3 -c "$(cat "$work/signals.py")"
	for s in USR1 USR2 HUP QUIT CONT INT; do
		kill -$s $cli
		soon grep -q "got SIG$s" out
	done
	kill -TERM $cli
	ended
	is "$status" 33
	nothing_left
}

ctrl_c_ends_a_program_with_default_signal_handling() {
	# Not a shell: dash loses a signal that arrives just before it execs.
	begin -- /usr/bin/python3 -c 'import time; print("ready", flush=True); time.sleep(4721)'
	kill -INT $cli
	ended
	is "$status" 130
	nothing_left "sleep.4721"
}

the_second_ctrl_c_within_two_seconds_kills() {
	begin -- sh -c 'trap "" INT TERM HUP QUIT; echo ready; while :; do sleep 4722; done'
	kill -INT $cli
	soon no_process "sleep 4722 never"
	kill -INT $cli
	ended
	is "$status" 137
	has "$err" "killed by a second Ctrl-C"
	has "$err" "cause=operator"
	nothing_left "sleep 4722"
}

a_program_that_ignores_sigterm_runs_until_the_cli_is_killed() {
	begin -- sh -c 'trap "" TERM; echo ready; while :; do sleep 4723; done'
	kill -TERM $cli
	kill -USR2 $cli
	ended
	is "$status" 140
	nothing_left "sleep 4723"
}

a_program_started_on_a_terminal_has_a_terminal() {
	out=$(/usr/bin/python3 "$here/onpty.py" -- "$ATOLL" run -- sh -c 'tty; stty size; echo $TERM')
	has "$out" /dev/pts/
	has "$out" "24 80"
}

a_program_has_no_terminal_unless_stdin_and_stdout_are_one() {
	out=$(/usr/bin/python3 "$here/onpty.py" -- "$ATOLL" run -T -- sh -c 'tty || echo none')
	has "$out" none
}

a_resize_of_the_terminal_is_forwarded() {
	out=$(/usr/bin/python3 "$here/onpty.py" wait=ready size=40x132 wait=40 -- "$ATOLL" run -- bash -c '
		trap "stty size; exit" WINCH
		echo ready
		while :; do sleep 0.05; done')
	has "$out" "40 132"
}

ctrl_c_in_a_terminal_interrupts_the_foreground() {
	status=0
	out=$(/usr/bin/python3 "$here/onpty.py" wait=ready 'send=\x03' -- \
		"$ATOLL" run -- /usr/bin/python3 -c 'import time; print("ready", flush=True); time.sleep(4724)') || status=$?
	is "$status" 130
	soon no_process "sleep.4724"
}

ctrl_c_twice_in_a_terminal_kills_what_ignores_it() {
	status=0
	out=$(/usr/bin/python3 "$here/onpty.py" wait=ready 'send=\x03' wait=caught 'send=\x03' -- \
		"$ATOLL" run -- sh -c 'trap "echo caught" INT; echo ready; while :; do sleep 4725 & wait; done') || status=$?
	is "$status" 137
	has "$out" "killed by a second Ctrl-C"
	soon no_process "sleep 4725"
}

closing_the_terminal_ends_the_run_and_the_box() {
	status=0
	/usr/bin/python3 "$here/onpty.py" wait=ready leave -- \
		"$ATOLL" run -- sh -c 'trap "" HUP; echo ready; while :; do sleep 4726; done' >out || status=$?
	is "$status" 129
	soon no_process "sleep 4726"
	soon eval '! "$ATOLL" ps -q | grep -q .'
}

the_terminal_settings_are_restored_after_a_run() {
	out=$(/usr/bin/python3 "$here/onpty.py" -- sh -c 'stty -a >before; "$1" run -- true; stty -a >after; cmp before after && echo same' sh "$ATOLL")
	has "$out" same
	out=$(/usr/bin/python3 "$here/onpty.py" wait=ready -- sh -c 'stty -a >before; "$1" run -- sh -c "echo ready; kill -9 \$\$"; stty -a >after; cmp before after && echo same' sh "$ATOLL")
	has "$out" same
}

shell_opens_an_interactive_shell() {
	status=0
	out=$(/usr/bin/python3 "$here/onpty.py" 'wait=$ ' 'send=echo $((6*7)) $USER\n' 'wait=42 user' \
		'send=\x03' 'send=\x03' 'insist=exit 9\n' -- "$ATOLL" shell) || status=$?
	is "$status" 9
	has "$out" "42 user"
}

shell_reads_commands_from_a_pipe() {
	is "$(echo 'echo $((6*7))' | "$ATOLL" shell)" 42
}

run_tests
