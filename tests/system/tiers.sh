#!/bin/sh
# Isolation tiers over the wire. See tests/system/tierbox.c. The tier `plain` is in builds with test hooks only.
tierbox=$(dirname "$ATOLL_TEST_BIN")/tierbox
[ -x "$tierbox" ] || { echo "1..0 # SKIP no build with test hooks: $tierbox"; exit 0; }
exec "$tierbox"
