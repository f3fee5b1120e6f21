#!/bin/sh
# three_machines.sh - executes the section "From one machine to three" of docs/cluster.md: its commands and settings as they are
# written, but for the address of the gateway. Each machine is a folder; systemctl starts a daemon; PostgreSQL is a private one.
. "$(dirname "$0")/lib.sh"
. "$here/engines.lib"
[ "$(id -u)" = 0 ] || { echo "1..0 # SKIP not root"; exit 0; }
chmod a+x "$work" "$TMPDIR"
unset ATOLL_RUN
leave() {
	for at in "$work"/machine-*; do
		[ -e "$at/pid" ] || continue
		keeper_pid=$(ATOLL_RUN=$at/run "$ATOLL" doctor --json 2>/dev/null | grep -o 'pid [0-9]*' | head -n 1 | cut -d ' ' -f 2)
		kill "$(cat "$at/pid")" 2>/dev/null
		left() { ! kill -0 "$(cat "$at/pid")"; }
		soon left
		[ -z "$keeper_pid" ] || { # boxes outlive their keeper
			ATOLL_RUN=$at/run "$ATOLL" kill --all --local --quiet >/dev/null 2>&1
			kill "$keeper_pid" 2>/dev/null
		}
	done
	engines_stop
	keeper=
	finish
}
trap leave EXIT
postgres_start
mkdir "$work/bin"
ln -s "$ATOLL" "$work/bin/atoll"
cat >"$work/bin/systemctl" <<'END'
#!/bin/sh
# systemctl restart atoll
[ "$*" = "restart atoll" ] || exit 1
atoll serve >/dev/null 2>"$MACHINE/log" &
echo $! >"$MACHINE/pid"
while ! grep -q 'serving on unix:' "$MACHINE/log" && kill -0 $!; do sleep 0.05; done
END
chmod +x "$work/bin/systemctl"

# blocks KIND MACHINE: the section's blocks of that kind, one file each: 1, 2 ...
blocks() {
	awk -v kind="$1 $2" -v at="$3" '/^## /{ here = /From one machine to three/ } !here { next }
		/^```/ { if (open) { open = 0; close(file) } else { open = 1; file = ""; if ($0 == "```" kind) file = at "/" ++n }; next }
		open && file { print >file }' "$here/../../docs/cluster.md"
}
# on MACHINE COMMANDS...: executes a file as a user of that machine.
on() {
	at=$work/machine-$1
	mkdir -p "$at/atoll"
	sed "s/gateway\.example\.org:7071/$tunnel/" "$2" >"$at/commands"
	env PATH="$work/bin:$PATH" MACHINE="$at" XDG_CONFIG_HOME="$at" ATOLL_STATE="$at/state" ATOLL_RUN="$at/run" ATOLL_LISTEN=127.0.0.1:0 \
		ATOLL_CLUSTER_NAME="$1" TOKEN="$token" $extra sh -e "$at/commands" >"$at/out" 2>"$at/err" || fail "$1: $(cat "$2"): $(cat "$at/err")"
}
settings() {
	mkdir -p "$work/machine-$1/atoll"
	sed "s/gateway\.example\.org:7071/$tunnel/" "$2" >"$work/machine-$1/atoll/config.toml"
}
tunnel=unknown token=
listed() { on gateway ls && [ "$(grep -c ' up ' "$work/machine-gateway/out")" = 2 ]; }

the_page_makes_three_machines_of_one() {
	for kind in toml sh; do
		for role in gateway node; do
			mkdir "$kind-$role"
			blocks $kind $role "$kind-$role"
		done
	done
	is "$(ls sh-gateway sh-node toml-gateway toml-node | xargs)" 'sh-gateway: 1 2 sh-node: 1 2 toml-gateway: 1 toml-node: 1'
	settings gateway toml-gateway/1
	# The host of the database is not that of the page.

	extra_gateway="ATOLL_CLUSTER_LISTEN=127.0.0.1:0 ATOLL_CLUSTER_SECRETS=$work/machine-gateway/secrets"
	export ATOLL_CLUSTER_DATABASE="$database"
	extra=$extra_gateway
	on gateway sh-gateway/1
	token=$(grep '^atj_' "$work/machine-gateway/out")
	tunnel=$(sed -n 's/^atoll: nodes connect to \(.*\)$/\1/p' "$work/machine-gateway/log")
	[ "$tunnel" ] && [ "$token" ] || fail "$(cat "$work/machine-gateway/err" "$work/machine-gateway/log")"
	unset ATOLL_CLUSTER_DATABASE
	extra=
	for node in one two; do
		on $node sh-node/1
		settings $node toml-node/1
		on $node sh-node/2
	done
	export ATOLL_CLUSTER_DATABASE="$database"
	extra=$extra_gateway
	echo 'atoll node ls' >ls
	soon listed
	on gateway sh-gateway/2
	has "$(cat "$work/machine-gateway/out")" 'from a node'
	# The box is on a node: the gateway has no keeper.
	[ ! -e "$work/machine-gateway/run/keeper.sock" ] || fail "a keeper was started"
	echo 'atoll rm first' >rm
	on gateway rm
}

run_tests
