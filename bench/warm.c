/* warm.c - a new box with a warm interpreter, compared with the same program on the host.
 *
 * atoll-bench-warm [ROUNDS]
 *
 * Interleaved rounds of: the interpreter of the host; a pooled box with a warm interpreter; a box
 * created on demand, with an interpreter forked on demand. Each from the request to the first byte
 * of output, including the transfer of the program where it is not an argument. Then 200 idle
 * interpreters at once, and the memory of each. bench/warm starts the keeper at ATOLL_RUN for
 * it. */
#include "base/clock.h"
#include "base/cleanup.h"
#include "client/box_handle.h"
#include "client/files.h"
#include "wire/sock.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

enum {
	ROUNDS_MOST = 1000,
	SETTLE_US = 120000,
	LOAD_TRIES = 200,
	LOAD_WAIT_US = 50000,
	CROWD = 200
};

struct subject {
	const char *warm, *program, *flag, *code;
	const char *file; /* the code is written there; NULL: it is passed as an argument */
	double pool_goal, demand_goal; /* 0: none */
};
static const struct subject subjects[] = {
	{ "python", "/usr/bin/python3", "-c", "print(1)", NULL, 0.05, 0.3 },
	{ "python-data", "/usr/bin/python3", "-c", "import pandas; print(1)", NULL, 0.005, 0.03 },
	{ "node", "/usr/bin/node", "-e", "console.log(1)", "main.js", 0.1, 0 },
};

static struct keeper_sync keeper = { .fd = -1 };

/* Microseconds to the first output; < 0: failed. */
static double on_host(const struct subject *s)
{
	const char *const argv[] = { s->program, s->flag, s->code, NULL };
	uint64_t began = now_ns();
	double us;
	char byte;
	int p[2];
	pid_t pid;

	if (pipe2(p, O_CLOEXEC) < 0 || (pid = vfork()) < 0)
		return -1;
	if (pid == 0) {
		dup2(p[1], 1);
		execv(s->program, (char *const *)argv);
		_exit(127);
	}
	close(p[1]);
	us = read(p[0], &byte, 1) == 1 ? (double)(now_ns() - began) / 1000 : -1;
	waitpid(pid, NULL, 0);
	close(p[0]);
	return us;
}

static int first_output(struct box_handle *b, struct err *e)
{
	static _Alignas(8) char bytes[WIRE_MAX];
	unsigned nfds = 0;

	for (;;) {
		const struct frame *f = (const void *)bytes;
		int n = sock_recv(b->init, bytes, NULL, &nfds, e);

		if (n <= 0 || f->type == WIRE_EXIT)
			return err_set(e, ERR_SYS, "no output");
		if (f->type == WIRE_OUTPUT)
			return 0;
	}
}

static int create(const struct subject *s, uint16_t flags, struct box_handle *b, struct err *e)
{
	struct wire_create want = { .head.flags = flags,
				    .template = "base",
				    .limits = box_default_limits() };

	snprintf(want.warm, sizeof(want.warm), "%s", s->warm);
	return boxh_create(&keeper, b, &want, e);
}

static int put(const struct subject *s, struct box_handle *b, struct err *e)
{
	struct files f;
	int done;

	if (!s->file)
		return 0;
	if (files_open(&f, b, e) < 0)
		return -1;
	done = files_put_bytes(&f, s->code, strlen(s->code), s->file, 0644, e);
	files_close(&f);
	return done;
}

