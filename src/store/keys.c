/* keys.c - see keys.h. */
#include "store/keys.h"
#include "base/cleanup.h"
#include "base/hex.h"
#include "store/sql.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static const char *const roles[] = {
	[ROLE_VIEWER] = "viewer",
	[ROLE_EDITOR] = "editor",
	[ROLE_OWNER] = "owner",
};
static_assert(ARRAY_LEN(roles) == ROLE_COUNT, "a role without a name");

const char *store_role_name(enum store_role role)
{
	return (unsigned)role < ROLE_COUNT ? roles[role] : "unknown";
}

int store_role_parse(const char *text, enum store_role *out)
{
	for (unsigned i = 0; i < ROLE_COUNT; i++)
		if (strcmp(text, roles[i]) == 0) {
			*out = (enum store_role)i;
			return 0;
		}
	return -1;
}

/* The key ---- */

int store_key_make(char out_text[KEY_TEXT + 1], struct store_key *k, struct err *e)
{
	uint8_t raw[(KEY_TEXT - sizeof(KEY_PREFIX) + 1) / 2];
	char *p = out_text + sprintf(out_text, "%s", KEY_PREFIX);

	if (id_random(raw, sizeof(raw), e) < 0)
		return -1;
	hex_encode(p, raw, sizeof(raw));
	snprintf(k->shown, sizeof(k->shown), "%s", out_text);
	return store_key_hash(out_text, k->hash);
}

int store_key_hash(const char *text, uint8_t out[SHA256_BYTES])
{
	size_t prefix = strlen(KEY_PREFIX);
	struct sha256 sha;

	if (strnlen(text, KEY_TEXT + 1) != KEY_TEXT || strncmp(text, KEY_PREFIX, prefix) != 0 ||
	    strspn(text + prefix, "0123456789abcdef") != KEY_TEXT - prefix)
		return -1;
	sha256_init(&sha);
	sha256_add(&sha, text, KEY_TEXT);
	sha256_end(&sha, out);
	return 0;
}

static int keys_same(const uint8_t *a, const uint8_t *b)
{
	unsigned differ = 0;

	for (unsigned i = 0; i < SHA256_BYTES; i++)
		differ |= (unsigned)(a[i] ^ b[i]);
	return differ == 0;
}

/* Rows ---- */

#define COLUMNS                                                                                    \
	"id, name, team, role, box, hash, shown, created_ns, used_ns, expires_ns, revoked, "       \
	"isolation"

static void read_key(struct sql *q, void *row)
{
	struct store_key *k = row;
	auto_free void *hash = NULL;
	char role[16];
	size_t n;

	sql_get_text(q, k->id, sizeof(k->id));
	sql_get_text(q, k->name, sizeof(k->name));
	sql_get_text(q, k->team, sizeof(k->team));
	sql_get_text(q, role, sizeof(role));
	if (store_role_parse(role, &k->role) < 0)
		k->role =
			ROLE_VIEWER; /* the lowest role, for a value that a CHECK should have rejected */
	sql_get_text(q, k->box, sizeof(k->box));
	hash = sql_get_blob(q, &n);
	if (n == sizeof(k->hash))
		memcpy(k->hash, hash, n);
	sql_get_text(q, k->shown, sizeof(k->shown));
	k->created_ns = sql_get_i64(q);
	k->used_ns = sql_get_i64(q);
	k->expires_ns = sql_get_i64(q);
	k->revoked = sql_get_i64(q) != 0;
	sql_get_text(q, k->isolation, sizeof(k->isolation));
}

