#!/bin/sh
# wasm.sh - programs as WebAssembly: what the daemon does for those in browsers (/play/), `atoll tier prepare`, and modules
# compiled ahead of time. Browsers are tested by ui_play.sh.
. "$(dirname "$0")/daemon.lib"

browser() { curl -sS -D head -o body -w '%{http_code}' -H 'Accept: text/html,*/*;q=0.8' "$@"; }
header() { tr -d '\r' <head | sed -n "s/^$1: //Ip" | head -1; }
need_ui() {
	browser "$url/" >/dev/null
	grep -q 'id="app"' body || skip "this build has no web UI"
}
# The part of the policy that begins with $1.
policy() { header Content-Security-Policy | tr ';' '\n' | sed -n "s/^ *$1 //p"; }

the_page_names_the_command_that_installs_the_interpreters() {
	need_ui
	is "$(browser "$url/play")" 308
	is "$(header Location)" /play/
	is "$(browser "$url/play/")" 200
	has "$(cat body)" 'in your browser'
	is "$(browser "$url/play/info")" 200
	is "$(jq -r .installed body)" false
	is "$(jq -r .command body)" 'atoll tier prepare play'
	files=$(jq -r .files body)
	is "$(browser "$url${files}pyodide.mjs")" 404
	has "$(cat body)" 'atoll tier prepare play'
}

