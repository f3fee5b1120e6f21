/* compile_reuse.c - see compile_reuse.h. */
#include "buildcache/compile_reuse.h"
#include "base/cleanup.h"
#include "fleet/box_secrets.h"
#include "fleet/box.h"
#include "lang/lang.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHARED, CHANGED, LAYING }; /* what the file client does */
enum { WINDOW = 256 * 1024, LOG = 128 * 1024, HELPER_MS = 20000 };

static struct box *box_of(const struct compile_reuse *x)
{
	struct box *b = fleet_find(x->fleet, x->box_id);

	return b && b->state == BOX_RUNNING && init_conn_is_open(&b->line) ? b : NULL;
}

static void let_file_client_go(struct compile_reuse *x)
{
	if (x->file_client_open)
		file_client_close(&x->file_client);
	x->file_client_open = 0;
}

/* From now on the box calls its hook when it ends; there is no other notification. */
static void reuse_begin(struct compile_reuse *x, struct box *b)
{
	x->box = b;
	x->next = b->reuses;
	b->reuses = x;
}

static void reuse_leave(struct compile_reuse *x)
{
	struct compile_reuse **at;

	if (!x->box)
		return;
	for (at = &x->box->reuses; *at != x; at = &(*at)->next)
		;
	*at = x->next;
	x->box = NULL;
}

static void reuse_finish(struct compile_reuse *x, int found)
{
	reuse_leave(x);
	let_file_client_go(x);
	init_conn_remove_call(&x->init_call);
	x->done(x, found);
}

/* ---- a command in the box ---- */

static int start_helper(struct compile_reuse *x, const char **take_argv,
			const struct init_call_ops *on)
{
	struct box *b = box_of(x);
	/* Without the variables of the program, which it does not need. */
	struct box_command cmd = { .argv = take_argv,
				   .env = box_default_env,
				   .cwd = "/",
				   .wall_ms = HELPER_MS,
				   .log_bytes = LOG,
				   .credit = WINDOW };
	struct err e;

	free(x->helper);
	x->helper = take_argv;
	return b ? init_conn_start(&b->line, &x->init_call, init_conn_new_ref(&b->line), on, &cmd,
				   &e)
		 : -1;
}

static int went_well(const struct wire_exit *exit)
{
	return exit->why == WIRE_WHY_EXIT && exit->status == 0;
}

static void helper_refused(struct init_call *l, const struct err *e)
{
	(void)e;
	reuse_finish(loop_owner(l, struct compile_reuse, init_call), 0);
}

static void helper_lost(struct init_call *l)
{
	reuse_finish(loop_owner(l, struct compile_reuse, init_call), 0);
}

/* ---- in ---- */

static void unpack_said(struct init_call *l, unsigned stream, uint64_t offset, const char *bytes,
			size_t n)
{
	(void)bytes;
	init_conn_credit(l, stream, offset + n + WINDOW);
}

static void reuse_unpacked(struct init_call *l, const struct wire_exit *exit)
{
	reuse_finish(loop_owner(l, struct compile_reuse, init_call), went_well(exit));
}

static const struct init_call_ops unpack_on = {
	.output = unpack_said,
	.exited = reuse_unpacked,
	.refused = helper_refused,
	.lost = helper_lost,
};

static void reuse_laid(struct compile_reuse *x)
{
	if (x->made.is_file)
		reuse_finish(x, 1);
	else if (start_helper(x, compile_cache_unpack(x->want.program), &unpack_on) < 0)
		reuse_finish(x, 0);
}

static void reuse_lay(struct compile_reuse *x)
{
	const char *path = x->made.is_file ? x->want.program : COMPILE_CACHE_FILE;
	struct wire_put put = { .mode = x->made.is_file ? 0755 : 0644 };

	x->stage = LAYING;
	file_client_put(&x->file_client, &put, path, x->made.bytes, x->made.n);
}

/* ---- keys ---- */

static int reuse_get(struct compile_reuse *x, const struct compile_cache_key *key)
{
	return compile_cache_get(x->fleet->compile_caches, key, &x->kept) &&
	       compile_cache_read(&x->kept, &x->made) == 0;
}

/* The variables of the box for a key. The id of the box is left out if the program does not mention
 * it: every E2B box has one. NULL: none. */
static char *reuse_variables(const struct compile_reuse *x, const struct box *b)
{
	json_t *env = b->row.env ? json_loads(b->row.env, 0, NULL) : NULL, *v;
	const char *name;
	char *text = NULL;
	void *safe;

	json_object_foreach_safe(env, safe, name, v) if (json_is_string(v) &&
							 !strcmp(json_string_value(v), b->row.id) &&
							 !compile_cache_mentions(&x->want.of, name))
		json_object_set_new(env, name, json_true());
	if (json_object_size(env))
		text = json_dumps(env, JSON_COMPACT | JSON_SORT_KEYS);
	json_decref(env);
	return text;
}

