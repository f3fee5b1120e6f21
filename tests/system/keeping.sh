#!/bin/sh
# keeping.sh - what is kept: signed receipts of runs and their chain; answers of hermetic runs; links to runs; support
# bundles; backup and restore.
. "$(dirname "$0")/daemon.lib"

# ran BODY: runs a program in a new box; sets id.
ran() {
	api POST /v1/run "$1"
	is "$code" 200 "$body"
	id=$(get .id)
}
sha() { printf %s "$1" | sha256sum | cut -d ' ' -f 1; }
verify() { atoll receipt verify "$@"; }
server_runs() { [ "$(server_pid)" ]; }

a_run_has_a_signed_receipt_of_what_went_in_and_came_out() {
	ran '{"language":"bash","code":"read x; echo got $x; echo bad >&2; exit 3","stdin":"in"}'
	api GET "/v1/runs/$id/receipt"
	is "$code" 200 "$body"
	is "$(get .receipt.run)" "$id"
	is "$(get .receipt.code)" "$(sha 'read x; echo got $x; echo bad >&2; exit 3')"
	is "$(get .receipt.outputs.stdout)" "$(printf 'got in\n' | sha256sum | cut -d ' ' -f 1)"
	is "$(get .receipt.outputs.stderr)" "$(printf 'bad\n' | sha256sum | cut -d ' ' -f 1)"
	is "$(get '[.receipt.cause, .receipt.status, .receipt.outputs.stdout_bytes] | @csv')" '"exit",3,7'
	has "$(get '.receipt.isolation | join(" ")')" system-calls
	# A request that is too large to be stored is hashed all the same.
	jq -nc --arg pad "$(head -c 70000 /dev/zero | tr '\0' x)" '{language:"bash",code:"true",files:{pad:$pad}}' >large
	ran @large
	api GET "/v1/runs/$id/receipt"
	is "$(get .receipt.code)" "$(sha true)"
	is "$(get '.receipt.inputs | length')" 64
	api GET "/v1/runs/$id"
	is "$(get .inputs.code)" "$(sha true)"
	api GET /v1/runs
	api GET /v1/runs/aaaaaaaaaaaa/receipt
	is "$code" 404
}

an_exported_chain_is_verified_without_a_daemon() {
	export ATOLL_KEY="$key"
	for i in 1 2 3; do ran '{"command":"true"}'; done
	atoll -H "$url" receipt key
	echo "$out" >node.pem
	is "$out" "$(cat "$state/receipts.pub")"
	is "$(stat -c %a "$state/receipts.key") $(stat -c %a "$state/receipts.pub")" "600 644"
	atoll -H "$url" receipt export all.jsonl
	is "$status" 0 "$err"
	verify all.jsonl --key node.pem
	is "$status" 0 "$err"
	has "$out" 'valid and complete'
	atoll -H "$url" receipt show "$id"
	echo "$out" >one.json
	verify one.json --key node.pem
	is "$status" 0 "$err"
	last=$(jq .receipt.number one.json)
	sed "$((last - 1))d" all.jsonl >gap.jsonl
	verify gap.jsonl --key node.pem
	is "$status" 1
	has "$err" "receipt $((last - 1)) is missing"
	sed "$last s/\"status\":0/\"status\":1/" all.jsonl >changed.jsonl
	verify changed.jsonl --key node.pem
	is "$status" 1
	has "$err" "receipt $last: the signature does not match"
	sed "$last s/\"status\":0/\"status\":0,\"status\":0/" all.jsonl >twice.jsonl
	verify twice.jsonl --key node.pem
	has "$err" 'duplicate'
	atoll -H "$url" receipt export --from "$last" part.jsonl
	is "$(wc -l <part.jsonl)" 1
	verify missing.jsonl --key node.pem
	is "$status" 1
	: >empty.jsonl
	verify empty.jsonl --key node.pem
	has "$err" 'no receipts'
	verify all.jsonl --key all.jsonl
	has "$err" 'atoll receipt key'
}

