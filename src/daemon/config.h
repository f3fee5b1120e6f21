/* config.h - the settings of Atoll: one table, four sources, and every value knows its origin.
 * Owns: the values.
 *
 * 	flags  >  ATOLL_*  >  files  >  what is built in
 *
 * Files, a nearer one over a farther one: $XDG_CONFIG_HOME/atoll/config.toml (or ~/.config),
 * then /etc/atoll/config.toml; for the command line also atoll.toml, in this folder or above it.
 * Or exactly one, with --config. An unknown name, a value of the wrong type or out of range is
 * an error with its place, in every source: a typing error must not become a default. */
#pragma once
#include "base/err.h"
#include "cli/args.h"
#include "usage/plan.h"
#include "usage/rates.h"
#include <stdint.h>

enum config_type {
	CONFIG_TEXT,
	CONFIG_PATH, /* absolute */
	CONFIG_SIZE, /* bytes */
	CONFIG_TIME, /* milliseconds */
	CONFIG_COUNT,
	CONFIG_CPUS, /* thousandths */
	CONFIG_RATE, /* 10^-12 of the currency: usage/rates.h */
	CONFIG_BOOL,
	CONFIG_CHOICE, /* one of the row's words; its number is the position in them */
	CONFIG_LIST,   /* texts */
	CONFIG_SECRET, /* a text that is never shown */
};

