#!/bin/sh
# secrets.sh - secrets: stored encrypted, given to boxes as variables, files and placeholders, and never shown.
. "$(dirname "$0")/daemon.lib"

value="s3cret/Value+$$ 0123456789"
printf %s "$value" >"$work/expected"
"$ATOLL" cert api.test --dir "$work" >/dev/null || exit 1
mkfifo "$work/upstream.in"
/usr/bin/python3 "$here/secrets.py" serve "$work" <"$work/upstream.in" >"$work/upstream.ports" &
exec 8>"$work/upstream.in"
soon grep -q dns= "$work/upstream.ports"
eval "$(cat "$work/upstream.ports")"
# shellcheck disable=SC2154 # https, http, dns: by the line above
export https http ATOLL_EGRESS_DNS="127.0.0.1:$dns" ATOLL_EGRESS_CA="$work/ca.pem"
export ATOLL_EGRESS_INTERNAL="api.test:$https,api.test:$http,other.api.test:$https,wrong.test:$https"
: >"$work/requests"

# put NAME VALUE [FIELDS]: sets a secret by the API.
put() { api PUT "/v1/secrets/$1" "$(jq -nc --arg v "$2" "{value:\$v} + ${3:-{\}}")"; }
# says COMMAND: executes it in the box; sets code and out.
says() {
	api POST "/v1/boxes/$box/execs" "$(jq -nc --arg c "$1" '{command:$c}')"
	out=$(get .stdout)
}
as_viewer() {
	owner=$key key=$viewer
	api "$@"
	key=$owner
}
gone() { api DELETE "/v1/boxes/$box"; }
way_open() { api GET "/v1/boxes/$box/network" && [ "$(get .open)" = true ]; }
# nowhere TEXT-FILE: the text is in no file of the daemon, and not in its logs.
nowhere() {
	if grep -rlaF -f "$1" "$state" "$work/serve.log" >found; then fail "in $(cat found)"; fi
}
placeholder_box() { # [SECRET FIELDS]
	new_box "{\"secrets\":[{\"name\":\"TOKEN\",\"as\":\"placeholder\",\"hosts\":[\"api.test:$https\"]${1-}}]}"
	soon way_open
}

a_secret_is_set_listed_replaced_and_deleted_without_being_shown() {
	put LIFE "$value"
	is "$code" 201 "$body"
	is "$(get '[.name, .version] | @csv')" '"LIFE",1'
	lacks "$body" "$value"
	put LIFE "$value again"
	is "$code $(get .version)" "200 2" "$body"
	api GET /v1/secrets/LIFE
	lacks "$body" "$value"
	is "$(get 'keys | join(" ")')" "created hosts name updated version"
	as_viewer GET /v1/secrets
	is "$(get '.items[] | select(.name == "LIFE") | keys | join(" ")')" name "$body"
	as_viewer PUT /v1/secrets/LIFE '{"value":"x"}'
	is "$code" 403
	as_viewer DELETE /v1/secrets/LIFE
	is "$code" 403
	api GET '/v1/audit?action=secret.set'
	is "$(get '.items[0].subject')" LIFE "$body"
	lacks "$body" "$value"
	nowhere "$work/expected"
	api DELETE /v1/secrets/LIFE
	is "$code" 204
	api GET /v1/secrets/LIFE
	is "$code" 404
}

bad_names_and_sizes_are_rejected() {
	for name in ..%2Fx .hidden a%20b "$(printf 'a%.0s' $(seq 65))"; do
		api PUT "/v1/secrets/$name" '{"value":"x"}'
		is "$code" 400 "$name: $body"
	done
	put EMPTY ''
	is "$code" 400
	has "$body" 'between 1 and 65536'
	head -c 65537 /dev/zero | tr '\0' x >large
	jq -Rsc '{value:.}' <large >large.json
	api PUT /v1/secrets/LARGE @large.json
	is "$code" 400 "$body"
	head -c 1048576 /dev/zero | tr '\0' x | jq -Rsc '{value:.}' >large.json
	api PUT /v1/secrets/LARGE @large.json
	is "$code" 413
	head -c 65536 large | jq -Rsc '{value:.}' >most.json
	api PUT /v1/secrets/LARGE @most.json
	is "$code" 201 "$body"
	put ONE x
	is "$code" 201
	api PUT /v1/secrets/BOTH '{"value":"x","base64":"eA=="}'
	is "$code" 400
	api GET /v1/secrets
	lacks "$body" EMPTY
	for name in LARGE ONE; do api DELETE "/v1/secrets/$name"; done
}