/* state NULL: no other files in the box. */
static int reuse_find(struct compile_reuse *x, const struct box *b, const uint8_t *state)
{
	/* The variables of a box that was created for this request are part of the request. */
	auto_free char *env = x->want.alone ? NULL : reuse_variables(x, b);
	struct compile_inputs of = x->want.of;

	of.box_env = env;
	of.layers = (const char(*)[WIRE_LAYER_ID])b->layers;
	of.nlayers = b->nlayers;
	x->may_team = b->is_known && !state;
	compile_cache_key(&of, &x->team);
	of.box = b->row.id;
	of.state = state;
	compile_cache_key(&of, &x->own);
	x->is_keyed = 1;
	return (x->may_team && reuse_get(x, &x->team)) || (!x->want.alone && reuse_get(x, &x->own));
}

/* ---- what else is in the box ---- */

static void has_looked(struct compile_reuse *x)
{
	struct box *b = box_of(x);
	uint8_t state[SHA256_BYTES];
	int more = upper_digest_end(&x->upper, state);

	/* Files in the folders of a compiler could change its output. */
	x->is_ours &= !x->upper.has_loose;
	if (!b || more < 0 || !reuse_find(x, b, more ? state : NULL))
		reuse_finish(x, 0);
	else
		reuse_lay(x);
}

static void reuse_ready(struct file_client *k)
{
	struct compile_reuse *x = loop_owner(k, struct compile_reuse, file_client);
	struct wire_list ask = { .max = 1 };

	if (x->stage == LAYING)
		reuse_lay(x);
	else /* the only writable folder outside of the upper layer */
		file_client_ask(k, WIRE_LIST, &ask, sizeof(ask), "/dev/shm", strlen("/dev/shm"));
}

static void reuse_entry(struct file_client *k, const struct wire_entry *e, const char *name,
			size_t n)
{
	struct compile_reuse *x = loop_owner(k, struct compile_reuse, file_client);

	if (x->stage == SHARED)
		upper_digest_missing(&x->upper);
	else
		upper_digest_entry(&x->upper, e, name, strnlen(name, n));
}

static void reuse_done(struct file_client *k, uint16_t flags)
{
	struct compile_reuse *x = loop_owner(k, struct compile_reuse, file_client);
	struct wire_changes ask = { .max_entries = UPPER_DIGEST_ENTRIES,
				    .hash_bytes = UPPER_DIGEST_HASHED };

	if (x->stage == LAYING) {
		let_file_client_go(x);
		reuse_laid(x);
		return;
	}
	if (flags & (WIRE_DONE_TRUNCATED | WIRE_DONE_SKIPPED))
		upper_digest_missing(&x->upper);
	if (x->stage == CHANGED || x->upper.broken) {
		has_looked(x);
		return;
	}
	x->stage = CHANGED;
	file_client_ask(k, WIRE_CHANGES, &ask, sizeof(ask), NULL, 0);
}

static void reuse_failed(struct file_client *k, const struct err *e)
{
	(void)e;
	reuse_finish(loop_owner(k, struct compile_reuse, file_client), 0);
}

static void open_file_client(struct compile_reuse *x, struct box *b)
{
	static const struct file_client_events on = { .ready = reuse_ready,
						      .entry = reuse_entry,
						      .done = reuse_done,
						      .failed = reuse_failed };

	file_client_open(&x->file_client, &b->line, 0, &on);
	x->file_client_open = 1;
}

/* ---- what is ours of it ---- */

struct places {
	const char **v;
	size_t n, bytes; /* of the texts */
	char *text;      /* NULL: only counted */
};

static void add_place(struct places *p, const char *path)
{
	const char *before = *path == '/' ? "" : BOX_HOME "/";

	if (p->text) {
		p->v[p->n] = p->text + p->bytes;
		sprintf(p->text + p->bytes, "%s%s", before, path);
	}
	p->n++;
	p->bytes += strlen(before) + strlen(path) + 1;
}

static void add_own(struct places *p, const struct compile_reuse_spec *want)
{
	const char *path;
	json_t *v;

	add_place(p, want->of.source);
	json_object_foreach((json_t *)want->of.files, path, v) add_place(p, path);
	for (const struct lang_pair *f = want->lang->support; f->key; f++)
		add_place(p, f->key);
	p->n++; /* NULL */
}

/* The output of the compiler; the packed program; notes of the row in the folder of Atoll in /tmp;
 * and files of a virtual machine there. */
static void add_loose(struct places *p, const struct compile_reuse_spec *want)
{
	static const char notes[] = "/tmp/.atoll/";

	add_place(p, want->program);
	add_place(p, COMPILE_CACHE_FILE);
	for (const struct lang_pair *v = want->lang->env; v->key; v++)
		if (!strncmp(v->value, notes, strlen(notes)))
			add_place(p, v->value);
	add_place(p, "/tmp/hsperfdata_user");
	p->n++;
}

