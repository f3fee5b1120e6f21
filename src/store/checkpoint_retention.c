/* checkpoint_retention.c - which rows of checkpoints, and which files, are needed; merged layers: see checkpoints.h. */
#include "base/cleanup.h"
#include "store/checkpoint_rows.h"

#include <stdio.h>
#include <string.h>

/* ---- retention ---- */

int store_checkpoint_box_ended(struct store *s, const char *box, int64_t expires_ns, struct err *e)
{
	auto_sql struct sql q = sql(s, "UPDATE checkpoints SET expires_ns = ? WHERE box = ?"
				       " AND state = 'ready' AND pinned = 0"
				       " AND (name = '' OR reason = 'program')"
				       " AND (expires_ns = 0 OR expires_ns > ?)");

	sql_i64(&q, expires_ns);
	sql_text(&q, box);
	sql_i64(&q, expires_ns);
	return sql_run(&q, e);
}

int store_checkpoint_expire(struct store *s, const char *id, int64_t expires_ns, struct err *e)
{
	auto_sql struct sql q = sql(s, "UPDATE checkpoints SET expires_ns = ? WHERE id = ?"
				       " AND state = 'ready' AND name = '' AND pinned = 0");

	sql_i64(&q, expires_ns);
	sql_text(&q, id);
	return sql_run(&q, e);
}

int store_checkpoint_expired(struct store *s, int64_t now_ns, struct store_checkpoints *out,
			     struct err *e)
{
	auto_sql struct sql q =
		sql(s,
		    "SELECT " CHECKPOINT_COLUMNS " FROM checkpoints WHERE expires_ns > 0"
		    " AND expires_ns <= ? AND state = 'ready' AND pinned = 0"
		    " AND id NOT IN (SELECT checkpoint FROM snapshots)"
		    " AND id NOT IN (SELECT image FROM boxes WHERE image <> '' AND state <> 'gone')"
		    " ORDER BY expires_ns LIMIT 64");

	sql_i64(&q, now_ns);
	return checkpoint_rows_list(&q, 64, out, e);
}

/* The rows whose layers and index must stay: those of clients, those that living boxes began with
 * or continue from, and below what generation each of these began. */
#define NEEDED                                                                                     \
	"WITH RECURSIVE needed (id, chain, origin) AS ("                                           \
	" SELECT id, chain, origin FROM checkpoints WHERE state IN ('writing', 'ready')"           \
	" OR (state = 'deleted' AND id IN (SELECT head FROM boxes WHERE state <> 'gone'"           \
	" UNION SELECT origin FROM boxes WHERE state <> 'gone'))"                                  \
	" UNION SELECT c.id, c.chain, c.origin FROM checkpoints c, needed n"                       \
	" WHERE c.id = n.origin) "

int store_checkpoint_forget(struct store *s, struct err *e)
{
	auto_sql struct sql q = sql(s, NEEDED "DELETE FROM checkpoints WHERE state = 'deleted'"
					      " AND id NOT IN (SELECT id FROM needed)");

	return sql_run(&q, e);
}

int store_checkpoint_garbage(struct store *s, struct store_ids *out, struct err *e)
{
	auto_sql struct sql q =
		sql(s, NEEDED "SELECT id FROM checkpoint_layers WHERE"
			      " id NOT IN (SELECT id FROM needed) AND"
			      " id NOT IN (SELECT j.value FROM needed n, json_each(n.chain) j)"
			      " UNION SELECT id FROM checkpoints WHERE state = 'failed' LIMIT 64");

	return checkpoint_rows_ids(&q, 64, out, e);
}

int store_checkpoint_dropped(struct store *s, const char *id, struct err *e)
{
	if (store_begin(s, e) < 0)
		return -1;
	if (checkpoint_rows_run(s, "DELETE FROM checkpoint_layers WHERE id = ?", id, e) < 0 ||
	    checkpoint_rows_run(s, "DELETE FROM checkpoints WHERE id = ? AND state = 'failed'", id,
				e) < 0)
		return store_rollback(s);
	return store_commit(s, e);
}

int store_checkpoint_has_row(struct store *s, const char *id, struct err *e)
{
	auto_sql struct sql q = sql(s, "SELECT EXISTS (SELECT 1 FROM checkpoints WHERE id = ?)"
				       " OR EXISTS (SELECT 1 FROM checkpoint_layers WHERE id = ?)");

	sql_text(&q, id);
	sql_text(&q, id);
	if (sql_one(&q, "checkpoint", id, e) < 0)
		return -1;
	return sql_get_i64(&q) != 0;
}

/* ---- merged layers ---- */

static int checkpoints_ends_with(const struct store_checkpoint *x,
				 const struct store_checkpoint *of, unsigned n)
{
	if (x->nchain < n)
		return 0;
	for (unsigned i = 1; i <= n; i++)
		if (strcmp(x->chain[x->nchain - i], of->chain[of->nchain - i]) != 0)
			return 0;
	return 1;
}

static int checkpoints_set_chain(struct store *s, const struct store_checkpoint *x, struct err *e)
{
	char chain[STORE_CHAIN_TEXT];
	auto_sql struct sql q = sql(s, "UPDATE checkpoints SET chain = ? WHERE id = ?");

	checkpoint_rows_bind_chain(&q, x, chain);
	sql_text(&q, x->id);
	return sql_run(&q, e);
}

static int checkpoints_merge_rows(struct store *s, const struct store_checkpoint *of, unsigned n,
				  const char *layer, struct err *e)
{
	auto_sql struct sql q =
		sql(s, "SELECT " CHECKPOINT_COLUMNS " FROM checkpoints WHERE team = ?"
		       " AND state IN ('writing', 'ready', 'deleted') AND instr(chain, ?) > 0");
	struct store_checkpoints all;
	int rc = 0;

	sql_text(&q, of->team);
	sql_text(&q, of->chain[of->nchain - n]);
	if (checkpoint_rows_list(&q, SQL_ALL, &all, e) < 0)
		return -1;
	for (unsigned i = 0; i < all.n && rc == 0; i++) {
		struct store_checkpoint *x = &all.v[i];

		if (!checkpoints_ends_with(x, of, n))
			continue;
		x->nchain -= n - 1;
		snprintf(x->chain[x->nchain - 1], ID_MAX + 1, "%s", layer);
		rc = checkpoints_set_chain(s, x, e);
	}
	store_checkpoints_fini(&all);
	return rc;
}

int store_checkpoint_merged(struct store *s, const struct store_checkpoint *of, unsigned n,
			    const char *layer, uint64_t bytes, struct err *e)
{
	if (n < 2 || n > of->nchain)
		return err_set(e, ERR_INVALID, "%u of %u layers cannot be merged", n, of->nchain);
	if (store_begin(s, e) < 0)
		return -1;
	if (store_checkpoint_layer_add(s, of->team, layer, bytes, of->created_ns, e) < 0 ||
	    checkpoints_merge_rows(s, of, n, layer, e) < 0)
		return store_rollback(s);
	return store_commit(s, e);
}
