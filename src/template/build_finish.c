/* build_finish.c - the end of a build: its default user, its merged root, and the trial of its start
 * command.
 *
 *   box of the layers -> users -> [/etc/passwd, /home/user, workdir] -> layer -> merged root
 *   [box of the root -> start command -> ready command or port] -> ready */
#include "template/build_internal.h"
#include "base/cleanup.h"
#include "fleet/box.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define USER_NAME "user"
#define USER_HOME "/home/user"
enum {
	USER_ID = 1000,
	POLL_MS = 300,
	TEST_MS = 120 * 1000, /* time limit of the test */
	ALIVE_MS = 1000,      /* a start command without a ready command runs at least this long */
	ALIVE_E2B_MS = 20000, /* as E2B waits */
	CHANGES = 8,
};

/* ---- files that are written with the file worker, one after another ---- */

struct build_change {
	uint8_t type;
	uint32_t mode, flags; /* flags: WIRE_PUT_* */
	unsigned uid, gid;
	char path[300];
	char *text; /* of a PUT */
};

struct build_changes {
	struct build_change v[CHANGES];
	unsigned n, at;
	void (*done)(struct build *b);
};

/* ---- the trial ---- */

struct build_trial {
	struct build *build;
	struct exec_reader start, ready; /* start: its output is logged */
	int starting, asking;            /* these readers are open */
	struct timer again, limit;
	struct build_changes changes;
	uint64_t began_ms;
	int found; /* the port listens */
};

static struct build_trial *build_trial_new(struct build *b, void (*again)(struct timer *),
					   void (*limit)(struct timer *))
{
	struct build_trial *t = calloc(1, sizeof(*t));

	if (!t)
		abort();
	t->build = b;
	timer_init(&t->again, b->all->fleet->loop, again);
	timer_init(&t->limit, b->all->fleet->loop, limit);
	return t;
}

void build_trial_free(struct build_trial *t)
{
	if (!t)
		return;
	if (t->starting)
		exec_reader_close(&t->start);
	if (t->asking)
		exec_reader_close(&t->ready);
	timer_fini(&t->again);
	timer_fini(&t->limit);
	for (unsigned i = 0; i < t->changes.n; i++)
		free(t->changes.v[i].text);
	free(t);
}

static const char *build_setting(const struct build *b, const char *name)
{
	return build_text(b->settings, name);
}

/* ---- writing ---- */

static void build_change_next(struct build *b);

static void build_change_done(struct file_client *c, uint16_t flags)
{
	struct build *b = loop_owner(c, struct build_box, files)->build;

	(void)flags;
	b->trial->changes.at++;
	build_change_next(b);
}

static void build_change_failed(struct file_client *c, const struct err *e)
{
	build_fail_err(loop_owner(c, struct build_box, files)->build, e);
}

static void build_change_next(struct build *b)
{
	static const struct file_client_events on = { .done = build_change_done,
						      .failed = build_change_failed };
	struct build_changes *all = &b->trial->changes;
	const struct build_change *x = &all->v[all->at];
	struct wire_put put = { .mode = x->mode, .flags = x->flags };
	struct wire_chown own = { .uid = x->uid, .gid = x->gid };

	if (all->at == all->n) {
		all->done(b);
		return;
	}
	b->box.files.on = &on;
	if (x->type == WIRE_PUT)
		file_client_put(&b->box.files, &put, x->path, x->text, strlen(x->text));
	else if (x->type == WIRE_MKDIR)
		file_client_ask(&b->box.files, WIRE_MKDIR, &put, sizeof(put), x->path,
				strlen(x->path));
	else
		file_client_ask(&b->box.files, WIRE_CHOWN, &own, sizeof(own), x->path,
				strlen(x->path));
}

static struct build_change *build_change_add(struct build *b, uint8_t type, const char *path,
					     uint32_t mode)
{
	struct build_change *x = &b->trial->changes.v[b->trial->changes.n++];

	*x = (struct build_change){ .type = type, .mode = mode };
	snprintf(x->path, sizeof(x->path), "%s", path);
	return x;
}

/* Appends a line to the text of a file. */
static void build_change_line(struct build *b, const char *path, const struct buf *file,
			      const char *line)
{
	struct build_change *x = build_change_add(b, WIRE_PUT, path, 0644);
	int ended = !file->len || file->p[file->len - 1] == '\n';

	x->text = buf_text("%s%s%s\n", buf_str(file), ended ? "" : "\n", line);
}

