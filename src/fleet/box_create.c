/* box_create.c - creates a box.
 *
 *   server                     keeper                 init
 *   CREATE               --->  builds one or takes one from the pool
 *                        <---  BOX + a connection
 *   row into the store                                (would end with the connection: not claimed)
 *   FORGET (nothing)     ------------------------->   claimed: it no longer ends with this connection
 *
 * The row is written before the first frame is sent to the box. A server that dies before that
 * leaves a box that ends by itself; one that dies after it leaves a row with the id of the box. */
#include "fleet/box_internal.h"
#include "fleet/bounds.h"
#include "fleet/box_secrets.h"
#include "fleet/exec.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "store/volumes.h"
#include "wire/sock.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static struct store_limits row_limits(const struct wire_limits *l)
{
	return (struct store_limits){ .mem_bytes = l->mem_bytes,
				      .disk_bytes = l->disk_bytes,
				      .disk_files = l->disk_files,
				      .cpu_ms = l->cpu_ms,
				      .cpu_milli = l->cpu_milli,
				      .pids = l->pids };
}

void box_take_box(struct box *b, const struct wire_box *box)
{
	b->about = *box;
	b->about.id[sizeof(b->about.id) - 1] = 0;
	b->row.layers = box->layers;
	b->row.limits = row_limits(&box->limits);
}

int box_open_conn(struct box *b, int take_fd, struct err *e)
{
	b->line.on_gone = box_conn_lost;
	b->line.user = b;
	if (init_conn_open(&b->line, b->fleet->loop, take_fd, b->row.id, e) < 0)
		return -1;
	b->line.post.watch.budget = fleet_budget(b->fleet, b->row.team);
	b->active_ms = loop_now_ms();
	return 0;
}

static const struct init_call_ops ignored = { 0 };

/* Sends the first frame: from here on the box does not end with this connection. The frame requests
 * nothing and gets no answer. */
void box_claim(struct box *b)
{
	init_conn_request(&b->line, &b->look, &ignored, WIRE_FORGET, 0);
	init_conn_remove_call(&b->look);
}

void box_send_lease(struct box *b)
{
	uint64_t ms = fleet_lease_left_ms(b->fleet);

	if (ms && b->row.on_loss != STORE_LOSS_KEEP && b->because == CAUSE_EXIT &&
	    init_conn_is_open(&b->line))
		init_conn_lease(&b->line, ms < UINT32_MAX ? (uint32_t)ms : UINT32_MAX);
}

/* Before the first program. If the lease has ended meanwhile, the box waits for the next one. */
static void create_arm_lease(struct box *b)
{
	if (b->row.on_loss != STORE_LOSS_KEEP && fleet_lease_left_ms(b->fleet) == 0)
		init_conn_lease(&b->line, 0);
	box_send_lease(b);
}

uint64_t fleet_lease_left_ms(const struct fleet *f)
{
	uint64_t now = loop_now_ms();

	return f->lease.until_ms > now ? f->lease.until_ms - now : 0;
}

/* Records the volumes of the box in the store, also for the time after a restart. */
static int create_attach(const struct box *b, struct err *e)
{
	struct store_attachment a[WIRE_MOUNTS] = { 0 };

	for (unsigned i = 0; i < b->nmounts; i++) {
		snprintf(a[i].volume, sizeof(a[i].volume), "%.*s", ID_MAX, b->mounts[i].id);
		snprintf(a[i].box, sizeof(a[i].box), "%s", b->row.id);
		snprintf(a[i].path, sizeof(a[i].path), "%s", b->mounts[i].path);
		a[i].writable = !(b->mounts[i].flags & WIRE_MOUNT_RO);
	}
	return b->nmounts ? store_volume_attach(b->fleet->store, a, b->nmounts, e) : 0;
}

