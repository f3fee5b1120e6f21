/* files.h - /v1/boxes/{box}/files: the files of a box, read and changed by a worker inside it.
 *   files.c     stat, list, delete, mkdir, move, copy, chmod      download.c  content out
 *   upload.c    content in                                        archive.c   whole trees
 *   search.c    by name and content                               watch.c     what changes
 * A stopped box stays stopped, because a file worker is not an exec. Archives are packed by an
 * exec, which starts the box again. (The prefix files_ belongs to client/files.h: the same worker
 * for blocking callers.) */
#pragma once
#include "api/api.h"

extern const struct field boxfiles_path_query[], boxfiles_put_query[], boxfiles_delete_query[],
	boxfiles_list_query[], boxfiles_mkdir_fields[], boxfiles_move_fields[],
	boxfiles_chmod_fields[], boxfiles_archive_query[], boxfiles_search_query[],
	boxfiles_watch_query[];

void boxfiles_get(struct call *c);
void boxfiles_put(struct call *c);
void boxfiles_delete(struct call *c);
void boxfiles_stat(struct call *c);
void boxfiles_list(struct call *c);
void boxfiles_mkdir(struct call *c);
void boxfiles_move(struct call *c);
void boxfiles_copy(struct call *c);
void boxfiles_chmod(struct call *c);
void boxfiles_pack(struct call *c);
void boxfiles_unpack(struct call *c);
void boxfiles_search(struct call *c);
void boxfiles_watch(struct call *c);
