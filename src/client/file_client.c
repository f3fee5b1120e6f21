/* file_client.c - see file_client.h. */
#include "client/file_client.h"
#include "base/cleanup.h"
#include "wire/sock.h"

#include <fcntl.h>
#include <string.h>

enum { PIECE = 48 * 1024, PIPE_BYTES = 1024 * 1024 };

static void files_fail(struct file_client *c, const struct err *e)
{
	if (c->on->failed)
		c->on->failed(c, e);
}

static void on_frame(struct frame_conn *p, const struct frame *f, size_t len, int *fd)
{
	struct file_client *c = loop_owner(p, struct file_client, post);
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
		wire_error_read((const struct wire_error *)f, &e);
		files_fail(c, &e);
		break;
	default:
		if (c->on->other)
			c->on->other(c, f, len);
	}
}

static void on_gone(struct frame_conn *p, const struct err *why)
{
	struct err e;

	(void)why;
	err_set(&e, ERR_NOT_FOUND, "the box ended while its files were being read");
	files_fail(loop_owner(p, struct file_client, post), &e);
}

/* ---- open ---- */

static void files_hired(struct init_call *x, const struct frame *f, size_t len, int *fd)
{
	struct file_client *c = loop_owner(x, struct file_client, hello);
	struct err e;

	(void)len;
	if (f->type != WIRE_FD || *fd < 0) {
		err_set(&e, ERR_INVALID, "box %s: no file worker in its answer", x->line->box);
		init_conn_remove_call(x);
		files_fail(c, &e);
		return;
	}
	frame_conn_init(&c->post, x->line->post.watch.loop, steal_fd(fd));
	c->post.on_frame = on_frame;
	c->post.on_gone = on_gone;
	init_conn_remove_call(x);
	c->on->ready(c);
}

static void files_refused(struct init_call *x, const struct err *e)
{
	init_conn_remove_call(x);
	files_fail(loop_owner(x, struct file_client, hello), e);
}

static void files_lost(struct init_call *x)
{
	struct err e;

	err_set(&e, ERR_NOT_FOUND, "the box ended");
	files_fail(loop_owner(x, struct file_client, hello), &e);
}

void file_client_open(struct file_client *c, struct init_conn *l, uint16_t flags,
		      const struct file_client_events *on)
{
	static const struct init_call_ops hello = { .answer = files_hired,
						    .refused = files_refused,
						    .lost = files_lost };

	*c = (struct file_client){ .post.fd = -1, .on = on };
	init_conn_request(l, &c->hello, &hello, WIRE_FILES, flags);
}

void file_client_close(struct file_client *c)
{
	init_conn_remove_call(&c->hello);
	frame_conn_fini(&c->post);
}

/* ---- requests ---- */

static void files_ask(struct file_client *c, uint8_t type, void *body, size_t n, const void *tail,
		      size_t tail_n, int take_fd)
{
	struct frame *head = body;

	head->version = WIRE_VERSION;
	head->type = type;
	head->ref = ++c->ref;
	frame_conn_send(&c->post, body, n, tail, tail_n, take_fd);
}

void file_client_ask(struct file_client *c, uint8_t type, void *body, size_t n, const void *tail,
		     size_t tail_n)
{
	files_ask(c, type, body, n, tail, tail_n, -1);
}

int file_client_ask_pipe(struct file_client *c, uint8_t type, void *body, size_t n,
			 const char *path, int *out_fd, struct err *e)
{
	struct frame *head = body;
	int ends[2], writes = type == WIRE_PUT;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_sys(e, "make a pipe");
	/* A larger pipe means fewer wakeups on both sides. The kernel limits the memory of all
	 * pipes of a user; when the limit is reached, a small pipe works, too. */
	(void)!fcntl(ends[0], F_SETPIPE_SZ, PIPE_BYTES);
	head->flags |= WIRE_PIPE;
	files_ask(c, type, body, n, path, strlen(path), ends[!writes]);
	*out_fd = ends[writes];
	return 0;
}

int file_client_transfer(struct file_client *from, const char *from_path, struct file_client *to,
			 struct wire_put *put, const char *to_path, struct err *e)
{
	struct wire_get get = { .head.flags = WIRE_PIPE, .bytes = UINT64_MAX };
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_sys(e, "make a pipe");
	(void)!fcntl(ends[0], F_SETPIPE_SZ, PIPE_BYTES); /* as above */
	put->head.flags |= WIRE_PIPE;
	files_ask(to, WIRE_PUT, put, sizeof(*put), to_path, strlen(to_path), ends[0]);
	files_ask(from, WIRE_GET, &get, sizeof(get), from_path, strlen(from_path), ends[1]);
	return 0;
}

void file_client_data(struct file_client *c, const void *bytes, size_t n)
{
	struct frame f = sock_head(WIRE_DATA, c->ref);
	const char *rest = n ? bytes : "";
	size_t part;

	do {
		part = n > PIECE ? PIECE : n;
		frame_conn_send(&c->post, &f, sizeof(f), rest, part, -1);
		rest += part;
		n -= part;
	} while (n);
}

void file_client_put(struct file_client *c, struct wire_put *put, const char *path,
		     const void *bytes, size_t n)
{
	file_client_ask(c, WIRE_PUT, put, sizeof(*put), path, strlen(path));
	if (n)
		file_client_data(c, bytes, n);
	file_client_data(c, NULL, 0);
}

void file_client_more(struct file_client *c, uint8_t type, const void *tail, size_t n)
{
	struct frame f = sock_head(type, c->ref);

	frame_conn_send(&c->post, &f, sizeof(f), tail, n, -1);
}

void file_client_pause(struct file_client *c, int paused)
{
	frame_conn_pause(&c->post, paused);
}

const char *file_client_event_name(uint32_t kind)
{
	static const char *const names[] = {
		[WIRE_EVENT_CREATE] = "create", [WIRE_EVENT_WRITE] = "write",
		[WIRE_EVENT_REMOVE] = "remove", [WIRE_EVENT_RENAME] = "rename",
		[WIRE_EVENT_CHMOD] = "chmod",   [WIRE_EVENT_OVERFLOW] = "overflow",
		[WIRE_EVENT_LIMIT] = "limit",   [WIRE_EVENT_GONE] = "gone",
	};

	return kind < ARRAY_LEN(names) && names[kind] ? names[kind] : "unknown";
}
