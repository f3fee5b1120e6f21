/* forward.c - `atoll forward`: connects a port of this machine to a port of a box.
 *
 *   program ──► 127.0.0.1:LOCAL ──► one process per connection ──► GET .../connect, 101 ──► box
 *
 * Neither socket blocks the other: each direction has one buffer and is read only when that is
 * empty. */
#include "base/cleanup.h"
#include "commands/commands.h"
#include "commands/port.h"
#include "http/client_conn.h"
#include "http/tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FORWARD_BYTES = 64 << 10, FORWARD_HEAD = 16 << 10, FORWARD_MOST = 256 };
enum { FORWARD_CONNECT_MS = 10000 };

struct forward {
	struct api_client *r;
	struct client_conn_url url;
	struct ssl_ctx_st *tls;
	const char *box;
	uint32_t local, port;
};

/* ---- one connection ---- */

struct forward_way { /* one direction */
	char bytes[FORWARD_BYTES];
	size_t at, len;
	int ended;  /* nothing more comes */
	int closed; /* and the end was sent to the receiver */
};

struct forward_pair {
	struct client_conn remote;
	int local;
	struct forward_way up, down; /* to the box; to the program */
	short remote_waits, local_waits;
};

/* 1: bytes were moved. 0: nothing can be moved. -1: the connection has ended. */
static int forward_up(struct forward_pair *p)
{
	struct forward_way *w = &p->up;
	struct err e;
	ssize_t n;

	if (w->at == w->len && !w->ended) {
		n = recv(p->local, w->bytes, sizeof(w->bytes), MSG_DONTWAIT);
		if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
			p->local_waits |= POLLIN;
			return 0;
		}
		if (n < 0)
			return -1;
		w->ended = n == 0;
		w->at = 0;
		w->len = (size_t)n;
	}
	if (w->at < w->len) {
		n = client_conn_write_now(&p->remote, w->bytes + w->at, w->len - w->at, &e);
		if (n == -2)
			p->remote_waits |= POLLOUT;
		if (n < 0)
			return n == -2 ? 0 : -1;
		w->at += (size_t)n;
		return 1;
	}
	if (w->ended && !w->closed) {
		client_conn_shut(&p->remote);
		w->closed = 1;
	}
	return 0;
}

static int forward_down(struct forward_pair *p)
{
	struct forward_way *w = &p->down;
	struct err e;
	ssize_t n;

	if (w->at == w->len && !w->ended) {
		n = client_conn_read_now(&p->remote, w->bytes, sizeof(w->bytes), &e);
		if (n == -2)
			p->remote_waits |= POLLIN;
		if (n < 0)
			return n == -2 ? 0 : -1;
		w->ended = n == 0;
		w->at = 0;
		w->len = (size_t)n;
	}
	if (w->at < w->len) {
		n = send(p->local, w->bytes + w->at, w->len - w->at, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
			p->local_waits |= POLLOUT;
			return 0;
		}
		if (n < 0)
			return -1;
		w->at += (size_t)n;
		return 1;
	}
	return w->ended ? -1 : 0; /* the box has closed the connection, in both directions */
}

static void forward_pump(struct forward_pair *p)
{
	for (;;) {
		int up, down;

		p->remote_waits = p->local_waits = 0;
		up = forward_up(p);
		down = forward_down(p);
		if (up < 0 || down < 0)
			return;
		if (!up && !down) {
			struct pollfd both[2] = { { .fd = p->remote_waits ? p->remote.fd : -1,
						    .events = p->remote_waits },
						  { .fd = p->local_waits ? p->local : -1,
						    .events = p->local_waits } };

			if (poll(both, 2, -1) < 0 && errno != EINTR)
				return;
		}
	}
}

/* Reads the head of the answer; bytes after it are the first of the box. */
static int forward_answer(struct forward_pair *p, struct err *e)
{
	char head[FORWARD_HEAD + 1];
	size_t have = 0;
	char *end;

	do {
		ssize_t n = have < FORWARD_HEAD ? client_conn_read(&p->remote, head + have,
								   FORWARD_HEAD - have, e)
						: 0;

		if (n < 0)
			return -1;
		if (n == 0)
			return err_set(e, ERR_SYS, "the daemon closed the connection");
		have += (size_t)n;
		head[have] = 0;
	} while (!(end = strstr(head, "\r\n\r\n")));
	if (strncmp(head, "HTTP/1.1 101", 12) != 0)
		return err_set(e, ERR_SYS, "the daemon answered '%.*s'", (int)strcspn(head, "\r\n"),
			       head);
	p->down.len = have - (size_t)(end + 4 - head);
	memcpy(p->down.bytes, end + 4, p->down.len);
	return 0;
}

static int forward_connect(const struct forward *f, struct forward_pair *p, struct err *e)
{
	auto_free char *path =
		api_client_path("/v1/boxes/%s/ports/%u/connect", f->box, (uint64_t)f->port);
	auto_buf struct buf head = { 0 };

	if (client_conn_open(&p->remote, &f->url, f->tls, FORWARD_CONNECT_MS, e) < 0)
		return -1;
	buf_printf(&head,
		   "GET %s%s HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n"
		   "User-Agent: atoll/" ATOLL_VERSION "\r\n",
		   f->url.prefix, path, f->url.header);
	if (f->r->reach.key[0])
		buf_printf(&head, "Authorization: Bearer %s\r\n", f->r->reach.key);
	buf_puts(&head, "\r\n");
	if (client_conn_write(&p->remote, head.p, head.len, e) < 0)
		return -1;
	return forward_answer(p, e);
}

