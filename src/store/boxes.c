/* boxes.c - see boxes.h. */
#include "store/boxes.h"
#include "base/cleanup.h"
#include "store/sql.h"

#include <assert.h>
#include <string.h>

/* `column` is the word in the database: the schema's constraints and indexes contain it, so it does
 * not change. `name` is the public word. Both are accepted from clients (docs/daemon.md, "Renamed
 * words"). */
static const struct {
	const char *column, *name;
} states[] = {
	[STORE_BOX_RUNNING] = { "running", "running" },
	[STORE_BOX_STOPPED] = { "kept", "stopped" },
	[STORE_BOX_PAUSED] = { "paused", "paused" },
	[STORE_BOX_DELETED] = { "gone", "deleted" },
};
static_assert(ARRAY_LEN(states) == STORE_BOX_STATES, "a state without a name");

const char *store_box_state_name(enum store_box_state state)
{
	return (unsigned)state < STORE_BOX_STATES ? states[state].name : "unknown";
}

int store_box_state_parse(const char *text, enum store_box_state *out)
{
	for (unsigned i = 0; i < STORE_BOX_STATES; i++)
		if (strcmp(text, states[i].name) == 0 || strcmp(text, states[i].column) == 0) {
			*out = (enum store_box_state)i;
			return 0;
		}
	return -1;
}

static const char *const timeouts[] = {
	[STORE_TIMEOUT_KILL] = "kill",
	[STORE_TIMEOUT_KEEP] = "keep",
	[STORE_TIMEOUT_PAUSE] = "pause",
};
static_assert(ARRAY_LEN(timeouts) == STORE_TIMEOUTS, "a timeout without a name");

const char *store_on_timeout_name(enum store_on_timeout t)
{
	return (unsigned)t < STORE_TIMEOUTS ? timeouts[t] : "unknown";
}

int store_on_timeout_parse(const char *text, enum store_on_timeout *out)
{
	for (unsigned i = 0; i < STORE_TIMEOUTS; i++)
		if (strcmp(text, timeouts[i]) == 0) {
			*out = (enum store_on_timeout)i;
			return 0;
		}
	return -1;
}

static const char *const losses[STORE_LOSSES] = { "keep", "stop", "restart" };

const char *store_on_loss_name(enum store_on_loss t)
{
	return losses[t];
}

int store_on_loss_parse(const char *text, enum store_on_loss *out)
{
	for (unsigned i = 0; i < STORE_LOSSES; i++)
		if (strcmp(text, losses[i]) == 0) {
			*out = (enum store_on_loss)i;
			return 0;
		}
	return -1;
}

/* Reading ---- */

#define FIXED "id, team, template, created_ns, key, isolation, on_loss, epoch"
#define CHANGING                                                                                   \
	"name, session, boot, state, on_timeout, ends_ns, idle_since_ns, kept_until_ns, "          \
	"ended_ns, cause, lifetime_ms, idle_ms, retention_ms, layers, mem_bytes, "                 \
	"disk_bytes, disk_files, cpu_ms, cpu_milli, pids, metadata, env, volumes, network, "       \
	"door, started_ns, secrets, root, stored_ns, keeper, generation, cpu_before_us, origin, made, checkpoints, image"
#define COLUMNS FIXED ", " CHANGING ", head"

static void read_limits(struct sql *q, struct store_limits *l)
{
	l->mem_bytes = sql_get_u64(q);
	l->disk_bytes = sql_get_u64(q);
	l->disk_files = sql_get_u64(q);
	l->cpu_ms = sql_get_u64(q);
	l->cpu_milli = (uint32_t)sql_get_u64(q);
	l->pids = (uint32_t)sql_get_u64(q);
}

