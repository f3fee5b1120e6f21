/* packages.c - see packages.h. */
#include "packages/packages.h"
#include "fleet/bounds.h"
#include "base/log.h"
#include "base/cleanup.h"
#include "fleet/exec_reader.h"
#include "store/packages.h"
#include "store/teams.h"
#include "store/volumes.h"
#include "wire/sock.h"

#include <stdio.h>
#include <string.h>

enum {
	SAID_KEPT = 16 * 1024,   /* bytes of the output of a manager, for the diagnosis */
	SAID_TOLD = 1024 * 1024, /* progress interval for waiting callers */
	INSTALLS_MOST = 8,
	LIFETIME_EXTRA_MS = 120 * 1000, /* limit for copying the files out */
	FILES_MOST = 200 * 1000,
	WAY_TRIES = 200,
	WAY_WAIT_MS = 25,
};
#define DISK_BYTES (UINT64_C(4) << 30)

struct install {
	struct install *next;
	struct fleet *fleet;
	struct packages set;
	struct install_plan plan;
	char key[STORE_HASH + 1];
	char box[ID_MAX + 1];
	unsigned at;                    /* step */
	char trusted[300], source[512]; /* of env */
	const char *env[12 + INSTALL_ENV];
	struct box_wait made;
	struct timer way; /* limit for the egress endpoint */
	unsigned tries;
	struct exec_reader reader;
	int tapped;
	struct keeper_call *asking;
	struct buf said;
	uint64_t told;
	uint64_t began_ms;
	struct packages_wait *waiters;
};

/* ---- the end of one ---- */

static void install_free(struct install *in)
{
	struct install **at = &in->fleet->installs;
	struct box *b = in->box[0] ? fleet_find(in->fleet, in->box) : NULL;

	while (*at && *at != in)
		at = &(*at)->next;
	if (*at)
		*at = in->next;
	if (in->tapped)
		exec_reader_close(&in->reader);
	box_wait_cancel(&in->made);
	timer_fini(&in->way);
	keeper_client_cancel(&in->fleet->keeper, in->asking);
	if (b)
		box_end(b, CAUSE_EXIT, NULL);
	packages_fini(&in->set);
	buf_fini(&in->said);
	free(in);
}

static void packages_tell(struct install *in, const char *layer, const struct packages_failure *f)
{
	uint64_t ms = loop_now_ms() - in->began_ms;

	in->fleet->figures.installs[in->set.manager][layer != NULL]++;
	fleet_observe(&in->fleet->figures.install, ms * 1000);
	while (in->waiters) {
		struct packages_wait *w = in->waiters;

		in->waiters = w->next;
		w->install = NULL;
		w->done(w, layer, ms, f);
	}
}

static json_t *packages_event(const struct install *in)
{
	auto_buf struct buf text = { 0 };

	packages_text(&in->set, &text);
	return json_pack("{s:s, s:s, s:s, s:I}", "manager", package_manager_name(in->set.manager),
			 "packages", buf_str(&text), "set", in->key, "ms",
			 (json_int_t)(loop_now_ms() - in->began_ms));
}

static void packages_fail(struct install *in, struct packages_failure *f)
{
	json_t *doc = packages_event(in);

	f->said = buf_str(&in->said);
	if (f->d.fault == INSTALL_NO_PACKAGE && f->d.package[0])
		f->nnear = package_near(in->set.manager, f->d.package, f->near, ARRAY_LEN(f->near));
	json_object_set_new(doc, "category", json_string(install_fault_name(f->d.fault)));
	fleet_emit(in->fleet, TEAM_DEFAULT, in->box, "packages.failed", doc);
	packages_tell(in, NULL, f);
	install_free(in);
}

/* An internal failure, not one of the packages. */
static void fail_err(struct install *in, const struct err *e)
{
	struct packages_failure f = { .d.fault = e->kind == ERR_LIMIT ? INSTALL_TOO_LARGE
								      : INSTALL_UNKNOWN };

	snprintf(f.message, sizeof(f.message), "%s", e->msg);
	packages_fail(in, &f);
}

/* ---- from a folder to a layer ---- */

