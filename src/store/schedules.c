/* schedules.c - see schedules.h. */
#include "store/schedules.h"
#include "base/cleanup.h"
#include "store/sql.h"

#include <assert.h>
#include <string.h>

static const char *const schedule_kinds[] = { "run", "batch", "pipeline" };
static const char *const schedule_states[] = { "active", "paused", "ended" };
static const char *const tick_states[] = { "waiting", "starting", "running", "succeeded",
					   "failed",  "skipped",  "missed",  "replaced" };
static_assert(ARRAY_LEN(schedule_kinds) == SCHEDULE_KINDS, "a kind without a name");
static_assert(ARRAY_LEN(schedule_states) == SCHEDULE_STATES, "a state without a name");
static_assert(ARRAY_LEN(tick_states) == TICK_STATES, "a state without a name");

const char *store_schedule_kind_name(enum store_schedule_kind kind)
{
	return schedule_kinds[kind];
}

const char *store_schedule_state_name(enum store_schedule_state state)
{
	return schedule_states[state];
}

const char *store_tick_state_name(enum store_tick_state state)
{
	return tick_states[state];
}

int store_tick_is_live(enum store_tick_state state)
{
	return state <= TICK_RUNNING;
}

static unsigned schedules_find(const char *word, const char *const *words, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (!strcmp(words[i], word))
			return i;
	return 0; /* the table accepts no other word */
}

/* ---- schedules ---- */

#define SCHEDULE_COLUMNS                                                                           \
	"id, team, name, who, key, role, created_ns, updated_ns, expression, zone, anchor_ns,"     \
	" kind, request, settings, state, reason, decided_ns, forgotten_ns"

void store_schedule_fini(struct store_schedule *x)
{
	free(x->request);
	free(x->settings);
	x->request = x->settings = NULL;
}

static void schedules_fini_row(void *row)
{
	store_schedule_fini(row);
}

void store_schedules_fini(struct store_schedules *l)
{
	for (unsigned i = 0; i < l->n; i++)
		store_schedule_fini(&l->v[i]);
	free(l->v);
	*l = (struct store_schedules){ 0 };
}

static void schedules_read(struct sql *q, void *row)
{
	struct store_schedule *x = row;
	char word[STORE_WORD + 1];

	memset(x, 0, sizeof(*x));
	sql_get_text(q, x->id, sizeof(x->id));
	sql_get_text(q, x->team, sizeof(x->team));
	sql_get_text(q, x->name, sizeof(x->name));
	sql_get_text(q, x->who, sizeof(x->who));
	sql_get_text(q, x->key, sizeof(x->key));
	sql_get_text(q, word, sizeof(word));
	(void)!store_role_parse(word, &x->role);
	x->created_ns = sql_get_i64(q);
	x->updated_ns = sql_get_i64(q);
	sql_get_text(q, x->expression, sizeof(x->expression));
	sql_get_text(q, x->zone, sizeof(x->zone));
	x->anchor_ns = sql_get_i64(q);
	sql_get_text(q, word, sizeof(word));
	x->kind = (enum store_schedule_kind)schedules_find(word, schedule_kinds, SCHEDULE_KINDS);
	x->request = sql_get_dup(q);
	x->settings = sql_get_dup(q);
	sql_get_text(q, word, sizeof(word));
	x->state =
		(enum store_schedule_state)schedules_find(word, schedule_states, SCHEDULE_STATES);
	sql_get_text(q, x->reason, sizeof(x->reason));
	x->decided_ns = sql_get_i64(q);
	x->forgotten_ns = sql_get_i64(q);
}

/* The columns from name to updated_ns, without created_ns ... */
static void schedules_bind_principal(struct sql *q, const struct store_schedule *x)
{
	sql_text(q, x->name);
	sql_text(q, x->who);
	sql_text(q, x->key);
	sql_text(q, store_role_name(x->role));
}

