/* exec_follow.h - follows a program in a box of the daemon: its output at the exact byte, input
 * and signals from here, until it ends.
 * Owns: two threads, one for input and one for signals; they end with the process, so a caller
 * that follows a program with input or signals keeps its struct exec_follow until then.
 *
 * The connection may break at any time, and the daemon may be another process afterwards: output
 * continues at the first byte that was not written yet, input at the first that the program has
 * not received. */
#pragma once
#include "cli/api_client.h"
#include <pthread.h>

struct exec_follow {
	/* clang-format off */
	struct api_client *r;
	struct api_client mould; /* for the clients of the threads: the daemon's address; nothing to be freed */
	const char *box;
	char exec[64];    /* its id; "" until it is known */
	char tag[32];     /* to find it if the answer to its start was lost */
	uint64_t next[2]; /* the first byte of stdout and stderr that is still needed */
	int out[2];       /* the descriptors for output; -1: discard it */
	struct buf *keep[2];
	size_t keep_max;  /* bytes of each */
	uint64_t dropped[2]; /* bytes that the daemon no longer has */
	int terminal;     /* the terminal of this process is raw, the program has its own */
	int input;        /* stdin is passed on */
	int attached;     /* it was running before this process attached, and may have had input */
	int twice;        /* two Ctrl-C kill, also inside a terminal */
	int signals;      /* are passed on */
	int snapshot;     /* only output that exists already */
	int lines;        /* the daemon's lines are printed to stdout unchanged, and nothing else */
	int quiet;
	json_t *record;   /* set once it has ended; the caller frees it */

	int unread; /* the reader of this process's output has closed it */
	uint64_t tip[2];
	unsigned tips; /* bits: which of them were printed */
	const char *wrong;
	pthread_mutex_t lock;
	pthread_cond_t moved;
	int known;           /* exec is set; under lock */
	unsigned generation; /* the number of reconnections; under lock */
	/* clang-format on */
};

void exec_follow_init(struct exec_follow *f, struct api_client *r, const char *box);
/* Both return 0 with the record, or the exit status. A snapshot may have none. */
must_check int exec_follow_start(struct exec_follow *f, json_t *take_body);
must_check int exec_follow_exec(struct exec_follow *f, const char *exec);
void exec_follow_fini(struct exec_follow *f);

/* Both ends of this process are one terminal, and it may change it. */
int exec_follow_has_terminal(void);
json_t *exec_follow_size(void); /* {rows, cols} */
/* Prints how it ended, if that needs a message. Returns the exit status. */
int exec_follow_report(const struct cli *cli, const json_t *record);
