/* proofs.c - see proofs.h. Every key may read them: boxes cite them as `isolation.evidence`. */
#include "v1ops/proofs.h"
#include "base/id.h"
#include "prove/prove.h"
#include "store/proofs.h"

#include <string.h>

const struct field proofs_list_query[] = {
	{ "tier", FIELD_TEXT, 0, 0, STORE_WORD, "only proofs of this tier", NULL },
	{ "limit", FIELD_INT, 0, 1, STORE_PAGE_MAX, "number of items per page (default 100)",
	  NULL },
	{ "after", FIELD_TEXT, 0, 0, STORE_CURSOR_TEXT, "`next` of the previous page", NULL },
	{ 0 },
};

static int proofs_read(struct call *c, struct store_proofs *out, struct err *e)
{
	const char *after = call_query(c, "after"), *tier = call_query(c, "tier");
	struct store_cursor at = { 0 };

	if (after && *after && store_cursor_parse(after, &at, e) < 0)
		return -1;
	return store_proof_list(c->api->store, tier && *tier ? tier : NULL, &at,
				(unsigned)call_query_int(c, "limit", 0), out, e);
}

void v1_proofs_list(struct call *c)
{
	char next[STORE_CURSOR_TEXT] = "";
	struct store_proofs rows = { 0 };
	json_t *items;
	struct err e;

	if (proofs_read(c, &rows, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	items = json_array();
	for (unsigned i = 0; i < rows.n; i++)
		json_array_append_new(items, prove_json(&rows.v[i], 0));
	if (rows.more) {
		struct store_cursor last = { .ns = rows.v[rows.n - 1].at_ns };

		memcpy(last.id, rows.v[rows.n - 1].id, sizeof(last.id));
		store_cursor_text(&last, next);
	}
	store_proofs_fini(&rows);
	call_list(c, items, next);
}

void v1_proofs_show(struct call *c)
{
	const char *id = call_param(c, 0);
	struct store_proof p;
	struct err e;

	if (!id_valid(id) || store_proof_get(c->api->store, id, &p, &e) < 0) {
		if (id_valid(id) && e.kind != ERR_NOT_FOUND)
			call_fail(c, &e);
		else
			call_error(c, 404, "not_found", "there is no such proof", id,
				   "list them: GET /v1/proofs");
		return;
	}
	call_json(c, 200, prove_json(&p, 1));
	store_proof_fini(&p);
}