/* ... and the rest. */
static void schedules_bind_rest(struct sql *q, const struct store_schedule *x)
{
	sql_i64(q, x->updated_ns);
	sql_text(q, x->expression);
	sql_text(q, x->zone);
	sql_i64(q, x->anchor_ns);
	sql_text(q, schedule_kinds[x->kind]);
	sql_json(q, x->request, "{}");
	sql_json(q, x->settings, "{}");
	sql_text(q, schedule_states[x->state]);
	sql_text(q, x->reason);
	sql_i64(q, x->decided_ns);
}

static int schedules_name_taken(const struct store_schedule *x, struct err *e)
{
	return e->kind == ERR_CONFLICT
		       ? err_set(e, ERR_CONFLICT, "the team has a schedule named '%s'", x->name)
		       : -1;
}

int store_schedule_add(struct store *s, const struct store_schedule *x, struct err *e)
{
	auto_sql struct sql q =
		sql(s, "INSERT INTO schedules (id, team, created_ns, name, who, key, role,"
		       " updated_ns, expression, zone, anchor_ns, kind, request, settings, state,"
		       " reason, decided_ns, forgotten_ns)"
		       " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0)");

	sql_text(&q, x->id);
	sql_text(&q, x->team);
	sql_i64(&q, x->created_ns);
	schedules_bind_principal(&q, x);
	schedules_bind_rest(&q, x);
	return sql_run(&q, e) < 0 ? schedules_name_taken(x, e) : 0;
}

int store_schedule_put(struct store *s, const struct store_schedule *x, struct err *e)
{
	auto_sql struct sql q =
		sql(s, "UPDATE schedules SET name = ?, who = ?, key = ?, role = ?, updated_ns = ?,"
		       " expression = ?, zone = ?, anchor_ns = ?, kind = ?, request = ?,"
		       " settings = ?, state = ?, reason = ?, decided_ns = ? WHERE id = ?");

	schedules_bind_principal(&q, x);
	schedules_bind_rest(&q, x);
	sql_text(&q, x->id);
	return sql_run_one(&q, "schedule", x->id, e) < 0 ? schedules_name_taken(x, e) : 0;
}

int store_schedule_set_state(struct store *s, const char *id, enum store_schedule_state state,
			     const char *reason, int64_t at_ns, struct err *e)
{
	auto_sql struct sql q =
		sql(s, "UPDATE schedules SET state = ?, reason = ?, updated_ns = ? WHERE id = ?");

	sql_text(&q, schedule_states[state]);
	sql_text(&q, reason);
	sql_i64(&q, at_ns);
	sql_text(&q, id);
	return sql_run_one(&q, "schedule", id, e);
}

int store_schedule_decide(struct store *s, const char *id, int64_t decided_ns, struct err *e)
{
	auto_sql struct sql q = sql(s, "UPDATE schedules SET decided_ns = ? WHERE id = ?");

	sql_i64(&q, decided_ns);
	sql_text(&q, id);
	return sql_run_one(&q, "schedule", id, e);
}

int store_schedule_get(struct store *s, const char *team, const char *id_or_name,
		       struct store_schedule *out, struct err *e)
{
	auto_sql struct sql q = sql(s, "SELECT " SCHEDULE_COLUMNS " FROM schedules WHERE team = ?1"
				       " AND (id = ?2 OR name = ?2) ORDER BY id = ?2 DESC LIMIT 1");

	sql_text(&q, team);
	sql_text(&q, id_or_name);
	if (sql_one(&q, "schedule", id_or_name, e) < 0)
		return -1;
	schedules_read(&q, out);
	return 0;
}

int store_schedule_by_id(struct store *s, const char *id, struct store_schedule *out, struct err *e)
{
	auto_sql struct sql q = sql(s, "SELECT " SCHEDULE_COLUMNS " FROM schedules WHERE id = ?");

	sql_text(&q, id);
	if (sql_one(&q, "schedule", id, e) < 0)
		return -1;
	schedules_read(&q, out);
	return 0;
}

