#!/bin/sh
# unsteady.sh - a browser journey has a second attempt, and tests/run reports each journey that needed it. Without a browser.
. "$(dirname "$0")/lib.sh"
command -v node >/dev/null || { echo "1..0 # SKIP no node"; exit 0; }
top=$(cd "$here/../.." && pwd)

# journeys BODY...: writes the test file journeys.sh with a journey per argument: a function of the number of the attempt.
# Each attempt prints its context, and each end whether it failed.
journeys() {
	{
		echo "import { run, test } from '$top/ui/test/tap.mjs'"
		echo "const attempts = {}"
		echo "let contexts = 0"
		i=0
		for body in "$@"; do
			i=$((i + 1))
			echo "test('journey $i', (x) => { attempts[$i] = (attempts[$i] ?? 0) + 1; console.log('# journey $i in context', x.n); return ($body)(attempts[$i]) }, 1)"
		done
		echo "process.exit(await run(async () => ({ n: ++contexts }), async (x, failed) => console.log('# context', x.n, failed ? 'failed' : 'passed')))"
	} >journeys.mjs
	printf '#!/bin/sh\nexec node "%s/journeys.mjs"\n' "$PWD" >journeys.sh
	chmod +x journeys.sh
}
run_file() {
	status=0
	"$top/tests/run" -b "${ATOLL%/*}" -r results "$@" >out 2>&1 || status=$?
	out=$(cat out)
}
passes='() => 1' once='(n) => { if (n === 1) throw new Error("the first\treason") }' never='(n) => { throw new Error("reason " + n) }'

a_journey_that_passes_at_its_second_attempt_is_counted_and_listed() {
	journeys "$passes" "$once"
	run_file ./journeys.sh
	is "$status" 0 "$out"
	has "$out" "2 passed, 0 failed, 0 skipped, 1 unsteady in "
	has "$out" "  unsteady: journeys: journey 2: Error: the first reason"
	is "$(grep -c . results)" 2
	has "$(cat results)" "pass	journeys: journey 2	unsteady: Error: the first reason"
}

a_second_attempt_has_a_context_of_its_own() {
	journeys "$once" "$passes"
	./journeys.sh >tap
	is "$(grep -v 'first attempt:  ' tap | sed 's/ ([0-9]* ms)//; s/\t/ /')" "# journey 1 in context 1
# context 1 failed
# first attempt: Error: the first reason
# journey 1 in context 2
# context 2 passed
ok 1 - journey 1 # unsteady
# journey 2 in context 3
# context 3 passed
ok 2 - journey 2
1..2"
}

a_journey_that_fails_twice_fails_with_both_reasons() {
	journeys "$never" "$passes"
	run_file ./journeys.sh
	is "$status" 1 "$out"
	has "$out" "1 passed, 1 failed, 0 skipped in "
	has "$out" "# first attempt: Error: reason 1"
	has "$out" "#   Error: reason 2"
	has "$out" "  failed: journeys: journey 1"
	lacks "$out" "unsteady"
}

after_a_failure_no_journey_has_a_second_attempt() {
	journeys "$never" "$once"
	run_file ./journeys.sh
	has "$out" "0 passed, 2 failed, 0 skipped in "
}

a_journey_that_hangs_is_attempted_again() {
	journeys '(n) => n > 1 || new Promise(() => {})'
	run_file ./journeys.sh
	is "$status" 0 "$out"
	has "$out" "unsteady: journeys: journey 1: Error: took more than 1 s"
}

steady_journeys_are_summed_up_as_before() {
	journeys "$passes"
	run_file ./journeys.sh
	has "$out" "1 passed, 0 failed, 0 skipped in "
	lacks "$out" "unsteady"
}

run_tests
