/* volumebox.c - tests of volumes, from inside and outside of a box: tests/escape/volumes.sh. */
#include "jail/launch.h"
#include "system/wirebox.h"

#include <sys/socket.h>

static int volume(int keeper, int type, const char *id, uint64_t size)
{
	struct wire_volume w = { .head = sock_head((uint8_t)type, 11), .bytes = size };

	snprintf(w.id, sizeof(w.id), "%s", id);
	return ask(keeper, &w, sizeof(w), NULL, 0);
}

static struct wire_create wish_volume(const char *id, const char *path, int read_only)
{
	struct wire_create w = wish(0, 12);

	w.nmounts = 1;
	snprintf(w.mounts[0].id, sizeof(w.mounts[0].id), "%s", id);
	snprintf(w.mounts[0].path, sizeof(w.mounts[0].path), "%s", path);
	w.mounts[0].flags = read_only ? WIRE_MOUNT_RO : 0;
	return w;
}

static int make_with(int keeper, const char *id, const char *path, int read_only, struct made *out)
{
	struct wire_create w = wish_volume(id, path, read_only);

	return make_as(keeper, &w, out);
}

static int refused_with(int keeper, const char *id, const char *path, int read_only,
			enum err_kind kind, const char *words)
{
	struct wire_create w = wish_volume(id, path, read_only);

	return is_error(ask(keeper, &w, sizeof(w), NULL, 0), kind, words);
}

/* On the host, as root, in the folder of the images. */
static int on_host(const char *script)
{
	char command[1200];

	snprintf(command, sizeof(command), "cd %s/volumes && { %s; }", state_dir, script);
	return system(command);
}

TEST(a_volume_is_kept_after_its_box_and_owned_by_the_user_of_the_next_box)
{
	struct keeper_sync k;
	struct made a, b, c;

	NEED_ROOT();
	CHECK(open_keeper(&k, 1) == 0);
	CHECK_INT(volume(k.fd, WIRE_VOLUME_MAKE, "first", 64 << 20), WIRE_DONE);
	CHECK(make_with(k.fd, "first", "/home/user/data/deep", 0, &a) == 0);
	CHECK_INT(sh(&a, "stat -c '%u %g' data data/deep; ls -A data/deep; mkdir data/deep/d && "
			 "echo kept >data/deep/d/f && chmod 600 data/deep/d/f"),
		  0);
	CHECK_STR(said, "1000 1000\n1000 1000\n");
	CHECK(end(k.fd, &a) == 0);
	/* Two readers at the same time, with different host ids: the same file, the same owner. */
	CHECK(make_with(k.fd, "first", "/mnt/v", 1, &b) == 0 &&
	      make_with(k.fd, "first", "/data", 1, &c) == 0);
	CHECK(b.about.uid_base != a.about.uid_base || c.about.uid_base != a.about.uid_base);
	CHECK_INT(sh(&b, "cat /mnt/v/d/f; stat -c %u /mnt/v/d/f"), 0);
	CHECK_STR(said, "kept\n1000\n");
	CHECK_INT(sh(&c, "cat /data/d/f"), 0);
	CHECK(refused_with(k.fd, "first", "/mnt/v", 0, ERR_CONFLICT, "reads it"));
	CHECK(on_host("! flock -n -x first.img true && flock -n -s first.img true") == 0);
	CHECK(end(k.fd, &b) == 0);
	CHECK(refused_with(k.fd, "first", "/mnt/v", 0, ERR_CONFLICT, "reads it"));
	CHECK(end(k.fd, &c) == 0);
	CHECK(make_with(k.fd, "first", "/mnt/v", 0, &a) == 0);
	CHECK_INT(sh(&a, "echo more >>/mnt/v/d/f && cat /mnt/v/d/f"), 0);
	CHECK_STR(said, "kept\nmore\n");
	CHECK(refused_with(k.fd, "first", "/mnt/v", 1, ERR_CONFLICT, "writes to it"));
	CHECK(is_error(volume(k.fd, WIRE_VOLUME_DROP, "first", 0), ERR_CONFLICT, "has it mounted"));
	CHECK(end(k.fd, &a) == 0);
	CHECK_INT(volume(k.fd, WIRE_VOLUME_DROP, "first", 0), WIRE_DONE);
	CHECK(is_error(volume(k.fd, WIRE_VOLUME_DROP, "first", 0), ERR_NOT_FOUND, "no volume"));
	CHECK(refused_with(k.fd, "first", "/mnt/v", 0, ERR_NOT_FOUND, "no volume"));
	keeper_sync_close(&k);
}

