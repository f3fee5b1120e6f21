#!/bin/sh
# api_reuse.sh - the compile cache: the same source of the same team is compiled once.
. "$(dirname "$0")/daemon.lib"

# Every test compiles programs of its own: $mark is in their text.
mark=$(date +%N)
ask() { # PATH BODY: sets body
	asked=$1 wish=$2
	api POST "$asked" "$wish"
	is "$code" 200 "$body"
}
runs() { ask /v1/run "$1"; } # BODY
cell() { # LANGUAGE CODE
	ask "/v1/boxes/$box/cells" "$(jq -nc --arg l "$1" --arg c "$2" '{language: $l, code: $c}')"
}
before() { # true, false
	# Two programs may have the same cache slot, and the later one replaces the earlier: try once more.
	if [ "$1" = true ] && [ "$(get '.cached == true')" = false ]; then ask "$asked" "$wish"; fi
	is "$(get '.cached == true')" "$1" "cached: $body"
	is "$(get '.compiled_before == true')" "$1" "the name of version 0.1: $body"
}
put() { # PATH TEXT: a file of the box
	api PUT "/v1/boxes/$box/files?path=$1" "$2" -H 'Content-Type: application/octet-stream'
	case $code in 2*) ;; *) fail "$body" ;; esac
}
made() { find "$work" -path '*/made/*' -type "$1"; } # f or d
says() { # WORD: prints a program in C that prints it
	echo "#include <stdio.h>
int main(void) { puts(\"$1\"); } // $mark"
}
body_of() { jq -nc --arg l "$1" --arg c "$2" '{language: $l, code: $c}'; }

# the_languages: name TAB program of every installed language.
# ./check leaves those out whose compilers take seconds.
the_languages() {
	while IFS="$(printf '\t')" read -r name program text; do
		case ${ATOLL_QUICK:-0}:$name in 1:rust | 1:java | 1:typescript) continue ;; esac
		[ ! -x "$program" ] || printf '%s\t%s\n' "$name" "$text"
	done <<-'X'
		c	/usr/bin/gcc	#include <stdio.h>@int main(void){puts("hello");}
		c++	/usr/bin/g++	#include <cstdio>@int main(){puts("hello");}
		go	/usr/bin/go	package main@func main(){println("hello")}
		rust	/usr/bin/rustc	fn main(){println!("hello");}
		java	/usr/bin/javac	class A { static class B { static String b = "hello"; } public static void main(String[] a) { System.out.println(B.b); } }
		typescript	/usr/bin/tsc	const a: string = "hello"@console.log(a)
	X
}

the_second_run_of_every_language_is_not_compiled_and_has_the_same_output() {
	the_languages >all
	[ -s all ] || skip "no compiler is installed"
	while IFS="$(printf '\t')" read -r name text; do
		text="$(echo "$text" | tr @ '\n')
// $mark"
		runs "$(body_of "$name" "$text")"
		before false
		is "$(get '.stdout + .stderr')" hello "$name"
		jq -S '[.stdout, .stderr, .exit_code, .cause, .step, .language]' <body >first
		runs "$(body_of "$name" "$text")"
		before true
		is "$(jq -S '[.stdout, .stderr, .exit_code, .cause, .step, .language]' <body)" "$(cat first)" "$name"
		api GET "/v1/runs/$(get .id)"
		before true # and so it is stored
	done <all
}

stored_compiler_warnings_are_reported_again() {
	text=$(body_of c "#include <stdio.h>
int main(void) { int unused_variable; fputs(\"own\", stderr); } // $mark")
	runs "$text"
	before false
	has "$(get .stderr)" unused_variable
	is "$(get '.warnings | length')" 1
	jq -S '[.stderr, .warnings]' <body >first
	runs "$text"
	before true
	is "$(jq -S '[.stderr, .warnings]' <body)" "$(cat first)"
	curl -sSN -H "X-API-Key: $key" -H 'Content-Type: application/json' -H 'Accept: application/x-ndjson' \
		-d "$text" "$url/v1/run" >events
	is "$(jq -r 'if .type == "stderr" then .data else .type end' <events | grep -c unused_variable)" 2 "$(cat events)"
	is "$(jq -sr 'map(select(.type == "compiled"))[0].before' <events)" true
	is "$(jq -r 'select(.type == "started").step' <events)" run
}

inputs_of_the_program_alone_do_not_change_the_cache_key() {
	text="#include <stdio.h>
#include <stdlib.h>
int main(int n, char **v) { printf(\"%s %s %d\", v[n - 1], getenv(\"A\") ? getenv(\"A\") : \"\", getchar()); return n; } // $mark"
	one=$(body_of c "$text" | jq -c '.args = ["x"] | .stdin = "a"')
	runs "$one"
	before false
	is "$(get '.stdout, .exit_code' | tr '\n' ' ')" 'x  97 2 '
	runs "$(printf %s "$one" | jq -c --argjson ms $((9000 * time_scale)) '.args = ["y", "z"] | .stdin = "b" | .timeout_ms = $ms | .limits = {pids: 40} | .tag = "t"')"
	before true
	is "$(get '.stdout, .exit_code' | tr '\n' ' ')" 'z  98 3 '
	runs "$(printf %s "$one" | jq -c '.env = {A: "1"}')" # a variable may be read by the compiler, too
	before false
	is "$(get .stdout)" 'x 1 97'
}

inputs_of_the_compiler_change_the_cache_key() {
	text="#include <stdio.h>
#include \"n.h\"
int main(void) { printf(\"%d %d\", N, M); } // $mark"
	one=$(body_of c "$text" | jq -c '.files = {"n.h": "#define N 1\n#ifndef M\n#define M 0\n#endif"}')
	runs "$one"
	before false
	is "$(get .stdout)" '1 0'
	runs "$one"
	before true
	for change in '.files["n.h"] |= sub("N 1"; "N 2")' '.env = {CFLAGS: "-DM=5"}' '.files["other.h"] = ""' \
		'.code += " "' '.cwd = "/tmp"' '.compiler = "gcc"'; do
		runs "$(printf %s "$one" | jq -c "$change")"
		before false
	done
	runs "$(printf %s "$one" | jq -c '.files["n.h"] |= sub("N 1"; "N 2")')"
	before true
	is "$(get .stdout)" '2 0'
	runs "$(printf %s "$one" | jq -c '.env = {CFLAGS: "-DM=5"}')"
	before true
	is "$(get .stdout)" '1 5'
}

compile_errors_are_not_cached() {
	for _ in 1 2; do
		runs "$(body_of c "int main(void) { return nothing; } // $mark")"
		before false
		is "$(get .step)" compile
		is "$(get '.errors[0].severity')" error
	done
}

a_program_that_uses_the_compile_time_or_installs_packages_is_not_cached() {
	for _ in 1 2; do
		runs "$(body_of c "#include <stdio.h>
int main(void) { puts(__TIME__); } // $mark")"
		before false
		runs "$(body_of c "$(says i)" | jq -c '.install = "true"')"
		before false
		is "$(get .stdout)" i
	done
}

another_team_has_its_own_cache_entries() {
	runs "$(body_of c "$(says team)")"
	runs "$(body_of c "$(says team)")"
	before true
	api PUT /v1/teams/ochre '{}'
	key=$("$ATOLL" key new o1 --team ochre --state "$gateway_state" --quiet)
	runs "$(body_of c "$(says team)")"
	before false
	is "$(get .stdout)" team
	new_box
	cell c "$(says team)"
	before true # now this team has an entry, too
}

a_damaged_or_lost_cache_entry_is_compiled_again() {
	one=$(body_of c "$(says damaged)")
	runs "$one"
	[ "$(made f)" ]
	for f in $(made f); do printf X | dd of="$f" bs=1 seek=120 conv=notrunc 2>/dev/null; done
	runs "$one"
	before false
	is "$(get .stdout)" damaged
	runs "$one"
	before true
	for f in $(made f); do
		rm "$f"
		mkdir "$f" # a folder instead of the file: reading and writing fail
	done
	for _ in 1 2; do
		runs "$one"
		before false
		is "$(get .stdout)" damaged
	done
	is "$(made f)" ""
	made d | xargs rmdir
	runs "$one"
	before false
	runs "$one"
	before true
}

cache_entries_survive_the_death_of_the_server() {
	one=$(body_of c "$(says front)")
	runs "$one"
	new_box
	cell c "$(says front)"
	before true
	kill -9 $(server_pids)
	again() { api GET "/v1/boxes/$box" && [ "$code" = 200 ] && { [ -z "$gateway_url" ] || gateway_is_ready; }; }
	soon again
	runs "$one"
	before true
	is "$(get .stdout)" front
	# For a box of a previous server it is unknown whether it was used: its entries are for this box only.
	cell c "$(says front)"
	before false
	cell c "$(says front)"
	before true
	is "$(get .stdout)" front
	# Killed while the compiler runs: no entry is stored.
	curl -sS --max-time $((120 * time_scale)) -H "X-API-Key: $key" -H 'Content-Type: application/json' -o /dev/null \
		-d "$(body_of c "$(says middle)" | jq -c '.code += "\n#include \"/dev/zero\"" | .timeouts = {compile_ms: 60000}')" "$url/v1/run" 2>/dev/null &
	asked=$!
	soon program_runs "/tmp/main.out /home/user/main.c"
	kill -9 $(server_pids)
	wait $asked || :
	soon again
	runs "$(body_of c "$(says middle)")"
	before false
	is "$(get .stdout)" middle
}

# ---- in a box that lives ----

the_second_cell_of_every_language_is_not_compiled_in_this_or_another_new_box() {
	the_languages | grep -v '^typescript' >all # which has an interpreter
	[ -s all ] || skip "no compiler is installed"
	while IFS="$(printf '\t')" read -r name text; do
		text="$(echo "$text" | tr @ '\n')
// cell $mark"
		new_box '{"limits":{"mem":1073741824}}'
		for known in false true true; do
			cell "$name" "$text"
			before $known
			is "$(get '.stdout + .stderr')" hello "$name"
			is "$(get .status)" ok
		done
		new_box '{"limits":{"mem":1073741824}}'
		cell "$name" "$text"
		before true
		is "$(get '.stdout + .stderr')" hello "$name"
	done <all
}

a_cell_and_a_run_share_cache_entries() {
	runs "$(body_of c "$(says shared)")"
	before false
	new_box
	cell c "$(says shared)"
	before true
	api POST "/v1/boxes/$box/execs" "$(body_of c "$(says shared)" | jq -c '.background = true | .tag = "b"')"
	is "$code" 201 "$body"
	id=$(get .id)
	ended() { api GET "/v1/runs/$id" && [ "$(get .state)" = exited ]; }
	soon ended
	before true
}

files_in_the_workspace_change_the_cache_key_of_a_cell() {
	text="#include <stdio.h>
#include \"n.h\"
int main(void) { printf(\"%d\", N); } // $mark"
	new_box
	put /home/user/n.h '#define N 1'
	cell c "$text"
	before false
	is "$(get .stdout)" 1
	cell c "$text"
	before true
	is "$(get .stdout)" 1
	put /home/user/n.h '#define N 2'
	cell c "$text"
	before false
	is "$(get .stdout)" 2
	api POST "/v1/boxes/$box/execs" '{"command":"sed -i s/2/3/ n.h; touch -d @1 n.h"}'
	cell c "$text"
	before false
	is "$(get .stdout)" 3
	# Also a file in a folder that was not searched before.
	api POST "/v1/boxes/$box/execs" '{"command":"echo \"#define N 9\" >/dev/shm/n.h; ln -sf /dev/shm/n.h n.h"}'
	cell c "$text"
	before false
	is "$(get .stdout)" 9
	api POST "/v1/boxes/$box/execs" '{"command":"echo \"#define N 8\" >/dev/shm/n.h"}'
	cell c "$text"
	before false
	is "$(get .stdout)" 8
}

a_program_compiled_in_a_used_box_is_cached_for_that_box_only() {
	# An exec had run in the box.
	new_box
	api POST "/v1/boxes/$box/execs" '{"command":"true"}'
	cell c "$(says stays)"
	before false
	cell c "$(says stays)"
	before true
	# A file next to the source changes the output.
	new_box
	put /home/user/stdio.h '#define puts(x) __builtin_puts("poison")'
	cell c "$(says stays | sed 's/<stdio.h>/"stdio.h"/')"
	is "$(get .stdout)" poison
	# The file is in a folder of the compiler.
	if [ -x /usr/bin/javac ]; then
		java="public class Main { public static void main(String[] a) { System.out.println(\"java\"); } } // $mark"
		new_box '{"limits":{"mem":1073741824}}'
		put /tmp/Main.out/B.class poison
		cell java "$java"
		before false
		is "$(get .stdout)" java
		new_box '{"limits":{"mem":1073741824}}'
		cell java "$java"
		before false
	fi
	new_box
	cell c "$(says stays)"
	before false
	cell c "$(says stays | sed 's/<stdio.h>/"stdio.h"/')"
	before false
	is "$(get .stdout)" stays
}

a_box_with_a_volume_does_not_use_the_cache() {
	api POST /v1/volumes '{"name":"reuse","bytes":33554432}'
	is "$code" 201 "$body"
	runs "$(body_of c "$(says volume)")"
	new_box '{"volumes":[{"name":"reuse","path":"/data"}]}'
	for _ in 1 2; do
		cell c "$(says volume)"
		before false
		is "$(get .stdout)" volume
	done
}

an_e2b_execution_uses_the_compile_cache() {
	jq -nc --arg c "$(says e2b)" '{language: "c", code: $c}' >ask
	for known in '"compile","run"' '"run"'; do
		api POST /v2/sandboxes '{"templateID":"code-interpreter-v1"}'
		is "$code" 201 "$body"
		box=$(get .sandboxID) token=$(get .envdAccessToken)
		curl -sS --max-time $((120 * time_scale)) -H "E2b-Sandbox-Id: $box" -H 'E2b-Sandbox-Port: 49999' -H "X-Access-Token: $token" --data-binary @ask \
			"$url/execute" >lines
		is "$(jq -r 'select(.type == "stdout").text' <lines)" e2b "$(cat lines)"
		api GET "/v1/boxes/$box/execs"
		is "$(get '.items | length')" "$(echo "[$known]" | jq length)" "$body"
	done
}

a_program_that_contains_the_id_of_its_box_is_compiled_per_box() {
	[ -x /usr/bin/rustc ] || skip "no rustc"
	jq -nc --arg c "fn main() { print!(\"{}\", env!(\"E2B_SANDBOX_ID\")); } // $mark" '{language: "rust", code: $c}' >ask
	for _ in 1 2; do
		api POST /v2/sandboxes '{"templateID":"code-interpreter-v1"}'
		box=$(get .sandboxID) token=$(get .envdAccessToken)
		curl -sS --max-time $((120 * time_scale)) -H "E2b-Sandbox-Id: $box" -H 'E2b-Sandbox-Port: 49999' -H "X-Access-Token: $token" --data-binary @ask \
			"$url/execute" >lines
		is "$(jq -r 'select(.type == "stdout").text' <lines)" "$box" "$(cat lines)"
	done
}

simultaneous_execs_of_one_box_each_run_their_own_program() {
	new_box
	for n in 1 2 3 4; do
		curl -sS -H "X-API-Key: $key" -H 'Content-Type: application/json' -d "$(body_of c "$(says "at once $n")" |
			jq -c --arg n "$n" '{language, files: {("f" + $n + ".c"): .code}, entry: ("f" + $n + ".c")}')" \
			"$url/v1/boxes/$box/execs" >"out$n" &
		waits="${waits-} $!"
	done
	# shellcheck disable=SC2086
	wait $waits
	for n in 1 2 3 4; do
		is "$(jq -r .stdout <"out$n")" "at once $n" "$(cat "out$n")"
	done
}

a_running_program_does_not_block_a_second_run_of_it() {
	text="#include <unistd.h>
int main(void) { return !!write(1, \"up\", 2) && sleep(60); } // $mark"
	new_box
	api POST "/v1/boxes/$box/execs" "$(body_of c "$text" | jq -c '.background = true')"
	is "$code" 201
	api POST "/v1/boxes/$box/execs" "$(body_of c "$text" | jq -c --argjson ms $((500 * time_scale * time_scale)) '.timeout_ms = $ms')"
	is "$(get .stdout)" up "$body"
	is "$(get .cause)" wall
}

run_daemon_tests
