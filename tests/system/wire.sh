#!/bin/sh
# The wire protocol of keeper and init, as the server uses it. See tests/system/wirebox.c.
exec "$(dirname "$ATOLL")/wirebox"
