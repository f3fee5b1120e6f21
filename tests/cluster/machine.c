/* machine.c - one process of a machine in `make chaos-cluster`: the rules of cluster/lease.h and the real drivers of
 * the coordinator, with a line protocol between nodes and gateways instead of tunnels.
 *
 *   machine gateway NUMBER postgres|etcd ADDRESS WITHOUT    listens on port 7071
 *   machine node NUMBER FOLDER WITHOUT GATEWAY=IP...        its items come from the coordinator
 *   machine inits NUMBER FOLDER                             stands for the inits of the boxes: a timer per item
 *
 * Items 0 to 29 stand for restartable boxes, 30 to 54 for names. inits prints "+ ITEM TIME" and "- ITEM TIME" (CLOCK_MONOTONIC, us) when an
 * item becomes active on this machine and when it stops. A gateway prints "lost NODE TIME". WITHOUT: rules that are left out. */
#define LEASE_MUTANTS 1
#include "../../src/cluster/gateway_lease.c"
#include "../../src/cluster/node_lease.c"
unsigned lease_without;

#include "base/buf.h"
#include "base/clock.h"
#include "coordinator/coordinator.h"
#include "coordinator/etcd.h"
#include "coordinator/postgres.h"
#include "coordinator/schema.h"
#include "loop/loop.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { ITEMS = 55, BOXES = 30, PEERS = 8, PORT = 7071, FORGET_MS = 8000 };

static struct loop loop;
static int number;

static uint64_t now_ms(void)
{
	return now_ns() / 1000000;
}

static void print_event(const char *what, int item)
{
	char line[64];
	int n = snprintf(line, sizeof(line), "%s %d %" PRIu64 "\n", what, item, now_ns() / 1000);

	(void)!write(1, line, (size_t)n);
}

/* ---- lines over TCP ---- */

struct peer {
	struct watch watch;
	int fd; /* -1: none */
	int connecting;
	int peer; /* number of the other side; 0: not known yet */
	char in[4096];
	size_t len;
	/* of a node */
	struct sockaddr_in to;
	uint64_t retry_ms;
	/* of a gateway */
	int64_t epoch;
	uint64_t seen_ms;
};
static struct peer peers[PEERS];

static void peer_closed(struct peer *p); /* of the role */
static void peer_line(struct peer *p, char *line);

static void peer_close(struct peer *p)
{
	if (p->fd < 0)
		return;
	watch_stop(&p->watch);
	close(p->fd);
	p->fd = -1;
	peer_closed(p);
}

/* A line that does not fit into the socket ends the connection. */
static void __attribute__((format(printf, 2, 3))) peer_send(struct peer *p, const char *fmt, ...)
{
	char line[2048];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	if (p->fd >= 0 && !p->connecting && send(p->fd, line, (size_t)n, MSG_NOSIGNAL) != n)
		peer_close(p);
}

static void peer_ready(struct watch *w, unsigned what)
{
	struct peer *p = loop_owner(w, struct peer, watch);
	ssize_t n;
	char *end;

	if (p->connecting) {
		int err = 0;
		socklen_t size = sizeof(err);

		getsockopt(p->fd, SOL_SOCKET, SO_ERROR, &err, &size);
		if (err) {
			peer_close(p);
			return;
		}
		p->connecting = 0;
		watch_want(w, LOOP_READ);
		peer_line(p, NULL);
		return;
	}
	if (what != LOOP_READ)
		return;
	n = recv(p->fd, p->in + p->len, sizeof(p->in) - 1 - p->len, 0);
	if (n <= 0) {
		if (n == 0 || errno != EAGAIN)
			peer_close(p);
		return;
	}
	p->len += (size_t)n;
	p->in[p->len] = 0;
	while (p->fd >= 0 && (end = strchr(p->in, '\n'))) {
		size_t used = (size_t)(end - p->in) + 1;

		*end = 0;
		peer_line(p, p->in);
		p->len -= used;
		memmove(p->in, p->in + used, p->len + 1);
	}
}

static void peer_open(struct peer *p, int fd, unsigned wants)
{
	int on = 1, limit = 1500; /* ms without an acknowledgement of TCP */

	p->fd = fd;
	p->len = 0;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &limit, sizeof(limit));
	watch_init(&p->watch, &loop, fd, peer_ready);
	watch_want(&p->watch, wants);
}

/* ---- inits ---- */

static struct sockaddr_un inits_address(const char *folder)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };

	snprintf(a.sun_path, sizeof(a.sun_path), "%s/inits", folder);
	return a;
}

