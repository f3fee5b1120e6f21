#!/bin/sh
# usage.sh - usage and cost: charges survive kill -9 of the server, and reports equal the sum of the records.
# Rates, arithmetic, bounds and bad input are tested in rates_test.c, usage_test.c and store_usage_test.c.
. "$(dirname "$0")/daemon.lib"

# sum_records FILE...: prints runs, CPU microseconds and cost in 10^-9 of all records with a cost.
cat >"$work/sum.py" <<'EOF'
import json, sys
from decimal import Decimal
runs = cpu = cost = 0
for name in sys.argv[1:]:
    for r in json.load(open(name))['items']:
        if 'cost' in r:
            runs, cpu, cost = runs + 1, cpu + r['usage']['cpu_us'], cost + int(Decimal(r['cost']['amount']) * 10**9)
print(runs, cpu, cost)
EOF
# sum_report FILE: the same of a report by tag, without what boxes used outside of runs.
cat >"$work/report.py" <<'EOF'
import json, sys
from decimal import Decimal
rows = [r for r in json.load(open(sys.argv[1]))['items'] if r['value'] != '(box)']
print(sum(r['runs'] for r in rows), sum(r['usage']['cpu_us'] for r in rows),
      sum(int(Decimal(r['cost']['amount']) * 10**9) for r in rows))
EOF
box_deleted() { api GET "/v1/boxes/$box" && [ "$(get .state)" = deleted ]; }
none_runs() { api GET '/v1/runs?running=1' && [ "$(get '.items | length')" = 0 ]; }
served_again() { api GET /healthz && [ "$code" = 200 ] && [ "$(server_pid)" != "$killed" ]; }
kill_server() {
	supervisor=$(cat "$work/supervisor")
	killed=$(server_pid)
	kill -9 "$killed"
	soon served_again
}

reports_equal_the_records_after_the_server_was_killed() {
	new_box
	for round in 1 2 3; do
		for i in 1 2 3 4; do
			api POST "/v1/boxes/$box/execs" "{\"command\":\"i=0; while [ \$i -lt 3000 ]; do i=\$((i+1)); done; sleep 0.1\",\"background\":true,\"tag\":\"tag$i\"}"
			is "$code" 201 "$body"
		done
		api POST /v1/run '{"language":"python","code":"print(sum(range(100000)))","tag":"once"}'
		is "$code" 200 "$body"
		kill_server
	done
	soon none_runs
	api GET '/v1/runs?limit=1000'
	cp body runs
	api GET '/v1/usage?by=tag'
	is "$code" 200 "$body"
	records=$(/usr/bin/python3 "$work/sum.py" runs)
	is "$(/usr/bin/python3 "$work/report.py" body)" "$records"
	is "${records%% *}" 15
	[ "${records##* }" -gt 0 ] || fail "nothing was charged: $records"
	# The box has what its runs have, and what it used besides.
	api GET "/v1/boxes/$box"
	is "$(get .cost.currency)" EUR
	api DELETE "/v1/boxes/$box"
	soon box_deleted # it is charged for no more memory
	api GET '/v1/usage?by=runtime'
	is "$(get '.items[] | select(.value == "python") | .runs')" 3
	api GET '/v1/usage?by=key'
	is "$(get '[.items[].name] | unique | join(" ")')" tests
	api GET '/v1/usage?by=day'
	is "$(get '.items | length')" 1
	whole=$(get '.total[0].cost.amount')
	for by in team key tag template runtime day month; do
		api GET "/v1/usage?by=$by"
		is "$(get '.total[0].cost.amount')" "$whole"
	done
}

a_record_keeps_the_rates_that_it_was_charged_at() {
	api POST /v1/run '{"command":"true"}'
	is_json "$(get .cost.rates)" '{"cpu_second":"0.5","memory_gib_second":"0.25","disk_gib_day":"1000"}'
	is "$(get .cost.currency)" EUR
}

a_report_is_also_comma_separated() {
	api POST /v1/run '{"command":"true","tag":"csv"}'
	api GET '/v1/usage?by=tag&format=csv'
	has "$(cat head)" 'text/csv'
	has "$body" 'tag,runs,cpu_us,'
	has "$body" 'csv,1,'
	cp body one
	api GET '/v1/usage?by=tag' '' -H 'Accept: text/csv' -G
	cmp -s one body || fail "another answer for Accept: $body"
	atoll usage --by tag --csv
	is "$status" 0 "$err"
	has "$out" 'csv,1,'
	atoll usage --by tag
	has "$out" 'total'
	atoll --json usage --by month
	has "$out" '"by":"month"'
}

a_batch_and_its_records_cost_the_same() {
	printf '%s\n' '{"language":"python","code":"print(1)"}' '{"command":"true"}' >items
	api POST '/v1/batch?record=true' @items -H 'Content-Type: application/x-ndjson'
	is "$code" 200 "$body"
	batch=$(tail -1 body | jq -r .id)
	api GET "/v1/batch/$batch"
	amount=$(get .cost.amount)
	api GET '/v1/runs?limit=1000'
	get "{items: [.items[] | select(.tag == \"batch-$batch\")]}" >records
	has "$(/usr/bin/python3 "$work/sum.py" records)." " $(/usr/bin/python3 -c "from decimal import Decimal; print(int(Decimal('$amount') * 10**9))")."
	api GET '/v1/usage?by=tag'
	is "$(get '.items[] | select(.value == "(batch)") | .runs')" 2
}