static void read_box(struct sql *q, void *row)
{
	struct store_box *b = row;
	char word[16];

	sql_get_text(q, b->id, sizeof(b->id));
	sql_get_text(q, b->team, sizeof(b->team));
	sql_get_text(q, b->template, sizeof(b->template));
	b->created_ns = sql_get_i64(q);
	sql_get_text(q, b->key, sizeof(b->key));
	b->isolation = sql_get_dup(q);
	sql_get_text(q, word, sizeof(word));
	if (store_on_loss_parse(word, &b->on_loss) < 0)
		b->on_loss = STORE_LOSS_KEEP;
	b->epoch = sql_get_i64(q);
	sql_get_text(q, b->name, sizeof(b->name));
	sql_get_text(q, b->session, sizeof(b->session));
	sql_get_text(q, b->boot, sizeof(b->boot));
	sql_get_text(q, word, sizeof(word));
	if (store_box_state_parse(word, &b->state) < 0)
		b->state = STORE_BOX_DELETED; /* a CHECK keeps that out */
	sql_get_text(q, word, sizeof(word));
	if (store_on_timeout_parse(word, &b->on_timeout) < 0)
		b->on_timeout = STORE_TIMEOUT_KILL; /* as above */
	b->ends_ns = sql_get_i64(q);
	b->idle_since_ns = sql_get_i64(q);
	b->kept_until_ns = sql_get_i64(q);
	b->ended_ns = sql_get_i64(q);
	sql_get_text(q, b->cause, sizeof(b->cause));
	b->lifetime_ms = sql_get_u64(q);
	b->idle_ms = sql_get_u64(q);
	b->retention_ms = sql_get_u64(q);
	b->layers = sql_get_u64(q);
	read_limits(q, &b->limits);
	b->metadata = sql_get_dup(q);
	b->env = sql_get_dup(q);
	b->volumes = sql_get_dup(q);
	b->network = sql_get_dup(q);
	b->surface = sql_get_dup(q);
	b->started_ns = sql_get_i64(q);
	b->secrets = sql_get_dup(q);
	b->root = sql_get_dup(q);
	b->stored_ns = sql_get_i64(q);
	sql_get_text(q, b->keeper, sizeof(b->keeper));
	b->generation = (uint32_t)sql_get_u64(q);
	b->cpu_before_us = sql_get_u64(q);
	sql_get_text(q, b->origin, sizeof(b->origin));
	b->made = sql_get_dup(q);
	b->checkpoints = sql_get_dup(q);
	sql_get_text(q, b->image, sizeof(b->image));
	sql_get_text(q, b->head, sizeof(b->head));
}

void store_box_fini(struct store_box *b)
{
	free(b->metadata);
	free(b->env);
	free(b->volumes);
	free(b->network);
	free(b->surface);
	free(b->secrets);
	free(b->root);
	free(b->isolation);
	free(b->made);
	free(b->checkpoints);
	b->made = b->checkpoints = NULL;
	b->metadata = b->env = b->volumes = b->network = b->surface = b->secrets = b->root =
		b->isolation = NULL;
}

static void fini_row(void *row)
{
	store_box_fini(row);
}

void store_boxes_fini(struct store_boxes *l)
{
	for (unsigned i = 0; i < l->n; i++)
		store_box_fini(&l->v[i]);
	free(l->v);
	*l = (struct store_boxes){ 0 };
}

/* Writing ---- */

static void bind_changing(struct sql *q, const struct store_box *b)
{
	const struct store_limits *l = &b->limits;

	sql_text(q, b->name);
	sql_text(q, b->session);
	sql_text(q, b->boot);
	sql_text(q, states[b->state].column);
	sql_text(q, store_on_timeout_name(b->on_timeout));
	sql_i64(q, b->ends_ns);
	sql_i64(q, b->idle_since_ns);
	sql_i64(q, b->kept_until_ns);
	sql_i64(q, b->ended_ns);
	sql_text(q, b->cause);
	sql_u64(q, b->lifetime_ms);
	sql_u64(q, b->idle_ms);
	sql_u64(q, b->retention_ms);
	sql_u64(q, b->layers);
	sql_u64(q, l->mem_bytes);
	sql_u64(q, l->disk_bytes);
	sql_u64(q, l->disk_files);
	sql_u64(q, l->cpu_ms);
	sql_u64(q, l->cpu_milli);
	sql_u64(q, l->pids);
	sql_json(q, b->metadata, "{}");
	sql_json(q, b->env, "{}");
	sql_json(q, b->volumes, "[]");
	sql_json(q, b->network, "[]");
	sql_json(q, b->surface, "{}");
	sql_i64(q, b->started_ns);
	sql_json(q, b->secrets, "{}");
	sql_json(q, b->root, "{}");
	sql_i64(q, b->stored_ns);
	sql_text(q, b->keeper);
	sql_u64(q, b->generation ? b->generation : 1);
	sql_u64(q, b->cpu_before_us);
	sql_text(q, b->origin);
	sql_json(q, b->made, "{}");
	sql_json(q, b->checkpoints, "{}");
	sql_text(q, b->image);
}

