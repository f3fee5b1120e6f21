/* stdin_forward.c - see stdin_forward.h.
 * The daemon has a queue before the program. Bytes that it accepted may not have reached the
 * box: each answer contains how far that is, and until then the bytes are kept here. A new
 * daemon process is asked where the box's input ends, and sending continues there. */
#include "cli/stdin_forward.h"
#include "base/clock.h"
#include "base/cleanup.h"
#include "cli/exec_follow.h"
#include "cli/term.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

enum { PIECE = 64 * 1024, KEPT_MAX = 1 << 20, AGAIN_MS = 50, TRIES = 1200, TWICE_MS = 2000 };

struct pump {
	struct exec_follow *f;
	struct api_client r;
	struct buf kept; /* from byte `base` of the input on */
	uint64_t base, sent;
	int ended; /* stdin has ended */
	unsigned generation;
	/* at a terminal: characters with which a line may begin */
	int init_conn_start, tilde;
	uint64_t last_int_ns;
};

static uint64_t forward_total(const struct pump *p)
{
	return p->base + p->kept.len;
}

static void forward_discard_below(struct pump *p, uint64_t offset)
{
	size_t n = offset > p->base ? (size_t)(offset - p->base) : 0;

	n = n < p->kept.len ? n : p->kept.len;
	if (!n)
		return;
	memmove(p->kept.p, p->kept.p + n, p->kept.len - n);
	buf_cut(&p->kept, p->kept.len - n);
	p->base += n;
}

/* The position at which the input in the box ends. 0: known; -1: the program accepts no more, or
 * the position cannot be found. */
static int find_place(struct pump *p)
{
	for (int i = 0; i < TRIES; i++) {
		json_t *doc = api_client_get(&p->r, "/v1/boxes/%s/execs/%s", p->f->box, p->f->exec);
		const json_t *in = json_object_get(doc, "stdin");
		int64_t bytes = api_client_int(in, "bytes", -1);
		int open = json_is_true(json_object_get(in, "open")), asked = json_is_object(in);

		json_decref(doc);
		if (bytes >= 0) {
			p->sent = (uint64_t)bytes < p->base ? p->base : (uint64_t)bytes;
			return open ? 0 : -1;
		}
		/* A daemon that has just started does not know it yet. */
		if (doc ? !asked : !p->r.lost && p->r.http < 500)
			return -1;
		poll(NULL, 0, AGAIN_MS);
	}
	return -1;
}

/* On a terminal other clients may type, too: then the bytes of this client have no defined
 * positions. */
static int is_alone(const struct pump *p)
{
	return !p->f->terminal && !p->f->attached;
}

static char *push_path(const struct pump *p)
{
	const char *close = p->ended ? "true" : "false";

	if (is_alone(p))
		return api_client_path("/v1/boxes/%s/execs/%s/stdin?close=%s&offset=%u", p->f->box,
				       p->f->exec, close, p->sent);
	return api_client_path("/v1/boxes/%s/execs/%s/stdin?close=%s", p->f->box, p->f->exec,
			       close);
}

static int push_once(struct pump *p)
{
	auto_free char *path = push_path(p);
	struct api_client_bytes x = { .method = "POST",
				      .path = path,
				      .type = "application/octet-stream",
				      .body = buf_str(&p->kept) + (p->sent - p->base),
				      .len = (size_t)(forward_total(p) - p->sent),
				      .from = -1,
				      .to = -1 };
	int status;

	if (!x.len)
		x.body = "";
	status = api_client_bytes(&p->r, &x);
	if (status == 0) {
		p->sent = forward_total(p);
		forward_discard_below(p, (uint64_t)api_client_int(x.answer, "delivered", 0));
	}
	json_decref(x.answer);
	return status;
}

/* Init may not have received yet all bytes that a killed server had accepted. Bytes that this
 * client no longer has cannot be sent again: the program must not get the rest without them. */
static int forward_wait_for_gap(struct pump *p, int tries)
{
	if (tries == TRIES) {
		fprintf(stderr,
			"atoll: bytes of stdin were lost; byte %llu and later were not sent\n",
			(unsigned long long)p->base);
		return -1;
	}
	poll(NULL, 0, AGAIN_MS);
	return 0;
}

