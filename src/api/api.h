/* api.h - what all surfaces share: the state of the server, one request, and the functions that
 * answer it.
 * Owns:         struct api for the life of the server; a struct call for the life of its request.
 * Does not own: boxes and execs (fleet/), rows (store/), connections (http/). */
#pragma once
#include "egress/net_rule.h"
#include "fleet/exec.h"
#include "fleet/fleet.h"
#include "http/http.h"
#include "http/route.h"
#include "llm/llm.h"
#include "store/keys.h"
#include "store/teams.h"
#include "trace/trace.h"
#include "usage/plan.h"
#include "usage/rates.h"
#include <jansson.h>

struct api_conf {
	/* clang-format off */
	uint64_t json_max, upload_max; /* bytes of a body */
	uint64_t template_max;         /* bytes of an archive for a template */
	const char *const *hosts;      /* accepted Host names, in addition to those of loopback;
				        * NULL-terminated */
	const char *const *previews;   /* names below which boxes are reached; none: hosts */
	const char *const *origins;    /* of pages that may call the API; NULL-terminated */
	int metrics_public;
	struct store_team quota; /* of a team that has no quota of its own */
	struct rates rates;      /* at which runs and boxes are charged */
	const struct plan *plans;
	unsigned nplans;
	int statm; /* /proc/self/statm, opened before the server is confined; -1: not open */
	const char *state; /* the folder of the store */
	unsigned batch_jobs;
	uint64_t batch_bytes, batch_team_bytes, batch_keep_ms;
	uint64_t pipeline_keep_ms; /* time after its end until it is deleted; 0: never */
	int pipeline_forgetful;	   /* no lessons are stored */
	uint64_t snapshot_bytes; /* of all snapshots of a team; 0: no limit */
	uint64_t checkpoint_bytes; /* of all checkpoints of a team; 0: no limit */
	uint64_t checkpoints_per_box; /* 0: no limit */
	uint64_t checkpoint_wait_ms; /* how long a program waits for the automatic checkpoint before it */
	const struct net_rule *rules; /* hosts that boxes may be allowed to reach, set by the
					 * operator */
	unsigned nrules;
	int links; /* boxes may be linked */
	const char *const *approve; /* tools that need the approval of a person; NULL-terminated, or
				     * NULL */
	int e2b_internet; /* a sandbox whose request names no hosts may reach all of them */
	int e2b_insecure; /* old E2B clients may create sandboxes without tokens */
	int64_t certificate_until_s; /* when the TLS certificate expires, since 1970; 0: there is none */
	int replaces_crashed; /* the server before this one ended unexpectedly */
	uint16_t port; /* of the first TCP listener, and whether it uses TLS; 0: no TCP listener */
	int tls;
	uint32_t own_uid; /* of the user that started the daemon; on the unix socket this user has
			   * the role owner, as root has */
	uint32_t access_gid; /* and so have members of this group; 0: none */
	/* clang-format on */
};

/* Header lines of every answer: a page of another site cannot read or embed the answer, and a
 * browser does not guess another content type. */
#define API_ALWAYS                                                                                 \
	"X-Content-Type-Options: nosniff\r\nCross-Origin-Resource-Policy: same-origin\r\n"
/* The same for answers that pages of other sites may read: a token or a signature authorizes them,
 * not their origin. */
#define API_ALWAYS_SHARED                                                                          \
	"X-Content-Type-Options: nosniff\r\nCross-Origin-Resource-Policy: cross-origin\r\n"

/* The names below which boxes are reached; NULL-terminated, perhaps empty. */
const char *const *api_preview_domains(const struct api_conf *c);

/* The quotas of teams. */
enum quota_kind {
	QUOTA_BOXES,
	QUOTA_REQUESTS,
	QUOTA_EXECUTIONS,
	QUOTA_OUTPUT,
	QUOTA_COMPUTE,
	QUOTA_BUDGET,
	QUOTA_KINDS
};