/* First the settings that have a flag of `atoll serve`: config_flags has the same order. */
enum config_key {
	CONFIG_LISTEN,
	CONFIG_SOCKET,
	CONFIG_STATE,
	CONFIG_USER,
	CONFIG_TLS_CERT,
	CONFIG_TLS_KEY,
	CONFIG_DOMAIN,
	CONFIG_PREVIEW_DOMAIN,
	CONFIG_ORIGINS,
	CONFIG_DRAIN,
	CONFIG_LOG_LEVEL,
	CONFIG_LOG_FORMAT,
	CONFIG_POOL,
	CONFIG_MODELS,
	CONFIG_NFLAGS,
	CONFIG_RUN = CONFIG_NFLAGS,
	CONFIG_GROUP,
	CONFIG_ON_SHUTDOWN,
	CONFIG_MAX_LIFETIME,
	CONFIG_DEFAULT_LIFETIME,
	CONFIG_DEFAULT_IDLE,
	CONFIG_RETENTION,
	CONFIG_RUN_TIME,
	CONFIG_CELL_TIME,
	CONFIG_HISTORY,
	CONFIG_HISTORY_SIZE,
	CONFIG_MAX_BODY,
	CONFIG_MAX_JSON,
	CONFIG_UPLOAD_MAX,
	CONFIG_MAX_BOXES,
	CONFIG_MAX_MEM,
	CONFIG_MAX_CPU,
	CONFIG_MAX_PIDS,
	CONFIG_MAX_DISK,
	CONFIG_MAX_FILES,
	CONFIG_MAX_CONNECTIONS,
	CONFIG_ADDRESS_CONNECTIONS,
	CONFIG_BOX_MEM,
	CONFIG_BOX_CPU,
	CONFIG_BOX_DISK,
	CONFIG_BOX_PIDS,
	CONFIG_BOX_FILES,
	CONFIG_NETWORK,
	CONFIG_SECRETS_KEY,
	CONFIG_EGRESS_ALLOW,
	CONFIG_EGRESS_DENY,
	CONFIG_EGRESS_INTERNAL,
	CONFIG_EGRESS_DNS,
	CONFIG_EGRESS_IN,
	CONFIG_EGRESS_OUT,
	CONFIG_EGRESS_QUERIES,
	CONFIG_EGRESS_CONNECTIONS,
	CONFIG_EGRESS_IDLE,
	CONFIG_EGRESS_CA,
	CONFIG_EGRESS_LINKS,
	CONFIG_EGRESS_ASK,
	CONFIG_OUTBOUND_ALLOW,
	CONFIG_TRACE_ENDPOINT,
	CONFIG_TRACE_SAMPLE,
	CONFIG_TRACE_HEADERS,
	CONFIG_ALERTS_INTERVAL,
	CONFIG_ALERTS_WEBHOOK,
	CONFIG_ALERTS_SECRET,
	CONFIG_ALERTS_MAIL_SERVER,
	CONFIG_ALERTS_MAIL_FROM,
	CONFIG_ALERTS_MAIL_TO,
	CONFIG_ALERTS_MAIL_USER,
	CONFIG_ALERTS_MAIL_PASSWORD,
	CONFIG_ALERTS_COMMAND,
	CONFIG_PIP_INDEX,
	CONFIG_NPM_REGISTRY,
	CONFIG_APT_MIRRORS,
	CONFIG_GEM_SOURCE,
	CONFIG_CARGO_INDEX,
	CONFIG_GO_PROXY,
	CONFIG_PACKAGES_HOSTS,
	CONFIG_PACKAGES_IN_BOXES,
	CONFIG_PACKAGES_MIRROR,
	CONFIG_PACKAGES_CACHE,
	CONFIG_PACKAGES_TIMEOUT,
	CONFIG_PACKAGES_PREINSTALL,
	CONFIG_TEMPLATES_BUILDS,
	CONFIG_TEMPLATES_STEP,
	CONFIG_TEMPLATES_TOTAL,
	CONFIG_TEMPLATES_READY,
	CONFIG_TEMPLATES_DISK,
	CONFIG_TEMPLATES_MEM,
	CONFIG_TEMPLATES_CPU,
	CONFIG_TEMPLATES_CACHE,
	CONFIG_TEMPLATES_UPLOAD,
	CONFIG_TEMPLATES_HOSTS,
	CONFIG_TEMPLATES_REGISTRIES,
	CONFIG_TEMPLATES_MIRROR,
	CONFIG_TEMPLATES_INSECURE,
	CONFIG_TEMPLATES_PREPARE,
	CONFIG_QUOTA_BOXES,
	CONFIG_QUOTA_EXECUTIONS,
	CONFIG_QUOTA_COMPUTE,
	CONFIG_QUOTA_OUTPUT,
	CONFIG_QUOTA_REQUESTS,
	CONFIG_BATCH_JOBS,
	CONFIG_BATCH_BYTES,
	CONFIG_BATCH_KEEP,
	CONFIG_QUOTA_BATCH,
	CONFIG_PIPELINE_KEEP,
	CONFIG_PIPELINE_MEMORY,
	CONFIG_QUOTA_SNAPSHOTS,
	CONFIG_QUOTA_CHECKPOINTS,
	CONFIG_CHECKPOINTS_PER_BOX,
	CONFIG_CHECKPOINT_WAIT,
	CONFIG_CURRENCY,
	CONFIG_RATES, /* one for each rate, in the order of enum rate */
	CONFIG_RATE_CPU = CONFIG_RATES,
	CONFIG_RATE_MEMORY,
	CONFIG_RATE_DISK,
	CONFIG_RATE_NETWORK,
	CONFIG_RATE_GPU,
	CONFIG_RATE_TOKENS_IN,
	CONFIG_RATE_TOKENS_OUT,
	CONFIG_ISOLATION, /* the minimum of each label, in the order of enum choose_trust */
	CONFIG_ISOLATION_TRUSTED = CONFIG_ISOLATION,
	CONFIG_ISOLATION_GENERATED,
	CONFIG_ISOLATION_UNTRUSTED,
	CONFIG_ISOLATION_HOSTILE,
	CONFIG_ISOLATION_PROCESS,
	CONFIG_ISOLATION_EMULATION,
	CONFIG_ISOLATION_PREFER,
	CONFIG_ISOLATION_PROVE,
	CONFIG_OIDC_ISSUER,
	CONFIG_OIDC_JWKS,
	CONFIG_OIDC_AUDIENCE,
	CONFIG_OIDC_TEAM_CLAIM,
	CONFIG_OIDC_ROLE_CLAIM,
	CONFIG_METRICS_PUBLIC,
	CONFIG_E2B_INTERNET,
	CONFIG_E2B_INSECURE,
	CONFIG_MCP_APPROVE,
	CONFIG_CLUSTER_ROLE, /* enum cluster_role */
	CONFIG_CLUSTER_NAME,
	CONFIG_CLUSTER_GATEWAYS,
	CONFIG_CLUSTER_LISTEN,
	CONFIG_CLUSTER_DATABASE,
	CONFIG_CLUSTER_ETCD,
	CONFIG_CLUSTER_OBJECTS,
	CONFIG_CLUSTER_SECRETS,
	CONFIG_CLUSTER_PLACEMENT,
	CONFIG_CLUSTER_LABELS,
	CONFIG_CLUSTER_FORGET_AFTER,
	CONFIG_CLUSTER_NODES_MIN,
	CONFIG_CLUSTER_NODE_BOOT,
	CONFIG_HOST,
	CONFIG_KEY,
	CONFIG_KEY_FILE,
	CONFIG_NKEYS,
};

