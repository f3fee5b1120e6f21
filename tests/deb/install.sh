#!/bin/sh
# install.sh - the package in a root that has nothing else: install, use, upgrade with living boxes, remove, purge.
# scripts/check-deb runs it as root in a root of its own, beside one.deb and two.deb (the same with a higher version).
# There is no service manager: the scripts of the package must work without one, and the test starts the daemon.
set -eu
cd "$(dirname "$0")"
export LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive
unset ATOLL_RUN ATOLL_STATE ATOLL_HOST ATOLL_KEY 2>/dev/null || :

fail() { echo "not ok - $*"; exit 1; }
ok() { echo "ok - $*"; }
is() { [ "$1" = "$2" ] || fail "'$1' is not '$2'${3:+: $3}"; }
has() { case $1 in *"$2"*) ;; *) fail "'$2' is not in: $1" ;; esac; }
apt() { apt-get -qq -y -o Dpkg::Use-Pty=0 "$@" </dev/null >apt.log 2>&1 || { cat apt.log; fail "apt-get $*"; }; }
# Waits for a state for at most a minute.
soon() {
	for tries in $(seq 600); do
		! "$@" >/dev/null 2>&1 || return 0
		sleep 0.1
	done
	fail "did not become true: $*"
}
# as USER COMMAND...: with the groups and the home of that user.
as() {
	user=$1
	shift
	setpriv --reuid "$user" --regid "$(id -g "$user")" --init-groups env -i PATH="$PATH" HOME="/home/$user" "$@"
}
# Processes that execute a file of the package, or that belong to a box.
ours() {
	for process in /proc/[0-9]*; do
		file=$(readlink "$process/exe") || continue
		uid=$(stat -c %u "$process") || continue
		case $file in /usr/bin/atoll*) echo "${process#/proc/} $file" ;; esac
		[ "$uid" -lt 1000000 ] || echo "${process#/proc/} of uid $uid"
	done 2>/dev/null
}
daemon() { cut -d ' ' -f "$1" /run/atoll/serve.pid; } # 1: supervisor, 3: server
answers() { atoll api GET /v1/boxes; }
serve() {
	ATOLL_GROUP=atoll setsid -f atoll serve >>serve.log 2>&1 </dev/null
	soon answers
}
# What is there, without what apt and dpkg write themselves. (The script that debhelper adds for every profile of AppArmor
# removes the folder of disabled ones if it is empty.)
files() {
	find / -xdev \( -path /var/lib/dpkg -o -path /var/lib/apt -o -path /var/cache -o -path /var/log -o -path /root -o -path /tmp \
		-o -path /home -o -path /before -o -name '__pycache__' -o -name '*-' -o -path /var/lib/systemd \
		-o -path /etc/apparmor.d/disable \) -prune -o -print | sort
}

apt update
# Everything that the package depends on or recommends stays after its removal.
apt install curl $(dpkg-deb -f one.deb Depends Recommends | sed 's/^[A-Za-z]*: //; s/([^)]*)//g; s/,/ /g; s/|[^ ]* *[^ ]*//g')
profile=$(dpkg-deb -c one.deb | sed -n 's,.* \./\(etc/apparmor.d/atoll\)$,/\1,p')
[ -z "$profile" ] || apt install apparmor
files >before
cut -d ' ' -f 5 /proc/self/mountinfo >before.mounts
cut -d : -f 1 /etc/passwd /etc/group | sort >before.users

start=$(date +%s.%N)
apt install ./one.deb
ok "install: $(echo "$start $(date +%s.%N)" | awk '{ printf "%.1f", $2 - $1 }') s"
is "$(cat apt.log | grep -i -E 'warning|error' || :)" ""

echo 'print("hello from a box")' >hello.py
is "$(atoll run hello.py)" "hello from a box"
ok "atoll run hello.py"
echo "# $(atoll version)"
has "$(atoll version)" "commit "
atoll doctor | sed 's/^/# /'

is "$(id -u atoll atoll-egress atoll-llm atoll-outbound atoll-cluster atoll-connector | tr '\n' ' ')" "64170 64171 64172 64173 64174 64175 "
for user in atoll atoll-egress atoll-llm atoll-outbound; do
	is "$(getent passwd $user | cut -d : -f 7)" /usr/sbin/nologin
done
is "$(stat -c '%U %a' /var/lib/atoll)" "root 711"
ok "users and state folder"

has "$(atoll config check)" "read /etc/atoll/config.toml"
has "$(dpkg-query -W -f '${Conffiles}' atoll)" "/etc/atoll/config.toml"
grep -q '^#listen = ' /etc/atoll/config.toml
for file in share/man/man1/atoll.1.gz share/man/man1/atolld.1.gz share/bash-completion/completions/atoll.bash \
	share/zsh/vendor-completions/_atoll share/fish/vendor_completions.d/atoll.fish; do
	[ -e "/usr/$file" ] || fail "there is no /usr/$file"
done
bash -n /usr/share/bash-completion/completions/atoll.bash
ok "settings, completions"

if [ "$profile" ]; then
	apparmor_parser --skip-kernel-load --skip-cache "$profile"
	apparmor_parser --skip-kernel-load --skip-cache --debug "$profile" 2>&1 | grep -q userns || fail "the profile has no rule for user namespaces"
	ok "the profile of AppArmor is valid"
fi

useradd -m member
useradd -m other
as other atoll version >/dev/null
cp hello.py /home/other/ && chown other /home/other/hello.py
if unshare -U true 2>/dev/null && as other unshare -U true 2>/dev/null; then
	is "$(cd /home/other && as other atoll run hello.py)" "hello from a box"
	ok "atoll run hello.py of a user without any right"