struct auth;
struct call;
struct node_rows;
struct quota;
struct directory_wait;
struct store_usage_filter;
struct usage_answer;
typedef void call_box_found(struct call *c, const char *id);
struct api {
	/* clang-format off */
	struct loop *loop;
	struct store *store;
	struct fleet fleet;
	struct http_server http;
	struct api_conf conf;
	struct auth *auth;
	struct oidc *oidc; /* NULL: tokens of other issuers are rejected */
	struct quota *quota;
	struct budget *budgets; /* budget.h */
	uint64_t disk_due_ms;   /* charges.h */
	struct usage_sampler *gauges;
	struct metrics *metrics; /* metrics/metrics.h */
	struct figures *figures; /* v1/figures.h */
	struct host_sampler *host; /* NULL: figures of the machine are not available */
	struct api_table *native; /* routes of the native API */
	void (*on_second)(struct api *a);
	const struct api_surface *const *surfaces; /* NULL-terminated; NULL: only /v1 */
	struct e2b *e2b;       /* state of the E2B surface (src/e2b/) */
	struct mcp *mcp;       /* state of the MCP surface (src/mcp/); NULL: not used yet */
	struct swerex_memory *swerex; /* state of the SWE-ReX surface (src/swerex/); NULL: not used
				       * yet */
	struct survey *survey; /* NULL: the list of languages was not requested yet */
	struct batches *batches;
	struct llm_client *model; /* NULL: no model is configured */
	struct outbound *outbound; /* outbound/outbound.h: requests to other hosts */
	struct webhook_runner *webhooks; /* webhook/runner.h */
	struct alerts *alerts; /* alert/alerts.h */
	struct pipelines *pipelines; /* pipeline/pipeline.h */
	struct builds *builds; /* template/build.h */
	struct checkpoints *checkpoints; /* checkpoint/checkpoints.h */
	struct schedule_runs *schedules; /* v1ops/schedule_runs.h */
	struct wire_info about; /* the figures of the keeper ... */
	uint64_t about_ms;       /* ... and when it reported them; 0: never */
	struct call *calls; /* all requests in progress */
	struct json_reader *reader; /* parses large bodies */
	struct fragment_spares *spares; /* v1run/fragment_spare.h; NULL: none yet */
	struct gateway *gateway; /* gateway/gateway.h; NULL: this daemon is not a gateway */
	json_t *(*nodes)(struct api *a); /* its nodes, for GET /v1/nodes; NULL: not a gateway */
	json_t *(*scale)(struct api *a); /* for GET /v1/scale; NULL: not a gateway */
	json_t *(*node_self)(struct api *a); /* this machine as a node, in the same form; NULL: not a node */
	void *node_user; /* of node_self */
	struct gateway_accounts *accounts; /* gateway/accounts.h; NULL: keys and teams are those of this machine */
	/* A key or team may have changed: sends it to the other gateways. 0: they may learn it late. NULL: there are none. */
	int (*accounts_changed)(struct api *a);
	/* The row of store/shared_rows.h has changed in the store. _came: another machine did so. _left: here; sends it to the
	 * nodes, and then the answer. NULL: there is no cluster. */
	void (*shared_row_came)(struct api *a, const char *kind, const char *id);
	void (*shared_row_left)(struct call *c, const char *kind, const char *id, int status, json_t *take_doc);
	/* The same request to all nodes, whose answers are added to doc; then it is sent. NULL: this is no gateway. */
	void (*merged)(struct call *c, int status, json_t *take_doc,
		       void (*merge)(json_t *doc, const json_t *other));
	/* Reads the figures of all nodes, which GET /metrics of a gateway has, and then continues. NULL: this is no gateway. */
	void (*figures_of_nodes)(struct call *c, void (*then)(struct call *c));
	/* What all machines of a cluster have used: usage_source.h. NULL: what this one has. */
	void (*usage_of_cluster)(struct call *c, const struct store_usage_filter *f, int with_days,
				 void (*done)(struct call *c, const struct usage_answer *a));
	/* The box of the caller's team that a request names: done() gets its id, or "". NULL: boxes are on this machine. */
	void (*box_of_cluster)(struct call *c, const char *name, call_box_found *done);
	json_t *(*box_row)(struct api *a, const char *id); /* the row of a box for the directory of a cluster; NULL: not a node */
	/* Rows of this machine for that directory; NULL: not in a cluster. rows_settle(): 1: the directory has all of them.
	 * 0: w->done() follows. -1: they cannot be sent now (api/directory_wait.h). */
	struct node_rows *rows;
	int (*rows_settle)(struct node_rows *rows, struct directory_wait *w);
	struct object_client *objects; /* cluster/object_client.h; NULL: cluster.objects is not set, or this is no node */
	const char *const *labels; /* of this node: cluster.labels, NULL-terminated; NULL: it has none */
	struct rooms *rooms; /* v1/room.h; NULL: no client has joined one yet */
	struct doctor *doctor; /* v1/doctor.h; NULL: not requested yet */
	struct call *tiers_call; /* v1/tiers.h; NULL: none */
	void (*need_doctor)(struct api *a); /* requests a check of the machine; NULL: there is no supervisor */
	struct session *agents; /* agents.c: the agent sessions of this process */
	struct idem *idems; /* calls with an Idempotency-Key, including some whose client has
			     * disconnected */
	struct timer second;
	int64_t started_ns;
	uint64_t auth_failures, auth_slowed; /* wrong keys, tokens, signatures; how many of them
					      * were answered 429 */
	uint64_t quota_refusals[QUOTA_KINDS];
	uint64_t by_status[6]; /* number of answers, by the first digit of the status */
	struct fleet_histogram latency;
	char text[16384]; /* of an answer, while it is written */
	/* clang-format on */
};
must_check int api_init(struct api *a, struct err *e); /* loop, store, fleet and conf are set */
void api_fini(struct api *a);

