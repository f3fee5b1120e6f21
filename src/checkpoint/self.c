/* self.c - see self.h.
 *
 *   box allows it ─► LISTEN to its init ─► watch ─► accept ─► a line ─► checkpoint_take() ─► a line
 *
 * Another generation of a box has another network, and another socket. Beside an older server, which
 * still has the port, init answers EADDRINUSE: the next turn tries it again. */
#include "checkpoint/self.h"
#include "checkpoint/internal.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "fleet/isolation.h"
#include "wire/checkpoint_request.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SELF_BURST = 5, SELF_PERIOD_MS = 1000, SELF_CONNECTIONS = 8, SELF_LINE_MS = 5000 };

struct self_conn {
	struct self_conn *next;
	struct checkpoint_self *self;
	struct watch in;
	struct timer patience; /* for the line */
	char line[CHECKPOINT_REQUEST_NAME + 2];
	size_t n;
	struct checkpoint_job *job;
};

struct checkpoint_self { /* of one box */
	struct checkpoint_self *next;
	struct checkpoints *all;
	char box[ID_MAX + 1];
	uint32_t generation;
	struct init_call ask;
	struct watch listening; /* fd -1: not yet */
	struct self_conn *conns;
	unsigned nconns;
	uint64_t spent_until_ms; /* each checkpoint adds SELF_PERIOD_MS */
};

/* ---- one request ---- */

static void self_conn_free(struct self_conn *x)
{
	struct self_conn **at = &x->self->conns;

	while (*at != x)
		at = &(*at)->next;
	*at = x->next;
	x->self->nconns--;
	checkpoint_leave(x->job);
	timer_fini(&x->patience);
	watch_stop(&x->in);
	close(x->in.fd);
	free(x);
}

