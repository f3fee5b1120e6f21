#!/bin/sh
# cli_record.sh - the record of a run: complete, true, the same for --report and --json.
. "$(dirname "$0")/lib.sh"
need_keeper

the_record_has_all_fields() {
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

json_and_report_have_the_same_record() {
	status=0
	"$ATOLL" run --json --report r.json -- sh -c 'exit 3' >out || status=$?
	is "$status" 3
	is "$(json out 'd["id"]')" "$(json r.json 'd["id"]')"
	is "$(json out 'd["cause"], d["exit_code"], d["status"]')" "('exit', 3, 3)"
}

the_record_names_the_active_isolation_features() {
	run --report r.json -- true
	for l in mounts pid-namespace network system-calls capabilities no-new-privileges; do
		is "$(json r.json "'$l' in d['layers']")" True "$l"
	done
}

created_files_are_listed_with_their_hash() {
	run --report r.json -- sh -c 'printf abc >made; mkdir d; printf x >d/e; ln -s made link'
	is "$(json r.json '[(f["kind"], f["size"], f["sha256"]) for f in d["files_changed"] if f["path"].endswith("/made")]')" \
		"[('added', 3, '$(printf abc | sha256sum | cut -c1-64)')]"
	is "$(json r.json 'sorted(f["path"] for f in d["files_changed"])')" \
		"['/home/user/d/e', '/home/user/link', '/home/user/made']"
	is "$(json r.json 'd["files_truncated"]')" False
}

copied_files_are_listed_only_when_the_program_changed_them() {
	mkdir p
	echo same >p/same
	echo old >p/changed
	echo gone >p/gone
	run -w p --report r.json -- sh -c 'echo newer >changed; rm gone; cat same >/dev/null'
	is "$(json r.json 'sorted((f["path"], f["kind"]) for f in d["files_changed"])')" \
		"[('/home/user/changed', 'modified'), ('/home/user/gone', 'deleted')]"
}

a_list_of_more_than_a_thousand_files_is_truncated_and_marked() {
	run --report r.json -- sh -c 'for i in $(seq 1500); do : >f$i; done'
	is "$(json r.json 'len(d["files_changed"]), d["files_truncated"]')" "(1000, True)"
}

a_file_name_that_is_not_utf8_does_not_break_the_record() {
	run --report r.json -- sh -c 'printf x >"$(printf "bad\377name")"; printf y >"$(printf "new\nline")"'
	is "$(json r.json 'len(d["files_changed"])')" 2
}

cpu_and_memory_of_the_record_are_plausible() {
	run --report r.json -- /usr/bin/python3 -c 'x = bytearray(100 << 20)
import time
end = time.process_time() + 0.3
while time.process_time() < end: pass'
	is "$(json r.json '100 << 20 < d["mem_peak"] < 200 << 20')" True "$(json r.json 'd["mem_peak"]')"
	is "$(json r.json '0.25 < d["cpu_s"] < 2')" True "$(json r.json 'd["cpu_s"]')"
}

a_report_that_cannot_be_written_is_status_125() {
	run --report /nosuch/r.json -- true
	is "$status" 125
	has "$err" "write the report to /nosuch/r.json"
}

the_record_names_the_signal() {
	run --report r.json -- sh -c 'kill -ABRT $$'
	is "$(json r.json 'd["signal"], d["exit_code"], d["cause"]')" "('SIGABRT', None, 'signal')"
}

run_tests
