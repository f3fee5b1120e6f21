/* build_box.c - one box of a build: its root, the box, users of its /etc/passwd, the command of a
 * RUN step, and the layer of what was written. See build_internal.h. */
#include "template/build_internal.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "fleet/bounds.h"
#include "fleet/box.h"
#include "record/cause.h"
#include "wire/sock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	WAY_TRIES = 200,
	WAY_WAIT_MS = 25,
	ROOM_WAIT_MS = 100,
	ROOM_WAIT_MOST_MS = 2000,
	ROOM_LIMIT_MS = 60000,
	LIFETIME_EXTRA_MS = 600 * 1000, /* for the layer */
};

/* ---- root ---- */

/* A layer that the cache names no longer exists: all steps are executed again. */
static int build_retry(struct build *b, const struct err *e)
{
	const json_t *stage, *layer;
	const char *name;
	struct err own;
	size_t i;

	if (e->kind != ERR_NOT_FOUND || b->retried)
		return 0;
	json_object_foreach(json_object_get(b->progress, "stages"), name, stage)
		json_array_foreach(json_object_get(stage, "layers"), i,
				   layer)(void) !store_cache_forget(b->all->fleet->store,
								    json_string_value(layer), &own);
	b->retried = b->force = 1;
	json_object_clear(b->progress);
	build_log(b, "warn", "%s: all steps are executed again", e->msg);
	if (build_save(b) == 0)
		build_continue(b);
	return 1;
}

static void build_on_root(void *ctx, const struct frame *f, size_t len, int *fd,
			  const struct err *e)
{
	const struct wire_root *r = (const struct wire_root *)f;
	struct store_layer row = { .is_root = 1, .used_ns = fleet_now_ns() };
	struct build *b = ctx;
	struct err own;

	(void)len;
	(void)fd;
	b->asking = NULL;
	if (!f) {
		if (!build_retry(b, e))
			build_fail_err(b, e);
		return;
	}
	snprintf(row.id, sizeof(row.id), "%.64s", r->id);
	row.bytes = r->bytes;
	b->row.bytes = r->bytes;
	if (store_layer_put(b->all->fleet->store, &row, &own) < 0)
		build_fail_err(b, &own);
	else
		b->rooted(b, row.id);
}

void build_root(struct build *b, const json_t *stage, int merge,
		void (*rooted)(struct build *b, const char *root))
{
	const json_t *layers = json_object_get(stage, "layers");
	size_t n = json_array_size(layers);
	int base = json_is_true(json_object_get(stage, "base"));
	struct wire_root_make *ask;

	if (base && n == 0) {
		rooted(b, "");
		return;
	}
	if (n > WIRE_ROOT_LAYERS) {
		build_fail(b, "%zu layers are too many, at most %d: join RUN steps with &&", n,
			   WIRE_ROOT_LAYERS);
		return;
	}
	ask = calloc(1, sizeof(*ask));
	if (!ask)
		abort();
	ask->head = sock_head(WIRE_ROOT_MAKE, 0);
	ask->head.flags = (uint16_t)((merge ? WIRE_ROOT_MERGE : 0) | (base ? WIRE_ROOT_BASE : 0));
	ask->nlayers = (uint32_t)n;
	for (size_t i = 0; i < n; i++)
		snprintf(ask->layer[n - 1 - i], sizeof(ask->layer[0]), "%s",
			 json_string_value(json_array_get(layers, i)));
	b->rooted = rooted;
	b->asking = keeper_client_request(&b->all->fleet->keeper, ask, sizeof(*ask), WIRE_ROOT,
					  build_on_root, b);
	free(ask);
}

/* ---- box ---- */

static void build_box_worker(struct file_client *c)
{
	struct build_box *x = loop_owner(c, struct build_box, files);

	x->ready(x);
}

static void build_box_failed(struct file_client *c, const struct err *e)
{
	build_fail_err(loop_owner(c, struct build_box, files)->build, e);
}

static void build_box_files(struct build_box *x)
{
	static const struct file_client_events on = { .ready = build_box_worker,
						      .failed = build_box_failed };
	struct box *b = fleet_find(x->build->all->fleet, x->id);

	if (!b || b->state != BOX_RUNNING) {
		build_fail(x->build, "the build box has ended");
		return;
	}
	file_client_open(&x->files, &b->line, WIRE_FILES_ROOT, &on);
	x->has_files = 1;
}

