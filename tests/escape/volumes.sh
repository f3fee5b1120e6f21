#!/bin/sh
# Volumes: isolation, exclusive use, and crashes. See volumebox.c. A test build, if there is one, also skips
# the step.
bin=$(dirname "$ATOLL_TEST_BIN")/volumebox
[ -x "$bin" ] || bin=$(dirname "$ATOLL")/volumebox
exec "$bin"
