#!/bin/sh
# ui_network.sh - the web UI in a browser: outbound connections of a box, their rules and approvals.
. "$(dirname "$0")/ui.lib"
. "$libs/registry.lib"

export ATOLL_EGRESS_ALLOW="*.below.test" ATOLL_EGRESS_INTERNAL="registry.test:$http" REGISTRY_PORT="$http"
run_journeys network.mjs
exec 8>&-