/* Programs that cannot connect to the proxy fail at once; egress may not be ready yet. */
static void build_box_way(struct timer *t)
{
	struct build_box *x = loop_owner(t, struct build_box, way);
	const struct box *b = fleet_find(x->build->all->fleet, x->id);

	if (b && egress_client_wanted(b) && !b->way.open && x->tries++ < WAY_TRIES)
		timer_set(&x->way, WAY_WAIT_MS);
	else
		build_box_files(x);
}

/* The space of a box is free again when the box has been destroyed, which takes longer than a short step. A box that
 * was refused counts as well until then, so attempts become rarer. */
static void build_box_refused(struct build_box *x, const struct err *e)
{
	if (e->kind != ERR_LIMIT || loop_now_ms() >= x->give_up_ms) {
		build_fail_err(x->build, e);
		return;
	}
	timer_set(&x->again, x->room_ms);
	x->room_ms = x->room_ms * 2 < ROOM_WAIT_MOST_MS ? x->room_ms * 2 : ROOM_WAIT_MOST_MS;
}

static void build_box_made(struct box_wait *w, struct box *b, const struct err *e)
{
	struct build_box *x = loop_owner(w, struct build_box, made);

	if (e) {
		build_box_refused(x, e);
		return;
	}
	snprintf(x->id, sizeof(x->id), "%s", b->row.id);
	build_box_way(&x->way);
}

static void build_box_create(struct build_box *x)
{
	struct builds *all = x->build->all;
	const struct fleet_conf *conf = &all->fleet->conf;
	struct box_spec want = { .limits = conf->limits };
	char metadata[200];
	struct box *b;
	struct err e;

	snprintf(metadata, sizeof(metadata), "{\"%s\":\"1\",\"%s\":\"build\",\"%s\":\"%s\"}",
		 BOX_EPHEMERAL, BOX_INSTALL, BOX_BUILD, x->build->row.id);
	if (x->disk_bytes) {
		want.limits.disk_bytes = x->disk_bytes;
		want.limits.disk_files = BUILD_FILES;
	}
	want.limits.mem_bytes = x->mem_bytes ? x->mem_bytes : all->conf.mem_bytes;
	want.limits.cpu_milli = x->cpu_milli ? x->cpu_milli : all->conf.cpu_milli;
	bounds_lower(&conf->most, &want.limits);
	want.row.metadata = metadata;
	want.row.network = x->flags & BUILD_BOX_NETWORK ? (char *)all->conf.hosts : NULL;
	want.row.lifetime_ms = x->lifetime_ms + LIFETIME_EXTRA_MS;
	snprintf(want.row.team, sizeof(want.row.team), "%s", x->build->row.team);
	snprintf(want.row.template, sizeof(want.row.template), "build");
	snprintf(want.root, sizeof(want.root), "%s", x->root);
	want.flags = x->flags & BUILD_BOX_STEP ? WIRE_CREATE_HOST_WRITABLE : 0;
	want.continues = 1;
	x->made.done = build_box_made;
	if (box_create(all->fleet, &want, &x->made, &b, &e) < 0)
		build_box_refused(x, &e);
}

static void build_box_again(struct timer *t)
{
	build_box_create(loop_owner(t, struct build_box, again));
}

void build_box_open(struct build_box *x, const char *root, unsigned flags, uint64_t disk_bytes,
		    uint64_t lifetime_ms, void (*ready)(struct build_box *x))
{
	struct loop *loop = x->build->all->fleet->loop;

	build_box_close(x);
	x->ready = ready;
	x->tries = 0;
	timer_init(&x->way, loop, build_box_way);
	timer_init(&x->again, loop, build_box_again);
	x->give_up_ms = loop_now_ms() + ROOM_LIMIT_MS;
	x->room_ms = ROOM_WAIT_MS;
	snprintf(x->root, sizeof(x->root), "%s", root);
	x->flags = flags;
	x->disk_bytes = disk_bytes;
	x->lifetime_ms = lifetime_ms;
	build_box_create(x);
}

void build_box_close(struct build_box *x)
{
	struct box *b = x->id[0] ? fleet_find(x->build->all->fleet, x->id) : NULL;

	if (x->has_files)
		file_client_close(&x->files);
	x->has_files = 0;
	if (x->made.box)
		box_end(x->made.box, CAUSE_OPERATOR, NULL); /* as soon as it exists */
	box_wait_cancel(&x->made);
	timer_fini(&x->way);
	timer_fini(&x->again);
	if (b)
		box_end(b, CAUSE_EXIT, NULL);
	x->id[0] = 0;
}

/* ---- users ---- */

static void build_users_file(struct build *b, const char *path);

