/* gateway_call.h - one request on its way through a gateway. For the files of this folder only.
 * Owns: the steps in progress; they end with the request. */
#pragma once
#include "api/identity.h"
#include "coordinator/cluster_client.h"
#include "gateway/bring.h"
#include "gateway/fanout.h"
#include "gateway/gateway.h"
#include "gateway/grants.h"
#include "gateway/names.h"
#include "gateway/settle.h"
#include "gateway/shares.h"
#include "gateway/target.h"
#include "http/relay.h"

struct create_once;
struct gateway_every;
struct gateway_gather;
struct gateway_preview;
struct gateway_secrets;
struct gateway_list;
struct gateway_stream;
struct gateway_volume;
struct list_query;

struct claim { /* claim.c: the names of a new box */
	struct names_key keys[2];
	unsigned nkeys, at; /* keys before `at` are claimed for node */
	unsigned node, owner, rounds;
	char box[NAMES_TEXT];
	struct names_ask ask;
	struct node_request look;
	struct timer again;
	unsigned waits;
};

struct gateway_call {
	struct gateway *gateway;
	struct call *call;
	struct target target;
	char identity[IDENTITY_TEXT]; /* of the caller; "": the request has no key */

	/* forward.c */
	unsigned node;
	struct tunnel_ask ask;
	struct relay *relay;
	struct timer again;
	const struct buf *body; /* NULL: passed on as it arrives */
	int has_link, has_repeated, is_refused;
	/* The answer of a node; not NULL: it is not passed on, and refused() follows. NULL: all are. */
	const char *(*judge)(struct gateway_call *x, const struct http_answer *a);
	/* Also called if the node had no connection for the request. Not if the connection broke after the
	 * request was sent: the node may have done it. */
	void (*refused)(struct gateway_call *x);

	/* find.c */
	struct fanout fanout;
	void (*found)(struct gateway_call *x, int node); /* -1: no node has it */
	char *path;                                      /* of the object */
	const char *find_method, *find_headers;          /* as in fanout.h */
	json_t *ended;             /* the answer of a node where it has ended; NULL: none */
	char found_id[ID_MAX + 1]; /* of what was found; "": its answer has none */
	int home;                  /* this node is asked first; -1: all at once */
	int is_common;             /* what was found is a part of the server: any node has it */
	char missing
		[CONTROL_NAME]; /* a node that did not answer, whose number is in node; "": all did */

	/* templates.c */
	char template_path[GATEWAY_TEMPLATE];
	void (*template_found)(struct gateway_call *x, int node);

	/* create.c */
	json_t *doc; /* the body; NULL: not JSON, the node rejects it */
	unsigned tried[PLACE_ATTEMPTS];
	unsigned ntried, waits;
	struct timer wait;

	struct { /* create_snapshot.c */
		char snapshot[ID_MAX + 1];
		unsigned owner, to;
		struct bring_ask ask;
		struct cluster_request looking;
		struct buf body; /* with the id instead of the name */
	} source;

	struct { /* deletions.c */
		struct cluster_request request;
		void (*failed)(struct gateway_call *x); /* NULL: not stored */
	} deletion;
	struct grants_ask grant;
	int granted_node; /* this node may start a program for the request; -1: none was asked */
	struct shares_ask share;
	int has_share; /* one box of the limit of the team */

	struct create_once *once; /* create_once.c */
	struct claim claim;
	struct names_ask naming; /* find.c */

	struct gateway_list *list;     /* list.c */
	struct list_query *query;      /* list_directory.c */
	struct gateway_stream *stream; /* stream.c */
	struct gateway_every *every;   /* every.c */
	struct gateway_gather *gather; /* gather.c */
	struct gateway_volume *volume; /* volume.c */

	struct gateway_preview *preview; /* preview.c */
	struct gateway_secrets *secrets; /* secrets.c */
	int secrets_node;                /* this node has those of the request; -1: none */
};

/* gateway.c: the object that the path names is at this node; -1: nowhere. */
void gateway_named(struct gateway_call *x, int node);

/* 1: the cluster has a node of this number, or it is not known which nodes it has. */
int gateway_has_node(const struct gateway *g, unsigned number);

