/* doctor_cluster.c - see doctor_cluster.h. */
#include "daemon/doctor_cluster.h"
#include "cluster/ca.h"
#include "daemon/cluster_engine.h"
#include "daemon/cluster_files.h"
#include "daemon/node_certificate.h"
#include "http/client_conn.h"
#include "http/tls.h"

#include <stdio.h>
#include <string.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

enum { DOCTOR_CONNECT_MS = 2000, DOCTOR_DAY_S = 86400 };

struct doctor_cluster_rows {
	doctor_row *row;
	void *user;
	const struct config *config;
	struct cluster_identity id;
};

/* 0: the identity is loaded. */
static int doctor_certificate(struct doctor_cluster_rows *x)
{
	struct cluster_peer self = { 0 };
	int64_t renew_s = 0, days;
	char value[256], folder[1100];
	struct err e = { 0 };

	if (geteuid() != 0 && access(config_text(x->config, CONFIG_STATE), R_OK) != 0) {
		x->row(x->user, "certificate", DOCTOR_POOR, "cannot be read by this user",
		       "sudo atoll doctor");
		return -1;
	}
	snprintf(folder, sizeof(folder), "%.1000s/server", config_text(x->config, CONFIG_STATE));
	if (cluster_files_load(&x->id, x->config, &e) == 0)
		node_certificate_load(&x->id, folder);
	if (!x->id.cert.len || cluster_identity_self(&x->id, &self, &e) < 0 ||
	    cluster_ca_renew_at(&x->id.cert, &renew_s, &e) < 0) {
		x->row(x->user, "certificate", DOCTOR_BAD, e.msg,
		       "join the cluster: atoll node join, or atoll cluster init");
		return -1;
	}
	days = (renew_s - (int64_t)time(NULL)) / DOCTOR_DAY_S + CLUSTER_RENEW_DAYS;
	snprintf(value, sizeof(value), "%s %u, %s %lld days",
		 self.role == CLUSTER_GATEWAY ? "gateway" : "node", self.number,
		 days < 0 ? "expired for" : "valid for", (long long)(days < 0 ? -days : days));
	x->row(x->user, "certificate",
	       days < 0                    ? DOCTOR_BAD
	       : days < CLUSTER_RENEW_DAYS ? DOCTOR_POOR
					   : DOCTOR_GOOD,
	       value,
	       days >= CLUSTER_RENEW_DAYS ? ""
	       : self.role == CLUSTER_GATEWAY
		       ? "atoll cluster init"
		       : "it is renewed over the tunnel; else: atoll node join");
	return 0;
}

/* Certificates are compared with the clock. */
static void doctor_clock(struct doctor_cluster_rows *x)
{
	struct timex t = { 0 };
	int state = adjtimex(&t);
	char text[64];
	time_t now = time(NULL);

	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", gmtime(&now));
	if (state == TIME_ERROR || (t.status & STA_UNSYNC))
		x->row(x->user, "clock", DOCTOR_POOR, "not synchronized",
		       "sudo timedatectl set-ntp true; with a wrong clock certificates are refused");
	else
		x->row(x->user, "clock", DOCTOR_GOOD, text, "");
}

/* A handshake, in which the gateway shows a certificate of this cluster; nothing is sent. */
static int doctor_connect(struct ssl_ctx_st *tls, const char *address, struct err *e)
{
	struct client_conn c = { .fd = -1 };
	struct client_conn_url u;
	char url[300];
	int rc;

	snprintf(url, sizeof(url), "https://%.280s", address);
	if (client_conn_url_parse(url, &u, e) < 0)
		return -1;
	c.stall_ms = DOCTOR_CONNECT_MS;
	rc = client_conn_open(&c, &u, tls, DOCTOR_CONNECT_MS, e);
	client_conn_close(&c);
	return rc;
}

