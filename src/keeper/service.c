/* service.c - services of the keeper that have ended are started again: host_service.h.
 *
 * The new socket gets the number of the old one, in one step, because builder threads use the number without locks. What the
 * old process had not answered fails, or is asked again (layer_store.c, disk_service.c). */
#include "base/clock.h"
#include "keeper/host_service.h"
#include "keeper/keeper_internal.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { SERVICE_PAUSE_MS = 200 };

struct service {
	struct source src;
	enum host_service which;
	int is_down;
	uint64_t due_ns; /* not started again before this time */
};

static struct service services[HOST_SERVICES];

/* Only its end: answers are read by those that wait for them. */
static int service_watch(struct keeper *k, struct service *s, struct err *e)
{
	struct epoll_event ev = { .data.ptr = &s->src };

	return epoll_ctl(k->epoll, EPOLL_CTL_ADD, s->src.fd, &ev) < 0
		       ? err_sys(e, "watch the %s", host_service_name(s->which))
		       : 0;
}

int services_init(struct keeper *k, struct err *e)
{
	const struct host_state *h = &k->host;
	const int socks[] = { [HOST_DISKS] = h->disks,
			      [HOST_LAYERS] = h->layer_store,
			      [HOST_TIERS] = -1, /* its answers are read by the loop */
			      [HOST_IMAGES] = h->procimages };

	for (unsigned i = 0; i < HOST_SERVICES; i++) {
		services[i] = (struct service){ .src = { SRC_SERVICE, socks[i] }, .which = i };
		if (socks[i] >= 0 && service_watch(k, &services[i], e) < 0)
			return -1;
	}
	return 0;
}

static void service_up(struct keeper *k, struct service *s)
{
	struct err e;
	int sock;

	s->due_ns = now_ns() + SERVICE_PAUSE_MS * 1000000ull;
	sock = host_service_restart(&k->host, s->which, &e);
	if (sock < 0 || dup3(sock, s->src.fd, O_CLOEXEC) < 0) {
		if (sock >= 0)
			err_sys(&e, "socket");
		fprintf(stderr, "atoll: keeper: %s: %s\n", host_service_name(s->which), e.msg);
		if (sock >= 0)
			close(sock);
		return;
	}
	close(sock);
	s->is_down = 0;
	fprintf(stderr, "atoll: keeper: the %s has ended and was started again\n",
		host_service_name(s->which));
	if (service_watch(k, s, &e) < 0)
		fprintf(stderr, "atoll: keeper: %s\n", e.msg);
}

void services_look(struct keeper *k)
{
	uint64_t now = now_ns();

	for (unsigned i = 0; i < HOST_SERVICES; i++) {
		struct service *s = &services[i];

		if (s->is_down && !k->stopping && now >= s->due_ns)
			service_up(k, s);
		if (s->is_down && !k->host.rootless)
			keeper_wake_in(k, SERVICE_PAUSE_MS);
	}
}

void service_ended(struct keeper *k, struct source *src)
{
	struct service *s = (struct service *)src;

	epoll_ctl(k->epoll, EPOLL_CTL_DEL, s->src.fd, NULL);
	s->is_down = 1;
	services_look(k);
}

void service_renew(struct keeper *k, enum host_service which)
{
	struct service *s = &services[which];

	if (!s->is_down)
		epoll_ctl(k->epoll, EPOLL_CTL_DEL, s->src.fd, NULL);
	s->is_down = 1;
	service_up(k, s);
}