static void build_users_next(struct build *b)
{
	if (b->reading == &b->passwd) {
		b->reading = &b->group;
		build_users_file(b, "/etc/group");
	} else {
		b->users_read(b);
	}
}

static void build_users_data(struct file_client *c, const char *bytes, size_t n)
{
	struct build *b = loop_owner(c, struct build_box, files)->build;

	if (n == 0)
		build_users_next(b);
	else if (b->reading->len + n <= BUILD_TEXT)
		buf_add(b->reading, bytes, n);
}

/* No such file: an image without users. */
static void build_users_failed(struct file_client *c, const struct err *e)
{
	(void)e;
	build_users_next(loop_owner(c, struct build_box, files)->build);
}

static void build_users_file(struct build *b, const char *path)
{
	static const struct file_client_events on = { .data = build_users_data,
						      .failed = build_users_failed };
	struct wire_get ask = { .bytes = BUILD_TEXT };

	b->box.files.on = &on;
	file_client_ask(&b->box.files, WIRE_GET, &ask, sizeof(ask), path, strlen(path));
}

void build_read_users(struct build *b, void (*done)(struct build *b))
{
	b->users_read = done;
	b->reading = &b->passwd;
	buf_cut(&b->passwd, 0);
	buf_cut(&b->group, 0);
	build_users_file(b, "/etc/passwd");
}

/* Field `index` of a line with ':' between its fields; n: its length. */
static const char *build_field(const char *line, const char *end, unsigned index, size_t *n)
{
	for (; index > 0 && line < end; line++)
		index -= *line == ':';
	*n = 0;
	while (line + *n < end && line[*n] != ':')
		++*n;
	return line;
}

/* The line whose field `index` is this text; NULL: none. */
static const char *build_line_with(const struct buf *file, unsigned index, const char *text,
				   const char **out_end)
{
	const char *at = buf_str(file), *all = at + file->len;

	while (at < all) {
		const char *end = memchr(at, '\n', (size_t)(all - at)), *field;
		size_t n;

		if (!end)
			end = all;
		field = build_field(at, end, index, &n);
		if (n == strlen(text) && !memcmp(field, text, n)) {
			*out_end = end;
			return at;
		}
		at = end + (end < all);
	}
	return NULL;
}

static int build_is_number(const char *text)
{
	return *text && strspn(text, "0123456789") == strlen(text) && strlen(text) < 10;
}

static int build_find_group(const struct build *b, const char *name, unsigned *out, struct err *e)
{
	const char *end, *line, *id;
	size_t n;

	if (build_is_number(name)) {
		*out = (unsigned)strtoul(name, NULL, 10);
		return 0;
	}
	line = build_line_with(&b->group, 0, name, &end);
	if (!line)
		return err_set(e, ERR_NOT_FOUND, "there is no group '%.60s' in /etc/group", name);
	id = build_field(line, end, 2, &n);
	*out = (unsigned)strtoul(id, NULL, 10);
	return 0;
}

/* Fills out from a line of /etc/passwd. */
static void build_take_user(const char *line, const char *end, struct build_user *out)
{
	const char *field;
	size_t n;

	field = build_field(line, end, 0, &n);
	snprintf(out->name, sizeof(out->name), "%.*s", (int)n, field);
	field = build_field(line, end, 2, &n);
	out->uid = (unsigned)strtoul(field, NULL, 10);
	field = build_field(line, end, 3, &n);
	out->gid = (unsigned)strtoul(field, NULL, 10);
	field = build_field(line, end, 5, &n);
	snprintf(out->home, sizeof(out->home), "%.*s", (int)n, field);
}

int build_find_user(const struct build *b, const char *who, struct build_user *out, struct err *e)
{
	struct build_user found = { .home = "/" };
	char name[64];
	const char *colon = strchr(who, ':'), *end, *line;

	snprintf(name, sizeof(name), "%.*s", colon ? (int)(colon - who) : 63, who);
	if (!name[0])
		snprintf(name, sizeof(name), "root");
	line = build_line_with(&b->passwd, build_is_number(name) ? 2 : 0, name, &end);
	if (line) {
		build_take_user(line, end, &found);
	} else if (!strcmp(name, "root") || build_is_number(name)) {
		found.uid = (unsigned)strtoul(name, NULL, 10);
		snprintf(found.name, sizeof(found.name), "%s", name);
		snprintf(found.home, sizeof(found.home), "%s", found.uid ? "/" : "/root");
	} else {
		return err_set(e, ERR_NOT_FOUND, "there is no user '%.60s' in /etc/passwd", name);
	}
	if (colon && build_find_group(b, colon + 1, &found.gid, e) < 0)
		return -1;
	if (found.uid > WIRE_OWNER_MAX || found.gid > WIRE_OWNER_MAX)
		return err_set(e, ERR_INVALID, "user '%.60s' has the id %u:%u; the largest is %d",
			       who, found.uid, found.gid, WIRE_OWNER_MAX);
	*out = found;
	return 0;
}

