/* checkpoint_archive.c - checkpoints as tar archives: export and import. See keeper/checkpoint_archive.h. */
#include "v1box/checkpoints.h"
#include "v1box/keeper_archive.h"
#include "base/cleanup.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

const struct field checkpoints_export_query[] = {
	{ "delta", FIELD_BOOL, 0, 0, 0, "only what has changed since its parent", NULL },
	{ 0 },
};

const struct field checkpoints_import_query[] = {
	{ "name", FIELD_NAME, 0, 0, STORE_NAME, "name of the checkpoint, unique in its box", NULL },
	{ "note", FIELD_TEXT, 0, 0, STORE_NOTE, "a text for people", NULL },
	{ "pin", FIELD_BOOL, 0, 0, 0, "keep it until it is deleted, also after the box has ended",
	  NULL },
	{ 0 },
};

/* ---- export ---- */

void checkpoints_export(struct call *c)
{
	struct wire_checkpoint_merge ask = { .head = { .type = WIRE_CHECKPOINT_EXPORT } };
	int delta = call_query_flag(c, "delta");
	struct store_checkpoint x;
	struct err e;

	if (!checkpoints_find(c, NULL, call_param(c, 0), &x))
		return;
	ask.n = delta && x.nchain ? 1 : x.nchain;
	for (unsigned i = 0; i < ask.n; i++)
		snprintf(ask.from[i], sizeof(ask.from[i]), "%s", x.chain[i]);
	if (!ask.n || (delta && x.same_as[0]))
		call_error(c, 409, "conflict",
			   delta ? "nothing has changed since the parent of this checkpoint"
				 : "no file of the box has changed: there is nothing to export",
			   x.id, "export a checkpoint with changes");
	else if (keeper_archive_send(c, &ask, sizeof(ask), WIRE_CHECKPOINTED,
				     "application/vnd.oci.image.layer.v1.tar", "", &e) < 0)
		call_fail(c, &e);
	store_checkpoint_fini(&x);
}

/* ---- import ---- */

struct checkpoint_import_call {
	struct call *call;
	struct checkpoint_job *job;
};

static void import_done(void *ctx, const struct store_checkpoint *row, const struct err *e)
{
	struct call *c = ((struct checkpoint_import_call *)ctx)->call;

	c->drop = NULL;
	if (e) {
		call_fail(c, e);
		return;
	}
	call_audit(c, "checkpoint.import", row->id, "ok");
	http_set(c->req, "Location", "/v1/checkpoints/%s", row->id);
	call_json(c, 201, checkpoint_json(row));
}

static void import_left(struct call *c)
{
	checkpoint_leave(((struct checkpoint_import_call *)c->state)->job);
}

void checkpoints_import(struct call *c)
{
	struct checkpoint_want want = { .name = call_query(c, "name"),
					.note = call_query(c, "note"),
					.author = c->who.id,
					.reason = CHECKPOINT_IMPORT,
					.pin = call_query_flag(c, "pin") };
	struct checkpoint_import_call *x = call_alloc(c, sizeof(*x));
	struct box *b = call_box(c, 0);
	struct err e;
	int ends[2];

	if (!b)
		return;
	*x = (struct checkpoint_import_call){ .call = c };
	if (pipe2(ends, O_CLOEXEC) < 0) {
		err_sys(&e, "make a pipe");
		call_fail(c, &e);
		return;
	}
	if (checkpoint_import(c->api->checkpoints, b, &want, ends[0], import_done, x, &x->job, &e) <
	    0) {
		close(ends[1]);
		call_fail(c, &e);
		return;
	}
	c->state = x;
	c->drop = import_left;
	http_body_pipe(c->req, ends[1], c->api->conf.upload_max);
	http_body_rate(c->req, HTTP_BODY_RATE);
}
