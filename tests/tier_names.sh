#!/bin/sh
# tier_names.sh - no route of the API knows an isolation tier: only the files below name one.
#
# Names are the constants of enum wire_tier, enum choose_tier and the launch table, and the quoted words
# "container", "wasm", "gvisor" and "microvm". Prints other lines that have one, as file:line: text, and exits 1.
#
#	tests/tier_names.sh [ROOT]	ROOT is the checkout; by default the one this file is in
set -eu
cd "${1:-$(dirname "$0")/..}"

# The tiers, their proofs, the channel, modules; the wire; the launch table.
allowed='src/tier/ src/prove/ src/mux/ src/wasm/ src/wire/ src/jail/'
# The choice of a tier, the settings, the record and the cause of an end, commands about tiers.
allowed="$allowed src/fleet/isolation src/daemon/config_table.c src/record/ src/daemon/tier_ src/daemon/prove src/daemon/prepare src/daemon/policy.c"
# Whether a box has an engine, which explains its end; boxes of the keeper; test builds.
allowed="$allowed src/fleet/box_end.c src/fleet/exec_end.c src/batch/job.c src/cli/local_run.c src/keeper/ src/client/keeper_sync.c"

found=$(grep -rnE '"(container|wasm|gvisor|microvm)"|(WIRE_TIER|CHOOSE|JAIL)_(CONTAINER|PLAIN|PROCESS|WASM|GVISOR|MICROVM)\>' \
	src --include='*.[ch]' | grep -v application/wasm || :)
for path in $allowed; do
	found=$(echo "$found" | grep -v "^$path" || :)
done
[ -z "$found" ] && exit
echo "$found"
echo "these files name an isolation tier; choose it in src/fleet/isolation.c, and leave it to src/tier"
exit 1