/* An init that shares the CPU limit of its box acts late, but not later than LEASE_GRACE_MS: sometimes 1.5 s. */
static uint64_t inits_lateness(void)
{
	return rand() % 3 ? 0 : (uint64_t)(rand() % 1500);
}

/* "ITEM MS": the lease of an item; MS 0: it is destroyed. */
static int run_inits(const char *folder)
{
	struct sockaddr_un a = inits_address(folder);
	uint64_t until[ITEMS] = { 0 };
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
	struct timeval turn = { 0, 20000 };

	srand((unsigned)now_ns());
	unlink(a.sun_path);
	if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0)
		return 1;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &turn, sizeof(turn));
	for (;;) {
		char line[64];
		ssize_t n = recv(fd, line, sizeof(line) - 1, 0);
		int item;
		uint64_t ms;

		for (int i = 0; i < ITEMS; i++)
			if (until[i] && now_ms() >= until[i]) {
				until[i] = 0;
				print_event("-", i);
			}
		if (n <= 0)
			continue;
		line[n] = 0;
		if (sscanf(line, "%d %" SCNu64, &item, &ms) != 2 || item < 0 || item >= ITEMS)
			continue;
		if (ms && !until[item])
			print_event("+", item);
		if (!ms && until[item])
			print_event("-", item);
		until[item] = ms ? now_ms() + ms + (item < BOXES ? inits_lateness() : 0) : 0;
	}
}

/* ---- a node ---- */

static struct node_lease lease;
static struct timer turn;
static int holds[ITEMS], inits_fd;
static struct sockaddr_un inits_at;
static char epoch_path[200];
static uint64_t seq, heartbeat_ms;
static int is_node;

static void node_tell_init(int item, uint64_t ms)
{
	char line[64];
	int n = snprintf(line, sizeof(line), "%d %" PRIu64, item, ms);

	sendto(inits_fd, line, (size_t)n, MSG_DONTWAIT, (struct sockaddr *)&inits_at,
	       sizeof(inits_at));
}

static void node_fence(void)
{
	uint64_t left = node_lease_left_ms(&lease, now_ms());

	for (int i = 0; left && i < ITEMS; i++)
		if (holds[i])
			node_tell_init(i, left);
}

static void node_store_epoch(void)
{
	FILE *f = fopen(epoch_path, "w");

	if (f) {
		fprintf(f, "%" PRId64 "\n", lease.epoch);
		fclose(f);
	}
}

/* "G EPOCH ITEM...": what the node owns. */
static void node_greeted(struct peer *p, char *line)
{
	int listed[ITEMS] = { 0 }, item, used;
	int64_t epoch;
	enum node_lease_greeting how;

	if (sscanf(line, "G %" SCNd64 "%n", &epoch, &used) != 1)
		return;
	for (line += used; sscanf(line, " %d%n", &item, &used) == 1; line += used)
		if (item >= 0 && item < ITEMS)
			listed[item] = 1;
	how = node_lease_greeted(&lease, p->peer, epoch);
	if (how == NODE_GREETING_STALE) {
		peer_close(p);
		return;
	}
	for (int i = 0; i < ITEMS; i++) {
		if (how == NODE_GREETING_RETURN && holds[i] && !listed[i])
			node_tell_init(i, 0);
		holds[i] = listed[i] || (how == NODE_GREETING_SAME && holds[i]);
	}
	if (how == NODE_GREETING_RETURN) {
		node_store_epoch();
		node_lease_settled(&lease);
	}
}

static void node_line(struct peer *p, char *line)
{
	uint64_t n;
	int64_t epoch;
	int item;

	if (!line) { /* connected */
		node_lease_opened(&lease, p->peer);
		peer_send(p, "C %d\n", number);
	} else if (*line == 'G') {
		node_greeted(p, line);
	} else if (sscanf(line, "A %" SCNu64, &n) == 1) {
		node_lease_acked(&lease, p->peer, n);
		node_fence();
	} else if (sscanf(line, "N %d %" SCNd64, &item, &epoch) == 2) {
		if (item >= 0 && item < ITEMS && epoch == lease.epoch &&
		    node_lease_left_ms(&lease, now_ms()))
			holds[item] = 1;
	}
}

