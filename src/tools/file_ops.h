/* file_ops.h - files of a box for a tool: one step after the other, by one worker.
 * Owns: the bytes of the last file that was read. A failure ends the job. */
#pragma once
#include "v1box/file_request.h"
#include "tools/tool.h"

enum { CONTENT_MAX = 4 << 20 }; /* of a file that is held in memory */

struct file_ops {
	struct file_request file_req; /* first: it is c->state */
	struct tool_job *job;
	struct wire_entry about; /* of what was read */
	struct buf bytes;
	int there;    /* it was */
	int may_miss; /* then a missing file is not a failure */
	int folder;   /* the file is missing: bytes is empty */
	int reading, looking;
	int pouring; /* into this pipe: */
	int pipe;
	struct watch room;
	const char *rest; /* bytes left to write */
	size_t nrest;
	void (*next)(struct file_ops *x);
	void *user;
};

/* Opens a file worker, then calls next. 0: rejected, and the error was sent. */
int file_ops_open(struct file_ops *x, struct tool_job *j, void (*next)(struct file_ops *x));
/* Each calls next when it is done. Paths are absolute: file_request_path(). */
void file_ops_get(struct file_ops *x, const char *path, void (*next)(struct file_ops *x));
void file_ops_stat(struct file_ops *x, const char *path, void (*next)(struct file_ops *x));
/* Only if unchanged: rejected if the file was changed since it was read. */
enum file_ops_mode { CONTENT_ANY, CONTENT_NEW, CONTENT_SAME };
void file_ops_put(struct file_ops *x, const char *path, const void *bytes, size_t n,
		  enum file_ops_mode how, void (*next)(struct file_ops *x));
/* The same with CONTENT_ANY for any n: the worker reads the bytes when it can. They belong to the
 * caller and must not change until the job has ended. */
void file_ops_stream(struct file_ops *x, const char *path, const char *bytes, size_t n,
		     void (*next)(struct file_ops *x));
void file_ops_remove(struct file_ops *x, const char *path, void (*next)(struct file_ops *x));
/* Closes the worker, before the result. */
void file_ops_close(struct file_ops *x);
int file_ops_is_text(const struct buf *b);