static int write_rows(struct box *b, struct err *e)
{
	struct store *s = b->fleet->store;

	for (struct box_wait *w = b->made; w; w = w->next)
		if (w->named && w->named(w, b->row.id, e) < 0)
			return -1;
	if (b->row.keeper[0] && store_box_forget(s, b->row.id, e) < 0)
		return -1;
	return store_box_insert(s, &b->row, e) < 0 ? -1 : create_attach(b, e);
}

/* Writes the row, the additions of the caller (named()) and the event in one transaction, because a
 * transaction costs as much as the rest of a create. */
static int write_row(struct box *b, struct err *e)
{
	struct store *s = b->fleet->store;
	struct fleet_event news;

	if (store_begin(s, e) < 0)
		return -1;
	if (write_rows(b, e) < 0)
		return store_rollback(s);
	fleet_write(b->fleet, b->row.team, b->row.id, "box.created",
		    json_pack("{s:s}", "template", b->row.template), &news);
	if (store_commit(s, e) < 0) {
		fleet_event_drop(&news);
		return -1;
	}
	fleet_publish(b->fleet, &news);
	return 0;
}

static int create_settle(struct box *b, const struct wire_box *box, int take_fd, struct err *e)
{
	auto_fd int fd = take_fd;

	if (b->row.on_loss != STORE_LOSS_KEEP && !isolation_can_stop_all((uint16_t)box->tier))
		return err_set(
			e, ERR_INVALID,
			"on_loss: boxes of the tier process cannot be stopped when their node is "
			"lost; choose another tier");
	box_take_box(b, box);
	isolation_add_inner(&b->row.isolation, box->inner);
	snprintf(b->row.id[0] ? b->row.keeper : b->row.id, sizeof(b->row.id), "%.*s", ID_MAX,
		 b->about.id);
	b->row.state = STORE_BOX_RUNNING;
	b->row.started_ns = fleet_now_ns();
	if (!b->row.keeper[0])
		b->row.created_ns = b->row.started_ns;
	if (b->row.lifetime_ms)
		b->row.ends_ns = b->row.started_ns + (int64_t)b->row.lifetime_ms * 1000000;
	if (write_row(b, e) < 0)
		return -1; /* closing the unclaimed connection ends the box */
	return box_open_conn(b, steal_fd(&fd), e);
}

static void count_template(struct fleet_figures *f, const char *name)
{
	unsigned i = 0;

	while (i < FLEET_TEMPLATES - 1 && f->templates[i].name[0] &&
	       strcmp(f->templates[i].name, name) != 0)
		i++;
	if (!f->templates[i].name[0])
		snprintf(f->templates[i].name, sizeof(f->templates[i].name), "%s",
			 i < FLEET_TEMPLATES - 1 ? name : "other");
	f->templates[i].created++;
}

/* A box that is older than the request for it waited in the pool. */
static enum fleet_start create_start_kind(const struct box *b)
{
	return b->about.created_ns >= b->asked_real_ns ? FLEET_COLD
	       : b->about.warm                         ? FLEET_WARM
						       : FLEET_POOLED;
}

static void create_count_start(struct box *b)
{
	struct fleet_figures *f = &b->fleet->figures;
	uint64_t us = (now_ns() - b->asked_ns) / 1000;

	fleet_observe(&f->create, us);
	fleet_observe(&f->starts[create_start_kind(b)], us);
}

static void create_trace_part(const struct box *b, const char *name, int64_t from_ns, int64_t to_ns)
{
	struct trace_context part;

	trace_child(&part, &b->trace);
	trace_add(&part, name, TRACE_INTERNAL, from_ns, to_ns);
}

