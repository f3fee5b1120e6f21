/* tunnel_accept.c - GET /tunnel: a connection of a node is taken out of the HTTP server. */
#include "cluster/certificates.h"
#include "cluster/tunnel_internal.h"
#include "base/log.h"
#include "http/http.h"

#include <stdio.h>
#include <string.h>
#include <sys/uio.h>

static void tunnel_refuse_request(struct tunnels *t, struct http_req *r, int status,
				  const char *why)
{
	t->figures.rejected++;
	log_warn("tunnel refused", LOG_S("peer", r->peer), LOG_S("why", why));
	http_set(r, "Atoll-Reason", "%s", why);
	http_reply(r, status, "text/plain", why, strlen(why));
}

/* Of the certificate; nothing that the peer sends changes it. A machine with the role `both` has the
 * certificate of a gateway. */
static int tunnel_identify(struct tunnels *t, const struct http_req *r, struct cluster_peer *out,
			   struct err *e)
{
	struct ssl_st *tls = http_tls(r);

	if (!tls)
		return err_set(e, ERR_DENIED, "a tunnel needs TLS");
	if (cluster_peer(tls, out, e) < 0)
		return -1;
	if (t->hooks.permitted && !t->hooks.permitted(t->hooks.user, out->number))
		return err_set(
			e, ERR_DENIED,
			"node %u is not a member of the cluster: it was removed, or joined a moment ago",
			out->number);
	return 0;
}

static int tunnel_check_request(const struct tunnels *t, const struct http_req *r, struct err *e)
{
	const char *upgrade = http_header(r, "upgrade"), *version = http_header(r, "atoll-version"),
		   *kind = http_header(r, "atoll-tunnel");

	if (strcmp(r->method, "GET") != 0 || !upgrade || strcmp(upgrade, "atoll-tunnel/1") != 0)
		return err_set(e, ERR_INVALID,
			       "not a GET with 'Upgrade: atoll-tunnel/1', but a %s with '%.40s'",
			       r->method, upgrade ? upgrade : "");
	if (!kind || (strcmp(kind, "control") != 0 && strcmp(kind, "requests") != 0))
		return err_set(e, ERR_INVALID,
			       "Atoll-Tunnel is '%.40s', not 'control' or 'requests'",
			       kind ? kind : "");
	return control_check_version(t->version, version ? version : "", e);
}

/* The socket is new, so its buffer has room for the answer. */
static int tunnel_switch(struct http_req *r, struct upstream_link *out, struct err *e)
{
	static const char answer[] = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n"
				     "Upgrade: atoll-tunnel/1\r\n\r\n";
	struct iovec all = { (void *)answer, sizeof(answer) - 1 };
	size_t sent;

	if (http_detach(r, out, e) < 0)
		return -1;
	if (upstream_link_write(out, &all, 1, &sent) == LINK_OK)
		return 0;
	upstream_link_close(out);
	return err_set(e, ERR_SYS, "the connection broke");
}

static void tunnel_read_machine(const struct http_req *r, char out[TUNNEL_MACHINE])
{
	const char *text = http_header(r, "atoll-machine");

	snprintf(out, TUNNEL_MACHINE, "%s", text ? text : "");
}

void tunnels_accept(struct tunnels *t, struct http_req *r)
{
	struct cluster_peer peer;
	struct upstream_link conn;
	char from[sizeof(r->peer)], machine[TUNNEL_MACHINE];
	struct err e;
	int control;

	if (tunnel_identify(t, r, &peer, &e) < 0) {
		tunnel_refuse_request(t, r, 403, e.msg);
		return;
	}
	if (tunnel_check_request(t, r, &e) < 0) {
		tunnel_refuse_request(t, r, e.kind == ERR_CONFLICT ? 409 : 400, e.msg);
		return;
	}
	control = strcmp(http_header(r, "atoll-tunnel"), "control") == 0;
	tunnel_read_machine(r, machine);
	if (tunnels_check(t, peer.number, machine, control, &e) < 0) {
		tunnel_refuse_request(t, r, 409, e.msg);
		return;
	}
	snprintf(from, sizeof(from), "%s", r->peer);
	if (tunnel_switch(r, &conn, &e) < 0 ||
	    tunnels_connected(t, peer.number, machine, from, control, conn, &e) < 0)
		log_warn("tunnel refused", LOG_S("peer", from), LOG_E(&e));
}
