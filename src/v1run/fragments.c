/* fragments.c - see fragments.h. */
#include "v1run/fragments.h"
#include "v1box/boxes.h"
#include "v1box/file_request.h"
#include "v1box/ports.h"
#include "v1run/run_request.h"
#include "v1run/fragment.h"
#include "api/quota.h"
#include "v1run/fragment_cell.h"
#include "v1run/fragment_server.h"
#include "v1run/fragment_spare.h"
#include "base/cleanup.h"
#include "client/file_client.h"
#include "record/record.h"
#include "fleet/exec.h"
#include "template/build.h"
#include "template/templates.h"

#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum {
	LIFETIME_MS = 10 * 60 * 1000,
	TREE_DEPTH = 16,
	TREE_ENTRIES = 5000,
	CONTENT_MAX = 4 * 1024 * 1024,
	TRACE_MAX = 64 * 1024,
};

const struct field fragments_tree_query[] = {
	{ "path", FIELD_TEXT, 0, 0, 4000, "the folder to list (default /home/user)", NULL },
	{ "depth", FIELD_INT, 0, 1, 64, "levels of folders (default 16)", NULL },
	{ "hidden", FIELD_BOOL, 0, 0, 0, "include folders such as node_modules and .git", NULL },
	{ 0 },
};
const struct field fragments_read_query[] = {
	{ "path", FIELD_TEXT, 1, 0, 4000, "path of the file", NULL },
	{ 0 },
};
const struct field fragments_write_fields[] = {
	{ "path", FIELD_TEXT, 1, 0, 4000, "path of the file; parent folders are created", NULL },
	{ "content", FIELD_ANY, 1, 0, 0, "text of the file", NULL },
	{ 0 },
};

/* ---- the result of a fragment, in the format of front ends ---- */

static const char *template_of(const struct call *c)
{
	return json_string_value(json_object_get(json_object_get(c->body, "metadata"), "template"));
}

/* The last line that is not empty. */
static const char *last_line(const char *s, size_t *out_n)
{
	const char *end = s + strlen(s), *from;

	while (end > s && isspace((unsigned char)end[-1]))
		end--;
	for (from = end; from > s && from[-1] != '\n'; from--)
		;
	*out_n = (size_t)(end - from);
	return from;
}

/* "NameError: name 'x' is not defined" has a name; "Segmentation fault" has none. */
static size_t name_length(const char *line, size_t n)
{
	size_t i = 0;

	while (i < n && (isalnum((unsigned char)line[i]) || strchr("._", line[i])))
		i++;
	return i > 0 && i + 1 < n && line[i] == ':' && line[i + 1] == ' ' ? i : 0;
}

static json_t *truncate_text(const char *s, size_t n)
{
	json_t *text = json_stringn(s, n < TRACE_MAX ? n : TRACE_MAX);

	return text ? text : json_string(""); /* the text was cut within a character, or
					       * is missing */
}

static json_t *runtime_error(const json_t *record)
{
	const char *cause = json_string_value(json_object_get(record, "cause")),
		   *summary = json_string_value(json_object_get(record, "summary")),
		   *step = json_string_value(json_object_get(record, "step")),
		   *hint = json_string_value(json_object_get(record, "hint")),
		   *trace = json_string_value(json_object_get(record, "stderr")), *line;
	size_t n, name;
	json_t *e = json_object();

	trace = trace && !json_object_get(record, "stderr_encoding") ? trace : "";
	line = last_line(trace, &n);
	name = name_length(line, n);
	json_object_set_new(e, "traceback", truncate_text(trace, strlen(trace)));
	if (strcmp(cause, "exit") != 0 || !n) { /* the cause is more helpful than the output */
		json_object_set_new(e, "name", json_string(cause));
		json_object_set_new(e, "value", json_string(summary ? summary : "it failed"));
	} else if (name && !strcmp(step, "run")) {
		json_object_set_new(e, "name", truncate_text(line, name));
		json_object_set_new(e, "value", truncate_text(line + name + 2, n - name - 2));
	} else if (hint && !strcmp(step, "install")) { /* a last line of pip or npm says less */
		json_object_set_new(e, "name", json_string(step));
		json_object_set_new(e, "value", json_string(hint));
	} else {
		json_object_set_new(e, "name", json_string(!strcmp(step, "run") ? "exit" : step));
		json_object_set_new(e, "value", truncate_text(line, n));
	}
	return e;
}