int store_schedule_list(struct store *s, const char *team, const struct store_cursor *after,
			unsigned limit, struct store_schedules *out, struct err *e)
{
	auto_where struct sql_where w = { 0 };
	struct sql_rows rows;

	limit = team ? sql_limit(limit) : SQL_ALL - 1;
	buf_puts(&w.text, "SELECT " SCHEDULE_COLUMNS " FROM schedules WHERE 1");
	sql_where_text(&w, "team = ?", team);
	if (after)
		sql_where_after(&w, "created_ns", after);
	auto_sql struct sql q = sql_filtered(s, &w, "ORDER BY created_ns DESC, id DESC LIMIT ?");
	sql_i64(&q, (int64_t)limit + 1);
	if (sql_list(&q, limit, sizeof(*out->v), schedules_read, schedules_fini_row, &rows, e) < 0)
		return -1;
	*out = (struct store_schedules){ .v = rows.v, .n = rows.n, .more = rows.more };
	return 0;
}

int store_schedule_count(struct store *s, const char *team, uint64_t *out, struct err *e)
{
	auto_sql struct sql q = sql(s, "SELECT count(*) FROM schedules WHERE team = ?");

	sql_text(&q, team);
	if (sql_one(&q, "count of", "schedules", e) < 0)
		return -1;
	*out = sql_get_u64(&q);
	return 0;
}

int store_schedule_remove(struct store *s, const char *id, struct err *e)
{
	auto_sql struct sql q = sql(s, "DELETE FROM schedules WHERE id = ?");

	sql_text(&q, id);
	return sql_run_one(&q, "schedule", id, e);
}

/* ---- ticks ---- */

#define TICK_COLUMNS                                                                               \
	"schedule, at_ns, state, manual, due_ns, attempt, started_ns, ended_ns, run, count, detail"

static void ticks_read(struct sql *q, void *row)
{
	struct store_tick *t = row;
	char word[STORE_WORD + 1];

	memset(t, 0, sizeof(*t));
	sql_get_text(q, t->schedule, sizeof(t->schedule));
	t->at_ns = sql_get_i64(q);
	sql_get_text(q, word, sizeof(word));
	t->state = (enum store_tick_state)schedules_find(word, tick_states, TICK_STATES);
	t->manual = (int)sql_get_i64(q);
	t->due_ns = sql_get_i64(q);
	t->attempt = (uint32_t)sql_get_i64(q);
	t->started_ns = sql_get_i64(q);
	t->ended_ns = sql_get_i64(q);
	sql_get_text(q, t->run, sizeof(t->run));
	t->count = sql_get_u64(q);
	sql_get_text(q, t->detail, sizeof(t->detail));
}

void store_ticks_fini(struct store_ticks *l)
{
	free(l->v);
	*l = (struct store_ticks){ 0 };
}

static void ticks_bind(struct sql *q, const struct store_tick *t)
{
	sql_text(q, tick_states[t->state]);
	sql_i64(q, t->manual);
	sql_i64(q, t->due_ns);
	sql_i64(q, t->attempt);
	sql_i64(q, t->started_ns);
	sql_i64(q, t->ended_ns);
	sql_text(q, t->run);
	sql_u64(q, t->count);
	sql_text(q, t->detail);
}

int store_tick_add(struct store *s, const struct store_tick *t, struct err *e)
{
	auto_sql struct sql q = sql(s, "INSERT INTO ticks (" TICK_COLUMNS ")"
				       " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");

	sql_text(&q, t->schedule);
	sql_i64(&q, t->at_ns);
	ticks_bind(&q, t);
	return sql_run(&q, e);
}

int store_tick_put(struct store *s, const struct store_tick *t, struct err *e)
{
	auto_sql struct sql q =
		sql(s, "UPDATE ticks SET state = ?, manual = ?, due_ns = ?, attempt = ?,"
		       " started_ns = ?, ended_ns = ?, run = ?, count = ?, detail = ?"
		       " WHERE schedule = ? AND at_ns = ?");

	ticks_bind(&q, t);
	sql_text(&q, t->schedule);
	sql_i64(&q, t->at_ns);
	return sql_run_one(&q, "tick of", t->schedule, e);
}

