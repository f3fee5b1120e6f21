#!/bin/sh
# systemd.sh - the units of the package under a systemd that was booted in a root of its own: start, sockets, reload, upgrade,
# restart and removal. scripts/check-deb runs `systemd.sh prepare`, and then boots; the results are in the file log.
set -eu
cd "$(dirname "$0")"
export LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive

fail() { echo "not ok - $*"; exit 1; }
ok() { echo "ok - $*"; }
is() { [ "$1" = "$2" ] || fail "'$1' is not '$2'${3:+: $3}"; }
apt() { apt-get -qq -y -o Dpkg::Use-Pty=0 "$@" </dev/null >apt.log 2>&1 || { cat apt.log; fail "apt-get $*"; }; }
soon() {
	for tries in $(seq 600); do
		! "$@" >/dev/null 2>&1 || return 0
		sleep 0.1
	done
	fail "did not become true: $*"
}
server() { cut -d ' ' -f 3 /run/atoll/serve.pid; }
state() { systemctl is-active "$1" || :; }
answers() { curl -fs -m 5 "$@" >/dev/null; }

# Nothing of a machine: no devices, no terminals. The test starts last, and ends the service manager.
prepare() {
	apt update
	apt install --no-install-recommends systemd dbus curl python3
	for unit in systemd-logind systemd-udevd systemd-networkd systemd-resolved systemd-timesyncd console-getty getty@tty1; do
		ln -sf /dev/null "/etc/systemd/system/$unit.service"
	done
	cat >/etc/systemd/system/deb-test.service <<-END
		[Service]
		Type=oneshot
		StandardOutput=file:/root/deb/log
		StandardError=inherit
		ExecStart=/bin/sh /root/deb/systemd.sh
		ExecStopPost=systemctl exit
		TimeoutStartSec=240
	END
	mkdir -p /etc/systemd/system/multi-user.target.wants
	ln -sf ../deb-test.service /etc/systemd/system/multi-user.target.wants/
	ln -sf /lib/systemd/system/multi-user.target /etc/systemd/system/default.target
}
[ "${1:-}" != prepare ] || {
	prepare
	exit 0
}

apt install --no-install-recommends ./one.deb
is "$(systemctl is-enabled atoll.service) $(systemctl is-enabled atoll.socket)" "enabled enabled"
is "$(state atoll.service) $(state atoll.socket)" "active active"
is "$(stat -c '%U %G %a' /run/atoll/atoll.sock)" "root atoll 660"
answers http://127.0.0.1:7070/healthz
answers --unix-socket /run/atoll/atoll.sock http://x/v1/boxes
ok "the service is enabled, runs, and answers on both sockets"

echo 'print("hello from a box")' >hello.py
is "$(atoll run hello.py)" "hello from a box"
atoll new demo >/dev/null
is "$(atoll exec demo -- echo in the box)" "in the box"
ok "boxes start with the restrictions of the unit"

before=$(server)
systemctl reload atoll
reloaded() { [ "$(server)" != "$before" ] && [ "$(server)" != 0 ]; }
soon reloaded
is "$(state atoll.service)" active
ok "reload starts a new server"

main=$(systemctl show -P MainPID atoll.service) before=$(server)
apt install ./two.deb
is "$(systemctl show -P MainPID atoll.service)" "$main"
[ "$(server)" != "$before" ] || fail "the server is still the old one"
is "$(readlink "/proc/$main/exe")" /usr/bin/atolld
is "$(atoll exec demo -- echo still there)" "still there"
ok "upgrade: the same process for systemd, a new server, the box keeps running"

systemctl restart atoll.service
is "$(state atoll.service)" active
is "$(atoll exec demo -- echo still there)" "still there"
answers --unix-socket /run/atoll/atoll.sock http://x/v1/boxes
ok "restart: both sockets stay, the box keeps running"

systemctl stop atoll.service 2>/dev/null # warns that the socket starts it again
is "$(state atoll.socket)" active
answers http://127.0.0.1:7070/healthz
is "$(state atoll.service)" active
ok "the first connection starts the service"

apt remove atoll
is "$(state atoll.service) $(state atoll.socket)" "inactive inactive"
is "$(for process in /proc/[0-9]*; do readlink "$process/exe" || :; done 2>/dev/null | grep atoll || :)" ""
[ ! -e /run/atoll ] || fail "/run/atoll is left"
ok "remove: nothing runs"
echo "ok - all"
