/* exec_start.c - starts an exec: variables, row, START; or restores one that another server
 * started. */
#include "fleet/exec_internal.h"
#include "fleet/box_secrets.h"
#include "base/cleanup.h"
#include "record/record.h"
#include "fleet/exec_reader.h"
#include "lang/lang.h"
#include "secret/vault.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Variables of the exec override those of the box; both override the default ones. */
static void add_env(struct buf *pool, unsigned *n, const char *name, size_t name_len,
		    const char *value)
{
	buf_add(pool, name, name_len);
	buf_putc(pool, '=');
	buf_add(pool, value, strlen(value) + 1);
	++*n;
}

static int is_set(const char *const *env, const char *name, size_t len)
{
	for (; env && *env; env++)
		if (!strncmp(*env, name, len) && (*env)[len] == '=')
			return 1;
	return 0;
}

/* A box with hosts of its own may reach the registries that its package managers use by default, so
 * the default variables that name none are left out. */
static int is_replaced(const struct box *b, const char *name, size_t len)
{
	static const char *const no_registry[] = { BOX_NO_REGISTRY_ENV, NULL };

	return (egress_client_asked(b) && is_set(no_registry, name, len)) ||
	       (egress_client_wanted(b) && is_set(b->fleet->conf.way_env, name, len));
}

/* Variables that make programs trust the certificate authority of their box. */
static const char *const trust_env[] = {
	"SSL_CERT_FILE=" BOX_SECRETS_CA,       "CURL_CA_BUNDLE=" BOX_SECRETS_CA,
	"REQUESTS_CA_BUNDLE=" BOX_SECRETS_CA,  "PIP_CERT=" BOX_SECRETS_CA,
	"NODE_EXTRA_CA_CERTS=" BOX_SECRETS_CA, "GIT_SSL_CAINFO=" BOX_SECRETS_CA,
	"CARGO_HTTP_CAINFO=" BOX_SECRETS_CA,   "AWS_CA_BUNDLE=" BOX_SECRETS_CA,
	"DENO_CERT=" BOX_SECRETS_CA,           NULL
};

struct merging {
	const struct box *of;
	const char *const *own; /* variables of the exec */
	json_t *box, *secrets;  /* variables of the box; its row.secrets */
	struct buf *pool;
	unsigned n;
	int has_user; /* merge_user() */
};

/* 1: merge_user() has added it. */
static int merge_is_user(const struct merging *m, const char *name)
{
	return m->has_user && (!strcmp(name, "PATH") || !strcmp(name, "HOME") ||
			       !strcmp(name, "USER") || !strcmp(name, "LOGNAME"));
}

/* Variables that all others override. defaults: and some are left out, if those of registries replace
 * them. */
static void merge_usual(struct merging *m, const char *const *list, int defaults)
{
	for (; list && *list; list++) {
		size_t len = strcspn(*list, "=");
		char key[64];

		snprintf(key, sizeof(key), "%.*s", (int)len, *list);
		if (!is_set(m->own, key, len) && !json_object_get(m->box, key) &&
		    !box_secrets_has(m->secrets, key) &&
		    !(defaults && (is_replaced(m->of, key, len) || merge_is_user(m, key))))
			add_env(m->pool, &m->n, key, len, *list + len + 1);
	}
}

/* The default variables that name the user, for a box whose template has another one. */
static void merge_user(struct merging *m)
{
	const struct box_user *u = &m->of->user;
	char path[400], home[300], name[80], login[80];
	const char *const own[] = { path, home, name, login, NULL };

	snprintf(path, sizeof(path), "PATH=%s/.local/bin:" BOX_PATH, u->home);
	snprintf(home, sizeof(home), "HOME=%s", u->home);
	snprintf(name, sizeof(name), "USER=%s", u->name);
	snprintf(login, sizeof(login), "LOGNAME=%s", u->name);
	merge_usual(m, own, 0);
	m->has_user = 1;
}

static void merge_box(struct merging *m)
{
	const char *name;
	json_t *value;

	json_object_foreach(m->box, name, value) if (json_is_string(value) &&
						     !is_set(m->own, name, strlen(name)) &&
						     !box_secrets_has(m->secrets, name))
		add_env(m->pool, &m->n, name, strlen(name), json_string_value(value));
}

/* So that spans of the program belong to the trace of the request. */
static void merge_trace(struct merging *m, const struct trace_context *trace)
{
	char text[sizeof("TRACEPARENT=") + TRACE_TEXT] = "TRACEPARENT=";
	const char *const own[] = { text, NULL };

	if (!trace->is_valid)
		return;
	trace_format(trace, text + strlen(text));
	merge_usual(m, own, 0);
}

