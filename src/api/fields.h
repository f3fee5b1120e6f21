/* fields.h - validates a JSON document with a table of fields. */
#pragma once
#include "api/api.h"

/* A row with this name: fields that are not in the table are accepted and ignored. */
#define FIELDS_OTHERS "*"

/* Unknown fields, wrong types and values out of range are rejected; the error has the path
 * to them. */
must_check int fields_check(const json_t *doc, const struct field *table, const char *path,
			    struct err *e);
/* The same for a query, whose values are strings. */
must_check int fields_check_query(struct http_req *r, const struct field *table, struct err *e);
/* A hint for the client whose document fields_check() has rejected. */
const char *fields_hint(const json_t *doc, const struct field *table);
/* After fields_check(): removes members that are null, which means not given, and converts sizes
 * and times that are strings ("512M", "30s") to numbers. */
void fields_prune(json_t *doc, const struct field *table);
/* As JSON schema, for /openapi.json. */
json_t *fields_schema(const struct field *table);
/* A document with more members of objects and arrays than this, or deeper nesting, is rejected
 * before it is parsed: its cost in memory depends on its members, not on its bytes. */
enum { FIELDS_MEMBERS = 10000, FIELDS_DEPTH = 64 };
/* How many bytes a body of this table may have: `most` if the table has files, code or other texts
 * of any length, else FIELDS_SMALL. */
enum { FIELDS_SMALL = 256 << 10 };
uint64_t fields_most(const struct field *table, uint64_t most);
/* Strict: rejects duplicate keys, deep nesting, invalid UTF-8 and trailing bytes. */
json_t *fields_parse(const char *text, size_t n, struct err *e);
int fields_is_name(const char *s, size_t most);