a_server_killed_while_runs_end_leaves_a_chain_without_gaps() {
	export ATOLL_KEY="$key"
	for round in 1 2; do
		for i in 1 2 3 4 5 6; do
			curl -sS --max-time 60 -o /dev/null -H "X-API-Key: $key" -H 'Content-Type: application/json' \
				--data '{"command":"true"}' "$url/v1/run" 2>/dev/null &
		done
		soon server_runs
		kill -9 "$(server_pid)"
		wait
	done
	soon curl -fsS -o /dev/null -H "X-API-Key: $key" "$url/v1/who"
	ran '{"command":"true"}'
	api GET /v1/runs
	atoll -H "$url" receipt export all.jsonl
	is "$status" 0 "$err"
	verify all.jsonl --key "$state/receipts.pub"
	is "$status" 0 "$err"
	is "$(jq .receipt.number all.jsonl | head -1) $(jq .receipt.run all.jsonl | sort | uniq -d | wc -l)" '1 0'
}

another_team_gets_links_without_content() {
	api PUT /v1/teams/red '{}'
	owner=$key key=$("$ATOLL" key new red --team red --state "$state" --quiet)
	ran '{"command":"true"}'
	api GET "/v1/runs/$id/receipt"
	is "$code" 200 "$body"
	mine=$(get .receipt.number)
	api GET "/v1/receipts?from=$((mine - 1))"
	is "$(get '.items[0] | keys | join(" ")')" 'hash number previous signature' "$body"
	is "$(get '.items[0].hash == .items[1].receipt.previous')" true
	ATOLL_KEY=$key "$ATOLL" -H "$url" receipt export all.jsonl
	verify all.jsonl --key "$state/receipts.pub"
	has "$out" 'links without content' "$err"
	key=$owner
	api GET '/v1/receipts?limit=1'
	is "$(get '.items[0].receipt.number')" 1
	api GET "/v1/receipts?limit=1&after=$(get .next)"
	is "$(get '.items[0].receipt.number')" 2
	api GET '/v1/receipts?after=x'
	is "$code" 400 "$body"
	api GET '/v1/receipts?from=0'
	is "$code" 400
	api GET /v1/receipts/key
	is "$code" 200
}

an_identical_hermetic_run_gets_the_answer_of_the_first_one() {
	body_of() { jq -nc --arg code "$1" '{language:"python",code:$code,hermetic:true,reuse:true}'; }
	code_of='import os, sys; print(os.urandom(8).hex(), hash("a"), os.environ["SOURCE_DATE_EPOCH"]); sys.exit(3)'
	ran "$(body_of "$code_of")"
	is "$(get '.reused // "new"')" new "$body"
	first=$(get .stdout) run=$id
	has "$first" ' 315532800'
	ran "$(body_of "$code_of")"
	is "$(get .stdout)" "$first"
	is "$(get '[.reused.run, .status, .id] | join(" ")')" "$run 3 $run"
	is "$(get '.reused.age_ms >= 0')" true
	number=$(get .reused.receipt)
	api GET "/v1/runs/$run/receipt"
	is "$(get .receipt.number)" "$number"
	# As events.
	api POST /v1/run "$(body_of "$code_of")" -H 'Accept: application/x-ndjson'
	has "$body" '"type":"stdout"'
	has "$body" "$(echo "$first" | cut -d ' ' -f 1)"
	has "$body" '"reused":'
	# Another input, and seeds that do not change.
	ran "$(body_of "$code_of#")"
	is "$(get '.reused // "new"')" new
	is "$(get .stdout | cut -d ' ' -f 2)" "$(echo "$first" | cut -d ' ' -f 2)"
	# Without reuse it runs.
	ran "$(body_of "$code_of" | jq -c 'del(.reuse)')"
	is "$(get '.reused // "new"')" new
	api POST /v1/run '{"command":"true","reuse":true}'
	is "$code" 400 "$body"
	api POST /v1/run '{"command":"true","hermetic":true,"network":{"allow":["example.org"]}}'
	is "$code" 400 "$body"
	# A killed run is not stored.
	for i in 1 2; do
		ran '{"command":"kill -9 $$","hermetic":true,"reuse":true}'
		is "$(get '.reused // "new"')" new
	done
	owner=$key key=$("$ATOLL" key new blue --team red --state "$state" --quiet)
	ran "$(body_of "$code_of")"
	is "$(get '.reused // "new"')" new 'the answer of another team'
	key=$owner
	api GET '/v1/audit?action=exec.reuse'
	is "$(get '.items[0].subject')" "$run" "$body"
}