static void create_trace(const struct box *b, int failed)
{
	static const char *const starts[FLEET_STARTS] = { "cold", "pooled", "warm" };
	int64_t began_ns = (int64_t)b->asked_real_ns, now = trace_now_ns();
	struct trace_span *s;

	if (!b->trace.is_recorded)
		return;
	s = trace_add(&b->trace, "box create", TRACE_INTERNAL, began_ns, now);
	trace_text(s, "atoll.team", b->row.team);
	trace_text(s, "atoll.template", b->row.template);
	if (failed)
		trace_failed(s);
	if (!b->made_ns)
		return;
	trace_text(s, "atoll.box", b->row.id);
	trace_text(s, "atoll.start", starts[create_start_kind(b)]);
	create_trace_part(b, "box create: keeper", began_ns, b->made_ns);
	if (b->stored_ns)
		create_trace_part(b, "box create: row", b->made_ns, b->stored_ns);
	if (b->network_ns) {
		create_trace_part(b, "box create: network", b->stored_ns, b->network_ns);
		create_trace_part(b, "box create: secrets", b->network_ns, now);
	}
}

static void never_made(struct box *b, const struct err *e)
{
	b->fleet->figures.create_failed++;
	create_trace(b, 1);
	box_notify(&b->made, b, e);
	box_notify(&b->ended, b, e);
	box_free(b);
}

static const char *create_text(const json_t *doc, const char *name)
{
	const char *v = json_string_value(json_object_get(doc, name));

	return v ? v : "";
}

/* The start command of its template: an exec like any other, which its clients see. */
void box_run_start(struct box *b)
{
	json_t *root = b->row.root ? json_loads(b->row.root, 0, NULL) : NULL;
	const char *argv[] = { "/bin/sh", "-c", create_text(root, "start"), NULL };
	struct exec_spec want = { .argv = argv, .kind = STORE_RUN_EXEC, .tag = "start" };
	struct exec *r;
	struct err e;

	if (argv[2][0] && exec_launch(b, &want, NULL, &r, &e) < 0)
		log_warn("cannot run the start command of a template", LOG_S("box", b->row.id),
			 LOG_E(&e));
	json_decref(root);
}

static void create_placed(struct box *b, const struct err *e)
{
	create_trace(b, e != NULL);
	if (e)
		box_end(b, CAUSE_HOST, NULL);
	else if (!b->continues_programs)
		box_run_start(b);
	box_notify(&b->made, b, e);
}

static void create_finish(struct box *b)
{
	if (b->trace.is_recorded)
		b->network_ns = trace_now_ns();
	if (!box_secrets_place(b, create_placed))
		create_placed(b, NULL);
}

static void on_made(void *ctx, const struct frame *f, size_t len, int *fd, const struct err *e)
{
	struct box *b = ctx;
	struct fleet *fl = b->fleet;
	struct err own;

	(void)len;
	b->asking = NULL;
	if (!f) {
		/* Its engine may have changed: then the facts, on which the choice was based, are old. */
		if (e->kind == ERR_CONFLICT && b->row.isolation)
			isolation_outdated(fl);
		never_made(b, e);
		return;
	}
	if (*fd < 0) {
		err_set(&own, ERR_SYS, "keeper: a box without a connection to it");
		never_made(b, &own);
		return;
	}
	if (b->trace.is_recorded)
		b->made_ns = trace_now_ns();
	if (create_settle(b, (const struct wire_box *)f, steal_fd(fd), &own) < 0) {
		never_made(b, &own);
		return;
	}
	if (b->trace.is_recorded)
		b->stored_ns = trace_now_ns();
	box_leave(b); /* the list of boxes being created */
	box_enter(b);
	box_claim(b);
	create_arm_lease(b);
	box_set_state(b, BOX_RUNNING);
	egress_client_open(b);
	b->create_us = b->about.make_us;
	fl->figures.created++;
	count_template(&fl->figures, b->row.template);
	create_count_start(b);
	box_set_clock(b);
	if (b->because != CAUSE_EXIT) { /* its end was requested in the meantime */
		enum cause because = b->because;

		b->because = CAUSE_EXIT;
		box_end(b, because, NULL);
		return;
	}
	/* A program may connect as soon as it starts. */
	if (!egress_client_await(b, create_finish))
		create_finish(b);
}

static char *create_copy(const char *s)
{
	char *c = s ? strdup(s) : NULL;

	if (s && !c)
		abort();
	return c;
}

