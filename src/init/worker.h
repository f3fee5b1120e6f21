/* worker.h - the files of the file worker (files.c): what they share, and their requests.
 *   files.c    the worker itself, and what is one system call     put.c      PUT, DATA
 *   list.c     LIST                                               copy.c     COPY
 *   changes.c  CHANGES                                            watch.c    WATCH
 *   search.c   SEARCH                                             worker_reply.c  its answers
 *   sockets.c  SOCKETS                                            entry_full.c  an entry with all attributes
 * One request after another, in a process of its own: blocking is fine, statics are fine. The
 * frame is in `scratch`; code that fills that with bytes of files copies what it still needs. */
#pragma once
#include "wire/wire.h"
#include <stddef.h>

enum { SOCK = 3, UPPER = 4 }; /* all the worker has, besides /dev/null three times */
enum { CHUNK = 49152 };       /* bytes per DATA frame */
enum {
	PIPE_PART = 256 << 10
}; /* written into a pipe at once: a quarter of its size, so that both ends can work */
enum { ANSWERED = 1 }; /* from a handler: the answer was already sent */
enum { PARTS = 3 };

struct stat;

struct job {
	/* clang-format off */
	union {
		const struct frame *head;
		const struct wire_put *put;
		const struct wire_get *get;
		const struct wire_list *list;
		const struct wire_changes *changes;
		const struct wire_search *search;
		const struct wire_chown *chown;
	};
	char *path;        /* the tail, with its NUL */
	char *part[PARTS]; /* the tail cut at its NULs; "" where there is none */
	uint32_t tail_len;
	int pipe; /* WIRE_PIPE: for the bytes; else -1 */
	/* clang-format on */
};

/* Requests: 0: send DONE; ANSWERED; or -errno: send ERROR. */
int put(const struct job *j);
int put_data(const struct job *j);
int put_meta(const struct job *j);
int put_append(const struct job *j);
void put_init(void);
void put_close(void); /* gives up an upload that has not ended */
int list(const struct job *j);
int copy(const struct job *j);
int changes(const struct job *j);
int search(const struct job *j);
int sockets(const struct job *j);
int watch(const struct job *j); /* returns only if it fails at once */

/* Replies. They end the worker when the client has disconnected. */
void say(const void *body, size_t n, const void *tail, size_t tail_n);
void say_two(const void *body, size_t n, const char *a, const char *b); /* tail: a NUL b */
void say_head(uint8_t type, uint32_t ref, uint16_t flags);
void say_error(uint32_t ref, const char *action, const char *path, int err);
void say_refusal(uint32_t ref, uint32_t kind, const char *action, const char *path,
		 const char *why);
void say_entry(uint32_t ref, const struct stat *st, const uint8_t *sha256, const char *name,
	       size_t n);
/* With the target of a link: `at` in `dir` is the real place, `name` the client's name of it. */
void say_link(uint32_t ref, const struct stat *st, int dir, const char *at, const char *name);
uint64_t mtime_ns(const struct stat *st);
struct wire_entry entry_from(uint32_t ref, const struct stat *st);
/* WIRE_ENTRY_FULL: the same with all that full.c finds out. */
void say_full(uint32_t ref, const struct stat *st, int dir, const char *at, const char *name);
void full_forget(void); /* reads the names of users again: they may have changed */
int real_path(int fd, char to[], size_t n); /* of the open file; its length, or -errno */
#define ATTRIBUTE "user.e2b."               /* prefix of the attributes that META sets */

/* Paths. */
const char *last_part(const char *path);
/* The directory of the last part of the path, created if it is missing, and then owned by the
 * user if requested; -errno. */
int open_parent(char *path, int users);
#define TEMPORARY ".atoll-" /* prefix of the names of incomplete files */
void temporary_name(char out[48]);
enum remove {
	REMOVE_ONE,
	REMOVE_TREE,
	REMOVE_FORCED /* folders of this worker, with modes that forbid it */
};
int remove_at(int dir, const char *path, enum remove how); /* -errno */