static void __attribute__((format(printf, 2, 3)))
self_answer(struct self_conn *x, const char *format, ...)
{
	char text[CHECKPOINT_REQUEST_ANSWER];
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(text, sizeof(text) - 1, format, args);
	va_end(args);
	if (n > (int)sizeof(text) - 2)
		n = (int)sizeof(text) - 2;
	text[n++] = '\n';
	/* An empty socket has room for it. */
	if (send(x->in.fd, text, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		log_debug("a program left before the answer to its checkpoint",
			  LOG_S("box", x->self->box));
	self_conn_free(x);
}

static void self_taken(void *ctx, const struct store_checkpoint *row, const struct err *e)
{
	struct self_conn *x = ctx;

	x->job = NULL;
	if (e)
		self_answer(x, "%s", e->msg);
	else
		self_answer(x, "ok %s", row->id);
}

static int self_is_name(const char *s)
{
	if (!isalnum((unsigned char)s[0]))
		return 0;
	for (; *s; s++)
		if (!isalnum((unsigned char)*s) && !strchr("._-", *s))
			return 0;
	return 1;
}

/* 0, or for how long the box has to wait. */
static uint64_t self_spend(struct checkpoint_self *s)
{
	uint64_t now = loop_now_ms();

	if (s->spent_until_ms < now)
		s->spent_until_ms = now;
	if (s->spent_until_ms - now > (SELF_BURST - 1) * SELF_PERIOD_MS)
		return s->spent_until_ms - now - (SELF_BURST - 1) * SELF_PERIOD_MS;
	s->spent_until_ms += SELF_PERIOD_MS;
	return 0;
}

static void self_take(struct self_conn *x, size_t n)
{
	struct checkpoint_want want = { .name = x->line, .reason = CHECKPOINT_PROGRAM };
	struct checkpoints *c = x->self->all;
	struct box *b = fleet_find(c->fleet, x->self->box);
	uint64_t wait;
	struct err e;

	timer_clear(&x->patience);
	watch_want(&x->in, 0);
	if (n && (strlen(x->line) != n || !self_is_name(x->line))) {
		self_answer(x, "not a name: use letters, digits, '.', '_' and '-', and begin with "
			       "a letter or a digit");
		return;
	}
	wait = self_spend(x->self);
	if (wait) {
		self_answer(x,
			    "the programs of a box may take one checkpoint per second, %d at once; "
			    "try again in %llu ms",
			    SELF_BURST, (unsigned long long)wait);
		return;
	}
	if (!b || checkpoint_take(c, b, &want, self_taken, x, &x->job, &e) < 0)
		self_answer(x, "%s", b ? e.msg : "the box is ending");
}

static void self_readable(struct watch *w, unsigned what)
{
	struct self_conn *x = loop_owner(w, struct self_conn, in);
	ssize_t n = recv(w->fd, x->line + x->n, sizeof(x->line) - x->n, MSG_DONTWAIT);
	char *end;

	(void)what;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		self_conn_free(x);
		return;
	}
	x->n += (size_t)n;
	end = memchr(x->line, '\n', x->n);
	if (end) {
		*end = 0;
		self_take(x, (size_t)(end - x->line));
	} else if (x->n == sizeof(x->line)) {
		self_answer(x, "the name is longer than %d bytes", CHECKPOINT_REQUEST_NAME);
	}
}

static void self_line_is_late(struct timer *t)
{
	self_conn_free(loop_owner(t, struct self_conn, patience));
}

static void self_accept(struct watch *w, unsigned what)
{
	struct checkpoint_self *s = loop_owner(w, struct checkpoint_self, listening);
	int fd = accept4(w->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	struct self_conn *x;

	(void)what;
	if (fd < 0)
		return;
	if (s->nconns >= SELF_CONNECTIONS) {
		close(fd);
		return;
	}
	x = calloc(1, sizeof(*x));
	if (!x)
		abort();
	x->self = s;
	x->next = s->conns;
	s->conns = x;
	s->nconns++;
	timer_init(&x->patience, s->all->fleet->loop, self_line_is_late);
	timer_set(&x->patience, SELF_LINE_MS);
	watch_init(&x->in, s->all->fleet->loop, fd, self_readable);
	watch_want(&x->in, LOOP_READ);
}

/* ---- one box ---- */

static void self_listens(struct init_call *x, const struct frame *f, size_t len, int *fd)
{
	struct checkpoint_self *s = loop_owner(x, struct checkpoint_self, ask);
	int is_listening = 0;
	socklen_t n = sizeof(is_listening);

	(void)len;
	init_conn_remove_call(x);
	/* A box could send any descriptor. */
	if (f->type != WIRE_FD || *fd < 0 ||
	    getsockopt(*fd, SOL_SOCKET, SO_ACCEPTCONN, &is_listening, &n) < 0 || !is_listening)
		return;
	watch_init(&s->listening, s->all->fleet->loop, steal_fd(fd), self_accept);
	watch_want(&s->listening, LOOP_READ);
}

/* Another server has the port, or a program of the box: the next turn asks again. */
static void self_listens_not(struct init_call *x, const struct err *e)
{
	(void)e;
	init_conn_remove_call(x);
}

static void self_is_lost(struct init_call *x)
{
	(void)x;
}

static void self_free(struct checkpoint_self *s)
{
	while (s->conns)
		self_conn_free(s->conns);
	init_conn_remove_call(&s->ask);
	if (s->listening.fd >= 0) {
		watch_stop(&s->listening);
		close(s->listening.fd);
	}
	free(s);
}

static void self_ask(struct checkpoint_self *s, struct box *b)
{
	static const struct init_call_ops on = { .answer = self_listens,
						 .refused = self_listens_not,
						 .lost = self_is_lost };

	if (s->listening.fd < 0 && !s->ask.line && init_conn_is_open(&b->line))
		init_conn_request_port(&b->line, &s->ask, &on, WIRE_LISTEN,
				       CHECKPOINT_REQUEST_PORT);
}

/* Only boxes without an engine have checkpoints, and only their network is their own in every case. */
static int self_is_allowed(const struct box *b)
{
	struct checkpoint_policy p;

	if (!b || !b->row.checkpoints || !isolation_has_checkpoints(&b->row) ||
	    b->state != BOX_RUNNING || b->replacing)
		return 0;
	checkpoint_policy_read(&b->row, &p);
	return p.self;
}

static struct checkpoint_self *self_find(struct checkpoints *c, const char *box)
{
	for (struct checkpoint_self *s = c->selves; s; s = s->next)
		if (!strcmp(s->box, box))
			return s;
	return NULL;
}

static void self_sweep(struct checkpoints *c)
{
	for (struct checkpoint_self **at = &c->selves, *s; (s = *at) != NULL;) {
		const struct box *b = fleet_find(c->fleet, s->box);

		if (self_is_allowed(b) && b->row.generation == s->generation) {
			at = &s->next;
			continue;
		}
		*at = s->next;
		self_free(s);
	}
}

void checkpoint_self_turn(struct checkpoints *c)
{
	self_sweep(c);
	for (struct box *b = fleet_next(c->fleet, NULL); b; b = fleet_next(c->fleet, b)) {
		struct checkpoint_self *s;

		if (!self_is_allowed(b))
			continue;
		s = self_find(c, b->row.id);
		if (!s) {
			s = calloc(1, sizeof(*s));
			if (!s)
				abort();
			*s = (struct checkpoint_self){ .next = c->selves,
						       .all = c,
						       .generation = b->row.generation,
						       .listening = { .fd = -1 } };
			memcpy(s->box, b->row.id, sizeof(s->box));
			c->selves = s;
		}
		self_ask(s, b);
	}
}

void checkpoint_self_free(struct checkpoints *c)
{
	while (c->selves) {
		struct checkpoint_self *s = c->selves;

		c->selves = s->next;
		self_free(s);
	}
}
