#!/bin/sh
# models.sh - the LLM process, against a server that misbehaves on purpose (faults.py): retries, counters, and
# which process has the key.
. "$(dirname "$0")/daemon.lib"
. "$libs/otlp.lib"

here=$(dirname "$0")
secret=sk-only-the-model-process-knows-4711
hidden=sk-from-the-environment-0815
export HIDDEN_KEY=$hidden

# serve_faults NAME [CERT KEY]: sets port.
serve_faults() {
	name=$1
	shift
	python3 "$here/faults.py" "$work/$name.port" "$@" 2>"$work/$name.log" &
	echo $! >>"$work/faults"
	soon test -s "$work/$name.port"
	port=$(cat "$work/$name.port")
}
certificates() {
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=test-ca -keyout "$work/ca.key" -out "$work/ca.pem" \
		-addext basicConstraints=critical,CA:TRUE 2>/dev/null
	openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=localhost -keyout "$work/tls.key" -out "$work/tls.csr" 2>/dev/null
	printf 'subjectAltName=DNS:localhost\n' >"$work/ext"
	openssl x509 -req -in "$work/tls.csr" -CA "$work/ca.pem" -CAkey "$work/ca.key" -CAcreateserial -days 2 \
		-extfile "$work/ext" -out "$work/tls.pem" 2>/dev/null
}

# A provider for each fault: a provider that is skipped after failures must not hide another fault.
faults="ok drip silence nothing pings endless huge line reset error200 invalid200 client500 storm once429 later denied \
quota noretry empty cut garbage redirect length lingers wait"
model() { # ID NAME PROVIDER
	printf '[model.%s]\nprovider = "%s"\nname = "%s"\nprice = { in = 1, out = 10, cache_read = 0.1 }\n' "$1" "$3" "$2"
}
provider() { # NAME BASE MORE
	printf '[provider.%s]\ndialect = "chat"\nbase = "%s"\nconnect = "5s"\nsilence = "%s"\n%s\n' "$1" "$2" "${4:-8s}" "$3"
}
write_models() {
	for f in $faults; do
		case $f in endless | huge | line) port=$loud_port ;; *) port=$plain_port ;; esac
		case $f in silence | nothing) patience=400ms ;; drip) patience=1s ;; *) patience= ;; esac
		provider "$f" "http://localhost:$port/v1" "key = \"$secret\"" $patience
		model "$f" "$f" "$f"
	done
	provider tls "https://localhost:$tls_port/v1" "key_env = \"HIDDEN_KEY\"
ca_file = \"$work/ca.pem\""
	provider stranger "https://localhost:$tls_port/v1" ""
	provider closed "http://127.0.0.1:9/v1" "retries = 0"
	model tls ok-tls tls
	model stranger ok-stranger stranger
	model closed x closed
	printf '[role]\nagent = ["ok"]\ndebugger = ["ok", "length"]\n'
}

certificates
serve_faults plain
plain_port=$port
serve_faults loud # providers that send many bytes must not delay the others
loud_port=$port
serve_faults tls "$work/tls.pem" "$work/tls.key"
tls_port=$port
write_models >"$work/models.toml"
chmod 600 "$work/models.toml"
export ATOLL_MODELS="$work/models.toml" ATOLL_LOG_LEVEL=debug
finish_faults() {
	while read -r pid; do kill "$pid" 2>/dev/null; done <"$work/faults"
	finish_daemon
}
trap finish_faults EXIT

model_pid() { pgrep -P "$(cat "$work/supervisor")" -x atoll-llm | tail -1; }
server_pid() { pgrep -P "$(cat "$work/supervisor")" -x atoll-server | tail -1; }
ask() { api POST /v1/models/ask "$(jq -nc --arg m "$1" '{text:"6*7?", model:$m} + ($ARGS.named.more // {} )' --argjson more "${2:-{\}}")"; }
asked() { curl -sS "http://127.0.0.1:$plain_port/count/$1" | jq -r .asked; }

# tokens: of calls of models, that were charged
tokens() {
	api GET '/v1/usage?by=tag'
	get '[.items[] | select(.value == "(model)") | .usage.tokens_in + .usage.tokens_out] | add // 0'
}