a_team_sees_its_own_usage_only() {
	api PUT /v1/teams/red '{}'
	red=$("$ATOLL" key new red --team red --state "$state" --quiet)
	mine=$key key=$red
	api POST /v1/run '{"command":"true"}'
	api GET '/v1/usage?by=team'
	is "$(get '[.items[].value] | join(" ")')" red
	for other in default '*' absent; do
		api GET "/v1/usage?by=tag&team=$other"
		is "$code" 404 "$body"
	done
	key=$mine
	api GET '/v1/usage?by=team'
	is "$(get '[.items[].value] | sort | join(" ")')" 'default red'
	api GET '/v1/usage?by=tag&team=red'
	is "$(get '.total[0].runs')" 1
	for bad in by=color 'by=day&from=2026-02-30' 'by=day&from=yesterday' 'by=day&to=2026-13' 'by=day&from=2026-02-01&to=2026-01-01' \
		'by=day&from=2020-01-01&to=2026-01-01' 'by=day&format=xml'; do
		api GET "/v1/usage?$bad"
		case $code in 400 | 422) ;; *) fail "$bad: $code $body" ;; esac
	done
	api GET '/v1/usage?days=2'
	is "$(get '.days | length')" 2
	is "$(get '.days[0].cost.currency')" EUR
}

# Teams with the plan `small` of c.toml: 3 executions a day, budgets, short times.
small_team() {
	api PUT "/v1/teams/$1" "{\"plan\":\"$2\"}"
	case $code in 200 | 201) ;; *) fail "$body" ;; esac
	own=$("$ATOLL" key new "$1" --team "$1" --state "$state" --quiet)
}
events_of() { # TYPE: how many events of this type the team has
	api GET '/v1/events?limit=1000'
	get "[.items[] | select(.type == \"$1\")] | length"
}
has_event() { [ "$(events_of "$1")" = 1 ]; }

a_team_has_the_quotas_and_limits_of_its_plan() {
	api PUT /v1/teams/plan1 '{"plan":"absent"}'
	is "$code" 422 "$body"
	small_team plan1 small
	api GET /v1/teams/plan1
	is "$(get .plan)" small
	is "$(get .quotas.executions_per_day)" 3
	is "$(get .quotas.boxes)" 256 # of quota.boxes
	api PUT /v1/teams/plan1 '{"executions_per_day":2}'
	is "$(get .plan)" small
	is "$(get .quotas.executions_per_day)" 2
	operator=$key key=$own
	api POST /v1/boxes '{"lifetime_ms":3600000}'
	is "$code" 400 "$body"
	has "$body" 'max_lifetime of the plan'
	api POST /v1/boxes '{"retention_ms":-1}'
	is "$code" 400 "$body"
	has "$body" retention_boxes
	new_box
	is "$(get .lifetime_ms)" 60000
	is "$(get .retention_ms)" 5000
	api DELETE "/v1/boxes/$box"
	api POST /v1/run '{"command":"sleep 60","timeout_ms":50000}'
	is "$(get .cause)" wall
	is "$(get .limits.wall_ms)" 300
	first=$(get .id)
	api POST /v1/run '{"command":"true"}'
	is "$code" 200 "$body"
	api POST /v1/run '{"command":"true"}'
	is "$code" 429 "$body"
	api POST /v1/schedules '{"name":"refused","cron":"once","run":{"command":"true"}}'
	is "$code" 201 "$body"
	refused() { api GET /v1/schedules/refused/ticks && [ "$(get '.items[0] | .state + " " + (.detail | contains("too many executions today") | tostring)')" = 'failed true' ]; }
	soon refused
	gone() { api GET "/v1/runs/$first" && [ "$code" = 404 ]; }
	soon gone # retention_records
	key=$operator
	api GET /v1/audit?limit=1
	is "$code" 200
}

a_spent_budget_refuses_runs_or_only_warns() {
	small_team poor poor
	operator=$key key=$own
	api POST /v1/run '{"command":"true"}'
	is "$code" 200 "$body"
	spent() { api POST /v1/run '{"command":"true"}' && [ "$code" = 402 ]; }
	soon spent
	is "$(get .error.code)" budget
	has "$body" 'the budget of team poor for this day is spent'
	api POST /v1/boxes '{}'
	is "$code" 402 "$body"
	soon has_event budget.exceeded
	supervisor=$(cat "$work/supervisor")
	kill_server
	api POST /v1/run '{"command":"true"}'
	is "$code" 402 "$body" # the next server knows it
	is "$(events_of budget.exceeded)" 1
	is "$(events_of budget.warning)" 0 # it was spent at once
	printf '{"command":"true"}\n' >items
	api POST /v1/batch @items -H 'Content-Type: application/x-ndjson'
	has "$body" 'is spent'
	key=$operator
	api PUT /v1/teams/poor '{"plan":"warned"}'
	key=$own
	api POST /v1/run '{"command":"true"}'
	is "$code" 200 "$body"
	api GET /v1/teams/poor
	is "$(get .budget.day.limit)" 0.000000001
	soon has_event budget.exceeded
}

