#!/bin/sh
# What a server asks of keeper and boxes, over the wire. See tests/system/wirebox.c.
exec "$(dirname "$ATOLL")/wirebox"
