/* entry.h - E2B's words for a path and for what is there.
 * What is said of it is the box's word (v1/file_request.h): bounded, and never believed. */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "wire/wire.h"
#include <jansson.h>
#include <stddef.h>

/* As the box sees it: what is relative is below the user's home ("/root" of root), and so is "~/".
 * Nothing at all is the home itself. */
must_check int entry_path(const char *given, int root, struct buf *out, struct err *e);
const char *entry_name(const char *path); /* its last part */

struct entry_shape {
	const char *below; /* the folder that its name is relative to; NULL: it is a path */
	int brief;         /* name, type and path only: old clients take no other fields */
};
/* EntryInfo of an ENTRY with WIRE_ENTRY_FULL; NULL: that was never one. */
json_t *entry_json(const struct entry_shape *s, const struct wire_entry *e, const char *tail,
		   size_t n);
/* The same of the attributes alone; an empty object without any. */
json_t *entry_metadata(const char *tail, size_t n);

enum { ENTRY_PERMISSIONS = 20 };
void entry_permissions(uint32_t mode,
		       char out[ENTRY_PERMISSIONS]); /* as Go writes them: "drwxr-xr-x" */
