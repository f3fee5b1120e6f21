/* definitions.c - see definitions.h. */
#include "metrics/definitions.h"

#include <string.h>

static const char *const outcomes[] = {
	"ok", "error", "timeout", "limit", "stopped", "host", NULL
};
static const char *const results[] = { "failed", "ok", NULL };
static const char *const exit_codes[] = { "0", "1", "2", "126", "127", "other", NULL };
static const char *const starts[] = { "cold", "pooled", "warm", NULL };
static const char *const directions[] = { "in", "out", NULL };
static const char *const token_kinds[] = { "in", "out", "cache_read", "cache_write", NULL };
static const char *const classes[] = { "1xx", "2xx", "3xx", "4xx", "5xx", NULL };
static const char *const quotas[] = { "boxes",   "requests", "executions", "output",
				      "compute", "budget",   NULL };
static const char *const processes[] = { "server", "keeper", NULL };
static const char *const proof_results[] = { "passed", "failed", "error", NULL };
static const char *const tunnel_states[] = { "up", "unreachable", NULL };
static const char *const node_states[] = { "up", "unreachable", "lost", "gone", NULL };
static const char *const tunnel_results[] = { "accepted", "rejected", "error",
					      "opened",   "failed",   NULL };
static const char *const link_uses[] = { "idle", "busy", NULL };
static const char *const heartbeat_kinds[] = { "received", "sent", "acknowledged", NULL };
static const char *const span_results[] = { "sent", "dropped", "failed", NULL };

#define LANGUAGE                                                                                   \
	{                                                                                          \
		"language", NULL, 32                                                               \
	}
#define CAUSE                                                                                      \
	{                                                                                          \
		"cause", NULL, 16                                                                  \
	}
#define MODEL                                                                                      \
	{                                                                                          \
		"model", NULL, 32                                                                  \
	}

