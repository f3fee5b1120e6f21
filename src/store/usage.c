/* usage.c - see usage.h. */
#include "store/usage.h"
#include "base/cleanup.h"
#include "base/utf8.h"
#include "store/sql.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define COUNTS                                                                                     \
	"runs, cpu_us, memory_mib_ms, disk_mib_s, network_bytes, gpu_us, tokens_in, tokens_out, "  \
	"output_bytes, cost_nano"
#define SUMS                                                                                       \
	"sum(runs), sum(cpu_us), sum(memory_mib_ms), sum(disk_mib_s), sum(network_bytes), "        \
	"sum(gpu_us), sum(tokens_in), sum(tokens_out), sum(output_bytes), sum(cost_nano)"
/* A row does not grow beyond STORE_COST_MOST: the sum of a few such rows is still a number. */
#define ADDED                                                                                      \
	" runs = runs + excluded.runs, cpu_us = cpu_us + excluded.cpu_us,"                         \
	" memory_mib_ms = memory_mib_ms + excluded.memory_mib_ms,"                                 \
	" disk_mib_s = disk_mib_s + excluded.disk_mib_s,"                                          \
	" network_bytes = network_bytes + excluded.network_bytes,"                                 \
	" gpu_us = gpu_us + excluded.gpu_us, tokens_in = tokens_in + excluded.tokens_in,"          \
	" tokens_out = tokens_out + excluded.tokens_out,"                                          \
	" output_bytes = output_bytes + excluded.output_bytes,"                                    \
	" cost_nano = min(cost_nano + excluded.cost_nano, 1000000000000000000)"

/* ---- charging ---- */

static void usage_bind(struct sql *q, const struct store_use *u)
{
	sql_u64(q, u->runs);
	sql_u64(q, u->cpu_us);
	sql_u64(q, u->memory_mib_ms);
	sql_u64(q, u->disk_mib_s);
	sql_u64(q, u->network_bytes);
	sql_u64(q, u->gpu_us);
	sql_u64(q, u->tokens_in);
	sql_u64(q, u->tokens_out);
	sql_u64(q, u->output_bytes);
	sql_u64(q, u->cost_nano < STORE_COST_MOST ? u->cost_nano : STORE_COST_MOST);
}

static void usage_read(struct sql *q, struct store_use *u)
{
	u->runs = sql_get_u64(q);
	u->cpu_us = sql_get_u64(q);
	u->memory_mib_ms = sql_get_u64(q);
	u->disk_mib_s = sql_get_u64(q);
	u->network_bytes = sql_get_u64(q);
	u->gpu_us = sql_get_u64(q);
	u->tokens_in = sql_get_u64(q);
	u->tokens_out = sql_get_u64(q);
	u->output_bytes = sql_get_u64(q);
	u->cost_nano = sql_get_u64(q);
}

/* In the database: not to be changed. Sums of a team or a day are added up from those of runtimes, of which there are
 * few. */
enum usage_dimension { USAGE_KEY = 1, USAGE_TAG, USAGE_TEMPLATE, USAGE_RUNTIME };

static void usage_bind_row(struct sql *q, const struct store_charge *c, enum usage_dimension d,
			   const char *value)
{
	sql_i64(q, d);
	sql_i64(q, c->day);
	sql_text(q, c->team);
	sql_text(q, value);
	sql_text(q, c->use.currency);
}

/* 1: added; 0: there is no such row. */
static int usage_update(struct store *s, const struct store_charge *c, enum usage_dimension d,
			const char *value, struct err *e)
{
	auto_sql struct sql q = sql(
		s,
		"UPDATE usage_sums SET runs = runs + ?, cpu_us = cpu_us + ?,"
		" memory_mib_ms = memory_mib_ms + ?, disk_mib_s = disk_mib_s + ?,"
		" network_bytes = network_bytes + ?, gpu_us = gpu_us + ?, tokens_in = tokens_in + ?,"
		" tokens_out = tokens_out + ?, output_bytes = output_bytes + ?,"
		" cost_nano = min(cost_nano + ?, 1000000000000000000)"
		" WHERE dimension = ? AND day = ? AND team = ? AND value = ? AND currency = ?");

	usage_bind(&q, &c->use);
	usage_bind_row(&q, c, d, value);
	return sql_run(&q, e) < 0 ? -1 : sql_changes(&q) > 0;
}