/* SQLite names the columns that clash. */
static int boxes_taken(const struct store_box *b, struct err *e)
{
	if (e->kind != ERR_CONFLICT)
		return -1;
	if (strstr(e->msg, "boxes.session"))
		return err_set(e, ERR_CONFLICT,
			       "session '%.128s' has a box of template '%.64s' already", b->session,
			       b->template);
	if (strstr(e->msg, "boxes.name"))
		return err_set(e, ERR_CONFLICT, "there is a box named '%.64s' already", b->name);
	return err_set(e, ERR_CONFLICT, "there is a box %.15s already", b->id);
}

int store_box_insert(struct store *s, const struct store_box *b, struct err *e)
{
	auto_sql struct sql q =
		sql(s, "INSERT INTO boxes (" COLUMNS ") VALUES (?, ?, ?, ?, ?, ?, ?, ?,"
		       " ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,"
		       " ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");

	sql_text(&q, b->id);
	sql_text(&q, b->team);
	sql_text(&q, b->template);
	sql_i64(&q, b->created_ns);
	sql_text(&q, b->key);
	sql_json(&q, b->isolation, "{}");
	sql_text(&q, store_on_loss_name(b->on_loss));
	sql_i64(&q, b->epoch);
	bind_changing(&q, b);
	sql_text(&q, b->head);
	if (sql_run(&q, e) < 0)
		return boxes_taken(b, e);
	s->history_bytes += (b->metadata ? strlen(b->metadata) : 0) + (b->env ? strlen(b->env) : 0);
	return 0;
}

int store_box_forget(struct store *s, const char *id, struct err *e)
{
	auto_sql struct sql q = sql(s, "DELETE FROM boxes WHERE id = ? AND state = 'gone'");

	sql_text(&q, id);
	return sql_run(&q, e);
}

int store_box_update(struct store *s, const struct store_box *b, struct err *e)
{
	auto_sql struct sql q =
		sql(s, "UPDATE boxes SET (" CHANGING ") ="
		       " (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,"
		       " ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
		       " WHERE id = ?");

	bind_changing(&q, b);
	sql_text(&q, b->id);
	return sql_run_one(&q, "box", b->id, e) == 0 ? 0 : boxes_taken(b, e);
}

int store_box_set_state(struct store *s, const char *id, enum store_box_state state,
			const char *cause, int64_t ended_ns, struct err *e)
{
	auto_sql struct sql q =
		sql(s, "UPDATE boxes SET state = ?, cause = ?, ended_ns = ? WHERE id = ?");
	int gone = state == STORE_BOX_DELETED;

	sql_text(&q, states[state].column);
	sql_text(&q, gone ? cause : "");
	sql_i64(&q, gone ? ended_ns : 0);
	sql_text(&q, id);
	if (sql_run_one(&q, "box", id, e) == 0)
		return 0;
	if (e->kind ==
	    ERR_CONFLICT) /* the box was not deleted after all, and another one has its name now */
		return err_set(e, ERR_CONFLICT, "the name or session of box %.15s is taken", id);
	return -1;
}

int store_box_bury(struct store *s, const char *id, const char *cause, int64_t ended_ns,
		   struct err *e)
{
	auto_sql struct sql q = sql(s, "UPDATE boxes SET state = 'gone', cause = ?, ended_ns = ?"
				       " WHERE id = ? AND state <> 'gone'");

	sql_text(&q, cause);
	sql_i64(&q, ended_ns);
	sql_text(&q, id);
	return sql_run_one(&q, "box", id, e);
}

int store_box_intend(struct store *s, const char *id, const char *cause, struct err *e)
{
	auto_sql struct sql q =
		sql(s, "UPDATE boxes SET cause = ? WHERE id = ? AND state <> 'gone'");

	sql_text(&q, cause);
	sql_text(&q, id);
	return sql_run_one(&q, "box", id, e);
}