# one_batch: sets `batch` to a finished one.
one_batch() {
	printf '{"command":"echo out"}\n' >items
	api POST /v1/batch @items -H 'Content-Type: application/x-ndjson'
	is "$code" 200 "$body"
	batch=$(tail -1 body | jq -r .id)
}
answers() { api GET "$1" && [ "$code" = "$2" ]; }

a_plan_says_how_long_results_are_kept() {
	one_batch
	kept=$batch
	small_team brief brief
	operator=$key key=$own
	one_batch
	api POST '/v1/pipelines?wait=1' '{"task":"run it","files":{"main.py":"print(1)\n"}}'
	is "$code" 200 "$body"
	pipeline=$(get .id)
	kill_server # a new server looks for old results at once, then twice a minute
	soon answers "/v1/batch/$batch" 404
	soon answers "/v1/pipelines/$pipeline" 404
	[ ! -e "$state/server/batches/$batch.out" ] || fail "the results of $batch are still there"
	key=$operator
	api GET "/v1/batch/$kept"
	is "$code" 200 "$body"
	[ -e "$state/server/batches/$kept.out" ] || fail "the results of $kept are elsewhere: $(ls "$state/server/batches")"
}

# disk_of BY VALUE: MiB seconds of one row of a report
disk_of() {
	api GET "/v1/usage?by=$1"
	get ".items[] | select(.value == \"$2\") | .usage.disk_mib_s"
}
disk_charged() { [ "$(disk_of team sleepy)" -ge "$least" ]; }

# An hour is shortened by moving the times in the database while no server runs with them.
the_disk_of_a_paused_box_is_charged() {
	command -v sqlite3 >/dev/null || skip "no sqlite3"
	small_team sleepy warned
	operator=$key key=$own
	api POST /v1/boxes '{"limits":{"disk":67108864}}'
	box=$(get .id)
	api POST "/v1/boxes/$box/pause" '{}'
	is "$code" 200 "$body"
	sqlite3 -cmd '.timeout 20000' "$state/server/atoll.db" "UPDATE boxes SET stored_ns = stored_ns - 7200000000000 WHERE id = '$box';
		UPDATE usage_disk SET until_ns = until_ns - 7200000000000" >/dev/null
	kill_server
	least=$((64 * 7200))
	soon disk_charged
	charged=$(disk_of tag '(box)')
	[ "$charged" -lt $((least + 64 * 600)) ] || fail "charged twice: $charged, for at least $least"
	api GET "/v1/boxes/$box"
	is "$(get .state)" paused
	was=$(get '.cost.amount | tonumber')
	has "$(get '.cost.amount | tonumber > 5')" true # 1 for 1 GiB and a day: 1/16 GiB and 1/12 day, times 1000
	api DELETE "/v1/boxes/$box"
	soon box_deleted
	has "$(get ".cost.amount | tonumber >= $was")" true
	whole=$(get .cost.amount)
	api GET '/v1/usage?by=team'
	is "$(get '.total[0].cost.amount')" "$whole" # the team has had only this box
	key=$operator
}

bad_rates_are_rejected_before_the_daemon_starts() {
	for bad in -1 NaN 1000000000000000000000000000000 1e-6 0.0000000000001; do
		ATOLL_RATES_CPU_SECOND=$bad "$ATOLL" config check >said 2>&1 && fail "accepted: $bad"
		has "$(cat said)" ATOLL_RATES_CPU_SECOND
	done
	ATOLL_RATES_CURRENCY=euro "$ATOLL" config check >said 2>&1 && fail "accepted: euro"
	has "$(cat said)" 'three capital letters'
	echo '[rates]
cpu_second = 0.5' >c.toml
	"$ATOLL" config check c.toml >said 2>&1 && fail "accepted: a float"
	has "$(cat said)" 'a decimal number in quotes'
}

export ATOLL_RATES_CPU_SECOND=0.5 ATOLL_RATES_MEMORY_GIB_SECOND=0.25 ATOLL_RATES_CURRENCY=EUR ATOLL_RATES_DISK_GIB_DAY=1000
cat >"$work/c.toml" <<'EOF'
[plan.small]
executions_per_day = 3
max_run_time = "300ms"
max_lifetime = "1m"
retention_boxes = "5s"
retention_records = "2s"
retention_outputs = "2s"
budget_per_day = "1000"
[plan.brief]
retention_outputs = "100ms"
[plan.poor]
budget_per_day = "0.000000001"
[plan.warned]
budget_per_day = "0.000000001"
budget_action = "warn"
EOF
run_daemon_tests --config "$work/c.toml"
