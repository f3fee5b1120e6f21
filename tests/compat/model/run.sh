#!/bin/sh
# run.sh - two hundred pipelines against a scripted model from npm: three dialects, replies that are wrong in
# every way, and what was paid for, to the token.
#
#	tests/run tests/compat/model/run.sh
#
# The package comes from npm, at the version of package.json, into a folder outside of the tree:
# MODEL_COMPAT_CACHE, or below ~/.cache.
top=$(cd "$(dirname "$0")/../../.." && pwd)
compat=$top/tests/compat/model
libs=$top/tests/system
. "$libs/daemon.lib"
cache=${MODEL_COMPAT_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/atoll/model}

need_packages() {
	command -v npm >/dev/null || { echo "1..0 # SKIP no npm"; exit 0; }
	mkdir -p "$cache" && cmp -s "$compat/package.json" "$cache/installed" && return
	cp "$compat/package.json" "$compat/.npmrc" "$cache/" &&
		npm install --prefix "$cache" --no-audit --no-fund --ignore-scripts --prefer-offline >"$cache/npm.log" 2>&1 &&
		cp "$compat/package.json" "$cache/installed" && return
	echo "1..0 # SKIP npm cannot install it: $(grep -m 1 'npm error' "$cache/npm.log" | cut -c 1-100)"
	exit 0
}

models() { # DIALECT PORT
	case $1 in messages) base=http://127.0.0.1:$2 ;; *) base=http://127.0.0.1:$2/v1 ;; esac
	printf '[provider.mock]\ndialect = "%s"\nbase = "%s"\nkey = "sk-of-the-mock"\n' "$1" "$base"
	for role in planner coder debugger; do
		printf '[model.%s]\nprovider = "mock"\nname = "%s"\nprice = { in = 1, out = 10 }\n' $role $role
	done
	printf '[role]\nplanner = ["planner"]\ncoder = ["coder"]\ndebugger = ["debugger"]\n'
}

# drive DIALECT COUNT: the mock and the client of the pipelines are one program; the daemon is started in between.
drive() {
	rm -f "$work/port" "$work/go"
	mkfifo "$work/go"
	MODEL_PACKAGES=$cache timeout 150 node "$compat/pipelines.mjs" "$work/port" "$1" "$2" <"$work/go" >"$work/tap" 2>&1 &
	driver=$!
	exec 9>"$work/go"
	soon test -s "$work/port"
	models "$1" "$(cat "$work/port")" >"$work/models.toml"
	chmod 600 "$work/models.toml"
	export ATOLL_MODELS="$work/models.toml"
	if [ "$key" ]; then start_daemon; else need_daemon; fi
	echo "$url $key" >&9
	exec 9>&-
	wait $driver
	status=$?
	grep '^#\|^ok\|^not ok' "$work/tap" | tee -a "$work/all"
	grep -q '^# ran ' "$work/tap" || {
		echo "not ok - models, $1: comes to its end" | tee -a "$work/all"
		tail -5 "$work/tap" | sed "s/^/# status $status: /"
	}
	stop_daemon
}

need_packages
key=
for dialect in chat responses messages; do
	drive $dialect 68
done
verdict=ok
! grep '"level":"error"' "$work/serve.log" | sed 's/^/# /' | grep . || verdict='not ok'
echo "$verdict - models: the daemon had nothing to complain of" | tee -a "$work/all"
echo "1..$(grep -c '^ok \|^not ok ' "$work/all")"
! grep -q '^not ok' "$work/all"
