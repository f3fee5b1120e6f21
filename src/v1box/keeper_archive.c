/* keeper_archive.c - see keeper_archive.h. */
#include "v1box/keeper_archive.h"
#include "base/cleanup.h"
#include "wire/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { ARCHIVE_PIECE = 64 << 10 };

struct keeper_archive {
	struct call *call;
	struct watch watch;
	int fd; /* of the pipe */
	struct keeper_call *asking;
	int written; /* the keeper has written all of it */
	int read;    /* and all of it was sent */
};

static void archive_stop(struct keeper_archive *x)
{
	struct call *c = x->call;

	watch_stop(&x->watch);
	own_close_fd(&x->fd);
	if (x->asking)
		keeper_client_cancel(&c->api->fleet.keeper, x->asking);
	x->asking = NULL;
	c->drop = NULL;
	c->state = NULL;
	c->req->on_drain = NULL;
}

static void archive_end(struct keeper_archive *x)
{
	struct http_req *q = x->call->req;

	if (!x->written || !x->read)
		return;
	archive_stop(x);
	http_end(q);
}

static void archive_ready(struct watch *w, unsigned what)
{
	struct keeper_archive *x = loop_owner(w, struct keeper_archive, watch);
	char bytes[ARCHIVE_PIECE];
	ssize_t n = read(x->fd, bytes, sizeof(bytes));

	(void)what;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		watch_stop(&x->watch);
		x->read = 1;
		archive_end(x);
	} else if (http_write(x->call->req, bytes, (size_t)n)) {
		watch_want(&x->watch, 0);
	}
}

static void archive_drained(struct http_req *q)
{
	struct call *c = q->user;
	struct keeper_archive *x = c->state;

	if (x && !x->read)
		watch_want(&x->watch, LOOP_READ);
}

/* An archive that is not complete must not look like one: the connection is cut. */
static void archive_written(void *ctx, const struct frame *f, size_t len, int *fd,
			    const struct err *e)
{
	struct keeper_archive *x = ctx;
	struct http_req *q = x->call->req;

	(void)len;
	(void)fd;
	(void)e;
	x->asking = NULL;
	if (f) {
		x->written = 1;
		archive_end(x);
		return;
	}
	archive_stop(x);
	http_abort(q);
}

static void archive_left(struct call *c)
{
	archive_stop(c->state);
}

int keeper_archive_send(struct call *c, const void *ask, size_t n, uint8_t want, const char *type,
			const char *first, struct err *e)
{
	struct keeper_archive *x = call_alloc(c, sizeof(*x));
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_sys(e, "make a pipe");
	(void)!fcntl(ends[0], F_SETFL, O_NONBLOCK);
	*x = (struct keeper_archive){ .call = c, .fd = ends[0] };
	c->state = x;
	c->drop = archive_left;
	c->endless = 1;
	c->req->on_drain = archive_drained;
	watch_init(&x->watch, c->api->loop, x->fd, archive_ready);
	x->asking = keeper_client_request_fd(&c->api->fleet.keeper, ask, n, ends[1], want,
					     archive_written, x);
	http_stream(c->req, 200, type, UINT64_MAX);
	if (!first[0] || !http_write(c->req, first, strlen(first)))
		watch_want(&x->watch, LOOP_READ);
	return 0;
}