the_command_reads_the_value_from_stdin_only() {
	export ATOLL_KEY="$key"
	printf %s "$value" | "$ATOLL" -H "$url" secret set FROM_STDIN
	atoll -H "$url" secret ls
	has "$out" FROM_STDIN
	lacks "$out" "$value"
	atoll -H "$url" secret set FROM_STDIN "$value"
	is "$status" 2
	has "$err" 'from stdin'
	lacks "$err" "$value"
	atoll -H "$url" secret set "FROM_STDIN=$value"
	is "$status" 2
	lacks "$err" "$value"
	: | "$ATOLL" -H "$url" secret set FROM_STDIN 2>err && fail 'an empty value was accepted'
	head -c 70000 /dev/zero | "$ATOLL" -H "$url" secret set FROM_STDIN 2>err && fail 'a large value was accepted'
	has "$(cat err)" 65536
	atoll -H "$url" new --secret FROM_STDIN=MINE -q
	is "$status" 0 "$err"
	box=$out
	says "printf %s \"\$MINE\" | md5sum"
	is "$out" "$(printf %s "$value" | md5sum)"
	gone
	/usr/bin/python3 "$here/onpty.py" 'wait=(not shown): ' "send=typed-$$\\r" -- "$ATOLL" -H "$url" secret set FROM_STDIN >shown
	lacks "$(cat shown)" "typed-$$"
	api GET /v1/secrets/FROM_STDIN
	is "$(get .version)" 2
	status=0
	/usr/bin/python3 "$here/onpty.py" 'wait=(not shown): ' 'send=\x03' -- "$ATOLL" -H "$url" secret set FROM_STDIN >shown || status=$?
	is "$status" 2 "$(cat shown)"
	api GET /v1/secrets/FROM_STDIN
	is "$(get .version)" 2
	atoll -H "$url" secret rm FROM_STDIN
	is "$status" 0 "$err"
	atoll -H "$url" secret rm FROM_STDIN
	is "$status" 3
}

a_box_gets_a_variable_and_new_runs_get_a_new_value() {
	put VAR "$value"
	new_box '{"secrets":[{"name":"VAR"}],"env":{"VAR":"overridden","OTHER":"o"}}'
	is_json "$(get .secrets)" '[{"name":"VAR","as":"variable","variable":"VAR"}]'
	says 'printf %s "$VAR" | md5sum; echo $OTHER'
	is "$out" "$(printf %s "$value" | md5sum)
o"
	put VAR "another $value"
	says 'printf %s "$VAR" | md5sum'
	is "$out" "$(printf %s "another $value" | md5sum)"
	as_viewer GET "/v1/boxes/$box"
	is_json "$(get .secrets)" '[{"name":"VAR"}]'
	nowhere "$work/expected"
	api DELETE /v1/secrets/VAR
	says 'echo "${VAR-unset}"'
	is "$out" unset
	gone
}

