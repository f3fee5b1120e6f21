/* loop.c - see loop.h. */
#include "initlib/loop.h"
#include "initlib/sys.h"

enum { BATCH = 16 };

uint64_t loop_now_ns;
static int epoll_fd;

void loop_init(void)
{
	epoll_fd = (int)sys_epoll_create();
	if (epoll_fd < 0)
		sys_exit(70);
	loop_now_ns = sys_now_ns();
}

void loop_want(struct event_source *s, uint32_t want)
{
	struct epoll_event ev = { .events = want, .data = (uint64_t)(uintptr_t)s };
	int op = !want ? EPOLL_CTL_DEL : s->armed ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;

	if (s->fd < 0 || want == s->armed)
		return;
	/* Only a lack of memory can fail here. A box whose init cannot serve its connections is
	 * ended. */
	if (sys_epoll_ctl(epoll_fd, op, s->fd, &ev) < 0)
		sys_exit(70);
	s->armed = want;
}

void loop_close(struct event_source *s)
{
	sys_close(s->fd); /* the last reference: the kernel removes it from the epoll itself */
	s->fd = -1;
	s->armed = 0;
}

void loop_turn(int timeout_ms)
{
	struct epoll_event batch[BATCH];
	long i, n = sys_epoll_wait(epoll_fd, batch, BATCH, timeout_ms);

	loop_now_ns = sys_now_ns();
	for (i = 0; i < n; i++) {
		struct event_source *s = (struct event_source *)(uintptr_t)batch[i].data;

		if (s->fd >= 0 && s->armed)
			s->ready(s, batch[i].events);
	}
}
