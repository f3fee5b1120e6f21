/* init_engine_test.c - init as root on a kernel like that of gVisor, which has fewer calls. A filter returns the
 * errors that were seen there. */
#define BOXED_ENGINE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define UNLESS(test, value, skip) BPF_JUMP(BPF_JMP | (test) | BPF_K, value, 0, skip)
#define FAILS(error) BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (error))

/* The user is not the id of init, as in a box. */
static void boxed_engine(char *uid, size_t n)
{
	static struct sock_filter code[] = {
		LOAD(nr),
		UNLESS(BPF_JEQ, SYS_ioctl, 3),
		LOAD(args[1]),
		UNLESS(BPF_JEQ, TIOCGPTPEER, 10),
		FAILS(25 /* ENOTTY */),
		UNLESS(BPF_JEQ, SYS_prctl, 3),
		LOAD(args[0]),
		UNLESS(BPF_JEQ, PR_CAP_AMBIENT, 6),
		FAILS(22 /* EINVAL */),
		UNLESS(BPF_JEQ, SYS_close_range, 4),
		LOAD(args[1]),
		UNLESS(BPF_JGT, 0x7fffffff, 2),
		FAILS(22),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { sizeof(code) / sizeof(code[0]), code };

	snprintf(uid, n, "1000");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog) < 0)
		_exit(97);
}

#include "unit/boxed.h"

static void the_filter_of_this_test_is_in_force(struct box *b)
{
	struct wire_start st = starting(1);

	shell(b->conn, &st, "grep -c '^Seccomp_filters:.1$' /proc/self/status");
	CHECK(!strcmp(hear(b->conn)->text[0], "1\n"));
}

static void a_program_runs_as_the_user_without_capabilities(struct box *b)
{
	struct wire_start st = starting(1);

	shell(b->conn, &st,
	      "id -u; grep -E 'Cap(Inh|Prm|Eff):' /proc/self/status | tr -d 'a-zA-Z:\\t\\n'");
	CHECK(!strcmp(hear(b->conn)->text[0],
		      "1000\n000000000000000000000000000000000000000000000000"));
}

static void the_bounding_set_is_dropped_before_the_uid_changes(struct box *b)
{
	struct wire_start st = starting(1);
	const char *line;
	uint64_t set;

	shell(b->conn, &st, "grep CapBnd /proc/self/status");
	line = hear(b->conn)->text[0];
	CHECK(!strncmp(line, "CapBnd:\t", 8));
	set = strtoull(line + 8, NULL, 16);
	CHECK(!(set &
		(1 << 0 | 1 << 1 | 1 << 6 | 1 << 7))); /* chown, dac_override, setgid, setuid */
}

static void a_terminal_is_opened_by_its_name(struct box *b)
{
	struct wire_start st = starting(1);

	st.head.flags = WIRE_START_PTY;
	shell(b->conn, &st, "test -t 0 && test -t 1 && echo terminal");
	CHECK(!strcmp(hear(b->conn)->text[0], "terminal\r\n"));
}

static void a_file_worker_starts(struct box *b)
{
	auto_fd int w = open_worker(b);
	char text[16] = "";

	CHECK(get_bytes(w, "/etc/passwd", 0, 4, text, sizeof(text)) == 4);
}

static const struct test tests[] = {
	TEST(the_filter_of_this_test_is_in_force),
	TEST(a_program_runs_as_the_user_without_capabilities),
	TEST(the_bounding_set_is_dropped_before_the_uid_changes),
	TEST(a_terminal_is_opened_by_its_name),
	TEST(a_file_worker_starts),
};

int main(int argc, char **argv)
{
	if (getuid()) {
		printf("1..0 # SKIP only root can start init as another user\n");
		return 0;
	}
	return run_tests(tests, ARRAY_LEN(tests), argc, argv);
}
