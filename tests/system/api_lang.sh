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

any_key_may_list_languages() {
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

simultaneous_requests_for_languages_get_the_same_answer() {
	for i in 1 2 3; do
		curl -sS -H "X-API-Key: $key" "$url/v1/languages" >"l$i" &
	done
	wait
	cmp l1 l2
	cmp l2 l3
	is "$(jq -r '.items[0].name' l1)" python
}

compile_and_run_steps_are_reported_when_they_start() {
	curl -sS -N -H "X-API-Key: $key" -H 'Accept: application/x-ndjson' "$url/v1/run" \
		-d '{"language":"c","code":"#include <stdio.h>\nint main(void) { puts(\"hi\"); }"}' >events
	is "$(jq -r 'select(.type == "started") | .step' events | tr '\n' ' ')" "compile run "
	is "$(jq -r 'select(.type == "stdout") | .data' events)" hi
	curl -sS -N -H "X-API-Key: $key" -H 'Accept: text/event-stream' "$url/v1/run" \
		-d '{"language":"c","code":"int main(void) { return x; }"}' >events
	has "$(tail -n 3 events)" '"errors":[{"file":"main.c","line":1,"column":25'
}

the_compile_timeout_is_separate_and_named_in_the_record() {
	runs '{"language":"c++","code":"#include <iostream>\nint main() {}","timeouts":{"compile_ms":1}}'
	is "$(get '.cause + " " + .step')" "wall compile"
	is "$(get .status)" 124
	runs '{"language":"python","code":"while True: pass","timeouts":{"run_ms":200}}'
	is "$(get '.cause + " " + .step')" "wall run"
}

the_stored_run_record_has_the_errors() {
	runs '{"language":"c","code":"int main(void) { return x; }"}'
	id=$(get .id)
	stored() { api GET "/v1/runs/$id" && [ "$(get '.errors[0].line')" = 1 ]; }
	soon stored
	is "$(get '.language + " " + .step')" "c compile"
	runs '{"language":"js","code":"null.x"}'
	is "$(get .error.type)" TypeError
	is "$(get .error.line)" 1
}

a_requested_version_is_used_or_rejected() {
	version=$(/usr/bin/python3 --version | cut -d ' ' -f 2 | cut -d . -f 1,2)
	runs "{\"language\":\"python@$version\",\"code\":\"print(1)\"}"
	is "$(get .stdout)" 1
	is "$(get .step)" run
	refused '{"language":"python@2.7","code":"print(1)"}' "python 2.7 was asked for; there is $version."
	refused '{"language":"python@x","code":"print(1)"}' "is not a version"
}

several_files_and_an_entry_form_a_program() {
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

a_java_program_without_a_file_name_is_named_by_its_class() {
	[ -x /usr/bin/javac ] || skip "no java"
	runs '{"language":"java","code":"class A {}\nclass B { public static void main(String[] a) { System.out.println(\"B\"); } }"}'
	is "$(get .stdout)" B "$body"
}

a_go_module_may_have_packages() {
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
	refused '{"language":"c","compiler":"tcc","code":"x"}' "c has no 'tcc'"
}

python_has_the_data_libraries() {
	[ -d /usr/lib/python3/dist-packages/sklearn ] || skip "python3-sklearn is not installed"
	runs '{"language":"python","code":"import numpy as np, pandas as pd, matplotlib\nfrom sklearn.linear_model import LinearRegression\nmatplotlib.use(\"Agg\")\nimport matplotlib.pyplot as plt\nx = pd.DataFrame({\"a\": np.arange(5)})\nplt.plot(x.a); plt.savefig(\"x.png\")\nprint(round(float(LinearRegression().fit(x[[\"a\"]], x.a * 2).coef_[0])))"}'
	is "$(get .stdout)" 2 "$body"
}

compiler_warnings_are_reported_and_the_program_runs() {
	runs '{"language":"c","code":"int main(void) { int unused; return 0; }"}'
	is "$(get .status)" 0
	is "$(get '.warnings[0].severity')" warning "$body"
	is "$(get .errors)" null
}

tests_are_run_with_the_test_command_of_the_language() {
	runs '{"language":"py","test":true,"files":{"a.py":"x = 1","a_test.py":"import unittest, a\nclass T(unittest.TestCase):\n    def test_x(self): self.assertEqual(a.x, 2)"}}'
	is "$(get .step)" test
	is "$(get .status)" 1
	has "$(get .stderr)" "1 != 2"
	refused '{"language":"sh","test":true,"files":{"a.sh":""}}' "no command for tests"
}

python_tests_may_be_functions_classes_and_asserts() {
	tested() { runs "{\"language\":\"python\",\"test\":true,\"files\":$1}"; }
	tested '{"test_a.py":"def test_x():\n    assert 1 == 2\n"}'
	is "$(get .exit_code)" 1 "$body"
	has "$(get '.stdout + .stderr')" "assert 1 == 2"
	tested '{"b.py":"x = 2","t/test_a.py":"import b\nimport unittest\ndef test_f(): assert b.x == 2\nclass TestC:\n    def setup_method(self): self.y = b.x\n    def test_m(self): assert self.y == 2\nclass U(unittest.TestCase):\n    def test_u(self): self.assertEqual(b.x, 2)\nasync def test_async(tmp_path): (tmp_path / \"f\").write_text(\"t\")"}'
	is "$(get .exit_code)" 0 "$body"
	[ -d /usr/lib/python3/dist-packages/pytest ] || has "$(get .stderr)" "Ran 4 tests"
	tested '{"test_a.py":"import nosuch_module","test_b.py":"def test_ok(): pass"}'
	[ "$(get .exit_code)" -ne 0 ] || fail "$body"
	has "$(get '.stdout + .stderr')" "No module named 'nosuch_module'"
	runs '{"language":"python","test":true,"code":"def test_here(): assert 0"}'
	is "$(get .exit_code)" 1 "$body"
	tested '{"test_a.py":"","pytest.py":"def main(words):\n    print(\"pytest was asked\")\n    return 3"}'
	is "$(get '.stdout + (.exit_code | tostring)')" "pytest was asked
3" "$body"
}

a_test_run_without_tests_fails() {
	untested() {
		[ -x "/usr/bin/$1" ] || return 0
		runs "{\"language\":\"$2\",\"test\":true,\"files\":$3}"
		is "$(get .exit_code)" 5 "$2: $body"
		has "$(get .stderr)" "no tests were found in "
	}
	untested python3 python '{"a.py":"x = 1"}'
	[ -d /usr/lib/python3/dist-packages/pytest ] || untested python3 python '{"test_a.py":"x = 1"}'
	untested node node '{"a.js":"1"}'
	untested ruby ruby '{"a_test.rb":"require \"minitest/autorun\"\nclass T < Minitest::Test\nend"}'
	untested ruby ruby '{"a.rb":""}'
	untested go go '{"go.mod":"module x\n","a.go":"package x"}'
	untested rustc rust '{"main.rs":"fn main() {}"}'
}

common_failures_have_a_hint() {
	hint() { runs "$1"; has "$(get .hint)" "$2"; }
	hint '{"language":"python","code":"import nosuch_module"}' '"packages": {"pip": ["nosuch_module"]}; no source for pip packages is configured yet: packages.pip_index'
	hint '{"language":"python","code":"import bs4x, bs4"}' '{"pip": ["bs4x"]}'
	hint '{"language":"node","code":"require(\"left-pad\")"}' '{"npm": ["left-pad"]}'
	hint '{"command":"frobnicate"}' "'frobnicate' is none of them"
	hint '{"language":"python","code":"import urllib.request\ndef f():\n    urllib.request.urlopen(\"http://example.org\")\nf()"}' 'the box has no network'
	is "$(get '.error | "\(.file) \(.line)"')" "main.py 3" "the user's frame, not the library's: $body"
	hint '{"command":"echo npm install left-pad; sleep 60","timeout_ms":300}' 'more time will not help'
	hint '{"command":"sleep 60","timeout_ms":300}' 'timeout_ms'
	runs '{"language":"node","code":"require(\"./own\")"}'
	is "$(get .hint)" null "$body"
	runs '{"command":"echo frobnicate: command not found >&2"}'
	is "$(get .hint)" null "a program that went well needs none"
	runs '{"language":"python","code":"import subprocess, sys\nr = subprocess.run([sys.executable, \"-m\", \"pip\", \"install\", \"--retries\", \"0\", \"nosuch\"], capture_output=True, text=True)\nprint(\"externally-managed\" in r.stderr, r.returncode)"}'
	is "$(get .stdout)" "False 1" "$body"
}

a_missing_interpreter_is_named() {
	[ ! -e /usr/bin/julia ] || skip "julia is installed"
	new_box
	api POST "/v1/boxes/$box/cells" '{"language":"julia","code":"1"}'
	is "$code" 400 "$body"
	has "$(get .error.message)" "julia is not installed on this host"
	api POST "/v1/boxes/$box/cells" '{"language":"jupyter:nosuch","code":"1"}'
	has "$(get .message)" "there is no Jupyter kernel 'nosuch' here"
	api POST /v1/run '{"language":"julia","packages":{"apt":["julia"]},"code":"1"}' # the package layer would provide it
	has "$(get .error.message)" "no source for apt packages is configured: set packages.apt_mirrors"
	for row in r=Rscript ruby=ruby php=php jshell=java; do
		[ ! -e "/usr/bin/${row#*=}" ] || continue
		api POST "/v1/boxes/$box/cells" "{\"language\":\"${row%=*}\",\"code\":\"1\"}"
		is "$code" 404 "$body"
		has "$(get .error.message)" "sudo apt-get install"
	done
}

invalid_requests_are_rejected_with_the_field() {
	refused '{"language":"cobol","code":"x"}' "language: 'cobol'"
	refused '{"language":"","code":"x"}' "language"
	refused '{"code":"x"}' "language"
	refused '{"language":7,"code":"x"}' "language"
	refused '{"language":"python","code":"x","timeouts":{"run_ms":0}}' "timeouts.run_ms"
	refused '{"language":"python","code":"x","timeouts":{"link_ms":1}}' "timeouts"
	[ -e /usr/bin/julia ] || refused '{"language":"julia","code":"x"}' "julia is not installed on this host: this distribution has no package"
}

variables_of_the_request_override_those_of_the_language() {
	[ -x /usr/bin/go ] || skip "no go"
	runs '{"command":"env","env":{"GOFLAGS":"-x"}}'
	has "$body" "GOFLAGS=-x"
	runs '{"language":"go","env":{"GOFLAGS":"-mod=nonsense"},"files":{"go.mod":"module x\n","main.go":"package main\nfunc main() {}"}}'
	is "$(get .step)" compile
	has "$(get .stderr)" "nonsense"
}

a_language_can_have_a_higher_default_memory() {
	[ -x /usr/bin/javac ] || skip "no java"
	runs '{"language":"java","code":"class A { public static void main(String[] a) { System.out.println(Runtime.getRuntime().maxMemory() >> 20); } }"}'
	[ "$(get .stdout)" -gt 500 ] || fail "$body"
	is "$(get .limits.mem)" 1073741824 "$body"
	runs '{"language":"java","limits":{"mem":300000000},"code":"class A { public static void main(String[] a) { System.out.println(Runtime.getRuntime().maxMemory() >> 20); } }"}'
	[ "$(get .stdout)" -lt 200 ] || fail "$body"
}

run_daemon_tests
