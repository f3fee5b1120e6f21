#!/bin/sh
# drivers.sh - runs the tests of the language drivers in tests/drivers/, each driver with its own channel.
here=$(cd "$(dirname "$0")" && pwd)
[ -x /usr/bin/python3 ] || { echo "1..0 # SKIP no /usr/bin/python3"; exit 0; }
exec /usr/bin/python3 "$here/../drivers/run.py"