static void node_turn(struct timer *t)
{
	uint64_t now = now_ms();
	int beat = now >= heartbeat_ms + LEASE_HEARTBEAT_MS;

	timer_set(t, 100);
	if (beat) {
		heartbeat_ms = now;
		seq++;
	}
	for (struct peer *p = peers; p < peers + PEERS && p->peer; p++) {
		if (p->fd < 0 && now >= p->retry_ms) {
			int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

			p->retry_ms = now + 300;
			p->connecting = 1;
			if (connect(fd, (struct sockaddr *)&p->to, sizeof(p->to)) < 0 &&
			    errno != EINPROGRESS)
				close(fd);
			else
				peer_open(p, fd, LOOP_WRITE);
		} else if (p->fd >= 0 && p->connecting && now > p->retry_ms + 2000) {
			peer_close(p);
		} else if (p->fd >= 0 && !p->connecting && beat) {
			node_lease_sent(&lease, p->peer, seq, now_ms());
			peer_send(p, "H %" PRIu64 "\n", seq);
		}
	}
	node_fence();
}

static int run_node(const char *folder, char **gateways)
{
	int64_t epoch = 0;
	FILE *f;

	is_node = 1;
	snprintf(epoch_path, sizeof(epoch_path), "%s/epoch", folder);
	f = fopen(epoch_path, "r");
	if (f) {
		if (fscanf(f, "%" SCNd64, &epoch) != 1)
			epoch = 0;
		fclose(f);
	}
	node_lease_init(&lease, epoch);
	inits_at = inits_address(folder);
	inits_fd = socket(AF_UNIX, SOCK_DGRAM, 0);
	for (struct peer *p = peers; *gateways; p++, gateways++) {
		char ip[64];

		p->fd = -1;
		p->to = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(PORT) };
		if (sscanf(*gateways, "%d=%63s", &p->peer, ip) != 2 ||
		    inet_pton(AF_INET, ip, &p->to.sin_addr) != 1)
			return 1;
	}
	timer_init(&turn, &loop, node_turn);
	timer_set(&turn, 0);
	loop_run(&loop);
	return 0;
}

/* ---- a gateway ---- */

static struct gateway_lease *gateway;
static struct coordinator *coordinator;
static struct watch listener;

struct ask {
	struct coordinator_request q;
	char item[16];
};

static struct coordinator_key gateway_key(const char *item)
{
	return (struct coordinator_key){ "chaos", 'n', item, "" };
}

static struct peer *gateway_peer(int node)
{
	for (struct peer *p = peers; p < peers + PEERS; p++)
		if (p->fd >= 0 && p->peer == node)
			return p;
	return NULL;
}

static struct peer *gateway_random_peer(int except)
{
	for (int i = 0, at = rand() % PEERS; i < PEERS; i++) {
		struct peer *p = &peers[(at + i) % PEERS];

		if (p->fd >= 0 && p->epoch && p->peer != except)
			return p;
	}
	return NULL;
}

static enum lease_answer gateway_answer(const struct err *e)
{
	if (!e)
		return LEASE_DONE;
	return e->kind == ERR_CONFLICT    ? LEASE_REFUSED
	       : e->kind == ERR_NOT_FOUND ? LEASE_NOT_FOUND
					  : LEASE_UNKNOWN;
}

static void gateway_act(const struct coordinator_answer *hello);
static void gateway_done(void *user, const struct coordinator_answer *a, const struct err *e);

static void gateway_ask(struct coordinator_request q, const char *item)
{
	struct ask *x = calloc(1, sizeof(*x));

	if (item) {
		snprintf(x->item, sizeof(x->item), "%s", item);
		q.key = gateway_key(x->item);
		q.box = x->item;
	}
	x->q = q;
	coordinator_ask(coordinator, &q, gateway_done, x);
}

static void gateway_send_item(int node, const char *item)
{
	struct peer *p = gateway_peer(node);

	if (p && p->epoch)
		peer_send(p, "N %s %" PRId64 "\n", item, p->epoch);
}

