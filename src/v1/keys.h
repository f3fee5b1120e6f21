/* keys.h - /v1/keys: who may come in. The key itself is told once, in the answer to its making. */
#pragma once
#include "api/api.h"

extern const struct field keys_create_fields[], keys_list_query[], keys_one_query[];

/* One more for k->team, unless it has too many; the key itself is out_text. */
must_check int keys_add(struct call *c, struct store_key *k, char out_text[KEY_TEXT + 1],
			struct err *e);
/* The answer, and the only one with the key in it: text is wiped. doc: without it, for the audit, too. */
void keys_made(struct call *c, const struct store_key *k, json_t *take_doc,
	       char text[KEY_TEXT + 1]);

json_t *keys_json(const struct store_key *k); /* without the key itself, which is not kept */

void keys_create(struct call *c);
void keys_list(struct call *c);
void keys_show(struct call *c);
void keys_delete(struct call *c);
