/* box_handle.c - see box_handle.h. Answers of init come from inside a box and are checked as
 * untrusted input. */
#include "client/box_handle.h"
#include "base/id.h"
#include "base/cleanup.h"
#include "client/command.h"
#include "client/keeper_sync.h"
#include "wire/sock.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

enum { ONCE_REF = 1 }; /* ref of the only exec */

struct wire_limits box_default_limits(void)
{
	return (struct wire_limits){
		.mem_bytes = WIRE_DEFAULT,
		.disk_bytes = WIRE_DEFAULT,
		.disk_files = WIRE_DEFAULT,
		.cpu_milli = (uint32_t)WIRE_DEFAULT,
		.pids = (uint32_t)WIRE_DEFAULT,
	};
}

/* b->about has the BOX frame; takes its descriptor. */
static int boxh_arrived(struct box_handle *b, int take_init, struct err *e)
{
	/* Init always reads. An init that does not read for ten seconds is broken or hostile, and
	 * an unlimited send would block Ctrl-C. */
	struct timeval patience = { .tv_sec = 10 };

	b->about.id[sizeof(b->about.id) - 1] = 0;
	b->about.template[sizeof(b->about.template) - 1] = 0;
	b->init = take_init;
	/* Each client chooses the refs of the execs that it starts, so they are random. */
	if (id_random(&b->next_ref, sizeof(b->next_ref), e) < 0 ||
	    setsockopt(b->init, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) < 0) {
		err_sys(e, "box %s: its connection", b->about.id);
		own_close_fd(&b->init);
		return -1;
	}
	return 0;
}

int boxh_create(struct keeper_sync *k, struct box_handle *b, const struct wire_create *want,
		struct err *e)
{
	struct answer a = {
		.want = WIRE_BOX, .to = &b->about, .room = sizeof(b->about), .wants_fd = 1
	};
	struct wire_create ask = *want;

	b->init = -1;
	ask.head.type = WIRE_CREATE;
	keeper_test_tier(&ask);
	if (link_ask(k, &ask, sizeof(ask), &a, e) < 0)
		return err_in(e, "create a box");
	return boxh_arrived(b, a.fd, e);
}

static struct wire_id about_box(uint8_t type, const char *id)
{
	struct wire_id ask = { .head = sock_head(type, 0) };

	snprintf(ask.id, sizeof(ask.id), "%s", id);
	return ask;
}

int boxh_open(struct keeper_sync *k, struct box_handle *b, const char *id, struct err *e)
{
	struct answer a = {
		.want = WIRE_BOX, .to = &b->about, .room = sizeof(b->about), .wants_fd = 1
	};
	struct wire_id ask = about_box(WIRE_OPEN, id);

	b->init = -1;
	if (link_ask(k, &ask, sizeof(ask), &a, e) < 0)
		return -1;
	return boxh_arrived(b, a.fd, e);
}

int boxh_counters(struct keeper_sync *k, const char *id, struct wire_counters *out, struct err *e)
{
	struct answer a = { .want = WIRE_COUNTERS_REPLY, .to = out, .room = sizeof(*out) };
	struct wire_id ask = about_box(WIRE_COUNTERS, id);

	return link_ask(k, &ask, sizeof(ask), &a, e);
}

static int ask_kill(struct keeper_sync *k, const char *id, uint16_t flags,
		    struct wire_counters *out, struct err *e)
{
	struct answer a = { .want = WIRE_DESTROYED, .to = out, .room = sizeof(*out) };
	struct wire_id ask = about_box(WIRE_KILL, id);

	ask.head.flags = flags;
	return link_ask(k, &ask, sizeof(ask), &a, e);
}

int boxh_kill(struct keeper_sync *k, const char *id, struct wire_counters *out, struct err *e)
{
	struct wire_counters unread;

	return ask_kill(k, id, out ? WIRE_KILL_FIGURES : 0, out ? out : &unread, e);
}

int boxh_end(struct keeper_sync *k, const char *id, struct err *e)
{
	struct wire_counters unread;

	/* Requests the counters, too: the client that runs a program in the box needs them. */
	return ask_kill(k, id, WIRE_KILL_OPERATOR | WIRE_KILL_FIGURES, &unread, e);
}