static void build_change_user(struct build *b, const char *name, unsigned id, const char *home)
{
	char line[200];
	struct build_change *own;

	snprintf(line, sizeof(line), "%.60s:x:%u:%u::%.60s:%s", name, id, id, home, "/bin/bash");
	build_change_line(b, "/etc/passwd", &b->passwd, line);
	snprintf(line, sizeof(line), "%.60s:x:%u:", name, id);
	build_change_line(b, "/etc/group", &b->group, line);
	build_change_add(b, WIRE_MKDIR, home, 0755);
	own = build_change_add(b, WIRE_CHOWN, home, 0);
	own->uid = own->gid = id;
}

/* ---- USER in E2B's builds ---- */

static void build_user_made(struct build *b)
{
	build_trial_free(b->trial);
	b->trial = NULL;
	build_make_layer(b);
}

/* The smallest id from 1000 on that no line of /etc/passwd has. */
static unsigned build_free_id(const struct build *b)
{
	unsigned id = USER_ID;
	struct build_user user;
	char text[12];
	struct err e;

	for (;; id++) {
		snprintf(text, sizeof(text), "%u", id);
		if (build_find_user(b, text, &user, &e) < 0 || !strcmp(user.name, text))
			return id;
	}
}

static int build_is_user_name(const char *name)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
	size_t n = strlen(name);

	return n > 0 && n <= 32 && strchr(letters, name[0]) &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") ==
		       n;
}

void build_user_step(struct build *b)
{
	char name[64], home[80];
	struct build_user user;
	struct err e;

	snprintf(name, sizeof(name), "%.60s", json_string_value(json_array_get(b->args, 0)));
	name[strcspn(name, ":")] = 0;
	if (build_find_user(b, name, &user, &e) == 0) {
		build_step_done(b, "");
		return;
	}
	if (!build_is_user_name(name)) {
		build_fail(b, "'%.60s' cannot be the name of a user", name);
		return;
	}
	b->trial = build_trial_new(b, NULL, NULL);
	b->trial->changes.done = build_user_made;
	snprintf(home, sizeof(home), "/home/%s", name);
	build_change_user(b, name, build_free_id(b), home);
	build_change_next(b);
}

/* ---- WORKDIR in E2B's builds ---- */

static const char *build_workdir_asked(struct build *b, struct buf *out)
{
	build_workdir(build_stage(b), json_string_value(json_array_get(b->args, 0)), out);
	return buf_str(out);
}

static void build_workdir_exists(struct file_client *c, const struct wire_entry *x,
				 const char *name, size_t n)
{
	struct build *b = loop_owner(c, struct build_box, files)->build;

	(void)name;
	(void)n;
	if (S_ISDIR(S_ISLNK(x->mode) ? x->target_mode : x->mode))
		build_step_done(b, "");
	else
		build_fail(b, "there is a file of that name");
}

/* It and its missing parents belong to the current user; of another user than `user`, it alone. */
static void build_workdir_missing(struct file_client *c, const struct err *e)
{
	struct build *b = loop_owner(c, struct build_box, files)->build;
	auto_buf struct buf path = { 0 };
	struct build_change *x;
	struct build_user user;
	struct err own;

	if (e->kind != ERR_NOT_FOUND) {
		build_fail_err(b, e);
		return;
	}
	if (build_find_user(b, build_text(build_stage(b), "user"), &user, &own) < 0) {
		build_fail_err(b, &own);
		return;
	}
	b->trial = build_trial_new(b, NULL, NULL);
	b->trial->changes.done = build_user_made;
	x = build_change_add(b, WIRE_MKDIR, build_workdir_asked(b, &path), 0755);
	x->flags = user.uid == USER_ID ? WIRE_PUT_USER : 0;
	if (user.uid && user.uid != USER_ID) {
		x = build_change_add(b, WIRE_CHOWN, buf_str(&path), 0);
		x->uid = user.uid;
		x->gid = user.gid;
	}
	build_change_next(b);
}

