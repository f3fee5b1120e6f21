#!/bin/sh
# installs.sh - package managers in a box: from the registry that the operator has named, through every API; and
# what they say without one.
. "$(dirname "$0")/daemon.lib"
slow_tests="npm_install_works_by_the_command_line
	web_templates_of_python_are_built_from_the_index
	go_get_works"

# A real package that every installation of npm contains.
for ms in /usr/lib/node_modules/npm/node_modules/ms /usr/share/nodejs/ms /usr/share/npm/node_modules/ms; do
	[ -f "$ms/package.json" ] && break
done
mkfifo "$work/registry.in" "$work/names.in"
python3 "$here/package_registry.py" "$work/registry.log" "$ms" <"$work/registry.in" >"$work/registry.port" &
exec 8>"$work/registry.in"
python3 "$here/registry.py" "$work/names.log" <"$work/names.in" >"$work/names.port" &
exec 7>"$work/names.in"
soon grep -q port= "$work/registry.port"
soon grep -q dns= "$work/names.port"
eval "$(cat "$work/registry.port" "$work/names.port")"
# shellcheck disable=SC2154 # by the line above
export registry="registry.test:$port" ATOLL_EGRESS_DNS="127.0.0.1:$dns"

# says COMMAND: executes it in the box; sets code and out.
says() {
	api POST "/v1/boxes/$box/execs" "$(jq -nc --arg c "$1" '{command:$c}')"
	out=$(get .stdout)
}
way_open() { api GET "/v1/boxes/$box/network" && [ "$(get .open)" = true ]; }
gone() { api DELETE "/v1/boxes/$box"; }
seen() { grep -cF "$1" "$work/registry.log" || :; }
installed='node -p "require(\"ms\")(60000)"' # what shows that the package works
py() { python3 "$here/process.py" "$@"; }
# mcp TOOL ARGUMENTS
mcp() {
	code=$(curl -sS -o body -w '%{http_code}' -H "Authorization: Bearer $key" -H 'Content-Type: application/json' \
		-H 'Accept: application/json, text/event-stream' -H 'MCP-Protocol-Version: 2026-07-28' \
		-H 'Mcp-Method: tools/call' -H "Mcp-Name: $1" "$url/mcp" --data-binary "$(jq -nc --arg t "$1" --argjson a "$2" \
		'{jsonrpc:"2.0", id:1, method:"tools/call", params:{name:$t, arguments:$a, _meta:{
			"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}')")
	body=$(cat body)
}

# ---- with registries ----

npm_install_works_in_a_shell_of_a_default_box() {
	new_box
	is "$(get '.network.allow | length')" 0
	soon way_open # the daemon has just started
	says "npm install ms >/dev/null && $installed"
	is "$out" 1m "$body"
	soon network_is '[.recent[].host] | unique | join(",")' registry.test
	is "$(get '.registries | join(",")')" "$registry"
	says "npm install -g ms >/dev/null && ls ~/.local/lib/node_modules"
	is "$out" ms "$body"
	gone
}

a_program_without_proxy_variables_reaches_the_registry_only() {
	new_box
	captured() { api GET "/v1/boxes/$box/network" && [ "$(get .transparent)" = true ]; }
	soon captured
	says "curl -sS --noproxy '*' -o /dev/null -w '%{http_code}' http://$registry/npm/ms; curl -sS --noproxy '*' http://example.org/"
	is "$out" 200 "$body"
	has "$(get .stderr)" "Could not resolve host"
	gone
}

npm_install_works_on_a_terminal() {
	new_box
	api POST "/v1/boxes/$box/execs" "$(jq -nc --arg c "npm install ms >/dev/null; $installed" '{command:$c, pty:{rows:24, cols:80}}')"
	has "$(get .stdout)" 1m "$body"
	gone
}

npm_install_works_by_the_command_line() {
	export ATOLL_HOST="$url" ATOLL_KEY="$key"
	name=$("$ATOLL" new --quiet)
	atoll exec "$name" -- sh -c "npm install ms >/dev/null && $installed"
	is "$status $out" "0 1m" "$err"
	atoll rm "$name"
}

install_packages_works_by_the_tool_api() {
	new_box
	api POST "/v1/boxes/$box/tools/install_packages" '{"manager":"npm","packages":["ms"]}'
	is "$code $(get .is_error)" "200 false" "$body"
	says "$installed"
	is "$out" 1m "$body"
	gone
}