a_box_gets_a_file_on_a_tmpfs_that_changes_with_the_secret() {
	put FILE "$value"
	new_box '{"secrets":[{"name":"FILE","as":"file"},{"name":"FILE","as":"file","path":"sub/key.pem"}],"limits":{"disk":1073741824}}'
	says 'md5sum </run/secrets/FILE; md5sum </run/secrets/sub/key.pem; stat -c "%a %u" /run/secrets/FILE; grep -o " /run/secrets .* - tmpfs" /proc/self/mountinfo'
	sum=$(printf %s "$value" | md5sum)
	is "$out" "$sum
$sum
400 1000
 /run/secrets rw,nosuid,nodev,noexec,relatime - tmpfs"
	put FILE "another $value"
	sum=$(printf %s "another $value" | md5sum)
	changed() { says 'md5sum </run/secrets/FILE' && [ "$out" = "$sum" ]; }
	soon changed
	api GET "/v1/boxes/$box/changes"
	lacks "$body" secrets
	as_viewer GET "/v1/boxes/$box/files?path=/run/secrets/FILE"
	is "$code" 403 "$body"
	for place in /proc/self/environ /dev/fd/../environ /home/user/../../run/secrets/FILE /run//secrets/./FILE; do
		as_viewer GET "/v1/boxes/$box/files?path=$place"
		is "$code" 403 "$place: $body"
	done
	for place in / /run /run/secrets; do
		as_viewer GET "/v1/boxes/$box/files/archive?path=$place"
		is "$code" 403 "$place"
		as_viewer GET "/v1/boxes/$box/files/search?path=$place&content=s"
		is "$code" 403 "$place"
	done
	as_viewer GET "/api/sandbox/$box/files/content?path=/run/secrets/FILE"
	is "$code" 403
	as_viewer GET "/v1/boxes/$box/files/list?path=/"
	is "$code" 200 "$body"
	api GET "/v1/boxes/$box/files?path=/run/secrets/FILE"
	is "$code" 200
	gone
	api POST /v1/boxes '{"secrets":[{"name":"FILE","as":"file","path":"../../etc/x"}]}'
	is "$code" 400
	api POST /v1/boxes '{"secrets":[{"name":"FILE","as":"file","path":"/etc/x/y"}]}'
	is "$code" 400
	api DELETE /v1/secrets/FILE
}

values_are_redacted_in_records_answers_and_audit_rows() {
	put RED "$value"
	new_box '{"secrets":[{"name":"RED"}]}'
	api POST "/v1/boxes/$box/execs" "$(jq -nc --arg v "$value" '{command:["sh","-c","echo \"$RED\"; printf %s \"$RED\" | base64; echo \"$1\" >&2; exit 3","sh",$v]}')"
	run=$(get .id)
	is "$(get .stdout)" "[RED]
[RED]" "$body"
	is "$(get .stderr)" '[RED]'
	lacks "$body" "$value"
	api GET "/v1/runs/$run"
	has "$(get .command)" '[RED]'
	lacks "$body" "$value"
	api GET '/v1/audit?action=exec.start'
	lacks "$body" "$value"
	api GET /v1/events
	lacks "$body" "$value"
	api POST "/v1/boxes/$box/cells" '{"language":"python","code":"import os; print(os.environ[\"RED\"]); os.environ[\"RED\"]"}'
	is "$code" 200 "$body"
	lacks "$body" "$value"
	has "$(get .stdout)" '[RED]'
	api POST "/v1/boxes/$box/tools/run_command" '{"command":"echo $RED; printenv RED | base64"}'
	is "$code" 200 "$body"
	lacks "$body" "$value"
	has "$body" '[RED]'
	gone
	api POST /v1/run '{"language":"python","code":"import os; raise ValueError(os.environ[\"RED\"])","secrets":[{"name":"RED"}]}'
	is "$code" 200 "$body"
	has "$body" '[RED]'
	lacks "$body" "$value"
	nowhere "$work/expected"
	api DELETE /v1/secrets/RED
}