the_tokens_of_a_completion_are_charged() {
	before=$(tokens)
	api POST /v1/models/ask '{"text":"6*7?","role":"agent"}'
	is "$code" 200 "$body"
	is "$(($(tokens) - before))" 50
}

a_completion_is_answered_with_its_cost() {
	api GET /v1/models
	is "$(get '.roles.debugger | join(",")')" ok,length "$body"
	lacks "$body" "$secret"
	lacks "$body" localhost
	api POST /v1/models/ask '{"text":"6*7?","role":"agent","system":["Be brief."]}'
	is "$code" 200 "$body"
	is "$(get '[.text, .stop, .model, .provider, .tries, .usage.in, .usage.cache_read, .usage.out] | @csv')" \
		'"fourty-two","end","ok","ok",1,40,60,10'
	is "$(get '.usage.cost * 1000000 | round')" 146
	has "$(get .why)" 'role agent, level 0: ok'
	curl -sS "http://127.0.0.1:$plain_port/count/ok" >count
	is "$(jq -r '.body.path, .body.body.messages[0].content' <count)" "/v1/chat/completions
Be brief."
	has "$(cat count)" "Authorization: Bearer $secret"
}

atoll_model_ask_prints_a_completion() {
	export ATOLL_KEY="$key"
	atoll -H "$url" model ask '6*7?' --role agent
	is "$status" 0 "$(cat err)"
	is "$(cat out)" fourty-two
	has "$(cat err)" 'tokens 100 in (60 cached) 10 out'
	atoll -H "$url" model ls
	has "$(cat out)" 'agent debugger'
	atoll -H "$url" model ask x --model nosuch
	has "$(cat err)" "there is no model 'nosuch'"
	echo '6*7?' | "$ATOLL" -H "$url" model ask - --json >out 2>err
	is "$(jq -r .text <out)" fourty-two
}

# model, HTTP status, category, tries, retriable, what the message has
each_provider_fault_has_its_status_category_and_retries() {
	cat >want <<-'END'
		drip 200 - 1 - -
		lingers 200 - 1 - -
		once429 200 - 2 - -
		error200 200 - 2 - -
		length 200 - 1 - -
		silence 504 timeout 3 true silent
		nothing 504 timeout 3 true silent
		endless 422 too_large 1 false more
		huge 422 too_large 1 false more
		line 422 too_large 1 false more
		reset 502 network 3 true peer
		invalid200 422 invalid 1 false thing
		client500 502 broken 2 false required
		storm 503 rate 3 true slow
		later 503 rate 1 true tomorrow
		denied 502 auth 1 false wrong
		quota 503 rate 1 false money
		noretry 503 overload 1 false down
		empty 502 broken 3 true empty
		cut 502 broken 3 true early
		garbage 502 broken 3 true JSON
		redirect 502 broken 1 false 302
		tls 200 - 1 - -
		stranger 502 auth 1 false certificate
		closed 502 network 1 true connect
	END
	while read -r m _; do
		curl -sS --max-time 120 -o "$m.body" -w '%{http_code}' -H "X-API-Key: $key" -H 'Content-Type: application/json' \
			--data-binary "{\"text\":\"x\",\"model\":\"$m\"}" "$url/v1/models/ask" >"$m.code" &
	done <want
	wait
	while read -r m http category tries again words; do
		is "$(cat "$m.code")" "$http" "$m: $(cat "$m.body")"
		if [ "$http" = 200 ]; then
			is "$(jq -r .tries "$m.body")" "$tries" "$m"
			continue
		fi
		is "$(jq -r '.answer | [.error.category, .tries, .error.retriable] | join(" ")' "$m.body")" "$category $tries $again" "$m: $(cat "$m.body")"
		has "$(jq -r .answer.error.message "$m.body")" "$words"
	done <want
	is "$(jq -r '.text' drip.body)" slow
	is "$(jq -r '.stop + .text' length.body)" 'length{"a": [1, 2'
	is "$(asked silence) $(asked denied) $(asked client500)" '3 1 2'
	# Tokens that were paid are counted, also when the completion failed.
	is "$(jq -r '.answer.usage | [.calls, .out > 0, .estimated] | join(" ")' endless.body)" '1 true true'
	is "$(jq -r '.answer.usage.calls' cut.body)" 3
	is "$(jq -r '.usage.calls' error200.body)" 2
}