/* ---- authentication ---- */
struct principal {
	char id[STORE_NAME + 1]; /* of the key; "uid:0" on the unix socket; "": not authenticated */
	char team[STORE_NAME + 1];
	enum store_role role;
	char box[ID_MAX + 1];           /* the only box that the key may use; "": any */
	char isolation[STORE_WORD + 1]; /* minimum tier of the key; "": none */
	uint8_t hash[SHA256_BYTES];
	int has_hash;     /* hash is set: a key that can be revoked */
	int64_t until_ns; /* when the token expires; 0: does not expire */
};

/* Owners of team "default" are operators of the daemon: only they create teams, set quotas, and see
 * the keys and the audit log of all teams. */
int principal_is_operator(const struct principal *w);

enum api_need { NEED_NOTHING, NEED_VIEWER, NEED_EDITOR, NEED_OWNER };
/* What a route refers to. SCOPE_BOX: one box, named by parameter 0 of the path. SCOPE_ANY: the
 * daemon or the caller; the handler itself hides other boxes from a key that is bound to one
 * box. A bound key may use only these two. */
enum api_scope { SCOPE_TEAM, SCOPE_BOX, SCOPE_ANY };
enum api_route_flags {
	ROUTE_NO_FLUSH = 1, /* the handler reads no exits of runs, or flushes the run
			     * writer itself */
	ROUTE_METRICS = 2,  /* needs no key if api_conf.metrics_public is set */
};

/* ---- fields of a body or a query: one table for validation and for /openapi.json ---- */
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
/* A word of the previous minor version: accepted, but neither in error messages nor in the
 * documents. The handler calls call_renamed() for it. */
#define FIELD_OLD_VALUE(name)                                                                      \
	{                                                                                          \
		name, FIELD_TEXT, 0, 0, 0, "deprecated", NULL                                      \
	}
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
	const struct field *body;  /* NULL: the body is not read as JSON */
	const struct field *query; /* NULL: no query parameters are accepted */
	enum http_body how;        /* HTTP_BODY_WHOLE when body is set */
	const char *group;         /* for the documents */
	const char *action; /* NULL: the route changes nothing. Else each answer is written to the
			     * audit log */
	enum api_scope scope;
	unsigned flags; /* enum api_route_flags */
};

