/* server_cluster.c - see server_cluster.h. */
#include "daemon/server_cluster.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "cluster/certificates.h"
#include "cluster/object_client.h"
#include "cluster/tunnel.h"
#include "cluster/tunnel_node.h"
#include "coordinator/cluster_client.h"
#include "coordinator/connector.h"
#include "daemon/gateway_certificate.h"
#include "daemon/node_certificate.h"
#include "daemon/node_figures.h"
#include "daemon/node_rows.h"
#include "daemon/node_leases.h"
#include "daemon/node_number.h"
#include "gateway/accounts.h"
#include "gateway/bring.h"
#include "gateway/copies.h"
#include "gateway/deletions.h"
#include "gateway/directory.h"
#include "gateway/gateway.h"
#include "gateway/join.h"
#include "gateway/leases.h"
#include "gateway/merged_figures.h"
#include "gateway/names.h"
#include "gateway/nodes.h"
#include "gateway/objects.h"
#include "gateway/renewals.h"
#include "gateway/shared_rows.h"
#include "gateway/grants.h"
#include "gateway/shares.h"
#include "http/tls.h"
#include "metrics/metrics.h"
#include "store/directory.h"
#include "v1ops/shared_rows.h"
#include "wire/sock.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { CLUSTER_NO_GATEWAY = 32 };

struct server_cluster {
	const struct server_start *start;
	enum cluster_role role;
	struct cluster_peer self;
	struct ssl_ctx_st *server_tls, *client_tls; /* NULL: has not joined */
	char name[CONTROL_NAME], machine[NODE_MACHINE];
	struct api *api;
	struct frame_conn *supervisor;
	struct metrics_source source;
	/* gateway */
	struct http_server http;
	int listening;
	struct tunnels *tunnels;
	struct gateway *gateway;
	struct coordinator *coordinator;
	struct gateway_leases *leases;
	struct gateway_accounts *accounts;
	struct directory *directory;
	struct node_rows *own_rows; /* of this gateway */
	struct gateway_names *names;
	struct gateway_moved *moved;
	struct gateway_copies *copies;
	struct gateway_bring *bring;
	struct gateway_objects *stored; /* of the cluster, in the object store */
	struct gateway_rows *shared_rows;
	struct deletions *deletions;
	struct gateway_shares *shares;
	struct gateway_grants *grants;
	struct merged_figures *merged;
	struct cluster_client *engines;
	struct gateway_certificate certificate;
	struct gateway_renewals *renewals;
	/* node */
	struct tunnel_client *client;
	struct node_figures *figures;
	struct node_certificate own; /* role node; a gateway has `certificate` */
	struct node_leases *node_leases;
	struct node_rows *rows; /* NULL: a gateway, too, which stores its rows itself */
	unsigned rows_gateway;  /* that gets them; CLUSTER_NO_GATEWAY: none */
	uint32_t greeted;       /* gateways that are connected: bits */
	struct frame_conn connector;
	int connector_open, stopped;
	struct ssl_ctx_st *objects_tls; /* NULL: without TLS */
	struct object_client objects;   /* used if api->objects is set */
	uint32_t dials; /* requested before the connection to that process came: bits by gateway */
};

/* ---- keys ---- */

static int cluster_load_keys(struct server_cluster *x, const char *folder, struct err *e)
{
	struct cluster_identity id = { 0 };
	int rc;

	if (cluster_identity_load(&id, folder, e) < 0)
		return -1;
	if (!cluster_is_gateway(x->role))
		node_certificate_load(&id, x->start->folder);
	rc = cluster_identity_self(&id, &x->self, e);
	x->certificate.self = x->self;
	if (rc == 0 && cluster_is_gateway(x->role))
		rc = cluster_tls_server(&id, CLUSTER_CLIENTS_JOINING, &x->server_tls, e);
	if (rc == 0 && cluster_is_node(x->role))
		rc = cluster_tls_client(&id, &x->client_tls, e);
	if (rc == 0 && cluster_is_gateway(x->role))
		x->certificate.id = id;
	else if (rc == 0)
		x->own = (struct node_certificate){ .id = id,
						    .self = x->self,
						    .folder = x->start->folder };
	else
		cluster_identity_fini(&id);
	return rc;
}