struct config_row {
	const char *name; /* "serve.listen", as in a file */
	enum config_type type;
	const char *otherwise; /* the default, as it would be written; NULL: none */
	const char *env;
	const char *flag, *metavar; /* of `atoll serve`, or NULL */
	const char *help;
	uint64_t lowest, highest; /* of a number; lowest 0: "none" may be written, and is 0 */
	const char *const *words; /* CHOICE: NULL-terminated */
	int (*check)(const char *text, struct err *e); /* of a text, or of each in a list */
	unsigned reload : 1;  /* taken over by SIGHUP; else only by a restart */
	unsigned project : 1; /* atoll.toml may say it */
};
extern const struct config_row config_rows[CONFIG_NKEYS];
/* One flag per row that has one, and --config, for the command `serve`. main() calls
 * config_init_flags() to fill it before anything is parsed. */
enum { CONFIG_FLAG_FILE = CONFIG_NFLAGS, CONFIG_FLAGS };
extern struct flag config_flags[CONFIG_FLAGS];
void config_init_flags(void);

enum config_from { FROM_DEFAULT, FROM_FILE, FROM_ENV, FROM_FLAG };

struct config_value {
	char *text; /* as it was written, lists with commas; NULL: none */
	uint64_t number;
	char **items; /* LIST: NULL-terminated, never NULL itself */
	enum config_from from;
	char *where; /* "/etc/atoll/config.toml:12", "ATOLL_LISTEN", "--listen", "default" */
};

struct config {
	struct config_value values[CONFIG_NKEYS];
	struct plan *plans; /* [plan.NAME] */
	unsigned nplans;
	char *files[4]; /* files that were read, nearest last */
	unsigned nfiles;
};

struct config_given { /* by a flag */
	enum config_key key;
	const char *text;
};

struct config_source {
	const char *file;        /* exactly this one; NULL: the usual places */
	int client;              /* atoll.toml, too */
	int no_env;              /* only this file: no other file is read */
	const char *cwd;         /* where to search for atoll.toml; NULL: the working folder */
	const char *system_file; /* NULL: /etc/atoll/config.toml */
	const struct config_given *given;
	unsigned ngiven;
};

/* On -1 c is empty. */
must_check int config_load(struct config *c, const struct config_source *src, struct err *e);
void config_fini(struct config *c); /* fine on a zeroed one */

const char *config_text(const struct config *c, enum config_key key); /* NULL: none */
uint64_t config_number(const struct config *c, enum config_key key);  /* 0: none; see the type */
int config_bool(const struct config *c, enum config_key key);
const char *const *config_list(const struct config *c, enum config_key key);

/* As it may be shown: a secret keeps its first letters only. "" for none. */
#define CONFIG_SHOWN 512
const char *config_shown(const struct config *c, enum config_key key, char out[CONFIG_SHOWN]);

int config_find(const char *name);            /* the key, or -1 */
const char *config_nearest(const char *name); /* the most similar name, or NULL */
/* A settings file with every row as a comment: its default, its help. */
struct buf;
void config_print_example(struct buf *out);
/* The settings among the flags of a command that begins with config_flags. */
unsigned config_from_args(const struct args *a, struct config_given *out, unsigned room);