static int write_row(struct install *in, const struct wire_layer *l, struct err *e)
{
	auto_buf struct buf text = { 0 };
	struct store_set row = { .bytes = l->bytes,
				 .files = l->files,
				 .install_ms = loop_now_ms() - in->began_ms,
				 .created_ns = fleet_now_ns() };
	int done;

	packages_text(&in->set, &text);
	memcpy(row.key, in->key, sizeof(row.key));
	snprintf(row.manager, sizeof(row.manager), "%s", package_manager_name(in->set.manager));
	snprintf(row.runtime, sizeof(row.runtime), "%s",
		 in->fleet->conf.packages.install.runtime[in->set.manager]);
	snprintf(row.layer, sizeof(row.layer), "%.64s", l->id);
	row.packages = buf_steal(&text);
	done = store_set_put(in->fleet->store, &row, e);
	store_set_fini(&row);
	return done;
}

static void packages_layered(void *ctx, const struct frame *f, size_t len, int *fd,
			     const struct err *e)
{
	struct install *in = ctx;
	struct fleet *fl = in->fleet;
	char layer[STORE_HASH + 1];
	json_t *doc;
	struct err own;

	(void)len;
	(void)fd;
	in->asking = NULL;
	if (!f) {
		fail_err(in, e);
		return;
	}
	if (write_row(in, (const struct wire_layer *)f, &own) < 0) {
		fail_err(in, &own);
		return;
	}
	snprintf(layer, sizeof(layer), "%.64s", ((const struct wire_layer *)f)->id);
	doc = packages_event(in);
	json_object_set_new(doc, "layer", json_string(layer));
	json_object_set_new(doc, "bytes",
			    json_integer((json_int_t)((const struct wire_layer *)f)->bytes));
	fleet_emit(fl, TEAM_DEFAULT, in->box, "packages.installed", doc);
	packages_tell(in, layer, NULL);
	install_free(in);
	packages_collect(fl);
}

static void carry_out(struct install *in)
{
	struct wire_layer_make ask = { .head.type = WIRE_LAYER_MAKE,
				       .bytes_most = DISK_BYTES,
				       .files_most = FILES_MOST };

	snprintf(ask.box, sizeof(ask.box), "%s", in->box);
	snprintf(ask.path, sizeof(ask.path), "%s", in->plan.from);
	snprintf(ask.place, sizeof(ask.place), "%s", in->plan.place);
	in->asking = keeper_client_request(&in->fleet->keeper, &ask, sizeof(ask), WIRE_LAYER,
					   packages_layered, in);
}

/* ---- the manager ---- */

static void next_step(struct install *in);

static void keep_said(struct install *in, const char *bytes, size_t n)
{
	buf_add(&in->said, bytes, n);
	if (in->said.len > 2 * SAID_KEPT) {
		memmove(in->said.p, in->said.p + in->said.len - SAID_KEPT, SAID_KEPT);
		buf_cut(&in->said, SAID_KEPT);
	}
}

static void packages_output(struct exec_reader *t, unsigned stream, uint64_t offset,
			    const char *bytes, size_t n)
{
	struct install *in = loop_owner(t, struct install, reader);

	(void)offset;
	keep_said(in, bytes, n);
	if (in->told + n > SAID_TOLD)
		return;
	in->told += n;
	for (struct packages_wait *w = in->waiters, *next; w; w = next) {
		next = w->next;
		if (w->said)
			w->said(w, stream, bytes, n);
	}
}

/* A manager that gets an error from the proxy often reports only that the package does not exist.
 * The egress report shows whether a connection failed. */
static int was_cut_off(const struct install *in, char *why, size_t size)
{
	const struct box *b = fleet_find(in->fleet, in->box);
	json_t *all = b && egress_client_wanted(b) ? egress_client_json(b) : NULL;
	const json_t *one;
	size_t i;
	int cut = 0;

	json_array_foreach(json_object_get(all, "recent"), i, one)
	{
		const char *verdict = json_string_value(json_object_get(one, "verdict")),
			   *told = json_string_value(json_object_get(one, "why"));

		if (!verdict || !strcmp(verdict, "ok") || !strcmp(verdict, "cut"))
			continue;
		snprintf(why, size, "%.200s", told ? told : verdict);
		cut = 1;
	}
	json_decref(all);
	return cut;
}

