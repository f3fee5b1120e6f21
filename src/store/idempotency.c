/* idempotency.c - see idempotency.h. */
#include "store/idempotency.h"
#include "base/cleanup.h"
#include "store/sql.h"

#include <string.h>

void store_idem_fini(struct store_idem *i)
{
	free(i->body);
	i->body = NULL;
	i->len = 0;
}

static int idem_insert(struct store *s, const char *team, const char *key,
		       const uint8_t hash[SHA256_BYTES], int64_t at_ns, int *out_new, struct err *e)
{
	/* A key that is too old counts as missing, whether or not it was purged. */
	auto_sql struct sql q =
		sql(s, "INSERT INTO idempotency VALUES (?, ?, ?, ?, '', 0, '', x'')"
		       " ON CONFLICT (team, key) DO UPDATE SET hash = excluded.hash,"
		       " created_ns = excluded.created_ns, subject = '', status = 0, type = '',"
		       " body = x'' WHERE created_ns < ?");

	sql_text(&q, team);
	sql_text(&q, key);
	sql_blob(&q, hash, SHA256_BYTES);
	sql_i64(&q, at_ns);
	sql_i64(&q, at_ns - IDEM_KEEP_NS);
	if (sql_run(&q, e) < 0)
		return -1;
	*out_new = sql_changes(&q) > 0;
	return 0;
}

static int read_idem(struct store *s, const char *team, const char *key,
		     const uint8_t hash[SHA256_BYTES], struct store_idem *out, struct err *e)
{
	auto_sql struct sql q = sql(s, "SELECT hash = ?, created_ns, subject, status, type, body"
				       " FROM idempotency WHERE team = ? AND key = ?");

	sql_blob(&q, hash, SHA256_BYTES);
	sql_text(&q, team);
	sql_text(&q, key);
	if (sql_one(&q, "idempotency key", key, e) < 0)
		return -1;
	if (!sql_get_i64(&q))
		return err_set(e, ERR_CONFLICT,
			       "idempotency key '%.40s' was used for another request", key);
	*out = (struct store_idem){ .created_ns = sql_get_i64(&q) };
	sql_get_text(&q, out->subject, sizeof(out->subject));
	out->status = (int)sql_get_i64(&q);
	out->state = out->status ? IDEM_DONE : IDEM_BUSY;
	sql_get_text(&q, out->type, sizeof(out->type));
	out->body = sql_get_blob(&q, &out->len);
	return 0;
}

int store_idem_begin(struct store *s, const char *team, const char *key,
		     const uint8_t hash[SHA256_BYTES], int64_t at_ns, struct store_idem *out,
		     struct err *e)
{
	int is_new;

	if (!*key || strlen(key) > IDEM_KEY)
		return err_set(e, ERR_INVALID, "an idempotency key has 1 to %d bytes", IDEM_KEY);
	if (idem_insert(s, team, key, hash, at_ns, &is_new, e) < 0)
		return -1;
	if (!is_new)
		return read_idem(s, team, key, hash, out, e);
	*out = (struct store_idem){ .state = IDEM_NEW, .created_ns = at_ns };
	return 0;
}

int store_idem_subject(struct store *s, const char *team, const char *key, const char *subject,
		       struct err *e)
{
	auto_sql struct sql q =
		sql(s, "UPDATE idempotency SET subject = ? WHERE team = ? AND key = ?");

	sql_text(&q, subject);
	sql_text(&q, team);
	sql_text(&q, key);
	return sql_run_one(&q, "idempotency key", key, e);
}

int store_idem_finish(struct store *s, const char *team, const char *key, int status,
		      const char *type, const void *body, size_t len, struct err *e)
{
	auto_sql struct sql q = sql(s, "UPDATE idempotency SET status = ?, type = ?, body = ?"
				       " WHERE team = ? AND key = ?");

	if (status <= 0)
		return err_set(e, ERR_INVALID, "an answer without a status");
	sql_i64(&q, status);
	sql_text(&q, type);
	sql_blob(&q, body, len);
	sql_text(&q, team);
	sql_text(&q, key);
	if (sql_run_one(&q, "idempotency key", key, e) < 0)
		return -1;
	s->history_bytes += len;
	return 0;
}

int store_idem_forget(struct store *s, const char *team, const char *key, struct err *e)
{
	auto_sql struct sql q = sql(s, "DELETE FROM idempotency WHERE team = ? AND key = ?");

	sql_text(&q, team);
	sql_text(&q, key);
	return sql_run_one(&q, "idempotency key", key, e);
}
