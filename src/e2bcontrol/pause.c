/* pause.c - see pause.h. */
#include "e2bcontrol/pause.h"
#include "base/log.h"
#include "checkpoint/pause.h"
#include "v1box/pause.h"

#include <stdlib.h>
#include <string.h>

const struct field pausing_fields[] = {
	{ "memory", FIELD_BOOL, 0, 0, 0, "false: keep only the files", NULL },
	{ .name = FIELDS_OTHERS },
	{ 0 },
};

int pausing_is_paused(const struct box *b)
{
	return b->state == BOX_PAUSED || b->state == BOX_STOPPED;
}

static void pause_paused(struct call *c, struct box *b, const struct err *e)
{
	(void)b;
	if (e)
		call_fail(c, e);
	else
		call_empty(c, 204);
}

int pausing_check(const char *to, struct err *e)
{
	return !to || !strcmp(to, "memory") || !strcmp(to, "disk")
		       ? 0
		       : err_set(e, ERR_INVALID,
				 "metadata: " PAUSING_KEY " is memory or disk, not '%.40s'", to);
}

int pausing_check_fork(const char *what, struct err *e)
{
	return !what || !strcmp(what, "memory") || !strcmp(what, "files")
		       ? 0
		       : err_set(e, ERR_INVALID,
				 "metadata: " PAUSING_FORK_KEY " is memory or files, not '%.40s'",
				 what);
}

/* Whether the metadata of the box has this text. */
static int pause_is_marked(const struct box *b, const char *key, const char *text)
{
	json_t *doc = b->row.metadata ? json_loads(b->row.metadata, 0, NULL) : NULL;
	const char *is = json_string_value(json_object_get(doc, key));
	int same = is && !strcmp(is, text);

	json_decref(doc);
	return same;
}

static int pause_to_disk(const struct box *b)
{
	return pause_is_marked(b, PAUSING_KEY, "disk");
}

int pausing_forks_memory(const struct box *b)
{
	return !pause_is_marked(b, PAUSING_FORK_KEY, "files");
}

void pausing_pause(struct call *c)
{
	struct box *b = call_box_peek(c, 0);

	if (!b)
		return;
	if (pausing_is_paused(b))
		e2b_error(c, 409, "Sandbox %s is already paused", b->row.id);
	else if (call_flag(c, "memory", 1) && pause_to_disk(b))
		pause_begin_disk(c, b, pause_paused);
	else
		pause_begin(c, b, call_flag(c, "memory", 1), pause_paused);
}

/* ---- by a timeout ---- */

struct pausing_late {
	struct box_wait wait;
	enum cause because;
	uint64_t ms;
};

static void pause_late_refused(const struct box *b, const struct err *e)
{
	log_warn("a sandbox is paused in memory, not on the disk, at its timeout",
		 LOG_S("box", b->row.id), LOG_E(e));
}

/* What cannot be written to the disk is paused in memory: its lifetime has ended in any case. */
static void pause_late_over(struct box_wait *w, struct box *b, const struct err *e)
{
	struct pausing_late *p = loop_owner(w, struct pausing_late, wait);

	if (e && b->state == BOX_RUNNING) {
		pause_late_refused(b, e);
		box_freeze_at_timeout(b, p->because, p->ms);
	}
	free(p);
}

static int pause_at_timeout(struct fleet *f, struct box *b, enum cause because, uint64_t ms)
{
	struct api *a = loop_owner(f, struct api, fleet);
	struct pausing_late *p;
	struct err e;

	if (!pause_to_disk(b))
		return 0;
	p = calloc(1, sizeof(*p));
	if (!p)
		abort();
	*p = (struct pausing_late){ .wait.done = pause_late_over, .because = because, .ms = ms };
	if (checkpoint_pause(a->checkpoints, b, CHECKPOINT_PAUSE, b->row.key, 0, &p->wait, &e) ==
	    0) {
		b->because = because;
		return 1;
	}
	free(p);
	pause_late_refused(b, &e);
	return 0;
}

void pausing_init(struct api *a)
{
	a->fleet.pause_at_timeout = pause_at_timeout;
}

void pausing_want(struct store_box *row, const struct e2b_box *x)
{
	row->on_timeout = !x->auto_pause    ? STORE_TIMEOUT_KILL
			  : x->pause_memory ? STORE_TIMEOUT_PAUSE
					    : STORE_TIMEOUT_KEEP;
	row->retention_ms = STORE_FOREVER; /* a paused sandbox of E2B is kept until a client
					    * deletes it */
}
