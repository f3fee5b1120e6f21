/* egress.c - see egress.h. */
#include "egress/egress.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/cleanup.h"
#include "egress/injection.h"
#include "egress/way.h"
#include "wire/sock.h"

#include <openssl/ssl.h>
#include <signal.h>
#include <stdlib.h>

void *egress_must(void *p)
{
	if (!p)
		abort();
	return p;
}

static void or_default(uint32_t *n, uint32_t otherwise)
{
	if (!*n)
		*n = otherwise;
}

int egress_init(struct egress *x, struct loop *l, const struct egress_conf *conf, struct err *e)
{
	struct egress_limits *m = &x->conf.limits;

	*x = (struct egress){ .loop = l, .conf = *conf };
	timer_init(&x->totals, l, egress_send_totals);
	or_default(&m->connections, 64);
	or_default(&m->all_connections, 2048);
	or_default(&m->rate, 100);
	or_default(&m->head_ms, 10000);
	or_default(&m->connect_ms, 20000);
	or_default(&m->idle_ms, 120000);
	or_default(&m->ask_ms, 60000);
	/* Requests of a later process must have other numbers. */
	x->requests = clock_ns(CLOCK_REALTIME) / 1000;
	if (injection_trust(&x->trust, conf->certificates, e) < 0)
		return -1;
	return resolver_init(&x->names, l, conf->dns, e);
}

void egress_fini(struct egress *x)
{
	timer_fini(&x->totals);
	while (x->ways)
		egress_close(x, x->ways->id);
	egress_servers_fini(x);
	while (x->early)
		injection_free(egress_take_early(x, x->early->id));
	SSL_CTX_free(x->trust);
	resolver_fini(&x->names);
}

struct life {
	struct egress egress;
	struct loop loop;
	struct watch supervisor;
};

static void supervisor_says(struct watch *w, unsigned what)
{
	static char buf[WIRE_MAX];
	struct life *x = loop_owner(w, struct life, supervisor);
	unsigned nfds = 1;
	auto_fd int fd = -1;
	struct err e;
	int n = sock_recv(w->fd, buf, &fd, &nfds, &e);

	(void)what;
	if (n <= 0)
		loop_stop(&x->loop); /* without it the server would not know this process */
	else if (((const struct frame *)buf)->type == WIRE_EGRESS_CONNECT && nfds)
		egress_add_server(&x->egress, steal_fd(&fd));
}

int egress_main(const struct egress_conf *conf, int supervisor,
		int (*walls)(void *ctx, struct err *e), void *ctx)
{
	static struct life x;
	struct err e;

	signal(SIGPIPE, SIG_IGN);
	if (loop_init(&x.loop, &e) < 0 || egress_init(&x.egress, &x.loop, conf, &e) < 0 ||
	    walls(ctx, &e) < 0) {
		log_error("egress cannot start", LOG_E(&e));
		return 1;
	}
	watch_init(&x.supervisor, &x.loop, supervisor, supervisor_says);
	watch_want(&x.supervisor, LOOP_READ);
	log_info("egress serves", LOG_U("rules", conf->nrules));
	loop_run(&x.loop);
	return 0;
}