/* Before the process is confined: the list of certificate authorities is a file. */
static int cluster_load_objects(struct server_cluster *x, struct err *e)
{
	const char *url = config_text(x->start->config, CONFIG_CLUSTER_OBJECTS);

	if (!url || !cluster_is_node(x->role))
		return 0;
	if (object_store_parse(&x->objects.store, url, e) < 0)
		return -1;
	if (!x->objects.store.is_tls)
		return 0;
	return tls_client("/etc/ssl/certs/ca-certificates.crt", &x->objects_tls, e);
}

int server_cluster_load(struct server_cluster **out, const struct server_start *s, struct err *e)
{
	enum cluster_role role = (enum cluster_role)config_number(s->config, CONFIG_CLUSTER_ROLE);
	const char *name = config_text(s->config, CONFIG_CLUSTER_NAME);
	struct server_cluster *x;
	char folder[1100];
	struct err why;

	*out = NULL;
	if (role == CLUSTER_ALONE)
		return 0;
	x = calloc(1, sizeof(*x));
	if (!x)
		abort();
	x->start = s;
	x->role = role;
	if (name)
		snprintf(x->name, sizeof(x->name), "%s", name);
	else if (gethostname(x->name, sizeof(x->name) - 1) < 0) {
		free(x);
		return err_sys(e, "read the host name");
	}
	node_machine_read(config_text(s->config, CONFIG_STATE), x->machine);
	snprintf(folder, sizeof(folder), "%.1000s/cluster", config_text(s->config, CONFIG_STATE));
	if (cluster_load_keys(x, folder, &why) < 0)
		log_error("this machine has no tunnels: it has not joined a cluster", LOG_E(&why));
	else if (role == CLUSTER_GATEWAY && x->self.role != CLUSTER_GATEWAY) {
		free(x);
		return err_set(e, ERR_INVALID,
			       "cluster.role = gateway, but the certificate in %.120s is that of a "
			       "node; join as a gateway",
			       folder);
	}
	if (cluster_load_objects(x, e) < 0) {
		free(x);
		return err_in(e, "cluster.objects");
	}
	*out = x;
	return 0;
}

/* ---- a gateway ---- */

static void cluster_head(struct http_req *r)
{
	struct server_cluster *x = r->server->user;
	static const char why[] =
		"{\"error\":{\"kind\":\"not_found\",\"message\":\"this address is for "
		"nodes of the cluster; clients use serve.listen\"}}\n";

	if (strcmp(r->path, "/tunnel") == 0)
		tunnels_accept(x->tunnels, r);
	else if (strcmp(r->path, "/cluster/join") == 0 && strcmp(r->method, "POST") == 0)
		gateway_join(r, x->engines);
	else
		http_reply(r, 404, "application/json", why, sizeof(why) - 1);
}

static void cluster_ask_engines(void *user)
{
	struct server_cluster *x = user;
	struct frame ask = sock_head(WIRE_CLUSTER_ENGINES, 0);

	if (!x->stopped)
		frame_conn_send(x->supervisor, &ask, sizeof(ask), NULL, 0, -1);
}

void server_cluster_engines(struct server_cluster *x, int take_fd)
{
	if (x && x->engines)
		cluster_client_connect(x->engines, take_fd);
	else
		close(take_fd);
}

static void cluster_own_rows_kept(void *user, uint64_t last)
{
	node_rows_kept(((struct server_cluster *)user)->own_rows, last);
}

static int cluster_send_own_rows(void *user, uint64_t last, const json_t *rows)
{
	struct server_cluster *x = user;
	struct err e;

	if (directory_add_own(x->directory, x->self.number, rows, last, cluster_own_rows_kept, x,
			      &e) == 0)
		return 1;
	log_error("rows of this gateway for the directory", LOG_E(&e));
	return -1;
}

