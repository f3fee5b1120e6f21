/* box_end.c - ends a box: writes the cause to the store, kills the box, and takes the final
 * counters of the keeper. */
#include "fleet/box_internal.h"
#include "fleet/charge.h"
#include "fleet/recent_exits.h"
#include "store/contexts.h"
#include "store/volumes.h"

#include <stdio.h>

enum { JUST_MS = 20 }; /* CPU time within this interval may not be charged */

/* Written before the kill: if the server dies between the two, the next one finds the cause. */
void box_mark_ending(struct box *b, enum cause because)
{
	struct store *s = b->fleet->store;
	struct err e;
	int grouped;

	if (b->intended)
		return;
	b->intended = 1;
	grouped = store_begin(s, &e) == 0;
	run_writer_flush(
		&b->fleet->run_writer); /* init, which has the other copy, ends with the box */
	if (because != CAUSE_EXIT) {
		snprintf(b->row.cause, sizeof(b->row.cause), "%s", cause_name(because));
		/* A full disk must not prevent the end of a box. */
		(void)!store_box_intend(s, b->row.id, b->row.cause, &e);
	}
	if (grouped)
		(void)!store_commit(s, &e);
}

void box_take_cause(struct box *b, const char *name)
{
	if (b->because != CAUSE_EXIT || cause_parse(name, &b->because) < 0)
		return;
	b->because_ms = b->because == CAUSE_LIFETIME ? b->row.lifetime_ms
			: b->because == CAUSE_IDLE   ? b->row.idle_ms
						     : 0;
}

/* The server that started the end has written the cause, and it may be another one. 1: another
 * server has finished the end. */
static int is_buried(struct box *b)
{
	char cause[STORE_WORD + 1];
	struct err e;
	int gone;

	if (b->because != CAUSE_EXIT)
		return 0; /* the cause is known here, and end_bury() determines the rest */
	if (store_box_end_of(b->fleet->store, b->row.id, cause, &gone, &e) < 0)
		return 0;
	box_take_cause(b, cause);
	return gone;
}

/* The cause of an end without a request; kills for memory that explain the end of an earlier
 * program do not count. */
static enum cause own_end(const struct box *b, const struct wire_counters *figures)
{
	if (!figures)
		return CAUSE_HOST;
	if (figures->by_operator == 1)
		return CAUSE_OPERATOR;
	if (figures->by_operator == WIRE_ENDED_BY_DEADLINE)
		return CAUSE_LIFETIME;
	if (figures->over_cpu == 1)
		return CAUSE_CPU;
	if (figures->oom_kills != UINT64_MAX && figures->oom_kills > b->seen.oom_kills)
		return CAUSE_MEMORY;
	/* An engine needs threads of its own; init of a container continues without. */
	return b->about.tier != WIRE_TIER_CONTAINER && figures->pids_hits != UINT64_MAX &&
			       figures->pids_hits > b->seen.pids_hits
		       ? CAUSE_PROCESSES
		       : CAUSE_HOST;
}

static int write_end(struct box *b, enum cause cause, struct fleet_event *news)
{
	struct fleet *f = b->fleet;
	struct err e;

	/* A full disk must not keep a box that has ended: its row is checked again after
	 * a restart. */
	if (store_box_bury(f->store, b->row.id, cause_name(cause), fleet_now_ns(), &e) < 0 &&
	    e.kind == ERR_NOT_FOUND)
		return -1; /* the other server was faster */
	(void)!store_volume_detach(f->store, b->row.id, &e);
	if (b->row.head[0])
		(void)!store_checkpoint_box_ended(f->store, b->row.id,
						  fleet_now_ns() + STORE_CHECKPOINT_DAY_NS, &e);
	(void)!store_context_drop(f->store, b->row.id, &e);
	fleet_write(f, b->row.team, b->row.id, "box.ended",
		    json_pack("{s:s}", "cause", cause_name(cause)), news);
	return 0;
}

static void end_bury(struct box *b, enum cause cause)
{
	struct fleet *f = b->fleet;
	struct fleet_event news;
	struct err e;
	int grouped = store_begin(f->store, &e) == 0, first;

	run_writer_flush(&f->run_writer); /* its last charge */
	first = write_end(b, cause, &news) == 0;
	if (grouped)
		(void)!store_commit(f->store, &e);
	if (!first)
		return;
	f->figures.boxes_ended[cause]++;
	fleet_publish(f, &news);
}

void box_finish(struct box *b, const struct wire_counters *figures)
{
	int buried = is_buried(b);
	/* The end of a box whose only run has ended is not reported as a failure. */
	int missed = b->died && !(b->ephemeral && !b->runs);
	/* Determined before its execs end: they claim the kills for memory. */
	enum cause cause = b->because == CAUSE_EXIT && missed ? own_end(b, figures) : b->because;

	box_set_state(b, BOX_DELETED);
	egress_client_close(b);
	timer_clear(&b->clock);
	if (figures)
		box_count_cpu(b, figures);
	box_replace_cancel(b);
	b->storing = b->loading = 0;
	box_store_ended(b);
	if (b->made || b->risen || b->replaced) {
		struct err gone;

		err_set(&gone, ERR_NOT_FOUND, "box %s has ended", b->row.id);
		box_notify(&b->made, b, &gone);
		box_notify(&b->risen, b, &gone);
		box_notify(&b->replaced, b, &gone);
	}
	for (struct exec *r = b->runs, *next; r; r = next) {
		next = r->next;
		exec_box_gone(r, figures);
	}
	charge_box(b, figures);
	if (!buried && (b->row.state == STORE_BOX_STOPPED || b->row.state == STORE_BOX_PAUSED))
		charge_stored(b);
	if (!buried)
		end_bury(b, cause);
	box_leave(b);
	box_notify(&b->ended, b, NULL);
	box_free(b);
}

