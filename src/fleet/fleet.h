/* fleet.h - all boxes of this machine that the daemon manages.
 * Owns:         the table of boxes, the keeper client, restoring after a restart, the figures.
 * Does not own: the store and the loop; authorization (api/); the processes of boxes (the kernel).
 *
 *   fleet ── box (its row, its timers, the connection to its init)
 *               └── exec (a program in it) ── exec reader (reads its output) */
#pragma once
#include "base/err.h"
#include "record/cause.h"
#include "client/keeper_client.h"
#include "fleet/egress_client.h"
#include "fleet/history.h"
#include "fleet/isolation.h"
#include "fleet/wallclock.h"
#include "fleet/run_end.h"
#include "fleet/run_writer.h"
#include "lang/install.h"
#include "store/boxes.h"
#include "store/events.h"
#include "store/packages.h"
#include "store/store.h"
#include "store/usage.h"
#include <jansson.h>

enum { FLEET_SLOTS = 4096, FLEET_TEMPLATES = 32, FLEET_TEAM_SLOTS = 256 };

struct box;
struct fleet;
struct exec;

/* State that other modules keep for each box. Their functions are called at these points of its life; any
 * may be NULL. */
struct box_hooks {
	/* clang-format off */
	void (*restored)(struct box *b); /* after a restart its init was reached, its execs are known */
	void (*resynced)(struct box *b); /* the other server process has exited: the store has its last rows */
	void (*resumed)(struct box *b);  /* its processes run again */
	void (*clock_moved)(struct box *b, int64_t by_ns); /* the wall clock was set */
	void (*before_free)(struct box *b);		     /* its execs still exist */
	void (*after_free)(struct box *b);		     /* its execs are freed, its connection is open */
	void (*fleet_fini)(struct fleet *f);
	/* clang-format on */
};

struct packages_conf {
	struct install_conf install;
	uint64_t cache_bytes;          /* of all layers together; 0: no limit */
	uint64_t timeout_ms;           /* of one installation */
	const char *const *preinstall; /* "pip numpy pandas==1.5"; NULL at the end, or none */
};

struct fleet_conf {
	uint64_t lifetime_ms, lifetime_max_ms; /* 0: none */
	uint64_t idle_ms;
	uint64_t retention_ms;
	uint64_t history_ms, history_bytes; /* history.h; 0: no bound */
	uint64_t history_least_ms;          /* the shortest time of a plan; 0: none */
	uint64_t run_wall_ms;               /* of a program whose request has none; 0: no limit */
	uint64_t cell_ms;          /* of a cell whose request names no timeout_ms; 0: no limit */
	struct wire_limits limits; /* of a box whose request has none */
	struct wire_limits most;   /* of any box: bounds.h */
	unsigned
		boxes_most; /* at the same time, of all teams; 0: as many as the machine can hold */
	struct choose_settings isolation; /* zero: the defaults */
	const char *const *layer_names;
	const struct box_hooks *const *hooks; /* NULL-terminated; NULL: none */
	struct packages_conf packages;
	const char
		*certificates; /* PEM: what boxes with their own certificate authority trust, too;
				   * NULL: none */
	const char *const *way_env; /* NAME=value for programs of a box with egress; NULL: none */
	const char *const
		*registries; /* rules for the registries that boxes may reach; NULL: none */
};

/* The lease of this node of a cluster: boxes with on_loss run until it ends. */
struct fleet_lease {
	int is_node;
	int64_t epoch;     /* of the node; 0: none yet */
	uint64_t until_ms; /* loop_now_ms() */
};

enum { FLEET_BUCKETS = 14 };
struct fleet_histogram { /* seconds; the bounds are fleet_bounds */
	uint64_t bucket[FLEET_BUCKETS + 1], count;
	double sum;
};
extern const double fleet_bounds[FLEET_BUCKETS];
unsigned fleet_observe(struct fleet_histogram *h, uint64_t us); /* the index of its bucket */

/* The same of bytes; the bounds are fleet_byte_bounds. */
extern const uint64_t fleet_byte_bounds[FLEET_BUCKETS];
unsigned fleet_observe_bytes(struct fleet_histogram *h, uint64_t bytes);

/* The last exec in a bucket of a histogram. */
struct fleet_exemplar {
	char run[ID_MAX + 1]; /* "": none yet */
	double value;
	int64_t at_ns;
};

enum { FLEET_LANGS = 32 };
enum fleet_outcome { /* of an exec; docs/daemon.md describes them */
		     FLEET_OK,
		     FLEET_ERROR,
		     FLEET_TIMEOUT,
		     FLEET_LIMIT,
		     FLEET_STOPPED,
		     FLEET_HOST,
		     FLEET_OUTCOMES,
};
const char *fleet_outcome_name(enum fleet_outcome outcome); /* run_end.c */
/* How a box came to its client. */
enum fleet_start { FLEET_COLD, FLEET_POOLED, FLEET_WARM, FLEET_STARTS };
enum fleet_exits { EXITS_0, EXITS_1, EXITS_2, EXITS_126, EXITS_127, EXITS_OTHER, EXITS_COUNT };