static void doctor_gateways(struct doctor_cluster_rows *x)
{
	const char *const *all = config_list(x->config, CONFIG_CLUSTER_GATEWAYS);
	struct ssl_ctx_st *tls = NULL;
	unsigned n = 0, reached = 0;
	unsigned char fingerprint[CLUSTER_FINGERPRINT];
	char value[240], first[160] = "";
	struct err e = { 0 };

	if (cluster_ca_fingerprint(&x->id.ca, fingerprint, &e) < 0 ||
	    cluster_tls_joining(fingerprint, &tls, &e) < 0) {
		x->row(x->user, "gateways", DOCTOR_BAD, e.msg, "atoll node join");
		return;
	}
	for (; all[n]; n++) {
		if (doctor_connect(tls, all[n], &e) == 0)
			reached++;
		else if (!*first)
			snprintf(first, sizeof(first), "%.60s: %.90s", all[n], e.msg);
	}
	tls_free(tls);
	snprintf(value, sizeof(value), "%u of %u reached%s%s", reached, n, *first ? "; " : "",
		 first);
	x->row(x->user, "gateways",
	       reached == n ? DOCTOR_GOOD
	       : reached    ? DOCTOR_POOR
			    : DOCTOR_BAD,
	       value,
	       reached == n ? ""
			    : "check cluster.gateways, and that port 7071 of a gateway is open");
}

static void doctor_database(struct doctor_cluster_rows *x, struct cluster_engine *engine)
{
	struct err e;

	if (access(cluster_engine_secrets(engine), R_OK) != 0)
		x->row(x->user, "database", DOCTOR_POOR, "cluster.secrets cannot be read",
		       "sudo atoll doctor, or atoll cluster init");
	else if (cluster_engine_connect(engine, &e) < 0)
		x->row(x->user, "database", DOCTOR_BAD, e.msg,
		       "atoll cluster check; running boxes and unnamed boxes need no database");
	else
		x->row(x->user, "database", DOCTOR_GOOD, "answers", "");
}

/* Of a node: a connection, and with https its certificate; nothing is sent. */
static int doctor_objects_connect(const char *text, struct err *e)
{
	struct client_conn c = { .fd = -1 };
	struct client_conn_url u;
	struct ssl_ctx_st *tls = NULL;
	int rc;

	if (client_conn_url_parse(text, &u, e) < 0 ||
	    (strncmp(text, "https:", 6) == 0 && tls_client(NULL, &tls, e) < 0))
		return -1;
	c.stall_ms = DOCTOR_CONNECT_MS;
	rc = client_conn_open(&c, &u, tls, DOCTOR_CONNECT_MS, e);
	client_conn_close(&c);
	tls_free(tls);
	return rc;
}

static void doctor_objects(struct doctor_cluster_rows *x, enum cluster_role role)
{
	const char *url = config_text(x->config, CONFIG_CLUSTER_OBJECTS),
		   *secrets = config_text(x->config, CONFIG_CLUSTER_SECRETS);
	char path[1100];
	struct err e;

	if (!url)
		return;
	snprintf(path, sizeof(path), "%.1000s/objects", secrets ? secrets : "");
	if (cluster_is_node(role) && doctor_objects_connect(url, &e) < 0)
		x->row(x->user, "object store", DOCTOR_POOR, e.msg,
		       "check cluster.objects; until then files travel through gateways");
	else if (cluster_is_gateway(role) && access(path, R_OK) != 0)
		x->row(x->user, "object store", DOCTOR_POOR,
		       "the file 'objects' of cluster.secrets cannot be read",
		       "write access key, secret key and region into it; mode 0600");
	else
		x->row(x->user, "object store", DOCTOR_GOOD,
		       cluster_is_node(role) ? "reached" : "its keys can be read", "");
}

void doctor_cluster(doctor_row *row, void *user)
{
	const struct cluster_engine_flags none = { 0 };
	struct cluster_engine engine;
	struct doctor_cluster_rows x = { .row = row, .user = user };
	enum cluster_role role;
	struct err e;

	if (cluster_engine_load(&engine, &none, &e) < 0) {
		cluster_engine_close(&engine);
		return;
	}
	x.config = &engine.config;
	role = (enum cluster_role)config_number(x.config, CONFIG_CLUSTER_ROLE);
	if (role != CLUSTER_ALONE) {
		if (doctor_certificate(&x) == 0 && cluster_is_node(role))
			doctor_gateways(&x);
		if (cluster_is_gateway(role))
			doctor_database(&x, &engine);
		doctor_objects(&x, role);
		doctor_clock(&x);
	}
	cluster_identity_fini(&x.id);
	cluster_engine_close(&engine);
}