a_provider_that_fails_repeatedly_is_skipped_for_a_while() {
	ask empty
	ask empty
	is "$(get '.answer.error.category')" unavailable "$body"
	before=$(asked empty)
	ask empty
	is "$code" 503
	has "$(get '.answer.error.message')" 'left alone'
	is "$(asked empty)" "$before"
	is "$(get '.answer.error.retry_after_ms > 0')" true
}

keepalives_of_a_provider_do_not_extend_the_deadline() {
	ask pings '{"deadline_ms":700}'
	is "$code" 504 "$body"
	has "$(get .answer.error.message)" 'no answer within 700 ms'
}

a_client_disconnect_cancels_the_completion_and_is_counted() {
	curl -sS --max-time 120 -o /dev/null -H "X-API-Key: $key" -H 'Content-Type: application/json' \
		--data-binary '{"text":"x","model":"wait"}' "$url/v1/models/ask" 2>/dev/null &
	client=$!
	begun() { [ "$(asked wait)" = 1 ]; }
	soon begun
	kill $client
	counted() { api GET /v1/models && [ "$(get '.usage.wait | [.asked, .failed, .calls] | join(" ")')" = '1 1 1' ]; }
	soon counted
}

completions_are_counted_in_metrics() {
	api GET /metrics
	has "$body" 'atoll_model_questions_total{model="ok"}'
	has "$body" 'atoll_model_tokens_total{model="ok",kind="cache_read"}'
	has "$body" 'atoll_model_cache_ratio{model="ok"} 0.6'
	has "$body" 'atoll_model_cost_total{model="ok"}'
	if command -v promtool >/dev/null; then
		promtool check metrics <body >promtool 2>&1 || fail "$(cat promtool)"
	fi
}

provider_keys_are_in_the_llm_process_only() {
	! grep -q __asan_init "/proc/$(model_pid)/exe" || skip "a sanitizer keeps what was freed, and the environment"
	cat >scan.py <<-'END'
		import sys
		found = set()
		for line in open("/proc/%s/maps" % sys.argv[1]):
		    where, how = line.split()[:2]
		    if "r" not in how or "[v" in line:
		        continue
		    a, b = (int(x, 16) for x in where.split("-"))
		    if b - a > 1 << 32: # shadows of a sanitizer: no text is there
		        continue
		    for at in range(a, b, 1 << 24): # a little more than that, for what lies across
		        try:
		            with open("/proc/%s/mem" % sys.argv[1], "rb", 0) as m:
		                m.seek(at)
		                text = m.read(min(b - at, (1 << 24) + 100))
		        except (OSError, OverflowError):
		            continue
		        found |= {k for k in sys.argv[2:] if k[1:].encode() in text and k.encode() in text}
		print(len(found))
	END
	is "$(python3 scan.py "$(model_pid)" "$secret" "$hidden")" 2
	is "$(python3 scan.py "$(server_pid)" "$secret" "$hidden")" 0
	is "$(python3 scan.py "$(cat "$work/supervisor")" "$secret")" 0
	lacks "$(tr '\0' '\n' <"/proc/$(server_pid)/environ")" "$hidden"
	lacks "$(cat "$work/serve.log")" "$secret"
	lacks "$(cat "$work/serve.log")" "$hidden"
	atoll doctor
	lacks "$(cat out err)" "$secret"
}

the_llm_process_is_unprivileged_and_cannot_start_programs() {
	pid=$(model_pid)
	is "$(awk '/^Uid:/ { print $2, $3, $4, $5 }' "/proc/$pid/status")" '64172 64172 64172 64172'
	is "$(awk '/^(Seccomp|NoNewPrivs):/ { print $2 }' "/proc/$pid/status" | sort -u | tr '\n' ' ')" '1 2 '
	is "$(awk '/^CapEff:/ { print $2 }' "/proc/$pid/status")" 0000000000000000
	is "$(find "/proc/$pid/fd" -lname '/*' ! -lname '/dev/*' ! -lname '*serve.*' ! -lname '*/sanitizer.confined' | wc -l)" 0
	is "$(awk '/Max core file size/ { print $5 }' "/proc/$pid/limits")" 0
}