struct fleet_figures {
	uint64_t created, create_failed;
	uint64_t runs_started, ended[CAUSE_COUNT]; /* runs, by cause */
	uint64_t boxes_ended[CAUSE_COUNT];
	uint64_t output_bytes, stdin_bytes;
	uint64_t keeper_lost, restored, restored_runs;
	uint64_t cost_nano;    /* charged, in 10^-9 of the currency */
	uint64_t history_rows; /* removed as too old or too many */
	struct { /* by template; when all rows are used, others are counted in the last
		  * one, "other" */
		char name[STORE_TEMPLATE + 1];
		uint64_t created;
	} templates[FLEET_TEMPLATES];
	uint64_t exits[EXITS_COUNT]; /* of runs that were not killed */
	uint64_t languages
		[FLEET_LANGS]
		[2]; /* runs: [1] exited with 0, [0] did not; the last row is for commands */
	uint64_t network_in, network_out, network_refused; /* of all boxes, through egress */
	uint64_t installs[PM_COUNT][2]; /* sets of packages: [1] installed, [0] not */
	struct fleet_histogram create, run, run_cpu, run_memory, install;
	struct fleet_histogram starts[FLEET_STARTS]; /* the same boxes as in create */
	struct fleet_exemplar run_examples[FLEET_BUCKETS + 1], cpu_examples[FLEET_BUCKETS + 1],
		memory_examples[FLEET_BUCKETS + 1];
};

/* Receives all events of boxes. */
struct fleet_subscriber {
	struct fleet_subscriber *next;
	/* ev->seq 0: the event could not be stored. data is ev->data before it was made a text; or
	 * NULL. */
	void (*on_event)(struct fleet_subscriber *x, const struct store_event *ev,
			 const json_t *data);
};

enum fleet_keep { FLEET_KEEP_RECORDS, FLEET_KEEP_OUTPUTS };

/* Quotas for programs that no request waits for. Any member may be NULL. */
struct fleet_accounts {
	void *ctx;
	/* Counts one program. 0: the quota of this team is exhausted, and out is the message. */
	int (*may_run)(void *ctx, const char *team, struct err *out);
	unsigned (*may_have)(void *ctx, const char *team); /* boxes at the same time */
	void (*used)(void *ctx, const char *team, uint64_t cpu_us, uint64_t output_bytes);
	/* Boxes of this team have used this much more CPU time; also called for programs that still
	 * run. */
	void (*computed)(void *ctx, const char *team, uint64_t cpu_us);
	/* Sets cost_nano and currency; adds usage and cost to the record of a run (NULL: none). */
	void (*price)(void *ctx, struct store_use *use, json_t *record);
	/* The team was charged this. */
	void (*charged)(void *ctx, const char *team, const struct store_use *use);
	uint64_t (*max_run_ms)(void *ctx, const char *team); /* of one program; 0: no limit */
	/* How long records or outputs of this team are kept; 0: without limit. */
	uint64_t (*keep_ms)(void *ctx, const char *team, enum fleet_keep what,
			    uint64_t otherwise_ms);
};

struct fleet_team {              /* a team with requests since the start; freed by fleet_fini() */
	struct fleet_team *next; /* in its slot */
	struct loop_budget budget;
	char name[STORE_NAME + 1];
};

struct execution; /* execute/execute.h */
struct fleet {
	struct loop *loop;
	struct store *store;
	struct fleet_conf conf;
	struct keeper_client keeper;
	struct egress_client egress_client;
	struct isolation isolation;
	char boot[64];
	struct fleet_lease lease;
	int looked_at_clock;
	int is_draining, is_moving; /* fleet_set_draining() */
	struct box *slots[FLEET_SLOTS];
	struct box *making; /* boxes without an id yet, hence not in the table */
	struct fleet_team *teams[FLEET_TEAM_SLOTS];
	unsigned count;
	unsigned ending; /* of them: being deleted by the keeper */
	unsigned spares; /* of them: wait with a running server (v1run/fragment_spare.h) */
	struct fleet_figures figures;
	struct fleet_subscriber *subscribers;
	unsigned idle_ports;      /* port_conn.c: open connections to ports, without a request */
	struct install *installs; /* packages.c: in progress */
	struct keeper_call *dropping; /* deletes a layer, to make space */
	char dropped[STORE_HASH + 1];
	unsigned drop_skip;
	struct run_writer run_writer;
	struct history history;
	struct fleet_accounts accounts;
	struct fleet_receipts receipts; /* receipt/receipts.h */
	struct execution *executions;   /* in progress; their boxes count together */
	struct {
		int folder, copies;            /* of this node; of boxes of other nodes */
		uint64_t team_bytes;           /* 0: no limit */
	} snaps;                               /* snapshot.c */
	struct vault *vault;                   /* values of secrets; NULL: none (tests) */
	struct compile_caches *compile_caches; /* the compile cache; NULL: disabled */
	unsigned restoring;
	struct timer patience; /* the server accepts requests at this time at the latest */
	int ready;
	int alone;                         /* no other server manages the same boxes */
	void (*on_ready)(struct fleet *f); /* all running boxes are restored */
	void (*on_pause)(struct fleet *f,
			 struct box *b); /* the box was paused and is silent now; may
					       * be NULL */
	/* A box would be frozen because of a timeout: 1: it will be paused in another way, or by box_freeze_at_timeout();
	 * may be NULL. */
	int (*pause_at_timeout)(struct fleet *f, struct box *b, enum cause because, uint64_t ms);
	void (*need_keeper)(struct fleet *f); /* requests a connection, for fleet_keeper() */
	void *user;
};

