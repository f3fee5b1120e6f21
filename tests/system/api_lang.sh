#!/bin/sh
# api_lang.sh - programs of a language over the API: stages, versions, choices, refusals.
. "$(dirname "$0")/daemon.lib"

runs() { # BODY
	api POST /v1/run "$1"
	is "$code" 200 "$body"
}
refused() { # BODY WORDS: with 400 and these words
	api POST /v1/run "$1"
	is "$code" 400 "$body"
	has "$(get .error.message)" "$2"
}

languages_are_listed_to_any_key() {
	key=$viewer
	api GET /v1/languages
	is "$code" 200
	is "$(get '.items[] | select(.name == "python") | .version')" \
		"$(/usr/bin/python3 --version | cut -d ' ' -f 2)"
	is "$(get '.items | map(select(.here and (.version == null))) | length')" 0
	is "$(get '.items[] | select(.name == "go") | .timeouts.compile_ms')" 60000
	cp body first
	api GET /v1/languages
	cmp first body
	is "$("$ATOLL" lang --json | jq -cS '.items | map(del(.version))')" "$(jq -cS '.items | map(del(.version))' body)"
}

two_who_ask_at_once_get_the_same_answer() {
	for i in 1 2 3; do
		curl -sS -H "X-API-Key: $key" "$url/v1/languages" >"l$i" &
	done
	wait
	cmp l1 l2
	cmp l2 l3
	is "$(jq -r '.items[0].name' l1)" python
}

stages_are_told_as_they_begin() {
	curl -sS -N -H "X-API-Key: $key" -H 'Accept: application/x-ndjson' "$url/v1/run" \
		-d '{"language":"c","code":"#include <stdio.h>\nint main(void) { puts(\"hi\"); }"}' >events
	is "$(jq -r 'select(.type == "started") | .step' events | tr '\n' ' ')" "compile run "
	is "$(jq -r 'select(.type == "stdout") | .data' events)" hi
	curl -sS -N -H "X-API-Key: $key" -H 'Accept: text/event-stream' "$url/v1/run" \
		-d '{"language":"c","code":"int main(void) { return x; }"}' >events
	has "$(tail -n 3 events)" '"errors":[{"file":"main.c","line":1,"column":25'
}

a_compiler_has_its_own_time_and_the_record_says_so() {
	runs '{"language":"c++","code":"#include <iostream>\nint main() {}","timeouts":{"compile_ms":1}}'
	is "$(get '.cause + " " + .step')" "wall compile"
	is "$(get .status)" 124
	runs '{"language":"python","code":"while True: pass","timeouts":{"run_ms":200}}'
	is "$(get '.cause + " " + .step')" "wall run"
}

what_is_stored_has_the_errors_too() {
	runs '{"language":"c","code":"int main(void) { return x; }"}'
	id=$(get .id)
	stored() { api GET "/v1/runs/$id" && [ "$(get '.errors[0].line')" = 1 ]; }
	soon stored
	is "$(get '.language + " " + .step')" "c compile"
	runs '{"language":"js","code":"null.x"}'
	is "$(get .error.type)" TypeError
	is "$(get .error.line)" 1
}

a_version_is_honoured_or_refused() {
	version=$(/usr/bin/python3 --version | cut -d ' ' -f 2 | cut -d . -f 1,2)
	runs "{\"language\":\"python@$version\",\"code\":\"print(1)\"}"
	is "$(get .stdout)" 1
	is "$(get .step)" run
	refused '{"language":"python@2.7","code":"print(1)"}' "python 2.7 was asked for; there is $version."
	refused '{"language":"python@x","code":"print(1)"}' "is no version"
}

files_and_an_entry_are_a_program() {
	runs '{"language":"py","files":{"main.py":"import b; print(b.x)","b.py":"x = 42"}}'
	is "$(get .stdout)" 42
	runs '{"files":{"tool":"#!/usr/bin/env python3\nprint(7)"},"entry":"tool"}'
	is "$(get .stdout)" 7
	runs '{"language":"c","files":{"x/only.c":"int main(void) { return 3; }","x/h.h":""}}'
	is "$(get .status)" 3
	runs '{"language":"py","files":{"a.py":"1"},"command":"cat a.py"}'
	is "$(get .stdout)" 1
	refused '{"language":"py","files":{"a.py":"1","b.py":"2"}}' "which of the files"
	refused '{"language":"py","files":{}}' "which of the files"
	refused '{"language":"py","files":{"a.py":7}}' "must be text"
	refused '{"language":"py","files":["a.py"]}' "must be an object"
}