/* As on_host(). -2: the box was created without a warm interpreter. */
static double in_box(const struct subject *s, uint16_t flags, struct err *e)
{
	const char *const by_word[] = { s->program, s->flag, s->code, NULL }, *const by_file[] = {
		s->program, s->file, NULL
	};
	struct box_command cmd = { .argv = s->file ? by_file : by_word,
				   .flags = WIRE_START_WARM,
				   .credit = 65536 };
	uint64_t began = now_ns();
	double us = -1;
	struct box_handle b;
	uint32_t ref;

	if (create(s, flags, &b, e) < 0)
		return -1;
	if (!b.about.warm)
		us = -2;
	else if (put(s, &b, e) == 0 && boxh_start(&b, &cmd, &ref, e) == 0 &&
		 first_output(&b, e) == 0)
		us = (double)(now_ns() - began) / 1000;
	(void)!boxh_kill(&keeper, b.about.id, NULL, e);
	boxh_close(&b);
	return us;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double median(double *v, unsigned n)
{
	qsort(v, n, sizeof(*v), compare);
	return v[n / 2];
}

static const char *verdict(double ratio, double goal)
{
	return !goal ? "" : ratio <= goal ? "met" : "missed";
}

static int measure(const struct subject *s, unsigned rounds, struct err *e)
{
	static double host[ROUNDS_MOST], pooled[ROUNDS_MOST], demand[ROUNDS_MOST];
	double h, p, d;
	int tries = 0;

	/* The first request gets a box without a warm interpreter, and loads one for the next. */
	while (in_box(s, 0, e) < 0 && tries++ < LOAD_TRIES)
		usleep(LOAD_WAIT_US);
	for (unsigned i = 0; i < rounds; i++) {
		usleep(SETTLE_US); /* the pool is refilled */
		host[i] = on_host(s);
		pooled[i] = in_box(s, 0, e);
		demand[i] = in_box(s, WIRE_CREATE_COLD, e);
		if (host[i] < 0 || pooled[i] < 0 || demand[i] < 0)
			return err_set(e, ERR_SYS, "%s: not measured (%.100s)", s->warm, e->msg);
	}
	h = median(host, rounds);
	p = median(pooled, rounds);
	d = median(demand, rounds);
	printf("%-12s host %7.2f ms | pool %6.2f ms, x host %.4f (goal %.3f) %s | demand %6.2f ms, x host %.4f (goal %.3f) %s\n",
	       s->warm, h / 1000, p / 1000, p / h, s->pool_goal, verdict(p / h, s->pool_goal),
	       d / 1000, d / h, s->demand_goal, verdict(d / h, s->demand_goal));
	return 0;
}

static double available_mib(void)
{
	FILE *f = fopen("/proc/meminfo", "re");
	unsigned long long kib = 0;
	char line[128];

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "MemAvailable: %llu", &kib) == 1)
			break;
	if (f)
		fclose(f);
	return (double)kib / 1024;
}

/* Boxes with the scientific stack loaded, all at once, idle. */
static int crowd(struct err *e)
{
	static struct box_handle boxes[CROWD];
	double before, after;
	unsigned n = 0;
	int rc = 0;

	sleep(2); /* everything of the rounds is deleted */
	before = available_mib();
	for (; rc == 0 && n < CROWD; n++) {
		rc = create(&subjects[1], WIRE_CREATE_COLD, &boxes[n], e);
		if (rc == 0 && !boxes[n].about.warm)
			rc = err_set(e, ERR_SYS, "a box without a warm interpreter");
	}
	sleep(1);
	after = available_mib();
	if (rc == 0)
		printf("%u idle boxes with the scientific stack: %.2f MiB each (goal 5) %s\n", n,
		       (before - after) / n, verdict((before - after) / n, 5));
	while (n-- > 0)
		if (boxes[n].init > 0) {
			(void)!boxh_kill(&keeper, boxes[n].about.id, NULL, e);
			boxh_close(&boxes[n]);
		}
	return rc;
}

int main(int argc, char **argv)
{
	unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 60;
	struct err e = { 0 };
	int failed = 0;

	if (rounds < 1 || rounds > ROUNDS_MOST || keeper_sync_open(&keeper, 0, &e) < 0) {
		fprintf(stderr, "atoll-bench-warm: %s\n", e.kind ? e.msg : "rounds");
		return 1;
	}
	for (unsigned i = 0; i < ARRAY_LEN(subjects); i++)
		if (measure(&subjects[i], rounds, &e) < 0) {
			fprintf(stderr, "atoll-bench-warm: %s\n", e.msg);
			failed = 1;
		}
	if (crowd(&e) < 0)
		fprintf(stderr, "atoll-bench-warm: %s\n", e.msg);
	keeper_sync_close(&keeper);
	return failed;
}