/* Front ends expect an array of pieces; this one has a single piece. */
static void set_pieces(json_t *doc, const json_t *record, const char *name)
{
	json_t *all = json_array(), *text = json_object_get(record, name), *coding;
	char key[32];

	if (json_string_length(text))
		json_array_append(all, text);
	json_object_set_new(doc, name, all);
	snprintf(key, sizeof(key), "%s_encoding", name);
	coding = json_object_get(record, key);
	if (coding)
		json_object_set(doc, key, coding);
}

static void tell_results(struct call *c, json_t *take_record)
{
	json_t *doc = json_pack("{s:O, s:s, s:[], s:O, s:O, s:O, s:O}", "sbxId",
				json_object_get(take_record, "box"), "template", template_of(c),
				"cellResults", "exitCode", json_object_get(take_record, "status"),
				"cause", json_object_get(take_record, "cause"), "truncated",
				json_object_get(take_record, "truncated"), "run",
				json_object_get(take_record, "id"));

	set_pieces(doc, take_record, "stdout");
	set_pieces(doc, take_record, "stderr");
	if (json_integer_value(json_object_get(take_record, "status")) != 0)
		json_object_set_new(doc, "runtimeError", runtime_error(take_record));
	json_decref(take_record);
	call_json(c, 200, doc);
}

/* ---- the box ---- */

struct fragment_run {
	struct call *call;
	struct box_wait made;
	struct exec_wait old; /* the server of the previous version */
	char box[ID_MAX + 1];
};

static void fragment_run_dropped(struct call *c)
{
	struct fragment_run *s = c->state;

	box_wait_cancel(&s->made);
	exec_wait_cancel(&s->old);
}

/* Files and packages are in place: run the code. */
static void fragments_run_cell(struct call *c, json_t *take_record)
{
	const char *box = json_string_value(json_object_get(take_record, "box"));
	struct box *b = box ? fleet_find(&c->api->fleet, box) : NULL;

	if (json_integer_value(json_object_get(take_record, "status")) != 0 || !b) {
		tell_results(c, take_record);
		return;
	}
	json_decref(take_record);
	fragment_cell_run(c, b);
}

/* Writes the files of the fragment and installs its packages; surface->over() is called then. Returns
 * 0 if there is nothing to do. */
static int fragments_prepare(struct call *c, struct box *b, const struct run_callbacks *surface)
{
	json_t *files = json_object_get(c->body, "files"),
	       *install = json_object_get(c->body, "install"), *body;

	if (!json_object_size(files) && !install)
		return 0;
	body = json_pack("{s:O*, s:O*, s:[s]}", "files", files, "install", install, "command",
			 "/bin/true");
	run_request_in(c, b, &(struct run_request_spec){ .body = body, .surface = surface });
	json_decref(body);
	return 1;
}

static void plant_cell(struct call *c, struct box *b)
{
	static const struct run_callbacks surface = { .over = fragments_run_cell };

	if (!fragments_prepare(c, b, &surface))
		fragment_cell_run(c, b);
}

static const struct run_callbacks fragments_program = { .over = tell_results,
							.running = fragment_server_await };

/* The files are written. A server that has ended meanwhile is started again. */
static void fragments_on_updated(struct call *c, json_t *take_record)
{
	const char *id = json_string_value(json_object_get(take_record, "box"));
	struct box *b = id ? fleet_find(&c->api->fleet, id) : NULL;
	struct exec *server = b ? fragment_server_find(b) : NULL;

	if (json_integer_value(json_object_get(take_record, "status")) != 0 || !b) {
		tell_results(c, take_record);
		return;
	}
	json_decref(take_record);
	if (server)
		fragment_server_await(c, server);
	else
		run_request_in(c, b,
			       &(struct run_request_spec){ .body = c->body,
							   .surface = &fragments_program });
}

