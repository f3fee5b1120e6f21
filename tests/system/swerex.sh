#!/bin/sh
# swerex.sh - the runtime of SWE-ReX at /swerex/{box}: sessions, commands, files, and errors.
. "$(dirname "$0")/daemon.lib"

# rex NAME BODY [CURL OPTION...]: sets code, body.
rex() {
	what=$1 args=$2
	shift 2
	api POST "/swerex/$box/$what" "$args" "$@"
}
# command_ TEXT [SESSION [MORE [CURL OPTION...]]]: in a session; `check` is silent unless MORE says otherwise.
command_() {
	asked=$(jq -nc --arg c "$1" --arg s "${2:-default}" '{command: $c, session: $s, check: "silent"} + '"${3:-{\}}")
	[ $# -lt 3 ] && shift $# || shift 3
	rex run_in_session "$asked" "$@"
}
# as KEY WORD...
as() {
	was=$key key=$1
	shift
	"$@"
	key=$was
}
# aside COMMAND [SESSION]: in the background, in the folder ./aside; `wait $aside` for it.
aside() {
	mkdir -p aside
	(cd aside && command_ "$@" && echo "$code" >code) &
	aside=$!
}
session() {
	rex create_session "{\"session\":\"${1:-default}\"}"
	is "$code" 200 "$body"
}
# raises CLASS [PART OF MESSAGE]
raises() {
	is "$code" 511 "$body"
	is "$(get .swerexception.class_path)" "$1" "$body"
	is "$(get '.swerexception | (.traceback | type) + (.extra_info | type)')" stringobject
	[ -z "${2-}" ] || has "$(get .swerexception.message)" "$2"
}

is_alive_is_true_for_a_box_and_false_for_an_unknown_one() {
	new_box
	api GET "/swerex/$box/is_alive"
	is "$code" 200
	is "$(get -c .)" '{"is_alive":true,"message":""}'
	api GET /swerex/missing/is_alive
	is "$code" 404
	has "$(get .detail)" "no such box"
	as nonsense api GET "/swerex/$box/is_alive"
	is "$code" 401
	has "$(get .detail)" "missing or invalid API key"
	api GET "/swerex/$box/nothing"
	is "$code" 404
	api GET "/swerex/$box/execute"
	is "$code" 405
}
a_session_keeps_directory_variables_functions_and_aliases() {
	new_box
	session
	is "$(get -c .)" '{"output":"","session_type":"bash"}'
	command_ 'cd /usr; cd /tmp; A="x  y"; export B=$'"'"'1\n2'"'"'; L=(a "b c"); f() { echo "f $1 in $PWD"; }; export -f f; alias hi="echo hello"; umask 077; set -u; readonly R=7'
	is "$code" 200 "$body"
	is "$(get '[.output, .exit_code, .failure_reason, .expect_string, .session_type] | tojson')" '["",0,"","","bash"]'
	command_ 'f 1; echo "$A|$B|${L[1]}|$#|$R"; umask; hi
bash -c "f 2"; cd - ; echo $-'
	is "$(get .output)" 'f 1 in /tmp
x  y|1
2|b c|0|7
0077
hello
f 2 in /tmp
/usr
huBc'
	command_ 'echo $UNDEFINED'
	is "$(get .exit_code)" 127
	command_ 'pwd; PATH=/nothing'
	is "$(get .output)" /usr
	command_ 'echo $PATH; exit 5'
	is "$(get .output)" /nothing
	is "$(get .exit_code)" 5
	command_ 'echo $PATH; trap "echo bye" EXIT'
	is "$(get .output)" /nothing
}
the_exit_code_is_exact_and_check_controls_errors() {
	new_box
	session
	command_ 'printf "no line end"; echo to stderr >&2; (exit 3)'
	is "$(get .exit_code)" 3
	is "$(get .output)" 'no line endto stderr'
	command_ 'kill -9 $$'
	is "$(get .exit_code)" 137
	command_ 'false' default '{check: "raise"}'
	raises swerex.exceptions.NonZeroExitCodeError "exit code 1"
	command_ 'false' default '{check: "raise", error_msg: "it broke"}'
	has "$(get .swerexception.message)" "it broke: "
	rex run_in_session '{"command":"echo why; false"}'
	raises swerex.exceptions.NonZeroExitCodeError why
	command_ 'false' default '{check: "ignore"}'
	is "$code" 200
	is "$(get .exit_code)" null
	command_ ''
	is "$(get .exit_code)" 0
	command_ '# nothing'
	is "$(get .exit_code)" 0
}
output_has_no_colours_and_no_carriage_returns() {
	new_box
	session
	command_ 'printf "\033[1;31mred\033[0m\r\n\033]0;title\007two\033(B\r\nper\rcent\n"; printf "bad \377 \000 byte\n"'
	is "$(get '.output | tojson')" '"red\ntwo\nper\rcent\nbad � � byte\n"'
}
two_sessions_have_separate_shells() {
	new_box
	session one
	session two
	command_ 'V=1; cd /usr' one
	command_ 'echo "${V-none} $PWD"' two
	is "$(get .output)" "none /home/user"
	aside 'until [ -e /tmp/go ]; do sleep 0.02; done; echo was here' one
	command_ 'touch /tmp/go; echo meanwhile' two
	is "$(get .output)" meanwhile
	wait $aside
	is "$(jq -r .output aside/body)" "was here"
}
commands_of_one_session_run_one_after_another() {
	new_box
	session
	aside 'echo a >>/tmp/order; touch /tmp/in; until [ -e /tmp/go ]; do sleep 0.02; done; N=1; echo a >>/tmp/order'
	first=$aside
	rex execute '{"command":"until [ -e /tmp/in ]; do sleep 0.02; done","shell":true}'
	aside 'echo b $N >>/tmp/order'
	rex execute '{"command":"until ls /tmp/.atoll-rex/default/me.*; do sleep 0.02; done; touch /tmp/go","shell":true}'
	wait $first $aside
	rex read_file '{"path":"/tmp/order"}'
	is "$(get .content)" "a
a
b 1"
}
startup_files_are_sourced_when_a_session_starts() {
	new_box
	rex write_file '{"path":"a b.sh","content":"X=sourced; echo loud\n"}'
	rex write_file '{"path":"two.sh","content":"Y=$X-too\n"}'
	rex create_session '{"session":"s","session_type":"bash","startup_source":["/home/user/a b.sh","~/two.sh","/nothing"],"startup_timeout":5.5}'
	is "$code" 200 "$body"
	has "$(get .output)" loud
	has "$(get .output)" "/nothing: No such file"
	command_ 'echo $X $Y' s
	is "$(get .output)" "sourced sourced-too"
	rex write_file '{"path":"slow.sh","content":"sleep 100\n"}'
	rex create_session '{"session":"t","startup_source":["/home/user/slow.sh"],"startup_timeout":0.2}'
	raises swerex.exceptions.CommandTimeoutError
}
duplicate_and_unknown_sessions_are_errors() {
	new_box
	command_ 'true'
	raises swerex.exceptions.SessionDoesNotExistError "session 'default' does not exist"
	session
	rex create_session '{}'
	raises swerex.exceptions.SessionExistsError "already exists"
	rex close_session '{"session":"default"}'
	is "$code" 200
	is "$(get -c .)" '{"session_type":"bash"}'
	rex close_session '{}'
	raises swerex.exceptions.SessionDoesNotExistError
	rex run_in_session '{"action_type":"bash_interrupt"}'
	raises swerex.exceptions.SessionDoesNotExistError
	session
	session other
	rex close ''
	is "$code" 200
	is "$(get -c .)" '{}'
	command_ true other
	raises swerex.exceptions.SessionDoesNotExistError
	rex close ''
	is "$code" 200
}
invalid_bash_syntax_is_an_error_before_execution() {
	new_box
	session
	command_ 'touch /tmp/ran; if then'
	raises swerex.exceptions.BashIncorrectSyntaxError "syntax error"
	has "$(get .swerexception.extra_info.bash_stderr)" "syntax error"
	command_ '[ -e /tmp/ran ] || echo no'
	is "$(get .output)" no
	command_ 'cat <<EOF
it'"'"'s "$HOME"
EOF
for i in 1 2; do
	echo $i
done'
	is "$(get .output)" "it's \"/home/user\"
1
2"
}
a_timeout_ends_the_command_and_not_the_session() {
	new_box
	session
	command_ 'V=kept'
	command_ 'sleep 100' default '{timeout: 0.3}'
	raises swerex.exceptions.CommandTimeoutError "timeout after 0.3 seconds"
	command_ 'echo $V'
	is "$(get .output)" kept
	rex run_in_session '{"action_type":"bash_interrupt"}'
	is "$code" 200
	rex execute '{"command":["sleep","100"],"timeout":0.2}'
	raises swerex.exceptions.CommandTimeoutError
}
an_interrupt_ends_the_running_command() {
	new_box
	session
	for how in 'sleep 100; echo after' 'trap "" INT; exec 3>&1; while :; do sleep 1; done' 'while :; do :; done'; do
		aside "echo begun; touch /tmp/begun; $how"
		rex execute '{"command":"until [ -e /tmp/begun ]; do sleep 0.02; done; rm /tmp/begun","shell":true,"timeout":10}'
		rex run_in_session '{"action_type":"bash_interrupt","timeout":0.2,"n_retry":2,"expect":[]}'
		is "$code" 200 "$body"
		is "$(get '[.output, .exit_code] | tojson')" '["",0]'
		wait $aside
		is "$(jq -r .output aside/body)" begun
		case $(jq -r .exit_code aside/body) in 130 | 137) ;; *) fail "$(cat aside/body)" ;; esac
		command_ 'echo next'
		is "$(get .output)" next
	done
}
background_processes_of_a_session_keep_running() {
	new_box
	session
	command_ 'sleep 100 & echo $! >/tmp/pid'
	is "$code" 200
	command_ 'kill -0 $(cat /tmp/pid) && echo lives; kill $(cat /tmp/pid)'
	is "$(get .output)" lives
}
long_output_is_complete_and_output_over_the_limit_loses_its_middle() {
	new_box
	session
	command_ 'seq 1 60000'
	is "$(get '.output | length')" 348894
	is "$(get '.output | split("\n") | length')" 60001
	command_ 'head -c 5000000 /dev/zero | tr "\0" x; echo; echo end'
	has "$(get '.output[-200:]')" end
	has "$(get .output | grep -a 'left out')" "bytes left out"
	[ "$(get '.output | length')" -lt 1100000 ]
	rex execute '{"command":["seq","1","30000"]}'
	is "$(get '.stdout | length')" 168894
}
execute_runs_a_command_outside_a_session() {
	new_box
	rex execute '{"command":["sh","-c","echo out; echo err >&2; exit 4"]}'
	is "$code" 200 "$body"
	is_json "$(get -c .)" '{"stdout":"out\n","stderr":"err\n","exit_code":4}'
	rex execute '{"command":"echo $V; pwd; echo err >&2","shell":true,"env":{"V":"1"},"cwd":"/usr","merge_output_streams":true,"timeout":null,"check":false,"error_msg":""}'
	is "$(get '[.stdout, .stderr] | tojson')" '["1\n/usr\nerr\n",""]'
	rex execute '{"command":"true"}'
	is "$(get .exit_code)" 0
	rex execute '{"command":"echo two words"}'
	raises builtins.FileNotFoundError "echo two words"
	rex execute '{"command":["/etc/passwd"]}'
	raises builtins.PermissionError
	rex execute '{"command":["sh","-c","kill -15 $$"]}'
	is "$(get .exit_code)" -15
	rex execute '{"command":"echo no; exit 9","shell":true,"check":true,"error_msg":"sorry"}'
	raises swerex.exceptions.NonZeroExitCodeError "sorry: "
	rex execute '{"command":"true","cwd":"/nothing"}'
	is "$code" 511
}
write_file_and_read_file_transfer_files() {
	new_box
	rex write_file '{"path":"/home/user/deep/er/f","content":"ä\nb"}'
	is "$code" 200 "$body"
	is "$(get -c .)" '{}'
	rex read_file '{"path":"deep/er/f"}'
	is "$(get -c .)" '{"content":"ä\nb"}'
	jq -nc '{path: "big", content: ("0123456789" * 300000)}' >big
	rex write_file @big
	is "$code" 200 "$body"
	rex execute '{"command":["stat","-c","%s","big"]}'
	is "$(get .stdout)" 3000000
	rex execute '{"command":"cat big >>bigger; cat big >>bigger","shell":true}'
	rex read_file '{"path":"bigger"}'
	raises builtins.OSError "too large"
	rex execute '{"command":"printf \"a\\377\\0b\" >f","shell":true}'
	rex read_file '{"path":"f"}'
	raises builtins.ValueError "byte 0xff at 1"
	rex read_file '{"path":"f","encoding":"utf-8","errors":"replace"}'
	is "$(get '.content | tojson')" '"a�\u0000b"'
	rex read_file '{"path":"f","errors":"backslashreplace"}'
	is "$(get '.content | tojson')" '"a\\xff\u0000b"'
	rex read_file '{"path":"f","encoding":"latin-1","errors":null}'
	is "$(get '.content | tojson')" '"aÿ\u0000b"'
	rex read_file '{"path":"f","encoding":"klingon"}'
	raises builtins.LookupError
	rex read_file '{"path":"/nothing"}'
	raises builtins.FileNotFoundError
	rex read_file '{"path":"/usr"}'
	is "$code" 511
	rex write_file '{"path":"/usr/x","content":""}'
	raises builtins.PermissionError
	rex write_file '{"path":"f/x","content":""}'
	raises builtins.NotADirectoryError
}
# form WORD...: an upload, with curl's -F for each.
form() {
	for field; do
		set -- "$@" -F "$field"
		shift
	done
	code=$(curl -sS -g --max-time 120 -o body -w '%{http_code}' -H "X-API-Key: $key" "$@" "$url/swerex/$box/upload")
	body=$(cat body)
}
upload_transfers_files_and_folders() {
	new_box
	printf 'a\r\n--\000\377' >up
	form file=@up target_path=/home/user/new/up unzip=false
	is "$code" 200 "$body"
	is "$(get -c .)" '{}'
	rex execute '{"command":["md5sum","new/up"]}'
	is "$(get .stdout | cut -c 1-32)" "$(md5sum <up | cut -c 1-32)"
	mkdir -p tree/sub
	echo 1 >tree/one
	echo 2 >"tree/sub/t w o"
	(cd tree && python3 -m zipfile -c ../tree.zip one sub)
	form file=@tree.zip target_path=bundle unzip=true
	is "$code" 200 "$body"
	rex execute '{"command":"cat bundle/one \"bundle/sub/t w o\"; ls -a /tmp | grep zip","shell":true}'
	is "$(get .stdout)" "1
2"
	head -c 20000000 /dev/zero >large
	form file=@large target_path=large
	is "$code" 200 "$body"
	rex execute '{"command":["stat","-c","%s","large"]}'
	is "$(get .stdout)" 20000000
}
an_invalid_upload_is_rejected() {
	new_box
	echo text >up
	form file=@up target_path=here unzip=true
	raises zipfile.BadZipFile
	rex execute '{"command":"ls -a /tmp | grep zip","shell":true}'
	is "$(get .stdout)" ""
	form file=@up target_path=/usr/x
	raises builtins.PermissionError
	form file=@up
	is "$code" 422
	form target_path=x
	is "$code" 422
	has "$(get .detail)" "file or target_path is missing"
	rex upload '{}'
	is "$code" 422
	printf -- '--x\r\nContent-Disposition: form-data; name="file"\r\n\r\nhalf' >half
	code=$(curl -sS -o body -w '%{http_code}' -H "X-API-Key: $key" --data-binary @half \
		-H 'Content-Type: multipart/form-data; boundary=x' "$url/swerex/$box/upload")
	is "$code" 422
	is "$(get .detail)" "the form has no end"
	head -c 34000000 /dev/zero >large
	form file=@large target_path=large
	is "$code" 413
	as "$viewer" form file=@up target_path=x
	is "$code" 403
	box=missing
	form file=@up target_path=x
	is "$code" 404
}
an_invalid_swerex_request_names_the_field() {
	new_box
	for bad in 'create_session {"session":"../x"} session' 'create_session {"session":7} session' \
		'create_session {"session":""} session' 'create_session {"session_type":"zsh"} session_type' \
		'create_session {"startup_source":"x"} startup_source' 'create_session {"startup_timeout":-1} startup_timeout' \
		'run_in_session {} command' 'run_in_session {"command":"x","timeout":0} timeout' \
		'run_in_session {"command":"x","timeout":"1"} timeout' 'run_in_session {"command":"x","timeout":1e99} timeout' \
		'run_in_session {"command":"x","check":"maybe"} check' 'run_in_session {"command":"x","colour":1} colour' \
		'run_in_session {"command":"x","action_type":"python"} action_type' 'run_in_session {"command":["x"]} command' \
		'run_in_session {"action_type":"bash_interrupt","n_retry":0} n_retry' 'close_session {"x":1} x' \
		'execute {} command' 'execute {"command":[]} command' 'execute {"command":[1]} command' \
		'execute {"command":"x","timeout":true} timeout' 'read_file {} path' 'read_file {"path":7} path' \
		'write_file {"path":"x"} content' 'close {"x":1} x' 'write_file [1] object' 'execute {"command": JSON'; do
		set -- $bad
		rex "$1" "$2"
		is "$code" 422 "$bad: $body"
		has "$(get .detail | tr A-Z a-z)" "$(echo "${3:-}" | tr A-Z a-z)" "$bad"
	done
	rex run_in_session '{"command":"gdb","is_interactive_command":true}'
	raises builtins.NotImplementedError
	rex run_in_session '{"command":"x","expect":["> "]}'
	raises builtins.NotImplementedError
	jq -nc '{command: ("x" * 110000)}' >big
	rex run_in_session @big
	is "$code" 422
	session
	jq -nc '{command: (": " + "x" * 100000 + "; echo fits")}' >big
	rex run_in_session @big
	is "$(get .output)" fits
}
roles_teams_and_box_keys_are_enforced() {
	new_box
	as "$viewer" rex execute '{"command":"true"}'
	is "$code" 403
	rex write_file '{"path":"x","content":"y"}'
	as "$viewer" rex read_file '{"path":"x"}'
	is "$(get .content)" y
	as "$editor" rex execute '{"command":"true"}'
	is "$code" 200
	api PUT /v1/teams/others '{}'
	api POST /v1/keys '{"name":"foreign","role":"owner","team":"others"}'
	foreign=$(get .key)
	api POST /v1/keys "{\"name\":\"bound\",\"role\":\"editor\",\"box\":\"$box\"}"
	bound=$(get .key)
	here=$box box=_
	as "$bound" rex read_file '{"path":"x"}'
	is "$(get .content)" y "$body"
	box=$here
	as "$foreign" rex execute '{"command":"true"}'
	is "$code" 404
	has "$(get .detail)" "no such box"
	as "$foreign" api GET "/swerex/$box/is_alive"
	is "$code" 404
	as nonsense rex execute '{"command":"true"}'
	is "$code" 401
	rex execute '{"command":"true"}' -H 'Origin: http://evil.example'
	is "$code" 403
}
the_default_box_of_a_key_is_created_on_demand() {
	box=_
	api GET /swerex/_/is_alive
	is "$(get .is_alive)" true
	session
	command_ 'echo $HOME; touch here'
	is "$(get .output)" /home/user
	as "$editor" rex execute '{"command":["ls"]}'
	is "$(get .stdout)" ""
	rex execute '{"command":["ls"]}'
	is "$(get .stdout)" here
	as "$viewer" rex execute '{"command":["ls"]}'
	is "$code" 403
}
the_end_of_a_box_raises_an_error_and_then_it_is_not_found() {
	new_box
	session
	aside 'touch /tmp/begun; sleep 100'
	rex execute '{"command":"until [ -e /tmp/begun ]; do sleep 0.02; done","shell":true,"timeout":10}'
	api DELETE "/v1/boxes/$box"
	wait $aside
	is "$(cat aside/code)" 511 "$(cat aside/body)"
	is "$(jq -r .swerexception.class_path aside/body)" swerex.exceptions.SwerexException
	command_ true
	is "$code" 404
	api GET "/swerex/$box/is_alive"
	is "$code" 404
}
a_repeated_request_id_is_executed_once() {
	new_box
	session
	for try in 1 2; do
		rex run_in_session '{"command":"echo x >>count; wc -l <count"}' -H 'X-Request-ID: one'
		is "$(get .output)" 1 "$try"
		rex run_in_session '{"command":"echo x >>count; false"}' -H 'X-Request-ID: two'
		raises swerex.exceptions.NonZeroExitCodeError
	done
	rex run_in_session '{"command":"wc -l <count"}' -H 'X-Request-ID: three'
	is "$(get .output)" 2
	as "$editor" rex run_in_session '{"command":"wc -l <count"}' -H 'X-Request-ID: one'
	is "$(get .output)" 2
	rex execute '{"command":["wc","-l","count"]}' -H 'X-Request-ID: one'
	is "$(get .stdout)" "2 count"
	rex execute '{"command":"true"}' -H "X-Request-ID: $(printf %0200d 1)"
	is "$code" 422
	aside 'touch /tmp/begun; until [ -e /tmp/go ]; do sleep 0.02; done; echo done' default '{}' -H 'X-Request-ID: four'
	rex execute '{"command":"until [ -e /tmp/begun ]; do sleep 0.02; done","shell":true,"timeout":10}'
	rex run_in_session '{"command":"x"}' -H 'X-Request-ID: four'
	is "$code" 409
	rex write_file '{"path":"/tmp/go","content":""}'
	wait $aside
	rex run_in_session '{"command":"x"}' -H 'X-Request-ID: four'
	is "$(get .output)" done
	here=$box box=missing
	rex execute '{"command":"true"}' -H 'X-Request-ID: five'
	is "$code" 404
	rex execute '{"command":"true"}' -H 'X-Request-ID: five'
	is "$code" 404
	box=$here
}
a_repeated_request_of_a_disconnected_client_is_not_executed_again() {
	new_box
	session
	curl -sS -H "X-API-Key: $key" -H 'X-Request-ID: gone' "$url/swerex/$box/run_in_session" \
		-d '{"command":"touch /tmp/begun; until [ -e /tmp/go ]; do sleep 0.02; done; echo x >>count"}' >/dev/null 2>&1 &
	leaves=$!
	rex execute '{"command":"until [ -e /tmp/begun ]; do sleep 0.02; done","shell":true,"timeout":10}'
	kill $leaves
	wait $leaves || :
	rex write_file '{"path":"/tmp/go","content":""}'
	rex run_in_session '{"command":"echo x >>count"}' -H 'X-Request-ID: gone'
	case $code in 200 | 409) ;; *) fail "$code: $body" ;; esac
	command_ 'wc -l <count'
	is "$(get .output)" 1
}
secrets_of_the_box_are_redacted_in_output() {
	new_box '{"env":{"API_KEY":"sesame-open"}}'
	session
	command_ 'echo "key: $API_KEY"'
	is "$(get .output)" "key: [API_KEY]"
}
run_daemon_tests