a_language_without_a_file_name_finds_its_class() {
	[ -x /usr/bin/javac ] || skip "no java"
	runs '{"language":"java","code":"class A {}\nclass B { public static void main(String[] a) { System.out.println(\"B\"); } }"}'
	is "$(get .stdout)" B "$body"
}

go_modules_have_packages_of_their_own() {
	[ -x /usr/bin/go ] || skip "no go"
	runs '{"language":"go","entry":"main.go","files":{"go.mod":"module x\n","main.go":"package main\nimport \"x/y\"\nfunc main() { println(y.N) }","y/y.go":"package y\nconst N = 42"}}'
	is "$(get .stderr)" 42 "$body"
}

the_compiler_can_be_chosen() {
	[ -x /usr/bin/clang ] || skip "no clang"
	code_='#ifndef __clang__\n#error gcc\n#endif\nint main(void) {}'
	runs "{\"language\":\"c\",\"compiler\":\"clang\",\"code\":\"$code_\"}"
	is "$(get .status)" 0 "$body"
	runs "{\"language\":\"c\",\"compiler\":\"gcc\",\"code\":\"$code_\"}"
	is "$(get '.errors[0].message')" "#error gcc"
	refused '{"language":"c","compiler":"tcc","code":"x"}' "c knows no 'tcc'"
}

python_has_its_libraries_for_data() {
	[ -d /usr/lib/python3/dist-packages/sklearn ] || skip "python3-sklearn is not installed"
	runs '{"language":"python","code":"import numpy as np, pandas as pd, matplotlib\nfrom sklearn.linear_model import LinearRegression\nmatplotlib.use(\"Agg\")\nimport matplotlib.pyplot as plt\nx = pd.DataFrame({\"a\": np.arange(5)})\nplt.plot(x.a); plt.savefig(\"x.png\")\nprint(round(float(LinearRegression().fit(x[[\"a\"]], x.a * 2).coef_[0])))"}'
	is "$(get .stdout)" 2 "$body"
}

warnings_do_not_stop_a_program_and_are_told() {
	runs '{"language":"c","code":"int main(void) { int unused; return 0; }"}'
	is "$(get .status)" 0
	is "$(get '.warnings[0].severity')" warning "$body"
	is "$(get .errors)" null
}

a_language_knows_how_to_run_its_tests() {
	runs '{"language":"py","test":true,"files":{"a.py":"x = 1","a_test.py":"import unittest, a\nclass T(unittest.TestCase):\n    def test_x(self): self.assertEqual(a.x, 2)"}}'
	is "$(get .step)" test
	is "$(get .status)" 1
	has "$(get .stderr)" "1 != 2"
	refused '{"language":"sh","test":true,"files":{"a.sh":""}}' "no command for tests"
}

what_cannot_be_is_refused() {
	refused '{"language":"cobol","code":"x"}' "language: 'cobol'"
	refused '{"language":"","code":"x"}' "language"
	refused '{"code":"x"}' "language"
	refused '{"language":7,"code":"x"}' "language"
	refused '{"language":"python","code":"x","timeouts":{"run_ms":0}}' "timeouts.run_ms"
	refused '{"language":"python","code":"x","timeouts":{"link_ms":1}}' "timeouts"
	[ -e /usr/bin/julia ] || refused '{"language":"julia","code":"x"}' "julia is not installed on this host: this distribution has no package"
}

the_programs_own_variables_replace_the_languages() {
	[ -x /usr/bin/go ] || skip "no go"
	runs '{"command":"env","env":{"GOFLAGS":"-x"}}'
	has "$body" "GOFLAGS=-x"
	runs '{"language":"go","env":{"GOFLAGS":"-mod=nonsense"},"files":{"go.mod":"module x\n","main.go":"package main\nfunc main() {}"}}'
	is "$(get .step)" compile
	has "$(get .stderr)" "nonsense"
}

a_language_may_want_more_memory_than_others() {
	[ -x /usr/bin/javac ] || skip "no java"
	runs '{"language":"java","code":"class A { public static void main(String[] a) { System.out.println(Runtime.getRuntime().maxMemory() >> 20); } }"}'
	[ "$(get .stdout)" -gt 500 ] || fail "$body"
	is "$(get .limits.mem)" 1073741824 "$body"
	runs '{"language":"java","limits":{"mem":300000000},"code":"class A { public static void main(String[] a) { System.out.println(Runtime.getRuntime().maxMemory() >> 20); } }"}'
	[ "$(get .stdout)" -lt 200 ] || fail "$body"
}

run_daemon_tests
