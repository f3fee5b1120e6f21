#!/bin/sh
# runtimes.sh - interpreters of templates: found by the build, waiting in boxes, several versions side by side.
. "$(dirname "$0")/daemon.lib"

ended() { api GET "/v1/builds/$id" && case $(get .state) in waiting | building) false ;; esac; }
# build NAME TOML: sets body to the build.
build() {
	api POST /v1/templates "$(jq -nc --arg n "$1" --arg t "[template]
$2" '{name:$n, source:{files:{"atoll.toml":$t}}}')"
	is "$code" 202 "$body"
	id=$(get .id)
	soon ended
	is "$(get .state)" ready "$body"
}
# runs JSON: a run; sets code, body.
runs() { api POST /v1/run "$1"; }
# Frames below that of the program: it was executed by an interpreter that waited.
WAITED='import sys\nprint(sys._getframe().f_back is not None, sys.executable, __name__, __file__, sys.argv, sys.path[0])'

an_interpreter_of_a_template_waits_in_its_boxes() {
	build own 'run = ["cp -L /usr/bin/python3 /usr/local/bin/python3"]'
	api GET /v1/templates/own
	is "$(get '.runtimes.python | "\(.program) \(.warm)"')" "/usr/local/bin/python3 true" "$body"
	has "$(/usr/bin/python3 --version)" "$(get .runtimes.python.version)"
	api GET "/v1/builds/$id/log"
	has "$body" "waits in boxes of this template"
	for _ in 1 2 3; do
		runs '{"template":"own","language":"python","code":"'"$WAITED"'"}'
		is "$(get .stdout)" "True /usr/local/bin/python3 __main__ /home/user/main.py ['/home/user/main.py'] /home/user" "$body"
	done
}
# same JSON: the run has the same result in a box of the template as in one of base.
same() {
	runs "$1"
	is "$code" 200 "$body"
	want=$(get '[.stdout, .stderr, .exit_code, .signal, .cause]')
	runs "$(printf %s "$1" | jq -c '. + {template:"own"}')"
	is "$(get '[.stdout, .stderr, .exit_code, .signal, .cause]')" "$want" "$1"
}
programs_cannot_tell_whether_their_interpreter_waited() {
	same '{"language":"python","code":"print(input(), end=\"\")\nimport sys\nsys.exit(3)","stdin":"line\n"}'
	same '{"language":"python","code":"def f():\n    return 1 / 0\nf()"}'
	same '{"language":"python","code":"x = ("}'
	same '{"language":"python","code":"import sys\nsys.exit(\"why\")"}'
	same '{"language":"python","code":"import atexit\natexit.register(print, \"end\")\nprint(\"begin\")"}'
	same '{"language":"python","code":"import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nimport time\ntime.sleep(9)"}'
	same '{"language":"python","code":"import helper, os\nprint(helper.x, os.environ.get(\"PYTHONPATH\"), os.environ[\"A\"])","files":{"helper.py":"x = 7"},"env":{"A":"b","PYTHONPATH":"/srv"}}'
	same '{"language":"python","code":"import sys\nprint(sys.flags.dont_write_bytecode, sys.flags.unbuffered if hasattr(sys.flags, \"unbuffered\") else 0)","env":{"PYTHONUNBUFFERED":"1"}}'
	same '{"language":"python","code":"import sys\nprint(sys.argv[1:], sys.stdin.read())","args":["-x","b c"]}'
}
an_interpreter_that_cannot_wait_is_started_when_it_is_needed() {
	build broken 'run = ["printf \"#!/bin/sh\\ncase \\$1 in --version) echo Python 9.9.1 ;; /opt/atoll/*) echo not that one >&2; exit 4 ;; *) exec /usr/bin/python3 \\\"\\$@\\\" ;; esac\\n\" >/usr/local/bin/python3", "chmod 755 /usr/local/bin/python3"]'
	api GET /v1/templates/broken
	is "$(get '.runtimes.python | "\(.version) \(.warm) \(.why)"')" "9.9.1 false it cannot be loaded in advance: not that one" "$body"
	runs '{"template":"broken","language":"python","code":"'"$WAITED"'"}'
	has "$(get .stdout)" "False /usr/bin/python3"
}
a_template_with_another_user_has_no_interpreter_that_waits() {
	build rooted 'run = ["mkdir /srv/y"]
user = "root"'
	runs '{"template":"rooted","language":"python","code":"import os, sys\nprint(os.getuid(), sys._getframe().f_back is None)"}'
	is "$(get .stdout)" "0 True" "$body"
}
a_version_is_chosen_by_the_name_of_a_template() {
	runs '{"language":"python@9.9","code":"print(1)"}'
	is "$code" 400
	has "$(get .error.message)" "add it as the template python-9-9: atoll template build python-9-9"
	api PATCH /v1/templates/broken '{"name":"python-9-9"}'
	is "$code" 200 "$body"
	runs '{"language":"python@9.9","code":"print(42)"}'
	is "$code $(get .stdout)" "200 42" "$body"
	runs '{"language":"python@8.8","code":"print(1)"}'
	has "$(get .error.message)" "as templates: python-9-9"
}
a_deleted_template_leaves_no_box_and_no_root() {
	[ "$(ls "$state/roots" | wc -l)" -gt 0 ] || fail "no roots in $state"
	for name in own rooted python-9-9; do
		api DELETE "/v1/templates/$name"
		is "$code" 204 "$body"
	done
	no_roots() { [ "$(ls "$state/roots" | wc -l)" = 0 ]; }
	soon no_roots
}

run_daemon_tests