/* 0: accepted; -1: the program reads no more. */
static int forward_push(struct pump *p)
{
	for (int tries = 0; push_once(p) != 0; tries++) {
		int gap = !p->r.lost && !strcmp(p->r.code, "gap");

		if (!p->r.lost && p->r.http < 500 && !gap)
			return -1;
		if (gap && forward_wait_for_gap(p, tries) < 0)
			return -1;
		if (find_place(p) < 0)
			return -1;
		if (p->sent > forward_total(p)) { /* another client writes, too */
			if (is_alone(p))
				return -1;
			buf_cut(&p->kept, 0);
			p->base = p->sent;
			return 0;
		}
	}
	if (p->kept.len > KEPT_MAX)
		forward_discard_below(p, forward_total(p) - KEPT_MAX / 2);
	return 0;
}

/* ---- a person ---- */

static _Noreturn void forward_detach(struct pump *p)
{
	struct exec_follow *f = p->f;

	/* Input typed before that belongs to the program. */
	if (forward_total(p) > p->sent)
		(void)!forward_push(p);
	term_restore();
	if (!f->quiet)
		fprintf(stderr,
			"\n"
			"atoll: detached; the program keeps running. To attach again: atoll attach %s %s --from %llu\n",
			f->box, f->exec, (unsigned long long)f->next[0]);
	exit(0);
}

static void killed_twice(struct pump *p)
{
	uint64_t now = now_ns();
	auto_free char *path = NULL;

	if (p->last_int_ns && now - p->last_int_ns < TWICE_MS * UINT64_C(1000000)) {
		path = api_client_path("/v1/boxes/%s/execs/%s/signal", p->f->box, p->f->exec);
		json_decref(
			api_client_json(&p->r, "POST", path, json_pack("{s:s}", "signal", "KILL")));
	}
	p->last_int_ns = now;
}

/* "~." at the start of a line detaches, "~~" is a tilde. */
static void forward_typed(struct pump *p, const char *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		char c = bytes[i];

		if (p->tilde) {
			p->tilde = 0;
			if (c == '.')
				forward_detach(p);
			buf_putc(&p->kept, '~');
			if (c == '~')
				continue;
		} else if (p->init_conn_start && c == '~') {
			p->tilde = 1;
			p->init_conn_start = 0;
			continue;
		}
		if (c == 3 && p->f->twice)
			killed_twice(p);
		buf_putc(&p->kept, c);
		p->init_conn_start = c == '\r' || c == '\n';
	}
}

/* ---- the thread ---- */

static void wait_known(struct exec_follow *f)
{
	pthread_mutex_lock(&f->lock);
	while (!f->known)
		pthread_cond_wait(&f->moved, &f->lock);
	pthread_mutex_unlock(&f->lock);
}

static unsigned forward_generation(struct exec_follow *f)
{
	unsigned now;

	pthread_mutex_lock(&f->lock);
	now = f->generation;
	pthread_mutex_unlock(&f->lock);
	return now;
}

/* Everything was sent, but a daemon that exits now may not have passed it on. */
static void forward_watch(struct pump *p)
{
	struct exec_follow *f = p->f;
	unsigned seen = p->generation;

	for (;;) {
		pthread_mutex_lock(&f->lock);
		while (f->generation == seen)
			pthread_cond_wait(&f->moved, &f->lock);
		seen = f->generation;
		pthread_mutex_unlock(&f->lock);
		if (find_place(p) == 0 && forward_push(p) < 0)
			return;
	}
}

static void forward_run(struct pump *p)
{
	char piece[PIECE];

	while (!p->ended) {
		ssize_t n = read(0, piece, sizeof(piece));

		if (n < 0 && (errno == EINTR || errno == EAGAIN)) {
			struct pollfd in = { .fd = 0, .events = POLLIN };

			poll(&in, 1, -1);
			continue;
		}
		if (n > 0 && p->f->terminal)
			forward_typed(p, piece, (size_t)n);
		else if (n > 0)
			buf_add(&p->kept, piece, (size_t)n);
		p->ended = n <= 0;
		p->generation = forward_generation(p->f);
		if ((p->ended || forward_total(p) > p->sent) && forward_push(p) < 0)
			return;
	}
	forward_watch(p);
}

void *stdin_forward_thread(void *follow)
{
	struct pump p = { .f = follow, .init_conn_start = 1 };

	wait_known(p.f);
	if (api_client_again(&p.r, &p.f->mould) == 0 && (!p.f->attached || find_place(&p) == 0)) {
		if (p.f->attached)
			p.base = p.sent; /* input that another client has sent is not repeated */
		forward_run(&p);
	}
	api_client_close(&p.r);
	buf_fini(&p.kept);
	return NULL;
}
