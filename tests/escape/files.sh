#!/bin/sh
# files.sh - which files of the host a box sees, and what it can do to them.
. "$(dirname "$0")/lib.sh"
need_keeper

# A world-readable file of the host that no box may reach.
canary() {
	canary=$(mktemp /tmp/atoll-canary.XXXXXX)
	trap 'rm -f "$canary"' EXIT
	echo "a word from outside, $$" >"$canary"
	chmod 644 "$canary"
}

# Escape, HostLeak
host_files_are_out_of_reach() {
	canary
	before=$(stat -c '%y %z %a' "$canary")
	refused "read=$canary" "climb=$canary" "through-proc=$canary" "through-link=$canary" \
		"descriptors=$canary" read=/etc/shadow list=/root "see=$ATOLL_RUN" "see=$ATOLL_STATE" \
		see=/sys/kernel see=/sys/fs/cgroup see=/proc/1/root
	is "$(stat -c '%y %z %a' "$canary")" "$before"
}

# HostLeak
the_root_holds_what_a_box_needs_and_nothing_else() {
	facts root
	names=$(fact root | cut -d ' ' -f 1 | grep -v '^lib' | sort | tr '\n' ' ')
	[ "$names" = "bin dev etc home media mnt opt proc root run sbin srv sys tmp usr var " ] || escaped "$names"
	verdicts list=/run list=/home/user/.. list=/mnt list=/opt list=/var/lib
	echo "$out" | grep -q '^list=/run ENODATA' || escaped "/run is not empty"
}

# Escape, PeerDoS: what one box could write there, the host and every other box would run
the_hosts_programs_can_be_run_but_not_changed() {
	before=$(stat -c '%y %z %a %h' /usr/bin/env)
	facts mounts
	case $guest$(mounted /usr) in yes* | ro,nosuid,nodev*) ;; *) escaped "/usr is mounted '$(mounted /usr)'" ;; esac
	refused create=/usr/x create=/usr/local/bin/x create=/bin/x write=/usr/bin/env touch=/usr/bin/env \
		chmod=/usr/bin/env link=/usr/bin/env mark=/usr/bin/env
	works see=/usr/bin/env
	is "$(stat -c '%y %z %a %h' /usr/bin/env)" "$before"
}

# HostLeak: a uid of the box may have the same number as an owner on the host
a_box_cannot_read_host_programs_that_others_may_not_read() {
	private_programs
	refused $(printf 'read=%s ' $private)
}

# HostDoS: every process that opens a leased file waits, including root of the host
a_box_cannot_hold_a_lease_on_host_programs() {
	refused lease=/usr/bin/base32 lease=/usr/share/common-licenses/GPL-3
}

# Escape
every_mount_is_listed_in_the_policy() {
	container_only "the mounts of a guest are those of its kernel"
	facts mounts
	while read -r at options; do
		found=$(mounted "$at")
		[ "$found" ] || escaped "$at is not mounted"
		for option in $options; do
			case ",$(echo "$found" | tr ' ' ,)," in *,"$option",*) ;; *) escaped "$at is '$found'" ;; esac
		done
	done <<-END
		/ overlay nosuid nodev userxattr
		/usr ro nosuid nodev
		/dev tmpfs ro nosuid noexec
		/dev/pts devpts nosuid noexec max=64
		/dev/shm nosuid nodev noexec
		/proc proc ro nosuid nodev noexec hidepid=invisible
		/sys tmpfs ro nosuid nodev noexec
		/proc/sys/kernel/random/boot_id ro nosuid nodev noexec
	END
	others=$(fact mount | awk '$5 !~ "^/(|usr|dev|dev/pts|dev/shm|proc|sys|proc/[a-z_-]*|proc/sys/kernel/random/boot_id)$" { print $5 }')
	[ -z "$others" ] || escaped "also mounted: $others"
	trusting=$(fact mount | awk '$6 !~ /nosuid/ { print $5 }')
	[ -z "$trusting" ] || escaped "set-user-id counts at $trusting"
}

# Escape
mounts_do_not_propagate_between_box_and_host() {
	ours() { grep -c -e "$work" -e lowerdir=l, /proc/self/mountinfo || :; }
	before=$(ours)
	held 8 a
	is "$(ours)" "$before"
	freed 8 a
	facts mounts
	case $guest$out in yes*) ;; *" shared:"* | *" master:"*) escaped "a mount propagates" ;; esac
}

# Escape: some of these files run programs as the host's root
kernel_settings_cannot_be_written() {
	before=$(cat /proc/sys/kernel/core_pattern)
	is "$(policy masks 'r["what"] == "read-only" and r["name"] or ""' | grep .)" /proc
	facts mounts
	case $guest$(mounted /proc) in yes* | ro,*) ;; *) escaped "/proc is '$(mounted /proc)'" ;; esac
	refused write=/proc/sys/kernel/core_pattern write=/proc/sys/kernel/modprobe \
		write=/proc/sys/kernel/hostname write=/proc/sys/net/ipv4/ip_forward \
		write=/proc/sys/user/max_user_namespaces write=/proc/sys/vm/drop_caches write=/proc/sysrq-trigger \
		create=/sys/x create=/dev/x create=/proc/x
	is "$(cat /proc/sys/kernel/core_pattern)" "$before"
}

