/* api.h - what all doors share: the daemon's state, one request on its way, one way to answer.
 * Owns:         struct api for the life of the front; a struct call for the life of its request.
 * Does not own: boxes and runs (fleet/), rows (store/), connections (http/). */
#pragma once
#include "egress/allow_rule.h"
#include "fleet/fleet.h"
#include "http/http.h"
#include "http/route.h"
#include "llm/llm.h"
#include "store/keys.h"
#include "store/teams.h"
#include <jansson.h>

struct api_conf {
	/* clang-format off */
	uint64_t json_max, upload_max; /* bytes of a body */
	const char *const *hosts;      /* names this daemon answers to, besides loopback's; NULL-terminated */
	const char *const *origins;    /* of pages that may call it; NULL-terminated */
	int metrics_public;
	struct store_team quota; /* of a team that has none of its own */
	int statm; /* /proc/self/statm, opened while it could be; -1: not */
	const char *state; /* the folder of the store */
	unsigned batch_jobs;
	uint64_t batch_bytes, batch_team_bytes, batch_keep_ms;
	uint64_t pipeline_keep_ms; /* behind its end; 0: for ever */
	int pipeline_forgetful;	   /* nothing is learned */
	uint64_t snapshot_bytes; /* of all snapshots of a team; 0: no end */
	const struct allow_rule *rules; /* hosts that boxes may be given: the operator's */
	unsigned nrules;
	const char *const *approve; /* tools that a person must allow; NULL-terminated, or NULL */
	int e2b_internet; /* a sandbox whose request says nothing may reach all of them */
	int e2b_insecure; /* old E2B clients may make sandboxes without tokens */
	uint16_t port; /* of the first TCP listener, and whether it speaks TLS; 0: there is none */
	int tls;
	uint32_t own_uid; /* of who started the daemon: owner on the unix socket, as root is */
	/* clang-format on */
};

/* Header lines of every answer: no page of another site reads or embeds one, and no browser takes its
 * content for another type than it says. */
#define API_ALWAYS                                                                                 \
	"X-Content-Type-Options: nosniff\r\nCross-Origin-Resource-Policy: same-origin\r\n"
/* The same where pages of other sites may read: their token or signature decides, not their site. */
#define API_ALWAYS_SHARED                                                                          \
	"X-Content-Type-Options: nosniff\r\nCross-Origin-Resource-Policy: cross-origin\r\n"

struct auth;
struct quota;
struct api {
	/* clang-format off */
	struct loop *loop;
	struct store *store;
	struct fleet fleet;
	struct http_server http;
	struct api_conf conf;
	struct auth *auth;
	struct oidc *oidc; /* NULL: no tokens of others are taken */
	struct quota *quota;
	struct usage_sampler *gauges;
	struct api_table *native; /* routes of the native API */
	void (*on_second)(struct api *a);
	const struct api_surface *const *surfaces; /* NULL-terminated; NULL: none but our own */
	struct e2b *e2b;       /* that door's own (src/e2b/) */
	struct mcp *mcp;       /* and that of src/tool; NULL: nobody has come by it yet */
	struct swerex_memory *swerex; /* the same */
	struct survey *survey; /* NULL: nobody has asked for languages yet */
	struct batches *batches;
	struct llm_client *model; /* NULL: no model is configured */
	struct pipelines *pipelines; /* pipeline/pipeline.h */
	struct wire_about about; /* the keeper's figures ... */
	uint64_t about_ms;       /* ... of then; 0: never asked */
	struct call *calls; /* all that are under way */
	struct json_reader *reader; /* parses large bodies */
	struct session *agents; /* errands.c: those that this process runs */
	struct idem *idems; /* those of them with an Idempotency-Key, and some whose client has left */
	struct timer second;
	int64_t started_ns;
	uint64_t auth_failures, auth_slowed; /* wrong keys, tokens, signatures; those answered 429 */
	uint64_t by_status[6]; /* answers, by their first digit */
	struct fleet_histogram latency;
	char text[16384]; /* of an answer, while it is made */
	/* clang-format on */
};
must_check int api_init(struct api *a, struct err *e); /* loop, store, fleet and conf are set */
void api_fini(struct api *a);

/* ---- who asks ---- */
struct principal {
	char id[STORE_NAME + 1]; /* of the key; "uid:0" on the unix socket; "" nobody */
	char team[STORE_NAME + 1];
	enum store_role role;
	char box[ID_LEN + 1]; /* may touch only this one; "" any */
	uint8_t hash[SHA256_BYTES];
	int has_hash;     /* a key that may be revoked */
	int64_t until_ns; /* a token that ends by itself; 0: none */
};

