/* fleet.h - all boxes of this machine that the daemon looks after.
 * Owns:         the table of berths, the keeper's office, what a restart restores, the figures.
 * Does not own: the store and the loop; who may do what (api/), the boxes' processes (the kernel).
 *
 *   fleet ── berth (a box: its row, its timers, the line to its init)
 *               └── run (a program in it) ── tap (somebody who reads its output) */
#pragma once
#include "base/err.h"
#include "record/cause.h"
#include "client/keeper_client.h"
#include "fleet/egress_client.h"
#include "fleet/history.h"
#include "fleet/wallclock.h"
#include "fleet/run_writer.h"
#include "lang/install.h"
#include "store/boxes.h"
#include "store/events.h"
#include "store/packages.h"
#include "store/store.h"
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
	void (*before_free)(struct box *b);		     /* its execs are still there */
	void (*after_free)(struct box *b);		     /* its execs are freed, its connection is open */
	void (*fleet_fini)(struct fleet *f);
	/* clang-format on */
};

struct packages_conf {
	struct install_conf install;
	uint64_t cache_bytes;          /* of all layers together; 0: no end */
	uint64_t timeout_ms;           /* of one install */
	const char *const *preinstall; /* "pip numpy pandas==1.5"; NULL at the end, or none */
};

struct fleet_conf {
	uint64_t lifetime_ms, lifetime_max_ms; /* 0: none */
	uint64_t idle_ms;
	uint64_t retention_ms;
	uint64_t history_ms, history_bytes; /* history.h; 0: no bound */
	uint64_t run_wall_ms;               /* of a program whose request names none; 0: none */
	uint64_t cell_ms;          /* of a cell whose request names no timeout_ms; 0: no limit */
	struct wire_limits limits; /* of a box whose request names none */
	struct wire_limits most;   /* of any box: bounds.h */
	unsigned boxes_most;       /* at once, of all teams; 0: what the machine can hold */
	const char *const *layer_names;
	const struct box_hooks *const *hooks; /* NULL-terminated; NULL: none */
	struct packages_conf packages;
	const char *const
		*way_env; /* NAME=value for programs of a box with a way out; NULL: none */
};

enum { FLEET_BUCKETS = 14 };
struct fleet_histogram { /* seconds; the bounds are fleet_bounds */
	uint64_t bucket[FLEET_BUCKETS + 1], count;
	double sum;
};
extern const double fleet_bounds[FLEET_BUCKETS];
void fleet_observe(struct fleet_histogram *h, uint64_t us);

/* The same of bytes; the bounds are fleet_byte_bounds. */
extern const uint64_t fleet_byte_bounds[FLEET_BUCKETS];
void fleet_observe_bytes(struct fleet_histogram *h, uint64_t bytes);

enum { FLEET_LANGS = 32 };
enum fleet_exits { EXITS_0, EXITS_1, EXITS_2, EXITS_126, EXITS_127, EXITS_OTHER, EXITS_COUNT };

struct fleet_figures {
	uint64_t created, create_failed;
	uint64_t runs_started, ended[CAUSE_COUNT]; /* runs, by cause */
	uint64_t boxes_ended[CAUSE_COUNT];
	uint64_t output_bytes, stdin_bytes;
	uint64_t keeper_lost, restored, restored_runs;
	uint64_t history_rows; /* removed as too old or too many */
	struct { /* by template; what finds no row any more is counted in the last one, "other" */
		char name[STORE_TEMPLATE + 1];
		uint64_t created;
	} templates[FLEET_TEMPLATES];
	uint64_t exits[EXITS_COUNT]; /* of runs that ended by themselves */
	uint64_t languages
		[FLEET_LANGS]
		[2]; /* runs: [1] exited with 0, [0] did not; behind the last language, commands */
	struct fleet_histogram create, run, run_cpu, run_memory;
};

/* Somebody who wants to hear of everything that happens to boxes. */
struct fleet_subscriber {
	struct fleet_subscriber *next;
	/* ev->seq 0: the store did not take it. data is ev->data, not yet a text; or NULL. */
	void (*heard)(struct fleet_subscriber *x, const struct store_event *ev, const json_t *data);
};

/* Who keeps the accounts of programs that no request waits for. Any may be NULL. */
struct fleet_accounts {
	void *ctx;
	/* 0: no more for this team today, and out says why. Counts one. */
	int (*may_run)(void *ctx, const char *team, struct err *out);
	unsigned (*may_have)(void *ctx, const char *team); /* boxes at once */
	void (*used)(void *ctx, const char *team, uint64_t cpu_us, uint64_t output_bytes);
	/* Boxes of this team have used so much more CPU time, whether a program has ended or not. */
	void (*computed)(void *ctx, const char *team, uint64_t cpu_us);
};

