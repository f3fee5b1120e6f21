/* fleet.c - see fleet.h. */
#include "fleet/fleet.h"
#include "base/clock.h"
#include "base/sha256.h"
#include "fleet/box.h"
#include "fleet/exec.h"
#include "store/runs.h"

#include <stdio.h>
#include <string.h>

enum { PATIENCE_MS = 3000 };

const double fleet_bounds[FLEET_BUCKETS] = { 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
					     0.1,    0.25,  0.5,    1,     5,    30,    300 };

const uint64_t fleet_byte_bounds[FLEET_BUCKETS] = {
	1ull << 20,   4ull << 20,   8ull << 20, 16ull << 20, 32ull << 20, 64ull << 20, 128ull << 20,
	256ull << 20, 512ull << 20, 1ull << 30, 2ull << 30,  4ull << 30,  8ull << 30,  16ull << 30,
};

unsigned fleet_observe_bytes(struct fleet_histogram *h, uint64_t bytes)
{
	unsigned i = 0;

	while (i < FLEET_BUCKETS && bytes > fleet_byte_bounds[i])
		i++;
	h->bucket[i]++;
	h->count++;
	h->sum += (double)bytes;
	return i;
}

unsigned fleet_observe(struct fleet_histogram *h, uint64_t us)
{
	double s = (double)us / 1e6;
	unsigned i = 0;

	while (i < FLEET_BUCKETS && s > fleet_bounds[i])
		i++;
	h->bucket[i]++;
	h->count++;
	h->sum += s;
	return i;
}

/* ---- the keeper ---- */

static void lost_keeper(struct keeper_client *o)
{
	struct fleet *f = loop_owner(o, struct fleet, keeper);

	f->figures.keeper_lost++;
	f->need_keeper(f);
}

void fleet_keeper(struct fleet *f, int take_fd)
{
	keeper_client_connect(&f->keeper, take_fd);
	isolation_connected(f);
}

static void be_ready(struct fleet *f)
{
	timer_clear(&f->patience);
	if (f->ready)
		return;
	f->ready = 1;
	egress_client_sweep(&f->egress_client);
	f->on_ready(f);
}

static void waited_enough(struct timer *t)
{
	be_ready(loop_owner(t, struct fleet, patience));
}

void fleet_restored(struct fleet *f)
{
	if (--f->restoring == 0)
		be_ready(f);
}

void fleet_init(struct fleet *f, struct loop *l, struct store *s, const struct fleet_conf *conf,
		const char *boot)
{
	*f = (struct fleet){ .loop = l, .store = s, .conf = *conf };
	snprintf(f->boot, sizeof(f->boot), "%s", boot);
	timer_init(&f->patience, l, waited_enough);
	run_writer_init(&f->run_writer, f);
	history_init(&f->history, f, conf->history_ms, conf->history_bytes);
	f->alone = 1;
	keeper_client_init(&f->keeper, l, lost_keeper);
	egress_client_init(&f->egress_client, f);
	isolation_init(f, &conf->isolation);
}

/* ---- teams ---- */

struct loop_budget *fleet_budget(struct fleet *f, const char *team)
{
	struct fleet_team **slot = &f->teams[id_hash(team) % FLEET_TEAM_SLOTS], *t = *slot;

	if (!*team)
		return NULL;
	while (t && strcmp(t->name, team) != 0)
		t = t->next;
	if (t)
		return &t->budget;
	t = calloc(1, sizeof(*t));
	if (!t)
		abort();
	snprintf(t->name, sizeof(t->name), "%s", team);
	t->next = *slot;
	*slot = t;
	return &t->budget;
}

static void fleet_free_teams(struct fleet *f)
{
	for (unsigned i = 0; i < FLEET_TEAM_SLOTS; i++)
		for (struct fleet_team *t = f->teams[i], *next; t; t = next) {
			next = t->next;
			free(t);
		}
}

/* ---- the table ---- */

struct box *fleet_find(const struct fleet *f, const char *id)
{
	struct box *b = f->slots[id_hash(id) % FLEET_SLOTS];

	while (b && strcmp(b->row.id, id) != 0)
		b = b->next;
	return b;
}

struct box *fleet_next(const struct fleet *f, const struct box *after)
{
	unsigned i = 0;

