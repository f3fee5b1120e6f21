#!/bin/sh
# figures.sh - figures of the server: OpenMetrics, GET /v1/stats, the stored history, `atoll stats`, and the files of
# deploy/, which may name only series that exist; spans, sent to a collector that checks them.
. "$(dirname "$0")/daemon.lib"
. "$libs/otlp.lib"

top=$(cd "$libs/../.." && pwd)
metric() { sed -n "s/^atoll_$1 //p" body; } # of the last body
counted() { api GET /metrics && [ "$(metric "$1")" -ge "$2" ]; }

executions_are_counted_by_language_and_outcome() {
	api POST /v1/run '{"language":"python","code":"print(1)"}'
	api POST /v1/run '{"language":"python","code":"raise SystemExit(1)"}'
	api POST /v1/run '{"command":"sleep 60","timeout_ms":100}'
	soon counted 'executions_total{language="python",outcome="ok"}' 1
	soon counted 'executions_total{language="python",outcome="error"}' 1
	soon counted 'executions_total{language="none",outcome="timeout"}' 1
	promtool check metrics <body >promtool.out 2>&1 || fail "$(cat promtool.out)"
	started=$(sed -n 's/^atoll_box_starts_total{.*} //p' body | paste -sd + | bc)
	[ "$started" -ge 3 ] || fail "$started boxes were started"
}

openmetrics_is_valid_and_has_runs_as_exemplars() {
	api POST /v1/run '{"command":"true"}'
	run=$(get .id)
	has_run() {
		curl -sS -o om -D head -H "X-API-Key: $key" -H 'Accept: application/openmetrics-text' "$url/metrics" &&
			grep -q "run_id=\"$run\"" om
	}
	soon has_run
	grep -qi '^content-type: application/openmetrics-text; version=1.0.0' head || fail "$(cat head)"
	is "$(tail -n 1 om)" '# EOF'
	cat >read.py <<-'end'
		import sys
		from prometheus_client.openmetrics.parser import text_string_to_metric_families as read
		families = {f.name: f for f in read(open(sys.argv[1]).read())}
		assert families["atoll_run_seconds"].unit == "seconds"
		assert any(s.exemplar for s in families["atoll_run_seconds"].samples)
		assert families["atoll_executions"].type == "counter"
	end
	if /usr/bin/python3 -c 'import prometheus_client' 2>/dev/null; then
		/usr/bin/python3 read.py om >read.out 2>&1 || fail "$(cat read.out)"
	fi
}

hostile_names_add_no_series() {
	api GET /metrics
	before=$(wc -l <body)
	for i in 1 2 3; do
		api POST /v1/run "{\"language\":\"x$i\\\\\\\"\\n\",\"code\":\"1\"}"
		is "$code" 400
	done
	api GET /metrics
	is "$(wc -l <body)" "$before"
}

stats_and_the_command_line_show_the_same_figures() {
	api POST /v1/run '{"command":"true"}'
	soon counted 'executions_total{language="none",outcome="ok"}' 1
	api GET '/v1/stats?figures=true'
	is "$(get '.figures[] | select(.name == "executions_total") | .type')" counter
	[ "$(get '[.figures[] | select(.name == "executions_total") | .series[].value] | add')" -ge 1 ] || fail "$body"
	[ "$(get '.figures[] | select(.name == "run_seconds") | .series[0].count')" -ge 1 ] || fail "$body"
	"$ATOLL" stats --figures >out 2>&1 || fail "$(cat out)"
	grep -q '^executions_total  *language=none outcome=ok  *[1-9]' out || fail "$(head -5 out)"
}

series_reject_what_does_not_exist() {
	api GET '/v1/stats/series?metric=nosuch'
	is "$code" 404
	has "$(get .error.message)" "no figure 'nosuch'"
	for query in 'metric=boxes&by=language' 'metric=boxes&where=a=b' 'metric=boxes&step=61' 'metric=boxes&from=1m&to=1h' \
		'metric=boxes&from=300d&step=60' 'metric=boxes&step=0' 'metric=boxes&from=yesterday' 'from=1h'; do
		api GET "/v1/stats/series?$query"
		is "$code" 400 "$query: $body"
	done
	api PUT /v1/teams/nosy '{}'
	api POST /v1/keys '{"name":"v","role":"viewer","team":"nosy"}'
	is "$(curl -sS -o body -w '%{http_code}' -H "X-API-Key: $(get .key)" "$url/v1/stats/series?metric=boxes")" 403
}

# ---- traces ----

trace=0af7651916cd43dd8448eb211c80319
# traced DIGIT PATH BODY: a request whose client sends a traceparent; the trace ends with DIGIT.
traced() {
	curl -sS -o body -H "X-API-Key: $key" -H "traceparent: 00-$trace$1-b7ad6b7169203331-01" -d "$3" "$url$2"
	body=$(cat body)
}

spans_of_a_run_are_sent_to_the_collector() {
	traced 1 /v1/run '{"language":"python","code":"import os; print(os.environ[\"TRACEPARENT\"], end=\"\")"}'
	soon span_names "${trace}1" 'POST /v1/run,box create,box create: keeper,box create: network,box create: row,box create: secrets,exec'
	spans_are_valid
	is "$(spans "${trace}1" 'map(select(.name == "POST /v1/run"))[0] | [.parentSpanId, .kind, .attributes["http.response.status_code"]]')" \
		'["b7ad6b7169203331",2,200]'
	request=$(spans "${trace}1" 'map(select(.name == "POST /v1/run"))[0].spanId')
	exec=$(spans "${trace}1" 'map(select(.name == "exec"))[0].spanId')
	is "$(spans "${trace}1" 'map(select(.name == "exec" or .name == "box create").parentSpanId) | unique')" "[$request]"
	is "$(spans "${trace}1" 'map(select(.name == "exec"))[0].attributes | [."atoll.run", ."atoll.language", ."process.exit.code"]')" \
		"[\"$(get .id)\",\"python\",0]"
	is "$(get .stdout)" "00-${trace}1-$(echo "$exec" | tr -d '"')-01"
}