int store_box_set_times(struct store *s, const char *id, int64_t ends_ns, int64_t idle_since_ns,
			int64_t kept_until_ns, struct err *e)
{
	auto_sql struct sql q = sql(s, "UPDATE boxes SET ends_ns = ?, idle_since_ns = ?,"
				       " kept_until_ns = ? WHERE id = ?");

	sql_i64(&q, ends_ns);
	sql_i64(&q, idle_since_ns);
	sql_i64(&q, kept_until_ns);
	sql_text(&q, id);
	return sql_run_one(&q, "box", id, e);
}

int store_box_set_head(struct store *s, const char *id, const char *head, struct err *e)
{
	auto_sql struct sql q = sql(s, "UPDATE boxes SET head = ? WHERE id = ?");

	sql_text(&q, head);
	sql_text(&q, id);
	return sql_run_one(&q, "box", id, e);
}

/* Asking ---- */

static int one_box(struct sql *q, const char *which, struct store_box *out, struct err *e)
{
	if (sql_one(q, "box", which, e) < 0)
		return -1;
	memset(out, 0, sizeof(*out));
	read_box(q, out);
	return 0;
}

int store_box_get(struct store *s, const char *id, struct store_box *out, struct err *e)
{
	auto_sql struct sql q = sql(s, "SELECT " COLUMNS " FROM boxes WHERE id = ?");

	sql_text(&q, id);
	return one_box(&q, id, out, e);
}

int store_box_end_of(struct store *s, const char *id, char out_cause[STORE_WORD + 1],
		     int *out_deleted, struct err *e)
{
	auto_sql struct sql q = sql(s, "SELECT cause, state = 'gone' FROM boxes WHERE id = ?");

	sql_text(&q, id);
	if (sql_one(&q, "box", id, e) < 0)
		return -1;
	sql_get_text(&q, out_cause, STORE_WORD + 1);
	*out_deleted = sql_get_i64(&q) != 0;
	return 0;
}

int store_box_by_name(struct store *s, const char *team, const char *name, struct store_box *out,
		      struct err *e)
{
	auto_sql struct sql q = sql(s, "SELECT " COLUMNS " FROM boxes WHERE team = ? AND name = ?"
				       " AND name <> '' AND state <> 'gone'");

	sql_text(&q, team);
	sql_text(&q, name);
	return one_box(&q, name, out, e);
}

int store_box_gone(struct store *s, const char *team, const char *id_or_name, struct store_box *out,
		   struct err *e)
{
	auto_sql struct sql by_id = sql(
		s, "SELECT " COLUMNS " FROM boxes WHERE id = ? AND team = ? AND state = 'gone'");
	auto_sql struct sql q = sql(
		s,
		"SELECT " COLUMNS " FROM boxes WHERE id IN"
		" (SELECT id FROM boxes WHERE team = ? ORDER BY created_ns DESC LIMIT ?)"
		" AND name = ? AND name <> '' AND state = 'gone' ORDER BY ended_ns DESC LIMIT 1");

	sql_text(&by_id, id_or_name);
	sql_text(&by_id, team);
	if (one_box(&by_id, id_or_name, out, e) == 0)
		return 0;
	sql_text(&q, team);
	sql_i64(&q, STORE_BOX_RECENT);
	sql_text(&q, id_or_name);
	return one_box(&q, id_or_name, out, e);
}

int store_box_by_session(struct store *s, const char *team, const char *session,
			 const char *template, struct store_box *out, struct err *e)
{
	auto_sql struct sql q =
		sql(s, "SELECT " COLUMNS " FROM boxes WHERE team = ? AND session = ?"
		       " AND template = ? AND session <> '' AND state <> 'gone'");

	sql_text(&q, team);
	sql_text(&q, session);
	sql_text(&q, template);
	return one_box(&q, session, out, e);
}

int store_box_count(struct store *s, const char *team, uint64_t *out_live, struct err *e)
{
	auto_sql struct sql q =
		sql(s, "SELECT count(*) FROM boxes WHERE team = ? AND state <> 'gone'");

	sql_text(&q, team);
	if (sql_one(&q, "boxes of", team, e) < 0)
		return -1;
	*out_live = sql_get_u64(&q);
	return 0;
}