int store_tick_get(struct store *s, const char *schedule, int64_t at_ns, struct store_tick *out,
		   struct err *e)
{
	auto_sql struct sql q =
		sql(s, "SELECT " TICK_COLUMNS " FROM ticks WHERE schedule = ? AND at_ns = ?");

	sql_text(&q, schedule);
	sql_i64(&q, at_ns);
	if (sql_one(&q, "tick of", schedule, e) < 0)
		return -1;
	ticks_read(&q, out);
	return 0;
}

int store_tick_list(struct store *s, const char *schedule, int64_t before_ns, unsigned limit,
		    struct store_ticks *out, struct err *e)
{
	struct sql_rows rows;

	limit = sql_limit(limit);
	auto_sql struct sql q = sql(s, "SELECT " TICK_COLUMNS " FROM ticks WHERE schedule = ?"
				       " AND at_ns < ? ORDER BY at_ns DESC LIMIT ?");
	sql_text(&q, schedule);
	sql_i64(&q, before_ns ? before_ns : INT64_MAX);
	sql_i64(&q, (int64_t)limit + 1);
	if (sql_list(&q, limit, sizeof(*out->v), ticks_read, NULL, &rows, e) < 0)
		return -1;
	*out = (struct store_ticks){ .v = rows.v, .n = rows.n, .more = rows.more };
	return 0;
}

int store_tick_live(struct store *s, const char *schedule, struct store_ticks *out, struct err *e)
{
	auto_where struct sql_where w = { 0 };
	struct sql_rows rows;

	buf_puts(&w.text, "SELECT " TICK_COLUMNS " FROM ticks"
			  " WHERE state IN ('waiting', 'starting', 'running')");
	sql_where_text(&w, "schedule = ?", schedule);
	auto_sql struct sql q = sql_filtered(s, &w, "ORDER BY schedule, at_ns");
	if (sql_list(&q, SQL_ALL - 1, sizeof(*out->v), ticks_read, NULL, &rows, e) < 0)
		return -1;
	*out = (struct store_ticks){ .v = rows.v, .n = rows.n };
	return 0;
}

/* The newest tick that is too old to keep; *out 0: none. */
static int ticks_oldest_kept(struct store *s, const char *schedule, unsigned keep, int64_t *out,
			     struct err *e)
{
	auto_sql struct sql q = sql(s, "SELECT at_ns FROM ticks WHERE schedule = ?"
				       " ORDER BY at_ns DESC LIMIT 1 OFFSET ?");
	int rc;

	sql_text(&q, schedule);
	sql_i64(&q, keep);
	rc = sql_row(&q, e);
	*out = rc > 0 ? sql_get_i64(&q) : 0;
	return rc < 0 ? -1 : 0;
}

static int ticks_remove(struct store *s, const char *schedule, int64_t until_ns, struct err *e)
{
	auto_sql struct sql q = sql(s, "DELETE FROM ticks WHERE schedule = ? AND at_ns <= ?"
				       " AND state NOT IN ('waiting', 'starting', 'running')");

	sql_text(&q, schedule);
	sql_i64(&q, until_ns);
	return sql_run(&q, e);
}

static int ticks_forget(struct store *s, const char *schedule, int64_t until_ns, struct err *e)
{
	auto_sql struct sql q =
		sql(s, "UPDATE schedules SET forgotten_ns = max(forgotten_ns, ?) WHERE id = ?");

	sql_i64(&q, until_ns);
	sql_text(&q, schedule);
	return sql_run_one(&q, "schedule", schedule, e);
}

int store_tick_trim(struct store *s, const char *schedule, unsigned keep, struct err *e)
{
	int64_t until;

	if (ticks_oldest_kept(s, schedule, keep, &until, e) < 0)
		return -1;
	if (!until)
		return 0;
	if (store_begin(s, e) < 0)
		return -1;
	if (ticks_remove(s, schedule, until, e) < 0 || ticks_forget(s, schedule, until, e) < 0)
		return store_rollback(s);
	return store_commit(s, e);
}
