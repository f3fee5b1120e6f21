/* volume_files.h - /volumecontent/{volume}: files and folders in a volume, through a box that
 * mounts it. */
#pragma once
#include "api/fields.h"
#include "e2b/e2b.h"

extern const struct field volume_files_query[], volume_files_make_query[],
	volume_files_list_query[], volume_files_patch_fields[];
void volume_files_stat(struct call *c);
void volume_files_list(struct call *c);
void volume_files_mkdir(struct call *c);
void volume_files_patch(struct call *c);
void volume_files_remove(struct call *c);
void volume_files_get(struct call *c);
void volume_files_put(struct call *c);