/* ---- surfaces: several protocols on one port ---- */
/* Functions that replace those of /v1 for one surface. */
struct api_format {
	void (*error)(struct call *c, int status, const char *code, const char *message,
		      const char *why, const char *hint);
	int (*admit)(struct call *c); /* authenticates and authorizes; 0: rejected, and the answer
				       * was sent */
	/* Converts the answer of a /v1 handler that another surface has called; take_doc NULL: an
	 * answer without a body. NULL: the answer is sent unchanged. */
	void (*json)(struct call *c, int status, json_t *take_doc);
};
struct api_table {
	const struct api_route *rows;
	unsigned n;
	const struct api_format *format; /* NULL: that of /v1 */
	struct route *routes;            /* for the route matcher; call.c builds them at the first
					  * request */
};
struct api_surface {
	/* Called when the head of a request was read and its Host is accepted. 1: the request
	 * belongs to this surface, and was passed to call_serve() or is being answered. The table
	 * of /v1 is tried after all surfaces. */
	int (*take)(struct call *c);
	const struct api_route *routes; /* for /openapi.json; NULL: they are described elsewhere */
	unsigned nroutes;
	void (*document)(json_t *paths); /* adds paths that are not in the table; may be NULL */
};
/* For internal_call.h: a call of a route of /v1 that exists, without a connection. */
struct call *call_internal(struct api *a, struct http_req *r, const struct principal *who,
			   const struct api_format *format);
/* 1: the table has this path, with this method or another one. */
int call_has_path(struct api_table *t, const struct http_req *r);
/* Route -> principal -> role -> quota -> query -> body -> handler of the row. */
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
	char held[ID_MAX + 1]; /* id of the box that does not become idle while the call lasts */
	char id[ID_MAX + 1];
	struct trace_context trace; /* of the request */
	int64_t trace_ns;           /* when it began, if it is recorded */
	int audited;                /* the action of the route is in the audit log */
	int endless;                /* a stream without an end: closed by its client, or by the
				    * server when it drains */
	struct exec_before before;  /* of the program, cell or tool: v1box/automatic.h */
	struct box_wait *fetching;  /* waits while a box that another server created is adopted */
	int fetched;
	void *surface;                 /* state of the surface that serves the call */
	void (*leave)(struct call *c); /* of the surface: called once, after drop */
	json_t *args; /* replaces the query when a surface calls a handler of /v1; borrowed,
		       * or NULL */
	int no_route; /* the status to answer if no route fits; 0: a route fits */
	struct json_job *reading;     /* a body that is being parsed; NULL: none */
	struct call_document *parsed; /* the parsed body, until the handler takes it */
	void (*read)(struct call *c, json_t *take_doc, const struct err *why);
	/* of the handler: drop is called once, when the answer was sent or the client has
	 * disconnected */
	void *state;
	void (*drop)(struct call *c);
	uint32_t merged_ms; /* call_merged(): for a node to answer; 0: a second */
};

const char *call_param(const struct call *c, unsigned i);
const char *call_text(const struct call *c, const char *name, const char *otherwise);
int64_t call_int(const struct call *c, const char *name, int64_t otherwise);
int call_flag(const struct call *c, const char *name, int otherwise);
json_t *call_get(const struct call *c, const char *name); /* borrowed; NULL: not given */
/* Query parameters, already validated with the table of the route. */
const char *call_query(const struct call *c, const char *name);
int64_t call_query_int(const struct call *c, const char *name, int64_t otherwise);
int call_query_flag(const struct call *c, const char *name);

/* The box that a path names, in the team of the caller; without one, answers 404 itself and returns
 * NULL. A box that is being created or is ending counts as missing. The box is held: it does not
 * become idle until the call ends. */
struct box *call_box(struct call *c, unsigned param);
/* The same, but also returns a paused box, for which call_box() answers 409. */
struct box *call_box_any(struct call *c, unsigned param);
void call_fail_paused(struct call *c, const struct box *b); /* that 409 */
void call_hold(struct call *c, struct box *b); /* for a box that was not found by call_box() */
/* The running or stopped box that the member `box` of the body names, not held. NULL: it was answered. */
struct box *call_box_of_body(struct call *c);
/* The same without holding the box: reading its state does not count as use. */
struct box *call_box_peek(struct call *c, unsigned param);
/* 0: answered with 503: a gateway may have moved the box to another node, so its end here would not be its end. */
int call_may_end(struct call *c, const struct box *b);
/* Answers 404: no such box, or when and why it ended if it belonged to the team of the caller. */
void call_no_box(struct call *c, const char *box);
/* 1: the box has ended; *out is the message with time and cause, *out_when (may be NULL; owned by
 * the caller) has ended_at and cause. */
