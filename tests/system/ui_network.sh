#!/bin/sh
# ui_network.sh - the web UI in a browser: outbound connections of a box, their rules and approvals.
. "$(dirname "$0")/ui.lib"

mkfifo "$work/registry.in"
python3 "$libs/registry.py" "$work/registry.log" <"$work/registry.in" >"$work/registry.ports" &
exec 8>"$work/registry.in"
soon grep -q dns= "$work/registry.ports"
eval "$(cat "$work/registry.ports")"
# shellcheck disable=SC2154 # by the line above
export ATOLL_EGRESS_DNS="127.0.0.1:$dns" ATOLL_EGRESS_ALLOW="*.below.test" ATOLL_EGRESS_INTERNAL="registry.test:$http" REGISTRY_PORT="$http"
run_journeys network.mjs
exec 8>&-