void build_workdir_step(struct build *b)
{
	static const struct file_client_events on = { .entry = build_workdir_exists,
						      .failed = build_workdir_missing };
	auto_buf struct buf path = { 0 };
	struct frame ask = { 0 };

	build_workdir_asked(b, &path);
	if (path.len >= sizeof(((struct build_change *)0)->path)) {
		build_fail(b, "the path has %zu bytes, which is too long", path.len);
		return;
	}
	b->box.files.on = &on;
	file_client_ask(&b->box.files, WIRE_ENTRY_OF, &ask, sizeof(ask), path.p, path.len);
}

/* ---- the trial: start and ready command ---- */

static void build_tried(struct build *b)
{
	build_box_close(&b->box);
	build_trial_free(b->trial);
	b->trial = NULL;
	build_succeed(b);
}

static void build_test_said(struct exec_reader *r, unsigned stream, uint64_t offset,
			    const char *bytes, size_t n)
{
	(void)offset;
	build_log_output(loop_owner(r, struct build_trial, ready)->build, stream, bytes, n);
}

static void build_test_exited(struct exec_reader *r, json_t *record, const struct err *e)
{
	struct build_trial *t = loop_owner(r, struct build_trial, ready);
	struct build *b = t->build;
	char why[200];

	t->asking = 0;
	build_log_flush(b);
	if (record && !build_cause(b, record, why, sizeof(why)))
		build_tried(b);
	else
		build_fail(b, "the test '%.100s' %s; its output: %.400s",
			   build_text(b->definition, "test"), record ? why : e->msg,
			   buf_str(&b->said));
}

static int build_trial_exec(struct build_trial *t, const char *command, struct exec_reader *reader,
			    uint32_t wall_ms, const struct exec_reader_events *on, struct err *e);

/* The start command is ready: executes the test of the definition in the same box. */
static void build_ready(struct build *b)
{
	static const struct exec_reader_events on = { .output = build_test_said,
						      .over = build_test_exited };
	const char *test = build_text(b->definition, "test");
	struct err e;

	if (!*test) {
		build_tried(b);
		return;
	}
	build_log(b, "info", "testing '%.200s'", test);
	build_log_flush(b);
	buf_cut(&b->said, 0);
	if (build_trial_exec(b->trial, test, &b->trial->ready, TEST_MS, &on, &e) < 0)
		build_fail_err(b, &e);
	else
		b->trial->asking = 1;
}

static void build_trial_output(struct exec_reader *r, unsigned stream, uint64_t offset,
			       const char *bytes, size_t n)
{
	struct build_trial *t = loop_owner(r, struct build_trial, start);

	(void)offset;
	build_log_output(t->build, stream, bytes, n);
}

static void build_trial_exited(struct exec_reader *r, json_t *record, const struct err *e)
{
	struct build_trial *t = loop_owner(r, struct build_trial, start);
	char why[200] = "exited with status 0";

	t->starting = 0;
	if (record && !build_cause(t->build, record, why, sizeof(why)) &&
	    json_is_true(json_object_get(t->build->definition, "e2b"))) {
		build_log(t->build, "info", "the start command has ended"); /* which E2B permits */
		build_ready(t->build);
		return;
	}
	build_fail(t->build,
		   "the start command '%.100s' %s before it was ready; its output: %.400s",
		   build_setting(t->build, "start"), record ? why : e->msg,
		   buf_str(&t->build->said));
}

/* The output of the ready command is the same at each attempt, and not logged. */
static void build_trial_asked_output(struct exec_reader *r, unsigned stream, uint64_t offset,
				     const char *bytes, size_t n)
{
	(void)r;
	(void)stream;
	(void)offset;
	(void)bytes;
	(void)n;
}

static void build_trial_asked(struct exec_reader *r, json_t *record, const struct err *e)
{
	struct build_trial *t = loop_owner(r, struct build_trial, ready);
	char why[200];

	(void)e;
	t->asking = 0;
	if (record && !build_cause(t->build, record, why, sizeof(why)))
		build_ready(t->build);
	else
		timer_set(&t->again, POLL_MS);
}

