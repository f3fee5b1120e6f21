/* pause.c - see pause.h. */
#include "v1box/pause.h"
#include "checkpoint/pause.h"
#include "v1box/boxes.h"
#include "v1box/checkpoints.h"

#include <string.h>

struct pausing {
	struct box_wait wait;
	struct call *call;
	pause_done *done;
};

static const struct field pause_to_values[] = { FIELD_VALUE("memory"), FIELD_VALUE("disk"), { 0 } };
const struct field pause_fields[] = {
	{ "to", FIELD_CHOICE, 0, 0, 0,
	  "where the programs stay: memory (default), or disk: their memory is free, and they survive a restart of everything",
	  pause_to_values },
	{ "memory", FIELD_BOOL, 0, 0, 0,
	  "true: freeze the programs; false: end the programs and keep the files", NULL },
	{ "portable", FIELD_BOOL, 0, 0, 0,
	  "with to: disk: the mapped files of /usr are written, too, so that the programs continue on a host with others",
	  NULL },
	{ 0 },
};

static void pause_happened(struct box_wait *w, struct box *b, const struct err *e)
{
	struct pausing *p = loop_owner(w, struct pausing, wait);

	p->call->drop = NULL;
	p->done(p->call, b, e);
}

/* A pause or resume that was started continues without its client. */
static void pause_left(struct call *c)
{
	box_wait_cancel(&((struct pausing *)c->state)->wait);
}

static struct pausing *pause_do_begin(struct call *c, pause_done *done)
{
	struct pausing *p = call_alloc(c, sizeof(*p));

	*p = (struct pausing){ .wait.done = pause_happened, .call = c, .done = done };
	c->state = p;
	c->drop = pause_left;
	return p;
}

static void pause_refused(struct call *c, struct box *b, pause_done *done, const struct err *e)
{
	c->drop = NULL;
	done(c, b, e);
}

void pause_begin_disk(struct call *c, struct box *b, pause_done *done)
{
	struct pausing *p = pause_do_begin(c, done);
	struct err e;

	if (checkpoint_pause(c->api->checkpoints, b, CHECKPOINT_PAUSE, c->who.id,
			     call_flag(c, "portable", 0), &p->wait, &e) < 0)
		pause_refused(c, b, done, &e);
}

void pause_begin(struct call *c, struct box *b, int memory, pause_done *done)
{
	struct pausing *p = pause_do_begin(c, done);
	struct err e;

	if (box_pause(b, memory, &p->wait, &e) < 0)
		pause_refused(c, b, done, &e);
}

/* Resumes a paused or a stopped box; reboot: with its files only, without its processes. */
static void pause_end(struct call *c, struct box *b, int reboot, pause_done *done)
{
	struct pausing *p = pause_do_begin(c, done);
	struct err e;

	if (box_resume(b, reboot, &p->wait, &e) < 0)
		pause_refused(c, b, done, &e);
}

/* ---- /v1 ---- */

static void pause_answer(struct call *c, struct box *b, const struct err *e)
{
	if (e)
		checkpoints_fail(c, e);
	else
		call_json(c, 200, box_json(b));
}

void pause_box(struct call *c)
{
	struct box *b = call_box_peek(c, 0);
	int memory = call_flag(c, "memory", 1);
	int disk = !strcmp(call_text(c, "to", "memory"), "disk");

	if (!b)
		return;
	if (disk && !memory)
		call_error(c, 400, "invalid",
			   "to: disk is about programs, and memory: false ends them", "disk",
			   "leave one of them out");
	else if (disk && b->state == BOX_PAUSED && b->row.image[0] && !b->moving)
		pause_answer(c, b, NULL);
	else if (disk)
		pause_begin_disk(c, b, pause_answer);
	else if (b->state == (memory ? BOX_PAUSED : BOX_STOPPED) && !b->moving)
		pause_answer(c, b, NULL); /* the box already is in this state */
	else
		pause_begin(c, b, memory, pause_answer);
}

void pause_resume(struct call *c)
{
	struct box *b = call_box_peek(c, 0);

	if (!b)
		return;
	if (b->state == BOX_RUNNING)
		pause_answer(c, b, NULL);
	else
		pause_end(c, b, 0, pause_answer);
}
