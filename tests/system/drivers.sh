#!/bin/sh
# drivers.sh - the interpreters' drivers, each alone with its channel. The tests are in tests/drivers/.
here=$(cd "$(dirname "$0")" && pwd)
[ -x /usr/bin/python3 ] || { echo "1..0 # SKIP no /usr/bin/python3"; exit 0; }
exec /usr/bin/python3 "$here/../drivers/run.py"
