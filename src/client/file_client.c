/* file_client.c - see file_client.h. */
#include "client/file_client.h"
#include "base/cleanup.h"
#include "wire/sock.h"

#include <fcntl.h>
#include <string.h>

enum { PIECE = 48 * 1024, PIPE_BYTES = 1024 * 1024 };

static void fail(struct clerk *c, const struct err *e)
{
	if (c->on->failed)
		c->on->failed(c, e);
}

static void on_frame(struct post *p, const struct frame *f, size_t len, int *fd)
{
	struct clerk *c = loop_owner(p, struct clerk, post);
	const char *tail = (const char *)f;
	struct err e;

	(void)fd;
	switch (f->type) {
	case WIRE_ENTRY:
		if (c->on->entry)
			c->on->entry(c, (const struct wire_entry *)f,
				     tail + sizeof(struct wire_entry),
				     len - sizeof(struct wire_entry));
		break;
	case WIRE_DATA:
		if (c->on->data)
			c->on->data(c, tail + sizeof(*f), len - sizeof(*f));
		break;
	case WIRE_DONE:
		if (c->on->done)
			c->on->done(c, f->flags);
		break;
	case WIRE_ERROR:
		box_said_error((const struct wire_error *)f, &e);
		fail(c, &e);
		break;
	default:
		if (c->on->other)
			c->on->other(c, f, len);
	}
}

static void on_gone(struct post *p, const struct err *why)
{
	struct err e;

	(void)why;
	err_set(&e, ERR_NOT_FOUND, "the box ended while its files were being looked at");
	fail(loop_owner(p, struct clerk, post), &e);
}

/* ---- beginning ---- */

static void hired(struct listener *x, const struct frame *f, size_t len, int *fd)
{
	struct clerk *c = loop_owner(x, struct clerk, hello);
	struct err e;

	(void)len;
	if (f->type != WIRE_FD || *fd < 0) {
		err_set(&e, ERR_INVALID, "box %s: no file worker in its answer", x->line->box);
		line_unlisten(x);
		fail(c, &e);
		return;
	}
	post_init(&c->post, x->line->post.watch.loop, steal_fd(fd));
	c->post.on_frame = on_frame;
	c->post.on_gone = on_gone;
	line_unlisten(x);
	c->on->ready(c);
}

static void refused(struct listener *x, const struct err *e)
{
	line_unlisten(x);
	fail(loop_owner(x, struct clerk, hello), e);
}

static void lost(struct listener *x)
{
	struct err e;

	err_set(&e, ERR_NOT_FOUND, "the box ended");
	fail(loop_owner(x, struct clerk, hello), &e);
}

void clerk_open(struct clerk *c, struct line *l, uint16_t flags, const struct clerk_events *on)
{
	static const struct listen_events hello = {
		.answer = hired, .refused = refused, .lost = lost
	};

	*c = (struct clerk){ .post.fd = -1, .on = on };
	line_ask(l, &c->hello, &hello, WIRE_FILES, flags);
}

void clerk_close(struct clerk *c)
{
	line_unlisten(&c->hello);
	post_fini(&c->post);
}

/* ---- asking ---- */

static void ask(struct clerk *c, uint8_t type, void *body, size_t n, const void *tail, size_t tail_n,
		int take_fd)
{
	struct frame *head = body;

	head->version = WIRE_VERSION;
	head->type = type;
	head->ref = ++c->ref;
	post_send(&c->post, body, n, tail, tail_n, take_fd);
}

void clerk_ask(struct clerk *c, uint8_t type, void *body, size_t n, const void *tail, size_t tail_n)
{
	ask(c, type, body, n, tail, tail_n, -1);
}

int clerk_ask_pipe(struct clerk *c, uint8_t type, void *body, size_t n, const char *path, int *out_fd,
		   struct err *e)
{
	struct frame *head = body;
	int ends[2], writes = type == WIRE_PUT;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_sys(e, "make a pipe");
	/* More, and fewer wakes on both sides. The kernel has only so much for all pipes of a user;
	 * where that is used up, a small one does the same. */
	(void)!fcntl(ends[0], F_SETPIPE_SZ, PIPE_BYTES);
	head->flags |= WIRE_PIPE;
	ask(c, type, body, n, path, strlen(path), ends[!writes]);
	*out_fd = ends[writes];
	return 0;
}

void clerk_data(struct clerk *c, const void *bytes, size_t n)
{
	struct frame f = sock_head(WIRE_DATA, c->ref);
	size_t done = 0;

	do {
		size_t part = n - done > PIECE ? PIECE : n - done;

		post_send(&c->post, &f, sizeof(f), (const char *)bytes + done, part, -1);
		done += part;
	} while (done < n);
}

void clerk_put(struct clerk *c, struct wire_put *put, const char *path, const void *bytes, size_t n)
{
	clerk_ask(c, WIRE_PUT, put, sizeof(*put), path, strlen(path));
	if (n)
		clerk_data(c, bytes, n);
	clerk_data(c, NULL, 0);
}

void clerk_more(struct clerk *c, uint8_t type, const void *tail, size_t n)
{
	struct frame f = sock_head(type, c->ref);

	post_send(&c->post, &f, sizeof(f), tail, n, -1);
}

void clerk_pause(struct clerk *c, int paused)
{
	post_pause(&c->post, paused);
}

const char *clerk_event_name(uint32_t kind)
{
	static const char *const names[] = {
		[WIRE_EVENT_CREATE] = "create", [WIRE_EVENT_WRITE] = "write",
		[WIRE_EVENT_REMOVE] = "remove", [WIRE_EVENT_RENAME] = "rename",
		[WIRE_EVENT_CHMOD] = "chmod",   [WIRE_EVENT_OVERFLOW] = "overflow",
		[WIRE_EVENT_LIMIT] = "limit",   [WIRE_EVENT_GONE] = "gone",
	};

	return kind < ARRAY_LEN(names) && names[kind] ? names[kind] : "unknown";
}