a_placeholder_is_replaced_for_its_host_and_the_value_never_enters_the_box() {
	put TOKEN "$value"
	placeholder_box
	is "$(get '.allow | join(" ")')" "api.test:$https"
	says "curl -sS -H \"Authorization: Bearer \$TOKEN\" https://api.test:$https/v1/models"
	is "$out" authorised "$body"
	says "curl -sS -u \"user:\$TOKEN\" https://api.test:$https/"
	is "$out" authorised "$body"
	says "curl -sS \"https://api.test:$https/?key=\$TOKEN\""
	is "$out" 'not authorised'
	api GET "/v1/boxes/$box/network"
	if [ "$(get .transparent)" = true ]; then # without a proxy
		says "curl -sS --noproxy '*' -H \"Authorization: Bearer \$TOKEN\" https://api.test:$https/"
		is "$out" authorised "$body"
	fi
	# A program that has used it still runs while its memory is scanned.
	api POST "/v1/boxes/$box/execs" "$(jq -nc --arg c "exec python3 -c '
import os, time, urllib.request
r = urllib.request.Request(\"https://api.test:$https/\", headers={\"Authorization\": \"Bearer \" + os.environ[\"TOKEN\"]})
text = urllib.request.urlopen(r).read().decode()
open(\"/tmp/marker\", \"w\").write(text)
time.sleep(600)' marker-$$" '{command:$c, background:true}')"
	is "$code" 201 "$body"
	marked() { says 'cat /tmp/marker' && [ "$out" = authorised ]; }
	soon marked
	pid=$(pgrep -f "marker-$$" | head -1)
	says 'printf %s "$TOKEN"'
	case $out in atoll-placeholder-*) ;; *) fail "$out" ;; esac
	printf %s "$out" >shown
	is "$(/usr/bin/python3 "$here/secrets.py" scan shown "$pid" | grep -c 'found=[1-9]')" 1
	has "$(/usr/bin/python3 "$here/secrets.py" scan "$work/expected" "$pid")" 'found=0'
	for folder in etc home opt root run tmp var dev/shm; do
		if grep -rlaF -f "$work/expected" "/proc/$pid/root/$folder" >found 2>/dev/null; then fail "$(cat found)"; fi
	done
	says 'printf %s "$TOKEN" >/tmp/written'
	grep -rlaF -f shown "/proc/$pid/root/tmp" >found || fail 'the scan does not find what is there'
	soon network_is '[.recent[0].host, .recent[0].verdict] | @csv' '"api.test","ok"'
	lacks "$body" "$value"
	for path in /v1/runs /v1/events /v1/audit "/v1/boxes/$box"; do
		curl -sS -H "X-API-Key: $key" "$url$path" >doc
		if grep -qF -e "$value" -e PRIVATE doc; then fail "$path: $(cat doc)"; fi
	done
	nowhere "$work/expected"
	gone
}

a_new_value_is_used_at_once_and_other_hosts_get_the_placeholder() {
	put TOKEN old-value-of-token
	placeholder_box ',"in":["query"]'
	says "curl -sS \"https://api.test:$https/?key=\$TOKEN\""
	is "$out" 'not authorised'
	put TOKEN "$value"
	says "curl -sS \"https://api.test:$https/?key=\$TOKEN\""
	is "$out" authorised "$body"
	says "curl -sS -H \"Authorization: Bearer \$TOKEN\" https://api.test:$https/"
	is "$out" 'not authorised'
	gone
	api POST /v1/boxes "{\"network\":{\"allow\":[\"other.api.test:$https\"]},\"secrets\":[{\"name\":\"TOKEN\",\"as\":\"placeholder\",\"hosts\":[\"api.test:$https\"]}]}"
	box=$(get .id)
	soon way_open
	# TLS to a host without a placeholder is not opened: its own certificate arrives.
	says "curl -sS --cacert /nonexistent -H \"Authorization: Bearer \$TOKEN\" https://other.api.test:$https/ 2>&1 | tail -1; curl -skv https://other.api.test:$https/ 2>&1 | grep issuer; curl -skv https://api.test:$https/ 2>&1 | grep issuer"
	has "$out" 'Atoll CA for api.test'
	has "$out" 'CN=Atoll box'
	says "curl -sk -H \"Authorization: Bearer \$TOKEN\" https://other.api.test:$https/"
	is "$out" 'not authorised'
	gone
}

a_host_with_another_certificate_does_not_get_the_value() {
	put TOKEN "$value"
	# The certificate of the server is for api.test and names below it.
	new_box "{\"secrets\":[{\"name\":\"TOKEN\",\"as\":\"placeholder\",\"hosts\":[\"wrong.test:$https\"]}]}"
	soon way_open
	before=$(wc -l <"$work/requests")
	says "curl -sS -w '%{http_code}' -H \"Authorization: Bearer \$TOKEN\" https://wrong.test:$https/"
	has "$out" 'certificate of wrong.test is not accepted (hostname mismatch)'
	has "$out" 502
	is "$(wc -l <"$work/requests")" "$before"
	gone
	api POST /v1/boxes "{\"secrets\":[{\"name\":\"TOKEN\",\"as\":\"placeholder\",\"hosts\":[\"127.0.0.9:$https\"]}]}"
	is "$code" 403 "$body"
	placeholder_box
	says "curl -sS -H 'Host: other.test' -H \"Authorization: Bearer \$TOKEN\" https://api.test:$https/"
	has "$out" 'different hosts'
	gone
}

