/* box_replace.c - replaces the keeper's box of a box, for a rollback.
 *
 *   server                            keeper                  the row
 *   CREATE with the chain       --->  new box
 *                               <---  BOX + connection        (ends with it: not claimed)
 *   one transaction:                                          keeper, generation + 1, head;
 *                                                             the old box is in replaced_boxes
 *   programs end, FORGET to the new init: claimed
 *   KILL of the old one         --->
 *                               <---  DESTROYED               removed from replaced_boxes
 *
 * A server that dies before the transaction leaves the old box and a new one that ends by itself; one
 * that dies after it leaves the new box and a row with which the next server ends the old one. */
#include "fleet/box_internal.h"
#include "fleet/box_secrets.h"
#include "fleet/charge.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "store/volumes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct box_replacement {
	struct box *box;
	struct keeper_call *asking;
	char origin[ID_MAX + 1];
	char event[STORE_WORD + 1];
	json_t *data;
};

static void replace_free(struct box_replacement *x)
{
	x->box->replacing = NULL;
	json_decref(x->data);
	free(x);
}

void box_replace_cancel(struct box *b)
{
	struct box_replacement *x = b->replacing;

	if (!x)
		return;
	keeper_client_cancel(&b->fleet->keeper, x->asking); /* an unclaimed box ends by itself */
	replace_free(x);
}

static void replace_finish(struct box_replacement *x, const struct err *e)
{
	struct box *b = x->box;

	replace_free(x);
	box_notify(&b->replaced, b, e);
}

/* ---- the old one ---- */

struct box_old {
	struct fleet *fleet;
	char box[ID_MAX + 1], keeper[ID_MAX + 1];
	uint32_t generation; /* that has replaced it */
	uint64_t before_us;  /* what was charged for the generations before it */
};

/* Its programs were charged when they ended, without the counters of their end. */
static void replace_charge(const struct box_old *o, const struct wire_counters *last)
{
	struct box *b = fleet_find(o->fleet, o->box);
	uint64_t total;
	struct err e;

	if (!b || !last || last->cpu_us == UINT64_MAX || b->row.generation != o->generation ||
	    !b->charged.known)
		return;
	total = o->before_us + last->cpu_us;
	if (total <= b->row.cpu_before_us)
		return;
	b->row.cpu_before_us = total;
	if (box_changed(b, &e) < 0)
		log_warn("cannot store the CPU time of a replaced box", LOG_S("box", b->row.id),
			 LOG_E(&e));
}

static void replace_old_ended(void *ctx, const struct frame *f, size_t len, int *fd,
			      const struct err *e)
{
	struct box_old *o = ctx;
	struct err own;

	(void)len;
	(void)fd;
	replace_charge(o, (const struct wire_counters *)f);
	/* On failure the next server tries again. */
	if ((f || box_is_lost(e)) && store_replaced_remove(o->fleet->store, o->keeper, &own) < 0)
		log_warn("cannot forget a replaced box", LOG_S("keeper", o->keeper), LOG_E(&own));
	free(o);
}

void box_replace_end_old(struct fleet *f, const struct box *b, const char *keeper,
			 uint64_t before_us)
{
	struct box_old *o = calloc(1, sizeof(*o));

	if (!o)
		abort();
	o->fleet = f;
	o->before_us = before_us;
	snprintf(o->keeper, sizeof(o->keeper), "%s", keeper);
	if (b) {
		snprintf(o->box, sizeof(o->box), "%s", b->row.id);
		o->generation = b->row.generation;
	}
	keeper_client_request_box(&f->keeper, WIRE_KILL, WIRE_KILL_FIGURES, keeper, WIRE_DESTROYED,
				  replace_old_ended, o);
}

void box_replace_sweep(struct fleet *f)
{
	struct store_ids old = { 0 };
	struct err e;

	if (store_replaced_list(f->store, &old, &e) < 0) {
		log_warn("cannot read the list of replaced boxes", LOG_E(&e));
		return;
	}
	for (unsigned i = 0; i < old.n; i++)
		box_replace_end_old(f, NULL, old.v[i], 0);
	free(old.v);
}

/* ---- the switch ---- */

