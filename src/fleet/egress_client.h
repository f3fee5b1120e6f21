/* egress_client.h - client of egress: which boxes have an endpoint there, and a log of their
 * connections.
 * Owns:         the connection to egress, the log of connections of each box.
 * Does not own: the listening sockets: egress holds them, and keeps serving when this server exits.
 *
 *   init ── LISTEN ──► a socket in the box ──► egress client ── EGRESS_OPEN + hosts ──► egress
 *   keeper ── CAPTURE ──► sockets for programs that use no proxy ── EGRESS_CAPTURE ──► egress
 *
 * The log is in memory: the last EGRESS_CLIENT_RECORDS connections of a box and totals of all of
 * them. A new server gets the totals of bytes and the waiting requests from egress, but none of the
 * records. The totals of bytes are also in the store, at most a second late. */
#pragma once
#include "base/id.h"
#include "client/init_conn.h"
#include "client/keeper_client.h"
#include <jansson.h>

struct box;
struct fleet;

enum {
	EGRESS_CLIENT_PORT = 3128,
	EGRESS_CLIENT_RECORDS = 64,
	EGRESS_CLIENT_REQUESTS = 16, /* destinations of a box that wait for an approval */
};

struct egress_client {
	/* clang-format off */
	struct fleet *fleet;
	struct frame_conn post;
	struct timer again;
	struct timer save; /* writes totals to the store */
	json_t *held;  /* by box: [bytes in, bytes out] of endpoints that egress had before this
		        * connection */
	int told;      /* egress has sent that list */
	int unsure;    /* another server seems to have opened an endpoint since */
	uint32_t refs; /* reference of the last request */
	uint32_t answered; /* ... and of the last one that egress has answered: it does so in their order */
	struct egress_client_wait *waits;
	unsigned generation; /* of the connection to egress */
	void (*need)(struct egress_client *g); /* requests a connection, for
					        * egress_client_connect(). NULL: egress
					        * is disabled */
	void *user;
	/* clang-format on */
};

struct egress_client_link { /* of one box */
	struct init_call ask;
	int open, ended;
	unsigned tries;
	uint32_t ref;  /* of its EGRESS_OPEN */
	char why[120]; /* why it could not be opened */
	struct keeper_call *capturing;
	uint32_t capture_ref; /* of its EGRESS_CAPTURE */
	int transparent;      /* programs that do not use the proxy reach allowed hosts, too */
	char opaque_why[120]; /* why not */
	void (*settled)(struct box *b); /* see egress_client_await() */
	uint64_t bytes_in, bytes_out, dns_queries, connections, refused;
	int loaded, unsaved;      /* bytes: read from the store; not written to it yet */
	json_t *records;          /* array, oldest first */
	json_t *requests;         /* array: destinations that wait for an approval */
	uint64_t event_ms;        /* events of refusals: when the next one is due, at the rate of
				      * EVENT_MS */
	uint64_t events_left_out; /* since the last one */
};

void egress_client_init(struct egress_client *g, struct fleet *f);
void egress_client_begin(struct egress_client *g); /* need must be set */
void egress_client_connect(struct egress_client *g, int take_fd);
/* Closes endpoints of boxes that no longer exist, once that is certain. */
void egress_client_sweep(struct egress_client *g);
void egress_client_fini(struct egress_client *g);

int egress_client_asked(const struct box *b);  /* 1: the box may reach hosts of its own list */
int egress_client_wanted(const struct box *b); /* 1: the same, or registries */
void egress_client_open(struct box *b);        /* opens an endpoint if the box needs one and has
					        * none */
/* 1: calls settled when the endpoint is ready, or cannot be opened. 0: it is so now. */
must_check int egress_client_await(struct box *b, void (*settled)(struct box *b));
void egress_client_change(struct box *b); /* its allowed hosts have changed */
struct egress_client_wait {               /* memory of the caller */
	struct egress_client_wait *next;
	char box[ID_MAX + 1];
	void (*applied)(struct egress_client_wait *w); /* called once, never from within a call */
};
/* 1: calls w->applied when egress has applied the last change of the box, or has disconnected, or the
 * box has ended. 0: it is so now. */
must_check int egress_client_await_change(struct box *b, struct egress_client_wait *w);
void egress_client_cancel_wait(struct egress_client *g, struct egress_client_wait *w);
void egress_client_close(struct box *b); /* the box has ended */
void egress_client_drop(struct box *b);  /* the memory only */
json_t *egress_client_json(const struct box *b);
json_t *egress_client_requests(const struct box *b); /* those that wait for an approval */
/* One of them, borrowed; NULL: none has this id. */
json_t *egress_client_request(const struct box *b, const char *id);
/* Lets the connections of a request continue, or refuses them. */
must_check int egress_client_decide(struct box *b, const char *id, int allow, struct err *e);
/* The rules of a team have changed: sends them to egress for all its boxes, and returns the last of
 * them; NULL: there is none. */
struct box *egress_client_change_team(struct fleet *f, const char *team);
/* Connections of the box that started since then. */
json_t *egress_client_since(const struct box *b, int64_t since_ns);
