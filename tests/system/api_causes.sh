#!/bin/sh
# api_causes.sh - the cause of an exit is in the run record, in the list of runs and in /metrics.
. "$(dirname "$0")/daemon.lib"

# counted CAUSE: the number of execs that ended with this cause, from /metrics.
counted() {
	curl -sS -H "X-API-Key: $key" "$url/metrics" |
		sed -n "s/^atoll_runs_ended_total{cause=\"$1\"} //p"
}

# ends CAUSE STATUS: checks the record in ./body, the list of runs, and that the count is `before` + 1.
ends() {
	is "$(get .cause)" "$1" "$body"
	is "$(get .status)" "$2" "$body"
	is "$(get .state)" exited
	run=$(get .id) box=$(get .box)
	[ "$1" = exit ] || [ "$(get .summary)" != null ] || fail "no summary: $body"
	case $1 in
	exit | signal | operator) ;;
	*) [ "$(get .hint)" != null ] || fail "no hint: $body" ;;
	esac
	is "$(counted "$1")" $((before + 1)) "the count of $1"
	api GET "/v1/runs/$run"
	is "$(get '.cause + " " + (.status|tostring)')" "$1 $2"
	api GET "/v1/runs?cause=$1&limit=1"
	is "$(get '.items[0].id')" "$run"
}

# dies CAUSE STATUS BODY: runs BODY in a new box and checks cause and status.
dies() {
	before=$(counted "$1")
	api POST /v1/run "$3"
	is "$code" 200 "$body"
	cp body record
	ends "$1" "$2"
}
was() { jq -r "$1" <record; }

# in_background COMMAND [FIELDS]: starts an exec in $box; sets exec.
in_background() {
	api POST "/v1/boxes/$box/execs" "{\"command\":\"$1\",\"background\":true${2:-}}"
	is "$code" 201 "$body"
	exec=$(get .id)
}
# waits: waits for $exec; its record is in ./body.
waits() {
	api GET "/v1/boxes/$box/execs/$exec/wait"
	is "$code" 200 "$body"
}

a_normal_exit_has_cause_exit() {
	dies exit 0 '{"command":"true"}'
	dies exit 7 '{"command":"exit 7"}'
	is "$(was '.exit_code, .signal' | tr '\n' ' ')" "7 null "
}

death_by_signal_has_cause_signal_and_its_name() {
	dies signal 143 '{"command":"kill -TERM $$"}'
	is "$(was .signal)" SIGTERM
	dies signal 139 '{"command":"kill -SEGV $$"}'
}

# of_limit STATUS: what a parent returns whose child met a limit. In gVisor the limit ends the whole box: docs/tiers.md.
of_limit() { if [ "${ATOLL_TIER-}" = gvisor ]; then echo 137; else echo "$1"; fi; }

out_of_memory_has_cause_memory() {
	dies memory 137 '{"language":"python","code":"x = bytearray(256 << 20)","limits":{"mem":67108864}}'
	[ "$(was '.evidence.guest.oom_kills // .evidence.oom_kills')" -ge 1 ] || fail "$(cat record)"
	has "$(was .summary)" "64 MiB"
	# A child was killed, and its parent exits with an error.
	dies memory "$(of_limit 9)" '{"command":"python3 -c \"x = bytearray(256 << 20)\"; exit 9","limits":{"mem":67108864}}'
}

too_many_processes_have_cause_processes() {
	dies processes "$(of_limit 1)" '{"language":"python","code":"import os, time\nwhile True:\n    if os.fork() == 0:\n        time.sleep(1000)","limits":{"pids":40}}'
	[ "$(was '.evidence.guest.pids_hits // .evidence.pids_hits')" -ge 1 ] || fail "$(cat record)"
}

a_full_disk_has_cause_disk() {
	dies disk 1 '{"command":"dd if=/dev/zero of=big bs=1M count=32","limits":{"disk":8388608}}'
	has "$(was .summary)" "8 MiB"
}

too_many_files_have_cause_disk() {
	dies disk 1 '{"language":"python","code":"for i in range(100000): open(str(i), \"w\")","limits":{"files":500}}'
	has "$(was .summary)" 500
}

the_wall_limit_has_cause_wall() {
	dies wall 124 '{"command":"sleep 100","timeout_ms":200}'
	is "$(was .limits.wall_ms)" 200
}

the_cpu_time_limit_has_cause_cpu() {
	dies cpu 137 '{"command":"while :; do :; done","limits":{"cpu_ms":300}}'
}

death_by_seccomp_has_cause_policy() {
	cat >abi.py <<-'END'
		import ctypes, mmap, os, platform, signal
		if platform.machine() == "x86_64":
		    m = mmap.mmap(-1, 4096, prot=7)
		    m.write(bytes.fromhex("b814000000cd80c3"))  # mov eax, 20; int 0x80; ret
		    ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(m)))()
		else:  # an ARM program: exit(0)
		    open("arm", "wb").write(bytes.fromhex(
		        "7f454c46010101000000000000000000020028000100000054000100"
		        "34000000000000000002000534002000010028000000000001000000"
		        "0000000000000100000001006000000060000000050000000000010001"
		        "70a0e30000a0e3000000ef"))
		    os.chmod("arm", 0o700)
		    try:
		        os.execv("./arm", ["arm"])
		    except OSError:
		        pass  # this machine runs none; then SIGSYS as the filter would send it
		os.kill(os.getpid(), signal.SIGSYS)
	END
	dies policy 159 "$(jq -n --rawfile code abi.py '{language: "python", code: $code}')"
	is "$(was .signal)" SIGSYS
}