int boxh_drop(struct keeper_sync *k, const char *id, struct err *e)
{
	struct wire_id ask = about_box(WIRE_KILL, id);

	ask.head.ref = k->next_ref++;
	return sock_send(k->fd, &ask, sizeof(ask), NULL, 0, NULL, 0, e);
}

void boxh_close(struct box_handle *b)
{
	own_close_fd(&b->init);
}

static int boxh_tell(struct box_handle *b, const void *frame, size_t len, const void *tail,
		     size_t tail_len, struct err *e)
{
	if (sock_send(b->init, frame, len, tail, tail_len, NULL, 0, e) < 0)
		return err_in(e, "box %s", b->about.id);
	return 0;
}

int boxh_kill_on_close(struct box_handle *b, struct err *e)
{
	struct frame f = sock_head(WIRE_KILL_ON_CLOSE, 0);

	return boxh_tell(b, &f, sizeof(f), NULL, 0, e);
}

int boxh_signal(struct box_handle *b, uint32_t ref, int signo, struct err *e)
{
	struct wire_signal f = { .head = sock_head(WIRE_SIGNAL, ref), .signo = signo };

	return boxh_tell(b, &f, sizeof(f), NULL, 0, e);
}

int boxh_resize(struct box_handle *b, uint32_t ref, uint16_t rows, uint16_t cols, struct err *e)
{
	struct wire_resize f = { .head = sock_head(WIRE_RESIZE, ref), .rows = rows, .cols = cols };

	return boxh_tell(b, &f, sizeof(f), NULL, 0, e);
}

int boxh_credit(struct box_handle *b, uint32_t ref, uint32_t stream, uint64_t until, struct err *e)
{
	struct wire_output_window f = { sock_head(WIRE_OUTPUT_WINDOW, ref), .stream = stream,
					.until = until };

	return boxh_tell(b, &f, sizeof(f), NULL, 0, e);
}

int boxh_stdin(struct box_handle *b, uint32_t ref, const void *bytes, size_t n, struct err *e)
{
	struct frame f = sock_head(WIRE_STDIN, ref);

	return boxh_tell(b, &f, sizeof(f), bytes, n, e);
}

/* The next frame about `ref`; an ERROR becomes e. fd may be NULL. */
static int boxh_hear(struct box_handle *b, uint32_t ref, char buf[WIRE_MAX], int *fd, struct err *e)
{
	const struct frame *f = (const struct frame *)buf;

	for (;;) {
		unsigned nfds = fd ? 1 : 0;
		int n = sock_recv(b->init, buf, fd, &nfds, e);

		if (n < 0)
			return err_in(e, "box %s", b->about.id);
		if (n == 0)
			return err_set(e, ERR_NOT_FOUND, "box %s ended", b->about.id);
		if (f->ref == ref && f->type == WIRE_ERROR)
			return wire_error_read((const struct wire_error *)buf, e);
		if (f->ref == ref)
			return 0;
		if (fd)
			own_close_fd(fd);
	}
}

/* Waits for EXIT and ignores other frames before it. */
static int hear_exit(struct box_handle *b, uint32_t ref, struct wire_exit *out, struct err *e)
{
	char buf[WIRE_MAX];

	do {
		if (boxh_hear(b, ref, buf, NULL, e) < 0)
			return -1;
	} while (((const struct frame *)buf)->type != WIRE_EXIT);
	memcpy(out, buf, sizeof(*out));
	return 0;
}

int boxh_run(struct box_handle *b, const struct box_command *cmd, struct wire_exit *out,
	     struct err *e)
{
	struct box_command unread = *cmd;
	uint32_t ref;

	unread.credit = UINT64_MAX; /* unlimited credit: nothing to acknowledge */
	if (boxh_start(b, &unread, &ref, e) < 0)
		return -1;
	return hear_exit(b, ref, out, e);
}

/* The request followed by a START, in one frame. NULL: too long for one frame. */
static char *with_start(const struct wire_create *want, const struct command_words *c,
			size_t *out_len)
{
	size_t len = sizeof(*want) + sizeof(c->start) + c->tail_len;
	char *ask = c->memfd < 0 && len <= WIRE_MAX ? malloc(len) : NULL;

	if (!ask)
		return NULL;
	memcpy(ask, want, sizeof(*want));
	memcpy(ask + sizeof(*want), &c->start, sizeof(c->start));
	memcpy(ask + sizeof(*want) + sizeof(c->start), c->tail, c->tail_len);
	*out_len = len;
	return ask;
}

