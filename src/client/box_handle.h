/* box_handle.h - a box for an unprivileged client: create, exec, files, kill.
 * Owns:         the connections to the keeper and to init of one box.
 * Does not own: the box. It runs until it is killed, or until the connection that it was tied to
 *               (kill on close) is closed.
 * Blocking calls; one thread per struct. The CLI and the benchmarks use this. */
#pragma once
#include "base/err.h"
#include "wire/wire.h"
#include <stddef.h>
#include <stdint.h>

#define BOX_HOME "/home/user" /* working directory of programs */

struct keeper_sync {
	int fd;
	uint32_t next_ref;
	int start; /* start a keeper if none runs */
};
/* Connects; if no keeper listens and start is set, starts a keeper that exits when idle. */
must_check int keeper_sync_open(struct keeper_sync *k, int start, struct err *e);
void keeper_sync_close(struct keeper_sync *k);
/* Checks that the keeper answers and has the same protocol version. Sends one request; a keeper
 * that closes the connection is not replaced. */
must_check int keeper_sync_greet(struct keeper_sync *k, struct wire_info *out, struct err *e);
must_check int keeper_sync_info(struct keeper_sync *k, struct wire_info *out, struct err *e);
/* The facts about its isolation tiers, at most max; returns how many. -1 also if the keeper does not answer in time,
 * for example because it is examining them, or is older. */
must_check int keeper_sync_tiers(struct keeper_sync *k, struct wire_tier_facts *out, unsigned max,
				 unsigned timeout_ms, struct err *e);
must_check int keeper_sync_set_pool(struct keeper_sync *k, unsigned depth, struct wire_info *out,
				    struct err *e);
/* Up to max boxes after the given id ("" for the first); returns how many, -1 on error. */
must_check int keeper_sync_boxes(struct keeper_sync *k, const char *after, struct wire_box *out,
				 unsigned max, struct err *e);

/* An older keeper ignores the tier of a CREATE. Rejects a box of another tier; the caller kills it. */
must_check int keeper_check_tier(const struct wire_create *asked, const struct wire_box *got,
				 struct err *e);
/* Test builds: the tier that ATOLL_TIER names (enum wire_tier); otherwise the container. */
unsigned keeper_test_tier_number(void);
/* Sets this tier in a CREATE that has none. */
void keeper_test_tier(struct wire_create *ask);

struct box_handle {
	struct wire_box about;
	int init; /* connection to its init */
	uint32_t next_ref;
};
struct wire_limits box_default_limits(void); /* the keeper fills in numbers; box.about has them */
/* A keeper that exits while it creates the box is replaced once. */
must_check int boxh_create(struct keeper_sync *k, struct box_handle *b,
			   const struct wire_create *want, struct err *e);
must_check int boxh_open(struct keeper_sync *k, struct box_handle *b, const char *id,
			 struct err *e);
must_check int boxh_kill_on_close(struct box_handle *b, struct err *e);
must_check int boxh_counters(struct keeper_sync *k, const char *id, struct wire_counters *out,
			     struct err *e);
/* Returns when nothing of the box is left; out may be NULL. ERR_NOT_FOUND if it no
 * longer exists. */
must_check int boxh_kill(struct keeper_sync *k, const char *id, struct wire_counters *out,
			 struct err *e);
/* Requests the same and does not wait. */
must_check int boxh_drop(struct keeper_sync *k, const char *id, struct err *e);
/* The same for another client's box, which gets the cause "operator". */
must_check int boxh_end(struct keeper_sync *k, const char *id, struct err *e);
void boxh_close(struct box_handle *b); /* closes the connection only */

struct box_command {
	const char *const *argv, *const *env; /* NULL-terminated; env NULL: box_default_env */
	const char *cwd;                      /* NULL: BOX_HOME */
	uint32_t wall_ms, grace_ms;           /* 0: no limit; BOX_GRACE_MS */
	uint16_t rows, cols;
	uint16_t flags; /* WIRE_START_* */
	uint64_t fsize_bytes;
	uint64_t log_bytes; /* 0: BOX_LOG_BYTES */
	uint64_t credit;    /* initial output window of each stream */
	uint64_t without;   /* test builds */
	uint16_t uid, gid;  /* WIRE_START_IDS */
};
#define BOX_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/atoll/bin"
/* pip and npm print this address within a second and fail; with their own default they would retry
 * for a minute or more. */
#define BOX_NO_REGISTRY "http://127.0.0.1:1/no-registry-is-configured-for-this-box/see-"
#define BOX_NO_REGISTRY_ENV                                                                        \
	"PIP_INDEX_URL=" BOX_NO_REGISTRY "packages.pip_index",                                     \
		"NPM_CONFIG_REGISTRY=" BOX_NO_REGISTRY "packages.npm_registry",                    \
		"NPM_CONFIG_FETCH_RETRIES=0"
extern const char *const box_default_env[]; /* NULL-terminated: PATH, HOME, USER, LANG, ... */

enum {
	BOX_GRACE_MS = 200,
	BOX_LOG_BYTES = 256 * 1024,
	BOX_ARGS_MAX = 6 * 1024 * 1024, /* of all strings of a START; execve accepts less */
	BOX_STRING_MAX = 128 * 1024, /* of one string: the kernel's MAX_ARG_STRLEN, NUL included */
};

/* Sends START; *out_ref names the exec from then on. Arguments that execve would not accept are
 * rejected here with ERR_LIMIT and E2BIG. */
must_check int boxh_start(struct box_handle *b, const struct box_command *cmd, uint32_t *out_ref,
			  struct err *e);
/* START, discard output, wait for EXIT: the shortest path, which the benchmark measures. */
must_check int boxh_run(struct box_handle *b, const struct box_command *cmd, struct wire_exit *out,
			struct err *e);
/* A box for one program: create, START, EXIT and removal of the box, requested in one message.
 * Output is not read; out_gone may be NULL. */
must_check int boxh_once(struct keeper_sync *k, const struct wire_create *want,
			 const struct box_command *cmd, struct wire_exit *out,
			 struct wire_counters *out_gone, struct err *e);
must_check int boxh_signal(struct box_handle *b, uint32_t ref, int signo, struct err *e);
must_check int boxh_resize(struct box_handle *b, uint32_t ref, uint16_t rows, uint16_t cols,
			   struct err *e);
must_check int boxh_credit(struct box_handle *b, uint32_t ref, uint32_t stream, uint64_t until,
			   struct err *e);
/* n == 0 closes stdin of the program. Never send more than ROOM allows. */
must_check int boxh_stdin(struct box_handle *b, uint32_t ref, const void *bytes, size_t n,
			  struct err *e);

/* A connection to a file worker inside. */
must_check int boxh_files(struct box_handle *b, uint16_t flags, int *out_fd,
			  struct err *e); /* WIRE_FILES_* */

/* Converts an ERROR frame to an err. The text is untrusted: control characters become '?'. */
int wire_error_read(const struct wire_error *said, struct err *e);