/* forward.c */
/* Reads the body as it arrives; it waits until forward_begin(). */
void forward_hold_body(struct gateway_call *x);
void forward_begin(struct gateway_call *x, unsigned node);
void forward_end(struct gateway_call *x);

/* unreachable.c: answers for a node that cannot be reached: 503, or that what the request names no longer exists.
 * why: a sentence. */
void forward_fail_unreachable(struct gateway_call *x, const char *why);
void forward_fail_unknown(struct gateway_call *x); /* 404: the cluster has no node x->node */

/* find.c: found() is called from the loop. */
void find_begin(struct gateway_call *x, const char *collection, const char *object,
		void (*found)(struct gateway_call *x, int node));
/* The same for any path and method, with further header lines, all of which outlive the search. */
void find_begin_path(struct gateway_call *x, const char *path, const char *method,
		     const char *headers, void (*found)(struct gateway_call *x, int node));
void find_end(struct gateway_call *x);
void find_fail_missing(struct gateway_call *x); /* 503: x->missing may have it */
int find_oldest(
	const struct fanout *f); /* the node whose answer is the oldest object; -1: none has it */

/* claim.c */
void claim_read(struct gateway_call *x, const char *name, const char *session,
		const char *template);
void claim_begin(struct gateway_call *x, unsigned node); /* then forward_begin() */
void claim_judge(struct gateway_call *x, const struct http_answer *a);
void claim_end(struct gateway_call *x);

/* create.c */
void create_begin(struct gateway_call *x, int is_stream);
/* The own node of a text: the first by a hash of text and number. -1: no node is connected. */
int create_own_node(const struct gateway_call *x, const char *kind, const char *text);
void create_end(struct gateway_call *x);
/* Placement: a node that was not tried yet, which is then one of x->tried. -1: there is none. */
int create_next_node(struct gateway_call *x, struct err *e);
int create_fits(const struct gateway_call *x, const struct tunnel_node *n); /* its labels */
/* refused() is set: it follows if the node takes no box now. */
void create_at_chosen(struct gateway_call *x, unsigned node);
void create_fail(struct gateway_call *x, const struct err *e); /* 503: no node */
/* create_snapshot.c: a box with the files of this snapshot of node `owner`. */
void create_snapshot_begin(struct gateway_call *x, const char *id, unsigned owner);
/* The same by the name, of which a node that may have it does not answer: from the object store, else 503. */
void create_snapshot_from_store(struct gateway_call *x, const char *name);
void create_snapshot_end(struct gateway_call *x);
/* create_once.c: 1: go() follows, with the node that the key was used at first, or this one. */
int create_once_begin(struct gateway_call *x, const char *key, unsigned node,
		      void (*go)(struct gateway_call *x, unsigned node));
void create_once_end(struct gateway_call *x);
void create_from_body(struct gateway_call *x); /* the node of the object that the body names */
/* templates.c: the node of a template; found() follows, as of find_begin(). */
void templates_find(struct gateway_call *x, const char *reference,
		    void (*found)(struct gateway_call *x, int node));
void templates_create(struct gateway_call *x); /* a build, with the body */
void templates_go(struct gateway_call *x);     /* the template that the path names */
/* secrets.c: 1: forward_begin() follows, when the node has the secrets that the body names. */
int secrets_begin(struct gateway_call *x, unsigned node);
void secrets_end(struct gateway_call *x);
void preview_begin(struct gateway_call *x); /* preview.c: gateway_named() follows */
void preview_end(struct gateway_call *x);
void link_run(struct gateway_call *x); /* link.c */
void link_file(struct gateway_call *x);
void stream_begin(struct gateway_call *x); /* stream.c */
void stream_end(struct gateway_call *x);
void gather_begin(struct gateway_call *x); /* gather.c */
void gather_end(struct gateway_call *x);
void every_begin(struct gateway_call *x); /* every.c */
void every_end(struct gateway_call *x);
void volume_begin(struct gateway_call *x, unsigned node); /* volume.c */
void volume_end(struct gateway_call *x);

void list_begin(struct gateway_call *x); /* list.c */
void list_end(struct gateway_call *x);