/* *out is an array of n + 1 pointers into pool. */
static int merge_env(const struct box *b, const char *const *usual, const char *const *own,
		     const struct trace_context *trace, struct buf *pool, const char ***out,
		     struct err *e)
{
	struct merging m = { .of = b,
			     .own = own,
			     .box = b->row.env ? json_loads(b->row.env, 0, NULL) : NULL,
			     .secrets = box_secrets_any(b) ? json_loads(b->row.secrets, 0, NULL)
							   : NULL,
			     .pool = pool };
	int done;

	if (!usual && b->user.set)
		merge_user(&m);
	merge_usual(&m, usual ? usual : box_default_env, 1);
	merge_usual(&m, egress_client_wanted(b) ? b->fleet->conf.way_env : NULL, 0);
	merge_usual(&m, json_object_get(m.secrets, "ca") ? trust_env : NULL, 0);
	merge_trace(&m, trace);
	merge_box(&m);
	done = box_secrets_env(b, m.secrets, own, pool, &m.n, e);
	for (; own && *own; own++) {
		buf_add(pool, *own, strlen(*own) + 1);
		m.n++;
	}
	json_decref(m.box);
	json_decref(m.secrets);
	if (done < 0)
		return -1;
	*out = calloc(m.n + 1, sizeof(**out));
	if (!*out)
		abort();
	for (unsigned i = 0, at = 0; i < m.n; i++, at += (unsigned)strlen(pool->p + at) + 1)
		(*out)[i] = pool->p + at;
	return 0;
}

static json_t *words_json(const char *const *argv)
{
	json_t *all = json_array();

	for (; *argv; argv++)
		json_array_append_new(all, json_text(*argv));
	return all;
}

static struct exec *new_run(struct box *b, const char *id, uint32_t ref)
{
	struct exec *r = calloc(1, sizeof(*r));

	if (!r)
		abort();
	r->box = b;
	r->ref = ref;
	snprintf(r->id, sizeof(r->id), "%s", id);
	r->next = b->runs;
	b->runs = r;
	r->is_shared = b->nruns > 0;
	for (struct exec *other = r->next; other; other = other->next)
		other->is_shared |= !other->over;
	b->nruns++;
	b->starts++;
	r->seen = b->seen;
	r->began_ms = loop_now_ms();
	return r;
}

static void start_unmake(struct exec *r)
{
	struct box *b = r->box;

	b->runs = r->next; /* it is the newest in the list */
	b->nruns--;
	exec_free(r);
}

/* Bytes of each stream that init stores for later readers: 16 MiB, or a sixteenth of the memory of
 * a small box, because the log uses memory of the box. */
static uint64_t log_bytes(const struct box *b)
{
	enum { LEAST = 1 << 20, MOST = 16 << 20 };
	uint64_t share = b->row.limits.mem_bytes / 16;

	return !share || share > MOST ? MOST : share < LEAST ? LEAST : share;
}

static struct box_command box_words(const struct box *b, const struct exec_spec *want,
				    const char *const *env, int read)
{
	int ids = want->has_ids || (b->user.set && !want->root);
	uint16_t uid = want->has_ids ? want->uid : b->user.uid,
		 gid = want->has_ids ? want->gid : b->user.gid;
	int root = want->root || (ids && !uid && !gid);

	return (struct box_command){
		.argv = want->argv,
		.env = env,
		.cwd = want->cwd || !b->user.set ? want->cwd : b->user.workdir,
		.uid = uid,
		.gid = gid,
		.wall_ms = want->wall_ms,
		.rows = want->rows,
		.cols = want->cols,
		.log_bytes = want->log_bytes ? want->log_bytes : log_bytes(b),
		.credit = read ? EXEC_READER_WINDOW : 0,
		.flags = (uint16_t)(WIRE_START_NOTIFY | (want->pty ? WIRE_START_PTY : 0) |
				    (want->stdin_open ? WIRE_START_STDIN : 0) |
				    (root                                        ? WIRE_START_ROOT
				     : ids && (uid != BOX_UID || gid != BOX_UID) ? WIRE_START_IDS
										 : 0) |
				    (want->channel ? WIRE_START_CHANNEL : 0) |
				    (want->warm && (!ids || (uid == BOX_UID && gid == BOX_UID))
					     ? WIRE_START_WARM
					     : 0) |
				    (want->lone ? WIRE_START_LEADER_ONLY : 0) |
				    (read ? 0 : WIRE_START_DETACHED)),
	};
}

/* What is stored of the request for a replay. */
static json_t *start_request(const struct box *b, json_t *request)
{
	json_t *copy;

	if (!request || !box_secrets_any(b))
		return json_incref(request);
	copy = json_deep_copy(request);
	box_secrets_redact_json(b, copy);
	return copy;
}

static unsigned start_running(const struct box *b)
{
	unsigned n = 0;

	for (const struct exec *r = b->runs; r; r = r->next)
		n += !r->over;
	return n;
}

int exec_launch(struct box *b, const struct exec_spec *want, struct exec_reader *reader,
		struct exec **out, struct err *e)
{
	auto_secret struct buf pool = { 0 };
	auto_free const char **env = NULL;
	struct trace_context trace;
	struct box_command cmd;
	char id[ID_MAX + 1];
	struct exec *r;