/* ---- the command ---- */

const char *build_cause(const struct build *b, const json_t *record, char *out, size_t size)
{
	const char *cause = build_text(record, "cause"), *summary = build_text(record, "summary");
	int status = (int)json_integer_value(json_object_get(record, "status"));

	if (!strcmp(cause, cause_name(CAUSE_EXIT)) && status == 0)
		return NULL;
	if (!strcmp(cause, cause_name(CAUSE_WALL)))
		snprintf(out, size, "took longer than %llu s (templates.step_timeout)",
			 (unsigned long long)(b->all->conf.step_ms / 1000));
	else if (!strcmp(cause, cause_name(CAUSE_DISK)))
		snprintf(out, size,
			 "the disk of the build box is full: %llu MiB (templates.build_disk)",
			 (unsigned long long)(b->all->conf.disk_bytes >> 20));
	else if (!strcmp(cause, cause_name(CAUSE_MEMORY)))
		snprintf(out, size, "ran out of memory: %llu MiB (templates.build_memory)",
			 (unsigned long long)(b->all->conf.mem_bytes >> 20));
	else if (!strcmp(cause, cause_name(CAUSE_EXIT)))
		snprintf(out, size, "exited with status %d", status);
	else
		snprintf(out, size, "%s", *summary ? summary : cause);
	return out;
}

static void build_run_output(struct exec_reader *r, unsigned stream, uint64_t offset,
			     const char *bytes, size_t n)
{
	(void)offset;
	build_log_output(loop_owner(r, struct build, reader), stream, bytes, n);
}

static void build_run_over(struct exec_reader *r, json_t *record, const struct err *e)
{
	struct build *b = loop_owner(r, struct build, reader);
	char why[200];

	b->tapped = 0;
	build_log_flush(b);
	if (!record)
		build_fail_err(b, e);
	else if (build_cause(b, record, why, sizeof(why)))
		build_fail(b, "%s", why);
	else
		build_make_layer(b);
}

static const char **build_words(const struct build *b)
{
	const json_t *args = json_object_get(b->step, "args"),
		     *shell = json_object_get(b->step, "shell"), *word;
	int exec = json_is_true(json_object_get(b->step, "exec"));
	const char **argv =
		calloc(json_array_size(args) + json_array_size(shell) + 3, sizeof(*argv));
	size_t n = 0, i;

	if (!argv)
		abort();
	if (!exec && json_array_size(shell)) {
		json_array_foreach(shell, i, word) argv[n++] = json_string_value(word);
	} else if (!exec) {
		argv[n++] = "/bin/sh";
		argv[n++] = "-c";
	}
	json_array_foreach(args, i, word) argv[n++] = json_string_value(word);
	return argv;
}

static void build_run_start(struct build *b)
{
	static const struct exec_reader_events on = { .output = build_run_output,
						      .over = build_run_over };
	const json_t *stage = build_stage(b);
	const char *who = build_text(b->step, "user"), *cwd = build_text(stage, "workdir");
	struct box *box = fleet_find(b->all->fleet, b->box.id);
	char home[300], user[80];
	const char *usual[] = { "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
				home, user, NULL };
	auto_free const char **argv = build_words(b);
	const char **env = build_env(stage);
	struct build_user as;
	struct exec *r;
	struct err e;
	int done = -1;

	if (!box)
		err_set(&e, ERR_NOT_FOUND, "the build box has ended");
	else if (build_find_user(b, *who ? who : build_text(stage, "user"), &as, &e) == 0) {
		struct exec_spec want = { .argv = argv,
					  .env = env,
					  .usual = usual,
					  .cwd = *cwd ? cwd : "/",
					  .kind = STORE_RUN_EXEC,
					  .helper = 1,
					  .wall_ms = (uint32_t)b->all->conf.step_ms,
					  .has_ids = 1,
					  .uid = (uint16_t)as.uid,
					  .gid = (uint16_t)as.gid };

		snprintf(home, sizeof(home), "HOME=%s", as.home);
		snprintf(user, sizeof(user), "USER=%s", as.name);
		exec_reader_init(&b->reader, b->all->fleet, &on);
		done = exec_launch(box, &want, &b->reader, &r, &e);
	}
	build_env_free(env);
	if (done < 0)
		build_fail_err(b, &e);
	else
		b->tapped = 1;
}

