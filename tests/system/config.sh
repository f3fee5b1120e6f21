#!/bin/sh
# config.sh - atoll config: effective settings, their source, and errors in a file.
. "$(dirname "$0")/lib.sh"
page=$here/../../man/atoll.1
key=e2b_0123456789abcdef0123456789abcdef01234567

# Settings of this machine have no effect here.
clean() {
	for name in $(env | sed -n 's/^\(ATOLL_[A-Z_]*\)=.*/\1/p'); do
		case $name in ATOLL_INIT | ATOLL_TEST_BIN) ;; *) unset "$name" ;; esac
	done
	mkdir -p xdg/atoll
	export XDG_CONFIG_HOME="$PWD/xdg"
}

config_show_prints_every_setting_and_its_source() {
	clean
	printf '[serve]\ndrain = "5s"\n' >xdg/atoll/config.toml
	ATOLL_POOL=7 atoll config show --origin
	is "$status" 0 "$err"
	has "$out" "$PWD/xdg/atoll/config.toml:2"
	echo "$out" | grep -qE '^keeper.pool +7 +ATOLL_POOL$' || fail "$out"
	echo "$out" | grep -qE '^serve.listen +127.0.0.1:7070 +default$' || fail "$out"
	atoll config show
	lacks "$out" config.toml
}

config_show_json_has_typed_values() {
	clean
	printf '[serve]\nlisten = [":1", "unix:/a"]\n[metrics]\npublic = true\n' >f.toml
	atoll config show --config f.toml --json
	is "$(json out 'd["serve.listen"]["value"]')" "[':1', 'unix:/a']"
	is "$(json out 'd["serve.listen"]["where"]')" "f.toml:2"
	is "$(json out 'd["serve.listen"]["from"]')" file
	is "$(json out 'd["metrics.public"]["value"]')" True
	is "$(json out 'd["keeper.pool"]["value"]')" 4
	is "$(json out 'd["limits.max_boxes"]["value"]')" None
	is "$(json out 'd["serve.drain"]["value"]')" 30s
	is "$(json out 'd["host"]["value"]')" None
}

config_get_prints_only_the_value() {
	clean
	is "$("$ATOLL" config get serve.drain)" 30s
	is "$(ATOLL_LISTEN=:1,:2 "$ATOLL" config get serve.listen)" ":1
:2"
	is "$("$ATOLL" config get --json keeper.pool)" 4
	atoll config get host
	is "$status $out$err" "1 "
}

config_get_suggests_a_similar_setting() {
	clean
	atoll config get serve.lisen
	is "$status" 3
	has "$err" "close: atoll config get serve.listen"
	atoll config get drain
	has "$err" "atoll config get serve.drain"
}

an_api_key_is_shown_only_by_its_first_letters() {
	clean
	export ATOLL_KEY=$key
	for words in "show" "show --json" "show --origin" "get key" "get key --json"; do
		atoll config $words
		has "$out" "e2b_0123…"
		lacks "$out$err" 456789
	done
	printf 'key = %s\n' "$key" >f.toml # the quotes are missing
	atoll config check f.toml
	is "$status" 1
	lacks "$out$err" 456789
}

config_check_prints_the_line_of_an_error() {
	clean
	printf '[serve]\nlisten = [":7070"]\nlimit = 1\n' >f.toml
	atoll config check f.toml
	is "$status" 1
	has "$err" "atoll: f.toml:3: no setting named 'serve.limit'"
	printf '[serve]\nlisten = "x\n' >f.toml
	atoll config check f.toml --json
	is "$status" 1
	is "$(json err 'd["error"]["message"]')" "f.toml:2:10: a string that does not end on its line"
	atoll config check nowhere.toml
	is "$status" 1
	has "$err" "No such file"
}

config_check_reads_only_the_given_file() {
	clean
	printf '[keeper]\npool = 2\n' >f.toml
	ATOLL_POOL=many atoll config check f.toml
	is "$status" 0 "$err"
	has "$out" "1 settings differ"
	ATOLL_POOL=many atoll config check
	is "$status" 1
	has "$err" "ATOLL_POOL"
}

a_project_file_is_found_from_subfolders_and_may_not_set_the_host() {
	clean
	mkdir -p p/a/b
	printf '[box]\nmem = "1G"\n' >p/atoll.toml
	is "$(cd p/a/b && "$ATOLL" config get box.mem)" 1G
	printf 'host = "http://127.0.0.1:1"\n' >p/atoll.toml
	cd p/a/b
	atoll config get host
	is "$status" 1
	has "$err" "may not be set by a project's file"
}

# NO_PROXY of a box has these names: its programs would look for such a server in the box.
a_server_at_the_loopback_address_of_a_box_is_refused() {
	clean
	for line in 'egress.allow_internal = ["localhost:8097"]' 'egress.allow_internal = ["127.0.0.1:80"]' \
		'egress.allow_internal = ["[::1]:80"]' 'egress.allow = ["a.localhost"]' 'packages.hosts = ["localhost"]' \
		'packages.pip_index = "http://127.0.0.1:3141/simple"' 'packages.apt_mirrors = ["http://localhost/debian"]'; do
		echo "$line" >c.toml
		atoll config check c.toml
		is "$status" 1 "$line $out"
		has "$err" "names the box itself inside a box"
		has "$err" "127.0.0.2"
	done
	echo 'egress.allow_internal = ["127.0.0.2:80", "localhost.example"]' >c.toml
	atoll config check c.toml
	is "$status" 0 "$err"
}

invalid_arguments_of_config_are_a_usage_error() {
	clean
	for words in "" "set" "get" "get a b" "show x" "check a b"; do
		atoll config $words
		is "$status" 2 "$words"
	done
}

# In sentences of the sources; a format such as "limits.%s" is a pattern, no name, and all else that looks like a name
# is listed here.
every_setting_named_in_documents_exists() {
	clean
	"$ATOLL" config show --json >out
	json out '"\n".join(d)' >names
	printf '%s\n' batch.md e2b.toml egress.md pipeline.md templates.md box.example box.localhost keeper.lock keeper.log serve.pid network.allow network.ask network.bandwidth network.budgets network.links network.mask \
		network.rules limits.cpu_ms limits.cpu_milli limits.disk limits.files limits.mem limits.pids >>names
	sort -u names -o names
	grep -rhoE '"([^"\\]|\\.)* ([^"\\]|\\.)*"' "${sources:-$here/../../src}" --include=*.c |
		grep -oE '\b(serve|limits|box|network|egress|packages|templates|quota|batch|pipeline|auth|metrics|e2b|mcp|log|keeper)\.[a-z][a-z_0-9]*' |
		sort -u >named
	is "$(comm -23 named names)" "" "error texts name settings that are not there"
}

# Lines of the manual are `.It Ic NAME , Ev VARIABLE Pq DEFAULT`.
the_manual_lists_every_setting_with_variable_and_default() {
	clean
	"$ATOLL" config show --json >out
	json out '"\n".join(n + " " + v["env"] for n, v in d.items())' >settings
	sed -n 's/^\.It Ic \([^ ]*\) , Ev \([^ ]*\).*/\1 \2/p' "$page" >manual
	is "$(cat manual)" "$(cat settings)"
	sed -n 's/^\.It Ic \([^ ]*\) , Ev [^ ]* Pq \(.*\)/\1 \2/p' "$page" | while read -r name default; do
		case $default in '<'*) continue ;; esac # depends on the user
		is "$("$ATOLL" config get "$name" | paste -sd ,)" "$default" "$name" # a list has a line for each entry
	done
}

run_tests