/* The rows of a gateway itself, such as its audit log, need no tunnel. */
static void cluster_init_directory(struct server_cluster *x)
{
	x->directory = directory_new(x->api->loop, x->tunnels, x->engines);
	x->own_rows = x->api->rows = node_rows_new(x->api, cluster_send_own_rows, x);
	x->api->rows_settle = node_rows_settle;
	node_rows_set_open(x->own_rows, 1);
}

static void cluster_init_names(struct server_cluster *x)
{
	struct gateway_copies_conf copies = { .loop = x->api->loop,
					      .tunnels = x->tunnels,
					      .leases = x->leases,
					      .coordinator = x->coordinator,
					      .engines = x->engines };

	x->gateway->names = x->names = gateway_names_new(x->api->loop, x->coordinator);
	copies.moved = x->gateway->moved = x->moved = gateway_moved_new(x->api->loop, x->engines);
	x->gateway->copies = x->copies = gateway_copies_new(&copies);
	x->deletions = deletions_new(&(struct deletions_conf){ .loop = x->api->loop,
							       .tunnels = x->tunnels,
							       .engines = x->engines,
							       .moved = x->moved });
}

static int cluster_rows_are_fresh(void *user)
{
	return gateway_accounts_are_fresh(((struct server_cluster *)user)->accounts);
}

static void cluster_init_rows(struct server_cluster *x)
{
	x->shared_rows =
		gateway_rows_new(&(struct gateway_rows_conf){ .api = x->api,
							      .tunnels = x->tunnels,
							      .own = x->self.number,
							      .is_fresh = cluster_rows_are_fresh,
							      .came = shared_row_came,
							      .user = x });
}

static int cluster_init_gateway(struct server_cluster *x, struct err *e)
{
	enum place_policy policy =
		(enum place_policy)config_number(x->start->config, CONFIG_CLUSTER_PLACEMENT);
	const struct gateway_leases_conf leases = {
		.number = x->self.number,
		.address = config_text(x->start->config, CONFIG_CLUSTER_LISTEN),
		.version = ATOLL_VERSION,
		.forget_ms = (uint64_t)config_number(x->start->config, CONFIG_CLUSTER_FORGET_AFTER),
	};

	x->tunnels = tunnels_new(x->api->loop, x->self.number, ATOLL_VERSION, NULL);
	http_server_init(&x->http, x->api->loop);
	x->http.user = x;
	x->http.on_head = cluster_head;
	x->api->nodes = gateway_nodes_json;
	x->api->scale = gateway_scale_json;
	if (cluster_client_new(&x->engines, x->api->loop, cluster_ask_engines, x, e) < 0 ||
	    coordinator_process_new(&x->coordinator, x->engines, e) < 0)
		return -1;
	if (x->server_tls)
		x->leases = gateway_leases_new(x->api->loop, x->coordinator, x->tunnels, &leases);
	x->accounts = gateway_accounts_new(x->api, x->engines);
	x->renewals = gateway_renewals_new(x->tunnels, x->engines);
	if (x->server_tls)
		cluster_init_directory(x);
	if (gateway_new(&x->gateway, x->api, x->tunnels, x->leases, policy, e) < 0)
		return -1;
	if (x->server_tls && config_text(x->start->config, CONFIG_CLUSTER_OBJECTS))
		x->stored = gateway_objects_new(&(struct gateway_objects_conf){
			.loop = x->api->loop, .tunnels = x->tunnels, .engines = x->engines });
	x->gateway->objects = x->stored;
	x->gateway->bring = x->bring = gateway_bring_new(x->api->loop, x->tunnels, x->stored);
	x->gateway->engines = x->server_tls ? x->engines : NULL;
	x->gateway->directory = x->directory;
	x->merged = merged_figures_new(x->gateway);
	x->gateway->nodes_min = (unsigned)config_number(x->start->config, CONFIG_CLUSTER_NODES_MIN);
	x->gateway->node_boot_ms = config_number(x->start->config, CONFIG_CLUSTER_NODE_BOOT);
	if (x->server_tls && gateway_shares_new(&x->gateway->shares, x->api->loop, x->engines,
						x->self.number, e) < 0)
		return -1;
	x->shares = x->gateway->shares;
	if (x->server_tls)
		x->grants = x->gateway->grants = gateway_grants_new(x->api, x->engines, x->tunnels);
	if (x->server_tls)
		cluster_init_rows(x);
	if (x->leases)
		cluster_init_names(x);
	return 0;
}

