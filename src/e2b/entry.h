/* entry.h - paths and file entries in E2B's form. The entries come from the box
 * (v1box/file_request.h): they have a limited size and are not trusted. */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "wire/wire.h"
#include <jansson.h>
#include <stddef.h>

/* The path as the box sees it: a relative path is below `start`, and "~/" is below `home`. An empty
 * path is `start` itself. */
must_check int entry_path(const char *given, const char *home, const char *start, struct buf *out,
			  struct err *e);
const char *entry_name(const char *path); /* its last part */

struct entry_shape {
	const char *below; /* the folder that its name is relative to; NULL: it is a path */
	int brief;         /* name, type and path only: old clients take no other fields */
};
/* EntryInfo of an ENTRY with WIRE_ENTRY_FULL; NULL: not a valid entry. */
json_t *entry_json(const struct entry_shape *s, const struct wire_entry *e, const char *tail,
		   size_t n);
/* The same for the attributes alone; an empty object without any. */
json_t *entry_metadata(const char *tail, size_t n);

enum { ENTRY_PERMISSIONS = 20 };
void entry_permissions(uint32_t mode,
		       char out[ENTRY_PERMISSIONS]); /* in the format of Go: "drwxr-xr-x" */