static _Noreturn void forward_child(const struct forward *f, int local)
{
	struct forward_pair *p = calloc(1, sizeof(*p));
	struct err e;

	if (!p)
		abort();
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	p->local = local;
	p->remote.fd = -1;
	if (forward_connect(f, p, &e) < 0) {
		fprintf(stderr, "atoll: port %u of %s: %s\n", f->port, f->box, e.msg);
		_exit(1);
	}
	forward_pump(p);
	_exit(0);
}

/* ---- all connections ---- */

static int forward_listen(struct api_client *r, uint32_t *port)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_port = htons((uint16_t)*port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	auto_fd int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(at);
	int on = 1;

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
	    bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 || listen(fd, 128) < 0 ||
	    getsockname(fd, (struct sockaddr *)&at, &len) < 0) {
		cli_error_what(&r->error, "failed", "cannot listen on 127.0.0.1:%u", *port);
		cli_error_why(&r->error, "%s", strerror(errno));
		cli_error_hint(&r->error, "any free port", "atoll forward BOX 0:PORT");
		r->status = STATUS_FAILED;
		return -1;
	}
	*port = ntohs(at.sin_port);
	return steal_fd(&fd);
}

/* With FORWARD_MOST connections, the next one waits in the queue of the socket. */
static int forward_serve(const struct forward *f, int listener)
{
	unsigned children = 0;

	for (;;) {
		struct pollfd p = { .fd = listener, .events = POLLIN };
		int fd, on = 1;

		while (children && waitpid(-1, NULL, WNOHANG) > 0)
			children--;
		if (children >= FORWARD_MOST) {
			if (waitpid(-1, NULL, 0) > 0)
				children--;
			continue;
		}
		if (poll(&p, 1, 1000) <= 0)
			continue;
		fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		if (fd < 0)
			continue;
		(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
		switch (fork()) {
		case 0:
			close(listener);
			forward_child(f, fd);
		case -1:
			fprintf(stderr, "atoll: no process for a connection: %s\n",
				strerror(errno));
			break;
		default:
			children++;
		}
		close(fd);
	}
}

/* "LOCAL:PORT", or "PORT" for the same number on both sides. */
static int forward_ports(struct api_client *r, const char *text, struct forward *f)
{
	const char *colon = strchr(text, ':');
	char local[8];

	if (port_parse(r, colon ? colon + 1 : text, &f->port))
		return r->status;
	f->local = f->port;
	if (!colon)
		return 0;
	snprintf(local, sizeof(local), "%.*s", (int)(colon - text < 7 ? colon - text : 7), text);
	f->local = 0;
	return strcmp(local, "0") == 0 ? 0 : port_parse(r, local, &f->local);
}

static int forward_start(struct api_client *r, struct forward *f)
{
	json_t *doc = api_client_get(r, "/v1/boxes/%s/ports/%u", f->box, (uint64_t)f->port);
	auto_fd int listener = -1;
	struct err e;

	if (!doc) {
		api_client_explain_box(r, f->box);
		return r->status;
	}
	if (client_conn_url_parse(r->reach.where, &f->url, &e) < 0 ||
	    (f->url.kind == CLIENT_CONN_TLS && tls_client(NULL, &f->tls, &e) < 0)) {
		json_decref(doc);
		return api_client_usage(r, "%s", e.msg);
	}
	listener = forward_listen(r, &f->local);
	if (listener >= 0) {
		printf("127.0.0.1:%u\n", f->local);
		fflush(stdout);
		if (!r->cli->quiet)
			fprintf(stderr, "atoll: forwards to port %u of %s%s; ends with Ctrl-C\n",
				f->port, f->box,
				json_is_false(json_object_get(doc, "listening"))
					? ", where no program listens yet"
					: "");
	}
	json_decref(doc);
	return listener < 0 ? r->status : forward_serve(f, listener);
}

static int forward_box(struct api_client *r, const struct args *a)
{
	struct forward f = { .r = r, .box = a->nwords ? a->words[0] : "" };
	int status;

	if (a->nwords != 2) {
		api_client_usage(r, "forward: missing box or ports");
		cli_error_hint(&r->error, "type", "atoll forward BOX LOCAL:PORT");
		return r->status;
	}
	if (forward_ports(r, a->words[1], &f))
		return r->status;
	status = forward_start(r, &f);
	tls_free(f.tls);
	return status;
}

static int run_forward(const struct cli *cli, const struct args *a)
{
	return api_client_command(cli, a, forward_box);
}

static const struct example examples[] = {
	{ "atoll forward demo 8080:3000",
	  "127.0.0.1:8080 of this machine leads to port 3000 of the box" },
	{ "atoll forward demo 0:5432", "any free port of this machine; prints it" },
	{ 0 },
};

const struct command command_forward = {
	.name = "forward",
	.group = "Boxes",
	.usage = "BOX LOCAL:PORT",
	.summary = "connect a port of this machine to a port of a box",
	.notes =
		"Listens on 127.0.0.1 until it is ended, prints the address, and carries TCP connections of any\n"
		"protocol, up to 256 at the same time. Works over -H, also with TLS; the port of the box need not be open\n"
		"as a preview.",
	.max_words = 2,
	.examples = examples,
	.run = run_forward,
};