/* ---- a node ---- */

static void cluster_ask_connector(struct server_cluster *x)
{
	struct frame ask = sock_head(WIRE_CLUSTER_CONNECT, 0);

	frame_conn_send(x->supervisor, &ask, sizeof(ask), NULL, 0, -1);
}

static void cluster_dial(void *user, unsigned gateway)
{
	struct server_cluster *x = user;
	struct frame ask = sock_head(WIRE_CLUSTER_DIAL, 0);

	ask.flags = (uint16_t)gateway;
	if (x->connector_open)
		frame_conn_send(&x->connector, &ask, sizeof(ask), NULL, 0, -1);
	else
		x->dials |= 1u << gateway;
}

static void cluster_dial_objects(void *user)
{
	struct server_cluster *x = user;
	struct frame ask = sock_head(WIRE_CLUSTER_DIAL, 0);

	ask.flags = CONNECTOR_OBJECTS;
	if (x->connector_open)
		frame_conn_send(&x->connector, &ask, sizeof(ask), NULL, 0, -1);
}

static void cluster_dialled_objects(struct server_cluster *x, int *fd, const char *why)
{
	if (*fd >= 0)
		object_client_connected(&x->objects, steal_fd(fd));
	else
		object_client_failed(&x->objects, why);
}

static void cluster_dialled(struct frame_conn *p, const struct frame *f, size_t len, int *fd)
{
	struct server_cluster *x = loop_owner(p, struct server_cluster, connector);
	const char *tail = (const char *)(f + 1);

	auto_free char *why = NULL;

	if (f->type != WIRE_CLUSTER_DIAL)
		return;
	why = buf_text("%.*s", *fd < 0 ? (int)(len - sizeof(*f)) : 0, tail);
	if (f->flags == CONNECTOR_OBJECTS)
		cluster_dialled_objects(x, fd, why);
	else if (*fd >= 0)
		tunnel_client_connected(x->client, f->flags, steal_fd(fd));
	else
		tunnel_client_failed(x->client, f->flags, why);
}

/* Requests that it had are made again after TUNNEL_CONNECT_MS; that of a control connection now. */
static void cluster_connector_gone(struct frame_conn *p, const struct err *why)
{
	struct server_cluster *x = loop_owner(p, struct server_cluster, connector);

	x->connector_open = 0;
	object_client_fail_all(&x->objects, "the process that connects has ended");
	if (x->stopped)
		return;
	log_warn("the process that connects to gateways has ended", LOG_E(why));
	tunnel_client_restart_dials(x->client);
	cluster_ask_connector(x);
}

void server_cluster_connect(struct server_cluster *x, int take_fd)
{
	if (!x || x->connector_open || x->stopped) {
		close(take_fd);
		return;
	}
	frame_conn_init(&x->connector, x->api->loop, take_fd);
	x->connector.on_frame = cluster_dialled;
	x->connector.on_gone = cluster_connector_gone;
	x->connector_open = 1;
	for (unsigned i = 0; i < 32; i++)
		if (x->dials & 1u << i)
			cluster_dial(x, i);
	for (const struct object_request *r = x->objects.waiting; r; r = r->next)
		cluster_dial_objects(x);
	x->dials = 0;
}

static void cluster_figures(void *user, struct control_figures *out)
{
	struct server_cluster *x = user;

	node_figures_read(x->figures, out);
	out->draining |= x->stopped;
}

