/* landlock_test.c - Landlock rules, tested inside a small root. */
#include "jail/landlock.h"
#include "jail/caps.h"
#include "forked.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <termios.h>

/* A tmpfs over /mnt, in a mount namespace that ends with this process: nothing to clean up. */
static int enter_small_root(void)
{
	if (unshare(CLONE_NEWNS) < 0 || mount("", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("none", "/mnt", "tmpfs", 0, "mode=777") < 0)
		return 0;
	umask(0);
	return chroot("/mnt") == 0 && chdir("/") == 0 && mkdir("/a", 0777) == 0 &&
	       mkdir("/b", 0777) == 0 && mknod("/a/file", S_IFREG | 0777, 0) == 0;
}

/* The same device twice; the table has one of the names. */
static int make_devices(void)
{
	return mkdir("/dev", 0755) == 0 && mknod("/dev/null", S_IFCHR | 0666, makedev(1, 3)) == 0 &&
	       mknod("/other", S_IFCHR | 0666, makedev(1, 3)) == 0;
}

static int restrict_to(int abi)
{
	struct err e = { 0 };
	int ok = caps_no_new_privs(&e) == 0 && landlock_apply(abi, -1, 1, &e) == 0;

	if (!ok)
		printf("# %s\n", e.msg);
	return ok;
}

#define NEED_ABI(n)                                                                                \
	do {                                                                                       \
		if (landlock_abi() < (n))                                                          \
			SKIP("needs landlock ABI " #n);                                            \
		if (geteuid() != 0)                                                                \
			SKIP("needs root, to make a small root");                                  \
	} while (0)

TEST_FORKED(an_unprivileged_user_can_work_in_its_own_root)
{
	int fd;

	NEED_ABI(3);
	CHECK(enter_small_root() && make_devices());
	CHECK(syscall(SYS_setresgid, 65534, 65534, 65534) == 0);
	CHECK(syscall(SYS_setresuid, 65534, 65534, 65534) == 0);
	CHECK(restrict_to(landlock_abi()));
	fd = open("/a/new", O_RDWR | O_CREAT | O_TRUNC, 0600);
	CHECK(fd >= 0 && write(fd, "hello", 5) == 5);
	CHECK(ftruncate(fd, 2) == 0 && truncate("/a/new", 1) == 0);
	CHECK(rename("/a/new", "/b/moved") == 0);
	CHECK(link("/b/moved", "/a/linked") == 0);
	CHECK(symlink("x", "/a/symbolic") == 0 && mkfifo("/a/fifo", 0600) == 0);
	CHECK(mkdir("/a/dir", 0700) == 0 && rmdir("/a/dir") == 0 && unlink("/a/fifo") == 0);
	CHECK(open("/", O_RDONLY | O_DIRECTORY) >= 0);
	CHECK(open("/dev/null", O_RDWR) >= 0);
}

TEST_FORKED(root_cannot_create_device_nodes)
{
	NEED_ABI(1);
	CHECK(enter_small_root());
	CHECK(mknod("/a/before", S_IFCHR | 0600, makedev(1, 3)) == 0);
	CHECK(restrict_to(landlock_abi()));
	CHECK_FAILS(mknod("/a/char", S_IFCHR | 0600, makedev(1, 3)), EACCES);
	CHECK_FAILS(mknod("/a/block", S_IFBLK | 0600, makedev(7, 0)), EACCES);
}

TEST_FORKED(ioctl_on_a_device_outside_the_table_is_denied)
{
	struct termios t;

	NEED_ABI(5);
	CHECK(enter_small_root() && make_devices());
	CHECK(restrict_to(landlock_abi()));
	CHECK_FAILS(ioctl(open("/dev/null", O_RDWR), TCGETS, &t), ENOTTY);
	CHECK_FAILS(ioctl(open("/other", O_RDWR), TCGETS, &t), EACCES);
}

TEST_FORKED(signals_to_processes_outside_the_domain_are_denied)
{
	pid_t inside;

	NEED_ABI(6);
	CHECK(kill(getppid(), 0) == 0);
	CHECK(restrict_to(landlock_abi()));
	CHECK_FAILS(kill(getppid(), 0), EPERM);
	inside = fork();
	if (inside == 0)
		_exit(pause());
	CHECK(kill(inside, SIGKILL) == 0 && waitpid(inside, NULL, 0) == inside);
}

TEST_FORKED(abstract_sockets_outside_the_domain_are_denied)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX, .sun_path = "\0atoll-landlock-test" };
	int listener = socket(AF_UNIX, SOCK_STREAM, 0), before = socket(AF_UNIX, SOCK_STREAM, 0);
	int after = socket(AF_UNIX, SOCK_STREAM, 0);

	NEED_ABI(6);
	CHECK(bind(listener, (struct sockaddr *)&name, sizeof(name)) == 0);
	CHECK(listen(listener, 4) == 0);
	CHECK(connect(before, (struct sockaddr *)&name, sizeof(name)) == 0);
	CHECK(restrict_to(landlock_abi()));
	CHECK_FAILS(connect(after, (struct sockaddr *)&name, sizeof(name)), EPERM);
}

TEST_FORKED(an_old_landlock_abi_gets_only_flags_it_supports)
{
	NEED_ABI(2);
	CHECK(enter_small_root());
	CHECK(restrict_to(1));
	CHECK_FAILS(rename("/a/file", "/b/file"), EXDEV); /* as described in landlock.c */
	CHECK(kill(getppid(), 0) == 0);
	CHECK(truncate("/a/file", 0) == 0);
}

TEST_FORKED(a_newer_landlock_abi_gets_only_flags_we_know)
{
	NEED_ABI(6);
	CHECK(enter_small_root());
	CHECK(restrict_to(99));
	CHECK_FAILS(mknod("/a/char", S_IFCHR | 0600, makedev(1, 3)), EACCES);
}

TEST_FORKED(abi_zero_restricts_nothing)
{
	CHECK(restrict_to(0));
	CHECK(kill(getppid(), 0) == 0);
}

TEST_FORKED(only_a_missing_path_is_skipped)
{
	struct err e;

	NEED_ABI(5);
	CHECK(enter_small_root());
	CHECK(restrict_to(landlock_abi())); /* no /dev at all */
	CHECK(symlink("dev", "/dev") == 0);
	CHECK(landlock_apply(landlock_abi(), -1, 1, &e) < 0);
	CHECK_STR(e.msg, "open /dev: Too many levels of symbolic links");
	CHECK_INT(e.sys, ELOOP);
}

TEST(every_rule_has_a_name_and_a_reason)
{
	for (unsigned i = 0; i < landlock_nrows; i++)
		CHECK(landlock_rows[i].rights && landlock_rows[i].why);
}