_Static_assert((int)STORE_CHAIN == WIRE_CHAIN && ID_MAX + 1 == WIRE_ID, "ids of CREATE");

int box_is_marked(const struct store_box *row, const char *word)
{
	char quoted[32];

	snprintf(quoted, sizeof(quoted), "\"%s\":", word);
	return row->metadata && strstr(row->metadata, quoted);
}

char *box_metadata_with(const char *metadata, const char *key, const char *value)
{
	json_t *all = metadata ? json_loads(metadata, 0, NULL) : NULL;
	char *text;

	if (!all)
		all = json_object();
	json_object_set_new(all, key, json_string(value));
	text = json_dumps(all, JSON_COMPACT);
	json_decref(all);
	if (!text)
		abort();
	return text;
}

char *box_metadata_without(const char *metadata, const char *key)
{
	json_t *all = metadata ? json_loads(metadata, 0, NULL) : NULL;
	char *text = NULL;

	json_object_del(all, key);
	if (json_object_size(all) && !(text = json_dumps(all, JSON_COMPACT)))
		abort();
	json_decref(all);
	return text;
}

static void create_read_root(struct box *b)
{
	json_t *root = b->row.root ? json_loads(b->row.root, 0, NULL) : NULL;

	b->user = (struct box_user){ .set = json_object_get(root, "uid") != NULL };
	b->user.uid = (uint16_t)json_integer_value(json_object_get(root, "uid"));
	b->user.gid = (uint16_t)json_integer_value(json_object_get(root, "gid"));
	snprintf(b->user.name, sizeof(b->user.name), "%s", create_text(root, "user"));
	snprintf(b->user.home, sizeof(b->user.home), "%s", create_text(root, "home"));
	snprintf(b->user.workdir, sizeof(b->user.workdir), "%s", create_text(root, "workdir"));
	json_decref(root);
}

void box_read_marks(struct box *b)
{
	const char *marks = b->row.metadata ? b->row.metadata : "";
	int once = box_is_marked(&b->row, BOX_EPHEMERAL);

	create_read_root(b);
	b->is_spare = box_is_marked(&b->row, BOX_SPARE) || box_is_marked(&b->row, BOX_RESTART);
	b->is_leaving = box_is_marked(&b->row, BOX_LEAVING);
	b->is_installer = box_is_marked(&b->row, BOX_INSTALL);
	b->registries = b->fleet->conf.registries && !b->is_installer &&
			(once ? strstr(marks, "\"" BOX_REGISTRIES "\":\"1\"") != NULL
			      : strstr(marks, "\"" BOX_REGISTRIES "\":\"0\"") == NULL);
}

int box_set_metadata(struct box *b, char *take_metadata, struct err *e)
{
	char *before = b->row.metadata;

	b->row.metadata = take_metadata;
	if (box_changed(b, e) < 0) {
		free(b->row.metadata);
		b->row.metadata = before;
		return -1;
	}
	free(before);
	box_read_marks(b);
	return 0;
}

static void *copy_of(const void *v, size_t n)
{
	void *c = n ? malloc(n) : NULL;

	if (n && !c)
		abort();
	return n ? memcpy(c, v, n) : NULL;
}

/* Flags of CREATE that another box with the same files needs, too. */
enum { MADE_FLAGS = WIRE_CREATE_SECRETS | WIRE_CREATE_HOST_WRITABLE };

/* row.made; NULL: there is nothing to remember. */
static char *create_made(const struct box_spec *want)
{
	json_t *doc, *layers;
	char *text;

	if (!want->nlayers && !(want->flags & MADE_FLAGS))
		return NULL;
	layers = json_array();
	for (unsigned i = 0; i < want->nlayers; i++)
		json_array_append_new(layers, json_string(want->layers[i]));
	doc = json_pack("{s:i, s:o}", "flags", want->flags & MADE_FLAGS, "layers", layers);
	text = json_dumps(doc, JSON_COMPACT);
	json_decref(doc);
	if (!text)
		abort();
	return text;
}