static int build_trial_exec(struct build_trial *t, const char *command, struct exec_reader *reader,
			    uint32_t wall_ms, const struct exec_reader_events *on, struct err *e)
{
	const struct build *b = t->build;
	const char *argv[] = { "/bin/sh", "-c", command, NULL }, *cwd = build_setting(b, "workdir");
	struct box *box = fleet_find(b->all->fleet, b->box.id);
	char home[300], user[80];
	const char *usual[] = { "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
				home, user, NULL };
	const char **env = build_env(b->settings);
	struct exec_spec want = { .argv = argv,
				  .env = env,
				  .usual = usual,
				  .cwd = *cwd ? cwd : "/",
				  .kind = STORE_RUN_EXEC,
				  .helper = 1,
				  .wall_ms = wall_ms,
				  .has_ids = 1,
				  .uid = (uint16_t)b->user.uid,
				  .gid = (uint16_t)b->user.gid };
	struct exec *r;
	int done;

	snprintf(home, sizeof(home), "HOME=%s", b->user.home);
	snprintf(user, sizeof(user), "USER=%s", b->user.name);
	exec_reader_init(reader, b->all->fleet, on);
	done = box ? exec_launch(box, &want, reader, &r, e)
		   : err_set(e, ERR_NOT_FOUND, "the build box has ended");
	build_env_free(env);
	return done;
}

static void build_trial_socket(struct file_client *c, const struct frame *f, size_t len)
{
	struct build *b = loop_owner(c, struct build_box, files)->build;

	(void)len;
	if (f->type == WIRE_SOCKET &&
	    ((const struct wire_socket *)f)->port ==
		    (uint32_t)json_integer_value(json_object_get(b->settings, "port")))
		b->trial->found = 1;
}

static void build_trial_sockets(struct file_client *c, uint16_t flags)
{
	struct build *b = loop_owner(c, struct build_box, files)->build;

	(void)flags;
	if (b->trial->found)
		build_ready(b);
	else
		timer_set(&b->trial->again, POLL_MS);
}

static void build_trial_poll(struct timer *t)
{
	static const struct exec_reader_events on_ready = { .output = build_trial_asked_output,
							    .over = build_trial_asked };
	static const struct file_client_events on_sockets = { .other = build_trial_socket,
							      .done = build_trial_sockets,
							      .failed = build_change_failed };
	struct build_trial *x = loop_owner(t, struct build_trial, again);
	struct build *b = x->build;
	struct wire_get ask = { .head.flags = WIRE_SOCKETS_BRIEF };
	struct err e;

	if (*build_setting(b, "ready")) {
		if (build_trial_exec(x, build_setting(b, "ready"), &x->ready,
				     (uint32_t)b->all->conf.ready_ms, &on_ready, &e) < 0)
			build_fail_err(b, &e);
		else
			x->asking = 1;
	} else if (json_integer_value(json_object_get(b->settings, "port"))) {
		b->box.files.on = &on_sockets;
		file_client_ask(&b->box.files, WIRE_SOCKETS, &ask.head, sizeof(ask.head), NULL, 0);
	} else {
		build_ready(b); /* it has been running long enough */
	}
}

static void build_trial_late(struct timer *t)
{
	struct build *b = loop_owner(t, struct build_trial, limit)->build;
	const char *ready = build_setting(b, "ready");

	build_fail(b, "the template was not ready after %llu s (templates.ready_timeout): %s%.200s",
		   (unsigned long long)(b->all->conf.ready_ms / 1000),
		   *ready ? "the ready command did not succeed: " : "its port does not answer",
		   ready);
}

static void build_trial_box(struct build_box *x)
{
	static const struct exec_reader_events on = { .output = build_trial_output,
						      .over = build_trial_exited };
	struct build *b = x->build;
	struct build_trial *t = b->trial;
	int asked = *build_setting(b, "ready") ||
		    json_integer_value(json_object_get(b->settings, "port"));
	struct err e;

	if (*build_setting(b, "start")) {
		if (build_trial_exec(t, build_setting(b, "start"), &t->start, 0, &on, &e) < 0) {
			build_fail_err(b, &e);
			return;
		}
		t->starting = 1;
	}
	timer_set(&t->limit, b->all->conf.ready_ms);
	timer_set(&t->again, asked || !t->starting                                 ? 1
			     : json_is_true(json_object_get(b->definition, "e2b")) ? ALIVE_E2B_MS
										   : ALIVE_MS);
}

