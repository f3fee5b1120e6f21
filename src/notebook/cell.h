/* cell.h - the output and events of one cell, stored for its readers.
 * Owns: its output, up to a limit, and its events; a reader has only a position.
 *
 * A position is three numbers: bytes of stdout, of stderr and of the channel, since the cell
 * began. An event of the channel also knows how much of the other two came before it, so all can
 * be sent again from any position, in the same order, however the bytes were split when they
 * arrived: after a restart the bytes are read again from init's logs, and split differently. */
#pragma once
#include "base/buf.h"
#include "fleet/exec.h"
#include <jansson.h>
#include <stdint.h>

enum {
	CELL_OUTPUT = 4 << 20,      /* default of the bytes stored of each stream ... */
	CELL_OUTPUT_MAX = 16 << 20, /* ... and at most */
	CELL_EVENTS = 32 << 20,     /* bytes of events, all together */
	CELL_STREAMS = 3,
};
#define CELL_ALL_HELD (UINT64_C(512) << 20) /* bytes of all cells of this process */

enum cell_state { CELL_WAITING, CELL_RUNNING, CELL_OVER };

struct cell_event {
	char *text;       /* a JSON object */
	uint64_t end;     /* bytes of the channel, this line included */
	uint64_t mark[2]; /* of the others, when this line arrived */
};

struct cell_reader {
	struct cell_reader *next;
	struct cell *cell; /* NULL: reads none */
	uint64_t told[CELL_STREAMS];
	void (*news)(struct cell_reader *r); /* called when there is more: use cell_next() */
};

struct cell {
	struct cell *next; /* of its context */
	unsigned refs;
	uint64_t number;
	enum cell_state state;
	struct buf run; /* the code, until it is sent; then empty */
	json_t *env;
	uint64_t timeout_ms, max_output;
	struct exec_before before;
	int64_t began_ns, ended_ns;
	uint64_t from[CELL_STREAMS]; /* its start in the streams of its program */
	uint64_t seen[CELL_STREAMS]; /* bytes since then, stored or not */
	uint64_t base[2];            /* bytes from here on are stored */
	struct buf out[2];
	struct cell_event *events;
	unsigned nevents, events_room;
	size_t event_bytes;
	int truncated; /* some output was not kept */
	int no_input;  /* a request for input is answered with end of file at once */
	uint64_t asked,
		answered; /* input requests and answers: the cell waits while asked > answered */
	json_t *end;      /* the last event, once it has ended */
	struct cell_reader *readers;
};

struct cell *cell_new(void);
struct cell *cell_ref(struct cell *c);
void cell_unref(struct cell *c);

/* offset: since the start of the cell. A gap means that bytes are lost. */
void cell_output(struct cell *c, unsigned stream, uint64_t offset, const char *bytes, size_t n);
/* end: bytes of the channel since the start of the cell, with the line of this event. */
void cell_event(struct cell *c, uint64_t end, json_t *take_event);
/* The last event; "truncated", "duration_us", "cell" and those of exec_before are added. Later events are ignored. */
void cell_over(struct cell *c, json_t *take_end);
void cell_tell(struct cell *c); /* notifies all readers that there is more */

/* ---- reading ---- */
enum cell_what { CELL_NOTHING, CELL_STDOUT, CELL_STDERR, CELL_EVENT, CELL_END };
struct cell_piece {
	enum cell_what what;
	uint64_t offset; /* output: of its first byte */
	const char *bytes;
	size_t n;
	int last; /* output: the next piece of the stream follows after another event only */
	uint64_t after[CELL_STREAMS]; /* the position after it */
};
/* r->told is set: zero, or the position of the client. */
void cell_read(struct cell *c, struct cell_reader *r);
void cell_unread(struct cell_reader *r);
/* The next piece for this reader, at most this many bytes of output. It counts as read when the
 * reader copies piece.after. CELL_END is the text of the end, once. */
struct cell_piece cell_next(const struct cell_reader *r, size_t most);
void cell_told(struct cell_reader *r, const struct cell_piece *p);
uint64_t cell_held(void); /* bytes of all */