a_hermetic_run_of_the_command_line_is_reused() {
	export ATOLL_KEY="$key" ATOLL_HOST="$url"
	echo 'import os, sys; print(os.urandom(8).hex(), sys.argv[1:], open(sys.argv[1]).read(), sys.stdin.read())' >x.py
	echo data >d.txt
	echo in | "$ATOLL" run --hermetic --reuse x.py d.txt >first 2>err || fail "$(cat err)"
	has "$(cat first)" "['d.txt'] data"
	echo in | "$ATOLL" run --hermetic --reuse x.py d.txt >second 2>err
	is "$(cat second)" "$(cat first)" "$(cat err)"
	has "$(cat err)" 'receipt'
	echo other >d.txt
	echo in | "$ATOLL" run --hermetic --reuse x.py d.txt >third 2>err
	lacks "$(cat err)" 'receipt'
	atoll run --reuse x.py
	is "$status" 2
	atoll run --hermetic -w . x.py
	is "$status" 2 "$err"
}

a_link_shows_one_run_until_it_is_withdrawn() {
	ran '{"language":"bash","code":"exit 4"}'
	api POST "/v1/runs/$id/shares" '{"expires_ms":60000}'
	is "$code" 201 "$body"
	link=$(get .url) share=$(get .id) token=$(get .token)
	is "$link" "$url/v1/shared/runs/$token"
	is "${#token}" 64
	api GET "/v1/runs/$id/shares"
	is "$(get '.items[0].id')" "$share"
	lacks "$body" "$token"
	owner=$key key=
	api GET "/v1/shared/runs/$token"
	is "$code $(get .run.id) $(get .run.status) $(get '.run.request // "none"')" "200 $id 4 none" "$body"
	api GET "/v1/runs/$id"
	is "$code" 401
	api DELETE "/v1/shared/runs/$token"
	is "$code" 401 "$body"
	key=$viewer
	api POST "/v1/runs/$id/shares" '{}'
	is "$code" 403
	key=$owner
	api POST "/v1/runs/$id/shares" '{"expires_ms":1}'
	is "$code" 400
	api POST /v1/runs/aaaaaaaaaaaa/shares '{}'
	is "$code" 404
	api DELETE "/v1/runs/$id/shares/$share"
	is "$code" 204
	api GET "/v1/shared/runs/$token"
	is "$code" 404
	api DELETE "/v1/runs/$id/shares/$share"
	is "$code" 404
	api GET '/v1/audit?action=share.delete'
	is "$(get '[.items[] | select(.result == "ok")][0].subject')" "$share" "$body"
	api GET '/v1/audit?action=share.create'
	is "$(get '[.items[] | select(.result == "ok")][0].detail.run')" "$id" "$body"
	lacks "$body" "$token"
	! grep -rlaF "$token" "$state" || fail 'the token is stored'
}

a_support_bundle_has_no_secrets() {
	api PUT /v1/secrets/PLANTED '{"value":"planted secret value"}'
	ran '{"command":"echo planted output"}'
	cat >config.toml <<-END
		key = "$key"
		[packages]
		pip_index = "https://pypi.example.org/simple"
		[trace]
		endpoint = "http://127.0.0.1:9/v1/traces"
		headers = ["Authorization: Bearer planted-bearer", "X-Api-Key: planted-header"]
	END
	echo 'msg="GET /x?token=planted-token&y=1" sk-ant-planted0123456789abcdef https://planted-user:planted-pass@host/' >>"$work/serve.log"
	export ATOLL_KEY="$key"
	atoll -H "$url" support-bundle bundle.tar --config "$PWD/config.toml" --state "$state"
	is "$status" 0 "$err"
	is "$(stat -c %a bundle.tar)" 600
	mkdir unpacked
	tar -xf bundle.tar -C unpacked
	is "$(cd unpacked && echo *)" 'doctor.json info.json log.txt manifest.json metrics.txt schema.txt settings.json version.json'
	grep -q '^atoll_' unpacked/metrics.txt || fail "$(head -c 300 unpacked/metrics.txt)"
	grep -q 'serving on' unpacked/log.txt || fail "$(head -c 300 unpacked/log.txt)"
	grep -q 'rows of runs: [1-9]' unpacked/schema.txt || fail "$(cat unpacked/schema.txt)"
	jq -e . unpacked/doctor.json >/dev/null
	grep -q 'pypi.example.org/simple' unpacked/settings.json || fail "$(cat unpacked/settings.json)"
	! grep -rlaE 'planted|secret value' bundle.tar unpacked || fail "$(grep -rahE 'planted|secret value' unpacked | head -3)"
	! grep -rlaF -e "$key" -e "$viewer" -e "$(cat "$state/secrets.key")" bundle.tar unpacked || fail 'a key is in it'
	api DELETE /v1/secrets/PLANTED
	# Without a daemon, and with settings that are wrong.
	echo 'nonsense = 1' >wrong.toml
	atoll -H unix:"$work/none.sock" support-bundle none.tar --config "$PWD/wrong.toml"
	is "$status" 0 "$err"
	has "$(tar -xOf none.tar metrics.txt)" 'no answer'
	has "$(tar -xOf none.tar settings.json)" nonsense
}

