/* e2b.h - the E2B protocol at ports of boxes: requests of E2B's own clients, answered with Atoll's boxes.
 * Owns:         which box and port a request is for, the form of E2B's answers.
 * Does not own: boxes, programs, cells, files: those belong to fleet, as for every other
 * surface.
 *
 *   head -> names a box and a port? -> 49983: envd's table · 49999: the interpreter's · else: that port
 *        -> else: not this surface; the next one is the control plane, e2bcontrol/
 *
 * docs/e2b.md has the details. An E2B sandbox is a box, and its id is the box's. */
#pragma once
#include "api/api.h"
#include "fleet/box.h"

enum { E2B_ENVD = 49983, E2B_INTERPRETER = 49999 };
#define E2B_CLIENT "atoll"        /* clientID of every answer */
#define E2B_ENVD_VERSION "0.6.13" /* the version that clients compare to detect features */

struct e2b;
must_check int e2b_init(struct api *a, struct err *e);
void e2b_fini(struct api *a);
extern const struct api_surface e2b_surface;
extern const struct field e2b_any_query[]; /* E2B's clients send parameters of many kinds */

/* The tables, one file each: envd.c, interpreter.c. */
extern struct api_table e2b_envd, e2b_interpreter;

/* ---- what this surface stores with a box, under "e2b" ---- */
enum { E2B_TOKEN = 40 };
struct e2b_box {
	int ours;                    /* it was made through this surface, or adopted by it later */
	char token[E2B_TOKEN + 1];   /* of envd; "": it needs none */
	char traffic[E2B_TOKEN + 1]; /* of all other ports; "": they need none */
	int public_ports;            /* only the interpreter's port needs the traffic token */
	char template[64];           /* as in the request: "base" */
	char mask[256]; /* Host header for its ports, with "${PORT}" in it; "": unchanged */
	int auto_pause, pause_memory, auto_resume;
};
void e2b_box_read(const struct box *b, struct e2b_box *out);
int e2b_box_token(const struct box *b,
		  char out[E2B_TOKEN + 1]); /* finds only its token, quickly; 0: it has none */
/* As the row of the box stores it; the caller frees it. */
char *e2b_box_text(const struct e2b_box *x);
/* The same, added to the data that the surfaces have already stored; NULL: nothing yet. */
char *e2b_box_text_on(const char *surface, const struct e2b_box *x);
/* Stores one more value by name, which only its owner reads. */
char *e2b_box_text_with(const char *surface, const char *name, json_t *take_value);
json_t *e2b_box_more(const struct box *b,
		     const char *name);     /* owned by the caller; NULL: missing */
int e2b_same(const char *a, const char *b); /* in constant time; "" is never equal */

/* ---- traffic: a request that names a box and a port ---- */
enum { E2B_LABEL = 63 };
struct e2b_target {
	char id[ID_MAX + 1];
	uint16_t port;
	char name[E2B_LABEL + 1]; /* what Host has in place of an id: perhaps the name of a box */
};
/* 1: it names one. 0: it does not. -1: it names one incorrectly, and e has the reason. */
int e2b_target(const struct http_req *r, struct e2b_target *out, struct err *e);
/* The entry that stores the box of a link, by the link's signature; to be written. */
char *e2b_recent(struct api *a, const uint8_t signature[32]);
/* The box of a call to one of its ports; it runs and is held while the call lasts. */
struct box *e2b_find_box(struct call *c);

/* The home folder of root or of the user of the box (NULL: no longer there), and the folder in which
 * programs and relative paths start: the working folder of the template, if it is another one. */
const char *e2b_home(const struct box *b, int root);
const char *e2b_workdir(const struct box *b, int root);
int e2b_is_user(const struct box *b, const char *name, size_t n); /* 1: the name of that user */

/* Adds the CORS headers to the answer for a page. 1: it was a preflight request, and was
 * answered (envd_http.c). */
int e2b_cors(struct call *c);

/* Any other port of a box: forwards HTTP and WebSocket in both directions (proxy.c). native: a box
 * that is not an E2B sandbox; its errors are those of previews. */
void e2b_proxy(struct call *c, struct box *b, uint16_t port, int native);

/* ---- answers ---- */
/* {"code": status, "message": ...}: the form of errors of the control plane and of envd's REST
 * routes. */
void e2b_error(struct call *c, int status, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* The answer of E2B's proxy when no such box exists, or no server listens on the port: 502, in
 * E2B's form. */
void e2b_no_box(struct call *c, int status, const char *id, unsigned port, const char *message);
void e2b_format_error(struct call *c, int status, const char *code, const char *message,
		      const char *why, const char *hint);
/* For the row of a route that is not implemented: 501, with the row's summary as the reason. */
void e2b_refuse(struct call *c);
/* The domain below which boxes are reached by name, as the answer's "domain"; out "": none. */
enum { E2B_DOMAIN = 320 };
void e2b_domain(const struct call *c, char out[E2B_DOMAIN]);
extern const struct api_format e2b_format; /* for tables with these errors and an API key */
