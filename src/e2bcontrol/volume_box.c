/* volume_box.c - see volume_box.h.
 *
 *   a box with it is being created -> wait, then check again
 *   a running box has it           -> use that box
 *   a box that has it ends         -> wait, then check again
 *   no box has it                  -> create a box */
#include "e2bcontrol/volume_box.h"
#include "api/quota.h"
#include "base/cleanup.h"
#include "record/cause.h"
#include "e2bcontrol/volumes.h"
#include "store/volumes.h"

#include <stdio.h>
#include <string.h>

enum { TRIES = 8, LIFETIME_MS = 3600 * 1000 };
#define ROOT "/mnt/volume"
#define PURPOSE "{\"" BOX_EPHEMERAL "\":\"volume\"}"

static int is_volume_box(const struct box *b)
{
	return b->row.metadata && !strcmp(b->row.metadata, PURPOSE);
}

/* ---- Which box has it? ---- */

static struct box *volume_box_making(const struct fleet *f, const char *volume)
{
	for (struct box *b = f->making; b; b = b->next)
		for (unsigned i = 0; i < b->nmounts; i++)
			if (!strcmp(b->mounts[i].id, volume))
				return b;
	return NULL;
}

static struct box *volume_box_holder(struct api *a, const char *volume, char root[WIRE_PATH])
{
	struct store_attachments all = { 0 };
	struct box *b = NULL;
	struct err e;

	if (store_volume_attached(a->store, volume, NULL, &all, &e) < 0)
		return NULL;
	for (unsigned i = 0; i < all.n && !b; i++) {
		b = fleet_find(&a->fleet, all.v[i].box);
		snprintf(root, WIRE_PATH, "%.*s", WIRE_PATH - 1, all.v[i].path);
	}
	store_attachments_fini(&all);
	return b;
}

/* ---- coming and going ---- */

static void volume_box_bring(struct volume_box *d);

/* The last request ends the box: no other box can mount the volume while this one has it. */
static void volume_box_over(struct http_req *r)
{
	struct call *c = r->user;
	struct api *a = c->api;
	struct volume_box *d = c->surface;
	struct box *b = d->wait.box;
	char box[ID_MAX + 1];

	memcpy(box, d->box, sizeof(box));
	box_wait_cancel(&d->wait);
	if (b && b->state == BOX_MAKING && is_volume_box(b) && !b->made)
		box_end(b, CAUSE_OPERATOR, NULL); /* no request waits for it */
	d->over(r);
	b = box[0] ? fleet_find(&a->fleet, box) : NULL;
	if (b && is_volume_box(b) && !b->busy)
		box_end(b, CAUSE_OPERATOR, NULL);
}

static void volume_box_use(struct volume_box *d, struct box *b)
{
	snprintf(d->box, sizeof(d->box), "%s", b->row.id);
	call_hold(d->call, b);
	d->ready(d->call, d, b);
}

static void volume_box_again(struct box_wait *w, struct box *b, const struct err *e)
{
	(void)b;
	(void)e; /* checks again whether it exists */
	volume_box_bring(loop_owner(w, struct volume_box, wait));
}

static void volume_box_made(struct box_wait *w, struct box *b, const struct err *e)
{
	struct volume_box *d = loop_owner(w, struct volume_box, wait);

	if (e)
		call_fail(d->call, e);
	else
		volume_box_use(d, b);
}

static void volume_box_make(struct volume_box *d)
{
	struct call *c = d->call;
	struct box_spec want = { .limits = c->api->fleet.conf.limits, .nmounts = 1 };
	struct box *b;
	struct err e;

	if (!quota_box(c))
		return;
	snprintf(want.mounts[0].id, sizeof(want.mounts[0].id), "%s", d->volume);
	snprintf(want.mounts[0].path, sizeof(want.mounts[0].path), ROOT);
	snprintf(d->root, sizeof(d->root), ROOT);
	snprintf(want.row.team, sizeof(want.row.team), "%s", c->who.team);
	snprintf(want.row.key, sizeof(want.row.key), "%s", c->who.id);
	snprintf(want.row.template, sizeof(want.row.template), "base");
	want.row.metadata = PURPOSE;
	want.row.lifetime_ms = LIFETIME_MS;
	want.continues = 1;
	want.is_own = 1; /* only the file worker runs in it */
	d->wait.done = volume_box_made;
	if (box_create(&c->api->fleet, &want, &d->wait, &b, &e) < 0)
		call_fail(c, &e);
}

static void volume_box_bring(struct volume_box *d)
{
	struct call *c = d->call;
	struct box *b = volume_box_making(&c->api->fleet, d->volume);

	d->wait = (struct box_wait){ .done = volume_box_again };
	if (d->tries++ == TRIES) {
		http_set(c->req, "Retry-After", "1");
		call_error(c, 503, "busy", "other requests are using this volume", d->volume, NULL);
		return;
	}
	if (b) {
		box_await(b, &d->wait);
		return;
	}
	b = volume_box_holder(c->api, d->volume, d->root);
	if (!b)
		volume_box_make(d);
	else if (b->state == BOX_RUNNING || b->state == BOX_STOPPED)
		volume_box_use(d, b);
	else if (b->state == BOX_ENDING)
		box_end(b, CAUSE_OPERATOR, &d->wait);
	else
		call_error(c, 409, "conflict", "a sandbox that is paused has this volume",
			   b->row.id, NULL);
}

void volume_box_open(struct call *c, struct volume_box *d,
		     void (*ready)(struct call *c, struct volume_box *d, struct box *b))
{
	struct store_volume v;

	if (!e2b_volumes_find(c, &v))
		return;
	*d = (struct volume_box){ .call = c, .ready = ready, .over = c->req->on_over };
	snprintf(d->volume, sizeof(d->volume), "%s", v.id);
	c->surface = d;
	c->req->on_over = volume_box_over;
	volume_box_bring(d);
}

int volume_box_released(struct api *a, const struct wire_mount *m, unsigned n, struct box_wait *w)
{
	char root[WIRE_PATH];

	for (unsigned i = 0; i < n; i++) {
		struct box *b = volume_box_holder(a, m[i].id, root);

		if (b && b->state == BOX_ENDING) {
			box_end(b, CAUSE_OPERATOR, w);
			return 1;
		}
	}
	return 0;
}