/* The server reads changed files by itself: it keeps running, and open pages are updated. */
static void fragments_update(struct fragment_run *s, struct box *b, const struct exec *server)
{
	static const struct run_callbacks surface = { .over = fragments_on_updated };

	s->call->drop = NULL;
	if (!fragments_prepare(s->call, b, &surface))
		fragment_server_await(s->call, server);
}

/* 1: this program serves the port of the request with the command of the request. */
static int fragments_is_server(const struct call *c, const struct box *b, const struct exec *r)
{
	const json_t *last = json_array_get(r->command, json_array_size(r->command) - 1);
	char server[ID_MAX + 1];

	if (!json_is_true(call_get(c, "reload")) || !json_equal(last, call_get(c, "command")))
		return 0;
	return !strcmp(r->tag, FRAGMENT_START) || /* it has one port */
	       (ports_server(b, (uint16_t)call_int(c, "port", 0), server) &&
		!strcmp(server, r->id));
}

static void fragments_start(struct fragment_run *s)
{
	struct call *c = s->call;
	struct box *b = fleet_find(&c->api->fleet, s->box);
	struct err e;

	c->drop = NULL;
	if (b && call_get(c, "cell_code")) {
		plant_cell(c, b);
		return;
	}
	if (b) {
		run_request_in(c, b,
			       &(struct run_request_spec){ .body = c->body,
							   .surface = &fragments_program });
		return;
	}
	err_set(&e, ERR_NOT_FOUND, "the box ended");
	call_fail(c, &e);
}

static void fragments_on_old_exit(struct exec_wait *w, json_t *record)
{
	(void)record;
	fragments_start(loop_owner(w, struct fragment_run, old));
}

/* Two servers cannot use the same port: kills the previous one first. */
static void fragments_settle(struct fragment_run *s, struct box *b)
{
	struct exec *old = json_object_get(s->call->body, "port") ? fragment_server_find(b) : NULL;

	call_hold(s->call, b);
	snprintf(s->box, sizeof(s->box), "%s", b->row.id);
	if (!old) {
		fragments_start(s);
		return;
	}
	if (fragments_is_server(s->call, b, old)) {
		fragments_update(s, b, old);
		return;
	}
	s->old.done = fragments_on_old_exit;
	exec_await(old, &s->old);
	exec_send_signal(old, SIGKILL);
}

static void box_made(struct box_wait *w, struct box *b, const struct err *e)
{
	struct fragment_run *s = loop_owner(w, struct fragment_run, made);

	if (e) {
		s->call->drop = NULL;
		call_fail(s->call, e);
		return;
	}
	call_audit(s->call, "box.create", b->row.id, "ok");
	fragments_settle(s, b);
}

/* Each request restarts the lifetime, so that a session in use does not end. */
static void fragments_renew(struct box *b)
{
	struct err e;

	box_wake(b);
	if (!b->row.lifetime_ms)
		return;
	b->row.ends_ns = fleet_now_ns() + (int64_t)b->row.lifetime_ms * 1000000;
	(void)!box_changed(b, &e); /* if the disk is full, the old end applies after a restart */
}

static const char *fragments_dup(struct call *c, const json_t *doc, const char *name)
{
	const json_t *v = json_object_get(doc, name);

	return json_string_length(v)
		       ? http_strdup(c->req, json_string_value(v), json_string_length(v))
		       : NULL;
}

