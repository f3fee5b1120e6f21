/* files.h - what the two interfaces of envd to a box's files share: user, path, errors.
 *   filesystem.c  filesystem.Filesystem: stat, list, make, move, remove
 *   watchers.c    of it: what changes in a folder
 *   files_http.c  /files: content in and out
 *   compose.c     of it: one file of many
 *   file_auth.c   of it: access
 * A worker that is root in the box does all of it. The user of the request decides where
 * relative paths begin, and owns new files. */
#pragma once
#include "v1box/file_request.h"
#include "e2b/connect.h"

enum { FILES_WORKER = WIRE_FILES_ROOT_IF };

/* ---- filesystem.Filesystem ---- */
void filesystem_stat(struct call *c);
void filesystem_list(struct call *c);
void filesystem_make(struct call *c);
void filesystem_move(struct call *c);
void filesystem_remove(struct call *c);
void filesystem_watch(struct call *c);
void filesystem_watcher_new(struct call *c);
void filesystem_watcher_events(struct call *c);
void filesystem_watcher_remove(struct call *c);

/* ---- /files ---- */
void files_http_get(struct call *c);
void files_http_post(struct call *c);
extern const struct field transfer_compose_fields[];
void files_http_compose(struct call *c); /* compose.c */
void files_http_options(struct call *c); /* admit.c */

/* ---- shared ---- */
/* The path that a request names, in the call's memory; NULL: rejected, and the error was sent. */
const char *files_rpc_path(struct call *c, const json_t *ask, const char *field, int root);
void files_rpc_fail(struct call *c, const struct err *e); /* by its errno; no answer was started */
void files_rpc_file_req_fail(struct file_request *d,
			     const struct err *e); /* the same, and ends the worker */
void files_rest_fail(struct file_request *d, const struct err *e);
int files_is_old(const struct call *c); /* a client that accepts no new fields */

/* An answer that is an object with one array in it, of any length: written as the items arrive. */
struct files_array {
	struct http_req *req;
	const char *key;
	int begun;
};
int files_array_add(struct files_array *a, json_t *take_item); /* 1: full, wait for on_drain */
void files_array_end(struct files_array *a);

/* The watchers of all boxes. */
struct watchers;
struct watchers *watchers_new(void);
void watchers_free(struct watchers *w); /* NULL is fine */
struct watchers *e2b_watchers(struct api *a);

/* /files with a signature and without the name of a box: the box whose token signed it; NULL:
 * none. */
struct box *files_http_find(struct call *c);