rules_about_methods_and_paths_apply_to_opened_tls() {
	put TOKEN "$value"
	new_box "{\"network\":{\"allow\":[\"GET api.test:$https/v1/*\"]},\"secrets\":[{\"name\":\"TOKEN\",\"as\":\"placeholder\",\"hosts\":[\"api.test:$https\"]}]}"
	soon way_open
	says "curl -sS -H \"Authorization: Bearer \$TOKEN\" https://api.test:$https/v1/models"
	is "$out" authorised "$body"
	before=$(wc -l <"$work/requests")
	for ask in '-X POST' '-X DELETE'; do
		says "curl -sS -o /dev/null -w '%{http_code}' $ask -H \"Authorization: Bearer \$TOKEN\" https://api.test:$https/v1/models"
		is "$out" 403 "$ask"
	done
	says "curl -sS -w '%{http_code}' -H \"Authorization: Bearer \$TOKEN\" https://api.test:$https/v2"
	has "$out" 403
	is "$(wc -l <"$work/requests")" "$before"
	gone
}

plain_http_gets_the_value_only_at_a_port_that_is_named() {
	put TOKEN "$value"
	new_box "{\"secrets\":[{\"name\":\"TOKEN\",\"as\":\"placeholder\",\"hosts\":[\"api.test:$http\"]}]}"
	soon way_open
	says "curl -sS -H \"Authorization: Bearer \$TOKEN\" http://api.test:$http/"
	is "$out" authorised "$body"
	says "curl -sS -p -H \"Authorization: Bearer \$TOKEN\" http://api.test:$http/"
	is "$out" authorised "$body"
	gone
}

a_secret_for_a_host_can_only_be_a_placeholder_for_it() {
	put BOUND "$value" "{hosts:[\"api.test:$https\"]}"
	is "$code" 201 "$body"
	for attach in '' ',"as":"file"' ",\"as\":\"placeholder\",\"hosts\":[\"api.test:$http\"]"; do
		api POST /v1/boxes "{\"secrets\":[{\"name\":\"BOUND\"$attach}]}"
		is "$code" 403 "$attach: $body"
		has "$body" 'secrets: [0]'
	done
	new_box '{"secrets":[{"name":"BOUND","as":"placeholder"}]}'
	is "$(get '.secrets[0].hosts[0]')" "api.test:$https"
	gone
	for attach in '"name":"MISSING"' '"name":"BOUND","as":"placeholder","in":["body"]' '"name":"BOUND","as":"nothing"' '"name":"BOUND","as":"placeholder","path":"x"'; do
		api POST /v1/boxes "{\"secrets\":[{$attach}]}"
		case $code in 400 | 404) ;; *) fail "$attach: $code $body" ;; esac
	done
	api PUT /v1/secrets/LINES '{"value":"a\r\nb: c"}'
	api POST /v1/boxes "{\"secrets\":[{\"name\":\"LINES\",\"as\":\"placeholder\",\"hosts\":[\"api.test:$https\"]}]}"
	is "$code" 400 "$body"
	has "$body" 'control character'
	for name in BOUND LINES; do api DELETE "/v1/secrets/$name"; done
}

# says_code ARGUMENTS: executes curl in the box; sets out to the status of its answer.
says_code() { says "curl -sS --max-time 20 -o /dev/null -w '%{http_code}' $*"; }