static int boxes_do_list(struct sql *q, unsigned limit, struct store_boxes *out, struct err *e)
{
	struct sql_rows rows;

	if (sql_list(q, limit, sizeof(*out->v), read_box, fini_row, &rows, e) < 0)
		return -1;
	*out = (struct store_boxes){ .v = rows.v, .n = rows.n, .more = rows.more };
	return 0;
}

int store_box_live(struct store *s, struct store_boxes *out, struct err *e)
{
	auto_sql struct sql q = sql(s, "SELECT " COLUMNS " FROM boxes WHERE state <> 'gone'"
				       " ORDER BY created_ns, id");

	return boxes_do_list(&q, SQL_ALL, out, e);
}

static void where_states(struct sql_where *w, unsigned bits)
{
	const char *join = " AND state IN (";

	if (!(bits >> STORE_BOX_DELETED &
	      1)) /* the condition of the index of boxes that are not deleted */
		buf_puts(&w->text, " AND state <> 'gone'");
	if (!bits)
		return;
	for (unsigned i = 0; i < STORE_BOX_STATES; i++)
		if (bits >> i & 1) {
			buf_printf(&w->text, "%s'%s'", join, states[i].column);
			join = ", ";
		}
	buf_puts(&w->text, ")");
}

int store_box_list(struct store *s, const struct store_box_filter *f, struct store_boxes *out,
		   struct err *e)
{
	auto_where struct sql_where w = { 0 };
	unsigned limit = sql_limit(f->limit);

	if (f->nmetadata > STORE_PAIRS_MAX)
		return err_set(e, ERR_LIMIT, "%u metadata filters, at most %d", f->nmetadata,
			       STORE_PAIRS_MAX);
	if (f->states >> STORE_BOX_STATES)
		return err_set(e, ERR_INVALID, "no such state of a box");
	buf_printf(&w.text, "SELECT " COLUMNS " FROM boxes %s WHERE 1",
		   f->states >> STORE_BOX_DELETED & 1 ? "" : "INDEXED BY boxes_live");
	where_states(&w, f->states);
	sql_where_text(&w, "team = ?", f->team);
	sql_where_text(&w, "template = ?", f->template);
	/* Not LIKE: a name may have its % and _. */
	sql_where_text(&w, "instr(name, ?) = 1", f->name_prefix);
	for (unsigned i = 0; i < f->nmetadata; i++) {
		/* Not a JSON path: a key may have quotes in it. */
		sql_where_text(&w,
			       "EXISTS (SELECT 1 FROM json_each(metadata) m"
			       " WHERE m.type = 'text' AND m.key = ? AND m.value = ?)",
			       f->metadata[i].key);
		w.v[w.n++] = (struct sql_value){ .text = f->metadata[i].value };
	}
	sql_where_after(&w, "created_ns", &f->after);
	auto_sql struct sql q = sql_filtered(s, &w, "ORDER BY created_ns DESC, id DESC LIMIT ?");
	sql_i64(&q, limit + 1);
	return boxes_do_list(&q, limit, out, e);
}

struct store_cursor store_box_cursor(const struct store_box *b)
{
	struct store_cursor c = { .ns = b->created_ns };

	memcpy(c.id, b->id, sizeof(c.id));
	return c;
}

/* Replaced boxes of the keeper ---- */

int store_replaced_add(struct store *s, const char *keeper, struct err *e)
{
	auto_sql struct sql q = sql(s, "INSERT OR IGNORE INTO replaced_boxes (keeper) VALUES (?)");

	sql_text(&q, keeper);
	return sql_run(&q, e);
}

int store_replaced_remove(struct store *s, const char *keeper, struct err *e)
{
	auto_sql struct sql q = sql(s, "DELETE FROM replaced_boxes WHERE keeper = ?");

	sql_text(&q, keeper);
	return sql_run(&q, e);
}

static void read_replaced(struct sql *q, void *row)
{
	sql_get_text(q, row, ID_MAX + 1);
}

int store_replaced_list(struct store *s, struct store_ids *out, struct err *e)
{
	auto_sql struct sql q = sql(s, "SELECT keeper FROM replaced_boxes");
	struct sql_rows rows;

	if (sql_list(&q, SQL_ALL, sizeof(*out->v), read_replaced, NULL, &rows, e) < 0)
		return -1;
	*out = (struct store_ids){ .v = rows.v, .n = rows.n };
	return 0;
}