static void gateway_done(void *user, const struct coordinator_answer *a, const struct err *e)
{
	struct ask *x = user;
	struct view v = { 0 };
	struct peer *to;

	switch (x->q.op) {
	case COORDINATOR_REGISTER:
		gateway_lease_registered(gateway, now_ms(), gateway_answer(e),
					 a ? a->incarnation : 0);
		break;
	case COORDINATOR_RENEW:
		if (a)
			v = (struct view){ a->gateways,  a->tunnels,  a->nodes,
					   a->ngateways, a->ntunnels, a->nnodes };
		gateway_lease_renewed(gateway, now_ms(), gateway_answer(e), a ? &v : NULL);
		break;
	case COORDINATOR_SET_TUNNEL:
		gateway_lease_tunnel_set(gateway, now_ms(), x->q.node, x->q.serial,
					 gateway_answer(e), a ? a->epoch : 0);
		break;
	case COORDINATOR_DECLARE_LOST:
		if (a && a->done)
			print_event("lost", x->q.node);
		gateway_lease_declared(gateway, now_ms(), x->q.node, a && a->done);
		break;
	case COORDINATOR_CLAIM_NAME:
		if (a && a->nnames) /* also if another node has it, and did not get the message */
			gateway_send_item(a->names[0].node, x->item);
		break;
	case COORDINATOR_FIND_NAME: /* rule 8: of a lost node */
		to = gateway_random_peer(x->q.from);
		if (a && a->nnames && a->names[0].node == x->q.from && to)
			gateway_ask((struct coordinator_request){ .op = COORDINATOR_MOVE_BOX,
								  .from = x->q.from,
								  .from_epoch = x->q.from_epoch,
								  .node = to->peer,
								  .epoch = to->epoch },
				    x->item);
		break;
	case COORDINATOR_MOVE_BOX:
		if (a && a->done) {
			print_event("moved", x->q.node);
			gateway_send_item(x->q.node, x->item);
		}
		break;
	default:
		break;
	}
	gateway_act(a);
	free(x);
}

static void gateway_greet(int node, int64_t epoch, const struct coordinator_answer *hello)
{
	struct peer *p = gateway_peer(node);
	auto_buf struct buf items = { 0 };

	if (!p)
		return;
	p->epoch = epoch;
	for (unsigned i = 0; i < hello->nnames; i++)
		buf_printf(&items, " %s", hello->names[i].key.name);
	peer_send(p, "G %" PRId64 "%s\n", epoch, buf_str(&items));
}

static void gateway_act(const struct coordinator_answer *hello)
{
	struct lease_action a;

	while ((a = gateway_lease_next(gateway)).kind != LEASE_NOTHING) {
		struct coordinator_request q = { .gateway = number,
						 .node = a.node,
						 .epoch = a.epoch,
						 .serial = a.serial,
						 .incarnation = a.incarnation,
						 .dead = a.dead,
						 .ndead = a.ndead };
		struct peer *p;

		switch (a.kind) {
		case LEASE_REGISTER:
			q.op = COORDINATOR_REGISTER;
			break;
		case LEASE_RENEW:
			q.op = COORDINATOR_RENEW;
			break;
		case LEASE_TUNNEL_UP:
		case LEASE_TUNNEL_DOWN:
			q.op = COORDINATOR_SET_TUNNEL;
			q.up = a.kind == LEASE_TUNNEL_UP;
			break;
		case LEASE_GREET:
			gateway_greet(a.node, a.epoch, hello);
			continue;
		case LEASE_CLOSE:
			p = gateway_peer(a.node);
			if (p) {
				p->peer = 0; /* the lease knows */
				peer_close(p);
			}
			continue;
		case LEASE_DECLARE_LOST:
			q.op = COORDINATOR_DECLARE_LOST;
			break;
		case LEASE_RESTART:
			for (int i = 0; i < BOXES; i++) {
				char item[16];

				snprintf(item, sizeof(item), "%d", i);
				gateway_ask(
					(struct coordinator_request){ .op = COORDINATOR_FIND_NAME,
								      .from = a.node,
								      .from_epoch = a.epoch },
					item);
			}
			continue;
		case LEASE_FORGET:
			q.op = COORDINATOR_FORGET_NODE;
			break;
		default:
			fprintf(stderr, "gateway %d was replaced\n", number);
			exit(1);
		}
		gateway_ask(q, NULL);
	}
}

static void gateway_line(struct peer *p, char *line)
{
	uint64_t n;
	int node;

	if (!line)
		return;
	p->seen_ms = now_ms();
	if (sscanf(line, "C %d", &node) == 1) {
		struct peer *old = gateway_peer(node);

		if (old)
			peer_close(old);
		p->peer = node;
		gateway_lease_connected(gateway, now_ms(), node);
	} else if (sscanf(line, "H %" SCNu64, &n) == 1 && p->peer &&
		   gateway_lease_may_acknowledge(gateway, now_ms(), p->peer)) {
		peer_send(p, "A %" PRIu64 "\n", n);
	}
	gateway_act(NULL);
}