install_packages_works_by_mcp() {
	mcp create_box '{}'
	box=$(get .result.structuredContent.id)
	mcp install_packages "$(jq -nc --arg b "$box" '{box:$b, manager:"npm", packages:["ms"]}')"
	is "$code $(get .result.isError)" "200 false" "$body"
	says "$installed"
	is "$out" 1m "$body"
	gone
}

install_works_in_a_run_request() {
	api POST /v1/run "$(jq -nc '{language:"javascript", code:"console.log(require(\"ms\")(60000))", install:"npm install ms"}')"
	is "$(get .stdout | grep '^1')" 1m "$body"
	api POST /v1/run "$(jq -nc --arg c "npm install ms >/dev/null && $installed" '{command:$c}')"
	is "$(get .stdout)" 1m "$body"
	api POST /v1/run '{"language":"python","code":"import tiny; tiny.main()","install":"pip install tiny"}'
	is "$(get .stdout | grep '^tiny')" "tiny 1.0" "$body"
}

install_dependencies_command_works() {
	api POST /api/sandbox "$(jq -nc '{template:"base", code:"console.log(require(\"ms\")(60000))", file_path:"a.js",
		install_dependencies_command:"npm install ms"}')"
	is "$code $(get '.stdout | join("")' | grep '^1')" "200 1m" "$body"
	box=$(get .sbxId)
	gone
}

install_works_in_an_e2b_sandbox() {
	api POST /v2/sandboxes '{"templateID":"base","timeout":120}'
	is "$code" 201 "$body"
	box=$(get .sandboxID) token=$(get .envdAccessToken)
	export box token
	is "$(py command "npm install ms >/dev/null && $installed")" 1m
	api POST /v2/sandboxes '{"templateID":"base","timeout":120,"allow_internet_access":false,"metadata":{"a":"b"}}'
	box=$(get .sandboxID) token=$(get .envdAccessToken)
	api GET "/sandboxes/$box"
	is "$(get '.metadata | tojson')" '{"a":"b"}' "$body"
	has "$(py command "npm install ms 2>&1 || :")" no-registry-is-configured-for-this-box
	api DELETE "/sandboxes/$box"
}

pip_installs_for_the_user_and_its_scripts_are_on_the_path() {
	new_box
	says 'pip install tiny >/dev/null && tiny-say && python3 -c "import tiny; tiny.main()"'
	is "$out" "tiny 1.0
tiny 1.0" "$body"
	gone
}

# The templates are those of the server; the packages of the index are small ones of the same names.
web_templates_of_python_are_built_from_the_index() {
	for t in streamlit-developer gradio-developer; do
		api POST /v1/templates "{\"name\":\"$t\"}"
		is "$code" 202 "$body"
		echo "$(get .id)" >"$t.build"
	done
	shows streamlit-developer 8501 'streamlit shows import streamlit as st'
	shows gradio-developer 7860 'gradio shows Hello you'
}

# shows TEMPLATE PORT TEXT: what the server of a box of the template answers.
shows() {
	id=$(cat "$1.build")
	soon ended
	is "$(get .state)" ready "$body"
	new_box "{\"template\":\"$1\"}"
	answers() { says "curl -sS --max-time 5 http://127.0.0.1:$2/ | head -1" && [ "$out" = "$3" ]; }
	soon answers "$@" || fail "$out"
	gone
}
ended() { api GET "/v1/builds/$id" && case $(get .state) in waiting | building) false ;; esac; }

go_get_works() {
	command -v go >/dev/null || skip "no Go compiler on this host"
	new_box
	says 'go mod init x 2>/dev/null; go get example.org/hello && go list -m example.org/hello'
	is "$out" "example.org/hello v1.0.0" "$body"
	gone
}

other_hosts_are_refused_with_the_reason() {
	new_box
	says "curl -s -w ' %{http_code} %{time_total}' http://example.org/"
	case $out in *'does not permit example.org:80'*'403 '*) ;; *) fail "$out" ;; esac
	echo "# refused after ${out##* } s"
	says "curl -sS https://example.org/ 2>&1"
	has "$out" 403
	# Only the port of the registry.
	says "curl -s -o /dev/null -w '%{http_code}' http://registry.test:1/"
	is "$out" 403
	gone
}

