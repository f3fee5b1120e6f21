/* file_request.h - what the doors to a box's files share: a file worker for the call, paths, errors, entries.
 * Owns:         the clerk, from file_request_open() until the answer is out or the client has left.
 * Does not own: any decision about a path. It goes into the box as it came; what it leads to, and
 *               who may go there, is for the kernel in there to say. The daemon opens none.
 * What the worker says is the box's word: a program in the box may have put it in its mouth. It is
 * bounded and never believed further than the box itself reaches. */
#pragma once
#include "api/api.h"
#include "client/file_client.h"

enum { FILE_REQUEST_PATH = 4095, FILE_REQUEST_ETAG = 48 };
#define FILE_REQUEST_PATH_FIELD(need, help)                                                        \
	{                                                                                          \
		"path", FIELD_TEXT, need, 0, FILE_REQUEST_PATH, help, NULL                         \
	}

struct box;
struct file_request {
	struct file_client file_client;
	struct call *call;
	const char *path; /* absolute; what errors are about */
	int open;
	struct timer
		patience; /* with a worker that does nothing: a program in the box may stop it */
	int gone;         /* the client sends no more, and has perhaps left */
};

/* As the box sees it: what is relative is below its home. NULL: refused, and answered. */
const char *file_request_path(struct call *c, const char *given);

/* d->path is set. Takes c->state (d is the first member of what is there) and c->drop. Returns 0 when
 * there is no such box; that is answered. */
int file_request_open(struct file_request *d, struct call *c, const struct file_client_events *on);
/* The same in a box that the caller knows; flags: WIRE_FILES_*. */
void file_request_open_in(struct file_request *d, struct call *c, struct box *b, uint16_t flags,
			  const struct file_client_events *on);
void file_request_close(struct file_request *d);
/* The worker does not take what it was sent: 504 unless it does so soon. */
void file_request_stalls(struct file_request *d, int stalls);
/* Each is the last word: the worker is sent away first. */
void file_request_json(struct file_request *d, int status, json_t *take_doc);
void file_request_error(struct file_request *d, int status, const char *code, const char *message,
			const char *why, const char *hint);
void file_request_fail(struct file_request *d, const struct err *e); /* by its errno */
/* The same for a stream that has begun: as its last event. */
json_t *file_request_fail_json(const struct err *e);
void file_request_no_space(struct call *c); /* 507 with the box's limit */

/* Questions without a body. */
void file_request_ask(struct file_request *d, uint8_t type, uint16_t flags, const void *tail,
		      size_t n);
void file_request_look(struct file_request *d,
		       const char *path); /* an ENTRY, or failed with ENOENT */

/* ---- entries ---- */
struct file_request_entry { /* an ENTRY of the worker, cut into its parts */
	const char *name;   /* as the worker tells it: path or part of one */
	const char *target; /* of a link; else NULL */
};
/* 0: that was never an entry. */
int file_request_split(const struct wire_entry *e, const char *tail, size_t n,
		       struct file_request_entry *out);
/* below: the folder that its name is relative to; NULL: the name is a path. */
json_t *file_request_entry_json(const struct wire_entry *e, const struct file_request_entry *parts,
				const char *below);
const char *file_request_type(uint32_t mode);
/* Sets key, and key_base64 where the bytes are no UTF-8. */
void file_request_set_text(json_t *doc, const char *key, const char *bytes);

/* ---- versions ---- */
void file_request_etag(const struct wire_entry *e,
		       char out[FILE_REQUEST_ETAG]);             /* with its quotes */
int file_request_etag_among(const char *list, const char *etag); /* a header's value; "*" is any */

/* "0644" -> 0644; -1: is none. */
int file_request_mode(const char *text);
