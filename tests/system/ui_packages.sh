#!/bin/sh
# ui_packages.sh - the web UI in a browser: packages of a box.
. "$(dirname "$0")/ui.lib"
export ATOLL_EGRESS_ALLOW=registry.invalid ATOLL_PACKAGES_MIRROR=mirror ATOLL_PACKAGES_TIMEOUT=100s # other tests may run at the same time
run_journeys packages.mjs
