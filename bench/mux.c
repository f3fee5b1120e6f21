/* mux.c - what the multiplexer costs: an init by itself beside an init behind mux and guest stub, both as
 * plain processes. Interleaved, so that both see the same machine. See bench/tiers.
 *
 *	atoll-bench-mux INIT MUX       prints two lines, exits with 1 if a limit is exceeded */
#include "wire/frame.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 4000, OUTPUTS = 20, EXTRA_US_MOST = 60 };
#define OUTPUT_BYTES (100ull << 20)
#define RATIO_LEAST 0.6

static char frame[WIRE_MAX];

static _Noreturn void fail(const char *what)
{
	perror(what);
	exit(2);
}

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int receive(int conn)
{
	ssize_t n = recv(conn, frame, sizeof(frame), 0);

	if (n < (ssize_t)sizeof(struct frame))
		fail("receive a frame");
	return (int)n;
}

/* A box without walls: descriptors 3 to 6 as the launcher places them; 8 is init's executable for mux. */
static int box_start(const char *init, const char *mux)
{
	char *argv[] = { mux ? "mux" : "init", "0", "1", NULL }, *env[] = { NULL };
	int pair[2], listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct sockaddr any = { .sa_family = AF_UNIX };

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0 ||
	    bind(listener, &any, sizeof(any.sa_family)) < 0 || listen(listener, 8) < 0)
		fail("make sockets");
	if (fork() == 0) {
		int null = open("/dev/null", O_RDWR), exe = open(init, O_RDONLY), i;
		int from[] = { null, null, null, pair[1], listener, null, null, null, exe };

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (i = 0; i < 9; i++)
			from[i] = fcntl(from[i], F_DUPFD_CLOEXEC, 100);
		for (i = 0; i < 9; i++)
			if (i != 7)
				dup2(from[i], i);
		execve(mux ? mux : init, argv, env);
		_exit(99);
	}
	close(pair[1]);
	close(listener);
	if (mux)
		receive(pair[0]); /* the guest stub is ready */
	return pair[0];
}

static double stat_us(int conn)
{
	struct frame f = { .version = WIRE_VERSION, .type = WIRE_STAT };
	double began = now_us();

	if (send(conn, &f, sizeof(f), 0) < 0)
		fail("send STAT");
	receive(conn);
	return now_us() - began;
}

/* Seconds for 100 MiB of output, all of it granted at once. */
static double output_s(int conn, uint32_t ref)
{
	static const char tail[] = "/\0head\0-c\000104857600\0/dev/zero";
	struct wire_start st = {
		.head = { .version = WIRE_VERSION, .type = WIRE_START, .ref = ref },
		.argc = 4,
		.tail_bytes = sizeof(tail),
		.log_bytes = 1 << 20,
		.grace_ms = 1000,
		.credit = { ~0ull, ~0ull, ~0ull }
	};
	char bytes[sizeof(st) + sizeof(tail)];
	uint64_t got = 0;
	double began = now_us();

	memcpy(bytes, &st, sizeof(st));
	memcpy(bytes + sizeof(st), tail, sizeof(tail));
	if (send(conn, bytes, sizeof(bytes), 0) < 0)
		fail("send START");
	for (;;) {
		int n = receive(conn), type = ((struct frame *)(void *)frame)->type;

		if (type == WIRE_OUTPUT)
			got += (uint64_t)n - sizeof(struct wire_output);
		else if (type == WIRE_EXIT)
			break;
		else
			fail("unexpected frame");
	}
	if (got != OUTPUT_BYTES)
		fail("output is missing");
	return (now_us() - began) / 1e6;
}

static int bench_stat(int direct, int muxed)
{
	static double a[ROUNDS], b[ROUNDS];
	double extra;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		a[i] = stat_us(direct);
		b[i] = stat_us(muxed);
	}
	qsort(a, ROUNDS, sizeof(a[0]), compare_doubles);
	qsort(b, ROUNDS, sizeof(b[0]), compare_doubles);
	extra = b[ROUNDS / 2] - a[ROUNDS / 2];
	printf("STAT                direct %6.1f us   mux %6.1f us   + %.1f us (at most %d)\n",
	       a[ROUNDS / 2], b[ROUNDS / 2], extra, EXTRA_US_MOST);
	return extra <= EXTRA_US_MOST;
}

static int bench_output(int direct, int muxed)
{
	double a = 1e9, b = 1e9, ratio;
	uint32_t i;

	for (i = 1; i <= OUTPUTS; i++) {
		double one = output_s(direct, i), other = output_s(muxed, i);

		a = one < a ? one : a;
		b = other < b ? other : b;
	}
	ratio = a / b;
	printf("100 MiB of output   direct %6.3f s    mux %6.3f s    throughput %.2f (at least %.1f)\n",
	       a, b, ratio, RATIO_LEAST);
	return ratio >= RATIO_LEAST;
}

int main(int argc, char **argv)
{
	int direct, muxed, good;

	if (argc != 3) {
		fprintf(stderr, "usage: atoll-bench-mux INIT MUX\n");
		return 2;
	}
	direct = box_start(argv[1], NULL);
	muxed = box_start(argv[1], argv[2]);
	good = bench_stat(direct, muxed);
	good &= bench_output(direct, muxed);
	return !good;
}
