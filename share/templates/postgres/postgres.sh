#!/bin/sh
# postgres-server init | start: the server of the newest PostgreSQL that /usr has.
newest() {
	for d in /usr/lib/postgresql/*/bin; do
		[ -x "$d/initdb" ] && bin=$d
	done
}
newest
if [ -z "${bin:-}" ] && [ "$1" = init ] && [ -s /etc/apt/sources.list ]; then
	apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends postgresql && rm -rf /var/lib/apt/lists/*
	newest
fi
[ -n "${bin:-}" ] || { echo "this machine has no PostgreSQL server: apt-get install postgresql" >&2; exit 1; }
case $1 in
init)
	printf %s "$PGPASSWORD" >/tmp/password
	install -d -o user -g user "$PGDATA"
	setpriv --reuid user --regid user --init-groups "$bin/initdb" --username postgres --pwfile /tmp/password --auth scram-sha-256 --encoding UTF8 --locale C.UTF-8 -N
	;;
start) exec "$bin/postgres" -c listen_addresses=localhost -c unix_socket_directories= ;;
esac