programs_have_an_opaque_origin_and_reach_only_the_interpreters() {
	need_ui
	host=${url#http://}
	browser "$url/play/" >/dev/null
	is "$(policy default-src)" "'none'"
	is "$(policy script-src)" "$host/play/"
	is "$(policy connect-src)" "$host/play/"
	is "$(policy frame-ancestors)" "'none'"
	is "$(browser "$url/play/frame.html")" 200
	is "$(policy sandbox)" allow-scripts # no allow-same-origin
	is "$(policy default-src)" "'none'"
	is "$(policy script-src)" "$host/play/ 'wasm-unsafe-eval'"
	is "$(policy worker-src)" 'blob:'
	is "$(policy connect-src)" "$host/play/lib/" # and so not /v1
	is "$(policy frame-ancestors)" "'self'"
	is "$(header X-Frame-Options)" SAMEORIGIN
	# a Host header becomes part of the policy only if it is a name of this daemon
	is "$(browser -H "Host: localhost;script-src *" "$url/play/")" 421
}

files_of_interpreters_are_addressed_by_hash_and_sent_compressed() {
	need_ui
	browser "$url/play/info" >/dev/null
	files=$(jq -r .files body)
	set=$(basename "$files") folder=$state/server/play/$(basename "$files")
	[ "${#set}" = 32 ] || fail "the set is named $set"
	mkdir -p "$folder"
	head -c 3000000 /dev/urandom >"$folder/pyodide.asm.wasm" # sent in many pieces
	seq 100000 >"$folder/pyodide.mjs"
	gzip -k "$folder/pyodide.mjs"
	echo secret >"$folder/other"
	ln -s /etc/passwd "$folder/pyodide-lock.json"
	chmod -R a+rX "$state/server/play"
	browser "$url/play/info" >/dev/null
	is "$(jq -r .installed body)" true
	is "$(browser "$url${files}pyodide.asm.wasm")" 200
	is "$(header Content-Type)" application/wasm
	is "$(header Access-Control-Allow-Origin)" '*'
	is "$(header Cache-Control)" 'public, max-age=31536000, immutable'
	cmp body "$folder/pyodide.asm.wasm" || fail "the file was changed"
	is "$(browser "$url${files}pyodide.mjs")" 200
	is "$(header Content-Encoding)" ''
	cmp body "$folder/pyodide.mjs" || fail "the file was changed"
	is "$(browser -H 'Accept-Encoding: gzip' "$url${files}pyodide.mjs")" 200
	is "$(header Content-Encoding)" gzip
	gzip -dc <body | cmp - "$folder/pyodide.mjs" || fail "the compressed file differs"
	is "$(curl -s -I -o head -w '%{http_code} %{size_download}' "$url${files}pyodide.mjs")" '200 0'
	is "$(browser "$url${files}other")" 404 # not in the table
	is "$(browser "$url${files}pyodide-lock.json")" 404 # a link out of the folder
	is "$(browser --path-as-is "$url${files}../../atoll.db")" 404
	is "$(browser "$url/play/lib/00000000000000000000000000000000/pyodide.mjs")" 404
	rm -r "$state/server/play"
}

prepare_rejects_files_that_differ_from_the_known_ones() {
	mkdir -p modules/pyodide
	echo 'alert(1)' >modules/pyodide/pyodide.mjs
	prepare() { "$ATOLL" tier prepare "$@" --state "$state" 2>err && code=0 || code=$?; }
	prepare play --from "$PWD/modules"
	is "$code" 1
	has "$(cat err)" 'pyodide/pyodide.mjs is not the file that Atoll knows'
	prepare play --from "$PWD/nothing"
	is "$code" 1
	has "$(cat err)" 'nothing/pyodide/pyodide.mjs'
	mkdir -p modules/react-native-quickjs/cpp/engine
	for file in cutils.c cutils.h libbf.c libbf.h libregexp-opcode.h libregexp.c libregexp.h libunicode-table.h libunicode.c libunicode.h \
		list.h quickjs-atom.h quickjs-opcode.h quickjs.c quickjs.h; do echo "#error" >"modules/react-native-quickjs/cpp/engine/$file"; done
	prepare wasm --from "$PWD/modules" --into "$PWD/into"
	is "$code" 1
	has "$(cat err)" 'react-native-quickjs/cpp/engine has not the files that Atoll knows'
	[ ! -e into ] || fail "something was compiled"
	[ -z "$(ls "$state/server/play")" ] || fail "a failed preparation left $(ls "$state/server/play")"
	prepare nonsense
	is "$code" 2
	has "$(cat err)" 'atoll tier prepare play'
}

# One module with several behaviours: the first letter of its first argument selects one.
write_module() {
	cat >module.wat <<'END'
(module
  (import "wasi_snapshot_preview1" "args_get" (func $args (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "path_open" (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "clock_time_get" (func $clock (param i32 i64 i32) (result i32)))
  (import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (memory (export "memory") 2)
  (data (i32.const 16) "hello\n")
  (data (i32.const 32) "link")
  (func $deep (param i32) (result i32) (i32.add (call $deep (i32.add (local.get 0) (i32.const 1))) (i32.const 1)))
  (func $print (param $at i32) (param $n i32) (result i32)
    (i32.store (i32.const 0) (local.get $at)) (i32.store (i32.const 4) (local.get $n))
    (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))
  (func (export "_start") (local $what i32)
    (drop (call $args (i32.const 128) (i32.const 1024)))
    (local.set $what (i32.load8_u (i32.load (i32.const 132))))
    (if (i32.eq (local.get $what) (i32.const 104)) (then (drop (call $print (i32.const 16) (i32.const 6))))) ;; h
    (if (i32.eq (local.get $what) (i32.const 102)) (then (call $exit (call $write (i32.const 1) (i32.const 0xfffffff0) (i32.const 1) (i32.const 8))))) ;; f
    (if (i32.eq (local.get $what) (i32.const 114)) (then (call $exit (call $deep (i32.const 0))))) ;; r
    (if (i32.eq (local.get $what) (i32.const 111)) (then (i32.store (i32.const 0x7fffffff) (i32.const 1)))) ;; o
    (if (i32.eq (local.get $what) (i32.const 117)) (then unreachable)) ;; u
    (if (i32.eq (local.get $what) (i32.const 108)) (then (loop (br 0)))) ;; l
    (if (i32.eq (local.get $what) (i32.const 103)) (then ;; g: 4 GiB, then the rest of the limit and one page more
      (if (i32.ne (memory.grow (i32.const 65536)) (i32.const -1)) (then (call $exit (i32.const 1))))
      (if (i32.ne (memory.grow (i32.const 14)) (i32.const 2)) (then (call $exit (i32.const 2))))
      (if (i32.ne (memory.grow (i32.const 1)) (i32.const -1)) (then (call $exit (i32.const 3))))
      (call $exit (i32.const 42))))
    (if (i32.eq (local.get $what) (i32.const 115)) (then ;; s: opens "link", below the home
      (call $exit (call $open (i32.const 4) (i32.const 1) (i32.const 32) (i32.const 4) (i32.const 0) (i64.const 2) (i64.const 0) (i32.const 0) (i32.const 8)))))
    (if (i32.eq (local.get $what) (i32.const 100)) (then ;; d: clock and random values
      (drop (call $clock (i32.const 0) (i64.const 0) (i32.const 256)))
      (drop (call $random (i32.const 264) (i32.const 24)))
      (drop (call $print (i32.const 256) (i32.const 32)))))))
END
}

module() { timeout 20 "$module" "$@" >out 2>err && code=0 || code=$?; }

a_module_is_compiled_once_and_its_faults_end_it() {
	for tool in wasm2c wat2wasm wasm-strip gcc; do
		command -v $tool >/dev/null || skip "no $tool"
	done
	write_module
	wat2wasm module.wat -o module.wasm
	sum=$(sha256sum module.wasm | cut -d ' ' -f 1)
	"$ATOLL" tier prepare wasm --module module.wasm --into "$PWD/into" --state "$state" 2>err || fail "$(cat err)"
	module=$PWD/into/$sum/atoll-wasm
	[ -x "$module" ] || fail "no $module"
	is "$(ls into)" "$sum" # and nothing else is left
	before=$(stat -c %Y.%i "$module")
	"$ATOLL" tier prepare wasm --module module.wasm --into "$PWD/into" --state "$state" -q
	is "$(stat -c %Y.%i "$module")" "$before" 'it is compiled once'
	module h
	is "$code $(cat out)" '0 hello'
	module f
	is "$code" 21 'a pointer beyond the memory is EFAULT'
	module r
	is "$code" 134
	has "$(cat err)" 'the call stack is exhausted'
	module o
	is "$code" 134
	has "$(cat err)" 'access beyond the memory'
	module u
	is "$code" 134
	module --memory=1 g
	is "$code" 42 'the limit of the memory is exact'
	mkdir home
	ln -s /etc/passwd home/link
	HOME=$PWD/home module s
	is "$code" 76 'a link out of the home is ENOTCAPABLE'
	rm home/link
	touch home/link
	HOME=$PWD/home module s
	is "$code" 0
	module --deterministic d
	mv out first
	module --deterministic d
	cmp out first || fail "two deterministic runs differ"
	module d
	cmp -s out first && fail "a run has the clock of a deterministic one"
	"$module" l 2>/dev/null &
	pid=$!
	kill $pid
	wait $pid && fail "an endless loop ended by itself"
	:
}

a_module_that_imports_something_else_is_rejected() {
	command -v wat2wasm >/dev/null || skip "no wat2wasm"
	command -v wasm2c >/dev/null || skip "no wasm2c"
	echo '(module (import "env" "system" (func)) (memory (export "memory") 1) (func (export "_start")))' >bad.wat
	wat2wasm bad.wat -o bad.wasm
	"$ATOLL" tier prepare wasm --module bad.wasm --into "$PWD/into" --state "$state" 2>err && fail "it was compiled"
	has "$(cat err)" "'env' 'system' "
	is "$(ls into)" ''
	echo nonsense >bad.wasm
	"$ATOLL" tier prepare wasm --module bad.wasm --into "$PWD/into" --state "$state" 2>err && fail "it was compiled"
	is "$(ls into)" ''
}

python_as_wasm_runs_in_a_box_or_names_the_command() {
	echo 'import sys; print(sys.platform, 6 * 7, __name__)' >x.py
	api POST /v1/run '{"language": "python-wasm", "code": "import sys; print(sys.platform, 6 * 7, __name__)"}'
	if [ -x /usr/local/lib/atoll/wasm/python ]; then
		is "$code" 200
		is "$(get .stdout)" 'wasi 42 __main__'
		is "$("$ATOLL" run --lang python-wasm x.py)" 'wasi 42 __main__'
	else
		[ "$code" != 200 ] || fail "it ran"
		has "$body" 'atoll tier prepare wasm'
		"$ATOLL" run --lang python-wasm x.py 2>err && fail "it ran"
		has "$(cat err)" 'atoll tier prepare wasm'
	fi
}

# runs CODE [MORE FIELDS]: in the interpreter that `atoll tier prepare wasm` has compiled.
runs() { api POST /v1/run "$(jq -nc --arg code "$1" '{language: "python-wasm", code: $code} + '"${2:-{\}}")"; }
need_python() { [ -x /usr/local/lib/atoll/wasm/python ] || skip "atoll tier prepare wasm was not run"; }

sqlite_as_wasm_runs_in_a_box() {
	[ -x /usr/local/lib/atoll/wasm/sqlite ] || skip "atoll tier prepare wasm was not run"
	api POST /v1/run '{"language": "sqlite-wasm", "code": "create table t (a, b);\ninsert into t values (1, 2), (3, 4);\nselect sum(a), max(b) from t;"}'
	is "$(get .status) $(get .stdout)" '0 4|4'
	api POST /v1/run '{"language": "sqlite-wasm", "code": "select 1;\nselec 2;"}'
	is "$(get .status) $(get .stdout)" '1 1'
	has "$(get .stderr)" 'near line 2'
}

ruby_and_php_as_wasm_run_in_a_box() {
	[ -x /usr/local/lib/atoll/wasm/ruby ] && [ -x /usr/local/lib/atoll/wasm/php ] || skip "atoll tier prepare wasm was not run"
	api POST /v1/run '{"language": "ruby-wasm", "code": "puts __FILE__ == $0, 6 * 7\nraise ArgumentError, %q(no)"}'
	is "$(get .status) $(get .stdout | tr '\n' ' ')" '1 true 42  ' "$body"
	has "$(get .stderr)" "main.rbwasm:2:in \`<main>': no (ArgumentError)"
	api POST /v1/run '{"language": "php-wasm", "code": "<?php echo 6 * 7, \"\\n\"; missing();"}'
	is "$(get .status) $(get .stdout)" '255 42' "$body"
	has "$(get .stderr)" 'undefined function missing() in /home/user/main.phpwasm:1'
}

javascript_as_wasm_runs_in_a_box() {
	[ -x /usr/local/lib/atoll/wasm/javascript ] || skip "atoll tier prepare wasm was not run"
	cat >main.js <<'END'
setTimeout((x) => console.log('later', x), 2, { a: [1, 'b'] })
Promise.resolve(1).then((x) => print('job', x))
writeFile('note', 'ä' + readInput())
print(readFile('/home/user/note'), 2n ** 70n)
const deep = () => 1 + deep()
try { deep() } catch (e) { print(e) }
try { const all = []; for (;;) all.push(new Array(1e5).fill(1)) } catch (e) { print(e) }
END
	api POST /v1/run "$(jq -n --rawfile code main.js '{language: "javascript-wasm", code: $code, stdin: "in", limits: {mem: 134217728}}')"
	is "$(get .stdout)" "äin 1180591620717411303424
InternalError: stack overflow
InternalError: out of memory
job 1
later { a: [ 1, 'b' ] }" "$body"
	is "$(get .status)" 0
	api POST /v1/run '{"language": "javascript-wasm", "code": "const x = 1\nfunction f() {\n  return x.y.z\n}\nf()"}'
	is "$(get '"\(.status) \(.error.type) \(.error.message) \(.error.line)"')" "1 TypeError cannot read property 'z' of undefined 3" "$body"
	api POST /v1/run '{"language": "javascript-wasm", "code": "Promise.reject(new Error(`lost`))"}'
	is "$(get .status)" 1
	has "$(get .stderr)" "Error: lost"
	api POST /v1/run '{"language": "javascript-wasm", "code": "import { a } from `./m.js`", "files": {"m.js": "export const a = 5"}}'
	is "$(get .status)" 1 "a template is no module name"
	api POST /v1/run "$(jq -n '{language: "javascript-wasm", code: "import { a } from \"./m.js\"\nprint(a)", files: {"m.js": "export const a = 5"}}')"
	is "$(get '"\(.status) \(.stdout)"')" "0 5" "$body"
	for _ in 1 2; do
		api POST /v1/run '{"language": "javascript-wasm", "code": "print(Math.random(), Date.now())", "deterministic": true}'
		[ "${first-$(get .stdout)}" = "$(get .stdout)" ] || fail "$first and then $(get .stdout)"
		first=$(get .stdout)
	done
}

deterministic_runs_are_equal_and_need_a_language_of_the_tier() {
	api POST /v1/run '{"language": "python", "code": "1", "deterministic": true}'
	is "$code" 400
	has "$body" 'python has the clock and the random values of the machine'
	has "$body" 'python-wasm'
	api POST /v1/run '{"command": "true", "deterministic": true}'
	is "$code" 400
	need_python
	text='import os, random, time, uuid; print(time.time(), time.monotonic(), random.random(), os.urandom(8), uuid.uuid4(), {"a", "b", "c"})'
	runs "$text" '{deterministic: true}'
	first=$(get .stdout)
	has "$first" 1000000000.0
	runs "$text" '{deterministic: true}'
	is "$(get .stdout)" "$first"
	runs "$text"
	[ "$(get .stdout)" != "$first" ] || fail "a run has the clock of a deterministic one"
}

the_tier_wasm_is_for_modules_only() {
	api POST /v1/run '{"language": "python", "code": "1", "isolation": "wasm"}'
	is "$code" 409 "$body"
	has "$(get '.error.hints[] | select(startswith("wasm: "))')" "atoll "
	need_python
	# Before the proof: not offered.
	runs 'print(1)' '{isolation: "wasm"}'
	is "$code" 409 "$body"
	has "$(get '.error.hints[] | select(startswith("wasm: "))')" "not proven (atoll prove wasm)"
	atoll prove wasm --state "$state" --json
	is "$status" 0 "$(jq -c '.[0].probes[] | select(.verdict == "failed")' out) $err"
	proof=$(jq -r '.[0].id' out)
	has "$(jq -r '.[0].probes[] | select(.probe == "system calls" and .way == "WASM host") | .observed' out)" "25 of at most 28"
	api POST /v1/tiers/refresh
	is "$(get '.items[] | select(.tier == "wasm") | "\(.offered) \(.rank)"')" "true 3"
	has "$(get '.items[] | select(.tier == "wasm") | .version')" python
	api GET "/v1/proofs/$proof"
	is "$(get '.tier, .passed' | tr '\n' ' ')" "wasm true "
	api POST /v1/run '{"language": "python", "code": "1", "isolation": "wasm"}'
	is "$code" 409 "$body"
	has "$(get '.error.hints[] | select(startswith("wasm: "))')" "only for runs in a language that is a module, such as python-wasm"
	for more in '{isolation: "wasm"}' '{isolation: "wasm", trust: "untrusted"}' '{isolation: {at_least: "wasm"}}'; do
		runs 'import sys; print(sys.platform)' "$more"
		is "$code $(get .stdout)" '200 wasi' "$body"
		is "$(get '"\(.isolation.tier) \(.isolation.rank) \(.isolation.evidence)"')" "wasm 3 $proof"
	done
	api POST /v1/batch '{"isolation": "wasm", "items": [{"language": "python-wasm", "code": "print(6 * 7)"}]}'
	has "$body" 42
}

a_box_of_the_tier_wasm_executes_no_other_program() {
	need_python
	atoll prove wasm --state "$state" -q
	api POST /v1/tiers/refresh
	mkdir other
	(cd other && runs 'import sys; sys.stdin.read(); [None for i in iter(int, 1)]' '{isolation: "wasm", timeout_ms: 60000}') &
	waiting=$!
	its_box() { api GET /v1/boxes && box=$(get '[.items[] | select(.tier == "wasm" and .state == "running")][0].id // empty') && [ "$box" ]; }
	soon its_box
	api POST "/v1/boxes/$box/execs" '{"command": "id"}'
	is "$code" 403 "$body"
	has "$body" "'/bin/bash' is not a module: a box of the isolation tier wasm executes only modules"
	api POST "/v1/boxes/$box/execs" '{"command": ["/usr/local/lib/atoll/wasm/../../../../bin/id"]}'
	is "$code" 403 "$body"
	api DELETE "/v1/boxes/$box"
	wait $waiting || :
}

one_changed_byte_of_a_module_withdraws_the_tier() {
	need_python
	# A copy of the folder cannot be selected, so the time of a file is changed: its proof has another key then.
	touch -h /usr/local/lib/atoll/wasm/*/data
	api POST /v1/tiers/refresh
	has "$(get '.items[] | select(.tier == "wasm") | .reason')" "not proven (atoll prove wasm)"
}

python_as_wasm_has_its_limits_and_no_way_out() {
	need_python
	runs 'import sys
try: x = bytearray(400 << 20)
except MemoryError: print("MemoryError")
x = bytearray(100 << 20)
def f(n): return f(n + 1)
try: f(0)
except RecursionError: print("RecursionError")
for path in "/etc/passwd", "../../etc/passwd", "/proc/self/maps", "/usr/local/lib/x":
    try: print(open(path, "w" if path[-1] == "x" else "r"))
    except OSError as e: print("no", path)
import subprocess, socket, threading
for name, attempt in ("subprocess", lambda: subprocess.run(["true"])), ("socket", lambda: socket.socket().connect(("127.0.0.1", 1))), ("thread", lambda: threading.Thread(target=print).start()):
    try: print(name, attempt())
    except Exception as e: print("no", name)
open("made", "w").write("by a module")
sys.exit(7)' '{limits: {mem: 536870912}, artifacts: ["made"]}'
	is "$code" 200 "$body"
	is "$(get .stdout)" 'MemoryError
RecursionError
no /etc/passwd
no ../../etc/passwd
no /proc/self/maps
no /usr/local/lib/x
no subprocess
no socket
no thread'
	is "$(get .status)" 7
	runs 'while True: pass' '{timeout_ms: 500}'
	is "$(get .cause)" wall
	runs 'def f():
    raise ValueError("so")
f()'
	is "$(get .status)" 1
	has "$(get .stderr)" 'line 2, in f'
	lacks "$(get .stderr)" _run
}

run_daemon_tests