# HostLeak: the boot id identifies a machine, and shows that two boxes share one.
each_box_has_its_own_boot_id() {
	facts boot
	first=$(fact boot)
	[ "$first" ] || [ -z "$guest" ] || skip "the kernel of this guest has none"
	[ "$first" ] || fail "it has none"
	[ "$first" != "$(cat /proc/sys/kernel/random/boot_id)" ] || escaped "it is the host's"
	facts boot
	[ "$(fact boot)" != "$first" ] || escaped "another box has it, too"
	refused write=/proc/sys/kernel/random/boot_id
}

# HostLeak
kernel_memory_keys_and_logs_are_masked() {
	policy masks 'r["what"] == "hidden" and r["name"] or ""' | grep . >all
	for at in kcore keys kmsg locks diskstats cgroups; do
		grep -qx "/proc/$at" all || fail "the policy does not hide /proc/$at"
	done
	refused $(while read -r at; do [ -d "$at" ] && echo "list=$at" || echo "read=$at"; done <all)
	[ -z "$guest" ] || return 0
	# Of the files that this kernel has, each is empty or cannot be opened by root of the box.
	for at in $(cat all); do
		[ ! -e "$at" ] || echo "$out" | grep -Eq "=$at (ENODATA|EACCES)" || fail "$at: $(echo "$out" | grep "=$at ")"
	done
}

# Escape
only_harmless_devices_exist() {
	facts devices
	fact dev | sed -n 's/ [cb]/ /p' | sort >have
	policy devices 'r["what"] + " " + r["name"]' | grep -v -e ptmx -e pts -e kvm | sort >want
	[ "$guest" ] || cmp -s have want || escaped "$(tr '\n' ',' <have)"
	refused read=/dev/mem read=/dev/kmsg write=/dev/loop-control write=/dev/kvm write=/dev/fuse \
		write=/dev/net/tun write=/dev/console write=/dev/userfaultfd write=/dev/vhost-vsock
}

# Escape
no_device_node_can_be_created() {
	refused mknod-char=node mknod-block=node mknod-whiteout=node mknod-whiteout=/dev/shm/node \
		mknod-high=/dev/shm/node
}

# Escape: even if a device node exists. Checked with a process of the host's root in the cgroup of the box.
a_host_device_cannot_be_opened_from_the_cgroup_of_a_box() {
	[ -c /dev/loop-control ] || skip "no device here that root could open and a box could not"
	true 8<>/dev/loop-control || skip "this host forbids devices to root too"
	held 8 a
	dir=$(cgroup_of devices "$program")
	[ "$dir" ] || skip "no device cgroup on this host"
	sh -c 'echo 0 >"$1/cgroup.procs" && exec 3<>/dev/loop-control' - "$dir" 2>said && escaped "/dev/loop-control opens"
	has "$(cat said)" "not permitted"
	sh -c 'echo 0 >"$1/cgroup.procs" && exec 3<>/dev/null' - "$dir"
	if [ -c /dev/kvm ] && [ "$tier" != microvm ] && true 8<>/dev/kvm; then
		sh -c 'echo 0 >"$1/cgroup.procs" && exec 3<>/dev/kvm' - "$dir" 2>said && escaped "/dev/kvm opens"
		has "$(cat said)" "not permitted"
	fi
	freed 8 a
}

# Escape: by an inherited descriptor
a_program_has_only_stdin_stdout_and_stderr_open() {
	facts fds terminal
	shows stdio "pipe pipe pipe"
	[ "$(fact fd | cut -d ' ' -f 1 | sort -n | tr '\n' ' ')" = "0 1 2 " ] || escaped "$(fact fd)"
}

# HostLeak
the_environment_has_nothing_of_the_host() {
	facts env
	names=$(fact env | sed 's/=.*//' | sort | tr '\n' ' ')
	case $place in copied | resumed) term= ;; *) term="TERM " ;; esac # of `atoll run`
	[ "$names" = "HOME LANG LOGNAME NPM_CONFIG_FETCH_RETRIES NPM_CONFIG_PREFIX NPM_CONFIG_REGISTRY PATH PIP_INDEX_URL SHELL ${term}USER " ] || escaped "$names"
	case $out in *"$ATOLL_CANARY"*) escaped "a word from outside is inside" ;; esac
}

# Escape: by a working directory on the host
a_program_starts_in_its_home() {
	facts process
	shows folder /home/user
	shows umask 022
}

# Escape
a_box_cannot_mount_or_change_its_root() {
	refused mount bind=/usr remount=/usr remount=/proc umount=/proc umount=/proc/cmdline pivot \
		chroot=/home/user nested call=fsopen call=fsmount call=fspick call=open_tree call=move_mount \
		call=mount_setattr
}

# Escape: the "shocker" exploit opened files of the host by inode number
file_handles_cannot_be_opened() {
	refused call=name_to_handle_at call=open_by_handle_at
}

# Escape
set_user_id_programs_gain_nothing() {
	[ -u /usr/bin/su ] || skip "no set-user-id program to try"
	refused set-user-id=/usr/bin/su
}

# HostLeak: the keeper reads files of the box for the record and must not follow links to the host
the_record_does_not_follow_links_out_of_the_box() {
	canary
	sum=$(sha256sum <"$canary" | cut -c 1-64)
	"$ATOLL" run --report r.json -- ln -s "$canary" link </dev/null
	is "$(json r.json '[f["path"] for f in d["files_changed"]]')" "['/home/user/link']"
	lacks "$(cat r.json)" "$sum"
	# The same content in a file of the box has its hash in the record.
	"$ATOLL" run --report r.json -- sh -c 'cat >file' <"$canary"
	has "$(cat r.json)" "$sum"
}

run_tests
