/* file_request.h - what all surfaces share for the files of a box: a file worker for the call,
 * paths, errors, entries.
 * Owns:         the file client, from file_request_open() until the answer was sent or the client
 *               has disconnected.
 * Does not own: any decision about a path. The path is passed to the box unchanged; the kernel
 *               decides inside the box where it leads and whether access is allowed. The daemon
 *               opens no path. Answers of the worker are untrusted: a program in the box may have
 *               forged them. They are limited in size and only affect the box itself. */
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
	const char *path; /* absolute; named in errors */
	int open;
	struct timer
		patience; /* limits the wait for a worker that does nothing: a program in the box
			   * may stop it */
	int gone;         /* the client has closed its side, and may have disconnected */
};

/* The path inside the box; a relative one is below its home. NULL: rejected, and the error was
 * sent. */
const char *file_request_path(struct call *c, const char *given);
/* The same for a request that reads all files below the path. */
const char *file_request_tree(struct call *c, const char *given);

/* d->path must be set. Uses c->state (d is the first member of that struct) and c->drop. Returns 0
 * if the box does not exist, which is answered. */
int file_request_open(struct file_request *d, struct call *c, const struct file_client_events *on);
/* The same for a given box; flags: WIRE_FILES_*. */
void file_request_open_in(struct file_request *d, struct call *c, struct box *b, uint16_t flags,
			  const struct file_client_events *on);
void file_request_close(struct file_request *d);
/* stalls 1: the worker does not read; the request fails with 504 unless it continues soon. */
void file_request_stalls(struct file_request *d, int stalls);
/* Each ends the request; the worker is closed first. */
void file_request_json(struct file_request *d, int status, json_t *take_doc);
void file_request_error(struct file_request *d, int status, const char *code, const char *message,
			const char *why, const char *hint);
void file_request_fail(struct file_request *d, const struct err *e); /* status by errno */
/* The same as the last event of a stream that has started. */
json_t *file_request_fail_json(const struct err *e);
void file_request_no_space(struct call *c); /* 507 with the disk limit of the box */

/* Requests without a body. */
void file_request_ask(struct file_request *d, uint8_t type, uint16_t flags, const void *tail,
		      size_t n);
void file_request_look(struct file_request *d,
		       const char *path); /* the answer is an ENTRY, or failed() with ENOENT */

/* ---- entries ---- */
struct file_request_entry { /* an ENTRY of the worker, split into its parts */
	const char *name;   /* as sent by the worker: a path or part of one */
	const char *target; /* of a link; else NULL */
};
/* 0: malformed entry. */
int file_request_split(const struct wire_entry *e, const char *tail, size_t n,
		       struct file_request_entry *out);
/* below: the folder that its name is relative to; NULL: the name is a path. */
json_t *file_request_entry_json(const struct wire_entry *e, const struct file_request_entry *parts,
				const char *below);
const char *file_request_type(uint32_t mode);
/* Sets key, and also key_base64 if the bytes are not UTF-8. */
void file_request_set_text(json_t *doc, const char *key, const char *bytes);

/* ---- versions ---- */
void file_request_etag(const struct wire_entry *e,
		       char out[FILE_REQUEST_ETAG]);             /* with its quotes */
int file_request_etag_among(const char *list, const char *etag); /* a header's value; "*" is any */

/* "0644" -> 0644; -1: not a mode. */
int file_request_mode(const char *text);