/* Each volume job once closed descriptor 0, which could be any file then. */
TEST(the_keeper_keeps_its_own_descriptors)
{
	struct frame info = sock_head(WIRE_INFO, 7);
	char path[48], stdin_is[64] = "";
	struct keeper_sync k;

	NEED_ROOT();
	CHECK(open_keeper(&k, 1) == 0);
	CHECK_INT(volume(k.fd, WIRE_VOLUME_MAKE, "brief", 16 << 20), WIRE_DONE);
	CHECK_INT(volume(k.fd, WIRE_VOLUME_DROP, "brief", 0), WIRE_DONE);
	CHECK_INT(ask(k.fd, &info, sizeof(info), NULL, 0), WIRE_INFO_REPLY);
	snprintf(path, sizeof(path), "/proc/%d/fd/0", (int)GOT(wire_info)->pid);
	CHECK(readlink(path, stdin_is, sizeof(stdin_is) - 1) > 0);
	CHECK_STR(stdin_is, "/dev/null");
	keeper_sync_close(&k);
}

TEST(the_size_of_a_volume_is_enforced_and_deleted_space_is_freed)
{
	struct keeper_sync k;
	struct made m;

	NEED_ROOT();
	CHECK(open_keeper(&k, 1) == 0);
	CHECK(is_error(volume(k.fd, WIRE_VOLUME_MAKE, "quota", 1 << 20), ERR_INVALID, "between"));
	CHECK(is_error(volume(k.fd, WIRE_VOLUME_MAKE, "quota", UINT64_MAX), ERR_INVALID,
		       "between"));
	CHECK(is_error(volume(k.fd, WIRE_VOLUME_MAKE, "../quota", 64 << 20), ERR_INVALID, "names"));
	CHECK_INT(volume(k.fd, WIRE_VOLUME_MAKE, "quota", 32 << 20), WIRE_DONE);
	CHECK(is_error(volume(k.fd, WIRE_VOLUME_MAKE, "quota", 32 << 20), ERR_CONFLICT, "already"));
	CHECK(on_host("test $(stat -c %s quota.img) = 33554432 && test $(stat -c %a quota.img) = 600") ==
	      0);
	CHECK(make_with(k.fd, "quota", "/workspace", 0, &m) == 0);
	CHECK(sh(&m, "head -c 40000000 /dev/urandom >/workspace/big") != 0);
	CHECK(strstr(said, "No space left"));
	CHECK_INT(sh(&m, "test $(stat -c %s /workspace/big) -gt 20000000 && sync /workspace/big"),
		  0);
	CHECK(on_host("test $(stat -c %b quota.img) -gt 45000") == 0);
	CHECK_INT(sh(&m, "rm /workspace/big && sync /workspace && echo y >/workspace/small"), 0);
	CHECK(end(k.fd, &m) == 0);
	/* The unmount has written the deletion: most of the freed blocks are free on the host.
	 * The exact amount depends on the kernel. */
	CHECK(make_with(k.fd, "quota", "/workspace", 1, &m) == 0 && end(k.fd, &m) == 0);
	CHECK(on_host("test $(stat -c %s quota.img) = 33554432 && "
		      "test $(stat -c %b quota.img) -lt 40000") == 0);
	CHECK_INT(volume(k.fd, WIRE_VOLUME_DROP, "quota", 0), WIRE_DONE);
	CHECK(on_host("test -z \"$(ls -A)\"") == 0);
	keeper_sync_close(&k);
}