the_end_of_a_lifetime_has_cause_lifetime() {
	new_box '{"lifetime_ms":600000}'
	before=$(counted lifetime)
	in_background 'sleep 100'
	api PATCH "/v1/boxes/$box" '{"lifetime_ms":300}'
	soon ended_as lifetime
	ends lifetime 137
	api GET "/v1/boxes/$box"
	is "$(get '.state + " " + .cause')" "deleted lifetime"
}

a_box_without_activity_ends_with_cause_idle() {
	new_box
	before=$(counted idle)
	in_background 'sleep 100'
	api PATCH "/v1/boxes/$box" '{"idle_ms":300}'
	# Not by waiting for the exec: that would be activity.
	soon ended_as idle
	api GET "/v1/runs/$exec"
	ends idle 137
	api GET "/v1/boxes/$box"
	is "$(get .cause)" idle
}
ended_as() {
	api GET "/v1/runs/$exec"
	[ "$(get .cause)" = "$1" ]
}

deleting_the_box_has_cause_operator() {
	new_box
	before=$(counted operator)
	in_background 'sleep 100'
	api DELETE "/v1/boxes/$box"
	is "$code" 204
	api GET "/v1/runs/$exec"
	ends operator 137
	api GET "/v1/boxes/$box"
	is "$(get .cause)" operator
}

the_death_of_init_has_cause_host() {
	seen_on_host
	new_box
	before=$(counted host)
	in_background 'exec sleep 47113'
	soon processes 'sleep 47113'
	sleeper=$(processes '^sleep 47113')
	kill -9 "$(ps -o ppid= -p "$sleeper" | tr -d ' ')"
	soon ended_as host
	ends host 125
	api GET "/v1/boxes/$box"
	is "$(get '.state + " " + .cause')" "deleted host"
}

a_missing_command_is_127_and_a_non_executable_126() {
	before=$(counted exit)
	dies exit 127 '{"command":["/nothing/here"]}'
	[ "$(was .hint)" != null ] || fail "no hint"
	dies exit 126 '{"command":["/etc/passwd"]}'
	[ "$(was .hint)" != null ] || fail "no hint"
	dies exit 126 '{"command":["./f"],"files":{"f":"not a program"}}'
}

a_signal_sent_by_the_api_has_cause_signal() {
	new_box
	before=$(counted signal)
	in_background 'exec sleep 100'
	api POST "/v1/boxes/$box/execs/$exec/signal" '{"signal":"TERM"}'
	is "$code" 204
	waits
	ends signal 143
	before=$(counted signal)
	in_background 'exec sleep 100'
	api DELETE "/v1/boxes/$box/execs/$exec"
	is "$code" 200
	ends signal 137
}

an_oom_kill_is_not_attributed_to_the_next_exec() {
	new_box '{"limits":{"mem":67108864}}'
	before=$(counted memory)
	api POST "/v1/boxes/$box/execs" '{"language":"python","code":"x = bytearray(256 << 20)"}'
	ends memory 137
	before=$(counted exit)
	api POST "/v1/boxes/$box/execs" '{"command":"exit 1"}'
	ends exit 1
	before=$(counted signal)
	api POST "/v1/boxes/$box/execs" '{"command":"kill -9 $$"}'
	ends signal 137
	# The box does not end with that cause either.
	before=$(counted operator)
	in_background 'sleep 100'
	api DELETE "/v1/boxes/$box"
	api GET "/v1/runs/$exec"
	ends operator 137
}

an_earlier_oom_kill_does_not_explain_the_death_of_a_box() {
	[ "${ATOLL_TIER-}" != microvm ] || seen_on_host
	new_box '{"limits":{"mem":67108864}}'
	api POST "/v1/boxes/$box/execs" '{"language":"python","code":"x = bytearray(256 << 20)"}'
	is "$(get .cause)" memory
	before=$(counted host)
	in_background 'exec sleep 47114'
	soon processes '^sleep 47114'
	kill -9 "$(ps -o ppid= -p "$(processes '^sleep 47114')" | tr -d ' ')"
	soon ended_as host
	ends host 125
	api GET "/v1/boxes/$box"
	is "$(get .cause)" host
}

two_simultaneous_oom_kills_both_have_cause_memory() {
	new_box '{"limits":{"mem":67108864}}'
	before=$(counted memory)
	for i in 1 2; do
		in_background "python3 -c 'x = [bytearray(1 << 20) for i in range(300)]'"
		eval "e$i=$exec"
	done
	for exec in $e1 $e2; do
		waits
		is "$(get .cause)" memory "$body"
	done
	is "$(counted memory)" $((before + 2))
	api POST "/v1/boxes/$box/execs" '{"command":"exit 1"}'
	is "$(get .cause)" exit
}