void box_replace_leave(struct box *b)
{
	b->because = CAUSE_ROLLBACK;
	for (struct exec *r = b->runs, *next; r; r = next) {
		next = r->next;
		exec_box_gone(r, NULL);
	}
	b->because = CAUSE_EXIT;
	box_leave_init(b);
}

void box_leave_init(struct box *b)
{
	egress_client_close(b);
	keeper_client_cancel(&b->fleet->keeper, b->way.capturing);
	b->way.capturing = NULL;
	keeper_client_cancel(&b->fleet->keeper, b->asking);
	b->asking = NULL;
	init_conn_box_ended(&b->line);
	init_conn_close(&b->line);
	port_conns_fail(b);
	port_conns_drop_idle(b);
	box_secrets_ended(b);
	free(b->listening);
	b->listening = NULL;
	b->nlistening = 0;
	b->tally_again = 0;
	b->output_tip = b->look_tip = 0;
	b->seen = (struct wire_counters){ 0 };
	b->seen_ms = b->charged_us = b->unclaimed_kills = 0;
	b->is_charged = 1;
	b->told.then = WIRE_THENS; /* the new one has no deadline yet */
	b->asked_ms = 0;
}

/* The row with the new keeper box. -1: nothing was written. */
static int replace_write(struct box_replacement *x, const struct wire_box *box,
			 struct store_box *row, struct err *e)
{
	struct box *b = x->box;
	struct store *s = b->fleet->store;
	struct fleet_event news;

	*row = b->row; /* its texts are borrowed */
	snprintf(row->keeper, sizeof(row->keeper), "%.*s", ID_MAX, box->id);
	row->generation++;
	row->cpu_before_us = b->charged.known ? b->charged.cpu_us : row->cpu_before_us;
	memcpy(row->origin, x->origin, sizeof(row->origin));
	memcpy(row->head, x->origin, sizeof(row->head));
	row->state = STORE_BOX_RUNNING;
	row->started_ns = fleet_now_ns();
	row->kept_until_ns = row->idle_since_ns = 0;
	if (store_begin(s, e) < 0)
		return -1;
	if (store_replaced_add(s, box_keeper_id(b), e) < 0 || store_box_update(s, row, e) < 0 ||
	    store_box_set_head(s, row->id, row->head, e) < 0)
		return store_rollback(s);
	json_object_set_new(x->data, "generation", json_integer(row->generation));
	fleet_write(b->fleet, row->team, row->id, x->event, json_incref(x->data), &news);
	if (store_commit(s, e) < 0) {
		fleet_event_drop(&news);
		return -1;
	}
	fleet_publish(b->fleet, &news);
	return 0;
}

static void replace_placed(struct box *b, const struct err *e)
{
	if (!e && !b->continues_programs)
		box_run_start(b);
	if (b->replacing)
		replace_finish(b->replacing, e);
	if (e)
		box_end(b, CAUSE_HOST, NULL);
}

static void replace_place(struct box *b)
{
	if (!box_secrets_place(b, replace_placed))
		replace_placed(b, NULL);
}

static void replace_switch(struct box_replacement *x, const struct wire_box *box, int take_fd)
{
	struct box *b = x->box;
	auto_fd int fd = take_fd;
	char old[ID_MAX + 1];
	uint64_t before_us = b->row.cpu_before_us;
	struct store_box row;
	struct err e;

	run_writer_flush(&b->fleet->run_writer);
	if (replace_write(x, box, &row, &e) < 0) {
		replace_finish(x, &e);
		return;
	}
	snprintf(old, sizeof(old), "%s", box_keeper_id(b));
	box_replace_leave(b);
	b->row = row;
	if (b->state == BOX_STOPPED)
		box_set_state(b, BOX_RUNNING);
	box_replace_end_old(b->fleet, b, old, before_us);
	box_take_box(b, box);
	if (box_open_conn(b, steal_fd(&fd), &e) < 0) {
		replace_finish(x, &e);
		box_end(b, CAUSE_HOST, NULL);
		return;
	}
	box_claim(b);
	egress_client_open(b);
	box_set_clock(b);
	if (!egress_client_await(b, replace_place))
		replace_place(b);
}

