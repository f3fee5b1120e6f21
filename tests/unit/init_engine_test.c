/* init_engine_test.c - init as root on a kernel like that of gVisor, which has fewer calls. A filter returns the
 * errors that were seen there. */
#define BOXED_ENGINE
#define BOXED_COUNTS
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
		UNLESS(BPF_JEQ, TIOCGPTPEER, 15),
		FAILS(25 /* ENOTTY */),
		UNLESS(BPF_JEQ, SYS_prctl, 3),
		LOAD(args[0]),
		UNLESS(BPF_JEQ, PR_CAP_AMBIENT, 11),
		FAILS(22 /* EINVAL */),
		UNLESS(BPF_JEQ, SYS_fallocate, 1),
		FAILS(95 /* EOPNOTSUPP */),
		UNLESS(BPF_JEQ, SYS_setfsuid, 1),
		FAILS(38 /* ENOSYS */),
		UNLESS(BPF_JEQ, SYS_setfsgid, 1),
		FAILS(38),
		UNLESS(BPF_JEQ, SYS_close_range, 3),
		LOAD(args[1]),
		UNLESS(BPF_JGT, 0x7fffffff, 1),
		FAILS(22),
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

/* And init is itself again afterwards: it can start a program as the user. */
static void an_early_file_belongs_to_the_user(struct box *b)
{
	struct wire_put put = { .head = head(WIRE_PUT_EARLY, 9), .mode = 0640 };
	struct wire_start st = starting(1);
	char folder[40], tail[60];
	struct stat file, above;
	int n;

	snprintf(folder, sizeof(folder), "/tmp/early.%d", (int)getpid());
	n = snprintf(tail, sizeof(tail), "%s/f%ctext", folder, 0);
	send_frame(b->conn, &put, sizeof(put), tail, (size_t)n, -1);
	shell(b->conn, &st, "id -u");
	CHECK(!strcmp(hear(b->conn)->text[0], "1000\n"));
	snprintf(tail, sizeof(tail), "%s/f", folder);
	CHECK(stat(folder, &above) == 0 && stat(tail, &file) == 0);
	unlink(tail);
	rmdir(folder);
	CHECK(file.st_uid == 1000 && file.st_gid == 1000 && file.st_mode == (S_IFREG | 0640));
	CHECK(above.st_uid == 1000 && file.st_size == 4);
}

/* Of the logs of all execs; on this kernel every byte of a file is in memory. */
static long bytes_of_logs(const struct box *b)
{
	char path[300], link[40];
	struct stat st;
	long sum = 0;

	for (int fd = 0; fd < 64; fd++) {
		ssize_t n;

		snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)b->pid, fd);
		n = readlink(path, link, sizeof(link) - 1);
		if (n > 0 && !strncmp(link, "/memfd:log", 10) && stat(path, &st) == 0)
			sum += st.st_size;
	}
	return sum;
}

static void old_output_is_dropped_without_holes_in_files(struct box *b)
{
	struct wire_start st = starting(1);
	struct exec_output *h;
	auto_fd int other = -1;

	st.log_bytes = 65536;
	st.head.flags = WIRE_START_DETACHED;
	shell(b->conn, &st, "seq 1000000 1200000"); /* lines of 8 bytes */
	hear(b->conn);
	CHECK(bytes_of_logs(b) >= 65536 && bytes_of_logs(b) <= 3 * 65536);
	other = box_connect(b);
	send_credit(other, WIRE_ATTACH, 1, 0, 8 * 195000, UINT64_MAX, 0);
	h = hear(other);
	CHECK(h->first[0] == 8 * 195000 && h->n[0] == 8 * 5001);
	CHECK(!strncmp(h->text[0], "1195000\n1195001\n", 16));
	CHECK(!strncmp(h->text[0] + h->n[0] - 8, "1200000\n", 8));
}

/* ---- counters of the kernel of a guest ---- */

static void counted(const char *memory, const char *pids)
{
	const char *const text[] = { memory, pids };

	mkdir(in_dir("counts"), 0755);
	for (int i = 0; i < 2; i++) {
		FILE *f = fopen(in_dir(i ? "counts/pids.events" : "counts/memory.events"), "w");

		CHECK(f && fputs(text[i], f) >= 0 && fclose(f) == 0);
	}
}

/* It ends when its stdin does. */
static void start_waiting(struct box *b, uint32_t ref, const char *then)
{
	struct wire_start st = starting(ref);
	char script[80];

	snprintf(script, sizeof(script), "read x; %s", then);
	st.head.flags = WIRE_START_STDIN | WIRE_START_NOTIFY;
	shell(b->conn, &st, script);
	while (receive(b->conn) && HEAD->type != WIRE_STARTED)
		;
	CHECK(HEAD->type == WIRE_STARTED);
}

static uint16_t end_waiting(struct box *b, uint32_t ref)
{
	send_head(b->conn, WIRE_STDIN, ref);
	while (receive(b->conn) && HEAD->type != WIRE_EXIT)
		;
	CHECK(HEAD->type == WIRE_EXIT && HEAD->ref == ref);
	return HEAD->flags;
}

static void an_exit_has_the_counters_of_the_guest_since_its_start(struct box *b)
{
	counted("low 0\noom 1\noom_kill 2\n", "max 5\n");
	start_waiting(b, 1, "exit 0");
	CHECK(end_waiting(b, 1) == wire_exit_flags(0, 0));
	start_waiting(b, 2, "kill -9 $$");
	counted("low 0\noom 3\noom_kill 4\n", "max 12\n");
	CHECK(end_waiting(b, 2) == wire_exit_flags(2, 7));
}

static void a_kill_for_memory_explains_the_end_of_one_exec_only(struct box *b)
{
	counted("oom_kill 0\n", "max 0\n");
	start_waiting(b, 3, "exit 0"); /* init may have started before these counters existed */
	end_waiting(b, 3);
	start_waiting(b, 1, "kill -9 $$");
	start_waiting(b, 2, "kill -9 $$");
	counted("oom_kill 1\n", "max 0\n");
	CHECK(end_waiting(b, 1) == wire_exit_flags(1, 0));
	CHECK(end_waiting(b, 2) == wire_exit_flags(0, 0));
}

static const struct test tests[] = {
	TEST(an_exit_has_the_counters_of_the_guest_since_its_start),
	TEST(a_kill_for_memory_explains_the_end_of_one_exec_only),
	TEST(the_filter_of_this_test_is_in_force),
	TEST(a_program_runs_as_the_user_without_capabilities),
	TEST(the_bounding_set_is_dropped_before_the_uid_changes),
	TEST(a_terminal_is_opened_by_its_name),
	TEST(a_file_worker_starts),
	TEST(an_early_file_belongs_to_the_user),
	TEST(old_output_is_dropped_without_holes_in_files),
};

int main(int argc, char **argv)
{
	if (getuid()) {
		printf("1..0 # SKIP only root can start init as another user\n");
		return 0;
	}
	return run_tests(tests, ARRAY_LEN(tests), argc, argv);
}
