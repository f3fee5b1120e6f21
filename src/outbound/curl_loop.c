/* curl_loop.c - see curl_loop.h. */
#include "outbound/curl_loop.h"
#include "outbound/curl.h"

#include <stdlib.h>

struct pipe_end {
	struct watch watch;
	struct curl_loop *multi;
};

static void take_finished(struct curl_loop *m)
{
	CURLMsg *msg;
	int left;

	while ((msg = curl.multi_info_read(m->handle, &left))) {
		CURLcode rc = msg->data.result;
		char *owner = NULL;

		if (msg->msg != CURLMSG_DONE)
			continue;
		curl.easy_getinfo(msg->easy_handle, CURLINFO_PRIVATE, &owner);
		m->done(owner, (int)rc);
	}
}

static void curl_act(struct curl_loop *m, curl_socket_t fd, int what)
{
	int running;

	curl.multi_socket_action(m->handle, fd, what, &running);
	take_finished(m);
}

static void pipe_ready(struct watch *w, unsigned what)
{
	struct pipe_end *p = loop_owner(w, struct pipe_end, watch);

	curl_act(p->multi, w->fd, what == LOOP_READ ? CURL_CSELECT_IN : CURL_CSELECT_OUT);
}

static int pipe_wants(CURL *easy, curl_socket_t fd, int what, void *user, void *mine)
{
	struct curl_loop *m = user;
	struct pipe_end *p = mine;

	(void)easy;
	if (what == CURL_POLL_REMOVE) {
		if (p)
			watch_stop(&p->watch);
		free(p);
		curl.multi_assign(m->handle, fd, NULL);
		return 0;
	}
	if (!p) {
		p = calloc(1, sizeof(*p));
		if (!p)
			abort();
		p->multi = m;
		watch_init(&p->watch, m->loop, fd, pipe_ready);
		curl.multi_assign(m->handle, fd, p);
	}
	watch_want(&p->watch,
		   (what & CURL_POLL_IN ? LOOP_READ : 0) | (what & CURL_POLL_OUT ? LOOP_WRITE : 0));
	return 0;
}

static int timer_wants(CURLM *handle, long ms, void *user)
{
	struct curl_loop *m = user;

	(void)handle;
	if (ms < 0)
		timer_clear(&m->timer);
	else
		timer_set(&m->timer, (uint64_t)ms);
	return 0;
}

static void timer_due(struct timer *t)
{
	curl_act(loop_owner(t, struct curl_loop, timer), CURL_SOCKET_TIMEOUT, 0);
}

void curl_loop_init(struct curl_loop *m, struct loop *l, void (*done)(void *owner, int rc))
{
	*m = (struct curl_loop){ .loop = l, .handle = curl.multi_init(), .done = done };
	if (!m->handle)
		abort();
	timer_init(&m->timer, l, timer_due);
	curl.multi_setopt(m->handle, CURLMOPT_SOCKETFUNCTION, pipe_wants);
	curl.multi_setopt(m->handle, CURLMOPT_SOCKETDATA, m);
	curl.multi_setopt(m->handle, CURLMOPT_TIMERFUNCTION, timer_wants);
	curl.multi_setopt(m->handle, CURLMOPT_TIMERDATA, m);
	curl.multi_setopt(m->handle, CURLMOPT_MAXCONNECTS, 32L);
}