/* Escape: device nodes and set-user-id programs on a hostile volume have no effect. */
TEST(devices_and_set_user_id_programs_of_a_volume_have_no_effect)
{
	struct keeper_sync k;
	struct made m;

	NEED_ROOT();
	CHECK(open_keeper(&k, 1) == 0);
	CHECK_INT(volume(k.fd, WIRE_VOLUME_MAKE, "bad", 64 << 20), WIRE_DONE);
	CHECK(on_host("mkdir m && mount -o loop bad.img m && mknod -m 666 m/null c 1 3 && mknod -m 666 m/mem c 1 1 "
		      "&& cp /usr/bin/id m/id && chmod 6755 m/id && umount m && rmdir m") == 0);
	CHECK(make_with(k.fd, "bad", "/mnt/v", 0, &m) == 0);
	CHECK_INT(sh(&m, "grep ' /mnt/v ' /proc/self/mountinfo | cut -d ' ' -f 6"), 0);
	CHECK(strstr(said, "nosuid") && strstr(said, "nodev") && strstr(said, "idmapped"));
	CHECK(!strstr(said, "/tmp") && !strstr(said, "loop"));
	CHECK_INT(
		sh(&m,
		   "test -c /mnt/v/null && ! cat /mnt/v/null 2>/dev/null && ! cat /mnt/v/mem 2>/dev/null"),
		0);
	CHECK_INT(sh(&m, "/mnt/v/id -u; /mnt/v/id -g"), 0);
	CHECK_STR(said, "1000\n1000\n");
	CHECK_INT(sh(&m, "cp /usr/bin/id /mnt/v/mine && chmod u+s /mnt/v/mine && /mnt/v/mine -u; "
			 "! mknod /mnt/v/new c 1 3 2>/dev/null"),
		  0);
	CHECK_STR(said, "1000\n");
	CHECK(end(k.fd, &m) == 0);
	CHECK_INT(volume(k.fd, WIRE_VOLUME_DROP, "bad", 0), WIRE_DONE);
	keeper_sync_close(&k);
}

TEST(a_read_only_volume_cannot_be_written_and_no_other_box_sees_it)
{
	struct keeper_sync k;
	struct made m, other;

	NEED_ROOT();
	CHECK(open_keeper(&k, 1) == 0);
	CHECK_INT(volume(k.fd, WIRE_VOLUME_MAKE, "shown", 16 << 20), WIRE_DONE);
	CHECK(make_with(k.fd, "shown", "/srv/v", 0, &m) == 0);
	CHECK_INT(sh(&m, "echo x >/srv/v/f"), 0);
	CHECK(make(k.fd, &other) == 0);
	CHECK_INT(sh(&other, "! test -e /srv/v && ! grep -q /srv /proc/self/mountinfo"), 0);
	CHECK(end(k.fd, &m) == 0);
	CHECK(make_with(k.fd, "shown", "/srv/v", 1, &m) == 0);
	CHECK_INT(
		sh(&m,
		   "for c in 'echo y >/srv/v/f' 'touch /srv/v/g' 'rm -f /srv/v/f' 'chmod 600 /srv/v/f' "
		   "'mv /srv/v/f /srv/v/h' 'mount -o remount,rw /srv/v' 'umount /srv/v'; do "
		   "! sh -c \"$c\" 2>/dev/null || exit 9; done; cat /srv/v/f"),
		0);
	CHECK_STR(said, "x\n");
	CHECK(end(k.fd, &m) == 0 && end(k.fd, &other) == 0);
	CHECK_INT(volume(k.fd, WIRE_VOLUME_DROP, "shown", 0), WIRE_DONE);
	keeper_sync_close(&k);
}

TEST(mount_points_outside_data_folders_are_rejected)
{
	static const char *const bad[] = { "/etc/x", "/usr/lib", "/mnt/../etc",
					   "mnt",    "/",        "/proc/x" };
	struct wire_create w;
	struct keeper_sync k;

	NEED_ROOT();
	CHECK(open_keeper(&k, 1) == 0);
	for (unsigned i = 0; i < ARRAY_LEN(bad); i++)
		CHECK(refused_with(k.fd, "none", bad[i], 0, ERR_INVALID, "plain path"));
	w = wish_volume("none", "/mnt/v", 0);
	w.nmounts = 5;
	CHECK(is_error(ask(k.fd, &w, sizeof(w), NULL, 0), ERR_INVALID, "may have 4"));
	keeper_sync_close(&k);
}