	if (b->state != BOX_RUNNING)
		return err_set(e, ERR_CONFLICT, "box %s is %s", b->row.id,
			       box_state_name(b->state));
	/* Execs with this tag are in no list and in no usage count, so a client may not use it. */
	if (!want->helper && want->tag && !strcmp(want->tag, STORE_RUN_HELPER))
		return err_set(e, ERR_INVALID,
			       "tag: '%s' is used by the daemon; choose another one", want->tag);
	if (!want->helper && isolation_check_program(&b->row, want->argv[0], e) < 0)
		return -1;
	if (start_running(b) >= EXECS_PER_BOX)
		return err_set(e, ERR_LIMIT, "box %s already runs %d programs, the maximum",
			       b->row.id, EXECS_PER_BOX);
	trace_child(&trace, trace_current());
	if (want->id)
		snprintf(id, sizeof(id), "%s", want->id);
	if ((!want->id && id_new(id, e) < 0) ||
	    merge_env(b, want->usual, want->env, &trace, &pool, &env, e) < 0)
		return -1;
	r = new_run(b, id, init_conn_new_ref(&b->line));
	r->input_sure = 1;
	r->trace = trace;
	r->kind = want->kind;
	r->tty = want->pty;
	r->stdin_open = want->stdin_open || want->pty;
	r->wall_ms = want->wall_ms;
	r->cached = want->cached;
	r->command = words_json(want->argv);
	box_secrets_redact_json(b, r->command);
	r->started_ns = fleet_now_ns();
	r->lang = want->lang;
	snprintf(r->key, sizeof(r->key), "%s", want->key && *want->key ? want->key : b->row.key);
	snprintf(r->runtime, sizeof(r->runtime), "%s", want->lang ? want->lang->name : "");
	snprintf(r->tag, sizeof(r->tag), "%s",
		 want->helper ? STORE_RUN_HELPER
		 : want->tag  ? want->tag
			      : "");
	snprintf(r->replay_of, sizeof(r->replay_of), "%s", want->replay_of ? want->replay_of : "");
	if (want->before)
		r->before = *want->before;
	r->request = start_request(b, want->request);
	r->inputs = json_incref(want->inputs);
	r->cwd = want->cwd ? strdup(want->cwd) : NULL;
	cmd = box_words(b, want, env, reader != NULL);
	exec_ask_base(r);
	/* The row is written before the program is started: a crash in between leaves a row, and
	 * the next server finds that its exec was never started. */
	if (exec_write_start(r, want, e) < 0 ||
	    init_conn_start(&b->line, &r->init_call, r->ref, &exec_call_ops, &cmd, e) < 0) {
		struct err ignored;
		struct store_run row = { .kind = r->kind,
					 .started_ns = r->started_ns,
					 .ended_ns = fleet_now_ns(),
					 .status = 126 };

		memcpy(row.id, r->id, sizeof(row.id));
		memcpy(row.tag, r->tag, sizeof(row.tag));
		snprintf(row.box, sizeof(row.box), "%s", b->row.id);
		snprintf(row.team, sizeof(row.team), "%s", b->row.team);
		snprintf(row.cause, sizeof(row.cause), "%s", cause_name(CAUSE_HOST));
		(void)!run_end_write(b->fleet, &row, NULL, &(struct run_facts){ 0 }, &ignored);
		start_unmake(r);
		return -1;
	}
	b->fleet->figures.runs_started += !want->helper;
	box_touch(b);
	r->reader = reader;
	if (reader) {
		reader->run = r;
		reader->ref = r->ref;
		memcpy(reader->run_id, r->id, sizeof(r->id));
		snprintf(reader->box, sizeof(reader->box), "%s", b->row.id);
	}
	*out = r;
	return 0;
}

void exec_restore(struct box *b, struct store_run *row)
{
	struct exec *r = new_run(b, row->id, row->ref);

	r->restored = r->begun = 1;
	r->kind = row->kind;
	r->has_base = row->kind == STORE_RUN_ONCE; /* its box has run nothing else */
	r->tty = row->kind == STORE_RUN_PTY;
	r->stdin_open = r->input_unknown = 1;
	r->count_from = b->tallies + 1;
	r->started_ns = row->started_ns;
	memcpy(r->tag, row->tag, sizeof(r->tag));
	memcpy(r->key, row->key, sizeof(r->key));
	memcpy(r->runtime, row->runtime, sizeof(r->runtime));
	r->command = row->command ? json_loads(row->command, 0, NULL) : NULL;
	if (!r->command)
		r->command = json_array();
	exec_restore_request(r, row);
	b->fleet->figures.restored_runs++;
	if (init_conn_is_open(&b->line))
		init_conn_attach(&b->line, &r->init_call, r->ref, &exec_call_ops, 0, NULL, NULL);
}