static void box_charge_cpu(struct box *b, uint64_t us)
{
	const struct fleet_accounts *a = &b->fleet->accounts;

	if (a->computed && us)
		a->computed(a->ctx, b->row.team, us);
}

void box_count_cpu(struct box *b, const struct wire_counters *now)
{
	if (now->cpu_us == UINT64_MAX)
		return;
	if (b->is_charged && now->cpu_us > b->charged_us)
		box_charge_cpu(b, now->cpu_us - b->charged_us);
	b->charged_us = now->cpu_us;
	b->is_charged = 1;
}

void box_count_reaped(struct box *b, uint64_t cpu_us)
{
	if (!b->charged_us) /* else the cgroup has already reported more than that */
		box_charge_cpu(b, cpu_us);
}

static void on_end(void *ctx, const struct frame *f, size_t len, int *fd, const struct err *e)
{
	struct box *b = ctx;

	(void)len;
	(void)fd;
	(void)e; /* the box no longer exists, which is the requested result */
	b->asking = NULL;
	box_finish(b, f ? (const struct wire_counters *)f : NULL);
}

static int was_just_counted(const struct box *b)
{
	return b->is_charged && b->seen_ms && loop_now_ms() - b->seen_ms < JUST_MS;
}

void box_end(struct box *b, enum cause because, struct box_wait *w)
{
	if (w)
		box_wait_for(b, &b->ended, w);
	if (b->state >= BOX_ENDING)
		return;
	if (b->state == BOX_MAKING && !b->late) { /* on_made() checks b->because */
		b->because = because;
		return;
	}
	if (b->state == BOX_PAUSED && !init_conn_is_open(&b->line))
		box_restore_execs(b); /* execs that were not restored yet end, too */
	box_set_state(b, BOX_ENDING);
	b->because = because;
	box_mark_ending(b, because);
	box_restored(b);
	timer_clear(&b->clock);
	keeper_client_cancel(&b->fleet->keeper, b->asking);
	/* The final counters explain how the remaining programs ended, or why the box did; and they
	 * contain the CPU time since the last request. */
	b->asking = keeper_client_request_box(
		&b->fleet->keeper, WIRE_KILL,
		b->runs || because == CAUSE_EXIT || !was_just_counted(b) ? WIRE_KILL_FIGURES : 0,
		box_keeper_id(b), WIRE_DESTROYED, on_end, b);
	box_store_ended(b);
}

/* The other server has replaced the box of the keeper: this connection was to the old
 * one. */
static int end_was_replaced(struct box *b)
{
	struct store_box row = { 0 };
	struct err e;
	int other;

	if (b->fleet->alone || store_box_get(b->fleet->store, b->row.id, &row, &e) < 0)
		return 0;
	other = row.generation != b->row.generation && row.state != STORE_BOX_DELETED;
	store_box_fini(&row);
	if (!other)
		return 0;
	box_replace_leave(b);
	box_reread(b);
	if (b->state != BOX_PAUSED)
		box_set_state(b, BOX_MAKING);
	box_open_again(b);
	return 1;
}

/* The connection to init was closed: init has died, and the box with it. */
void box_conn_lost(struct init_conn *l, const struct err *why)
{
	struct box *b = l->user;

	port_conns_fail(b);
	if (b->store_wait) /* it is on the disk already */
		return;
	if (b->loading || (b->row.image[0] && b->state == BOX_RUNNING)) {
		box_disk_lost(b, why);
		return;
	}
	if (b->state != BOX_RUNNING && !box_is_stored(b))
		return;
	if (end_was_replaced(b))
		return;
	b->died = 1;
	box_end(b, CAUSE_EXIT, NULL);
}

/* The request that was to delete the box after its run has ended with the old server. */
void box_end_if_done(struct box *b)
{
	if (b->ephemeral && b->fleet->alone && b->state == BOX_RUNNING &&
	    (!b->runs || box_is_marked(&b->row, BOX_RACE)))
		box_end(b, CAUSE_EXIT, NULL);
}

void box_exec_ended(struct box *b, struct exec *r)
{
	struct exec **at = &b->runs;

	while (*at && *at != r)
		at = &(*at)->next;
	if (*at)
		*at = r->next;
	b->nruns--;
	b->charged.sampled_ms = loop_now_ms(); /* until now, the run was charged */
	box_touch(b);
	recent_exits_add(b, r);
	exec_free(r);
	box_end_if_done(b);
}