/* A template that the team has built or may use, else one of builtin.h. */
static int fragments_find(void *ctx, const char *name, struct fragment_template *out, struct err *e)
{
	struct call *c = ctx;
	struct template_found f;
	json_t *settings;
	struct err no;

	if (template_resolve(c->api->store, c->who.team, name, &f, &no) < 0) {
		(void)template_first_use(c->api->builds, c->who.team, name,
					 &no); /* for the next request */
		return builtin_template_find(name) || no.kind == ERR_NOT_FOUND
			       ? fragment_builtin(NULL, name, out, e)
			       : err_set(e, no.kind, "%s", no.msg);
	}
	if (f.builtin) {
		template_found_fini(&f);
		return fragment_builtin(NULL, name, out, e);
	}
	if (!builtin_template_find(name) || fragment_builtin(NULL, name, out, e) < 0)
		*out = (struct fragment_template){ .language = "python" };
	settings = json_loads(f.build.settings, 0, NULL);
	out->name = out->reference = http_strdup(c->req, name, strlen(name));
	out->start_any = out->start; /* of builtin.h: for the port in $PORT */
	out->start = fragments_dup(c, settings, "start");
	out->port = (unsigned)json_integer_value(json_object_get(settings, "port"));
	out->file = fragments_dup(c, settings, "file");
	if (!out->start)
		out->port = 0;
	json_decref(settings);
	template_found_fini(&f);
	return 0;
}

static int fragments_translate(struct call *c, struct box_spec *out, struct err *e)
{
	uint64_t max = quota_max_lifetime_ms(c->api, c->who.team);
	json_t *native = fragment_translate(c->body, fragments_find, c, e);

	if (!native)
		return -1;
	/* This lifetime is a default and not part of the request, so it is lowered to the allowed
	 * maximum. */
	json_object_set_new(native, "lifetime_ms",
			    json_integer(max && max < LIFETIME_MS ? (json_int_t)max : LIFETIME_MS));
	json_decref(c->body);
	c->body = native; /* from here on it has the fields of a /v1 request */
	return box_spec_read(c, out, e);
}