static void note_places(struct compile_reuse *x)
{
	struct places p = { 0 };
	size_t n;

	add_own(&p, &x->want);
	add_loose(&p, &x->want);
	x->places = calloc(p.n, sizeof(*x->places));
	x->place_text = malloc(p.bytes);
	if (!x->places || !x->place_text)
		abort();
	p = (struct places){ .v = x->places, .text = x->place_text };
	add_own(&p, &x->want);
	n = p.n;
	add_loose(&p, &x->want);
	x->upper.own = x->places;
	x->upper.loose = x->places + n;
}

/* ---- looking ---- */

static int has_volumes(const struct box *b)
{
	return b->row.volumes && strcmp(b->row.volumes, "[]") != 0;
}

/* Data from a network, a volume or a secret is in no key. The registries are the same for all boxes. */
static int may_look(const struct compile_reuse *x, const struct box *b)
{
	return x->fleet->compile_caches && !egress_client_asked(b) && !has_volumes(b) &&
	       !box_secrets_any(b) && !compile_cache_uses_time(&x->want.of);
}

/* A later request may have overwritten the files that the first one is about to compile. */
static int is_quiet(const struct compile_reuse *x, const struct box *b)
{
	unsigned us = x->want.alone ? 0 : 1; /* the request of this lookup */

	return x->fleet->alone && b->busy == us && b->holds == x->want.holds;
}

void compile_reuse_lookup(struct compile_reuse *x, struct box *b,
			  const struct compile_reuse_spec *want)
{
	x->fleet = b->fleet;
	x->want = *want;
	memcpy(x->box_id, b->row.id, sizeof(x->box_id));
	if (!box_of(x) || !may_look(x, b)) {
		reuse_finish(x, 0);
		return;
	}
	x->starts = b->starts;
	x->is_quiet = is_quiet(x, b);
	x->is_ours = b->is_known && b->starts == want->started;
	x->stage = want->alone ? LAYING : SHARED;
	if (want->alone && !reuse_find(x, b, NULL)) {
		reuse_finish(x, 0);
		return;
	}
	if (!want->alone)
		note_places(x);
	reuse_begin(x, b);
	open_file_client(x, b);
}

/* ---- out ---- */

static void reuse_given(struct init_call *l, unsigned stream, uint64_t offset, const char *bytes,
			size_t n)
{
	struct compile_reuse *x = loop_owner(l, struct compile_reuse, init_call);

	if (stream == 0 && x->given.len <= COMPILE_CACHE_MOST)
		buf_add(&x->given, bytes, n);
	init_conn_credit(l, stream, offset + n + WINDOW);
}

/* No other exec and no other request used the box since the lookup. */
static int is_whole(const struct compile_reuse *x, const struct wire_exit *exit)
{
	const struct box *b = box_of(x);

	return b && x->is_quiet && is_quiet(x, b) && b->starts == x->starts + 1 &&
	       went_well(exit) && x->given.len <= COMPILE_CACHE_MOST && x->fleet->compile_caches;
}

static void all_given(struct init_call *l, const struct wire_exit *exit)
{
	struct compile_reuse *x = loop_owner(l, struct compile_reuse, init_call);
	int team = x->is_ours && x->may_team;
	auto_buf struct buf whole = { 0 };

	if (is_whole(x, exit) && (team || !x->want.alone)) {
		compile_cache_write(&whole, x->said, &x->given);
		compile_cache_put(x->fleet->compile_caches, team ? &x->team : &x->own, whole.p,
				  whole.len);
	}
	reuse_finish(x, 0);
}

void compile_reuse_keep(struct compile_reuse *x, const struct buf said[2])
{
	static const struct init_call_ops on = {
		.output = reuse_given,
		.exited = all_given,
		.refused = helper_refused,
		.lost = helper_lost,
	};

	struct box *b = x->is_keyed ? box_of(x) : NULL;

	if (!b || said[0].len > COMPILE_REUSE_SAID || said[1].len > COMPILE_REUSE_SAID) {
		reuse_finish(x, 0);
		return;
	}
	reuse_begin(x, b);
	for (unsigned i = 0; i < 2; i++) {
		buf_cut(&x->said[i], 0);
		buf_add(&x->said[i], said[i].p, said[i].len);
	}
	if (start_helper(x, compile_cache_give(x->want.program), &on) < 0)
		reuse_finish(x, 0);
}

static void reuses_fail(struct box *b)
{
	while (b->reuses)
		reuse_finish(b->reuses, 0);
}

void compile_reuse_fini(struct compile_reuse *x)
{
	reuse_leave(x);
	if (x->init_call.line) /* is its output read? */
		init_conn_signal(x->init_call.line, x->init_call.ref, SIGKILL);
	init_conn_remove_call(&x->init_call);
	let_file_client_go(x);
	upper_digest_fini(&x->upper);
	free(x->places);
	free(x->place_text);
	free(x->helper);
	buf_fini(&x->kept);
	buf_fini(&x->given);
	buf_fini(&x->said[0]);
	buf_fini(&x->said[1]);
}

const struct box_hooks compile_reuse_hooks = { .after_free = reuses_fail };
