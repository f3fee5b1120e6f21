/* err_test.c - errors: kind, errno and message. */
#include "base/err.h"
#include "tap.h"

#include <errno.h>

TEST(every_way_to_fail_returns_minus_one)
{
	struct err e;

	CHECK_INT(err_set(&e, ERR_INVALID, "x"), -1);
	CHECK_INT(err_sys(&e, "x"), -1);
	CHECK_INT(err_in(&e, "x"), -1);
}

TEST(err_sys_keeps_errno_and_appends_its_text)
{
	struct err e;

	errno = EACCES;
	err_sys(&e, "write '%s' to %s", "4G", "memory.max");
	CHECK_STR(e.msg, "write '4G' to memory.max: Permission denied");
	CHECK_INT(e.sys, EACCES);
	CHECK_INT(e.kind, ERR_SYS);
}

TEST(err_in_prepends_context_and_keeps_errno)
{
	struct err e;

	errno = ENOENT;
	err_sys(&e, "open x");
	errno = 0;
	err_in(&e, "cgroup %s", "box-7");
	err_in(&e, "box 7");
	CHECK_STR(e.msg, "box 7: cgroup box-7: open x: No such file or directory");
	CHECK_INT(e.sys, ENOENT);
	CHECK_INT(e.kind, ERR_SYS);
}

TEST(err_set_has_no_errno)
{
	struct err e = { .sys = EIO };

	errno = EIO;
	err_set(&e, ERR_LIMIT, "%d is too many", 3);
	CHECK_STR(e.msg, "3 is too many");
	CHECK_INT(e.sys, 0);
	CHECK_INT(e.kind, ERR_LIMIT);
}

TEST(a_long_message_is_truncated_and_terminated)
{
	struct {
		struct err e;
		char after[8];
	} s = { .after = "intact" };
	char long_text[1000];

	memset(long_text, 'x', sizeof(long_text) - 1);
	long_text[sizeof(long_text) - 1] = 0;
	err_set(&s.e, ERR_INVALID, "%s", long_text);
	CHECK_INT(strlen(s.e.msg), sizeof(s.e.msg) - 1);
	err_sys(&s.e, "%s", long_text);
	CHECK_INT(strlen(s.e.msg), sizeof(s.e.msg) - 1);
	err_in(&s.e, "%s", long_text);
	CHECK_INT(strlen(s.e.msg), sizeof(s.e.msg) - 1);
	CHECK_STR(s.after, "intact");
}

TEST(every_kind_has_a_name_of_its_own)
{
	for (enum err_kind a = ERR_NONE; a <= ERR_SYS; a++) {
		CHECK(err_kind_name(a) && strcmp(err_kind_name(a), "unknown") != 0);
		for (enum err_kind b = ERR_NONE; b < a; b++)
			CHECK(strcmp(err_kind_name(a), err_kind_name(b)) != 0);
	}
	CHECK_STR(err_kind_name((enum err_kind)99), "unknown");
}
