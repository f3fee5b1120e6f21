#!/bin/sh
# lang_api.sh - every language of this host through the API: output and errors.
. "$(dirname "$0")/daemon.lib"
need_daemon
/usr/bin/python3 "$here/../lang/check.py" "$url" "$key"
