/* warm.c - a fresh box and a Python program in it, against the same program on the bare host.
 *
 *	atoll-bench-warm SEED CODE [ROUNDS]
 *
 * Interleaved rounds of: the host's own python3 -c CODE; a box from the pool whose interpreter waits;
 * a box made on demand, interpreter forked on demand. Each from the request to the first byte of
 * output. Prints the medians and the two ratios. Expects a keeper at ATOLL_RUN. */
#include "base/clock.h"
#include "base/own.h"
#include "box/box.h"
#include "wire/sock.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

static struct keeper_link keeper = { .fd = -1 };
static const char *seed, *code;

static int fail(const struct err *e)
{
	fprintf(stderr, "atoll-bench-warm: %s\n", e->msg);
	return 1;
}

/* Microseconds to the first output; < 0: failed. */
static double on_host(void)
{
	const char *const argv[] = { "python3", "-c", code, NULL };
	uint64_t began = now_ns();
	double us;
	char byte;
	int p[2];
	pid_t pid;

	if (pipe2(p, O_CLOEXEC) < 0 || (pid = vfork()) < 0)
		return -1;
	if (pid == 0) {
		dup2(p[1], 1);
		execv("/usr/bin/python3", (char *const *)argv);
		_exit(127);
	}
	close(p[1]);
	us = read(p[0], &byte, 1) == 1 ? (double)(now_ns() - began) / 1000 : -1;
	waitpid(pid, NULL, 0);
	close(p[0]);
	return us;
}

static int first_output(struct box *b, struct err *e)
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

static double in_box(uint16_t flags, struct err *e)
{
	const char *const argv[] = { "/usr/bin/python3", "-c", code, NULL };
	struct box_command cmd = { .argv = argv, .flags = WIRE_START_SEED, .credit = 65536 };
	struct wire_create want = { .head.flags = flags, .template = "base", .limits = box_default_limits() };
	uint64_t began = now_ns();
	struct box b;
	uint32_t ref;
	double us;

	snprintf(want.seed, sizeof(want.seed), "%s", seed);
	if (box_create(&keeper, &b, &want, e) < 0)
		return -1;
	if (box_start(&b, &cmd, &ref, e) < 0 || first_output(&b, e) < 0)
		us = -1;
	else
		us = (double)(now_ns() - began) / 1000;
	(void)!box_kill(&keeper, b.about.id, NULL, e);
	box_close(&b);
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

int main(int argc, char **argv)
{
	enum { MOST = 1000 };
	static double host[MOST], pooled[MOST], demand[MOST];
	unsigned rounds = argc > 3 ? (unsigned)atoi(argv[3]) : 40;
	double h, p, d;
	struct err e;

	if (argc < 3 || rounds < 1 || rounds > MOST)
		return 2;
	seed = argv[1];
	code = argv[2];
	if (keeper_open(&keeper, 1, &e) < 0 || in_box(0, &e) < 0)
		return fail(&e);
	sleep(3); /* the zygote loads, the pool fills */
	for (unsigned i = 0; i < rounds; i++) {
		host[i] = on_host();
		if ((pooled[i] = in_box(0, &e)) < 0 || (demand[i] = in_box(WIRE_CREATE_COLD, &e)) < 0)
			return fail(&e);
		usleep(60000); /* the pool fills again */
	}
	h = median(host, rounds);
	p = median(pooled, rounds);
	d = median(demand, rounds);
	printf("%-12s host %8.2f ms   pool %6.2f ms = %.4f   on demand %6.2f ms = %.4f\n", seed, h / 1000,
	       p / 1000, p / h, d / 1000, d / h);
	keeper_close(&keeper);
	return 0;
}
