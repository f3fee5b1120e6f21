#!/bin/sh
# run.sh - the official clients of MCP, OpenAI and Anthropic, as published, against a daemon: both eras, HTTP
# and stdio, and loops of a scripted model. The public conformance suite, too, where node is new enough.
#
#	tests/run tests/compat/mcp/run.sh
#	MCP_PARTS=conformance MCP_NODE=/path/to/node22 tests/run tests/compat/mcp/run.sh
#
# The packages come from npm, at the versions of package.json, into a folder outside of the tree:
# MCP_COMPAT_CACHE, or below ~/.cache.
top=$(cd "$(dirname "$0")/../../.." && pwd)
compat=$top/tests/compat/mcp
libs=$top/tests/system
. "$libs/daemon.lib"
. "$top/tests/compat/node.lib"
cache=${MCP_COMPAT_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/atoll/mcp}
parts=${MCP_PARTS:-loops clients conformance}
node22=${MCP_NODE:-node}

# packages FROM TO: those of a package.json; installed once per list of versions.
packages() {
	mkdir -p "$2" || return 1
	cmp -s "$1/package.json" "$2/installed" && return
	cp "$1/package.json" "$compat/.npmrc" "$2/" &&
		npm install --prefix "$2" --no-audit --no-fund --ignore-scripts --prefer-offline >"$2/npm.log" 2>&1 &&
		cp "$1/package.json" "$2/installed"
}
need_packages() {
	use_node 20
	packages "$compat" "$cache" && return
	echo "1..0 # SKIP npm cannot install them: $(grep -m 1 'npm error' "$cache/npm.log" | cut -c 1-100)"
	exit 0
}

# drive WORDS...: runs a script that prints TAP without numbers.
drive() {
	timeout 120 node "$compat/$@" >"$work/tap" 2>&1
	status=$?
	grep '^#\|^ok\|^not ok' "$work/tap" | tee -a "$work/all"
	[ $status = 0 ] || grep -q '^not ok' "$work/tap" || {
		echo "not ok - $*: comes to its end" | tee -a "$work/all"
		tail -5 "$work/tap" | sed "s/^/# status $status: /"
	}
}

# newer: 1 unless there is a node for the suite and the Inspector, and their packages; npm has one, too.
newer() {
	packages "$compat/newer" "$cache/newer" || {
		echo "ok - mcp conformance, inspector # SKIP npm cannot install them" | tee -a "$work/all"
		return 1
	}
	for node in "$cache"/newer/node_modules/node-linux-*/bin/node; do
		[ "${MCP_NODE-}" ] || ! "$node" -v >/dev/null 2>&1 || node22=$node
	done
	"$node22" -e 'const [a, b] = process.versions.node.split("."); process.exit(a * 100 + b * 1 < 2219 ? 1 : 0)' || {
		echo "ok - mcp conformance, inspector # SKIP they need node 22.19, this is $("$node22" -v)" | tee -a "$work/all"
		return 1
	}
}

# inspector NAME WORDS...: its command line, calling a tool.
inspector() {
	title=$1 verdict=ok
	shift
	PATH=$(dirname "$(command -v "$node22")"):$PATH timeout 60 "$node22" "$cache/newer/node_modules/.bin/mcp-inspector" --cli "$@" \
		>"$work/said" 2>&1 && grep -q '"isError": false' "$work/said" && grep -q forty-two "$work/said" || verdict='not ok'
	[ "$verdict" = ok ] || tail -5 "$work/said" | sed 's/^/# /'
	echo "$verdict - mcp inspector, $title" | tee -a "$work/all"
}
inspect() {
	set -- --method tools/call --tool-name run_command --tool-args-json '{"command":"echo forty-two"}'
	for era in legacy modern; do
		inspector "http, $era" "$url/mcp" --header "Authorization: Bearer $key" --protocol-era $era "$@"
		inspector "stdio, $era" -e ATOLL_KEY="$key" --protocol-era $era "$@" -- "$ATOLL" -H "$url" mcp
	done
}

# The suite sends no key: a proxy in front of the daemon adds one.
conformance() {
	newer || return
	revisions='2026-07-28 2025-11-25'
	if [ "${ATOLL_QUICK:-0}" = 1 ]; then revisions=${revisions%% *}; else inspect; fi # ./check leaves the rest to ./check --all
	if [ -x "${ATOLL_TEST_BIN-}" ]; then
		stop_daemon
		ATOLL=$ATOLL_TEST_BIN start_daemon
	fi
	node "$compat/doorman.mjs" "${url##*:}" "$key" >"$work/doorman" &
	doorman=$!
	soon grep -q . "$work/doorman"
	# Only a test build has the tools that most of the suite calls.
	fixtures=without
	curl -sS "$url/mcp" -H "X-API-Key: $key" -H 'MCP-Protocol-Version: 2026-07-28' -H 'Mcp-Method: tools/list' --data-binary \
		'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}' |
		grep -q test_simple_text && fixtures=with
	for version in $revisions; do
		verdict=ok
		timeout 150 "$node22" "$cache/newer/node_modules/.bin/conformance" server --url "http://127.0.0.1:$(cat "$work/doorman")/mcp" \
			--requirements $version --timeout 10000 --expected-failures "$compat/$fixtures-$version.yaml" \
			>"$work/suite" 2>&1 || verdict='not ok'
		sed 's/\x1b\[[0-9;]*m//g' "$work/suite" | grep -A 40 'Unexpected\|Stale' | sed 's/^/# /'
		echo "$verdict - mcp conformance, $version, $fixtures fixtures" | tee -a "$work/all"
	done
	kill $doorman
}

need_packages
need_daemon
export MCP_URL="$url" MCP_KEY="$key" MCP_ATOLL="$ATOLL" MCP_PACKAGES="$cache"
for part in $parts; do
	case $part in
	loops) drive loops.mjs ;;
	clients)
		drive clients.mjs 1 http legacy
		drive clients.mjs 1 stdio legacy
		drive clients.mjs 2 http legacy
		drive clients.mjs 2 http auto
		drive clients.mjs 2 stdio auto
		;;
	conformance) conformance ;;
	esac
done
verdict=ok
! grep '"level":"error"' "$work/serve.log" | sed 's/^/# /' | grep . || verdict='not ok'
echo "$verdict - mcp: the daemon had nothing to complain of" | tee -a "$work/all"
echo "1..$(grep -c '^ok \|^not ok ' "$work/all")"
! grep -q '^not ok' "$work/all"