cpu_time_is_attributed_to_the_exec_that_used_it() {
	new_box
	api POST "/v1/boxes/$box/execs" '{"language":"python","code":"import time\nt = time.process_time()\nwhile time.process_time() - t < 0.4: pass"}'
	# The kernel of a guest counts ticks of its own clock; cpu_s is what the processors of the host have done in that time.
	case ${ATOLL_TIER-} in gvisor | microvm) least=0.1 ;; *) least=0.4 ;; esac
	used=$(get .cpu_s)
	is "$(get ".cpu_s >= $least")" true "$body"
	api POST "/v1/boxes/$box/execs" '{"command":"exit 1"}'
	is "$(get ".cpu_s < 0.3 and .cpu_s < $used")" true "$(get .cpu_s), before $used"
}

the_box_of_v1_run_ends_with_cause_exit() {
	api POST /v1/run '{"command":"exit 3"}'
	box=$(get .box)
	gone_now() { api GET "/v1/boxes/$box" && [ "$(get .state)" = deleted ]; }
	soon gone_now
	is "$(get .cause)" exit
}

ended_boxes_are_counted_by_cause_in_metrics() {
	n() { curl -sS -H "X-API-Key: $key" "$url/metrics" | sed -n "s/^atoll_boxes_ended_total{cause=\"$1\"} //p"; }
	before=$(n operator)
	new_box
	api DELETE "/v1/boxes/$box"
	is "$(n operator)" $((before + 1))
	before=$(n cpu)
	cpu_ms=200
	[ "${ATOLL_TIER-}" != microvm ] || cpu_ms=10000 # what QEMU uses to start the guest counts, too
	new_box "{\"limits\":{\"cpu_ms\":$cpu_ms}}"
	api POST "/v1/boxes/$box/execs" '{"command":"while :; do :; done"}'
	is "$(get .cause)" cpu
	gone_of() { api GET "/v1/boxes/$box" && [ "$(get .cause)" = "$1" ]; }
	soon gone_of cpu
	is "$(n cpu)" $((before + 1))
}

# Boxes with a warm interpreter reuse cgroups one after the other.
a_reused_cgroup_has_no_figures_of_its_previous_box() {
	[ "${ATOLL_TIER:-container}" = container ] || skip "only boxes without an engine reuse cgroups"
	waits_in_it() { # a box with python in it, once there is one
		api POST /v1/boxes '{"warm":"python"}'
		box=$(get .id)
		api GET "/v1/boxes/$box/stats"
		[ "$(get .pids.now)" = 2 ] || { api DELETE "/v1/boxes/$box" && return 1; }
	}
	# Inside the box the cgroup path is "/"; only the host sees the name.
	named() { # NUMBER: the cgroup of the box in which `sleep NUMBER` runs
		for at in "$parent"/*/cgroup.procs; do
			for pid in $(cat "$at" 2>/dev/null); do
				[ "$(tr '\0' ' ' <"/proc/$pid/cmdline")" != "sleep $1 " ] || dirname "$at"
			done
		done
	}
	one() { # light, many, large
		soon waits_in_it
		case $1 in
		light) run='["sleep", "86399"], "background": true' ;;
		many) run='"for i in 1 2 3 4 5 6 7 8 9; do sleep .5 & done; wait"' ;;
		large) run='"head -c 100M /dev/zero | tail -c 100M | wc -c"' ;;
		esac
		api POST "/v1/boxes/$box/execs" "{\"command\":$run}"
		[ "$1" = light ] || is "$(get .status)" 0 "$body"
		[ "$1" != light ] || [ ! -d "$parent" ] || named 86399 >>names
		api GET "/v1/boxes/$box/stats"
		case $1 in
		light) is "$(get '.pids.peak == 3 and .memory.peak < 40000000')" true "$body" ;;
		many) is "$(get '.pids.peak >= 11')" true "$body" ;;
		large) is "$(get '.memory.peak > 100000000')" true "$body" ;;
		esac
		is "$(get '.oom_kills + .pids.refused')" 0 "$body"
		api DELETE "/v1/boxes/$box"
	}
	pid=$("$ATOLL" doctor --json | grep -o 'pid [0-9]*' | head -1 | cut -d ' ' -f 2)
	parent=$(readlink /proc/$pid/fd/* | grep -x '/sys/fs/cgroup/pids/atoll-[^/]*' | head -1)
	: >names
	# Execs with high and low usage in every order; those with low usage are checked.
	for kind in light many light large light light many large light light light light light; do
		one $kind
	done
	[ -d "$parent" ] || return 0 # cgroup v2: each box has its own
	# On a busy machine a box that was throttled by its CPU limit is not reused.
	n=0
	while [ -z "$(sort names | uniq -d)" ]; do
		n=$((n + 1))
		[ $n -lt 60 ] || fail "none was used twice"
		one light
	done
}

run_daemon_tests
