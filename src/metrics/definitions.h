/* definitions.h - the table of figures: the only place that names them.
 *
 * /metrics, GET /v1/stats, GET /v1/stats/series, `atoll stats`, the web UI and alert rules read this
 * table. Adding a figure: a row here, and metrics_put() in the source that knows its value. */
#pragma once

enum metric_id {
	METRIC_EXECUTIONS,
	METRIC_RUNS_STARTED,
	METRIC_RUNS_ENDED,
	METRIC_RUNS_EXIT,
	METRIC_RUNS_LANGUAGE,
	METRIC_RUN_SECONDS,
	METRIC_RUN_CPU_SECONDS,
	METRIC_RUN_MEMORY_BYTES,
	METRIC_OUTPUT_BYTES,
	METRIC_STDIN_BYTES,
	METRIC_CPU_SECONDS,
	METRIC_COST,
	METRIC_BOXES,
	METRIC_BOXES_CREATED,
	METRIC_TEMPLATE_BOXES_CREATED,
	METRIC_BOX_CREATE_FAILURES,
	METRIC_BOXES_ENDED,
	METRIC_BOX_CREATE_SECONDS,
	METRIC_BOX_STARTS,
	METRIC_BOX_START_SECONDS,
	METRIC_NETWORK_BYTES,
	METRIC_NETWORK_REFUSED,
	METRIC_PACKAGE_INSTALLS,
	METRIC_PACKAGE_INSTALL_SECONDS,
	METRIC_QUOTA_REFUSALS,
	METRIC_BATCHES,
	METRIC_BATCH_FLYING,
	METRIC_BATCH_RESULTS,
	METRIC_PIPELINES,
	METRIC_PIPELINE_RUNS,
	METRIC_PIPELINE_ATTEMPTS,
	METRIC_PIPELINE_RETRIES,
	METRIC_PIPELINE_OVERFIT,
	METRIC_PIPELINE_FAILURES,
	METRIC_PIPELINE_SECONDS,
	METRIC_PIPELINE_PLANNER_SECONDS, /* the stages, in the order of the store */
	METRIC_PIPELINE_CODER_SECONDS,
	METRIC_PIPELINE_EXECUTOR_SECONDS,
	METRIC_PIPELINE_DEBUGGER_SECONDS,
	METRIC_MODEL_QUESTIONS,
	METRIC_MODEL_FAILURES,
	METRIC_MODEL_CALLS,
	METRIC_MODEL_COST,
	METRIC_MODEL_TOKENS,
	METRIC_MODEL_CACHE_RATIO,
	METRIC_REQUEST_SECONDS,
	METRIC_HTTP_RESPONSES,
	METRIC_HTTP_CONNECTIONS,
	METRIC_HTTP_ACCEPTED,
	METRIC_HTTP_EVICTED,
	METRIC_HTTP_BAD_REQUESTS,
	METRIC_HTTP_RECEIVED_BYTES,
	METRIC_HTTP_SENT_BYTES,
	METRIC_AUTH_FAILURES,
	METRIC_AUTH_SLOWED,
	METRIC_KEEPER_UP,
	METRIC_KEEPER_RECONNECTS,
	METRIC_KEEPER_QUEUE,
	METRIC_KEEPER_MAKING,
	METRIC_KEEPER_BOXES,
	METRIC_POOL_HITS,
	METRIC_POOL_MISSES,
	METRIC_POOL_BOXES,
	METRIC_POOL_DEPTH,
	METRIC_HOST_MEMORY_USED_BYTES,
	METRIC_HOST_MEMORY_TOTAL_BYTES,
	METRIC_HOST_DISK_USED_BYTES,
	METRIC_HOST_DISK_TOTAL_BYTES,
	METRIC_HOST_DISK_FREE_RATIO,
	METRIC_HOST_CPU_SECONDS,
	METRIC_HOST_LOAD,
	METRIC_SERVER_RESIDENT_BYTES,
	METRIC_FRONT_RESIDENT_BYTES,
	METRIC_STORE_ERRORS,
	METRIC_LOG_LINES_LOST,
	METRIC_HISTORY_REMOVED,
	METRIC_TRACE_SPANS,
	METRIC_PROCESS_RESTARTS,
	METRIC_CERTIFICATE_SECONDS,
	METRIC_SUSPECT_BOXES,
	METRIC_TIER_PROVEN,
	METRIC_TIER_PROOFS,
	METRIC_TIER_WITHDRAWN,
	METRIC_CLUSTER_NODES,
	METRIC_CLUSTER_GATEWAYS,
	METRIC_CLUSTER_TUNNELS,
	METRIC_CLUSTER_LINKS,
	METRIC_CLUSTER_WAITING,
	METRIC_CLUSTER_HEARTBEATS,
	METRIC_CLUSTER_LEASE,
	METRIC_CLUSTER_LOST,
	METRIC_NODES_WANTED,
	METRIC_NODES_READY,
	METRIC_NODE_LOAD,
	METRIC_NODE_BOXES,
	METRIC_NODE_MEMORY_FREE,
	METRIC_COUNT,
};

enum metric_type { METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM };
enum metric_flags {
	/* Counted by another process, which may have counted before this server started: the first
	 * value is not an increase. */
	METRIC_OUTSIDE = 1,
	METRIC_DEPRECATED = 2, /* only in /metrics */
	/* A gateway shows the sum of its nodes and itself, but for these: its own value only; the least of all. */
	METRIC_LOCAL = 4,
	METRIC_LEAST = 8,
};
enum {
	METRIC_LABELS = 2, /* of one figure, at most */
	METRIC_LABEL = 129 /* bytes of a value; a longer one is cut */
};

struct metric_label {
	const char *name;          /* NULL: no such label */
	const char *const *values; /* NULL-terminated; another value counts as "other". NULL: the
				    * first `most` values that occur, and "other" */
	unsigned most;
};

struct metric_def {
	const char *name; /* without "atoll_"; that of a counter ends in _total */
	enum metric_type type;
	const char *unit; /* "seconds", "bytes", "ratio"; "": a number */
	const char *help;
	struct metric_label labels[METRIC_LABELS];
	unsigned flags;
};

extern const struct metric_def metric_defs[METRIC_COUNT];

/* By its name, also with "atoll_" before it; NULL: none. */
const struct metric_def *metric_find(const char *name);
enum metric_id metric_id(const struct metric_def *d);
unsigned metric_nlabels(const struct metric_def *d);
/* Index of a label; -1: the figure has no such label. */
int metric_label_index(const struct metric_def *d, const char *label);
/* 1: sources may use this value. It is always so for a label without a list of values. */
int metric_label_has(const struct metric_label *l, const char *value);
