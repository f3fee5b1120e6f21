/* receiver.c - answers every HTTP request on loopback with 204, with as little work as possible: bench/operations.
 * Prints its port, and the number of requests for each byte on stdin; ends with stdin. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

struct peer {
	int fd;
	size_t n;
	char text[1 << 20];
};

static unsigned long requests;

/* Bytes of the first request; 0: it is not complete. */
static size_t receiver_request(struct peer *p)
{
	char *end, *line;
	size_t n;

	p->text[p->n] = 0;
	end = strstr(p->text, "\r\n\r\n");
	if (!end)
		return 0;
	line = strcasestr(p->text, "\ncontent-length:");
	n = (size_t)(end + 4 - p->text) + (line && line < end ? strtoul(line + 16, NULL, 10) : 0);
	return n <= p->n ? n : 0;
}

static void receiver_read(struct peer *p)
{
	static const char answer[] = "HTTP/1.1 204 No Content\r\n\r\n";
	ssize_t n = read(p->fd, p->text + p->n, sizeof(p->text) - 1 - p->n);
	size_t one;

	if (n <= 0) {
		close(p->fd);
		free(p);
		return;
	}
	p->n += (size_t)n;
	while ((one = receiver_request(p))) {
		requests++;
		if (write(p->fd, answer, sizeof(answer) - 1) < 0)
			return;
		memmove(p->text, p->text + one, p->n - one);
		p->n -= one;
	}
}

static void receiver_add(int epoll, int fd, void *what)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = what };

	if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &ev) < 0)
		abort();
}

int main(void)
{
	static int listener, control;
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(at);
	int epoll = epoll_create1(0);
	char byte;

	listener = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(listener, (struct sockaddr *)&at, len) < 0 || listen(listener, 128) < 0 ||
	    getsockname(listener, (struct sockaddr *)&at, &len) < 0)
		return 1;
	receiver_add(epoll, listener, &listener);
	receiver_add(epoll, 0, &control);
	printf("%d\n", ntohs(at.sin_port));
	fflush(stdout);
	for (;;) {
		struct epoll_event ev[64];
		int n = epoll_wait(epoll, ev, 64, -1);

		for (int i = 0; i < n; i++) {
			if (ev[i].data.ptr == &control) {
				if (read(0, &byte, 1) <= 0)
					return 0;
				printf("%lu\n", requests);
				fflush(stdout);
			} else if (ev[i].data.ptr == &listener) {
				struct peer *p = calloc(1, sizeof(*p));

				if (!p)
					abort();
				p->fd = accept(listener, NULL, NULL);
				receiver_add(epoll, p->fd, p);
			} else {
				receiver_read(ev[i].data.ptr);
			}
		}
	}
}
