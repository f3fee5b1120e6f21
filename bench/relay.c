/* relay.c - the cost of the hop from a gateway to a node: `make bench-cluster`.
 *
 *   client ──────────────────────────► node      direct
 *   client ──► gateway ──plain link──► node      relayed
 *   client ──► gateway ──TLS 1.3─────► node      relayed
 *
 * Four processes on loopback. A round makes one request on each of the three ways, so that other work
 * on the machine is the same for all of them. The node answers what GET /v1/who answers, without the
 * work of the API: only the difference counts. The CPU time is that of the gateway's process. */
#include "base/clock.h"
#include "http/dev_ca.h"
#include "http/http.h"
#include "http/relay.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LINKS = 2, ROUNDS = 8000, ECHOES = 3000, WAYS = 3, STREAM_ROUNDS = 9 };
enum { DIRECT, PLAIN, TLS };
#define STREAM (64ull << 20)
static const char *const way_names[WAYS] = { "direct", "plain", "TLS" };
static const char who[] =
	"{\"id\":\"k3xq7h2mzp4a\",\"team\":\"default\",\"role\":\"owner\",\"name\":"
	"\"tests\",\"box\":null,\"expires\":null}\n";
static const char get[] =
	"GET /v1/who HTTP/1.1\r\nHost: 127.0.0.1:7070\r\nUser-Agent: bench/1\r\n"
	"Accept: */*\r\nX-API-Key: atoll_0123456789abcdefghijklmnopqrstuvwxyz0123\r\n\r\n";

static void die(const char *what)
{
	fprintf(stderr, "bench/relay: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void must(int ok, const char *what)
{
	if (!ok)
		die(what);
}

/* ---- sockets ---- */

static int bench_listen(struct sockaddr_in *out)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(*out);

	*out = (struct sockaddr_in){ .sin_family = AF_INET,
				     .sin_addr = { htonl(INADDR_LOOPBACK) } };
	must(fd >= 0 && bind(fd, (void *)out, sizeof(*out)) == 0 && listen(fd, 64) == 0 &&
		     getsockname(fd, (void *)out, &len) == 0,
	     "listen");
	return fd;
}

static int bench_dial(const struct sockaddr_in *to)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

	must(fd >= 0 && connect(fd, (const void *)to, sizeof(*to)) == 0, "connect");
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return fd;
}

struct pairs { /* connections between a gateway and the node, before they are used */
	int gate[LINKS], node[LINKS];
};

