/* e2b.h - the E2B door: what E2B's own clients say, answered with our boxes.
 * Owns:         what a request is for (control plane, a box's port), the shapes of E2B's answers.
 * Does not own: boxes, programs, cells, files: those are fleet's, as behind every other door.
 *
 *   head -> names a box and a port? -> 49983: envd's table · 49999: the interpreter's · else: that port
 *        -> a path of theirs?       -> the control plane's table
 *        -> not this door
 *
 * docs/e2b.md tells the rest. A sandbox of theirs is a box of ours, and its id is the box's. */
#pragma once
#include "api/api.h"
#include "fleet/box.h"

enum { E2B_ENVD = 49983, E2B_INTERPRETER = 49999 };
#define E2B_CLIENT "atoll"        /* clientID of every answer */
#define E2B_ENVD_VERSION "0.6.13" /* what clients compare to know what is there */

struct e2b;
must_check int e2b_init(struct api *a, struct err *e);
void e2b_fini(struct api *a);
extern const struct api_surface e2b_surface;
int e2b_control_take(struct call *c);      /* as a door's take(): paths of the control plane */
extern const struct field e2b_any_query[]; /* their clients send parameters of many kinds */

/* The tables, one file each: routes.c, envd.c, interpreter.c. */
extern struct api_table e2b_control, e2b_envd, e2b_interpreter;

/* ---- what this door remembers of a box: row.door, under "e2b" ---- */
enum { E2B_TOKEN = 40 };
struct e2b_box {
	int ours;                  /* it was made through this door, or given what follows later */
	char token[E2B_TOKEN + 1]; /* of envd; "": it needs none */
	char traffic[E2B_TOKEN + 1]; /* of all other ports; "": they need none */
	int public_ports;            /* only the interpreter's port needs the traffic token */
	char template[64];           /* as it was asked for: "base" */
	char mask[256]; /* Host of what reaches its ports, "${PORT}" in it; "": as it came */
	int auto_pause, pause_memory, auto_resume;
};
void e2b_box_read(const struct box *b, struct e2b_box *out);
int e2b_box_token(const struct box *b,
		  char out[E2B_TOKEN + 1]); /* its token alone, soon; 0: it has none */
/* As row.door wants it; the caller's. */
char *e2b_box_text(const struct e2b_box *x);
/* The same on top of a door that has more in it already; NULL: it has nothing. */
char *e2b_box_text_on(const char *surface, const struct e2b_box *x);
/* One thing more, by name: what only its owner reads. */
char *e2b_box_text_with(const char *surface, const char *name, json_t *take_value);
json_t *e2b_box_more(const struct box *b, const char *name); /* the caller's; NULL: not there */
int e2b_same(const char *a, const char *b); /* in constant time; "" is never the same */

/* ---- traffic: a request that names a box and a port ---- */
struct e2b_target {
	char id[ID_LEN + 1];
	uint16_t port;
};
/* 1: it names one. 0: it does not. -1: it tries, and e says what is wrong. */
int e2b_target(const struct http_req *r, struct e2b_target *out, struct err *e);
/* Where the box of a link is remembered, by the link's signature; to be written. */
char *e2b_recent(struct api *a, const uint8_t signature[32]);
/* Of a call that was taken as traffic: its box, which runs; held while the call lasts. */
struct box *e2b_find_box(struct call *c);
uint16_t e2b_port(const struct call *c);

/* To a request of a page: who may ask. 1: that was all it wanted to know, and it was answered (rest.c). */
int e2b_cors(struct call *c);

/* Any other port of a box: HTTP and WebSocket, both ways as they come (proxy.c). */
void e2b_proxy(struct call *c, struct box *b, uint16_t port);

/* ---- answers ---- */
/* {"code": status, "message": ...}: the control plane's and envd's REST. */
void e2b_error(struct call *c, int status, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* What E2B's proxy says when there is no such box, or nobody listens: 502 and their kind. */
void e2b_no_box(struct call *c, int status, const char *id, unsigned port, const char *message);
void e2b_format_error(struct call *c, int status, const char *code, const char *message,
		      const char *why, const char *hint);
/* Of a row for what is not done here: 501, and its summary says why. */
void e2b_refuse(struct call *c);
/* Where boxes are reached by name, as the answer's "domain"; out "": nowhere. */
enum { E2B_DOMAIN = 320 };
void e2b_domain(const struct call *c, char out[E2B_DOMAIN]);
extern const struct api_format e2b_format; /* of tables with those errors and a key of ours */
