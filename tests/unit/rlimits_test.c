/* rlimits_test.c - rlimits, and the table of isolation features. */
#include "jail/rlimits.h"
#include "jail/feature.h"
#include "forked.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>

static unsigned long long lower(unsigned long long a, unsigned long long b)
{
	return a < b ? a : b;
}

TEST_FORKED(each_limit_is_set_or_was_lower_before)
{
	struct rlimit before, now;
	struct err e;

	for (unsigned i = 0; i < limits_nrows; i++) {
		const struct limit_row *row = &limits_rows[i];

		CHECK(getrlimit(row->resource, &before) == 0);
		CHECK(limits_apply(&e) == 0); /* the second call changes nothing */
		CHECK(getrlimit(row->resource, &now) == 0);
		CHECK_INT(now.rlim_max, lower(row->hard, before.rlim_max));
		CHECK_INT(now.rlim_cur, lower(row->soft, now.rlim_max));
	}
}

TEST_FORKED(a_lower_hard_limit_stays)
{
	struct rlimit files = { 50, 100 };
	struct err e;

	CHECK(setrlimit(RLIMIT_NOFILE, &files) == 0);
	CHECK(limits_apply(&e) == 0);
	CHECK(getrlimit(RLIMIT_NOFILE, &files) == 0);
	CHECK_INT(files.rlim_max, 100);
	CHECK_INT(files.rlim_cur, 100);
}

TEST_FORKED(the_soft_limit_bounds_open_files)
{
	struct err e;
	int fd, last = -1;

	CHECK(limits_apply(&e) == 0);
	while ((fd = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
		last = fd;
	CHECK_INT(errno, EMFILE);
	CHECK(last < 1024);
}

/* In new mount and user namespaces: the first to have another core_pattern, the second to be
 * without CAP_SYS_RESOURCE. Returns -1 where that is not permitted. */
static int with_core_pattern(const char *pattern)
{
	static const char at[] = "/proc/sys/kernel/core_pattern";
	char path[] = "/tmp/rlimits_test.XXXXXX";
	int fd = mkstemp(path), done = -1;

	if (fd < 0)
		return -1;
	if (write(fd, pattern, strlen(pattern)) > 0 && unshare(CLONE_NEWNS) == 0 &&
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
	    mount(path, at, NULL, MS_BIND, NULL) == 0)
		done = 0;
	unlink(path);
	close(fd);
	return done;
}

static int apply_with_no_core(const char *pattern)
{
	struct err e;

	if (with_core_pattern(pattern) < 0 ||
	    setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 }) < 0 || unshare(CLONE_NEWUSER) < 0)
		return 77;
	if (limits_apply(&e) == 0)
		return 0;
	return e.kind == ERR_DENIED && strstr(e.msg, "core_pattern") ? 1 : 2;
}

static int core_to_a_file(void)
{
	return apply_with_no_core("core.%p\n");
}
static int core_to_a_program(void)
{
	return apply_with_no_core("|/usr/bin/handler %p\n");
}
static int core_to_a_socket(void)
{
	return apply_with_no_core("@/run/handler\n");
}

TEST(a_core_limit_of_zero_is_rejected_where_cores_are_piped)
{
	int file = WEXITSTATUS(forked_status(core_to_a_file));

	if (file == 77)
		SKIP("no mount or user namespaces here");
	CHECK_INT(file, 0);
	CHECK_INT(WEXITSTATUS(forked_status(core_to_a_program)), 1);
	CHECK_INT(WEXITSTATUS(forked_status(core_to_a_socket)), 1);
}

static int dump_core(void)
{
	struct err e;

	if (chdir("/tmp") < 0 || limits_apply(&e) < 0)
		return 1;
	signal(SIGABRT, SIG_DFL);
	abort();
}

TEST(a_crash_writes_no_core)
{
	int status = forked_status(dump_core);

	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	CHECK(!WCOREDUMP(status));
}

TEST(every_rlimit_and_every_feature_has_a_reason)
{
	for (unsigned i = 0; i < limits_nrows; i++)
		CHECK(limits_rows[i].name && limits_rows[i].why &&
		      limits_rows[i].soft <= limits_rows[i].hard);
	for (unsigned i = 0; i < FEATURE_COUNT; i++)
		CHECK(jail_features[i].name && jail_features[i].why && jail_features[i].missing);
	CHECK(jail_features[FEATURE_SECCOMP].mandatory &&
	      !jail_features[FEATURE_LANDLOCK].mandatory);
}