void fragments_run(struct call *c)
{
	struct box_spec want;
	struct fragment_run *s;
	struct isolation_ask ask;
	struct box *b;
	struct err e;

	if (fragments_translate(c, &want, &e) < 0) {
		call_error(c, 400, "invalid", e.msg, NULL, "the fields are in /openapi.json");
		return;
	}
	b = want.row.session[0] ? fleet_session(&c->api->fleet, c->who.team, want.row.session,
						want.row.template)
				: NULL;
	ask = box_isolation(&want);
	if (b && isolation_accepts(&c->api->fleet, &ask, &b->row, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	s = call_alloc(c, sizeof(*s));
	*s = (struct fragment_run){ .call = c, .made.done = box_made };
	c->state = s;
	c->drop = fragment_run_dropped;
	if (b && b->state == BOX_MAKING) {
		box_await(b, &s->made);
		return;
	}
	if (b) {
		fragments_renew(b);
		fragments_settle(s, b);
		return;
	}
	if (!quota_box(c))
		return;
	b = fragment_spare_take(c, &want);
	if (b) {
		call_audit(c, "box.create", b->row.id, "ok");
		fragments_settle(s, b);
		return;
	}
	if (box_create(&c->api->fleet, &want, &s->made, &b, &e) < 0) {
		c->drop = NULL;
		call_fail(c, &e);
	}
}

/* ---- files: what they share ---- */

struct leaf { /* a file client that works for one call */
	struct file_client file_client;
	struct call *call;
	char path[4096 + sizeof(BOX_HOME)];
	struct buf bytes;
	int too_large;
	/* for the tree */
	json_t *root;
	struct fragments_folder *first,
		*last; /* folders to be listed; the first one is being listed */
	unsigned entries, depth;
	int hidden, truncated;
};

struct fragments_folder {
	struct fragments_folder *next;
	json_t *node; /* of root, borrowed */
	unsigned depth;
	char path[]; /* bytes as in the box; the text of the node is valid UTF-8 */
};

static void next_folder(struct leaf *l)
{
	struct fragments_folder *f = l->first;

	l->first = f->next;
	if (!l->first)
		l->last = NULL;
	free(f);
}

static void leaf_dropped(struct call *c)
{
	struct leaf *l = c->state;

	file_client_close(&l->file_client);
	buf_fini(&l->bytes);
	json_decref(l->root);
	while (l->first)
		next_folder(l);
}

static void leaf_failed(struct file_client *k, const struct err *e)
{
	struct leaf *l = loop_owner(k, struct leaf, file_client);

	file_client_close(&l->file_client);
	call_fail(l->call, e);
}

/* Answers 404 itself and returns NULL if the box does not exist. */
static struct leaf *leaf_new(struct call *c, const char *path, const struct file_client_events *on)
{
	struct box *b = call_box(c, 0);
	struct leaf *l;

	if (!b || !file_request_path(c, *path ? path : BOX_HOME))
		return NULL;
	l = call_alloc(c, sizeof(*l));
	memset(l, 0, sizeof(*l));
	l->call = c;
	snprintf(l->path, sizeof(l->path), "%s%s%s", *path == '/' ? "" : BOX_HOME,
		 *path && *path != '/' ? "/" : "", path);
	c->state = l;
	c->drop = leaf_dropped;
	file_client_open(&l->file_client, &b->line, 0, on);
	return l;
}

/* ---- the content of a file ---- */

static void read_ready(struct file_client *k)
{
	struct leaf *l = loop_owner(k, struct leaf, file_client);
	struct wire_get ask = { .bytes = CONTENT_MAX + 1 };

	file_client_ask(k, WIRE_GET, &ask, sizeof(ask), l->path, strlen(l->path));
}

static void read_data(struct file_client *k, const char *bytes, size_t n)
{
	struct leaf *l = loop_owner(k, struct leaf, file_client);
	json_t *doc;

	buf_add(&l->bytes, bytes, n);
	if (n && l->bytes.len <= CONTENT_MAX)
		return;
	file_client_close(k);
	if (l->bytes.len > CONTENT_MAX) {
		call_error(l->call, 413, "limit", "this file has more than 4 MiB", l->path, NULL);
		return;
	}
	doc = json_object();
	json_object_set_new(doc, "path", json_text(l->path));
	record_set_output(doc, "content", &l->bytes);
	call_json(l->call, 200, doc);
}

void fragments_read(struct call *c)
{
	static const struct file_client_events on = { .ready = read_ready,
						      .data = read_data,
						      .failed = leaf_failed };

	(void)leaf_new(c, call_query(c, "path"), &on);
}

static void write_ready(struct file_client *k)
{
	struct leaf *l = loop_owner(k, struct leaf, file_client);
	const json_t *text = call_get(l->call, "content");
	struct wire_put put = { .mode = 0 };

	file_client_put(k, &put, l->path, json_string_value(text), json_string_length(text));
}

static void write_done(struct file_client *k, uint16_t flags)
{
	struct leaf *l = loop_owner(k, struct leaf, file_client);
	struct call *c = l->call;

	(void)flags;
	file_client_close(k);
	call_json(c, 200,
		  json_pack("{s:o, s:I}", "path", json_text(l->path), "size",
			    (json_int_t)json_string_length(call_get(c, "content"))));
}

void fragments_write(struct call *c)
{
	static const struct file_client_events on = { .ready = write_ready,
						      .done = write_done,
						      .failed = leaf_failed };

	if (!*call_text(c, "path", ""))
		call_error(c, 400, "invalid", "path: must not be empty", NULL, NULL);
	else if (!json_is_string(call_get(c, "content")))
		call_error(c, 400, "invalid", "content: must be a string", NULL, NULL);
	else
		(void)leaf_new(c, call_text(c, "path", ""), &on);
}

/* ---- the tree ---- */

/* Folders that tools create, such as caches. */
static int is_hidden(const char *name)
{
	static const char *const names[] = { "node_modules", "__pycache__", "venv" };

	for (unsigned i = 0; i < ARRAY_LEN(names); i++)
		if (!strcmp(name, names[i]))
			return 1;
	return name[0] == '.';
}

static const char *kind_of(uint32_t mode)
{
	return S_ISDIR(mode)   ? "directory"
	       : S_ISREG(mode) ? "file"
	       : S_ISLNK(mode) ? "link"
			       : "other";
}

static json_t *node_of(const char *path, uint32_t mode)
{
	const char *slash = strrchr(path, '/');

	return json_pack("{s:o, s:o, s:s}", "name", json_text(slash[1] ? slash + 1 : path), "path",
			 json_text(path), "type", kind_of(mode));
}

static void add_folder(struct leaf *l, json_t *node, const char *path, unsigned depth)
{
	struct fragments_folder *f = malloc(sizeof(*f) + strlen(path) + 1);

	if (!f)
		abort();
	*f = (struct fragments_folder){ .node = node, .depth = depth };
	memcpy(f->path, path, strlen(path) + 1);
	json_object_set_new(node, "children", json_array());
	if (l->last)
		l->last->next = f;
	else
		l->first = f;
	l->last = f;
}

static void look_into_first(struct leaf *l)
{
	struct wire_list ask = { .max = TREE_ENTRIES - l->entries + 1, .depth = 1 };

	if (l->first && l->entries < TREE_ENTRIES) {
		file_client_ask(&l->file_client, WIRE_LIST, &ask, sizeof(ask), l->first->path,
				strlen(l->first->path));
		return;
	}
	l->truncated |= l->first != NULL;
	file_client_close(&l->file_client);
	json_object_set_new(l->root, "truncated", json_boolean(l->truncated));
	call_json(l->call, 200, json_incref(l->root));
}

static void tree_ready(struct file_client *k)
{
	look_into_first(loop_owner(k, struct leaf, file_client));
}

static void tree_entry(struct file_client *k, const struct wire_entry *e, const char *name,
		       size_t n)
{
	struct leaf *l = loop_owner(k, struct leaf, file_client);
	struct fragments_folder *in = l->first;
	size_t len = strnlen(name, n); /* the target of a link follows its name */
	char path[8192];
	json_t *node;

	snprintf(path, sizeof(path), "%s%s%.*s", in->path, strcmp(in->path, "/") ? "/" : "",
		 (int)len, name);
	if (!l->hidden && S_ISDIR(e->mode) && is_hidden(strrchr(path, '/') + 1))
		return;
	if (l->entries >= TREE_ENTRIES) {
		l->truncated = 1;
		return;
	}
	l->entries++;
	node = node_of(path, e->mode);
	json_object_set_new(node, "size", json_integer((json_int_t)e->size));
	if (S_ISDIR(e->mode) && in->depth < l->depth)
		add_folder(l, node, path, in->depth + 1);
	json_array_append_new(json_object_get(in->node, "children"), node);
}

static void tree_done(struct file_client *k, uint16_t flags)
{
	struct leaf *l = loop_owner(k, struct leaf, file_client);

	l->truncated |= flags & WIRE_DONE_TRUNCATED;
	next_folder(l);
	look_into_first(l);
}

/* A folder that was deleted in between, or that may not be read, is returned without children. */
static void tree_failed(struct file_client *k, const struct err *e)
{
	struct leaf *l = loop_owner(k, struct leaf, file_client);

	if (k->post.fd < 0 || l->first->node == l->root) {
		leaf_failed(k, e);
		return;
	}
	next_folder(l);
	look_into_first(l);
}

void fragments_tree(struct call *c)
{
	static const struct file_client_events on = {
		.ready = tree_ready, .entry = tree_entry, .done = tree_done, .failed = tree_failed
	};
	const char *path = call_query(c, "path");
	struct leaf *l = leaf_new(c, path ? path : "", &on);

	if (!l)
		return;
	l->depth = (unsigned)call_query_int(c, "depth", TREE_DEPTH);
	l->hidden = call_query_flag(c, "hidden");
	l->root = node_of(l->path, S_IFDIR);
	add_folder(l, l->root, l->path, 1);
}
