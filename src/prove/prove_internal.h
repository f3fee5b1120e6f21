/* prove_internal.h - one proof in progress: shared by the files of this folder. */
#pragma once
#include "base/buf.h"
#include "client/box_handle.h"
#include "prove/prove.h"
#include <jansson.h>
#include <sys/types.h>

enum {
	PROVE_TOKEN = 33,        /* 32 hexadecimal digits and a NUL */
	PROVE_WAIT_MS = 60000,   /* for one program in a box, at most */
	PROVE_OUTPUT = 512 << 10 /* of one program; more ends the proof */
};

/* ABSENT: does not hold, and the tier does not promise it. */
enum prove_verdict { PROVE_PASSED, PROVE_FAILS, PROVE_SKIPPED, PROVE_ABSENT };

/* A box of the proof and the program that runs in it. */
struct prove_box {
	struct box_handle handle;
	int open;
	uint32_t ref;
	struct buf out;
	int exited;
	struct wire_exit exit;
	uint64_t started_ns, last_ns; /* CLOCK_REALTIME: START was sent; the last output arrived */
	char pid_namespace[64];       /* "pid:[4026532...]", as a link of /proc */
};

struct prove_canary {
	char folder[64]; /* "/tmp/atoll-prove-..." */
	char file[PROVE_TOKEN], environment[PROVE_TOKEN], descriptor[PROVE_TOKEN],
		other[PROVE_TOKEN]; /* contents that must not appear in the output */
	char token[PROVE_TOKEN];    /* what the probe sends to sockets */
	char handle[300];           /* hexadecimal; "": the file system has none */
	int handle_type;
	pid_t process;
	char process_before[400];
	int tcp, udp, abstract, path, vsock; /* sockets; -1: not available */
	unsigned tcp_port, udp_port, vsock_port;
	char abstract_name[64], socket_path[96];
	int guard; /* its closing removes the folder */
	pid_t guard_pid;
};

struct prove_run {
	const struct prove_want *want;
	struct keeper_sync keeper;
	struct wire_info info;
	struct wire_tier_facts facts;
	struct prove_canary canary;
	struct prove_box a, b, bomb;
	json_t *rows;
	unsigned failed, skipped;
};

/* 1: programs of the tier run on a kernel of their own, which answers their system calls. */
int prove_has_guest_kernel(const struct prove_run *r);

/* 1: the tier promises what this row examines. All but `process` promise everything. */
int prove_is_promised(unsigned tier, const char *probe, const char *way);

/* Adds a row. A failure of what the tier does not promise is absent. */
void prove_note(struct prove_run *r, enum prove_verdict v, const char *probe, const char *way,
		const char *attempt, const char *fmt, ...) __attribute__((format(printf, 6, 7)));

/* ---- prove_box.c: boxes and programs ---- */

must_check int prove_box_create(struct prove_run *r, struct prove_box *x,
				const struct wire_limits *limits, struct err *e);
/* Starts this command; its stdin stays open. env: NULL: the usual variables. */
must_check int prove_box_command(struct prove_run *r, struct prove_box *x, const char *const *argv,
				 const char *const *env, struct err *e);
/* Starts the probe program with these words; its stdin stays open. */
must_check int prove_box_start(struct prove_run *r, struct prove_box *x, const char *const *words,
			       uint32_t wall_ms, int unread, struct err *e);
/* Reads output until it has this text, or until the program ends (NULL). 0: so; 1: the box has ended. */
must_check int prove_box_until(struct prove_box *x, const char *text, struct err *e);
must_check int prove_box_close_stdin(struct prove_box *x, struct err *e);
/* No more output of the program is read; its end is still reported. */
must_check int prove_box_detach(struct prove_box *x, struct err *e);
/* Ends the box; counters may be NULL. */
must_check int prove_box_end(struct prove_run *r, struct prove_box *x, struct wire_counters *out,
			     struct err *e);
void prove_box_drop(struct prove_run *r, struct prove_box *x);
/* Text of the identity line `what` of the program; "" if there is none. */
void prove_box_fact(const struct prove_box *x, const char *what, char *out, size_t size);

/* prove_host.c: the same two programs without a box, with these words. */
must_check int prove_on_host(struct prove_run *r, const char *const *hold,
			     const char *const *attempt, struct err *e);

/* ---- canary.c ---- */

must_check int canary_init(struct prove_canary *c, struct err *e);
void canary_fini(struct prove_canary *c);
/* What has happened to the process; "": nothing. */
void canary_process_changes(const struct prove_canary *c, char out[200]);
/* 1: a connection or a datagram with the token has arrived. */
int canary_reached(int fd, const char *token, int datagrams);
/* Name of a file in the folder that the proof has not made; "": none. */
void canary_foreign_file(const struct prove_canary *c, char out[64]);
/* Name of a canary whose content is in the text; NULL: none. */
const char *canary_in(const struct prove_canary *c, const char *text);

/* ---- the rows ---- */

/* Reads output until it has this text (NULL: until the end); an earlier end is an error. */
must_check int prove_until(struct prove_box *x, const char *text, const char *what, struct err *e);
void prove_judge_attempts(struct prove_run *r);  /* judge.c: the lines of the probe */
void prove_judge_identity(struct prove_run *r);  /* judge.c: kernel, clock, randomness */
void prove_judge_processes(struct prove_run *r); /* processes.c */
void prove_judge_outer_box(struct prove_run *r); /* outer_box.c: of tiers with an engine */
must_check int prove_modules(struct prove_run *r,
			     struct err *e); /* modules.c: all rows of the tier wasm */
must_check int prove_judge_limits(struct prove_run *r, struct err *e); /* limits.c */
void prove_judge_remains(struct prove_run *r); /* remains.c: after all boxes were ended */
