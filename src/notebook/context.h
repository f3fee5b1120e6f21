/* context.h - an interpreter that keeps its state between cells: a driver (docs/languages.md) in
 * a box, and its cells, one after the other.
 * Owns:         its row, its cells, the exec reader of its driver, the time limit of a cell.
 * Does not own: the driver's exec; the box owns it, as any other.
 *
 *   starting -> idle <-> busy        any -> dead -> starting (restart)
 *
 * A cell keeps running when its client leaves. When the server ends, the next one finds the row:
 * which exec it is, and where the last cell begins in its output. It reads the output again from
 * there, and a running cell is not interrupted. */
#pragma once
#include "notebook/cell.h"
#include "notebook/driver_protocol.h"
#include "fleet/exec_reader.h"
#include "store/contexts.h"

enum {
	CONTEXT_MAX = 16,             /* in one box */
	CONTEXT_QUEUE = 32,           /* cells that wait in one */
	CONTEXT_CODE = 4 << 20,       /* bytes of a cell */
	CONTEXT_QUEUED = 8 << 20,     /* bytes of all that wait */
	CONTEXT_INPUT = 1 << 20,      /* bytes of an answer to `input` */
	CONTEXT_KEPT = 8,             /* finished cells that can still be read ... */
	CONTEXT_KEPT_BYTES = 1 << 20, /* ... those before the last one within this */
	CONTEXT_READY_MS = 60000,     /* time for a driver to report that it is ready ... */
	CONTEXT_EMULATED_MS = 120000, /* ... where the processor is emulated */
	CONTEXT_WORDS = 400, /* stored bytes of the output of a driver that does not become ready */
	CONTEXT_GRACE_MS = 2000, /* between the interrupt of a timeout and the end of the driver */
};

enum context_state { CONTEXT_STARTING, CONTEXT_IDLE, CONTEXT_BUSY, CONTEXT_DEAD, CONTEXT_STATES };
const char *context_state_name(enum context_state s);

/* Waits until it is ready, or has ended. */
struct context_wait {
	struct context_wait *next;
	struct context *context; /* NULL: waits for nothing */
	void (*done)(struct context_wait *w, struct context *c);
};

struct context {
	/* clang-format off */
	struct context *next; /* of its box */
	struct box *box;
	struct store_context row;
	enum context_state state;
	char version[64];
	struct {
		char cause[STORE_WORD + 1]; /* of the driver's end, or "protocol", ... */
		char *why, *hint;
	} end;
	struct exec_reader reader;
	int tapped;
	struct buf early_stderr; /* its output on stderr before it was ready, the beginning of it */
	int restarting; /* the old driver is ending; another one is started then */
	const char *killing; /* the reason why the server ends the driver: "timeout", ...; NULL: it does not */
	int interrupted; /* the cell's time has passed, and this server has interrupted it */
	struct driver_msg talk;
	uint64_t at[CELL_STREAMS]; /* bytes of its program's streams that were read */
	uint64_t line_at; /* where the current line of the channel begins */
	uint64_t born; /* cells before this driver: the difference to a number is the driver's
		        * own count */
	uint64_t said_before; /* another server gave it a cell: bytes that the driver must have
			       * received by then; 0: all is known */
	int skip_number; /* the driver may have received a cell of the next number without a row */
	struct cell *current;
	int foreign; /* the current cell was begun by another server, which may still run and writes
		      * its row */
	struct cell *queue; /* oldest first */
	unsigned queued;
	size_t queued_bytes;
	struct cell *kept; /* newest first */
	struct timer clock;
	struct context_wait *waiters;
	/* clang-format on */
};

struct context_want { /* borrowed for the call */
	const char *language, *cwd;
	const json_t *env; /* NULL, or an object of strings */
	int standing;      /* the context for cells that name none */
};
/* Starts a driver. ERR_INVALID: the language has none. */
must_check int context_new(struct box *b, const struct context_want *want, struct context **out,
			   struct err *e);
struct context *context_find(const struct box *b, const char *id);
struct context *context_standing(const struct box *b, const char *language);
void context_await(struct context *c, struct context_wait *w);
void context_wait_cancel(struct context_wait *w);

struct cell_want {
	const char *code;
	size_t code_len;
	json_t *env;
	uint64_t timeout_ms, max_output;  /* 0: none; CELL_OUTPUT */
	const struct exec_before *before; /* NULL: no checkpoint was wanted before it */
	int no_input;                     /* no client can answer: `input()` gets end of file */
};
/* The caller releases *out with cell_unref(). It gets its number when it starts. */
must_check int context_cell(struct context *c, const struct cell_want *want, struct cell **out,
			    struct err *e);
struct cell *context_cell_find(const struct context *c, uint64_t number); /* borrowed; NULL: gone */
int context_interrupt(struct context *c);                                 /* 0: nothing runs */
/* No client needs it: it is interrupted if it runs, and never started if it waits. */
void context_cell_cancel(struct context *c, struct cell *x);
/* text NULL: end of the input. */
must_check int context_input(struct context *c, const char *text, size_t n, struct err *e);
/* Another driver under the same id; running and waiting cells end. */
must_check int context_restart(struct context *c, struct err *e);
void context_end(struct context *c); /* and its driver; frees c */
json_t *context_json(const struct context *c);

/* Restores, resyncs and frees the contexts of a box with the box: called by fleet_conf.hooks. */
extern const struct box_hooks notebook_hooks;
