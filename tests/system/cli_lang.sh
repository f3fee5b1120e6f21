#!/bin/sh
# cli_lang.sh - languages on the command line: list, versions, compilers, --watch, the compile cache.
. "$(dirname "$0")/lib.sh"
need_keeper

lang_lists_versions_and_how_to_install_missing_languages() {
	atoll lang
	is "$status" 0
	has "$out" "python"
	has "$out" "$(/usr/bin/python3 --version | cut -d ' ' -f 2)"
	[ -e /usr/bin/julia ] || has "$(echo "$out" | grep '^julia')" " - "
	[ -e /usr/bin/julia ] || has "$out" "julia: this distribution has no package"
	atoll lang --json
	is "$(jq -r '.items[] | select(.name == "c") | .here' out)" true
	is "$(jq -r '.items | map(select(.here and (.version == null))) | length' out)" 0
	[ "$(jq -r .install out)" = null ] || has "$(jq -r .install out)" "sudo apt-get install"
}

a_language_is_shown_by_any_of_its_names() {
	atoll lang cpp
	has "$out" "C++"
	has "$out" "compiler   gcc"
	atoll lang rs --json
	is "$(jq -r .name out)" rust
	atoll lang rusty
	is "$status" 2
	has "$err" "close: rust"
	atoll lang python extra
	is "$status" 2
}

the_example_program_of_each_language_runs() {
	"$ATOLL" lang sh --hello >hello
	run --lang sh - <hello
	is "$out" "hello from bash" "$err"
	"$ATOLL" lang py --selftest | "$ATOLL" run -l py - >out
	is "$(cat out)" ok
	atoll lang --hello
	is "$status" 2
}

a_missing_language_names_the_package_to_install() {
	[ ! -e /usr/bin/julia ] || skip "julia is installed"
	echo 'println(1)' >x.jl
	run x.jl
	is "$status" 127
	has "$err" "julia is not installed"
	has "$err" "install:"
}

a_requested_version_is_used_or_rejected() {
	version=$(/usr/bin/python3 --version | cut -d ' ' -f 2 | cut -d . -f 1,2)
	echo 'print(1)' >x.py
	run -t "python@$version" x.py
	is "$out" 1 "$err"
	run -t python@2.7 x.py
	is "$status" 127
	has "$err" "python 2.7 is not on this machine (there is $version."
}

an_error_of_the_compiler_is_in_the_record() {
	printf 'int main(void)\n{\n\treturn x;\n}\n' >bad.c
	run --report r.json bad.c
	is "$(json r.json 'd["step"]')" compile
	is "$(json r.json '[(e["file"], e["line"], e["column"], e["severity"]) for e in d["errors"]][0]')" \
		"('bad.c', 3, 9, 'error')"
	echo 'raise KeyError("k")' >bad.py
	run --json bad.py
	is_json "$(jq .error out)" "{\"type\":\"KeyError\",\"message\":\"'k'\",\"file\":\"bad.py\",\"line\":1}"
	is "$(jq -r .step out)" run
}

the_compiler_can_be_chosen() {
	[ -x /usr/bin/clang ] || skip "no clang"
	printf '#include <stdio.h>\nint main(void)\n{\n#ifdef __clang__\nputs("clang");\n#else\nputs("gcc");\n#endif\n}\n' >x.c
	run --compiler clang x.c
	is "$out" clang "$err"
	run --compiler gcc x.c
	is "$out" gcc "$err"
	run --compiler tcc x.c
	is "$status" 2
	has "$err" "c has no compiler named 'tcc'"
	echo 1 >x.py
	run --compiler clang x.py
	is "$status" 2
}

a_project_folder_is_run_by_its_entry_file() {
	mkdir p
	printf '#include <stdio.h>\nint f(void);\nint main(void) { printf("%%d\\n", f()); }\n' >p/main.c
	printf 'int f(void) { return 42; }\n' >p/f.c
	run -w p p/main.c
	is "$out" 42 "$err"
}

# ---- again ----