fi

# What deploy/container/compose.yaml adds to the capabilities that Docker gives.
is "$(ATOLL_RUN=/run/contained ATOLL_STATE=/var/lib/contained setpriv --inh-caps=-all --bounding-set="-all,+chown,+dac_override,+fsetid,+fowner,+mknod,+net_raw,+setgid,+setuid,+setfcap,+setpcap,+net_bind_service,+sys_chroot,+kill,+audit_write,$(
	echo "$CONTAINER_CAPS" | tr A-Z a-z | sed 's/[a-z_]*/+&/g')" atoll run hello.py)" "hello from a box"
ATOLL_RUN=/run/contained atoll stop --all -q
rm -rf /run/contained /var/lib/contained
ok "atoll run hello.py with the capabilities of the container image"

serve
! as other atoll -H unix:/run/atoll/atoll.sock ls >/dev/null 2>&1 || fail "a user outside of group atoll uses the daemon"
usermod -aG atoll member
atoll new demo >/dev/null
has "$(as member atoll ls)" demo
is "$(as member atoll exec demo -- echo in the box)" "in the box"
key=$(atoll key new test -q)
is "$(as other env ATOLL_KEY="$key" atoll exec demo -- echo by key)" "by key"
ok "the daemon: a member of group atoll, and a user with a key"
is "$(sed -n 's/^Uid:[[:space:]]*\([0-9]*\).*/\1/p' "/proc/$(daemon 3)/status")" "$(id -u atoll)"

mkdir /opt/other
cp /usr/bin/atoll /usr/bin/atolld /opt/other/
said=$( (. ./lib.sh && me=up && serve /opt/other/atoll /run/atoll) 2>&1) && fail "./up replaces the daemon of the package"
has "$said" "the daemon of the package atoll (pid $(daemon 1)) serves from /run/atoll, and was left alone"
ok "./up leaves the daemon of the package alone"

# ---- upgrade ----

sed -i 's/^#drain = .*/drain = "7s"/' /etc/atoll/config.toml
atoll exec -d demo -- sh -c 'n=0; while :; do n=$((n + 1)); echo $n >new; mv new count; sleep 0.05; done' >/dev/null
count() { atoll exec demo -- cat count; }
soon count
supervisor=$(daemon 1) server=$(daemon 3) counted=$(count)
# Another atoll in PATH is not used by the scripts of the package.
printf '#!/bin/sh\nexit 1\n' >/usr/local/bin/atoll
chmod +x /usr/local/bin/atoll
apt install ./two.deb
rm /usr/local/bin/atoll
has "$(cat apt.log)" "/usr/local/bin/atoll comes first in PATH"
is "$(dpkg-query -W -f '${Version}' atoll)" "$(dpkg-deb -f two.deb Version)"
is "$(daemon 1)" "$supervisor" "the supervisor executes its new file"
[ "$(daemon 3)" != "$server" ] || fail "the server is still the old one"
is "$(readlink "/proc/$supervisor/exe")" /usr/bin/atolld
all_are_new() { ! ours | grep deleted; }
soon all_are_new
later() { [ "$(count)" -gt "$counted" ]; }
soon later
is "$(atoll config get serve.drain)" 7s
ok "upgrade: the daemon is replaced, the box keeps running, its program counted from $counted to $(count), the settings stay"

# ---- remove ----

as other atoll run -q -- sleep 4711 >/dev/null 2>&1 &
sleeps() { grep -lsz '^4711$' /proc/[0-9]*/cmdline; }
soon sleeps
apt remove atoll
is "$(ours)" "" "processes after the removal"
is "$(cut -d ' ' -f 5 /proc/self/mountinfo)" "$(cat before.mounts)"
is "$(find /sys/fs/cgroup -maxdepth 3 -type d -name atoll)" ""
[ ! -e /run/atoll ] && [ ! -e /run/atoll.ids ] || fail "run folders are left"
[ -s /etc/atoll/config.toml ] && [ -d /var/lib/atoll/server ] || fail "a removal deleted settings or state"
ok "remove: nothing runs, no mounts, no cgroups; settings and state stay"

apt install ./two.deb
is "$(atoll config get serve.drain)" 7s
serve
is "$(as other env ATOLL_KEY="$key" atoll api GET /v1/boxes | head -c 9)" '{"items":'
atoll stop --all -q
ok "installed again: settings and keys are the old ones"

# ---- a daemon that is not the package's ----

setsid -f /opt/other/atoll serve >>serve.log 2>&1 </dev/null
soon answers
theirs=$(daemon 1)
apt install --reinstall ./two.deb
has "$(cat apt.log)" "/opt/other/atolld serves from /run/atoll and was left alone"
apt remove atoll
is "$(readlink "/proc/$theirs/exe")" /opt/other/atolld
/opt/other/atoll stop --all -q
rm -rf /opt/other
ok "a daemon of another installation is left alone by upgrade and removal"

# ---- purge ----

apt purge atoll
userdel -r member 2>/dev/null
userdel -r other 2>/dev/null
rm -rf /run/atoll /run/atoll.ids
is "$(getent passwd atoll atoll-egress atoll-llm atoll-outbound; getent group atoll atoll-egress atoll-llm atoll-outbound)" ""
files >after
is "$(diff before after | grep '^[<>]' || :)" ""
cut -d : -f 1 /etc/passwd /etc/group | sort >after.users
is "$(diff before.users after.users || :)" ""
ok "purge: settings, state and users are deleted, and nothing else"
