#!/bin/sh
# Volumes: what they bring into a box, who may have one, what they survive. See volumebox.c. A test
# build, if there is one, also leaves the row out.
bin=$(dirname "$ATOLL_TEST_BIN")/volumebox
[ -x "$bin" ] || bin=$(dirname "$ATOLL")/volumebox
exec "$bin"
