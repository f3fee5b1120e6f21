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
/* What to do about a document that fields_check() has refused. */
const char *fields_hint(const json_t *doc, const struct field *table);
/* After fields_check(): takes out what is null, which is the same as not given, and makes numbers of sizes and
 * times that were given as texts ("512M", "30s"). */
void fields_prune(json_t *doc, const struct field *table);
/* As JSON schema, for /openapi.json. */
json_t *fields_schema(const struct field *table);
/* More members of objects and arrays than this, or deeper nesting, are refused before anything is made
 * of them: a document costs by its members, not by its bytes. */
enum { FIELDS_MEMBERS = 10000, FIELDS_DEPTH = 64 };
must_check int fields_scan(const char *text, size_t n, struct err *e);
/* How many bytes a body of this table may have: most where it takes files, code or other texts of any
 * length, else FIELDS_SMALL. */
enum { FIELDS_SMALL = 256 << 10 };
uint64_t fields_most(const struct field *table, uint64_t most);
/* Strict: duplicates, depth, invalid UTF-8, trailing bytes are refused. */
json_t *fields_parse(const char *text, size_t n, struct err *e);
int fields_is_name(const char *s, size_t most);
