#!/bin/sh
# cli_record.sh - the record of a run: complete, true, the same for --report and --json.
. "$(dirname "$0")/lib.sh"
need_keeper

all_fields_are_there() {
	run --report r.json -- sh -c 'echo hello; echo err >&2'
	for f in id box template tier layers command started ended cause exit_code signal cpu_s mem_peak io \
		processes stdout_bytes stderr_bytes truncated files_changed files_truncated evidence limits \
		hint timings status summary; do
		is "$(json r.json "'$f' in d")" True "$f"
	done
	is "$(json r.json 'd["box"]')" "$box"
	is "$(json r.json 'd["command"]')" "['sh', '-c', 'echo hello; echo err >&2']"
	is "$(json r.json 'd["stdout_bytes"], d["stderr_bytes"]')" "(6, 4)"
	is "$(json r.json 'd["mem_peak"] > 100000, d["timings"]["run_us"] > 0')" "(True, True)"
}

json_and_report_agree() {
	status=0
	"$ATOLL" run --json --report r.json -- sh -c 'exit 3' >out || status=$?
	is "$status" 3
	is "$(json out 'd["id"]')" "$(json r.json 'd["id"]')"
	is "$(json out 'd["cause"], d["exit_code"], d["status"]')" "('exit', 3, 3)"
}

the_layers_in_force_are_named() {
	run --report r.json -- true
	for l in mounts pid-namespace network system-calls capabilities no-new-privileges; do
		is "$(json r.json "'$l' in d['layers']")" True "$l"
	done
}

files_that_were_made_are_listed_with_their_hash() {
	run --report r.json -- sh -c 'printf abc >made; mkdir d; printf x >d/e; ln -s made link'
	is "$(json r.json '[(f["kind"], f["size"], f["sha256"]) for f in d["files_changed"] if f["path"].endswith("/made")]')" \
		"[('added', 3, '$(printf abc | sha256sum | cut -c1-64)')]"
	is "$(json r.json 'sorted(f["path"] for f in d["files_changed"])')" \
		"['/home/user/d/e', '/home/user/link', '/home/user/made']"
	is "$(json r.json 'd["files_truncated"]')" False
}

files_that_were_copied_in_are_no_change_unless_changed() {
	mkdir p
	echo same >p/same
	echo old >p/changed
	echo gone >p/gone
	run -w p --report r.json -- sh -c 'echo newer >changed; rm gone; cat same >/dev/null'
	is "$(json r.json 'sorted((f["path"], f["kind"]) for f in d["files_changed"])')" \
		"[('/home/user/changed', 'modified'), ('/home/user/gone', 'deleted')]"
}

more_than_a_thousand_files_are_truncated_and_said_so() {
	run --report r.json -- sh -c 'for i in $(seq 1500); do : >f$i; done'
	is "$(json r.json 'len(d["files_changed"]), d["files_truncated"]')" "(1000, True)"
}

a_name_that_is_no_text_does_not_break_the_record() {
	run --report r.json -- sh -c 'printf x >"$(printf "bad\377name")"; printf y >"$(printf "new\nline")"'
	is "$(json r.json 'len(d["files_changed"])')" 2
}

cpu_and_memory_are_about_right() {
	run --report r.json -- /usr/bin/python3 -c 'x = bytearray(100 << 20)
import time
end = time.process_time() + 0.3
while time.process_time() < end: pass'
	is "$(json r.json '100 << 20 < d["mem_peak"] < 200 << 20')" True "$(json r.json 'd["mem_peak"]')"
	is "$(json r.json '0.25 < d["cpu_s"] < 2')" True "$(json r.json 'd["cpu_s"]')"
}

a_report_that_cannot_be_written_is_our_failure() {
	run --report /nosuch/r.json -- true
	is "$status" 125
	has "$err" "write the report to /nosuch/r.json"
}

a_signal_has_its_name() {
	run --report r.json -- sh -c 'kill -ABRT $$'
	is "$(json r.json 'd["signal"], d["exit_code"], d["cause"]')" "('SIGABRT', None, 'signal')"
}

run_tests