/* Owners of team "default" run this daemon: they alone make teams, set quotas, and see the keys and
 * the audit log of all. */
int principal_is_operator(const struct principal *w);

enum api_need { NEED_NOTHING, NEED_VIEWER, NEED_EDITOR, NEED_OWNER };
/* What a route is about: SCOPE_BOX, one box, which parameter 0 of its path names. A key that is bound to a box
 * may use only those. */
enum api_scope { SCOPE_TEAM, SCOPE_BOX };
enum api_route_flags {
	ROUTE_NO_FLUSH = 1, /* it reads no ends of runs, or flushes the run writer itself */
	ROUTE_METRICS = 2,  /* needs no key where api_conf.metrics_public says so */
};

/* ---- what may come in a body or a query: one table for checking and for /openapi.json ---- */
enum field_type {
	FIELD_TEXT, /* string of up to `most` bytes */
	FIELD_NAME, /* letters, digits, '.', '_', '-'; begins with a letter or digit */
	FIELD_INT,  /* least..most */
	FIELD_BOOL,
	FIELD_TEXTS,   /* array of strings */
	FIELD_MAP,     /* object of strings */
	FIELD_COMMAND, /* a string for the shell, or an array of strings */
	FIELD_OBJECT,  /* has fields of its own */
	FIELD_CHOICE,  /* one of the names in `fields` */
	FIELD_ANY,
};
#define FIELD_VALUE(name)                                                                          \
	{                                                                                          \
		name, FIELD_TEXT, 0, 0, 0, NULL, NULL                                              \
	} /* a row of FIELD_CHOICE's `fields` */
struct field {
	const char *name;
	enum field_type type;
	int required;
	int64_t least, most;
	const char *help;
	const struct field *fields; /* FIELD_OBJECT, FIELD_CHOICE; ends with a row without a name */
};

struct call;
struct api_route {
	const char *method, *pattern;
	enum api_need need;
	void (*run)(struct call *c);
	const char *summary;
	const struct field *body;  /* NULL: none is read as JSON */
	const struct field *query; /* NULL: no query is taken */
	enum http_body how;        /* HTTP_BODY_WHOLE when body is set */
	const char *group;         /* for the documents */
	const char *action; /* NULL: it changes nothing. Else each answer is a row of the audit */
	enum api_scope scope;
	unsigned flags; /* enum api_route_flags */
};

/* ---- doors: several protocols on one port ---- */
/* How a door speaks, where it does not speak as /v1 does. */
struct api_format {
	void (*error)(struct call *c, int status, const char *code, const char *message,
		      const char *why, const char *hint);
	int (*admit)(struct call *c); /* who asks, may they; 0: no, and that was answered */
	/* What a handler of /v1 answers that was run for the sake of another door; take_doc NULL: an
	 * answer without a body. NULL: it is sent as it is. */
	void (*json)(struct call *c, int status, json_t *take_doc);
};
struct api_table {
	const struct api_route *rows;
	unsigned n;
	const struct api_format *format; /* NULL: that of /v1 */
	struct route *routes;            /* for the matcher; made by call.c when first needed */
};
struct api_surface {
	/* Called when a head is there and its Host is one of ours. 1: the request is this door's, and
	 * was given to call_serve() or is being answered. Our own table comes after all doors. */
	int (*take)(struct call *c);
	const struct api_route *routes; /* for /openapi.json; NULL: they are described elsewhere */
	unsigned nroutes;
	void (*document)(json_t *paths); /* what is not in the table; may be NULL */
};
/* Route -> who -> role -> quota -> query -> body -> the row's handler. */
void call_serve(struct call *c, struct api_table *t);

/* ---- one request ---- */
struct call {
	struct call *next, **at; /* in api->calls */
	struct api *api;
	struct http_req *req;
	const struct api_route *row;
	const struct api_format *format; /* NULL: that of /v1 */
	struct route_match match;
	struct principal who;
	json_t *body;          /* checked against the row; an empty object when there is none */
	char held[ID_LEN + 1]; /* this box is not idle while the call lasts */
	char id[ID_LEN + 1];
	int audited;               /* the row's action is in the audit log */
	int endless;               /* a stream that only its client ends; a drain ends it, too */
	struct box_wait *fetching; /* a box that another front made is being looked up */
	int fetched;
	void *surface;                 /* what the door that took it knows of it */
	void (*leave)(struct call *c); /* the door's: called once, behind drop */
	json_t *args; /* stands for the query where a door runs a handler of /v1; borrowed, or NULL */
	int no_route;             /* the status that says why there is no row; 0: there is one */
	struct json_job *reading; /* a body that is being parsed; NULL: none */
	struct call_document *parsed; /* one that was, until its handler takes it */
	void (*read)(struct call *c, json_t *take_doc, const struct err *why);
	/* the handler's: drop is called once, when the answer is out or the client left */
	void *state;
	void (*drop)(struct call *c);
};