code_of_a_run_reaches_no_registry() {
	api POST /v1/run "$(jq -nc --arg u "http://$registry/" '{language:"python", code:"import urllib.request as u, sys; u.urlopen(sys.argv[1])", args:[$u]}')"
	is "$(get .status)" 1 "$body"
	api POST /v1/run "$(jq -nc --arg u "http://$registry/npm/ms" '{language:"python", network:{registries:true},
		code:"import urllib.request as u, sys; print(u.urlopen(sys.argv[1]).status)", args:[$u]}')"
	is "$(get .stdout)" 200 "$body"
}

a_box_can_decline_the_registries() {
	before=$(seen /npm/ms)
	new_box '{"network":{"registries":false},"metadata":{"a":"b"}}'
	is "$(get .metadata.a)" b
	says "npm install ms"
	[ "$(get .status)" != 0 ] || fail "$body"
	has "$(get .hint)" 'may not reach the registry of npm'
	api POST "/v1/boxes/$box/tools/install_packages" '{"manager":"npm","packages":["ms"]}'
	is "$(get .data.error.code)" no_network "$body"
	is "$(seen /npm/ms)" "$before"
	gone
	mcp create_box '{"network":{"allow":[],"registries":false}}'
	box=$(get .result.structuredContent.id)
	says "curl -s http://$registry/npm/ms"
	[ "$(get .status)" != 0 ] || fail "$body"
	gone
}

the_hint_of_a_manager_without_a_registry_names_its_setting() {
	new_box
	says 'gem install little'
	has "$(get .hint)" 'packages.gem_source'
	gone
}

installs_work_after_a_restart_of_the_server() {
	new_box
	kill -9 "$(server_pid)"
	soon way_open
	says "npm install ms >/dev/null && $installed"
	is "$out" 1m "$body"
	gone
}

# ---- without ----

without_a_registry_every_api_names_the_setting() {
	supervisor=$(cat "$work/supervisor")
	stop_daemon
	unset ATOLL_PIP_INDEX ATOLL_NPM_REGISTRY ATOLL_GO_PROXY
	start_daemon
	new_box
	from=$(date +%s%N)
	says 'pip install tiny 2>&1'
	echo "# pip failed after $((($(date +%s%N) - from) / 1000000)) ms"
	has "$out" no-registry-is-configured-for-this-box/see-packages.pip_index "$body"
	has "$(get .hint)" 'no registry for pip packages is configured, and more time will not help: the operator names one with packages.pip_index'
	from=$(date +%s%N)
	says 'npm install ms 2>&1'
	echo "# npm failed after $((($(date +%s%N) - from) / 1000000)) ms"
	has "$out" no-registry-is-configured-for-this-box/see-packages.npm_registry "$body"
	has "$(get .hint)" packages.npm_registry
	api POST "/v1/boxes/$box/tools/install_packages" '{"packages":["tiny"]}'
	is "$(get .data.error.code)" not_configured "$body"
	has "$(get .data.error.message)" packages.pip_index
	mcp install_packages "$(jq -nc --arg b "$box" '{box:$b, packages:["tiny"]}')"
	has "$body" packages.pip_index
	gone
	api POST /v1/run '{"language":"python","code":"print(1)","install":"pip install tiny"}'
	has "$(get .hint)" packages.pip_index "$body"
	api POST /api/sandbox '{"template":"base","code":"print(1)","file_path":"a.py","install_dependencies_command":"pip install tiny"}'
	has "$(get .runtimeError.value)" packages.pip_index "$body"
	api POST /v2/sandboxes '{"templateID":"base","timeout":120}'
	box=$(get .sandboxID) token=$(get .envdAccessToken)
	export box token
	has "$(py command "pip install tiny 2>&1 || :")" packages.pip_index
}

a_box_with_hosts_of_its_own_keeps_the_defaults_of_its_managers() {
	supervisor=$(cat "$work/supervisor")
	stop_daemon
	unset ATOLL_PIP_INDEX ATOLL_NPM_REGISTRY ATOLL_GO_PROXY
	export ATOLL_EGRESS_ALLOW=packages.example
	start_daemon
	new_box '{"network":{"allow":["packages.example"]}}'
	says 'echo "$PIP_INDEX_URL$NPM_CONFIG_REGISTRY$NPM_CONFIG_FETCH_RETRIES."'
	is "$out" .
	gone
}

export ATOLL_PIP_INDEX="http://$registry/simple" ATOLL_NPM_REGISTRY="http://$registry/npm" ATOLL_GO_PROXY="http://$registry/go"
export ATOLL_EGRESS_INTERNAL="$registry"
run_daemon_tests
exec 7>&- 8>&-