int call_ended(const struct api *a, const struct principal *who, const char *box, struct err *out,
	       json_t **out_when);
/* For the row of a running box that this server does not manage, because another server created it.
 * Adopts the box, then runs the handler again. 0: the box cannot be adopted, and the caller
 * continues without it. Takes the texts of the row. */
int call_adopt(struct call *c, struct store_box *take_row);
/* 1: the box that parameter 0 names is being adopted; c->row->run is called again after that. */
int call_needs_adopt(struct call *c);
/* Answers 429 after auth_failed() has returned 1. */
void call_fail_throttled(struct call *c);
/* Answers a request without a valid key, and counts a wrong key: 429 after too many. */
void call_refuse_key(struct call *c, int status, const char *why);
/* The default of api_format.admit: checks key, role and quota. */
int call_authorize(struct call *c);

/* ---- answering ---- */
/* The request contains an old word that is still accepted: adds a header Warning to the answer. */
void call_renamed(struct call *c, const char *field, const char *old, const char *name);
void call_json(struct call *c, int status, json_t *take_doc);
void call_empty(struct call *c, int status);
/* The same for an answer after which all nodes of a cluster know the row (store/shared_rows.h). take_doc NULL: no body. */
void call_shared(struct call *c, const char *kind, const char *id, int status, json_t *take_doc);
/* The same for a document that is in parts on the nodes of a cluster. */
typedef void call_merge(json_t *doc, const json_t *other);
void call_merged(struct call *c, int status, json_t *take_doc, call_merge *merge);
/* The name of this node, for an answer to a gateway; NULL: the caller is no gateway. */
json_t *call_own_node(const struct call *c);
/* Then() with the figures of all nodes, if this is a gateway. */
void call_with_figures(struct call *c, void (*then)(struct call *c));
/* Call_json() without the format of the surface. */
void call_send(struct call *c, int status, json_t *take_doc);
void call_send_text(struct call *c, int status, const char *text,
		    size_t n); /* the same for JSON text */
void call_error(struct call *c, int status, const char *code, const char *message, const char *why,
		const char *hint);
void call_fail(struct call *c, const struct err *e); /* status by the kind of error */
int call_status(const struct err *e);
/* c: to name the documentation page of its route; NULL: names none. */
json_t *call_error_json(const struct call *c, const char *code, const char *message,
			const char *why, const char *hint);
/* One page of a list: {items, next}; next NULL: the last page. */
void call_list(struct call *c, json_t *take_items, const char *next);
/* Sets ETag; 1: If-None-Match of the request has the same ETag, and 304 was sent. */
int call_not_modified(struct call *c, const json_t *doc);
/* 0: If-Match names another version; 412 was sent. */
int call_if_match(struct call *c, const json_t *current);

/* Writes a row of the audit log. A route with an action gets one with its answer: the result is
 * derived from the status, the subject is the last parameter of the path. A handler that has better
 * values calls this before it answers, and no second row is written. */
void call_audit(struct call *c, const char *action, const char *subject, const char *result);
void call_audit_more(struct call *c, const char *action, const char *subject, const char *result,
		     json_t *take_detail); /* the ids of the request and the box are added */
void api_audit(struct api *a, const struct principal *who, const char *action, const char *subject,
	       const char *result, json_t *take_detail);

/* Writes the action of the route to the audit log, unless that was done. */
void call_account(struct call *c, const char *result);

/* Parses a text as a JSON object, on another thread if it is large; calls then() unless the client
 * has disconnected. take_doc NULL: why is the error. An empty text is an empty object. */
void call_read_json(struct call *c, struct buf *take_text,
		    void (*then)(struct call *c, json_t *take_doc, const struct err *why));

/* Memory that is freed with the call. */
void *call_alloc(struct call *c, size_t n);
