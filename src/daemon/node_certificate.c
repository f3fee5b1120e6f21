/* node_certificate.c - see node_certificate.h. */
#include "daemon/node_certificate.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "cluster/ca.h"
#include "http/tls.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
	NODE_LOOK_MS = 3600 * 1000,
	NODE_AGAIN_MS = 60 * 1000, /* after a failure */
	NODE_CONNECT_MS = 1000,    /* no gateway is connected */
};

/* 0: it is a certificate of the same machine for the same key. *out_tls is the caller's. */
static int node_certificate_check(const struct cluster_identity *own, const char *cert,
				  struct cluster_identity *out, struct ssl_ctx_st **out_tls,
				  struct err *e)
{
	struct cluster_peer a, b;

	*out = (struct cluster_identity){ 0 };
	buf_add(&out->ca, own->ca.p, own->ca.len);
	buf_add(&out->key, own->key.p, own->key.len);
	buf_puts(&out->cert, cert);
	if (cluster_identity_self(own, &a, e) < 0 || cluster_identity_self(out, &b, e) < 0)
		return -1;
	if (a.role != b.role || a.number != b.number)
		return err_set(e, ERR_INVALID, "it is the certificate of another machine, %u",
			       b.number);
	return cluster_tls_client(out, out_tls, e);
}

void node_certificate_load(struct cluster_identity *id, const char *folder)
{
	auto_buf struct buf cert = { 0 };
	struct cluster_identity next = { 0 };
	struct ssl_ctx_st *tls = NULL;
	int64_t now_s = 0, next_s = 0;
	struct err e;

	if (cluster_read_file(folder, NODE_CERTIFICATE_FILE, &cert, &e) < 0) {
		if (e.kind != ERR_NOT_FOUND)
			log_warn("the renewed certificate was not read", LOG_E(&e));
		return;
	}
	if (node_certificate_check(id, buf_str(&cert), &next, &tls, &e) < 0)
		log_warn("the renewed certificate is not used", LOG_E(&e));
	else if (cluster_ca_renew_at(&id->cert, &now_s, &e) == 0 &&
		 cluster_ca_renew_at(&next.cert, &next_s, &e) == 0 && next_s > now_s) {
		buf_cut(&id->cert, 0);
		buf_puts(&id->cert, buf_str(&cert));
	}
	tls_free(tls);
	cluster_identity_fini(&next);
}

static int node_certificate_store(const struct node_certificate *n, const char *cert, struct err *e)
{
	auto_fd int dir = open(n->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd = -1;
	static const char temporary[] = NODE_CERTIFICATE_FILE ".new";

	if (dir >= 0)
		fd = openat(dir, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, cert, strlen(cert)) != (ssize_t)strlen(cert) || fsync(fd) < 0 ||
	    renameat(dir, temporary, dir, NODE_CERTIFICATE_FILE) < 0 || fsync(dir) < 0)
		return err_sys(e, "write %.160s/" NODE_CERTIFICATE_FILE, n->folder);
	return 0;
}

static void node_certificate_failed(struct node_certificate *n, const char *why)
{
	log_error("the certificate of this node was not renewed", LOG_S("why", why));
	timer_set(&n->look, NODE_AGAIN_MS);
}

void node_certificate_came(struct node_certificate *n, const char *cert, const char *why)
{
	struct cluster_identity next = { 0 };
	struct ssl_ctx_st *tls = NULL;
	struct err e = { 0 };

	if (!cert) {
		node_certificate_failed(n, why);
		return;
	}
	if (node_certificate_check(&n->id, cert, &next, &tls, &e) < 0 ||
	    node_certificate_store(n, cert, &e) < 0) {
		node_certificate_failed(n, e.msg);
		tls_free(tls);
		cluster_identity_fini(&next);
		return;
	}
	tunnel_client_set_tls(n->client, tls);
	tls_free(n->tls);
	n->tls = tls;
	cluster_identity_fini(&n->id);
	n->id = next;
	log_info("the certificate of this node was renewed");
	timer_set(&n->look, NODE_LOOK_MS);
}

static void node_certificate_look(struct timer *t)
{
	struct node_certificate *n = loop_owner(t, struct node_certificate, look);
	auto_buf struct buf request = { 0 };
	int64_t at_s;
	struct err e;

	if (cluster_ca_renew_at(&n->id.cert, &at_s, &e) == 0 && at_s > time(NULL)) {
		timer_set(&n->look, NODE_LOOK_MS);
		return;
	}
	if (cluster_ca_request_for(&n->id.key, &request, &e) < 0)
		node_certificate_failed(n, e.msg);
	else if (tunnel_client_send_renew(n->client, buf_str(&request)))
		timer_set(&n->look, NODE_AGAIN_MS); /* unless an answer comes */
	else
		timer_set(&n->look, NODE_CONNECT_MS);
}

void node_certificate_start(struct node_certificate *n, struct loop *l, struct tunnel_client *c)
{
	n->client = c;
	timer_init(&n->look, l, node_certificate_look);
	timer_set(&n->look, 0);
}

void node_certificate_fini(struct node_certificate *n)
{
	timer_fini(&n->look);
	tls_free(n->tls);
	cluster_identity_fini(&n->id);
}