an_llm_process_that_exited_is_replaced_and_its_requests_fail() {
	curl -sS --max-time 120 -o lost.body -w '%{http_code}' -H "X-API-Key: $key" -H 'Content-Type: application/json' \
		--data-binary '{"text":"x","model":"wait"}' "$url/v1/models/ask" >lost.code &
	waiting=$!
	before=$(asked wait) old=$(model_pid)
	begun() { [ "$(asked wait)" -ge 2 ]; }
	soon begun
	kill -9 "$old"
	wait $waiting
	is "$(cat lost.code)" 503
	is "$(jq -r '.answer.error | [.category, .retriable] | join(" ")' lost.body)" 'unavailable true'
	ask ok
	is "$code" 200 "$body"
	[ "$(model_pid)" != "$old" ] || fail "the same process"
}

a_reload_applies_new_models_and_rejects_an_invalid_file() {
	supervisor=$(cat "$work/supervisor") old=$(model_pid)
	cp "$work/models.toml" good.toml
	echo 'x = 1' >>"$work/models.toml"
	kill -HUP "$supervisor"
	soon grep -q "reload refused.*'x' is\|reload refused.*models.toml" "$work/serve.log"
	is "$(model_pid)" "$old"
	ask ok
	is "$code" 200
	# Requests to the old process are answered by it.
	curl -sS --max-time 120 -o slow.body -H "X-API-Key: $key" -H 'Content-Type: application/json' \
		--data-binary '{"text":"x","model":"drip"}' "$url/v1/models/ask" &
	slow=$!
	drips() { [ "$(asked drip)" = 2 ]; }
	soon drips
	sed "s/$secret/sk-another-key-1234/" good.toml >"$work/models.toml"
	kill -HUP "$supervisor"
	other() { [ "$(model_pid)" ] && [ "$(model_pid)" != "$old" ]; }
	soon other
	wait $slow
	is "$(jq -r .text slow.body)" slow
	told() { ask ok && curl -sS "http://127.0.0.1:$plain_port/count/ok" | grep -q sk-another-key-1234; }
	soon told
	cp good.toml "$work/models.toml"
}

a_call_of_a_model_is_a_span_of_its_request() {
	trace=0af7651916cd43dd8448eb211c80319c
	curl -sS -o body -H "X-API-Key: $key" -H "traceparent: 00-$trace-b7ad6b7169203331-01" -d '{"text":"x","model":"ok"}' "$url/v1/models/ask"
	soon span_names "$trace" 'POST /v1/models/ask,model call'
	spans_are_valid
	is "$(spans "$trace" 'map(select(.name == "model call"))[0] | [.kind, .attributes["gen_ai.request.model"]]')" '[3,"ok"]'
	is "$(spans "$trace" 'map(select(.name == "model call"))[0].parentSpanId')" \
		"$(spans "$trace" 'map(select(.name == "POST /v1/models/ask"))[0].spanId')"
}

a_missing_models_file_and_unknown_roles_are_errors() {
	old=$(model_pid)
	mkdir -p other
	ATOLL_RUN=$work/run2 "$ATOLL" serve --listen 127.0.0.1:0 --state "$work/state2" --models "$work/none.toml" >out 2>err && fail "it serves"
	has "$(cat err)" none.toml
	api POST /v1/models/ask '{"role":"agent"}'
	is "$code" 400 "$body"
	has "$body" 'messages is missing'
	api POST /v1/models/ask '{"text":"x","role":"poet"}'
	is "$code" 404 "$body"
	key=$viewer api POST /v1/models/ask '{"text":"x"}'
	is "$code" 403
}

start_collector 0
cat "$otlp/pid" >>"$work/faults"
run_daemon_tests