void fleet_init(struct fleet *f, struct loop *l, struct store *s, const struct fleet_conf *conf,
		const char *boot);
void fleet_keeper(struct fleet *f, int take_fd);
/* Restores the boxes in the store. on_ready() is called within seconds after the keeper has
 * connected: a box that was not reached by then is still being restored. */
must_check int fleet_restore(struct fleet *f, struct err *e);
/* During a reload there are two servers: an old one that drains, and a new one; this may be either.
 * As long as the other one runs, timeouts are read from the store again before they are executed,
 * and neither ends a box that the other may be about to use. When this server becomes the only one,
 * it takes over what the other one did last. */
void fleet_set_sole_server(struct fleet *f, int alone);
void fleet_restored(struct fleet *f); /* from box_restore.c: one box less to wait for */
void fleet_fini(struct fleet *f);     /* releases everything; the boxes keep running */

/* draining.c: a machine that drains takes no new boxes; those that it has continue, or move to other nodes if they can
 * (FLEET_DRAINS_AND_MOVES: v1box/copies_leave.c). It is stored in the folder
 * of the store, so that it survives restarts. */
must_check int fleet_load_draining(struct fleet *f, const char *folder, struct err *e);
enum fleet_draining { FLEET_TAKES_BOXES, FLEET_DRAINS, FLEET_DRAINS_AND_MOVES };
must_check int fleet_set_draining(struct fleet *f, const char *folder, enum fleet_draining how,
				  struct err *e);
/* -1, ERR_LIMIT with sys ESHUTDOWN: this machine drains. */
must_check int fleet_check_accepts(const struct fleet *f, struct err *e);

struct box *fleet_find(const struct fleet *f, const char *id);
/* A box of one team, by id, else by name; NULL: none. */
struct box *fleet_named(const struct fleet *f, const char *team, const char *id_or_name);
/* A box that moves to another node: fleet_named() does not find it. */
struct box *fleet_leaving(const struct fleet *f, const char *team, const char *id_or_name);
/* The box may still be being created: box_await(). */
struct box *fleet_session(const struct fleet *f, const char *team, const char *session,
			  const char *template);
struct box *fleet_next(const struct fleet *f, const struct box *after); /* in any order */
/* A number for a team, never 0: boxes with different numbers are not forked from the same zygote.
 * Two teams get the same number by chance once in four billion pairs. */
uint32_t fleet_zygote_group(const char *team);
/* Including those being created. */
unsigned fleet_team_boxes(const struct fleet *f, const char *team);
/* The share of the loop's time of a team; valid until fleet_fini(). Team "": NULL. */
struct loop_budget *fleet_budget(struct fleet *f, const char *team);

/* How long records or outputs of a team are kept after their end; 0: without limit. */
uint64_t fleet_keep_ms(const struct fleet *f, const char *team, enum fleet_keep what,
		       uint64_t otherwise_ms);

/* Sends an event to subscribers, and writes it to the store. */
void fleet_emit(struct fleet *f, const char *team, const char *box, const char *type,
		json_t *take_data);
/* The same in two steps: the event is written as part of the open transaction, and published after
 * its commit, or dropped. */
uint64_t fleet_lease_left_ms(const struct fleet *f); /* 0: no lease, or not a node */

struct fleet_event {
	struct store_event ev;
	json_t *data;
};
void fleet_write(struct fleet *f, const char *team, const char *box, const char *type,
		 json_t *take_data, struct fleet_event *out);
void fleet_publish(struct fleet *f, struct fleet_event *take_news);
void fleet_event_drop(struct fleet_event *take_news); /* the transaction failed */
/* Calls one hook of all modules that have it. */
#define fleet_call_hooks(f, hook, ...)                                                             \
	for (const struct box_hooks *const *h_ = (f)->conf.hooks; h_ && *h_; h_++)                 \
		if ((*h_)->hook)                                                                   \
	(*h_)->hook(__VA_ARGS__)

void fleet_subscribe(struct fleet *f, struct fleet_subscriber *x);
/* Not from within a subscriber's callback. */
void fleet_unsubscribe(struct fleet *f, struct fleet_subscriber *x);