	if (after && after->next)
		return after->next;
	if (after)
		i = id_hash(after->row.id) % FLEET_SLOTS + 1;
	while (i < FLEET_SLOTS && !f->slots[i])
		i++;
	return i < FLEET_SLOTS ? f->slots[i] : NULL;
}

struct box *fleet_named(const struct fleet *f, const char *team, const char *id_or_name)
{
	struct box *b = fleet_find(f, id_or_name);

	if (b && !strcmp(b->row.team, team))
		return b->is_installer || b->is_spare || b->is_leaving ? NULL : b;
	if (!*id_or_name)
		return NULL;
	for (b = fleet_next(f, NULL); b; b = fleet_next(f, b))
		if (!strcmp(b->row.name, id_or_name) && !strcmp(b->row.team, team) &&
		    !b->is_installer && !b->is_spare && !b->is_leaving)
			return b;
	return NULL;
}

struct box *fleet_leaving(const struct fleet *f, const char *team, const char *id_or_name)
{
	for (struct box *b = fleet_next(f, NULL); b; b = fleet_next(f, b))
		if (b->is_leaving && !strcmp(b->row.team, team) &&
		    (!strcmp(b->row.id, id_or_name) ||
		     (*id_or_name && !strcmp(b->row.name, id_or_name))))
			return b;
	return NULL;
}

static int is_of_session(const struct box *b, const char *team, const char *session,
			 const char *template)
{
	return !strcmp(b->row.session, session) && !strcmp(b->row.team, team) &&
	       !strcmp(b->row.template, template) && b->state < BOX_ENDING && !b->is_leaving;
}

struct box *fleet_session(const struct fleet *f, const char *team, const char *session,
			  const char *template)
{
	for (struct box *b = f->making; b; b = b->next)
		if (is_of_session(b, team, session, template))
			return b;
	for (struct box *b = fleet_next(f, NULL); b; b = fleet_next(f, b))
		if (is_of_session(b, team, session, template))
			return b;
	return NULL;
}

uint32_t fleet_zygote_group(const char *team)
{
	struct sha256 s;
	uint8_t digest[SHA256_BYTES];
	uint32_t group;

	sha256_init(&s);
	sha256_add(&s, team, strlen(team));
	sha256_end(&s, digest);
	memcpy(&group, digest, sizeof(group));
	return group ? group : 1;
}

unsigned fleet_team_boxes(const struct fleet *f, const char *team)
{
	unsigned n = 0;

	for (struct box *b = fleet_next(f, NULL); b; b = fleet_next(f, b))
		n += !b->is_spare && !strcmp(b->row.team, team);
	for (const struct box *b = f->making; b; b = b->next)
		n += !b->is_spare && !strcmp(b->row.team, team);
	return n;
}

/* ---- events ---- */

void fleet_write(struct fleet *f, const char *team, const char *box, const char *type,
		 json_t *take_data, struct fleet_event *out)
{
	struct store_event *ev = &out->ev;
	struct err e;

	*out = (struct fleet_event){ .ev.at_ns = fleet_now_ns(), .data = take_data };
	run_writer_flush(&f->run_writer); /* earlier ends of execs are published before
					   * this event */
	snprintf(ev->team, sizeof(ev->team), "%s", team);
	snprintf(ev->box, sizeof(ev->box), "%s", box);
	snprintf(ev->type, sizeof(ev->type), "%s", type);
	ev->data = take_data ? json_dumps(take_data, JSON_COMPACT) : NULL;
	/* An event that cannot be stored is no failure: subscribers receive it, other clients read
	 * the state of boxes. */
	if (store_event_add(f->store, ev, &e) < 0)
		ev->seq = 0;
}

void fleet_publish(struct fleet *f, struct fleet_event *take_news)
{
	for (struct fleet_subscriber *x = f->subscribers, *next; x; x = next) {
		next = x->next;
		x->on_event(x, &take_news->ev, take_news->data);
	}
	fleet_event_drop(take_news);
}

void fleet_event_drop(struct fleet_event *take_news)
{
	free(take_news->ev.data);
	json_decref(take_news->data);
	*take_news = (struct fleet_event){ 0 };
}

void fleet_emit(struct fleet *f, const char *team, const char *box, const char *type,
		json_t *take_data)
{
	struct fleet_event news;

	fleet_write(f, team, box, type, take_data, &news);
	fleet_publish(f, &news);
}

