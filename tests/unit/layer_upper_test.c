/* layer_upper_test.c - the writable layer of a box as an image layer: answers of a hostile init, and
 * folders with content that a layer must not have. */
#include "keeper/layer_upper.h"
#include "base/cleanup.h"
#include "keeper/layer_image.h"
#include "tap.h"
#include "wire/sock.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#define BASE 1000000

static char top[64];
static const struct layer_upper usual = { .uid_base = BASE,
					  .bytes_most = 1 << 20,
					  .files_most = 100 };

#define NEED_ROOT()                                                                                \
	do {                                                                                       \
		if (geteuid() != 0)                                                                \
			SKIP("needs root");                                                        \
	} while (0)

static int sh(const char *script)
{
	char command[2048];

	snprintf(command, sizeof(command), "cd '%s' && umask 022 && %s", top, script);
	return system(command);
}

/* A folder "u" as a box could have left it, and an empty folder "to". */
static void begin(void)
{
	strcpy(top, "/var/tmp/upper.XXXXXX");
	if (!mkdtemp(top) || sh("mkdir u to && mkdir -p u/d u/usr/x u/opt/atoll/x u/run/secrets && "
				"echo one >u/d/a && ln u/d/a u/d/b && chmod 4750 u/d/a && "
				"chown -R 1000000:1000000 u && chown 1000033:1000042 u/d/a && "
				"chmod 4750 u/d/a && mknod u/gone c 0 0") != 0)
		abort();
}

static void end(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf '%s'", top);
	if (system(command) != 0)
		abort();
}

