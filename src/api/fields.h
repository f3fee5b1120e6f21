/* fields.h - is a JSON document what its table says? */
#pragma once
#include "api/api.h"

/* A row with this name: fields that are not in the table are taken and ignored. */
#define FIELDS_OTHERS "*"

/* Unknown fields, wrong types and values out of range are refused with the path to them. */
must_check int fields_check(const json_t *doc, const struct field *table, const char *path,
			    struct err *e);
/* The same for a query; values are texts. */
must_check int fields_check_query(struct http_req *r, const struct field *table, struct err *e);
/* Takes out what is null: that is the same as not given. */
void fields_prune(json_t *doc, const struct field *table);
/* As JSON schema, for /openapi.json. */
json_t *fields_schema(const struct field *table);
/* Strict: duplicates, depth, invalid UTF-8, trailing bytes are refused. */
json_t *fields_parse(const char *text, size_t n, struct err *e);
int fields_is_name(const char *s, size_t most);