/* ---- before the command: sources of apt-get, the working folder, the files of its secrets ---- */

static void build_run_secret(struct build *b, size_t i);

static void build_run_secret_done(struct file_client *c, uint16_t flags)
{
	struct build *b = loop_owner(c, struct build_box, files)->build;

	(void)flags;
	build_run_secret(b, b->box.tries);
}

/* box.tries counts them: the wait for egress has ended. */
static void build_run_secret(struct build *b, size_t i)
{
	static const struct file_client_events on = { .done = build_run_secret_done,
						      .failed = build_box_failed };
	const char *id = json_string_value(json_array_get(json_object_get(b->step, "secrets"), i)),
		   *value = id ? json_string_value(json_object_get(b->secrets, id)) : NULL;
	struct wire_put put = { .mode = 0444 };
	char path[300];

	if (!id) {
		build_run_start(b);
		return;
	}
	if (!value) {
		build_fail(b, "there is no secret '%.60s'; give it with the build", id);
		return;
	}
	b->box.tries = (unsigned)i + 1;
	b->box.files.on = &on;
	snprintf(path, sizeof(path), "/run/secrets/%.200s", id);
	file_client_put(&b->box.files, &put, path, value, strlen(value));
}

static void build_run_folder_made(struct file_client *c, uint16_t flags)
{
	(void)flags;
	build_run_secret(loop_owner(c, struct build_box, files)->build, 0);
}

static void build_run_prepared(struct build *b)
{
	static const struct file_client_events on = { .done = build_run_folder_made,
						      .failed = build_box_failed };
	const char *cwd = build_text(build_stage(b), "workdir");
	struct wire_put put = { .mode = 0755 };

	if (!*cwd || !strcmp(cwd, "/")) {
		build_run_secret(b, 0);
		return;
	}
	b->box.files.on = &on;
	file_client_ask(&b->box.files, WIRE_MKDIR, &put, sizeof(put), cwd, strlen(cwd));
}

void build_run(struct build *b)
{
	build_apt(b, build_run_prepared);
}

/* ---- the layer ---- */

int build_keep_layer(struct build *b, const struct wire_layer *l, char out[WIRE_LAYER_ID])
{
	struct store_layer row = { .used_ns = fleet_now_ns(), .bytes = l->bytes };
	struct err e;

	snprintf(row.id, sizeof(row.id), "%.64s", l->id);
	if (store_layer_put(b->all->fleet->store, &row, &e) < 0) {
		build_fail_err(b, &e);
		return -1;
	}
	snprintf(out, WIRE_LAYER_ID, "%s", row.id);
	return 0;
}

static void build_on_layer(void *ctx, const struct frame *f, size_t len, int *fd,
			   const struct err *e)
{
	const struct wire_layer *l = (const struct wire_layer *)f;
	struct build *b = ctx;
	char id[WIRE_LAYER_ID];

	(void)len;
	(void)fd;
	b->asking = NULL;
	if (!f) {
		build_fail_err(b, e);
		return;
	}
	if (build_keep_layer(b, l, id) < 0)
		return;
	build_box_close(&b->box);
	b->layered(b, id, l->files);
}

void build_make_layer_of(struct build *b, const char *box,
			 void (*made)(struct build *b, const char *layer, uint64_t files))
{
	struct wire_layer_make ask = { .head = sock_head(WIRE_LAYER_MAKE, 0),
				       .bytes_most = b->all->conf.disk_bytes,
				       .files_most = BUILD_FILES };

	ask.head.flags = WIRE_LAYER_UPPER;
	snprintf(ask.box, sizeof(ask.box), "%s", box);
	b->layered = made;
	b->asking = keeper_client_request(&b->all->fleet->keeper, &ask, sizeof(ask), WIRE_LAYER,
					  build_on_layer, b);
}

void build_make_layer_then(struct build *b,
			   void (*made)(struct build *b, const char *layer, uint64_t files))
{
	if (b->box.has_files)
		file_client_close(&b->box.files);
	b->box.has_files = 0;
	build_make_layer_of(b, b->box.id, made);
}

static void build_step_layered(struct build *b, const char *layer, uint64_t files)
{
	(void)files;
	build_step_done(b, layer);
}

void build_make_layer(struct build *b)
{
	build_make_layer_then(b, build_step_layered);
}
