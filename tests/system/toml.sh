#!/bin/sh
# toml.sh - our TOML parser accepts and reads the same as Python's. The documents are in tests/toml/.
here=$(cd "$(dirname "$0")" && pwd)
/usr/bin/python3 -c 'import tomllib' 2>/dev/null || { echo "1..0 # SKIP python3 has no tomllib"; exit 0; }
exec /usr/bin/python3 "$here/../toml/compare.py" "$(dirname "$ATOLL")/toml-print" "$here/../toml"