/* 1: the team may have one more value today. */
static int usage_value_fits(struct store *s, const struct store_charge *c, enum usage_dimension d,
			    const char *value, struct err *e)
{
	auto_sql struct sql q = sql(s, "SELECT count(DISTINCT value) FROM usage_sums"
				       " WHERE dimension = ? AND day = ? AND team = ?");

	if (!*value || *value == '(') /* none, or one of the daemon */
		return 1;
	sql_i64(&q, d);
	sql_i64(&q, c->day);
	sql_text(&q, c->team);
	if (sql_one(&q, "usage of", c->team, e) < 0)
		return -1;
	return sql_get_i64(&q) < STORE_USAGE_VALUES;
}

static int usage_insert(struct store *s, const struct store_charge *c, enum usage_dimension d,
			const char *value, struct err *e)
{
	auto_sql struct sql q =
		sql(s, "INSERT INTO usage_sums (dimension, day, team, value, currency, " COUNTS
		       ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");

	usage_bind_row(&q, c, d, value);
	usage_bind(&q, &c->use);
	return sql_run(&q, e);
}

static int usage_add(struct store *s, const struct store_charge *c, enum usage_dimension d,
		     const char *value, struct err *e)
{
	int rc = usage_update(s, c, d, value, e), fits;

	if (rc)
		return rc < 0 ? -1 : 0;
	fits = usage_value_fits(s, c, d, value, e);
	if (fits > 0)
		return usage_insert(s, c, d, value, e);
	if (fits < 0)
		return -1;
	rc = usage_update(s, c, d, STORE_TAG_OTHER, e);
	return rc < 0 ? -1 : rc ? 0 : usage_insert(s, c, d, STORE_TAG_OTHER, e);
}

int store_usage_charge_subject(struct store *s, const struct store_charge *c, struct err *e)
{
	auto_sql struct sql q = sql(s, "INSERT INTO usage_totals (subject, currency, " COUNTS
				       ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
				       " ON CONFLICT DO UPDATE SET" ADDED);

	if (!c->subject[0])
		return 0;
	sql_text(&q, c->subject);
	sql_text(&q, c->use.currency);
	usage_bind(&q, &c->use);
	return sql_run(&q, e);
}

/* Before the first write: then only the disk can make the next ones fail. */
static int usage_check(const struct store_charge *c, struct err *e)
{
	const char *const texts[] = { c->team,     c->key,     c->tag,
				      c->template, c->runtime, c->use.currency };

	for (unsigned i = 0; i < ARRAY_LEN(texts); i++)
		if (!utf8_valid(texts[i], strlen(texts[i])))
			return err_set(e, ERR_INVALID, "a charge with text that is not UTF-8");
	return 0;
}

int store_usage_charge_day(struct store *s, const struct store_charge *c, struct err *e)
{
	int began, rc = 0;

	if (usage_check(c, e) < 0)
		return -1;
	began = store_join(s, e);
	if (began < 0)
		return -1;
	if (usage_add(s, c, USAGE_KEY, c->key, e) < 0 ||
	    usage_add(s, c, USAGE_TAG, c->tag, e) < 0 ||
	    usage_add(s, c, USAGE_TEMPLATE, c->template, e) < 0 ||
	    usage_add(s, c, USAGE_RUNTIME, c->runtime, e) < 0)
		rc = -1;
	return store_leave(s, began, rc, e);
}

int store_usage_charge(struct store *s, const struct store_charge *c, struct err *e)
{
	if (store_begin(s, e) < 0)
		return -1;
	if (store_usage_charge_day(s, c, e) < 0 || store_usage_charge_subject(s, c, e) < 0)
		return store_rollback(s);
	return store_commit(s, e);
}

int store_charge_merge(struct store_charge *c, const struct store_charge *more)
{
	const struct store_use *u = &more->use;

	if (c->day != more->day || strcmp(c->team, more->team) != 0 ||
	    strcmp(c->tag, more->tag) != 0 || strcmp(c->key, more->key) != 0 ||
	    strcmp(c->template, more->template) != 0 || strcmp(c->runtime, more->runtime) != 0 ||
	    strcmp(c->use.currency, u->currency) != 0)
		return 0;
	c->use.runs += u->runs;
	c->use.cpu_us += u->cpu_us;
	c->use.memory_mib_ms += u->memory_mib_ms;
	c->use.disk_mib_s += u->disk_mib_s;
	c->use.network_bytes += u->network_bytes;
	c->use.gpu_us += u->gpu_us;
	c->use.tokens_in += u->tokens_in;
	c->use.tokens_out += u->tokens_out;
	c->use.output_bytes += u->output_bytes;
	c->use.cost_nano += u->cost_nano;
	return 1;
}

/* ---- asking ---- */

int store_usage_total(struct store *s, const char *subject, const char *currency,
		      struct store_use *out, struct err *e)
{
	/* A sum over nothing is NULL, which reads as 0. */
	auto_sql struct sql q = sql(
		s,
		"SELECT sum(runs), sum(cpu_us), sum(memory_mib_ms), sum(disk_mib_s), sum(network_bytes),"
		" sum(gpu_us), sum(tokens_in), sum(tokens_out), sum(output_bytes),"
		" sum(iif(currency = ?, cost_nano, 0)) FROM usage_totals WHERE subject = ?");

	sql_text(&q, currency);
	sql_text(&q, subject);
	if (sql_one(&q, "usage of", subject, e) < 0)
		return -1;
	*out = (struct store_use){ 0 };
	usage_read(&q, out);
	snprintf(out->currency, sizeof(out->currency), "%s", currency);
	return 0;
}

static const struct {
	const char *name;
	enum usage_dimension dimension;
	const char *column, *order;
} usage_by[] = {
#define COSTLY "ORDER BY sum(cost_nano) DESC, sum(cpu_us) DESC, 1"
	[STORE_BY_TEAM] = { "team", USAGE_RUNTIME, "u.team", COSTLY },
	[STORE_BY_KEY] = { "key", USAGE_KEY, "u.value", COSTLY },
	[STORE_BY_TAG] = { "tag", USAGE_TAG, "u.value", COSTLY },
	[STORE_BY_TEMPLATE] = { "template", USAGE_TEMPLATE, "u.value", COSTLY },
	[STORE_BY_RUNTIME] = { "runtime", USAGE_RUNTIME, "u.value", COSTLY },
	[STORE_BY_DAY] = { "day", USAGE_RUNTIME, "u.day", "ORDER BY 1" },
	[STORE_BY_MONTH] = { "month", USAGE_RUNTIME,
			     "strftime('%Y-%m', u.day * 86400, 'unixepoch')", "ORDER BY 1" },
	[STORE_BY_NOTHING] = { "nothing", USAGE_RUNTIME, "''", COSTLY },
};
static_assert(ARRAY_LEN(usage_by) == STORE_BY_COUNT, "a dimension without a name");

const char *store_usage_by_name(enum store_usage_by by)
{
	return (unsigned)by < STORE_BY_COUNT ? usage_by[by].name : "unknown";
}

int store_usage_by_parse(const char *text, enum store_usage_by *out)
{
	for (unsigned i = 0; i < STORE_BY_NOTHING; i++)
		if (!strcmp(text, usage_by[i].name)) {
			*out = (enum store_usage_by)i;
			return 0;
		}
	return -1;
}

/* Rows are in the order of days: with a team, each day is one range of the key. Binds dimension, first and last day,
 * and the team. */
static void usage_from(struct buf *text, int team)
{
	if (team)
		buf_puts(text,
			 " FROM (WITH RECURSIVE d(day) AS (VALUES (?2) UNION ALL SELECT day + 1"
			 " FROM d WHERE day < ?3) SELECT day FROM d) d CROSS JOIN usage_sums u"
			 " ON u.dimension = ?1 AND u.day = d.day AND u.team = ?4");
	else
		buf_puts(text, " FROM usage_sums u WHERE u.dimension = ?1"
			       " AND u.day BETWEEN ?2 AND ?3");
}

static void usage_read_row(struct sql *q, void *row)
{
	struct store_usage_row *r = row;

	sql_get_text(q, r->value, sizeof(r->value));
	sql_get_text(q, r->use.currency, sizeof(r->use.currency));
	usage_read(q, &r->use);
}

int store_usage_list(struct store *s, const struct store_usage_filter *f,
		     struct store_usage_rows *out, struct err *e)
{
	auto_buf struct buf text = { 0 };
	struct sql_rows rows;

	buf_printf(&text, "SELECT %s, u.currency, " SUMS,
		   f->by == STORE_BY_DAY ? "strftime('%Y-%m-%d', u.day * 86400, 'unixepoch')"
					 : usage_by[f->by].column);
	usage_from(&text, f->team != NULL);
	buf_printf(&text, " GROUP BY %s, u.currency %s LIMIT %d", usage_by[f->by].column,
		   usage_by[f->by].order, STORE_USAGE_MOST + 1);
	auto_sql struct sql q = sql(s, buf_str(&text));
	sql_i64(&q, usage_by[f->by].dimension);
	sql_i64(&q, f->from_day);
	sql_i64(&q, f->to_day);
	if (f->team)
		sql_text(&q, f->team);
	if (sql_list(&q, STORE_USAGE_MOST, sizeof(*out->v), usage_read_row, NULL, &rows, e) < 0)
		return -1;
	*out = (struct store_usage_rows){ .v = rows.v, .n = rows.n, .more = rows.more };
	return 0;
}

void store_usage_rows_fini(struct store_usage_rows *l)
{
	free(l->v);
	*l = (struct store_usage_rows){ 0 };
}

int store_usage_cost(struct store *s, const char *team, const char *currency, int32_t from_day,
		     int32_t to_day, uint64_t *out_nano, struct err *e)
{
	auto_buf struct buf text = { 0 };

	buf_puts(&text, "SELECT sum(u.cost_nano)");
	usage_from(&text, 1);
	buf_puts(&text, " AND u.currency = ?5");
	auto_sql struct sql q = sql(s, buf_str(&text));
	sql_i64(&q, USAGE_RUNTIME);
	sql_i64(&q, from_day);
	sql_i64(&q, to_day);
	sql_text(&q, team);
	sql_text(&q, currency);
	if (sql_one(&q, "usage of", team, e) < 0)
		return -1;
	*out_nano = sql_get_u64(&q);
	return 0;
}

static int usage_retire(struct store *s, enum usage_dimension d, int32_t before_day, unsigned most,
			unsigned *out_removed, struct err *e)
{
	auto_sql struct sql q =
		sql(s, "DELETE FROM usage_sums WHERE (dimension, day, team, value, currency) IN"
		       " (SELECT dimension, day, team, value, currency FROM usage_sums"
		       " WHERE dimension = ? AND day < ? ORDER BY day LIMIT ?)");

	sql_i64(&q, d);
	sql_i64(&q, before_day);
	sql_i64(&q, most);
	if (sql_run(&q, e) < 0)
		return -1;
	*out_removed = sql_changes(&q);
	return 0;
}

int store_usage_retire(struct store *s, int32_t before_day, unsigned most, unsigned *out_removed,
		       struct err *e)
{
	unsigned n;

	*out_removed = 0;
	for (unsigned d = USAGE_KEY; d <= USAGE_RUNTIME && *out_removed < most; d++) {
		if (usage_retire(s, (enum usage_dimension)d, before_day, most - *out_removed, &n,
				 e) < 0)
			return -1;
		*out_removed += n;
	}
	return 0;
}

/* ---- budgets ---- */

int store_budget_notice(struct store *s, const char *team, const char *period, int32_t since,
			unsigned percent, int *out_new, struct err *e)
{
	auto_sql struct sql q =
		sql(s, "INSERT INTO budget_notices VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE"
		       " SET since = excluded.since, percent = excluded.percent"
		       " WHERE since <> excluded.since OR percent < excluded.percent");

	sql_text(&q, team);
	sql_text(&q, period);
	sql_i64(&q, since);
	sql_u64(&q, percent);
	if (sql_run(&q, e) < 0)
		return -1;
	*out_new = sql_changes(&q) > 0;
	return 0;
}
