/* keys.h - /v1/keys: API keys. The key itself is returned once, when it is created. */
#pragma once
#include "api/api.h"

extern const struct field keys_create_fields[], keys_list_query[], keys_one_query[];

/* Creates a key for k->team, unless the team has too many; out_text is the key itself. It is not
 * below the minimum of the key of the caller, which it gets if it has none. */
must_check int keys_add(struct call *c, struct store_key *k, char out_text[KEY_TEXT + 1],
			struct err *e);
/* Sends the only answer that contains the key, and wipes text. doc: the answer without the key,
 * also used for the audit log. */
void keys_made(struct call *c, const struct store_key *k, json_t *take_doc,
	       char text[KEY_TEXT + 1]);

/* Removes expired keys whose names begin with prefix, which would fill the list of the team. */
void keys_remove_expired(struct call *c, const char *team, const char *prefix);
json_t *keys_json(const struct store_key *k); /* without the key itself, which is not stored */

void keys_create(struct call *c);
void keys_list(struct call *c);
void keys_show(struct call *c);
void keys_delete(struct call *c);