/* For GET /v1/nodes/self. */
static json_t *cluster_self(struct api *a)
{
	struct server_cluster *x = a->node_user;
	struct tunnel_client_figures f = tunnel_client_figures(x->client);
	struct tunnel_node n = { .number = x->self.number,
				 .state = f.connected ? TUNNEL_UP : TUNNEL_UNREACHABLE,
				 .since_unix_ms = a->started_ns / 1000000,
				 .heartbeats = 1,
				 .idle = f.links - f.busy,
				 .busy = f.busy };
	json_t *doc;

	snprintf(n.name, sizeof(n.name), "%s", x->name);
	snprintf(n.version, sizeof(n.version), "%s", ATOLL_VERSION);
	cluster_figures(x, &n.figures);
	doc = gateway_node_json(&n);
	control_figures_fini(&n.figures);
	return doc;
}

/* Rows go to one gateway; all of them write to the same database. */
static void cluster_choose_rows_gateway(struct server_cluster *x)
{
	if (!x->rows || x->rows_gateway != CLUSTER_NO_GATEWAY || !x->greeted)
		return;
	x->rows_gateway = (unsigned)__builtin_ctz(x->greeted);
	node_rows_set_open(x->rows, 1);
}

static void cluster_greeted(void *user, unsigned gateway, uint32_t number, uint64_t epoch,
			    const struct json_t *owned)
{
	struct server_cluster *x = user;

	x->greeted |= 1u << gateway;
	cluster_choose_rows_gateway(x);
	node_leases_greeted(x->node_leases, gateway, number, epoch, owned);
}

static void cluster_acknowledged(void *user, unsigned gateway, uint64_t sent_ms)
{
	node_leases_acknowledged(((struct server_cluster *)user)->node_leases, gateway, sent_ms);
}

static void cluster_closed(void *user, unsigned gateway)
{
	struct server_cluster *x = user;

	node_leases_closed(x->node_leases, gateway);
	x->greeted &= ~(1u << gateway);
	if (gateway != x->rows_gateway)
		return;
	x->rows_gateway = CLUSTER_NO_GATEWAY;
	node_rows_set_open(x->rows, 0);
	cluster_choose_rows_gateway(x);
}

static int cluster_send_rows(void *user, uint64_t last, const json_t *rows)
{
	struct server_cluster *x = user;

	return tunnel_client_send_rows(x->client, x->rows_gateway, last, rows);
}

static void cluster_rows_kept(void *user, unsigned gateway, uint64_t last)
{
	struct server_cluster *x = user;

	if (gateway == x->rows_gateway)
		node_rows_kept(x->rows, last);
}

static void cluster_certificate(void *user, const char *cert, const char *why)
{
	struct server_cluster *x = user;

	if (!cluster_is_gateway(x->role))
		node_certificate_came(&x->own, cert, why);
}

static void cluster_start_node(struct server_cluster *x)
{
	const struct tunnel_client_hooks hooks = { .user = x,
						   .connect = cluster_dial,
						   .figures = cluster_figures,
						   .greeted = cluster_greeted,
						   .acknowledged = cluster_acknowledged,
						   .rows_kept = cluster_rows_kept,
						   .certificate = cluster_certificate,
						   .closed = cluster_closed };
	const char *const *gateways = config_list(x->start->config, CONFIG_CLUSTER_GATEWAYS);
	struct tunnel_client_conf conf = { .number = x->self.number,
					   .name = x->name,
					   .version = ATOLL_VERSION,
					   .machine = x->machine,
					   .tls = x->client_tls };

	while (gateways[conf.gateways] && conf.gateways < 32)
		conf.gateways++;
	cluster_ask_connector(x);
	if (x->objects.store.port) {
		const struct object_store store = x->objects.store;

		object_client_init(&x->objects, x->api->loop, &store, x->objects_tls,
				   cluster_dial_objects, x);
		x->api->objects = &x->objects;
	}
	x->client = tunnel_client_new(x->api->loop, &x->api->http, &conf, &hooks);
	if (!cluster_is_gateway(x->role))
		node_certificate_start(&x->own, x->api->loop, x->client);
	x->api->node_user = x;
	x->api->node_self = cluster_self;
	node_leases_start(x->node_leases, x->client);
}

/* ---- figures ---- */

