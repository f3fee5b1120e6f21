/* control.h - messages of the control connection between a node and a gateway: one JSON object per
 * line.
 * Owns: struct control_figures and struct control_message, until their _fini().
 *
 * The functions are pure: bytes in, checked values out. A gateway trusts no byte of a node: every
 * number has a range, every list and text a limit, and a field that is unknown is ignored (the other
 * side may be one minor version newer). */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include <stddef.h>
#include <stdint.h>

struct json_t;

enum {
	CONTROL_LINE_NODE = 64 << 10,   /* bytes of a line that a node sends */
	CONTROL_LINE_GATEWAY = 4 << 20, /* and of one that a gateway sends: the keys of a node */
	CONTROL_NAME = 64,              /* bytes of a name, with its NUL */
	CONTROL_VERSION = 24,
	CONTROL_TEMPLATES = 1024, /* hashes in a heartbeat */
	CONTROL_LABELS = 32,
	CONTROL_LABEL = 64,     /* bytes of "key=value", with its NUL */
	CONTROL_ROWS = 500,     /* rows in one message */
	CONTROL_REQUEST = 4096, /* bytes of a request for a certificate */
	CONTROL_OPEN = 64,      /* connections that one message asks for */
	CONTROL_LOAD_FULL = 1000,
};

/* The state of a node, as its last heartbeats reported it. Lists are sent when they have changed. */
struct control_figures {
	uint64_t seq;
	uint32_t load; /* thousandths of its capacity in use, at most CONTROL_LOAD_FULL */
	uint32_t cpus;
	uint64_t memory_total, memory_free; /* bytes */
	uint32_t boxes, boxes_most;
	uint32_t pool;     /* boxes that wait in the pool */
	uint64_t refusals; /* creations refused because the node was full, since its start */
	uint32_t
		copies; /* changes with the copies of snapshots that the node has and wants; 0: none */
	int draining;        /* creates no further boxes */
	char arch[16];       /* "x86_64" */
	uint64_t *templates; /* control_hash() of templates and layers that the node has, sorted */
	unsigned ntemplates;
	char (*labels)[CONTROL_LABEL];
	unsigned nlabels;
};
void control_figures_fini(struct control_figures *f); /* fine on a zeroed one */
uint64_t control_hash(const char *text);              /* of the name or digest of a template */
int control_has_template(const struct control_figures *f, uint64_t hash);
int control_has_label(const struct control_figures *f, const char *label);

enum control_kind {
	CONTROL_HELLO, /* node: first line; gateway: its answer, before the first acknowledgement */
	CONTROL_HEARTBEAT,   /* node */
	CONTROL_ROWS_SENT,   /* node */
	CONTROL_RENEW,       /* node: a request for another certificate */
	CONTROL_CERTIFICATE, /* gateway: its answer */
	CONTROL_ACK,         /* gateway, of a heartbeat */
	CONTROL_ROWS_KEPT,   /* gateway: rows up to this revision are stored */
	CONTROL_OPEN_MORE,   /* gateway: open that many further connections */
	CONTROL_ORDER,       /* gateway: drain, undrain, destroy ... */
};

struct control_message {
	enum control_kind kind;
	uint32_t number;               /* hello: of the sender */
	char name[CONTROL_NAME];       /* hello of a node */
	char version[CONTROL_VERSION]; /* hello */
	uint64_t epoch;                /* hello; of a node: the last one it received, or 0 */
	uint64_t seq;                  /* ack: of the heartbeat; rows: the last revision in it */
	unsigned count;                /* open: connections */
	unsigned has_templates, has_labels; /* heartbeat: the lists are in it */
	struct control_figures figures;     /* heartbeat */
	struct json_t
		*body;  /* the rows, the order, the owned keys, the request or the certificate (a
			      * text), else NULL */
	int is_refused; /* certificate: body is the reason why there is none */
};
/* from_node 1: only what a node may send is accepted, 0: only what a gateway may send. The line has
 * no newline. */
must_check int control_parse(const char *line, size_t len, int from_node,
			     struct control_message *out, struct err *e);
void control_message_fini(struct control_message *m);

/* Lines with their newline. */
void control_put_node_hello(struct buf *out, uint32_t number, const char *name, const char *version,
			    uint64_t epoch);
void control_put_heartbeat(struct buf *out, const struct control_figures *f, int with_lists);
void control_put_rows(struct buf *out, uint64_t last, const struct json_t *rows);
void control_put_gateway_hello(struct buf *out, uint32_t number, const char *version,
			       uint64_t epoch, const struct json_t *owned);
void control_put_ack(struct buf *out, uint64_t seq);
void control_put_rows_kept(struct buf *out, uint64_t last);
void control_put_open(struct buf *out, unsigned count);
void control_put_renew(struct buf *out, const char *request);
/* cert NULL: why is sent. */
void control_put_certificate(struct buf *out, const char *cert, const char *why);
void control_put_order(struct buf *out, const struct json_t *order);

/* Bytes into lines. */
struct control_lines {
	struct buf line; /* the incomplete one */
	size_t most;
};
/* Calls line() for each complete line; -1: a line is longer than most, or line() returned -1. */
must_check int control_feed(struct control_lines *c, const char *bytes, size_t n,
			    int (*line)(void *user, const char *text, size_t len, struct err *e),
			    void *user, struct err *e);

/* 0 if programs of both versions work together: the same major version, minor versions that differ
 * by at most one. */
must_check int control_check_version(const char *own, const char *other, struct err *e);