struct fleet_team { /* one that has asked for something since the start; kept until the end */
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
	char boot[64];
	int looked_at_clock;
	struct box *slots[FLEET_SLOTS];
	struct box *making; /* have no id yet, hence no slot */
	struct fleet_team *teams[FLEET_TEAM_SLOTS];
	unsigned count;
	unsigned ending; /* of them: told to the keeper, not yet gone */
	struct fleet_figures figures;
	struct fleet_subscriber *ears;
	struct install *installs;     /* packages.c: under way */
	struct keeper_call *dropping; /* a layer, to make room */
	char dropped[STORE_HASH + 1];
	unsigned drop_skip;
	struct run_writer run_writer;
	struct history history;
	struct fleet_accounts accounts;
	struct execution *executions; /* under way; their boxes count together */
	struct {
		int folder;
		uint64_t team_bytes;      /* 0: no end */
	} snaps;                          /* snap.c */
	struct compile_caches *artefacts; /* what compilers have made; NULL: nothing is kept */
	unsigned restoring;
	struct timer patience; /* we serve at the latest then */
	int ready;
	int alone;                         /* no other front looks after the same boxes */
	void (*on_ready)(struct fleet *f); /* everything that lived is in its berth again */
	void (*on_pause)(struct fleet *f,
			 struct box *b);      /* nobody hears from it now; may be NULL */
	void (*need_keeper)(struct fleet *f); /* bring a connection: fleet_keeper() */
	void *user;
};

void fleet_init(struct fleet *f, struct loop *l, struct store *s, const struct fleet_conf *conf,
		const char *boot);
void fleet_keeper(struct fleet *f, int take_fd);
/* Looks after what was there before; on_ready() follows, within seconds of the keeper's
 * first word: a box that is not reached by then is still being restored. */
must_check int fleet_restore(struct fleet *f, struct err *e);
/* There may be two fronts for a while: an old one that drains beside us, or we are that one. With
 * another one beside us timeouts are read again before they are acted upon, and nobody ends what
 * the other may be about to use. When we become alone, what the other one did last is taken over. */
void fleet_set_sole_server(struct fleet *f, int alone);
void fleet_restored(struct fleet *f); /* from berth.c: one less to wait for */
void fleet_fini(struct fleet *f);     /* lets go of everything; the boxes live on */

struct box *fleet_find(const struct fleet *f, const char *id);
/* Of one team, by id, else by name; NULL: there is none. */
struct box *fleet_named(const struct fleet *f, const char *team, const char *id_or_name);
/* Perhaps one that is being made: box_await(). */
struct box *fleet_session(const struct fleet *f, const char *team, const char *session,
			  const char *template);
struct box *fleet_next(const struct fleet *f, const struct box *after); /* any order */
/* A number for a team, never 0: boxes with different ones are not forked from one interpreter. Two teams have
 * the same one by chance once in four billion pairs. */
uint32_t fleet_zygote_group(const char *team);
unsigned fleet_team_boxes(const struct fleet *f, const char *team); /* those being made, too */
/* The team's part of the loop's time; valid until fleet_fini(). "": NULL. */
struct loop_budget *fleet_budget(struct fleet *f, const char *team);

/* Tells the ears, and the store for those who were not listening. */
void fleet_emit(struct fleet *f, const char *team, const char *box, const char *type,
		json_t *take_data);
/* The same in two steps: written as part of the transaction that is open, and told when that is
 * there to stay, or never. */
struct fleet_event {
	struct store_event ev;
	json_t *data;
};
void fleet_write(struct fleet *f, const char *team, const char *box, const char *type,
		 json_t *take_data, struct fleet_event *out);
void fleet_publish(struct fleet *f, struct fleet_event *take_news);
void fleet_event_drop(struct fleet_event *take_news); /* it did not happen */
/* Calls one hook of all modules that have it. */
#define fleet_call_hooks(f, hook, ...)                                                             \
	for (const struct box_hooks *const *h_ = (f)->conf.hooks; h_ && *h_; h_++)                 \
		if ((*h_)->hook)                                                                   \
	(*h_)->hook(__VA_ARGS__)

void fleet_subscribe(struct fleet *f, struct fleet_subscriber *x);
void fleet_unsubscribe(struct fleet *f, struct fleet_subscriber *x); /* not from within heard() */