static void packages_explain(struct install *in, const json_t *record, struct packages_failure *f)
{
	const char *cause = json_string_value(json_object_get(record, "cause")),
		   *summary = json_string_value(json_object_get(record, "summary")),
		   *name = package_manager_name(in->set.manager), *said = buf_str(&in->said);
	size_t n = in->said.len;
	unsigned timeout_s = (unsigned)(in->fleet->conf.packages.timeout_ms / 1000);

	install_diagnose(in->set.manager, said, n, &f->d);
	if (f->d.fault == INSTALL_UNKNOWN && summary) { /* not executed, or killed */
		said = summary;
		n = strlen(summary);
		install_diagnose(in->set.manager, said, n, &f->d);
	}
	if (f->d.fault != INSTALL_BUILD && f->d.fault != INSTALL_NO_VERSION &&
	    was_cut_off(in, f->d.line, sizeof(f->d.line)))
		f->d.fault = INSTALL_UNREACHABLE;
	if (cause && !strcmp(cause, cause_name(CAUSE_WALL))) {
		f->d.fault = INSTALL_TIMEOUT;
		snprintf(f->message, sizeof(f->message),
			 "install: %s took longer than %u s (packages.timeout)", name, timeout_s);
	} else if (cause && !strcmp(cause, cause_name(CAUSE_DISK))) {
		f->d.fault = INSTALL_TOO_LARGE;
		snprintf(f->message, sizeof(f->message), "install: the packages are too large");
	} else {
		install_explain(in->set.manager, said, n, &f->d, f->message, sizeof(f->message));
	}
}

static void packages_over(struct exec_reader *t, json_t *record, const struct err *e)
{
	struct install *in = loop_owner(t, struct install, reader);
	const char *cause = json_string_value(json_object_get(record, "cause"));
	struct packages_failure f = { 0 };

	in->tapped = 0;
	if (!record) {
		fail_err(in, e);
	} else if (cause && !strcmp(cause, cause_name(CAUSE_EXIT)) &&
		   json_integer_value(json_object_get(record, "status")) == 0) {
		if (++in->at < in->plan.nsteps)
			next_step(in);
		else
			carry_out(in);
	} else {
		packages_explain(in, record, &f);
		packages_fail(in, &f);
	}
}

/* Variables of the manager, besides those of the proxy that every box with egress has. */
static const char *const *packages_environment(struct install *in)
{
	static const char *const always[] = { "HOME=/home/user",
					      "LC_ALL=C.UTF-8",
					      "PIP_NO_CACHE_DIR=1",
					      "PIP_DEFAULT_TIMEOUT=10",
					      "PIP_RETRIES=1",
					      "npm_config_cache=/tmp/npm",
					      "npm_config_update_notifier=false" };
	const struct install_conf *conf = &in->fleet->conf.packages.install;
	const char *trusted = conf->trusted[in->set.manager];
	unsigned n = ARRAY_LEN(always);

	memcpy(in->env, always, sizeof(always));
	if (trusted) {
		snprintf(in->trusted, sizeof(in->trusted), "PIP_TRUSTED_HOST=%s", trusted);
		in->env[n++] = in->trusted;
	}
	install_env(in->set.manager, conf->source[in->set.manager], in->source, in->env + n);
	return in->env;
}

static void next_step(struct install *in)
{
	static const struct exec_reader_events on = { .output = packages_output,
						      .over = packages_over };
	struct box *b = fleet_find(in->fleet, in->box);
	struct exec_spec want = { .argv = in->plan.steps[in->at].argv,
				  .env = packages_environment(in),
				  .kind = STORE_RUN_EXEC,
				  .wall_ms = (uint32_t)in->fleet->conf.packages.timeout_ms };
	struct exec *r;
	struct err e;

	if (!b) {
		err_set(&e, ERR_NOT_FOUND, "the install box ended");
		fail_err(in, &e);
		return;
	}
	exec_reader_init(&in->reader, in->fleet, &on);
	if (exec_launch(b, &want, &in->reader, &r, &e) < 0) {
		fail_err(in, &e);
		return;
	}
	in->tapped = 1;
}

/* ---- the install box ---- */