static void cluster_put_leases(struct metrics *m, const struct gateway_leases *l)
{
	unsigned states[NODE_STATES] = { 0 };

	for (const struct node_status *s = gateway_leases_next(l, NULL); s;
	     s = gateway_leases_next(l, s))
		states[s->state]++;
	for (enum node_state s = 0; s < NODE_STATES; s++)
		metrics_put(m, METRIC_CLUSTER_NODES, states[s], node_state_name(s), NULL);
	metrics_put(m, METRIC_CLUSTER_LEASE, gateway_leases_is_valid(l), NULL, NULL);
	metrics_put(m, METRIC_CLUSTER_LOST, (double)gateway_leases_lost(l), NULL, NULL);
}

static void cluster_put_gateway(struct metrics *m, struct tunnels *t)
{
	struct tunnels_figures f = tunnels_figures(t);

	metrics_put(m, METRIC_CLUSTER_LINKS, f.idle, "idle", NULL);
	metrics_put(m, METRIC_CLUSTER_LINKS, f.busy, "busy", NULL);
	metrics_put(m, METRIC_CLUSTER_WAITING, f.waiting, NULL, NULL);
	metrics_put(m, METRIC_CLUSTER_HEARTBEATS, (double)f.heartbeats, "received", NULL);
	metrics_put(m, METRIC_CLUSTER_HEARTBEATS, (double)f.acknowledged, "acknowledged", NULL);
	metrics_put(m, METRIC_CLUSTER_TUNNELS, (double)f.accepted, "accepted", NULL);
	metrics_put(m, METRIC_CLUSTER_TUNNELS, (double)f.rejected, "rejected", NULL);
	metrics_put(m, METRIC_CLUSTER_TUNNELS, (double)f.closed_for_error, "error", NULL);
}

/* By name. Nodes beyond the bound of the table are summed up as "other". */
static void cluster_put_nodes(struct metrics *m, struct gateway *g)
{
	unsigned ready = 0;

	for (const struct tunnel_node *n = tunnels_next(g->tunnels, NULL); n;
	     n = tunnels_next(g->tunnels, n)) {
		if (n->state != TUNNEL_UP || !n->heartbeats)
			continue;
		ready += !n->figures.draining;
		metrics_put(m, METRIC_NODE_LOAD, (double)n->figures.load / CONTROL_LOAD_FULL,
			    n->name, NULL);
		metrics_put(m, METRIC_NODE_BOXES, n->figures.boxes, n->name, NULL);
		metrics_put(m, METRIC_NODE_MEMORY_FREE, (double)n->figures.memory_free, n->name,
			    NULL);
	}
	metrics_put(m, METRIC_NODES_READY, ready, NULL, NULL);
	metrics_put(m, METRIC_NODES_WANTED, gateway_nodes_wanted(g), NULL, NULL);
}

static void cluster_put_node(struct metrics *m, const struct tunnel_client *c)
{
	struct tunnel_client_figures f = tunnel_client_figures(c);

	metrics_put(m, METRIC_CLUSTER_GATEWAYS, f.connected, "up", NULL);
	metrics_put(m, METRIC_CLUSTER_GATEWAYS, f.gateways - f.connected, "unreachable", NULL);
	metrics_put(m, METRIC_CLUSTER_LINKS, f.links - f.busy, "idle", NULL);
	metrics_put(m, METRIC_CLUSTER_LINKS, f.busy, "busy", NULL);
	metrics_put(m, METRIC_CLUSTER_HEARTBEATS, (double)f.heartbeats, "sent", NULL);
	metrics_put(m, METRIC_CLUSTER_HEARTBEATS, (double)f.acknowledged, "acknowledged", NULL);
	metrics_put(m, METRIC_CLUSTER_TUNNELS, (double)f.connects, "opened", NULL);
	metrics_put(m, METRIC_CLUSTER_TUNNELS, (double)f.failures, "failed", NULL);
}