static int keepers_child(struct keeper_sync *k) /* its disk process */
{
	struct frame info = sock_head(WIRE_INFO, 7);
	char path[64], text[200];
	auto_fd int fd = -1;
	ssize_t n;

	if (ask(k->fd, &info, sizeof(info), NULL, 0) != WIRE_INFO_REPLY)
		return -1;
	snprintf(path, sizeof(path), "/proc/%u/task/%u/children", GOT(wire_info)->pid,
		 GOT(wire_info)->pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = 0;
	return atoi(text); /* the first one: before any box */
}

/* The keeper waits for its child before it starts the next one. */
static int is_reaped(pid_t pid)
{
	for (int i = 0; i < 2000; i++) {
		if (kill(pid, 0) < 0)
			return 1;
		usleep(10000);
	}
	return 0;
}

TEST(a_volume_survives_the_death_of_keeper_and_disk_process)
{
	struct keeper_sync k;
	struct made m, none;
	int disks;

	NEED_ROOT();
	CHECK(open_keeper(&k, 1) == 0);
	CHECK_INT(volume(k.fd, WIRE_VOLUME_MAKE, "alive", 64 << 20), WIRE_DONE);
	CHECK(make_with(k.fd, "alive", "/data", 0, &m) == 0);
	CHECK_INT(sh(&m, "echo before >/data/f"), 0);
	CHECK(end_keeper(&k, SIGKILL) == 0 && next_keeper(&k) == 0);
	CHECK_INT(sh(&m, "echo after >>/data/f"), 0);
	/* The next keeper knows which box uses it. */
	CHECK(refused_with(k.fd, "alive", "/data", 0, ERR_CONFLICT, m.id));
	CHECK(is_error(volume(k.fd, WIRE_VOLUME_DROP, "alive", 0), ERR_CONFLICT, m.id));
	/* A keeper of other boxes cannot know this and is stopped by the kernel: the lock is
	 * held. */
	CHECK(on_host("! flock -n -x alive.img true && ! flock -n -s alive.img true") == 0);

	disks = keepers_child(&k);
	CHECK(disks > 1 && kill(disks, SIGKILL) == 0);
	CHECK_INT(sh(&m, "echo later >>/data/f"), 0);
	/* The keeper starts another one, which knows the volumes and not less about their users. */
	CHECK(is_reaped(disks));
	CHECK_INT(volume(k.fd, WIRE_VOLUME_MAKE, "x", 64 << 20), WIRE_DONE);
	CHECK(is_error(volume(k.fd, WIRE_VOLUME_DROP, "alive", 0), ERR_CONFLICT, m.id));
	CHECK(on_host("! flock -n -x alive.img true") == 0);
	CHECK_INT(volume(k.fd, WIRE_VOLUME_DROP, "x", 0), WIRE_DONE);
	CHECK(end_keeper(&k, SIGKILL) == 0 && next_keeper(&k) == 0);
	CHECK(end(k.fd, &m) == 0);
	CHECK(make_with(k.fd, "alive", "/data", 1, &none) == 0);
	CHECK_INT(sh(&none, "cat /data/f"), 0);
	CHECK_STR(said, "before\nafter\nlater\n");
	CHECK(end(k.fd, &none) == 0);
	keeper_sync_close(&k);
}

/* A test build skips the step, and then the test is seen to fail; a release build rejects that. */
TEST(without_its_launch_step_a_box_has_no_volume)
{
	struct wire_create w = wish_volume("alive", "/data", 0);
	struct keeper_sync k;
	struct made m;
	unsigned row = 0;

	NEED_ROOT();
	CHECK(open_keeper(&k, 1) == 0);
	while (row < jail_nsteps && strcmp(jail_step_rows[row].name, "volumes") != 0)
		row++;
	CHECK(row < jail_nsteps);
	w.without = UINT64_C(1) << row;
	if (make_as(k.fd, &w, &m) < 0) {
		CHECK(is_error(GOT(frame)->type, ERR_INVALID, "test builds"));
	} else {
		CHECK_INT(sh(&m, "! grep -q ' /data ' /proc/self/mountinfo && ! test -e /data"), 0);
		CHECK(end(k.fd, &m) == 0);
	}
	keeper_sync_close(&k);
}

/* Makes the keeper of a test build fail in this step, once. */
static int fail_step(const char *step)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/build-fails-%s", run_dir, step);
	f = fopen(path, "w");
	return f ? fclose(f) : -1;
}