uint16_t box_made_flags(const struct store_box *row)
{
	json_t *made = row->made ? json_loads(row->made, 0, NULL) : NULL;
	json_int_t flags = json_integer_value(json_object_get(made, "flags"));

	json_decref(made);
	return (uint16_t)(flags & MADE_FLAGS);
}

int box_read_made(const struct store_box *row, struct box_spec *out, struct err *e)
{
	json_t *made = row->made ? json_loads(row->made, 0, NULL) : NULL, *one,
	       *root = row->root ? json_loads(row->root, 0, NULL) : NULL;
	int unknown = json_is_true(json_object_get(made, "unknown"));
	size_t i;

	out->flags = (uint16_t)(json_integer_value(json_object_get(made, "flags")) & MADE_FLAGS);
	out->nlayers = 0;
	json_array_foreach(json_object_get(made, "layers"), i, one) if (out->nlayers < WIRE_LAYERS)
		snprintf(out->layers[out->nlayers++], WIRE_LAYER_ID, "%s", json_string_value(one));
	snprintf(out->root, sizeof(out->root), "%s", create_text(root, "id"));
	json_decref(made);
	json_decref(root);
	return unknown ? err_set(e, ERR_CONFLICT,
				 "box %s was created by an earlier version of Atoll, which did not "
				 "store its packages; create a new box",
				 row->id)
		       : 0;
}

/* Copies the parameters that are needed when the keeper has answered. */
static void create_remember(struct box *b, const struct box_spec *want)
{
	b->row = want->row;
	b->row.metadata = create_copy(want->row.metadata);
	b->row.env = create_copy(want->row.env);
	b->row.volumes = create_copy(want->row.volumes);
	b->row.network = create_copy(want->row.network);
	b->row.surface = create_copy(want->row.surface);
	b->row.secrets = create_copy(want->row.secrets);
	b->row.root = create_copy(want->row.root);
	b->row.isolation = NULL; /* the caller sets it */
	b->row.checkpoints = create_copy(want->row.checkpoints);
	b->row.made = create_made(want);
	snprintf(b->row.id, sizeof(b->row.id), "%s", want->id ? want->id : "");
	b->row.keeper[0] = 0;
	b->row.generation = 1;
	b->continues_programs = want->continues_programs;
	memcpy(b->row.head, b->row.origin, sizeof(b->row.head));
	snprintf(b->row.boot, sizeof(b->row.boot), "%s", b->fleet->boot);
	box_read_marks(b);
	b->nmounts = want->nmounts;
	b->mounts = copy_of(want->mounts, want->nmounts * sizeof(want->mounts[0]));
	b->is_known = b->is_charged = b->charged.known = 1;
	b->nlayers = want->nlayers;
	b->layers = copy_of(want->layers, want->nlayers * sizeof(want->layers[0]));
	b->asked_ms = loop_now_ms();
	b->asked_ns = now_ns();
	b->asked_real_ns = clock_ns(CLOCK_REALTIME);
	trace_child(&b->trace, trace_current());
}

void box_fill_create(const struct box_spec *want, const struct isolation_choice *tier,
		     struct wire_create *out)
{
	const char *warm = tier->no_zygote ? NULL : want->warm;

	*out = (struct wire_create){ .head = sock_head(WIRE_CREATE, 0), .limits = want->limits };
	out->head.flags = want->flags | tier->flags;
	snprintf(out->warm, sizeof(out->warm), "%s", warm ? warm : "");
	if (warm)
		out->warm_group = fleet_zygote_group(want->row.team);
	out->nmounts = want->nmounts;
	memcpy(out->mounts, want->mounts, want->nmounts * sizeof(want->mounts[0]));
	out->nlayers = want->nlayers;
	memcpy(out->layer, want->layers, sizeof(out->layer));
	memcpy(out->root, want->root, sizeof(out->root));
	out->nchain = want->nchain;
	for (unsigned i = 0; i < want->nchain; i++)
		memcpy(out->chain[i], want->chain[i], sizeof(want->chain[i]));
	snprintf(out->template, sizeof(out->template), "%s", "base");
}