a_program_that_fails_has_a_failed_span() {
	traced 2 /v1/run '{"command":"exit 3"}'
	ended() { [ "$(spans "${trace}2" 'map(select(.name == "exec"))[0] | [.status.code, .attributes["process.exit.code"]]')" = '[2,3]' ]; }
	soon ended
	spans_are_valid
}

a_pipeline_has_a_span_for_each_stage() {
	traced 7 /v1/pipelines '{"task":"run it","files":{"main.py":"print(1)\n"}}'
	soon span_names "${trace}7" 'POST /v1/pipelines,pipeline,pipeline coder,pipeline executor,pipeline planner'
	spans_are_valid
	whole=$(spans "${trace}7" 'map(select(.name == "pipeline"))[0].spanId')
	is "$(spans "${trace}7" 'map(select(.name | startswith("pipeline ")).parentSpanId) | unique')" "[$whole]"
}

a_trace_that_its_client_does_not_sample_is_only_passed_on() {
	parent=00-${trace}3-b7ad6b7169203331-00
	curl -sS -o body -H "X-API-Key: $key" -H "traceparent: $parent" -d '{"command":"printenv TRACEPARENT"}' "$url/v1/run"
	is "$(jq -r .stdout body)" "$parent"
	curl -sS -o body -H "X-API-Key: $key" -H "traceparent: $parent" -d '{"command":"printenv TRACEPARENT","env":{"TRACEPARENT":"own"}}' "$url/v1/run"
	is "$(jq -r .stdout body)" own
	curl -sS -o body -H "X-API-Key: $key" -H 'traceparent: 00-nonsense' -d '{"command":"printenv TRACEPARENT || echo none"}' "$url/v1/run"
	is "$(jq -r .stdout body)" none # trace.sample is 0 here
	traced 4 /v1/run '{"command":"true"}'
	arrived() { [ "$(spans "${trace}4" length)" -ge 5 ]; }
	soon arrived
	is "$(spans "${trace}3" length)" 0
}

a_collector_that_refuses_costs_only_a_counter() {
	touch "$otlp/refuse"
	traced 5 /v1/run '{"command":"true"}'
	is "$(get .exit_code)" 0
	soon counted 'trace_spans_total{result="failed"}' 1
	stop_collector
	traced 6 /v1/run '{"command":"true"}'
	is "$(get .exit_code)" 0
	spans_are_valid
}

# named FILE...: the figures that these files name, without the suffixes of histograms.
named() { grep -ho '\batoll_[a-z_]*' "$@" | sed 's/_\(bucket\|count\|sum\)$//' | sort -u; }

deployed_rules_and_dashboards_are_valid() {
	promtool check rules "$top/deploy/prometheus/rules.yml" >out 2>&1 || fail "$(cat out)"
	promtool check config --syntax-only "$top/deploy/prometheus/prometheus.yml" >out 2>&1 || fail "$(cat out)"
	jq -e '.panels | length > 10' "$top/deploy/grafana/atoll.json" >/dev/null || fail "no panels"
	# Each query of the dashboard as a rule, with its variables replaced.
	jq '{groups: [{name: "panels", rules: [.panels[].targets[].expr
		| gsub("\\$__rate_interval"; "5m") | gsub("\\$(job|instance)"; ".*")]
		| to_entries | map({record: "panel:\(.key)", expr: .value})}]}' "$top/deploy/grafana/atoll.json" >panels.json
	promtool check rules panels.json >out 2>&1 || fail "$(cat out)"
}

deployed_files_name_only_series_that_exist() {
	api GET /metrics
	cp body all
	api GET '/v1/stats?figures=true' # also those of models, which have values once a model was used
	get '.figures[] | select(.name | startswith("model_")) | "# TYPE atoll_\(.name) \(.type)"' >>all
	for name in $(named "$top"/deploy/prometheus/*.yml "$top"/deploy/grafana/*.json); do
		grep -q "^# TYPE $name " all || fail "no series $name in /metrics"
	done
	[ "$(named "$top"/deploy/*/*.* | wc -l)" -gt 30 ] || fail "too few names were found"
}

# The last one: it starts another daemon, at another address.
series_survive_a_restart() {
	api POST /v1/run '{"command":"true"}'
	soon counted 'executions_total{language="none",outcome="ok"}' 1
	stop_daemon
	start_daemon
	api GET '/v1/stats/series?metric=executions_total&by=outcome&where=language=none&from=1h'
	is "$code" 200 "$body"
	is "$(get .step_s)" 60
	[ "$(get '[.items[] | select(.labels.outcome == "ok") | .points[].value] | add')" -ge 1 ] || fail "$body"
	api GET '/v1/stats/series?metric=atoll_run_seconds&from=7d'
	[ "$(get '.items[0].points[-1].count')" -ge 1 ] || fail "$body"
	[ "$(get .step_s)" = 3600 ] || fail "$body"
	"$ATOLL" stats --metric executions_total --by outcome >out 2>&1 || fail "$(cat out)"
	grep -q 'outcome=ok' out || fail "$(cat out)"
}

start_collector 0
trap 'stop_collector; finish_daemon' EXIT
run_daemon_tests