/* A manager that cannot connect to the proxy fails at once; after the start of the daemon egress
 * may not be ready yet. */
static void begin_when_open(struct timer *t)
{
	struct install *in = loop_owner(t, struct install, way);
	const struct box *b = fleet_find(in->fleet, in->box);

	if (b && egress_client_wanted(b) && !b->way.open && in->tries++ < WAY_TRIES)
		timer_set(&in->way, WAY_WAIT_MS);
	else
		next_step(in);
}

static void box_made(struct box_wait *w, struct box *b, const struct err *e)
{
	struct install *in = loop_owner(w, struct install, made);

	if (e) {
		fail_err(in, e);
		return;
	}
	snprintf(in->box, sizeof(in->box), "%s", b->row.id);
	begin_when_open(&in->way);
}

static int mount_mirror(struct install *in, struct box_spec *want, struct err *e)
{
	const struct install_conf *conf = &in->fleet->conf.packages.install;
	struct wire_mount *m = &want->mounts[0];
	struct store_volume v;

	if (conf->source[in->set.manager] || !conf->mirror)
		return 0;
	if (store_volume_find(in->fleet->store, TEAM_DEFAULT, conf->mirror, &v, e) < 0)
		return err_in(e, "packages.mirror");
	snprintf(m->id, sizeof(m->id), "%s", v.id);
	snprintf(m->path, sizeof(m->path), "%s", INSTALL_MIRROR);
	m->flags = WIRE_MOUNT_RO;
	want->nmounts = 1;
	return 0;
}

static int make_box(struct install *in, const char *team, struct err *e)
{
	const struct fleet_conf *conf = &in->fleet->conf;
	struct box_spec want = { .limits = conf->limits };
	struct box *b;
	char metadata[160];

	snprintf(metadata, sizeof(metadata), "{\"%s\":\"1\",\"%s\":\"%s\"}", BOX_EPHEMERAL,
		 BOX_INSTALL, in->key);
	want.limits.disk_bytes = DISK_BYTES;
	want.limits.disk_files = FILES_MOST;
	bounds_lower(&conf->most, &want.limits);
	want.row.metadata = metadata;
	if (conf->packages.install.source[in->set.manager])
		want.row.network = (char *)conf->packages.install.hosts[in->set.manager];
	want.row.lifetime_ms = conf->packages.timeout_ms * INSTALL_STEPS + LIFETIME_EXTRA_MS;
	snprintf(want.row.team, sizeof(want.row.team), "%s", team);
	snprintf(want.row.template, sizeof(want.row.template), "base");
	if (mount_mirror(in, &want, e) < 0)
		return -1;
	want.continues = 1;
	in->made.done = box_made;
	return box_create(in->fleet, &want, &in->made, &b, e);
}

static void copy_set(struct packages *to, const struct packages *from)
{
	*to = (struct packages){ .manager = from->manager, .n = from->n };
	to->v = calloc(from->n, sizeof(*to->v));
	if (!to->v)
		abort();
	for (unsigned i = 0; i < from->n; i++) {
		to->v[i] = strdup(from->v[i]);
		if (!to->v[i])
			abort();
	}
}

static struct install *packages_do_begin(struct fleet *f, const struct packages *set,
					 const char *key, const char *team, struct err *e)
{
	struct install *in = calloc(1, sizeof(*in));

	if (!in)
		abort();
	in->fleet = f;
	in->began_ms = loop_now_ms();
	in->reader.own.post.fd = -1;
	timer_init(&in->way, f->loop, begin_when_open);
	memcpy(in->key, key, sizeof(in->key));
	copy_set(&in->set, set);
	if (install_plan(&in->set, &f->conf.packages.install, &in->plan, e) < 0 ||
	    make_box(in, team, e) < 0) {
		install_free(in);
		return NULL;
	}
	in->next = f->installs;
	f->installs = in;
	return in;
}

/* ---- asked from outside ---- */

void packages_set_key(const struct fleet *f, const struct packages *set,
		      char out_key[STORE_HASH + 1])
{
	const char *runtime = f->conf.packages.install.runtime[set->manager];

	packages_key(set, runtime ? runtime : "", out_key);
}