/* The box before it may still be ending, and has the volume until then. */
static int fails_in_step(int keeper, const char *step)
{
	for (int i = 0; i < 2000; i++) {
		if (refused_with(keeper, "steps", "/data", 0, ERR_SYS, step))
			return 1;
		usleep(10000);
	}
	return 0;
}

static int count_keeper_fds(pid_t keeper)
{
	char command[200];

	snprintf(command, sizeof(command),
		 "exit $(ls -l /proc/%d/fd | grep -vc -e ' net:' -e '/net/' -e /sys/fs/cgroup/)",
		 (int)keeper);
	return WEXITSTATUS(system(command));
}

/* A volume that is still mounted, or a descriptor of it that stays open, would block the last
 * box. */
TEST(a_box_that_fails_in_a_later_step_releases_its_volume)
{
	static const char *const steps[] = { "volumes", "layers", "cgroup", "network", "launch" };
	char words[40];
	struct keeper_sync k;
	struct made m;
	struct ucred keeper;
	socklen_t len = sizeof(keeper);
	int before;

	NEED_ROOT();
#ifndef ATOLL_TEST
	SKIP("not a build with test hooks");
#endif
	CHECK(open_keeper(&k, 1) == 0);
	CHECK(getsockopt(k.fd, SOL_SOCKET, SO_PEERCRED, &keeper, &len) == 0);
	CHECK_INT(volume(k.fd, WIRE_VOLUME_MAKE, "steps", 16 << 20), WIRE_DONE);
	CHECK(make_with(k.fd, "steps", "/data", 0, &m) == 0);
	CHECK(end(k.fd, &m) == 0);
	before = count_keeper_fds(keeper.pid);
	for (unsigned i = 0; i < 5 * ARRAY_LEN(steps); i++) {
		CHECK(fail_step(steps[i % ARRAY_LEN(steps)]) == 0);
		snprintf(words, sizeof(words), "step '%s'", steps[i % ARRAY_LEN(steps)]);
		CHECK(fails_in_step(k.fd, words));
	}
	for (int i = 0; make_with(k.fd, "steps", "/data", 0, &m) < 0; i++) {
		CHECK(i < 2000);
		usleep(10000);
	}
	CHECK_INT(sh(&m, "echo works >/data/f"), 0);
	CHECK(end(k.fd, &m) == 0);
	/* The keeper has descriptors for a moment while it fills its pool. */
	for (int i = 0; count_keeper_fds(keeper.pid) >= before + 5; i++) {
		CHECK(i < 2000);
		usleep(10000);
	}
	CHECK_INT(volume(k.fd, WIRE_VOLUME_DROP, "steps", 0), WIRE_DONE);
	keeper_sync_close(&k);
}

/* The image as a power cut would leave it: copied while it is written to. */
TEST(a_volume_is_consistent_after_a_crash_of_the_host)
{
	struct keeper_sync k;
	struct made m;

	NEED_ROOT();
	CHECK(open_keeper(&k, 1) == 0);
	CHECK(make_with(k.fd, "alive", "/data", 0, &m) == 0);
	CHECK_INT(sh(&m, "i=0; while [ $i -lt 200 ]; do echo $i >/data/$i; i=$((i+1)); done; "
			 "python3 -c 'import os; os.fsync(os.open(\"/data/199\", 0)); "
			 "os.fsync(os.open(\"/data\", 0))'"),
		  0);
	CHECK(on_host("cp alive.img crashed.img") == 0);
	CHECK(end(k.fd, &m) == 0);
	CHECK(make_with(k.fd, "crashed", "/data", 1, &m) ==
	      0); /* a read-only mount, and yet the journal must be replayed */
	CHECK_INT(sh(&m, "cat /data/199 && ls /data | wc -l"), 0);
	CHECK_STR(said, "199\n201\n");
	CHECK(end(k.fd, &m) == 0);
	CHECK(on_host("e2fsck -fn crashed.img >/dev/null 2>&1") == 0);
	CHECK_INT(volume(k.fd, WIRE_VOLUME_DROP, "crashed", 0), WIRE_DONE);
	CHECK_INT(volume(k.fd, WIRE_VOLUME_DROP, "alive", 0), WIRE_DONE);
	keeper_sync_close(&k);
}

TEST(no_box_or_cgroup_is_left_after_all_volume_tests)
{
	leave_nothing();
}