static void pairs_open(struct pairs *p)
{
	struct sockaddr_in at;
	int listener = bench_listen(&at), one = 1;

	for (unsigned i = 0; i < LINKS; i++) {
		p->node[i] = bench_dial(&at);
		p->gate[i] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		must(p->gate[i] >= 0, "accept");
		setsockopt(p->gate[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	}
	close(listener);
}

/* Descriptors that the process does not use: else a peer would not see the end of a connection. */
static void close_all(const int fds[LINKS])
{
	for (unsigned i = 0; i < LINKS; i++)
		close(fds[i]);
}

/* ---- TLS ---- */

static SSL_CTX *bench_server_context(void)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
	struct ca_files files = { 0 };
	struct err e;
	BIO *cert, *key;

	must(ca_make("box.test", &files, &e) == 0, e.msg);
	cert = BIO_new_mem_buf(files.cert.p, (int)files.cert.len);
	key = BIO_new_mem_buf(files.key.p, (int)files.key.len);
	must(SSL_CTX_use_certificate(ctx, PEM_read_bio_X509(cert, NULL, NULL, NULL)) == 1 &&
		     SSL_CTX_use_PrivateKey(ctx, PEM_read_bio_PrivateKey(key, NULL, NULL, NULL)) ==
			     1,
	     "certificate");
	return ctx;
}

/* The handshake blocks; the node connects, as on a tunnel. */
static SSL *bench_handshake(SSL_CTX *ctx, int fd, int accepts)
{
	SSL *tls = SSL_new(ctx);

	SSL_set_min_proto_version(tls, TLS1_3_VERSION);
	SSL_set_fd(tls, fd);
	must((accepts ? SSL_accept(tls) : SSL_connect(tls)) == 1, "TLS handshake");
	return tls;
}

static void set_nonblocking(int fd)
{
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

/* ---- the node ---- */

static char piece[64 << 10];

static void node_send(struct http_req *r)
{
	uint64_t *left = r->user;

	while (*left > 0) {
		size_t n = *left < sizeof(piece) ? (size_t)*left : sizeof(piece);

		*left -= n;
		if (http_write(r, piece, n) && *left > 0)
			return;
	}
	http_end(r);
}

static void node_echo(struct http_req *r, const char *bytes, size_t n)
{
	http_write(r, bytes, n);
}

static void node_head(struct http_req *r)
{
	if (r->tunnel) {
		r->on_body = node_echo;
		r->on_body_end = http_end;
		http_set(r, "Upgrade", "tcp");
		http_switch(r);
	} else if (strcmp(r->path, "/stream") == 0) {
		uint64_t *left = http_alloc(r, sizeof(*left));

		*left = STREAM;
		r->user = left;
		r->on_drain = node_send;
		http_stream(r, 200, "application/octet-stream", STREAM);
		node_send(r);
	} else {
		http_reply(r, 200, "application/json", who, sizeof(who) - 1);
	}
}

static void bench_serve(struct loop *l, struct http_server *s, int listener,
			void (*on_head)(struct http_req *))
{
	struct err e;

	must(loop_init(l, &e) == 0, "loop");
	http_server_init(s, l);
	s->on_head = on_head;
	must(http_listen(s, listener, NULL, &e) == 0, "listen");
}

static void node_main(int listener, const struct pairs pairs[WAYS])
{
	static struct http_link links[WAYS][LINKS];
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
	struct http_server s;
	struct loop l;

	bench_serve(&l, &s, listener, node_head);
	for (unsigned w = PLAIN; w < WAYS; w++)
		for (unsigned i = 0; i < LINKS; i++) {
			int fd = pairs[w].node[i];
			SSL *tls = w == TLS ? bench_handshake(ctx, fd, 0) : NULL;

			set_nonblocking(fd);
			http_serve_link(&s, &links[w][i], fd, tls, NULL, 0);
		}
	loop_run(&l);
}

/* ---- the gateway ---- */

static struct upstream_link idle[LINKS];
static unsigned nidle;
static struct loop gate_loop;

static void gate_spare(void *user, struct upstream_link take_link)
{
	(void)user;
	idle[nidle++] = take_link;
}

static void gate_failed(void *user, const char *why)
{
	http_reply(user, 502, "text/plain", why, strlen(why));
}

static void gate_switched(void *user)
{
	((struct http_req *)user)->on_eof = NULL;
}

static const char *gate_sends(void *user, const struct http_header *h)
{
	(void)user;
	return strncmp(h->name, "atoll-", 6) == 0 || strcmp(h->name, "x-api-key") == 0 ? NULL
										       : h->value;
}

static void gate_body(struct http_req *r, const char *bytes, size_t n)
{
	relay_body(r->user, bytes, n);
}

static void gate_body_end(struct http_req *r)
{
	relay_body_end(r->user);
}

static void gate_drain(struct http_req *r)
{
	relay_drain(r->user);
}

static void gate_over(struct http_req *r)
{
	relay_free(r->user);
}

static void gate_head(struct http_req *r)
{
	const struct relay_rules rules = {
		.failed = gate_failed,
		.spare = gate_spare,
		.switched = gate_switched,
		.sends = gate_sends,
		.extra = "Atoll-Identity: default owner k3xq7h2mzp4a - 0\r\n",
		.passes_tcp = 1,
		.user = r,
		.head_ms = 60000
	};

	must(nidle > 0, "no link");
	r->on_body = gate_body;
	r->on_body_end = gate_body_end;
	r->on_drain = gate_drain;
	r->on_eof = http_abort;
	r->on_over = gate_over;
	http_want_body(r, HTTP_BODY_STREAM, 0);
	r->user = relay_new(r, &gate_loop, idle[--nidle], &rules);
}

static void gate_main(int listener, const struct pairs *p, int with_tls)
{
	SSL_CTX *ctx = with_tls ? bench_server_context() : NULL;
	struct http_server s;

	bench_serve(&gate_loop, &s, listener, gate_head);
	for (unsigned i = 0; i < LINKS; i++) {
		idle[nidle] = upstream_link_plain(p->gate[i]);
		if (with_tls)
			idle[nidle].tls = bench_handshake(ctx, p->gate[i], 1);
		set_nonblocking(p->gate[i]);
		nidle++;
	}
	loop_run(&gate_loop);
}

/* ---- the client ---- */

static void send_text(int fd, const char *text)
{
	must(send(fd, text, strlen(text), MSG_NOSIGNAL) == (ssize_t)strlen(text), "send");
}

static void expect(int fd, const char *end)
{
	static char got[4096];
	size_t len = 0;

	do {
		ssize_t n = recv(fd, got + len, sizeof(got) - 1 - len, 0);

		must(n > 0, "receive");
		len += (size_t)n;
		got[len] = 0;
	} while (!strstr(got, end));
}

static uint64_t ask_who(int fd)
{
	uint64_t began = now_ns();

	send_text(fd, get);
	expect(fd, who);
	return now_ns() - began;
}

static uint64_t echo(int fd)
{
	uint64_t began = now_ns();

	send_text(fd, "0123456789abcde\n");
	expect(fd, "abcde\n");
	return now_ns() - began;
}

static double stream_rate(int fd) /* MB/s */
{
	static char room[256 << 10];
	uint64_t began, got = 0;
	ssize_t n = 0;
	char *body = NULL;

	send_text(fd, "GET /stream HTTP/1.1\r\nHost: h\r\n\r\n");
	began = now_ns();
	while (!body) {
		n = recv(fd, room, sizeof(room) - 1, 0);
		must(n > 0, "receive");
		room[n] = 0;
		body = strstr(room, "\r\n\r\n");
	}
	for (got = (uint64_t)(room + n - body - 4); got < STREAM; got += (uint64_t)n) {
		n = recv(fd, room, sizeof(room), 0);
		must(n > 0, "receive");
	}
	return (double)got / 1e6 / ((double)(now_ns() - began) / 1e9);
}

static int by_size(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static double median(double *v, unsigned n)
{
	qsort(v, n, sizeof(*v), by_size);
	return v[n / 2];
}

static double cpu_us(pid_t pid)
{
	struct timespec t;
	clockid_t c;

	must(clock_getcpuclockid(pid, &c) == 0 && clock_gettime(c, &t) == 0, "CPU time");
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int failures;

static void limit(const char *what, double value, double most, const char *unit)
{
	int ok = value <= most;

	printf("%-46s %8.1f %-3s limit %6.1f  %s\n", what, value, unit, most, ok ? "ok" : "ABOVE");
	failures += !ok;
}

struct bench {
	struct sockaddr_in at[WAYS];
	pid_t pid[WAYS]; /* of the process that the client connects to */
};

static void measure_requests(const struct bench *b)
{
	static double took[WAYS][ROUNDS];
	double before[WAYS], p50[WAYS], cpu[WAYS];
	int fd[WAYS];

	for (unsigned w = 0; w < WAYS; w++) {
		fd[w] = bench_dial(&b->at[w]);
		for (unsigned i = 0; i < 200; i++)
			ask_who(fd[w]);
		before[w] = cpu_us(b->pid[w]);
	}
	for (unsigned i = 0; i < ROUNDS; i++)
		for (unsigned w = 0; w < WAYS; w++)
			took[w][i] = (double)ask_who(fd[w]) / 1e3;
	for (unsigned w = 0; w < WAYS; w++) {
		cpu[w] = (cpu_us(b->pid[w]) - before[w]) / ROUNDS;
		p50[w] = median(took[w], ROUNDS);
		close(fd[w]);
		printf("GET /v1/who, %-6s  p50 %6.1f us, p99 %6.1f us\n", way_names[w], p50[w],
		       took[w][ROUNDS * 99 / 100]);
	}
	limit("a plain hop adds, p50", p50[PLAIN] - p50[DIRECT], 60, "us");
	limit("a hop with TLS adds, p50", p50[TLS] - p50[DIRECT], 110, "us");
	limit("gateway's CPU per request, plain", cpu[PLAIN], 45, "us");
	limit("gateway's CPU per request, TLS", cpu[TLS], 45, "us");
}

static void measure_echo(const struct bench *b)
{
	static double took[WAYS][ECHOES];
	double p50[WAYS];
	int fd[WAYS];

	for (unsigned w = 0; w < WAYS; w++) {
		fd[w] = bench_dial(&b->at[w]);
		send_text(
			fd[w],
			"GET /tcp HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n");
		expect(fd[w], "\r\n\r\n");
	}
	for (unsigned i = 0; i < ECHOES; i++)
		for (unsigned w = 0; w < WAYS; w++)
			took[w][i] = (double)echo(fd[w]) / 1e3;
	for (unsigned w = 0; w < WAYS; w++) {
		p50[w] = median(took[w], ECHOES);
		close(fd[w]);
	}
	limit("echo after a 101: a plain hop adds, p50", p50[PLAIN] - p50[DIRECT], 100, "us");
	limit("echo after a 101: a hop with TLS adds, p50", p50[TLS] - p50[DIRECT], 100, "us");
}

/* The best of all rounds: other work on the machine only delays. */
static void measure_stream(const struct bench *b, const char *links)
{
	double best[WAYS] = { 0 }, gate[WAYS] = { 0 }, node[WAYS] = { 0 };
	const double mb = STREAM / 1e6 * STREAM_ROUNDS;
	double rate;
	int fd[WAYS];

	printf("# streams on %s links\n", links);
	for (unsigned w = 0; w < WAYS; w++)
		fd[w] = bench_dial(&b->at[w]);
	for (unsigned i = 0; i < STREAM_ROUNDS; i++)
		for (unsigned w = 0; w < WAYS; w++) {
			gate[w] -= cpu_us(b->pid[w]);
			node[w] -= cpu_us(b->pid[DIRECT]);
			rate = stream_rate(fd[w]);
			best[w] = rate > best[w] ? rate : best[w];
			gate[w] += cpu_us(b->pid[w]);
			node[w] += cpu_us(b->pid[DIRECT]);
		}
	for (unsigned w = 0; w < WAYS; w++) {
		close(fd[w]);
		printf("one stream, %-6s   %6.0f MB/s, CPU per MB: node %.0f us, gateway %.0f us\n",
		       way_names[w], best[w], node[w] / mb, w == DIRECT ? 0 : gate[w] / mb);
	}
	limit("direct stream / stream over a plain hop", best[DIRECT] / best[PLAIN], 2, "x");
	limit("direct stream / stream over a hop with TLS", best[DIRECT] / best[TLS], 2, "x");
}

static pid_t bench_fork(void)
{
	pid_t pid = fork();

	must(pid >= 0, "fork");
	if (pid == 0)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	return pid;
}

int main(int argc, char **argv)
{
	int listener[WAYS], checks = argc > 1 && strcmp(argv[1], "--check") == 0;
	struct pairs pairs[WAYS];
	struct bench b;

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (unsigned w = 0; w < WAYS; w++)
		listener[w] = bench_listen(&b.at[w]);
	for (unsigned w = PLAIN; w < WAYS; w++)
		pairs_open(&pairs[w]);
	for (unsigned w = 0; w < WAYS; w++) {
		b.pid[w] = bench_fork();
		if (b.pid[w])
			continue;
		for (unsigned i = PLAIN; i < WAYS; i++) {
			if (i != w)
				close_all(pairs[i].gate);
			if (w != DIRECT)
				close_all(pairs[i].node);
		}
		if (w == DIRECT)
			node_main(listener[w], pairs);
		else
			gate_main(listener[w], &pairs[w], w == TLS);
	}
	for (unsigned w = PLAIN; w < WAYS; w++) {
		close_all(pairs[w].gate);
		close_all(pairs[w].node);
	}
	measure_stream(&b, "new");
	measure_requests(&b);
	measure_stream(&b, "used"); /* slower: they have carried many small requests */
	measure_echo(&b);
	for (unsigned w = 0; w < WAYS; w++) {
		kill(b.pid[w], SIGKILL);
		waitpid(b.pid[w], NULL, 0);
	}
	return checks && failures ? 1 : 0;
}