# The last test: it ends the daemon and starts another one.
a_backup_of_a_running_daemon_is_restored() {
	export ATOLL_KEY="$key"
	api PUT /v1/secrets/KEPT '{"value":"secret-value-1"}'
	api POST /v1/volumes '{"name":"data","bytes":16777216}'
	is "$code" 201 "$body"
	new_box '{"volumes":[{"name":"data","path":"/data"}],"secrets":[{"name":"KEPT"}]}'
	api POST "/v1/boxes/$box/execs" '{"command":"echo kept > /data/file; echo kept > ~/file; sync"}'
	api POST /v1/snapshots "{\"box\":\"$box\",\"name\":\"saved\"}"
	is "$code" 201 "$body"
	api POST /v1/snapshots "{\"box\":\"$box\",\"name\":\"quick\",\"packed\":false}"
	is "$code $(get .packed)" "201 false" "$body"
	atoll backup used.tar --state "$state"
	is "$status" 0 "$err"
	has "$err" 'not in the backup: volumes/'
	api DELETE "/v1/boxes/$box"
	ran '{"command":"true"}'
	atoll backup good.tar --state "$state"
	is "$status" 0 "$err"
	lacks "$err" 'not in the backup'
	is "$(stat -c %a good.tar) $(find . -name '*.part*' | wc -l)" '600 0'
	mkdir small
	mount -t tmpfs -o size=200k none small
	atoll backup small/full.tar --state "$state"
	left=$(ls -A small)
	umount small
	is "$status $left" '1 ' "$err"
	has "$err" 'disk is full'
	api GET /v1/runs
	atoll -H "$url" receipt export before.jsonl
	# Another state of everything.
	api DELETE /v1/secrets/KEPT
	api DELETE /v1/snapshots/saved
	api DELETE /v1/snapshots/quick
	api DELETE /v1/volumes/data
	is "$code" 204 "$body"
	ran '{"command":"true"}'
	"$ATOLL" key new later --state "$state" --quiet >later
	atoll restore good.tar --state "$state" --force
	is "$status" 1
	has "$err" 'a daemon uses'
	supervisor=$(cat "$work/supervisor")
	kill "$supervisor"
	soon daemon_left
	atoll restore good.tar --state "$state"
	has "$err" 'has the state of a daemon already'
	head -c 300000 good.tar >cut.tar
	atoll restore cut.tar --state "$state" --force
	has "$err" 'the archive was cut'
	{ head -c 100000 good.tar; printf X; tail -c +100002 good.tar; } >changed.tar
	atoll restore changed.tar --state "$state" --force
	has "$err" 'was changed'
	is "$("$ATOLL" key ls --state "$state" -q | grep -c later)" 1
	atoll restore good.tar --state "$state" --force
	is "$status" 0 "$err"
	has "$out" 'what they replaced is in'
	start_daemon
	is "$("$ATOLL" key ls --state "$state" -q | grep -c later)" 0
	new_box '{"volumes":[{"name":"data","path":"/data"}],"secrets":[{"name":"KEPT"}],"snapshot":"saved"}'
	api POST "/v1/boxes/$box/execs" '{"command":"cat /data/file ~/file; printf %s $KEPT | md5sum"}'
	is "$(get .stdout)" "kept
kept
$(printf secret-value-1 | md5sum)" "$body"
	api DELETE "/v1/boxes/$box"
	new_box '{"snapshot":"quick"}'
	api POST "/v1/boxes/$box/execs" '{"command":"cat ~/file"}'
	is "$(get .stdout)" kept "$body"
	api DELETE "/v1/boxes/$box"
	atoll -H "$url" receipt export after.jsonl
	is "$(head -n "$(wc -l <before.jsonl)" after.jsonl | cmp - before.jsonl && echo same)" same
	verify after.jsonl --key "$state/receipts.pub"
	is "$status" 0 "$err"
}

run_daemon_tests