static void cluster_read_figures(struct metrics_source *s, struct metrics *m)
{
	struct server_cluster *x = loop_owner(s, struct server_cluster, source);

	if (x->leases)
		cluster_put_leases(m, x->leases);
	if (x->tunnels)
		cluster_put_gateway(m, x->tunnels);
	if (x->gateway)
		cluster_put_nodes(m, x->gateway);
	if (x->client)
		cluster_put_node(m, x->client);
	if (x->client && !x->leases)
		metrics_put(m, METRIC_CLUSTER_LEASE, node_leases_left_ms(x->node_leases) > 0, NULL,
			    NULL);
}

/* ---- life ---- */

int server_cluster_init(struct server_cluster *x, struct api *a, struct frame_conn *supervisor,
			struct err *e)
{
	int joined = x && (x->client_tls || x->server_tls);

	if (store_directory_enable(a->store, joined, fleet_now_ns() / 1000, e) < 0)
		return -1;
	if (!x)
		return 0;
	x->api = a;
	x->rows_gateway = CLUSTER_NO_GATEWAY;
	if (x->client_tls && !cluster_is_gateway(x->role)) {
		x->rows = a->rows = node_rows_new(a, cluster_send_rows, x);
		a->rows_settle = node_rows_settle;
	}
	if (x->client_tls)
		a->box_row = node_rows_box;
	x->supervisor = supervisor;
	x->source.read = cluster_read_figures;
	metrics_add_source(a->metrics, &x->source);
	if (x->client_tls && node_leases_new(&x->node_leases, a, x->start->folder, e) < 0)
		return -1;
	if (x->client_tls)
		a->labels = config_list(x->start->config, CONFIG_CLUSTER_LABELS);
	if (x->client_tls)
		x->figures =
			node_figures_new(a, config_list(x->start->config, CONFIG_CLUSTER_LABELS));
	return cluster_is_gateway(x->role) ? cluster_init_gateway(x, e) : 0;
}

int server_cluster_start(struct server_cluster *x, struct err *e)
{
	if (!x)
		return 0;
	if (x->server_tls && x->start->cluster_listener >= 0) {
		if (http_listen(&x->http, x->start->cluster_listener, x->server_tls, e) < 0)
			return -1;
		x->listening = 1;
		gateway_certificate_start(&x->certificate, x->api->loop, x->engines, &x->http);
	}
	if (x->client_tls)
		cluster_start_node(x);
	return 0;
}

int server_cluster_is_used(const struct server_cluster *x)
{
	return x && x->client && !x->stopped && tunnel_client_figures(x->client).busy > 0;
}

void server_cluster_stop(struct server_cluster *x)
{
	if (!x || x->stopped)
		return;
	x->stopped = 1;
	if (x->listening)
		http_drain(&x->http);
	gateway_leases_stop(x->leases);
	if (x->tunnels)
		tunnels_leave(x->tunnels);
	tunnel_client_stop(x->client);
}

void server_cluster_free(struct server_cluster *x)
{
	if (!x)
		return;
	metrics_remove_source(x->api->metrics, &x->source);
	merged_figures_free(x->merged);
	gateway_free(x->gateway);
	gateway_shares_free(x->shares);
	gateway_grants_free(x->grants);
	if (x->tunnels)
		http_server_fini(&x->http);
	gateway_certificate_fini(&x->certificate);
	gateway_accounts_free(x->accounts);
	gateway_renewals_free(x->renewals);
	x->api->rows = NULL;
	directory_free(x->directory);
	node_rows_free(x->own_rows);
	node_rows_free(x->rows);
	coordinator_free(x->coordinator);
	gateway_leases_free(x->leases);
	gateway_names_free(x->names);
	gateway_copies_free(x->copies);
	gateway_rows_free(x->shared_rows);
	gateway_bring_free(x->bring);
	gateway_objects_free(x->stored);
	deletions_free(x->deletions);
	gateway_moved_free(x->moved);
	cluster_client_free(x->engines);
	tunnels_free(x->tunnels);
	tunnel_client_free(x->client);
	node_certificate_fini(&x->own);
	node_figures_free(x->figures);
	node_leases_free(x->node_leases);
	if (x->connector_open)
		frame_conn_fini(&x->connector);
	tls_free(x->server_tls);
	tls_free(x->client_tls);
	tls_free(x->objects_tls);
	free(x);
}