int store_key_add(struct store *s, struct store_key *k, struct err *e)
{
	auto_sql struct sql q = sql(s, "INSERT INTO keys (" COLUMNS
				       ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");

	if (id_new(k->id, e) < 0)
		return -1;
	sql_text(&q, k->id);
	sql_text(&q, k->name);
	sql_text(&q, k->team);
	sql_text(&q, store_role_name(k->role));
	sql_text(&q, k->box);
	sql_blob(&q, k->hash, sizeof(k->hash));
	sql_text(&q, k->shown);
	sql_i64(&q, k->created_ns);
	sql_i64(&q, k->used_ns);
	sql_i64(&q, k->expires_ns);
	sql_i64(&q, k->revoked != 0);
	sql_text(&q, k->isolation);
	if (sql_run(&q, e) == 0)
		return 0;
	if (q.rc == SQLITE_CONSTRAINT_FOREIGNKEY)
		return err_set(e, ERR_NOT_FOUND, "no team '%s'", k->team);
	if (e->kind == ERR_CONFLICT)
		return err_set(e, ERR_CONFLICT, "team '%s' has a key '%s' already", k->team,
			       k->name);
	return -1;
}

int store_key_mirror(struct store *s, const struct store_key *k, struct err *e)
{
	auto_sql struct sql q =
		sql(s, "INSERT INTO keys (" COLUMNS
		       ") VALUES (?, '', ?, ?, ?, ?, 'gateway', ?, 0, 0, 1, ?)"
		       " ON CONFLICT (id) DO UPDATE SET team = excluded.team, role = excluded.role,"
		       " box = excluded.box, isolation = excluded.isolation");
	struct store_key old;
	uint8_t hash[SHA256_BYTES];
	struct sha256 sha;

	if (store_key_get(s, k->id, &old, e) == 0 && strcmp(old.team, k->team) == 0 &&
	    old.role == k->role && strcmp(old.box, k->box) == 0 &&
	    strcmp(old.isolation, k->isolation) == 0)
		return 0;
	sha256_init(&sha); /* of a text that is not of the form of a key */
	sha256_add(&sha, "gateway ", 8);
	sha256_add(&sha, k->id, strlen(k->id));
	sha256_end(&sha, hash);
	sql_text(&q, k->id);
	sql_text(&q, k->team);
	sql_text(&q, store_role_name(k->role));
	sql_text(&q, k->box);
	sql_blob(&q, hash, sizeof(hash));
	sql_i64(&q, k->created_ns);
	sql_text(&q, k->isolation);
	return sql_run(&q, e);
}

int store_key_find(struct store *s, const uint8_t hash[SHA256_BYTES], struct store_key *out,
		   struct err *e)
{
	auto_sql struct sql q = sql(s, "SELECT " COLUMNS " FROM keys WHERE hash = ?");
	struct store_key k = { 0 };

	sql_blob(&q, hash, SHA256_BYTES);
	if (sql_one(&q, "key", "of that hash", e) < 0)
		return -1;
	read_key(&q, &k);
	/* The time of the index search depends on the hash, which reveals nothing about a key.
	 * This comparison decides, in constant time. */
	if (!keys_same(k.hash, hash))
		return err_set(e, ERR_NOT_FOUND, "no key 'of that hash'");
	*out = k;
	return 0;
}

int store_key_get(struct store *s, const char *id, struct store_key *out, struct err *e)
{
	auto_sql struct sql q = sql(s, "SELECT " COLUMNS " FROM keys WHERE id = ?");

	sql_text(&q, id);
	if (sql_one(&q, "key", id, e) < 0)
		return -1;
	memset(out, 0, sizeof(*out));
	read_key(&q, out);
	return 0;
}

int store_key_named(struct store *s, const char *team, const char *id_or_name,
		    struct store_key *out, struct err *e)
{
	auto_sql struct sql q =
		sql(s, "SELECT " COLUMNS " FROM keys WHERE team = ?1 AND (id = ?2 OR"
		       " (name = ?2 AND name <> '' AND NOT revoked))"
		       " ORDER BY id = ?2 DESC LIMIT 1");

	sql_text(&q, team);
	sql_text(&q, id_or_name);
	if (sql_one(&q, "key", id_or_name, e) < 0)
		return -1;
	memset(out, 0, sizeof(*out));
	read_key(&q, out);
	return 0;
}

int store_key_list(struct store *s, const char *team, const struct store_cursor *after,
		   unsigned limit, struct store_keys *out, struct err *e)
{
	auto_where struct sql_where w = { 0 };
	struct sql_rows rows;

	limit = sql_limit(limit);
	buf_puts(&w.text, "SELECT " COLUMNS " FROM keys WHERE 1");
	sql_where_text(&w, "team = ?", team);
	if (after)
		sql_where_after(&w, "created_ns", after);
	auto_sql struct sql q = sql_filtered(s, &w, "ORDER BY created_ns DESC, id DESC LIMIT ?");
	sql_i64(&q, limit + 1);
	if (sql_list(&q, limit, sizeof(*out->v), read_key, NULL, &rows, e) < 0)
		return -1;
	*out = (struct store_keys){ .v = rows.v, .n = rows.n, .more = rows.more };
	return 0;
}

void store_keys_fini(struct store_keys *l)
{
	free(l->v);
	*l = (struct store_keys){ 0 };
}

/* An id is tried first, so that a key cannot hide another one by taking its id as a name. */
static int by_id_or_name(struct store *s, const char *by_id, const char *by_name, const char *team,
			 const char *id_or_name, struct err *e)
{
	for (unsigned i = 0; i < 2; i++) {
		auto_sql struct sql q = sql(s, i ? by_name : by_id);

		sql_text(&q, team);
		sql_text(&q, id_or_name);
		if (sql_run(&q, e) < 0)
			return -1;
		if (sql_changes(&q))
			return 0;
	}
	return err_set(e, ERR_NOT_FOUND, "no key '%.64s'", id_or_name);
}

int store_key_revoke(struct store *s, const char *team, const char *id_or_name, struct err *e)
{
	return by_id_or_name(
		s, "UPDATE keys SET revoked = 1 WHERE team = ? AND id = ?",
		"UPDATE keys SET revoked = 1 WHERE team = ? AND name = ? AND name <> '' AND NOT revoked",
		team, id_or_name, e);
}

int store_key_remove(struct store *s, const char *team, const char *id_or_name, struct err *e)
{
	return by_id_or_name(s, "DELETE FROM keys WHERE team = ? AND id = ?",
			     "DELETE FROM keys WHERE team = ? AND name = ? AND name <> ''", team,
			     id_or_name, e);
}

int store_key_touch(struct store *s, struct store_key *k, int64_t at_ns, struct err *e)
{
	static const int64_t minute = INT64_C(60000000000);
	auto_sql struct sql q = { 0 };

	/* In both directions: a clock that was set back must not stop updates for a year. */
	if (at_ns - k->used_ns < minute && k->used_ns - at_ns < minute)
		return 0;
	q = sql(s, "UPDATE keys SET used_ns = ? WHERE id = ?");
	sql_i64(&q, at_ns);
	sql_text(&q, k->id);
	if (sql_run_one(&q, "key", k->id, e) < 0)
		return -1;
	k->used_ns = at_ns;
	return 0;
}