const struct metric_def metric_defs[METRIC_COUNT] = {
	/* clang-format off */
	[METRIC_EXECUTIONS] = { "executions_total", METRIC_COUNTER, "", "Execs that ended, by language and outcome: ok is exit status 0, error another exit status or a signal, timeout the time or CPU limit, limit that of memory, disk or processes, stopped by a client or with its box, host an error of Atoll.", { LANGUAGE, { "outcome", outcomes, 0 } }, 0 },
	[METRIC_RUNS_STARTED] = { "runs_started_total", METRIC_COUNTER, "", "Execs started.", { { 0 } }, 0 },
	[METRIC_RUNS_ENDED] = { "runs_ended_total", METRIC_COUNTER, "", "Execs that ended, by cause.", { CAUSE }, 0 },
	[METRIC_RUNS_EXIT] = { "runs_exit_total", METRIC_COUNTER, "", "Execs that exited, by exit status.", { { "code", exit_codes, 0 } }, 0 },
	[METRIC_RUNS_LANGUAGE] = { "runs_language_total", METRIC_COUNTER, "", "Execs that ended, by language; result is ok if the exit status was 0.", { LANGUAGE, { "result", results, 0 } }, 0 },
	[METRIC_RUN_SECONDS] = { "run_seconds", METRIC_HISTOGRAM, "seconds", "Wall time of execs.", { { 0 } }, 0 },
	[METRIC_RUN_CPU_SECONDS] = { "run_cpu_seconds", METRIC_HISTOGRAM, "seconds", "CPU time of execs.", { { 0 } }, 0 },
	[METRIC_RUN_MEMORY_BYTES] = { "run_memory_bytes", METRIC_HISTOGRAM, "bytes", "Peak memory of the box of an exec.", { { 0 } }, 0 },
	[METRIC_OUTPUT_BYTES] = { "output_bytes_total", METRIC_COUNTER, "bytes", "Output bytes of execs.", { { 0 } }, 0 },
	[METRIC_STDIN_BYTES] = { "stdin_bytes_total", METRIC_COUNTER, "bytes", "Stdin bytes sent to execs.", { { 0 } }, 0 },
	[METRIC_CPU_SECONDS] = { "cpu_seconds_total", METRIC_COUNTER, "seconds", "CPU time of all boxes.", { { 0 } }, 0 },
	[METRIC_COST] = { "cost_total", METRIC_COUNTER, "", "Charges of all teams, in the currency of the rates; 0 without rates.", { { 0 } }, 0 },
	[METRIC_BOXES] = { "boxes", METRIC_GAUGE, "", "Boxes that exist.", { { 0 } }, 0 },
	[METRIC_BOXES_CREATED] = { "boxes_created_total", METRIC_COUNTER, "", "Boxes created.", { { 0 } }, 0 },
	[METRIC_TEMPLATE_BOXES_CREATED] = { "template_boxes_created_total", METRIC_COUNTER, "", "Boxes created, by template.", { { "template", NULL, 32 } }, 0 },
	[METRIC_BOX_CREATE_FAILURES] = { "box_create_failures_total", METRIC_COUNTER, "", "Boxes that could not be created.", { { 0 } }, 0 },
	[METRIC_BOXES_ENDED] = { "boxes_ended_total", METRIC_COUNTER, "", "Boxes that ended, by cause.", { CAUSE }, 0 },
	[METRIC_BOX_CREATE_SECONDS] = { "box_create_seconds", METRIC_HISTOGRAM, "seconds", "Time from the request for a box to its creation.", { { 0 } }, 0 },
	[METRIC_BOX_STARTS] = { "box_starts_total", METRIC_COUNTER, "", "Boxes created: warm with a waiting interpreter, pooled without one, cold if the box was made for the request.", { { "start", starts, 0 } }, 0 },
	[METRIC_BOX_START_SECONDS] = { "box_start_seconds", METRIC_HISTOGRAM, "seconds", "Time from the request for a box to its creation, by start as in atoll_box_starts_total.", { { "start", starts, 0 } }, 0 },
	[METRIC_NETWORK_BYTES] = { "network_bytes_total", METRIC_COUNTER, "bytes", "Bytes that boxes received and sent through egress.", { { "direction", directions, 0 } }, 0 },
	[METRIC_NETWORK_REFUSED] = { "network_refused_total", METRIC_COUNTER, "", "Connections of boxes that were refused.", { { 0 } }, 0 },
	[METRIC_PACKAGE_INSTALLS] = { "package_installs_total", METRIC_COUNTER, "", "Installations of package sets that ended, by package manager.", { { "manager", NULL, 8 }, { "result", results, 0 } }, 0 },
	[METRIC_PACKAGE_INSTALL_SECONDS] = { "package_install_seconds", METRIC_HISTOGRAM, "seconds", "Time of installations of package sets.", { { 0 } }, 0 },
	[METRIC_QUOTA_REFUSALS] = { "quota_refusals_total", METRIC_COUNTER, "", "Requests that were refused because a quota or a budget was used up.", { { "quota", quotas, 0 } }, 0 },
	[METRIC_BATCHES] = { "batches", METRIC_GAUGE, "", "Batches that have not ended.", { { 0 } }, 0 },
	[METRIC_BATCH_FLYING] = { "batch_flying", METRIC_GAUGE, "", "Batch items that are running.", { { 0 } }, 0 },
	[METRIC_BATCH_RESULTS] = { "batch_results_total", METRIC_COUNTER, "", "Finished batch items, by verdict.", { { "verdict", NULL, 16 } }, 0 },
	[METRIC_PIPELINES] = { "pipelines", METRIC_GAUGE, "", "Pipelines that are running in this server.", { { 0 } }, 0 },
	[METRIC_PIPELINE_RUNS] = { "pipeline_runs_total", METRIC_COUNTER, "", "Pipelines that ended, by outcome.", { { "outcome", NULL, 16 } }, 0 },
	[METRIC_PIPELINE_ATTEMPTS] = { "pipeline_attempts_total", METRIC_COUNTER, "", "Artifacts that pipelines have run.", { { 0 } }, 0 },
	[METRIC_PIPELINE_RETRIES] = { "pipeline_retries_total", METRIC_COUNTER, "", "Pipeline attempts after the first one.", { { 0 } }, 0 },
	[METRIC_PIPELINE_OVERFIT] = { "pipeline_overfit_total", METRIC_COUNTER, "", "Pipelines with a program that passed the shown examples and failed a held-out example.", { { 0 } }, 0 },
	[METRIC_PIPELINE_FAILURES] = { "pipeline_failures_total", METRIC_COUNTER, "", "Failed runs that pipelines diagnosed, by category (docs/errors.md).", { { "category", NULL, 64 } }, 0 },
	[METRIC_PIPELINE_SECONDS] = { "pipeline_seconds", METRIC_HISTOGRAM, "seconds", "Time from a task to its report.", { { 0 } }, 0 },
	[METRIC_PIPELINE_PLANNER_SECONDS] = { "pipeline_planner_seconds", METRIC_HISTOGRAM, "seconds", "Time of this pipeline stage.", { { 0 } }, 0 },
	[METRIC_PIPELINE_CODER_SECONDS] = { "pipeline_coder_seconds", METRIC_HISTOGRAM, "seconds", "Time of this pipeline stage.", { { 0 } }, 0 },
	[METRIC_PIPELINE_EXECUTOR_SECONDS] = { "pipeline_executor_seconds", METRIC_HISTOGRAM, "seconds", "Time of this pipeline stage.", { { 0 } }, 0 },
	[METRIC_PIPELINE_DEBUGGER_SECONDS] = { "pipeline_debugger_seconds", METRIC_HISTOGRAM, "seconds", "Time of this pipeline stage.", { { 0 } }, 0 },
	[METRIC_MODEL_QUESTIONS] = { "model_questions_total", METRIC_COUNTER, "", "Requests to language models.", { MODEL }, 0 },
	[METRIC_MODEL_FAILURES] = { "model_failures_total", METRIC_COUNTER, "", "Requests to language models that failed.", { MODEL }, 0 },
	[METRIC_MODEL_CALLS] = { "model_calls_total", METRIC_COUNTER, "", "HTTP requests to model providers, including retries.", { MODEL }, 0 },
	[METRIC_MODEL_COST] = { "model_cost_total", METRIC_COUNTER, "", "Cost of the requests, in the currency of the configured prices.", { MODEL }, 0 },
	[METRIC_MODEL_TOKENS] = { "model_tokens_total", METRIC_COUNTER, "", "Tokens by kind; kind in excludes tokens from a cache.", { MODEL, { "kind", token_kinds, 0 } }, 0 },
	[METRIC_MODEL_CACHE_RATIO] = { "model_cache_ratio", METRIC_GAUGE, "ratio", "Part of the input tokens that was read from a cache.", { MODEL }, METRIC_LEAST },
	[METRIC_REQUEST_SECONDS] = { "request_seconds", METRIC_HISTOGRAM, "seconds", "Time from the first byte of a request to the end of its answer.", { { 0 } }, METRIC_LOCAL },
	[METRIC_HTTP_RESPONSES] = { "http_responses_total", METRIC_COUNTER, "", "HTTP responses, by class of the status.", { { "class", classes, 0 } }, METRIC_LOCAL },
	[METRIC_HTTP_CONNECTIONS] = { "http_connections", METRIC_GAUGE, "", "Open HTTP connections.", { { 0 } }, METRIC_LOCAL },
	[METRIC_HTTP_ACCEPTED] = { "http_accepted_total", METRIC_COUNTER, "", "Accepted HTTP connections.", { { 0 } }, METRIC_LOCAL },
	[METRIC_HTTP_EVICTED] = { "http_evicted_total", METRIC_COUNTER, "", "Idle HTTP connections that were closed to make room for new ones.", { { 0 } }, METRIC_LOCAL },
	[METRIC_HTTP_BAD_REQUESTS] = { "http_bad_requests_total", METRIC_COUNTER, "", "Requests that were not valid HTTP.", { { 0 } }, METRIC_LOCAL },
	[METRIC_HTTP_RECEIVED_BYTES] = { "http_received_bytes_total", METRIC_COUNTER, "bytes", "Bytes received over HTTP.", { { 0 } }, METRIC_LOCAL },
	[METRIC_HTTP_SENT_BYTES] = { "http_sent_bytes_total", METRIC_COUNTER, "bytes", "Bytes sent over HTTP.", { { 0 } }, METRIC_LOCAL },
	[METRIC_AUTH_FAILURES] = { "auth_failures_total", METRIC_COUNTER, "", "Requests with a wrong key, token or signature.", { { 0 } }, METRIC_LOCAL },
	[METRIC_AUTH_SLOWED] = { "auth_slowed_total", METRIC_COUNTER, "", "Requests that were answered with 429 because their address had too many authentication failures.", { { 0 } }, METRIC_LOCAL },
	[METRIC_KEEPER_UP] = { "keeper_up", METRIC_GAUGE, "", "1 if the server is connected to a keeper, otherwise 0.", { { 0 } }, METRIC_LEAST },
	[METRIC_KEEPER_RECONNECTS] = { "keeper_reconnects_total", METRIC_COUNTER, "", "Lost connections to the keeper.", { { 0 } }, 0 },
	[METRIC_KEEPER_QUEUE] = { "keeper_queue", METRIC_GAUGE, "", "Requests to the keeper that wait for an answer.", { { 0 } }, 0 },
	[METRIC_KEEPER_MAKING] = { "keeper_making", METRIC_GAUGE, "", "Boxes that the keeper is creating.", { { 0 } }, 0 },
	[METRIC_KEEPER_BOXES] = { "keeper_boxes", METRIC_GAUGE, "", "Boxes of the keeper, including those of other clients.", { { 0 } }, 0 },
	[METRIC_POOL_HITS] = { "pool_hits_total", METRIC_COUNTER, "", "Boxes that were taken from the pool.", { { 0 } }, METRIC_OUTSIDE },
	[METRIC_POOL_MISSES] = { "pool_misses_total", METRIC_COUNTER, "", "Boxes that were not in the pool and had to be created.", { { 0 } }, METRIC_OUTSIDE },
	[METRIC_POOL_BOXES] = { "pool_boxes", METRIC_GAUGE, "", "Boxes that wait in the pool.", { { 0 } }, 0 },
	[METRIC_POOL_DEPTH] = { "pool_depth", METRIC_GAUGE, "", "Boxes that the pool should have.", { { 0 } }, 0 },
	[METRIC_HOST_MEMORY_USED_BYTES] = { "host_memory_used_bytes", METRIC_GAUGE, "bytes", "Memory of the machine that is in use.", { { 0 } }, 0 },
	[METRIC_HOST_MEMORY_TOTAL_BYTES] = { "host_memory_total_bytes", METRIC_GAUGE, "bytes", "Memory of the machine.", { { 0 } }, 0 },
	[METRIC_HOST_DISK_USED_BYTES] = { "host_disk_used_bytes", METRIC_GAUGE, "bytes", "Used bytes of the file system with the state folder.", { { 0 } }, 0 },
	[METRIC_HOST_DISK_TOTAL_BYTES] = { "host_disk_total_bytes", METRIC_GAUGE, "bytes", "Size of the file system with the state folder.", { { 0 } }, 0 },
	[METRIC_HOST_DISK_FREE_RATIO] = { "host_disk_free_ratio", METRIC_GAUGE, "ratio", "Free part of the file system with the state folder.", { { 0 } }, METRIC_LEAST },
	[METRIC_HOST_CPU_SECONDS] = { "host_cpu_seconds_total", METRIC_COUNTER, "seconds", "CPU time of all processes of the machine.", { { 0 } }, METRIC_OUTSIDE },
	[METRIC_HOST_LOAD] = { "host_load", METRIC_GAUGE, "", "Load average of the last minute.", { { 0 } }, 0 },
	[METRIC_SERVER_RESIDENT_BYTES] = { "server_resident_bytes", METRIC_GAUGE, "bytes", "Resident memory of the server process.", { { 0 } }, METRIC_LOCAL },
	[METRIC_FRONT_RESIDENT_BYTES] = { "front_resident_bytes", METRIC_GAUGE, "bytes", "Deprecated name of atoll_server_resident_bytes.", { { 0 } }, METRIC_DEPRECATED | METRIC_LOCAL },
	[METRIC_STORE_ERRORS] = { "store_errors_total", METRIC_COUNTER, "", "Failed reads and writes of the database.", { { 0 } }, 0 },
	[METRIC_LOG_LINES_LOST] = { "log_lines_lost_total", METRIC_COUNTER, "", "Log lines that were dropped because the log was not read.", { { 0 } }, 0 },
	[METRIC_HISTORY_REMOVED] = { "history_removed_total", METRIC_COUNTER, "", "Rows of runs, boxes, idempotency keys and the audit log that were deleted because of their age or number.", { { 0 } }, 0 },
	[METRIC_TRACE_SPANS] = { "trace_spans_total", METRIC_COUNTER, "", "Sampled spans: sent to the collector, dropped because the queue was full, or failed because the collector did not accept them.", { { "result", span_results, 0 } }, 0 },
	[METRIC_PROCESS_RESTARTS] = { "process_restarts_total", METRIC_COUNTER, "", "Processes of the daemon that ended and were started again: the server itself, and the keeper.", { { "process", processes, 0 } }, 0 },
	[METRIC_CERTIFICATE_SECONDS] = { "certificate_seconds", METRIC_GAUGE, "seconds", "Time until the TLS certificate of the server expires.", { { 0 } }, METRIC_LEAST },
	[METRIC_SUSPECT_BOXES] = { "suspect_boxes", METRIC_GAUGE, "", "Boxes that have used all of their CPU for ten minutes, with hardly any output.", { { 0 } }, 0 },
	[METRIC_TIER_PROVEN] = { "tier_proven", METRIC_GAUGE, "", "1: the isolation tier has a valid proof; 0: it has none.", { { "tier", NULL, 8 } }, METRIC_LEAST },
	[METRIC_TIER_PROOFS] = { "tier_proofs_total", METRIC_COUNTER, "", "Proofs of isolation tiers that this server has requested, by tier and result: passed, failed, error.", { { "tier", NULL, 8 }, { "result", proof_results, 0 } }, 0 },
	[METRIC_TIER_WITHDRAWN] = { "tier_withdrawn_total", METRIC_COUNTER, "", "Times that an isolation tier lost its valid proof.", { { "tier", NULL, 8 } }, 0 },
	[METRIC_CLUSTER_NODES] = { "cluster_nodes", METRIC_GAUGE, "", "Nodes of the cluster, by state, as this gateway sees them.", { { "state", node_states, 0 } }, METRIC_LOCAL },
	[METRIC_CLUSTER_GATEWAYS] = { "cluster_gateways", METRIC_GAUGE, "", "Gateways of this node, by state of the tunnel.", { { "state", tunnel_states, 0 } }, METRIC_LOCAL },
	[METRIC_CLUSTER_TUNNELS] = { "cluster_tunnels_total", METRIC_COUNTER, "", "Connections of tunnels. On a gateway: accepted, rejected, closed because of an error of the node; on a node: opened, failed.", { { "result", tunnel_results, 0 } }, METRIC_LOCAL },
	[METRIC_CLUSTER_LINKS] = { "cluster_links", METRIC_GAUGE, "", "Request connections of tunnels, by use.", { { "use", link_uses, 0 } }, METRIC_LOCAL },
	[METRIC_CLUSTER_WAITING] = { "cluster_waiting", METRIC_GAUGE, "", "Requests that wait for a connection to a node.", { { 0 } }, METRIC_LOCAL },
	[METRIC_CLUSTER_HEARTBEATS] = { "cluster_heartbeats_total", METRIC_COUNTER, "", "Heartbeats of tunnels: received by a gateway, sent by a node, acknowledged.", { { "kind", heartbeat_kinds, 0 } }, METRIC_LOCAL },
	[METRIC_CLUSTER_LEASE] = { "cluster_lease", METRIC_GAUGE, "", "1: this machine has a lease (a gateway: of the coordinator; a node: of a gateway); 0: it has none.", { { 0 } }, METRIC_LOCAL },
	[METRIC_CLUSTER_LOST] = { "cluster_lost_total", METRIC_COUNTER, "", "Nodes that this gateway has declared lost.", { { 0 } }, METRIC_LOCAL },
	[METRIC_NODES_WANTED] = { "nodes_wanted", METRIC_GAUGE, "", "Nodes that the load needs, as GET /v1/scale says.", { { 0 } }, METRIC_LOCAL },
	[METRIC_NODES_READY] = { "nodes_ready", METRIC_GAUGE, "", "Nodes that are connected to this gateway and take boxes.", { { 0 } }, METRIC_LOCAL },
	[METRIC_NODE_LOAD] = { "node_load_ratio", METRIC_GAUGE, "ratio", "Part of the capacity of a node that is in use: the largest of memory, processors and boxes.", { { "node", NULL, 64 } }, METRIC_LOCAL },
	[METRIC_NODE_BOXES] = { "node_boxes", METRIC_GAUGE, "", "Boxes of a node.", { { "node", NULL, 64 } }, METRIC_LOCAL },
	[METRIC_NODE_MEMORY_FREE] = { "node_memory_free_bytes", METRIC_GAUGE, "bytes", "Memory of a node that is not in use.", { { "node", NULL, 64 } }, METRIC_LOCAL },
	/* clang-format on */
};

const struct metric_def *metric_find(const char *name)
{
	if (!strncmp(name, "atoll_", 6))
		name += 6;
	for (unsigned i = 0; i < METRIC_COUNT; i++)
		if (!strcmp(metric_defs[i].name, name))
			return &metric_defs[i];
	return NULL;
}

enum metric_id metric_id(const struct metric_def *d)
{
	return (enum metric_id)(d - metric_defs);
}

unsigned metric_nlabels(const struct metric_def *d)
{
	unsigned n = 0;

	while (n < METRIC_LABELS && d->labels[n].name)
		n++;
	return n;
}

int metric_label_index(const struct metric_def *d, const char *label)
{
	for (unsigned i = 0; i < metric_nlabels(d); i++)
		if (!strcmp(d->labels[i].name, label))
			return (int)i;
	return -1;
}

int metric_label_has(const struct metric_label *l, const char *value)
{
	for (const char *const *v = l->values; v && *v; v++)
		if (!strcmp(*v, value))
			return 1;
	return !l->values;
}
