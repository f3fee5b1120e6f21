/* keys.h - /v1/keys: who may come in. The key itself is told once, in the answer to its making. */
#pragma once
#include "api/api.h"

extern const struct field keys_create_fields[], keys_list_query[], keys_one_query[];

void keys_create(struct call *c);
void keys_list(struct call *c);
void keys_show(struct call *c);
void keys_delete(struct call *c);