an_e2b_rule_sets_a_header_that_the_box_never_sees() {
	rule=$(jq -nc --arg v "Bearer $value" --arg h "api.test:$https" '{($h): [{transform: {headers: {Authorization: $v}}}, {}, {transform: null}]}')
	e2b() { api POST /v2/sandboxes "{\"templateID\":\"base\",\"network\":{\"denyOut\":[\"0.0.0.0/0\"],\"allowOut\":[\"api.test\",\"other.api.test\"],\"rules\":$1}}"; }
	e2b "$rule"
	is "$code" 201 "$body"
	box=$(get .sandboxID)
	soon way_open
	says_code "https://api.test:$https/"
	is "$out" 200 "$body"
	# Another value of the same header is replaced; another host gets none.
	says_code "-H 'authorization: own' https://api.test:$https/"
	is "$out" 200 "$body"
	says_code "-k https://other.api.test:$https/"
	is "$out" 401 "$body"
	api GET "/sandboxes/$box"
	is "$(get ".network.rules[\"api.test:$https\"][0].transform.headers.Authorization")" '[hidden]' "$body"
	lacks "$body" "$value"
	says 'env; cat /run/secrets/.atoll/* /proc/*/environ 2>/dev/null | tr "\0" "\n"'
	lacks "$out" "$value"
	nowhere "$work/expected"
	api PUT "/sandboxes/$box/network" '{"allowOut":["api.test"],"denyOut":["0.0.0.0/0"]}'
	is "$code" 204 "$body"
	unset_now() { says_code "-k https://api.test:$https/" && [ "$out" = 401 ]; }
	soon unset_now
	gone
	# A sandbox that was created without rules.
	e2b '{}'
	is "$code" 201 "$body"
	box=$(get .sandboxID)
	soon way_open
	api PUT "/sandboxes/$box/network" "{\"allowOut\":[\"api.test\"],\"denyOut\":[\"0.0.0.0/0\"],\"rules\":$rule}"
	is "$code" 204 "$body"
	set_now() { says_code "https://api.test:$https/" && [ "$out" = 200 ]; }
	soon set_now
	gone
	for bad in '[]' '{"a b":[]}' '{"api.test":{}}' '{"api.test":[1]}' '{"api.test":[{"transform":1}]}' '{"api.test":[{"transform":{"headers":[]}}]}' \
		'{"api.test":[{"transform":{"headers":{"a b":"x"}}}]}' '{"api.test":[{"transform":{"headers":{"Host":"x"}}}]}' \
		'{"api.test":[{"transform":{"headers":{"a":1}}}]}' '{"api.test":[{"transform":{"headers":{"a":"x\r\ny: z"}}}]}' \
		'{"api.test":[{"transform":{"headers":{"a":"Bearer ${e2b.identity.tokens.x}"}}}]}' \
		"$(jq -nc '{"api.test": [{transform: {headers: ([range(17) | {("h\(.)"): "v"}] | add)}}]}')"; do
		e2b "$bad"
		case $code in 400 | 429) ;; *) fail "$bad: $code $body" ;; esac
	done
}

another_server_and_another_egress_use_the_same_values() {
	put TOKEN "$value"
	placeholder_box
	kill -9 "$(pgrep -P "$supervisor" -x atoll-egress)"
	asks() { says "curl -sS -m 5 -H \"Authorization: Bearer \$TOKEN\" https://api.test:$https/ 2>&1" && [ "$out" = authorised ]; }
	soon asks
	kill -9 "$(server_pid)"
	soon asks
	gone
}

a_missing_or_other_key_file_is_reported_and_loses_nothing() {
	put KEPT "$value"
	is "$(stat -c %a "$state/secrets.key")" 600
	stop_daemon
	mv "$state/secrets.key" kept.key
	start_daemon
	api GET /v1/secrets/KEPT
	is "$code" 200
	api POST /v1/boxes '{"secrets":[{"name":"KEPT"}]}'
	is "$code" 409 "$body"
	has "$body" secrets.key
	put NEW x
	is "$code" 409 "$body"
	stop_daemon
	head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n' >"$state/secrets.key"
	start_daemon
	put NEW x
	is "$code" 409 "$body"
	has "$body" 'another key'
	stop_daemon
	cp kept.key "$state/secrets.key"
	start_daemon
	new_box '{"secrets":[{"name":"KEPT"}]}'
	says 'printf %s "$KEPT" | md5sum'
	is "$out" "$(printf %s "$value" | md5sum)"
	gone
}

run_daemon_tests
