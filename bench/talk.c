/* talk.c - one exec, requested over HTTP and directly from init, in turns in the same box.
 *
 *	atoll-bench-talk PORT KEY BOX ROUNDS	(ATOLL_RUN names the keeper's folder)
 *
 * Prints {"direct": {...}, "http": {...}}. The HTTP client is minimal: one connection, one write,
 * reads until Content-Length is reached. The remaining difference is the daemon. */
#include "base/clock.h"
#include "base/cleanup.h"
#include "client/box_handle.h"
#include "sample.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { WARM_UP = 20, ANSWER = 64 * 1024 };

static int dial(unsigned short port, struct err *e)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_port = htons(port),
				  .sin_addr = { htonl(INADDR_LOOPBACK) } };
	auto_fd int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int on = 1;

	if (fd < 0 || connect(fd, (struct sockaddr *)&at, sizeof(at)) < 0)
		return err_sys(e, "connect to port %u", port);
	(void)!setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	return steal_fd(&fd);
}

/* Reads the complete answer; -1: invalid, or not 200. */
static int answer(int fd, struct err *e)
{
	static char buf[ANSWER];
	size_t n = 0, want = 0;

	while (!want || n < want) {
		ssize_t got = recv(fd, buf + n, sizeof(buf) - 1 - n, 0);
		char *head, *length;

		if (got <= 0)
			return err_sys(e, "the daemon hung up");
		n += (size_t)got;
		buf[n] = 0;
		head = want ? NULL : strstr(buf, "\r\n\r\n");
		length = head ? strcasestr(buf, "\r\ncontent-length:") : NULL;
		if (length)
			want = (size_t)(head + 4 - buf) + strtoul(length + 17, NULL, 10);
	}
	if (strncmp(buf, "HTTP/1.1 200", 12) != 0)
		return err_set(e, ERR_INVALID, "the daemon says: %.200s", buf);
	return 0;
}

static int over_http(int fd, const char *ask, uint64_t *ns, struct err *e)
{
	uint64_t began = clock_ns(CLOCK_MONOTONIC);

	if (send(fd, ask, strlen(ask), MSG_NOSIGNAL) < 0)
		return err_sys(e, "send");
	if (answer(fd, e) < 0)
		return -1;
	*ns = clock_ns(CLOCK_MONOTONIC) - began;
	return 0;
}

static int direct(struct box_handle *b, uint64_t *ns, struct err *e)
{
	static const char *const argv[] = { "/bin/true", NULL };
	struct box_command cmd = { .argv = argv, .credit = 65536 };
	uint64_t began = clock_ns(CLOCK_MONOTONIC);
	struct wire_exit end;

	if (boxh_run(b, &cmd, &end, e) < 0)
		return -1;
	*ns = clock_ns(CLOCK_MONOTONIC) - began;
	return 0;
}

static void tell(const char *name, struct samples *s, const char *then)
{
	printf("\"%s\": {\"n\": %zu, \"p50_ms\": %.4f, \"p99_ms\": %.4f}%s", name, s->n,
	       samples_ms(s, 0.5), samples_ms(s, 0.99), then);
}

static int measure(int fd, struct box_handle *b, const char *ask, unsigned rounds, struct err *e)
{
	struct samples http = { 0 }, init = { 0 };
	uint64_t a = 0, c = 0;

	for (unsigned i = 0; i < rounds + WARM_UP; i++) {
		if (direct(b, &a, e) < 0 || over_http(fd, ask, &c, e) < 0)
			return -1;
		if (i < WARM_UP)
			continue;
		samples_add(&init, a);
		samples_add(&http, c);
	}
	putchar('{');
	tell("direct", &init, ", ");
	tell("http", &http, "}\n");
	samples_fini(&http);
	samples_fini(&init);
	return 0;
}

int main(int argc, char **argv)
{
	static const char body[] = "{\"command\":[\"/bin/true\"]}";
	struct keeper_sync k = { .fd = -1 };
	struct box_handle b = { .init = -1 };
	struct err e = { 0 };
	char ask[1024];
	int fd;

	if (argc != 5) {
		fprintf(stderr, "usage: atoll-bench-talk PORT KEY BOX ROUNDS\n");
		return 2;
	}
	snprintf(ask, sizeof(ask),
		 "POST /v1/boxes/%s/execs HTTP/1.1\r\nHost: localhost\r\nX-API-Key: %s\r\n"
		 "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
		 argv[3], argv[2], sizeof(body) - 1, body);
	fd = dial((unsigned short)atoi(argv[1]), &e);
	if (fd < 0 || keeper_sync_open(&k, 0, &e) < 0 || boxh_open(&k, &b, argv[3], &e) < 0 ||
	    measure(fd, &b, ask, (unsigned)atoi(argv[4]), &e) < 0) {
		fprintf(stderr, "atoll-bench-talk: %s\n", e.msg);
		return 1;
	}
	return 0;
}