void fleet_subscribe(struct fleet *f, struct fleet_subscriber *x)
{
	x->next = f->subscribers;
	f->subscribers = x;
}

void fleet_unsubscribe(struct fleet *f, struct fleet_subscriber *x)
{
	for (struct fleet_subscriber **at = &f->subscribers; *at; at = &(*at)->next)
		if (*at == x) {
			*at = x->next;
			return;
		}
}

/* ---- after a restart ---- */

/* Ends execs whose boxes no longer exist: their end was not observed. */
static void bury_runs(struct fleet *f)
{
	struct store_runs rows = { 0 };
	struct err e;

	run_writer_flush(&f->run_writer);
	if (store_run_running(f->store, NULL, &rows, &e) < 0)
		return;
	for (unsigned i = 0; i < rows.n; i++) {
		struct store_run *r = &rows.v[i];
		struct box *b = fleet_find(f, r->box);

		if (b)
			continue;
		r->ended_ns = fleet_now_ns();
		r->status = 125;
		snprintf(r->cause, sizeof(r->cause), "%s", cause_name(CAUSE_HOST));
		(void)!run_end_write(f, r, NULL, &(struct run_facts){ 0 }, &e);
	}
	store_runs_fini(&rows);
}

/* Restores all boxes whose rows are not in the table yet. */
static int take_rows(struct fleet *f, struct err *e)
{
	struct store_boxes rows = { 0 };

	if (store_box_live(f->store, &rows, e) < 0)
		return err_in(e, "restore boxes");
	for (unsigned i = 0; i < rows.n; i++)
		if (fleet_find(f, rows.v[i].id))
			store_box_fini(&rows.v[i]);
		else
			/* The texts of the row belong to the box now. */
			box_restore(f, &rows.v[i], NULL);
	free(rows.v);
	return 0;
}

static void keeper_answers(void *ctx, const struct frame *f, size_t len, int *fd,
			   const struct err *e)
{
	struct fleet *fl = ctx;

	(void)f;
	(void)len;
	(void)fd;
	(void)e;
	timer_set(&fl->patience, PATIENCE_MS);
	fleet_restored(fl);
}

int fleet_restore(struct fleet *f, struct err *e)
{
	static const struct frame ask = { .type = WIRE_INFO };

	/* The keeper is waited for in any case: without it no request can be served. */
	fleet_check_clock(f);
	f->restoring = 1;
	keeper_client_request(&f->keeper, &ask, sizeof(ask), WIRE_INFO_REPLY, keeper_answers, f);
	/* Rows of a machine that had boxes before it became a gateway stay as they are. */
	if (f->keeper.refusal)
		return 0;
	if (take_rows(f, e) < 0)
		return -1;
	bury_runs(f);
	box_replace_sweep(f);
	return 0;
}

void fleet_set_sole_server(struct fleet *f, int alone)
{
	struct err e;

	f->alone = alone;
	if (!alone || f->keeper.refusal)
		return;
	for (struct box *b = fleet_next(f, NULL), *next; b; b = next) {
		next = fleet_next(f, b);
		for (struct exec *r = b->runs; r; r = r->next)
			exec_input_doubt(r); /* the other server may have sent input */
		box_resync(b);
	}
	(void)!take_rows(f, &e); /* on failure, boxes are adopted when a request names them */
	bury_runs(f);
	egress_client_sweep(&f->egress_client);
}

void fleet_fini(struct fleet *f)
{
	history_fini(&f->history);
	isolation_fini(f);
	run_writer_fini(&f->run_writer);
	timer_fini(&f->patience);
	fleet_call_hooks(f, fleet_fini, f);
	while (f->making)
		box_free(f->making);
	for (unsigned i = 0; i < FLEET_SLOTS; i++)
		while (f->slots[i])
			box_free(f->slots[i]);
	keeper_client_fini(&f->keeper);
	egress_client_fini(&f->egress_client);
	fleet_free_teams(f);
}

uint64_t fleet_keep_ms(const struct fleet *f, const char *team, enum fleet_keep what,
		       uint64_t otherwise_ms)
{
	const struct fleet_accounts *a = &f->accounts;

	return a->keep_ms ? a->keep_ms(a->ctx, team, what, otherwise_ms) : otherwise_ms;
}
