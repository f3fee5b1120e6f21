#!/bin/sh
# Boxes of the isolation tier gvisor. See tests/system/gvisorbox.c. Its tests skip where runsc is missing.
exec "$(dirname "$ATOLL")/gvisorbox"