static int folder(const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", top, name);
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static int copy(const struct layer_upper *u, struct err *e)
{
	auto_fd int from = folder("u"), to = folder("to");

	return layer_upper_copy(from, to, u, e);
}

/* ---- init ---- */

/* A child that answers as init of a box would: DONE to STOP, then this. fd: -1: none. */
static int open_with(uint8_t type, int fd, struct err *e)
{
	struct frame done = sock_head(WIRE_DONE, 1), f = sock_head(type, 1);
	struct wire_error error = { .head = sock_head(WIRE_ERROR, 1), .msg = "no" };
	static _Alignas(8) char bytes[WIRE_MAX];
	unsigned nfds = 0;
	int pair[2], got;
	struct err ignored;
	pid_t pid;

	if (sock_pair(pair, e) < 0)
		return -1;
	pid = fork();
	if (pid == 0) {
		close(pair[0]);
		if (sock_recv(pair[1], bytes, NULL, &nfds, &ignored) > 0 && type &&
		    sock_send(pair[1], &done, sizeof(done), NULL, 0, NULL, 0, &ignored) == 0 &&
		    sock_recv(pair[1], bytes, NULL, &nfds, &ignored) > 0 &&
		    sock_send(pair[1], type == WIRE_ERROR ? (void *)&error : (void *)&f,
			      type == WIRE_ERROR ? sizeof(error) : sizeof(f), NULL, 0, &fd, fd >= 0,
			      &ignored) < 0)
			_exit(1);
		_exit(0);
	}
	close(pair[1]);
	got = layer_upper_open(pair[0], &usual, e);
	close(pair[0]);
	waitpid(pid, NULL, 0);
	return got;
}

TEST(only_a_folder_of_the_box_is_accepted_from_init)
{
	auto_fd int good = -1, host = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_fd int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_fd int file = -1, other = -1, got = -1;
	struct err e;
	int p[2];

	NEED_ROOT();
	begin();
	CHECK_INT(sh("chown 1065533 u/usr && chown 999999 u/opt"), 0);
	good = folder("u");
	other = folder("u/d");
	file = openat(other, "a", O_RDONLY | O_CLOEXEC);
	CHECK_INT(pipe2(p, O_CLOEXEC), 0);
	got = open_with(WIRE_FD, good, &e);
	CHECK(got >= 0);
	CHECK_INT(open_with(WIRE_FD, host, &e), -1);
	CHECK(strstr(e.msg, "something else") != NULL);
	CHECK_INT(open_with(WIRE_FD, proc, &e), -1);
	CHECK_INT(open_with(WIRE_FD, file, &e), -1);
	CHECK_INT(open_with(WIRE_FD, p[0], &e), -1);
	own_close_fd(&other);
	other = folder("u/usr"); /* belongs to the id of init */
	CHECK_INT(open_with(WIRE_FD, other, &e), -1);
	own_close_fd(&other);
	other = folder("u/opt"); /* belongs to the id before the first of the box */
	CHECK_INT(open_with(WIRE_FD, other, &e), -1);
	CHECK_INT(open_with(WIRE_FD, -1, &e), -1);
	CHECK_INT(open_with(WIRE_DONE, good, &e), -1);
	CHECK_INT(open_with(WIRE_ERROR, -1, &e), -1);
	CHECK(strstr(e.msg, "init of the box: no") != NULL);
	CHECK_INT(open_with(0, -1, &e), -1);
	close(p[0]);
	close(p[1]);
	end();
}

/* ---- the copy ---- */

TEST(facts_links_deletions_and_attributes_are_copied)
{
	auto_fd int d = -1, to = -1;
	struct stat a, b, st;
	char path[128], value[8];
	struct err e;

	NEED_ROOT();
	begin();
	CHECK_INT(sh("mkfifo -m 640 u/d/p && ln -s ../../../etc u/d/l && truncate -s 900K u/d/s && "
		     "chown -h 1001000:1001000 u/d/p u/d/l u/d/s && touch -d @1000000000 u/d"),
		  0);
	snprintf(path, sizeof(path), "%s/u/d", top);
	CHECK_INT(setxattr(path, "user.overlay.opaque", "y", 1, 0), 0);
	CHECK_INT(setxattr(path, "user.overlay.redirect", "/etc", 4, 0), 0);
	snprintf(path, sizeof(path), "%s/u/d/a", top);
	CHECK_INT(setxattr(path, "user.mine", "x", 1, 0), 0);
	CHECK_INT(setxattr(path, "security.capability", "\1\0\0\2\0\4\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
			   20, 0),
		  0);
	CHECK_INT(copy(&usual, &e), 0);
	to = folder("to");
	d = folder("to/d");
	CHECK_INT(fstatat(d, "a", &a, AT_SYMLINK_NOFOLLOW), 0);
	CHECK_INT(fstatat(d, "b", &b, AT_SYMLINK_NOFOLLOW), 0);
	CHECK(a.st_ino == b.st_ino && a.st_uid == 33 && a.st_gid == 42 && a.st_size == 4);
	CHECK_INT(a.st_mode & 07777, 04750);
	CHECK_INT(fstatat(d, "p", &st, AT_SYMLINK_NOFOLLOW), 0);
	CHECK(S_ISFIFO(st.st_mode) && (st.st_mode & 07777) == 0640 && st.st_uid == 1000);
	CHECK_INT(fstatat(d, "l", &st, AT_SYMLINK_NOFOLLOW), 0);
	CHECK(S_ISLNK(st.st_mode) && st.st_uid == 1000);
	CHECK_INT(fstatat(d, "s", &st, AT_SYMLINK_NOFOLLOW), 0);
	CHECK(st.st_size == 900 << 10 && st.st_blocks == 0);
	CHECK_INT(fstatat(to, "gone", &st, AT_SYMLINK_NOFOLLOW), 0);
	CHECK(layer_image_is_whiteout(&st));
	CHECK_INT(fstat(d, &st), 0);
	CHECK_INT(st.st_mtim.tv_sec, 1000000000);
	CHECK_INT(fgetxattr(d, "user.overlay.opaque", value, sizeof(value)), 1);
	CHECK_INT(fgetxattr(d, "user.overlay.redirect", value, sizeof(value)), -1);
	snprintf(path, sizeof(path), "%s/to/d/a", top);
	CHECK_INT(getxattr(path, "user.mine", value, sizeof(value)), 1);
	CHECK_INT(getxattr(path, "security.capability", NULL, 0), -1);
	end();
}

TEST(mount_points_of_atoll_are_left_out)
{
	struct err e;

	NEED_ROOT();
	begin();
	CHECK_INT(sh("mkdir u/proc u/dev u/sys u/d/proc && chown -R 1000000:1000000 u/d/proc"), 0);
	CHECK_INT(copy(&usual, &e), 0);
	CHECK_INT(sh("cd to && test -d usr/x -a -d d/proc -a -d opt -a -d run && "
		     "! ls -d proc dev sys opt/atoll run/secrets 2>/dev/null"),
		  0);
	end();
}

TEST(empty_folders_that_every_build_box_has_are_left_out_unless_they_were_changed)
{
	char path[100];
	struct err e;

	NEED_ROOT();
	begin();
	CHECK_INT(sh("rmdir u/usr/x && mkdir -p u/var/lib/dpkg u/var/cache u/d/usr && "
		     "chown -R 1000000:1000000 u/var u/d/usr"),
		  0);
	CHECK_INT(copy(&usual, &e), 0);
	CHECK_INT(sh("cd to && test -d var/cache -a -d d/usr -a ! -e usr -a ! -e var/lib"), 0);
	CHECK_INT(
		sh("rm -r to u/var/cache && mkdir to && chmod 700 u/var/lib/dpkg && mkdir u/usr/y && "
		   "chown 1000000:1000000 u/usr/y"),
		0);
	CHECK_INT(copy(&usual, &e), 0);
	CHECK_INT(sh("cd to && test -d usr/y -a -d var/lib/dpkg"), 0);
	CHECK_INT(sh("rm -r to && mkdir to && chmod 755 u/var/lib/dpkg && rmdir u/usr/y"), 0);
	snprintf(path, sizeof(path), "%s/u/usr", top);
	CHECK_INT(setxattr(path, "user.overlay.opaque", "y", 1, 0), 0);
	CHECK_INT(copy(&usual, &e), 0);
	CHECK_INT(sh("cd to && test -d usr -a ! -e var"), 0);
	end();
}

TEST(ids_of_others_devices_other_file_systems_and_too_much_are_rejected)
{
	static const struct {
		const char *script, *words;
	} tricks[] = {
		{ "chown 0 u/d/a", "not ids of the box" },
		{ "chown :0 u/d", "not ids of the box" },
		{ "chown 1065536 u/d/a", "not ids of the box" },
		{ "chown -h 1065533 u/d", "not ids of the box" },
		{ "ln -s x u/l && chown -h 5 u/l", "not ids of the box" },
		{ "mkfifo u/p", "not ids of the box" },
		{ "mknod u/null c 1 3 && chown 1000000:1000000 u/null", "is a device" },
		{ "mknod u/disk b 0 0 && chown 1000000:1000000 u/disk", "is a device" },
		{ "mount -t tmpfs -o uid=1000000,gid=1000000 none u/d", "another file system" },
		{ "truncate -s 2M u/d/a", "more than 1048576 bytes" },
		{ "cd u/d && seq 200 | xargs touch && chown -R 1000000:1000000 .",
		  "more than 100 files" },
	};
	struct err e;

	NEED_ROOT();
	CHECK_INT(unshare(CLONE_NEWNS), 0);
	CHECK_INT(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
	for (unsigned i = 0; i < ARRAY_LEN(tricks); i++) {
		begin();
		CHECK_INT(sh(tricks[i].script), 0);
		CHECK_INT(copy(&usual, &e), -1);
		if (!strstr(e.msg, tricks[i].words))
			printf("# %s: %s\n", tricks[i].script, e.msg);
		CHECK(strstr(e.msg, tricks[i].words) != NULL);
		CHECK_INT(sh("umount u/d 2>/dev/null || true"), 0);
		end();
	}
}

TEST(sockets_are_left_out)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	auto_fd int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct err e;

	NEED_ROOT();
	begin();
	snprintf(at.sun_path, sizeof(at.sun_path), "%s/u/s", top);
	CHECK_INT(bind(s, (struct sockaddr *)&at, sizeof(at)), 0);
	CHECK_INT(copy(&usual, &e), 0);
	CHECK_INT(sh("test ! -e to/s"), 0);
	end();
}