static void ask_keeper(struct box *b, const struct box_spec *want,
		       const struct isolation_choice *tier)
{
	struct wire_create ask;

	box_fill_create(want, tier, &ask);
	b->asking =
		keeper_client_request(&b->fleet->keeper, &ask, sizeof(ask), WIRE_BOX, on_made, b);
}

/* What the box needs of its tier, besides what its template declares. */
static uint64_t create_needs(const struct box_spec *want)
{
	uint64_t needs = want->isolation.needs;

	for (unsigned i = 0; i < want->nmounts; i++)
		needs |= UINT64_C(1)
			 << (want->mounts[i].flags & WIRE_MOUNT_RO ? WIRE_NEED_VOLUME
								   : WIRE_NEED_VOLUME_WRITABLE);
	if (want->nlayers)
		needs |= UINT64_C(1) << WIRE_NEED_LAYERS;
	if (want->nchain) /* layers, and checkpoints of it are read from its writable layer */
		needs |= UINT64_C(1) << WIRE_NEED_LAYERS | UINT64_C(1) << WIRE_NEED_UPPER;
	if (want->root[0])
		needs |= UINT64_C(1) << WIRE_NEED_ROOT;
	if (want->flags & WIRE_CREATE_SECRETS)
		needs |= UINT64_C(1) << WIRE_NEED_SECRETS;
	if (want->flags & WIRE_CREATE_HOST_WRITABLE)
		needs |= UINT64_C(1) << WIRE_NEED_HOST_WRITABLE;
	if (box_is_marked(&want->row, BOX_INSTALL)) /* its result is read from its writable layer */
		needs |= UINT64_C(1) << WIRE_NEED_UPPER;
	return needs;
}

struct isolation_ask box_isolation(const struct box_spec *want)
{
	struct isolation_ask a = { .team = want->row.team,
				   .key = want->row.key,
				   .root = want->row.root,
				   .is_own = want->is_own,
				   .request = want->isolation };

	a.request.needs = create_needs(want);
	a.request.mem_bytes = want->limits.mem_bytes == WIRE_DEFAULT ? 0 : want->limits.mem_bytes;
	return a;
}

static unsigned boxes_at_once(const struct fleet *f)
{
	unsigned n = f->count;

	for (const struct box *b = f->making; b; b = b->next)
		n++;
	return n;
}

int box_create(struct fleet *f, const struct box_spec *want, struct box_wait *w, struct box **out,
	       struct err *e)
{
	struct isolation_ask ask = box_isolation(want);
	struct isolation_choice tier;
	struct box *b;

	if (bounds_check(&f->conf.most, &want->limits, e) < 0)
		return -1;
	if (!want->continues && fleet_check_accepts(f, e) < 0)
		return -1;
	if (f->conf.boxes_most && boxes_at_once(f) >= f->conf.boxes_most) {
		err_set(e, ERR_LIMIT,
			"this machine already has %u boxes, the maximum (limits.max_boxes)",
			f->conf.boxes_most);
		e->sys = EUSERS;
		return -1;
	}
	if (want->id && fleet_find(f, want->id))
		return err_set(e, ERR_CONFLICT, "there is a box %s already", want->id);
	if (want->row.name[0] && fleet_named(f, want->row.team, want->row.name))
		return err_set(e, ERR_CONFLICT, "there is a box named '%.64s' already",
			       want->row.name);
	if (isolation_choose(f, &ask, 1, &tier, e) < 0)
		return -1;
	b = box_new(f);
	create_remember(b, want);
	b->row.isolation = tier.text;
	b->next = f->making;
	f->making = b;
	box_wait_for(b, &b->made, w);
	ask_keeper(b, want, &tier);
	*out = b;
	return 0;
}
