/* gateway_certificate.c - see gateway_certificate.h. */
#include "daemon/gateway_certificate.h"
#include "base/log.h"
#include "cluster/ca.h"
#include "http/http.h"
#include "http/tls.h"

#include <time.h>

/* The certificate is looked at that often; after a failure it is requested again then. */
enum { RENEW_LOOK_MS = 3600 * 1000, RENEW_AGAIN_MS = 60 * 1000 };

static void gateway_certificate_failed(struct gateway_certificate *g, const struct err *e)
{
	log_error("the certificate of this gateway was not renewed", LOG_E(e));
	timer_set(&g->look, RENEW_AGAIN_MS);
}

static void gateway_certificate_done(struct cluster_request *r, const json_t *answer,
				     const struct err *e)
{
	struct gateway_certificate *g = loop_owner(r, struct gateway_certificate, ask);
	const char *cert = json_string_value(json_object_get(answer, "certificate"));
	struct ssl_ctx_st *fresh = NULL;
	struct err why;

	if (e) {
		gateway_certificate_failed(g, e);
		return;
	}
	buf_cut(&g->id.cert, 0);
	buf_puts(&g->id.cert, cert ? cert : "");
	if (cluster_tls_server(&g->id, CLUSTER_CLIENTS_JOINING, &fresh, &why) < 0) {
		gateway_certificate_failed(g, &why);
		return;
	}
	http_set_tls(g->http, fresh);
	tls_free(g->tls);
	g->tls = fresh;
	log_info("the certificate of this gateway was renewed");
	timer_set(&g->look, RENEW_LOOK_MS);
}

static void gateway_certificate_look(struct timer *t)
{
	struct gateway_certificate *g = loop_owner(t, struct gateway_certificate, look);
	auto_buf struct buf request = { 0 };
	int64_t at_s;
	struct err e;

	if (cluster_ca_renew_at(&g->id.cert, &at_s, &e) == 0 && at_s > time(NULL)) {
		timer_set(&g->look, RENEW_LOOK_MS);
		return;
	}
	if (cluster_ca_request_for(&g->id.key, &request, &e) < 0) {
		gateway_certificate_failed(g, &e);
		return;
	}
	g->ask = (struct cluster_request){ .done = gateway_certificate_done };
	cluster_client_send(g->client, &g->ask,
			    json_pack("{s:{s:s, s:i, s:s}}", "renew", "role", "gateway", "number",
				      (int)g->self.number, "request", buf_str(&request)));
}

void gateway_certificate_start(struct gateway_certificate *g, struct loop *l,
			       struct cluster_client *client, struct http_server *http)
{
	g->client = client;
	g->http = http;
	timer_init(&g->look, l, gateway_certificate_look);
	timer_set(&g->look, 0);
}

void gateway_certificate_fini(struct gateway_certificate *g)
{
	cluster_client_cancel(&g->ask);
	timer_fini(&g->look);
	tls_free(g->tls);
	cluster_identity_fini(&g->id);
}
