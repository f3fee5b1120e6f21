/* nodes.c - nodes without boxes: their tunnels to one gateway, for bench/nodes.
 *
 *	atoll-bench-nodes SECRETS VERSION ADDRESS PORT FIRST COUNT
 *
 * SECRETS has the key of the cluster's CA, which signs a certificate for each number from FIRST on. Each node has what a
 * real one has: a control connection with heartbeats, and the request connections that the gateway asks for. Prints "N connected" when the
 * number of nodes with a lease changes by a tenth. */
#include "base/clock.h"
#include "cluster/ca.h"
#include "cluster/tunnel_node.h"
#include "http/http.h"

#include <arpa/inet.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
	NODES_MOST = 4000,
	NODES_DIALS = 1
}; /* connections that are made in one turn of NODES_TURN_MS */
enum { NODES_TURN_MS = 5 };

struct bench_node {
	struct tunnel_client *client;
	unsigned wanted; /* connections */
	int is_leased;
};

static struct loop loop;
static struct timer turn;
static struct http_server server;
static struct sockaddr_in gateway;
static struct bench_node nodes[NODES_MOST];
static unsigned count, leased, printed;

static void must(int rc, const struct err *e)
{
	if (rc == 0)
		return;
	fprintf(stderr, "bench/nodes: %s\n", e->msg);
	exit(1);
}

static void nodes_want(void *user, unsigned at)
{
	(void)at;
	((struct bench_node *)user)->wanted++;
}

static void nodes_figures(void *user, struct control_figures *out)
{
	(void)user;
	*out = (struct control_figures){ .load = 300,
					 .cpus = 8,
					 .memory_total = 64ull << 30,
					 .memory_free = 40ull << 30,
					 .boxes = 500,
					 .boxes_most = 5000,
					 .pool = 8,
					 .arch = "x86_64" };
}

static void nodes_acknowledged(void *user, unsigned at, uint64_t sent_ms)
{
	struct bench_node *n = user;

	(void)at;
	(void)sent_ms;
	leased += !n->is_leased;
	n->is_leased = 1;
}

static void nodes_closed(void *user, unsigned at)
{
	struct bench_node *n = user;

	(void)at;
	leased -= n->is_leased;
	n->is_leased = 0;
}

static void nodes_dial(struct bench_node *n)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	n->wanted--;
	if (fd >= 0 && connect(fd, (struct sockaddr *)&gateway, sizeof(gateway)) == 0) {
		tunnel_client_connected(n->client, 0, fd);
		return;
	}
	if (fd >= 0)
		close(fd);
	tunnel_client_failed(n->client, 0, "connect");
}

static void nodes_turn(struct timer *t)
{
	static unsigned at;
	unsigned left = NODES_DIALS;

	for (unsigned i = 0; i < count && left; i++, at = (at + 1) % count)
		if (nodes[at].wanted) {
			nodes_dial(&nodes[at]);
			left--;
		}
	if (leased / (count / 10 + 1) != printed / (count / 10 + 1) ||
	    (leased == count && printed != count)) {
		printf("%u connected\n", leased);
		fflush(stdout);
		printed = leased;
	}
	timer_set(t, NODES_TURN_MS);
}

static void nodes_head(struct http_req *r)
{
	http_reply(r, 404, "text/plain", "no\n", 3);
}

static struct ssl_ctx_st *nodes_context(const struct cluster_ca *ca, const struct buf *ca_cert,
					const struct buf *key, const struct buf *request,
					unsigned number)
{
	struct cluster_identity id = { 0 };
	struct cluster_peer peer = { CLUSTER_NODE, number };
	struct ssl_ctx_st *ctx;
	struct err e;

	buf_add(&id.ca, ca_cert->p, ca_cert->len);
	buf_add(&id.key, key->p, key->len);
	must(cluster_ca_sign(ca, request->p, request->len, &peer, time(NULL), &id.cert, &e), &e);
	must(cluster_tls_client(&id, &ctx, &e), &e);
	cluster_identity_fini(&id);
	return ctx;
}

int main(int argc, char **argv)
{
	struct buf ca_cert = { 0 }, ca_key = { 0 }, request = { 0 }, key = { 0 };
	struct rlimit files = { 65536, 65536 };
	struct cluster_ca *ca;
	unsigned first;
	struct err e;

	if (argc != 7)
		return 2;
	first = (unsigned)atoi(argv[5]);
	count = (unsigned)atoi(argv[6]);
	gateway = (struct sockaddr_in){ .sin_family = AF_INET,
					.sin_port = htons((uint16_t)atoi(argv[4])) };
	if (!count || count > NODES_MOST || inet_pton(AF_INET, argv[3], &gateway.sin_addr) != 1)
		return 2;
	setrlimit(RLIMIT_NOFILE, &files);
	must(cluster_read_file(argv[1], "ca.crt", &ca_cert, &e), &e);
	must(cluster_read_file(argv[1], "ca.key", &ca_key, &e), &e);
	must(cluster_ca_load(&ca, &ca_cert, &ca_key, &e), &e);
	must(cluster_ca_request(&request, &key, &e), &e);
	must(loop_init(&loop, &e), &e);
	http_server_init(&server, &loop);
	server.on_head = nodes_head;
	for (unsigned i = 0; i < count; i++) {
		char name[32];
		struct tunnel_client_conf conf = {
			.number = first + i, .name = name, .version = argv[2], .gateways = 1
		};
		struct tunnel_client_hooks hooks = { .user = &nodes[i],
						     .connect = nodes_want,
						     .figures = nodes_figures,
						     .acknowledged = nodes_acknowledged,
						     .closed = nodes_closed };

		snprintf(name, sizeof(name), "n%u", first + i);
		conf.tls = nodes_context(ca, &ca_cert, &key, &request, first + i);
		nodes[i].client = tunnel_client_new(&loop, &server, &conf, &hooks);
	}
	timer_init(&turn, &loop, nodes_turn);
	timer_set(&turn, 0);
	loop_run(&loop);
	return 0;
}