static int one_by_one(struct keeper_sync *k, const struct wire_create *want,
		      const struct box_command *cmd, struct wire_exit *out,
		      struct wire_counters *out_gone, struct err *e)
{
	struct err second; /* the first failure is the one that is reported */
	struct box_handle b;
	int ran;

	if (boxh_create(k, &b, want, e) < 0)
		return -1;
	/* As with ONE_SHOT: a client that is killed leaves no box. */
	ran = boxh_kill_on_close(&b, e);
	if (ran == 0)
		ran = boxh_run(&b, cmd, out, e);
	boxh_close(&b);
	if (boxh_kill(k, b.about.id, out_gone, ran < 0 ? &second : e) < 0)
		return -1;
	return ran;
}

static int all_at_once(struct keeper_sync *k, char *ask, size_t len, struct wire_exit *out,
		       struct wire_counters *out_gone, struct err *e)
{
	struct box_handle b = { .init = -1 };
	struct wire_counters gone;
	struct answer box = {
		.want = WIRE_BOX, .to = &b.about, .room = sizeof(b.about), .wants_fd = 1
	};
	struct answer end = { .want = WIRE_DESTROYED,
			      .to = out_gone ? out_gone : &gone,
			      .room = sizeof(gone) };
	struct err second;
	int ran;

	if (link_ask(k, ask, len, &box, e) < 0)
		return err_in(e, "create a box");
	b.init = box.fd;
	b.about.id[sizeof(b.about.id) - 1] = 0;
	ran = hear_exit(&b, ONCE_REF, out, e);
	boxh_close(&b);
	if (link_hear(k, ((const struct frame *)ask)->ref, &end, ran < 0 ? &second : e) < 0)
		return -1;
	return ran;
}

int boxh_once(struct keeper_sync *k, const struct wire_create *want, const struct box_command *cmd,
	      struct wire_exit *out, struct wire_counters *out_gone, struct err *e)
{
	struct box_command last = *cmd;
	struct wire_create create = *want;
	auto_free char *ask = NULL;
	struct command_words c;
	size_t len;
	int made;

	create.head.type = WIRE_CREATE;
	keeper_test_tier(&create);
	/* An older keeper would start the program in a box of another tier. */
	if (wire_tier_of(create.head.flags))
		return one_by_one(k, want, cmd, out, out_gone, e);
	create.head.flags |= WIRE_CREATE_AWAIT | (out_gone ? WIRE_CREATE_FIGURES : 0);
	last.flags |= WIRE_START_ONE_SHOT;
	last.credit = UINT64_MAX;
	made = command_make(&c, &last, ONCE_REF, e);
	if (made == 0)
		ask = with_start(&create, &c, &len);
	command_fini(&c);
	if (made < 0)
		return -1;
	return ask ? all_at_once(k, ask, len, out, out_gone, e)
		   : one_by_one(k, want, cmd, out, out_gone, e);
}

/* FILES and CONNECT: the answer is a descriptor that was opened inside the box. Frames of running
 * execs that arrive in between would be lost, so this is for connections without execs. */
static int ask_fd(struct box_handle *b, const void *ask, size_t len, uint32_t ref, int *out_fd,
		  struct err *e)
{
	char buf[WIRE_MAX];
	auto_fd int fd = -1;

	if (boxh_tell(b, ask, len, NULL, 0, e) < 0 || boxh_hear(b, ref, buf, &fd, e) < 0)
		return -1;
	if (((const struct frame *)buf)->type != WIRE_FD || fd < 0)
		return err_set(e, ERR_INVALID, "box %s: the reply has no descriptor", b->about.id);
	*out_fd = steal_fd(&fd);
	return 0;
}

int boxh_files(struct box_handle *b, uint16_t flags, int *out_fd, struct err *e)
{
	struct frame ask = sock_head(WIRE_FILES, b->next_ref++);

	ask.flags = flags;
	return ask_fd(b, &ask, sizeof(ask), ask.ref, out_fd, e);
}