const char *call_param(const struct call *c, unsigned i);
const char *call_text(const struct call *c, const char *name, const char *otherwise);
int64_t call_int(const struct call *c, const char *name, int64_t otherwise);
int call_flag(const struct call *c, const char *name, int otherwise);
json_t *call_get(const struct call *c, const char *name); /* borrowed; NULL: not given */
/* Query parameters, already checked by the row's table. */
const char *call_query(const struct call *c, const char *name);
int64_t call_query_int(const struct call *c, const char *name, int64_t otherwise);
int call_query_flag(const struct call *c, const char *name);

/* The box a path names, of the caller's team; answers 404 itself and returns NULL. A box that is
 * being made or is ending is not there. Holds it: it is not idle until the call is over. */
struct box *call_box(struct call *c, unsigned param);
/* The same for those who can do with a paused one, too: call_box() answers 409 for it. */
struct box *call_box_any(struct call *c, unsigned param);
void call_fail_paused(struct call *c, const struct box *b); /* that 409 */
void call_hold(struct call *c, struct box *b); /* a box that was found in another way */
/* The same without holding it: who only looks does not keep it alive. */
struct box *call_box_peek(struct call *c, unsigned param);
/* Answers 404: there is no such box, or when and why it ended if it was one of the caller's team. */
void call_no_box(struct call *c, const char *box);
/* 1: it has ended; *out says when and why, *out_when (NULL: not wanted; the caller's) has ended_at and cause. */
int call_ended(const struct api *a, const struct principal *who, const char *box, struct err *out,
	       json_t **out_when);
/* A row of a living box that is in no berth: another front made it. Looks after it from now on, and
 * runs the handler again then. 0: it is not to be had, go on without it. Takes the row's texts. */
int call_adopt(struct call *c, struct store_box *take_row);
/* 1: the box that parameter 0 names is on its way to us, and c->row->run is called again then. */
int call_needs_adopt(struct call *c);
/* 429: auth_failed() said so. */
void call_fail_throttled(struct call *c);
/* Answers a request without a right key, and counts a wrong one: 429 after too many. */
void call_refuse_key(struct call *c, int status, const char *why);
/* What a table does that has no manner: a key, a role, a quota. */
int call_authorize(struct call *c);

/* ---- answering ---- */
void call_json(struct call *c, int status, json_t *take_doc);
void call_empty(struct call *c, int status);
void call_send(struct call *c, int status, json_t *take_doc); /* call_json(), whatever the manner */
void call_send_text(struct call *c, int status, const char *text,
		    size_t n); /* the same: JSON, as it is */
void call_error(struct call *c, int status, const char *code, const char *message, const char *why,
		const char *hint);
void call_fail(struct call *c, const struct err *e); /* by its kind */
int call_status(const struct err *e);
/* c: for the page that explains it; NULL: none in particular. */
json_t *call_error_json(const struct call *c, const char *code, const char *message,
			const char *why, const char *hint);
/* A page: {items, next}; next NULL: the last one. */
void call_list(struct call *c, json_t *take_items, const char *next);
/* Sets ETag; 1: the client's If-None-Match has it already and 304 was sent. */
int call_not_modified(struct call *c, const json_t *doc);
/* 0: If-Match names another version; 412 was sent. */
int call_if_match(struct call *c, const json_t *current);

/* What happened, for the audit log. A route with an action has its row written with the answer, by
 * its status and with the last parameter of the path as subject; a handler that knows better calls
 * this before it answers, and then that row is the one. */
void call_audit(struct call *c, const char *action, const char *subject, const char *result);
void call_audit_more(struct call *c, const char *action, const char *subject, const char *result,
		     json_t *take_detail); /* the request's id and the box are added */
void api_audit(struct api *a, const struct principal *who, const char *action, const char *subject,
	       const char *result, json_t *take_detail);

/* Writes the row's action to the audit log unless that was done. */
void call_account(struct call *c, const char *result);

/* Parses a text as a JSON object, on another thread if it is large; calls then() unless the client has
 * left. take_doc NULL: why says what is wrong. An empty text is an empty object. */
void call_read_json(struct call *c, struct buf *take_text,
		    void (*then)(struct call *c, json_t *take_doc, const struct err *why));

/* Memory of the call. */
void *call_alloc(struct call *c, size_t n);