static void build_merged(struct build *b, const char *root)
{
	snprintf(b->row.root, sizeof(b->row.root), "%s", root);
	if (!*build_setting(b, "start") && !*build_setting(b, "ready") &&
	    !*build_text(b->definition, "test")) {
		build_succeed(b);
		return;
	}
	if (*build_setting(b, "start"))
		build_log(b, "info", "starting '%.200s'", build_setting(b, "start"));
	buf_cut(&b->said, 0);
	b->trial = build_trial_new(b, build_trial_poll, build_trial_late);
	build_box_open(&b->box, root, 1, b->row.disk_bytes, b->all->conf.ready_ms, build_trial_box);
}

/* ---- settings ---- */

static void build_make_settings(struct build *b)
{
	static const char *const copied[] = { "start",   "ready",      "port", "labels",
					      "lib",     "file",       "pool", "instructions",
					      "missing", "description" };
	const json_t *stage = build_stage(b);
	const char *workdir = build_text(b->definition, "workdir"), *name;
	json_t *env = json_deep_copy(json_object_get(stage, "env")), *v;

	json_object_foreach(json_object_get(b->definition, "env"), name, v)
		json_object_set(env, name, v);
	if (!*workdir)
		workdir = build_text(stage, "workdir");
	if (!*workdir)
		workdir = b->user.home;
	json_decref(b->settings);
	b->settings =
		json_pack("{s:o, s:s, s:i, s:i, s:s, s:s, s:O}", "env", env, "user", b->user.name,
			  "uid", (int)b->user.uid, "gid", (int)b->user.gid, "home", b->user.home,
			  "workdir", workdir, "base", json_object_get(stage, "base"));
	for (unsigned i = 0; i < ARRAY_LEN(copied); i++) {
		v = json_object_get(b->definition, copied[i]);
		if (v && !json_is_null(v))
			json_object_set(b->settings, copied[i], v);
	}
}

static void build_user_layered(struct build *b, const char *layer, uint64_t files)
{
	json_t *layers = json_object_get(build_stage(b), "layers");

	(void)files;
	json_array_append_new(layers, json_string(layer));
	if (build_save(b) == 0)
		build_root(b, build_stage(b), 1, build_merged);
}

static void build_user_written(struct build *b)
{
	build_trial_free(b->trial);
	b->trial = NULL;
	build_make_layer_then(b, build_user_layered);
}

/* The default user: that of the definition, of USER, or with the id 1000; created if there is none. */
static int build_choose_user(struct build *b, int *out_created, struct err *e)
{
	const char *who = build_text(b->definition, "user");
	char id[12];

	if (!*who)
		who = build_text(build_stage(b), "user");
	*out_created = 0;
	if (*who && build_find_user(b, who, &b->user, e) < 0)
		return -1;
	snprintf(id, sizeof(id), "%d", USER_ID);
	if (*who)
		return 0;
	if (build_find_user(b, id, &b->user, e) < 0)
		return -1;
	if (strcmp(b->user.name, id) != 0)
		return 0;
	*out_created = 1;
	b->user = (struct build_user){
		.uid = USER_ID, .gid = USER_ID, .name = USER_NAME, .home = USER_HOME
	};
	return 0;
}

static void build_users_known(struct build *b)
{
	struct build_change *own;
	const char *workdir;
	struct err e;
	int created;

	if (build_choose_user(b, &created, &e) < 0) {
		build_fail_err(b, &e);
		return;
	}
	build_make_settings(b);
	b->trial = build_trial_new(b, NULL, NULL);
	b->trial->changes.done = build_user_written;
	if (created)
		build_change_user(b, USER_NAME, USER_ID, USER_HOME);
	workdir = build_setting(b, "workdir");
	if (strcmp(workdir, "/") != 0 && strcmp(workdir, b->user.home) != 0) {
		own = build_change_add(b, WIRE_MKDIR, workdir, 0755);
		own->uid = own->gid = 0;
	}
	if (b->trial->changes.n) {
		build_change_next(b);
		return;
	}
	build_trial_free(b->trial);
	b->trial = NULL;
	build_box_close(&b->box);
	build_root(b, build_stage(b), 1, build_merged);
}

static void build_finish_box(struct build_box *x)
{
	build_read_users(x->build, build_users_known);
}

static void build_finish_rooted(struct build *b, const char *root)
{
	build_box_open(&b->box, root, 0, 0, b->all->conf.ready_ms, build_finish_box);
}

void build_finish(struct build *b)
{
	buf_cut(&b->said, 0);
	b->number = b->steps + 1;
	build_root(b, build_stage(b), 0, build_finish_rooted);
}