int packages_configured(const struct fleet *f, const struct packages *set)
{
	struct install_plan *plan = calloc(1, sizeof(*plan));
	struct err e;
	int can;

	if (!plan)
		abort();
	can = install_plan(set, &f->conf.packages.install, plan, &e) == 0;
	free(plan);
	return can;
}

static struct install *under_way(const struct fleet *f, const char *key, unsigned *out_n)
{
	struct install *found = NULL;

	*out_n = 0;
	for (struct install *in = f->installs; in; in = in->next, ++*out_n)
		if (!strcmp(in->key, key))
			found = in;
	return found;
}

int packages_get(struct fleet *f, const struct packages *set, const char *team,
		 struct packages_wait *w, char out_layer[STORE_HASH + 1], struct err *e)
{
	char key[STORE_HASH + 1];
	struct store_set row;
	struct install *in;
	unsigned n;

	packages_set_key(f, set, key);
	if (store_set_get(f->store, key, &row, e) == 0) {
		memcpy(out_layer, row.layer, sizeof(row.layer));
		store_set_fini(&row);
		/* A full disk does not make the set unusable. */
		(void)!store_set_use(f->store, key, fleet_now_ns(), e);
		return 1;
	}
	if (e->kind != ERR_NOT_FOUND)
		return -1;
	in = under_way(f, key, &n);
	if (!in && n >= INSTALLS_MOST)
		return err_set(e, ERR_LIMIT,
			       "%d sets of packages are being installed already; try again",
			       INSTALLS_MOST);
	if (!in)
		in = packages_do_begin(f, set, key, team, e);
	if (!in)
		return -1;
	w->install = in;
	w->next = in->waiters;
	in->waiters = w;
	return 0;
}

void packages_wait_cancel(struct packages_wait *w)
{
	struct packages_wait **at = w->install ? &w->install->waiters : NULL;

	while (at && *at && *at != w)
		at = &(*at)->next;
	if (at && *at)
		*at = w->next;
	w->install = NULL;
}

void packages_forget(struct fleet *f, const char *layer)
{
	struct err e;

	if (store_set_forget(f->store, layer, &e) < 0)
		log_warn("packages", LOG_E(&e));
}

/* ---- too much of it ---- */

static void packages_dropped(void *ctx, const struct frame *fr, size_t len, int *fd,
			     const struct err *e)
{
	struct fleet *f = ctx;

	(void)len;
	(void)fd;
	f->dropping = NULL;
	if (fr || e->kind == ERR_NOT_FOUND) {
		packages_forget(f, f->dropped);
		fleet_emit(f, TEAM_DEFAULT, "", "packages.dropped",
			   json_pack("{s:s}", "layer", f->dropped));
	} else {
		f->drop_skip++; /* a box has it */
	}
	packages_collect(f);
}

void packages_collect(struct fleet *f)
{
	struct wire_layer ask = { .head.type = WIRE_LAYER_DROP };
	char newer[STORE_HASH + 1];
	uint64_t bytes = 0;
	struct err e;

	if (f->dropping || !f->conf.packages.cache_bytes)
		return;
	if (store_set_bytes(f->store, &bytes, &e) < 0 || bytes <= f->conf.packages.cache_bytes ||
	    store_set_oldest(f->store, f->drop_skip, f->dropped, &e) < 0 ||
	    /* The newest set is kept, however large: otherwise it would be installed each time. */
	    store_set_oldest(f->store, f->drop_skip + 1, newer, &e) < 0) {
		f->drop_skip = 0;
		return;
	}
	snprintf(ask.id, sizeof(ask.id), "%s", f->dropped);
	f->dropping = keeper_client_request(&f->keeper, &ask, sizeof(ask), WIRE_DONE,
					    packages_dropped, f);
}

static void packages_fini_all(struct fleet *f)
{
	while (f->installs) {
		struct install *in = f->installs;

		f->installs = in->next;
		in->box[0] = 0; /* the box ends by itself, or the next server ends it */
		for (struct packages_wait *w = in->waiters; w; w = w->next)
			w->install = NULL;
		install_free(in);
	}
	keeper_client_cancel(&f->keeper, f->dropping);
	f->dropping = NULL;
}

const struct box_hooks packages_hooks = { .fleet_fini = packages_fini_all };