static void replace_made(void *ctx, const struct frame *f, size_t len, int *fd, const struct err *e)
{
	struct box_replacement *x = ctx;
	struct box *b = x->box;
	struct err own;

	(void)len;
	x->asking = NULL;
	if (!f) {
		replace_finish(x, e);
	} else if (*fd < 0) {
		err_set(&own, ERR_SYS, "keeper: a box without a connection to it");
		replace_finish(x, &own);
	} else if (b->state != BOX_RUNNING && b->state != BOX_STOPPED) {
		err_set(&own, ERR_CONFLICT, "box %s is %s", b->row.id, box_state_name(b->state));
		replace_finish(x, &own);
	} else {
		replace_switch(x, (const struct wire_box *)f, steal_fd(fd));
	}
}

/* ---- the request ---- */

static int replace_volumes(const struct box *b, int alone, struct box_spec *out, struct err *e)
{
	struct store_attachments all = { 0 };
	int rc = 0;

	if (store_volume_attached(b->fleet->store, NULL, b->row.id, &all, e) < 0)
		return -1;
	for (unsigned i = 0; i < all.n && i < WIRE_MOUNTS && rc == 0; i++) {
		struct wire_mount *m = &out->mounts[out->nmounts++];

		snprintf(m->id, sizeof(m->id), "%s", all.v[i].volume);
		snprintf(m->path, sizeof(m->path), "%.*s", (int)sizeof(m->path) - 1, all.v[i].path);
		m->flags = all.v[i].writable ? 0 : WIRE_MOUNT_RO;
		if (all.v[i].writable && !alone)
			rc = err_set(e, ERR_CONFLICT,
				     "box %s writes to volume %s at %.100s, and two boxes cannot "
				     "have it at the same time; create a box from the checkpoint "
				     "without it",
				     b->row.id, all.v[i].volume, all.v[i].path);
	}
	store_attachments_fini(&all);
	return rc;
}

int box_replace_spec(const struct box *b, const struct store_checkpoint *to, int alone,
		     struct box_spec *out, struct err *e)
{
	const struct store_limits *l = &b->row.limits;

	*out = (struct box_spec){ .limits = { .mem_bytes = l->mem_bytes,
					      .disk_bytes = l->disk_bytes,
					      .disk_files = l->disk_files,
					      .cpu_ms = l->cpu_ms,
					      .cpu_milli = l->cpu_milli,
					      .pids = l->pids } };
	out->row = b->row; /* borrowed */
	out->isolation = isolation_like(&b->row);
	out->nchain = to->nchain;
	memcpy(out->chain, to->chain, sizeof(out->chain));
	if (box_read_made(&b->row, out, e) < 0 || replace_volumes(b, alone, out, e) < 0)
		return -1;
	out->flags |= WIRE_CREATE_COLD;
	return 0;
}

int box_replace(struct box *b, const struct store_checkpoint *to, const char *event,
		json_t *take_data, struct box_wait *w, struct err *e)
{
	struct box_replacement *x;
	struct isolation_choice tier;
	struct isolation_ask ask;
	struct wire_create create;
	struct box_spec want;
	int rc = -1;

	if (b->state != BOX_RUNNING && b->state != BOX_STOPPED)
		err_set(e, ERR_CONFLICT, "box %s is %s", b->row.id, box_state_name(b->state));
	else if (b->replacing)
		err_set(e, ERR_CONFLICT, "box %s is being rolled back by another request",
			b->row.id);
	else if (strcmp(to->team, b->row.team) != 0)
		err_set(e, ERR_NOT_FOUND, "no checkpoint '%s'", to->id);
	else
		rc = box_replace_spec(b, to, 0, &want, e);
	if (rc == 0) {
		ask = box_isolation(&want);
		rc = isolation_choose(b->fleet, &ask, 0, &tier, e);
	}
	if (rc < 0) {
		json_decref(take_data);
		return -1;
	}
	box_fill_create(&want, &tier, &create);
	x = calloc(1, sizeof(*x));
	if (!x)
		abort();
	*x = (struct box_replacement){ .box = b, .data = take_data };
	memcpy(x->origin, to->id, sizeof(x->origin));
	snprintf(x->event, sizeof(x->event), "%s", event);
	b->replacing = x;
	box_wait_for(b, &b->replaced, w);
	x->asking = keeper_client_request(&b->fleet->keeper, &create, sizeof(create), WIRE_BOX,
					  replace_made, x);
	return 0;
}