watch() {
	"$ATOLL" run --watch "$@" >wout 2>werr </dev/null &
	watcher=$!
	trap 'kill "$watcher" 2>/dev/null || :' EXIT # of this test
}
lines() { [ "$(grep -c "$2" "$1")" -ge "$3" ]; }

watch_runs_a_changed_file_again() {
	echo 'print("one")' >x.py
	watch x.py
	soon lines werr "waiting for changes" 1
	echo 'print("two")' >x.py
	soon lines wout two 1
	soon lines werr "waiting for changes" 2
	# As editors save files.
	echo 'print("three")' >.x.new
	mv .x.new x.py
	soon lines wout three 1
	has "$(cat werr)" "'x.py' changed, running again"
	touch other.py
	kill "$watcher"
	wait "$watcher" || :
	is "$(tr '\n' ' ' <wout)" "one two three "
}

watch_ends_the_running_program_before_the_next_run() {
	mkdir p
	echo 'import time; print("first", flush=True); time.sleep(4731)' >p/x.py
	watch -w p p/x.py
	soon lines wout first 1
	echo 'print("second")' >p/x.py
	soon lines wout second 1
	soon no_process 4731
	kill -INT "$watcher"
	wait "$watcher" || :
}

watch_needs_a_file() {
	run --watch - </dev/null
	is "$status" 2
	has "$err" "no file to watch"
	run --watch -- true
	is "$status" 2
	run --watch nosuch/x.py
	is "$status" 125
	has "$err" "watch 'nosuch/'"
}

# ---- the compile cache ----

an_unchanged_program_is_compiled_once() {
	command -v gcc >/dev/null || skip "no C here"
	export XDG_CACHE_HOME="$PWD/cache"
	mkdir cache
	cached() { grep -q 'compiled before' said; }
	go() { status=0; "$ATOLL" run -v "$@" >out 2>said || status=$?; }
	printf '#include <stdio.h>\nint main(int n, char **v) { puts(n > 1 ? v[1] : "none"); return n; }\n' >a.c
	go a.c
	is "$status $(cat out)" "1 none"
	cached && fail "the first one"
	go a.c x
	is "$status $(cat out)" "2 x"
	cached || fail "not from the cache: $(cat said)"
	# From stdin the path that the compiler sees differs: compiled once more.
	go -t c - <a.c
	cached && fail "another path"
	# Everything that the compiler sees is in the cache key.
	go -e CPATH=/usr/include a.c
	cached && fail "another variable"
	sed 's/none/less/' a.c >b.c && mv b.c a.c
	go a.c
	is "$(cat out)" less
	cached && fail "another text"
	go --cold a.c
	cached && fail "--cold"
	go -w . a.c
	cached && fail "a folder"
	# A program that fails to compile, has warnings or uses the time is not cached.
	echo 'int main(void) { return x; }' >bad.c
	go bad.c && go bad.c
	is "$status" 1
	cached && fail "a failure"
	printf '#include <stdio.h>\n#warning seen\nint main(void) { return 0; }\n' >warns.c
	go warns.c && go warns.c
	has "$(cat said)" "seen"
	printf '#include <stdio.h>\nint main(void) { puts(__TIME__); return 0; }\n' >time.c
	go time.c && go time.c
	cached && fail "the time"
	# A changed or truncated cache file is not used.
	go a.c
	cached || fail "not from the cache"
	for f in cache/atoll/made/*; do printf x | dd of="$f" bs=1 seek=5000 conv=notrunc 2>/dev/null; done
	go a.c
	is "$(cat out)" less
	cached && fail "a file that was changed"
	is "$(stat -c %a cache/atoll/made)" 700
	# Without a cache folder there is no cache and no error.
	status=0
	XDG_CACHE_HOME=/proc/none "$ATOLL" run a.c >out 2>err || status=$?
	is "$status $(cat out) $(cat err)" "1 less "
	status=0
	env -u XDG_CACHE_HOME -u HOME "$ATOLL" run a.c >out 2>err || status=$?
	is "$status $(cat out) $(cat err)" "1 less "
	chmod 777 cache/atoll
	go a.c
	cached && fail "a folder that others may write to"
	:
}

run_tests