static void gateway_accept(struct watch *w, unsigned what)
{
	int fd = accept4(w->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	(void)what;
	for (struct peer *p = peers; fd >= 0 && p < peers + PEERS; p++)
		if (p->fd < 0) {
			p->peer = 0;
			p->epoch = 0;
			p->connecting = 0;
			p->seen_ms = now_ms();
			peer_open(p, fd, LOOP_READ);
			return;
		}
	if (fd >= 0)
		close(fd);
}

static void gateway_turn(struct timer *t)
{
	static unsigned turns;
	static uint64_t turn_ms;
	char item[16];
	struct peer *to = gateway_random_peer(0);
	int was_stopped =
		turn_ms && now_ms() > turn_ms + 500; /* what nodes have sent was not read yet */

	timer_set(t, 50);
	turn_ms = now_ms();
	for (struct peer *p = peers; p < peers + PEERS; p++)
		if (was_stopped)
			p->seen_ms = turn_ms;
		else if (p->fd >= 0 && turn_ms > p->seen_ms + 2500)
			peer_close(p);
	gateway_lease_tick(gateway, now_ms());
	gateway_act(NULL);
	/* A claim of a random item: done if it is free; else its owner gets it again. */
	if (++turns % 2 == 0 && to) {
		snprintf(item, sizeof(item), "%d", rand() % ITEMS);
		gateway_ask((struct coordinator_request){ .op = COORDINATOR_CLAIM_NAME,
							  .node = to->peer,
							  .epoch = to->epoch },
			    item);
	}
}

static void assigned(void *user, const struct coordinator_answer *a, const struct err *e)
{
	*(int *)user = a ? a->number : e->kind == ERR_SYS ? -1 : -2;
	loop_stop(&loop);
}

static int run_gateway(const char *engine, const char *address)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(PORT) };
	struct postgres_conf pg = { .database = address,
				    .answer_ms = 1500,
				    .query = schema_query(),
				    .check = schema_check,
				    .setup = schema_setup() };
	struct etcd_conf etcd = { .addresses = address, .answer_ms = 1500 };
	struct postgres *db;
	struct err e;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), on = 1, got;

	if (!strcmp(engine, "postgres")
		    ? postgres_new(&db, &loop, &pg, &e) < 0 ||
			      coordinator_postgres_new(&coordinator, &loop, db, &e) < 0
		    : coordinator_etcd_new(&coordinator, &loop, &etcd, &e) < 0) {
		fprintf(stderr, "%s\n", e.msg);
		return 1;
	}
	for (int i = 0; i < PEERS; i++)
		peers[i].fd = -1;
	/* Numbers are given in the order of the machines: node 1, gateway 2, node 3 ... */
	for (int i = 1; i <= 6; i++)
		do {
			char name[16];
			struct coordinator_request q = { .op = COORDINATOR_ASSIGN_NUMBER,
							 .role = i % 2 ? "node" : "gateway",
							 .name = name,
							 .fingerprint = "f" };

			snprintf(name, sizeof(name), "m%d", i);
			coordinator_ask(coordinator, &q, assigned, &got);
			loop_run(&loop);
		} while (got != i);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 || listen(fd, 16) < 0)
		return 1;
	srand((unsigned)now_ns());
	gateway = gateway_lease_new(number, FORGET_MS);
	watch_init(&listener, &loop, fd, gateway_accept);
	watch_want(&listener, LOOP_READ);
	timer_init(&turn, &loop, gateway_turn);
	timer_set(&turn, 0);
	loop_run(&loop);
	return 0;
}

/* ---- both ---- */

static void peer_closed(struct peer *p)
{
	if (is_node) {
		node_lease_closed(&lease, p->peer);
	} else {
		p->epoch = 0;
		if (p->peer)
			gateway_lease_disconnected(gateway, now_ms(), p->peer);
		p->peer = 0;
	}
}

static void peer_line(struct peer *p, char *line)
{
	(is_node ? node_line : gateway_line)(p, line);
}

int main(int argc, char **argv)
{
	struct err e;

	signal(SIGPIPE, SIG_IGN);
	if (argc < 4 || loop_init(&loop, &e) < 0)
		return 2;
	number = atoi(argv[2]);
	if (!strcmp(argv[1], "inits"))
		return run_inits(argv[3]);
	lease_without = argc > 4 ? (unsigned)atoi(argv[!strcmp(argv[1], "node") ? 4 : 5]) : 0;
	if (!strcmp(argv[1], "node"))
		return run_node(argv[3], argv + 5);
	return run_gateway(argv[3], argv[4]);
}
