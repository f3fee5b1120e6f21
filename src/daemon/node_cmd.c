/* node_cmd.c - `atoll node`: tokens and nodes of a cluster, on a gateway; `atoll node join`, on the machine that joins. */
#include "base/cleanup.h"
#include "cli/table.h"
#include "daemon/cluster_engine.h"
#include "daemon/cluster_files.h"
#include "daemon/commands.h"
#include "daemon/node_drain.h"
#include "http/client.h"
#include "http/client_conn.h"
#include "http/tls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NODE_USES, NODE_TTL, NODE_NAME, NODE_WAIT, NODE_MOVE, NODE_STATE, NODE_CONFIG, NODE_FLAGS };
enum { NODE_TTL_MS = 3600 * 1000, NODE_STALL_MS = 15000 };

static const struct flag flags[NODE_FLAGS] = {
	[NODE_USES] = { "uses", 0, FLAG_COUNT, "N",
			"token: machines that can join with it (default 1)" },
	[NODE_TTL] = { "ttl", 0, FLAG_TIME, "TIME", "token: how long it can be used (default 1h)" },
	[NODE_NAME] = { "name", 0, FLAG_TEXT, "NAME",
			"join: name of this node (default: host name)" },
	[NODE_WAIT] = { "wait", 0, FLAG_SWITCH, NULL, "drain: until the node has no boxes" },
	[NODE_MOVE] = { "move", 0, FLAG_SWITCH, NULL,
			"drain: boxes with on_loss restart move to other nodes; the others are listed" },
	[NODE_STATE] = { "state", 0, FLAG_TEXT, "DIR", "state folder of the daemon" },
	[NODE_CONFIG] = { "config", 0, FLAG_TEXT, "FILE", "configuration file of the daemon" },
};

struct node_cmd {
	struct cluster_engine engine; /* the first member */
	json_t *machines;
};

static int node_failed(const struct cli *cli, const struct err *e)
{
	struct cli_error t;

	cli_error_what(&t, err_kind_name(e->kind), "%s", e->msg);
	return cli_error_print(&t, cli->json,
			       e->kind == ERR_NOT_FOUND ? STATUS_NOT_FOUND
			       : e->kind == ERR_DENIED  ? STATUS_NOT_ALLOWED
							: STATUS_FAILED);
}

static void node_print(json_t *take_doc)
{
	json_dumpf(take_doc, stdout, JSON_COMPACT);
	putchar('\n');
	json_decref(take_doc);
}

/* ---- on a gateway ---- */

static void node_done(void *user, const struct membership_answer *a, const struct err *e)
{
	struct node_cmd *x = user;

	if (a && a->machines)
		x->machines = json_incref(a->machines);
	cluster_engine_answer(&x->engine, e);
}

static int node_token(struct node_cmd *x, const struct cli *cli, const struct args *a,
		      struct err *e)
{
	struct membership *m = &x->engine.membership;
	uint64_t uses = args_value(a, NODE_USES, 1), ttl_ms = args_value(a, NODE_TTL, NODE_TTL_MS);
	struct join_token t;
	char text[JOIN_TOKEN_TEXT + 1];

	if (uses > JOIN_TOKEN_USES_MAX)
		return err_set(e, ERR_INVALID, "--uses %llu: at most %d", (unsigned long long)uses,
			       JOIN_TOKEN_USES_MAX);
	if (!ttl_ms || ttl_ms > JOIN_TOKEN_TTL_MAX_MS)
		return err_set(e, ERR_INVALID,
			       "--ttl: between 1 s and 24 days; give it like --ttl 24h");
	if (membership_load(m, cluster_engine_secrets(&x->engine), e) < 0)
		return e->kind == ERR_NOT_FOUND
			       ? err_set(e, ERR_NOT_FOUND,
					 "this machine is not a gateway: %.100s has no ca.key; type this "
					 "command on a gateway, or `atoll cluster init` first",
					 cluster_engine_secrets(&x->engine))
			       : -1;
	if (join_token_make(&t, m->fingerprint, e) < 0 || cluster_engine_connect(&x->engine, e) < 0)
		return -1;
	membership_add_token(m, &t, (unsigned)uses, ttl_ms, node_done, x);
	if (cluster_engine_wait(&x->engine, e) < 0)
		return -1;
	join_token_print(&t, text);
	if (cli->json) {
		node_print(json_pack("{s:s, s:I, s:I}", "token", text, "uses", (json_int_t)uses,
				     "ttl_ms", (json_int_t)ttl_ms));
		return 0;
	}
	puts(text);
	if (!cli->quiet)
		fprintf(stderr,
			"atoll: %llu machine%s can join with it within %llu min; it is not shown again\n"
			"  on a node: atoll node join https://GATEWAY:7071 TOKEN\n",
			(unsigned long long)uses, uses > 1 ? "s" : "",
			(unsigned long long)(ttl_ms / 60000));
	return 0;
}

static int node_load_machines(struct node_cmd *x, struct err *e)
{
	if (cluster_engine_connect(&x->engine, e) < 0)
		return -1;
	membership_list(&x->engine.membership, node_done, x);
	return cluster_engine_wait(&x->engine, e);
}

static int node_is_node(const json_t *m)
{
	return strcmp(json_string_value(json_object_get(m, "role")), "node") == 0;
}

/* "1, 4" */
static void node_gateways(const json_t *m, struct buf *out)
{
	json_t *g;
	size_t i;

	json_array_foreach(json_object_get(m, "gateways"), i, g)
		buf_printf(out, "%s%lld", i ? ", " : "", (long long)json_integer_value(g));
}

/* "-": the gateway of this machine does not know the node. */
static const char *node_drain_word(const json_t *m)
{
	const json_t *draining = json_object_get(m, "draining");

	return !draining ? "-" : json_is_true(draining) ? "yes" : "no";
}

static int node_list(struct node_cmd *x, const struct cli *cli, struct err *e)
{
	static const char *const columns[] = { "NUMBER", "NAME",     "STATE", "DRAIN",
					       "BOXES",  "GATEWAYS", NULL };
	json_t *all = json_array(), *m;
	struct table t;
	size_t i;

	if (node_load_machines(x, e) < 0) {
		json_decref(all);
		return -1;
	}
	node_drain_add_figures(cli, x->machines);
	table_init(&t, columns);
	json_array_foreach(x->machines, i, m)
	{
		auto_buf struct buf gateways = { 0 };

		if (!node_is_node(m))
			continue;
		json_array_append(all, m);
		node_gateways(m, &gateways);
		table_cell(&t, "%lld", (long long)json_integer_value(json_object_get(m, "number")));
		table_cell(&t, "%s", json_string_value(json_object_get(m, "name")));
		table_cell(&t, "%s", json_string_value(json_object_get(m, "state")));
		table_cell(&t, "%s", node_drain_word(m));
		if (json_object_get(m, "boxes"))
			table_cell(&t, "%lld",
				   (long long)json_integer_value(json_object_get(m, "boxes")));
		else
			table_cell(&t, "-");
		table_cell(&t, "%s", gateways.len ? buf_str(&gateways) : "-");
	}
	if (cli->json)
		node_print(json_pack("{s:O}", "items", all));
	else
		table_print(&t, !cli->quiet);
	json_decref(all);
	return 0;
}

/* By number or by name. */
static const json_t *node_find(struct node_cmd *x, const char *which, struct err *e)
{
	json_t *m;
	size_t i;

	if (node_load_machines(x, e) < 0)
		return NULL;
	json_array_foreach(x->machines, i, m)
	{
		char number[24];

		snprintf(number, sizeof(number), "%lld",
			 (long long)json_integer_value(json_object_get(m, "number")));
		if (node_is_node(m) &&
		    (!strcmp(which, number) ||
		     !strcmp(which, json_string_value(json_object_get(m, "name")))))
			return m;
	}
	err_set(e, ERR_NOT_FOUND, "the cluster has no node '%.60s'; type `atoll node ls`", which);
	return NULL;
}

static int node_show(struct node_cmd *x, const struct cli *cli, const char *which, struct err *e)
{
	const json_t *m = node_find(x, which, e);
	auto_buf struct buf gateways = { 0 };

	if (!m)
		return -1;
	node_drain_add_figures(cli, x->machines);
	if (cli->json) {
		node_print(json_deep_copy(m));
		return 0;
	}
	node_gateways(m, &gateways);
	printf("number    %lld\nname      %s\nstate     %s\ndraining  %s\ngateways  %s\n",
	       (long long)json_integer_value(json_object_get(m, "number")),
	       json_string_value(json_object_get(m, "name")),
	       json_string_value(json_object_get(m, "state")), node_drain_word(m),
	       gateways.len ? buf_str(&gateways) : "-");
	return 0;
}

static int node_remove(struct node_cmd *x, const char *which, struct err *e)
{
	const json_t *m = node_find(x, which, e);

	if (!m)
		return -1;
	membership_remove(&x->engine.membership,
			  (unsigned)json_integer_value(json_object_get(m, "number")), node_done, x);
	return cluster_engine_wait(&x->engine, e);
}

/* ---- joining ---- */

/* The error of a gateway as it was sent. */
static int node_refused(const struct http_answer *a, struct err *e)
{
	json_t *doc = json_loadb(a->body.p ? a->body.p : "", a->body.len, 0, NULL);
	const char *text =
		json_string_value(json_object_get(json_object_get(doc, "error"), "message"));

	err_set(e,
		a->status == 403   ? ERR_DENIED
		: a->status == 409 ? ERR_CONFLICT
		: a->status == 400 ? ERR_INVALID
				   : ERR_SYS,
		"the gateway refuses this machine (status %d): %.190s", a->status,
		text ? text : "without a reason");
	json_decref(doc);
	return -1;
}

/* The answer of a gateway: number, certificate and CA, which must be the one of the token. */
static int node_read_answer(const struct http_answer *a, const struct join_token *t,
			    struct cluster_identity *id, struct cluster_peer *self, struct err *e)
{
	json_t *doc = json_loadb(a->body.p ? a->body.p : "", a->body.len, 0, NULL);
	const char *cert, *ca;
	unsigned char fingerprint[CLUSTER_FINGERPRINT];
	int number, rc = json_unpack(doc, "{s:i, s:s, s:s}", "number", &number, "certificate",
				     &cert, "ca", &ca);

	if (rc < 0) {
		err_set(e, ERR_INVALID,
			"the gateway did not answer with number, certificate and ca");
	} else {
		buf_puts(&id->cert, cert);
		buf_puts(&id->ca, ca);
		rc = cluster_ca_fingerprint(&id->ca, fingerprint, e) < 0 ||
				     cluster_identity_self(id, self, e) < 0
			     ? -1
			     : 0;
		if (rc == 0 && (memcmp(fingerprint, t->fingerprint, sizeof(fingerprint)) != 0 ||
				self->role != CLUSTER_NODE || (int)self->number != number))
			rc = err_set(
				e, ERR_INVALID,
				"the certificate that the gateway sent is not of this cluster, or not "
				"of node %d",
				number);
	}
	json_decref(doc);
	return rc;
}

static int node_ask(const char *url, const struct join_token *t, const char *token,
		    const char *request, const char *name, struct http_answer *out, struct err *e)
{
	static const struct http_header json = { "content-type", "application/json" };
	json_t *doc =
		json_pack("{s:s, s:s, s:s}", "token", token, "request", request, "name", name);
	auto_free char *body = json_dumps(doc, JSON_COMPACT);
	struct http_client_options options = { .stall_ms = NODE_STALL_MS, .body_max = 64 << 10 };
	struct http_call call = { .method = "POST",
				  .target = "/cluster/join",
				  .headers = &json,
				  .nheaders = 1,
				  .body = body,
				  .body_len = strlen(body) };
	struct http_client *c = NULL;
	int rc = cluster_tls_joining(t->fingerprint, &options.tls, e);

	json_decref(doc);
	if (rc == 0)
		rc = http_client_new(url, &options, &c, e) < 0 || http_call(c, &call, out, e) < 0
			     ? -1
			     : 0;
	http_client_free(c);
	tls_free(options.tls);
	if (rc < 0 && e->kind == ERR_DENIED)
		return err_in(e, "the gateway is not one of the cluster of this token");
	return rc;
}

static int node_check_url(const char *url, struct client_conn_url *out, struct err *e)
{
	if (client_conn_url_parse(url, out, e) == 0 && out->kind == CLIENT_CONN_TLS &&
	    !out->prefix[0])
		return 0;
	return err_set(
		e, ERR_INVALID,
		"'%.80s' is not the address of a gateway; write it like https://gateway.example.org:7071",
		url);
}

static void node_join_report(const struct cli *cli, const struct config *c,
			     const struct cluster_peer *self, const char *name,
			     const struct client_conn_url *u)
{
	if (cli->json) {
		node_print(json_pack("{s:i, s:s}", "number", (int)self->number, "name", name));
		return;
	}
	printf("%u\n", self->number);
	if (cli->quiet)
		return;
	fprintf(stderr, "atoll: this machine is node %u ('%s') of the cluster\n", self->number,
		name);
	if (config_number(c, CONFIG_CLUSTER_ROLE) == CLUSTER_ALONE)
		fprintf(stderr,
			"  settings: cluster.role = \"node\", cluster.gateways = [\"%s:%s\"]\n",
			u->host, u->port);
	fprintf(stderr, "  start:    atoll serve\n");
}

static int node_join(struct node_cmd *x, const struct cli *cli, const struct args *a, struct err *e)
{
	struct cluster_identity id = { 0 };
	struct cluster_peer self;
	struct client_conn_url u;
	struct http_answer answer = { 0 };
	struct join_token t;
	auto_buf struct buf request = { 0 };
	char name[CLUSTER_NAME_MAX + 1];
	int rc;

	if (node_check_url(a->words[1], &u, e) < 0 || join_token_parse(&t, a->words[2], e) < 0)
		return -1;
	cluster_files_name(&x->engine.config, name);
	rc = cluster_files_key(&x->engine.config, &id.key, &request, e);
	if (rc == 0)
		rc = node_ask(a->words[1], &t, a->words[2], buf_str(&request), name, &answer, e);
	if (rc == 0)
		rc = answer.status != 200 ? node_refused(&answer, e)
					  : node_read_answer(&answer, &t, &id, &self, e);
	if (rc == 0)
		rc = cluster_files_store(&id, &self, &x->engine.config, e);
	if (rc == 0)
		node_join_report(cli, &x->engine.config, &self, name, &u);
	http_answer_fini(&answer);
	cluster_identity_fini(&id);
	return rc;
}

/* ---- the command ---- */

static int node_usage(const struct cli *cli)
{
	struct cli_error t;

	cli_error_what(&t, "usage", "node: missing or superfluous words");
	cli_error_hint(
		&t, "type",
		"atoll node token | join URL TOKEN | ls | show NODE | drain NODE | undrain NODE | rm NODE");
	return cli_error_print(&t, cli->json, STATUS_USAGE);
}

static int run_node(const struct cli *cli, const struct args *a)
{
	const char *what = a->nwords ? a->words[0] : "ls";
	int drains = !strcmp(what, "drain") || !strcmp(what, "undrain");
	unsigned words = !strcmp(what, "join")                                    ? 3
			 : drains || !strcmp(what, "show") || !strcmp(what, "rm") ? 2
										  : 1;
	const struct cluster_engine_flags f = { .config = args_text(a, NODE_CONFIG, NULL),
						.state = args_text(a, NODE_STATE, NULL),
						.name = args_text(a, NODE_NAME, NULL) };
	struct node_cmd x = { 0 };
	struct err e;
	int rc;

	if (a->nwords && a->nwords != words)
		return node_usage(cli);
	if (drains)
		return node_drain(cli, a, args_has(a, NODE_WAIT), args_has(a, NODE_MOVE));
	rc = cluster_engine_load(&x.engine, &f, &e);
	if (rc == 0)
		rc = !strcmp(what, "token")  ? node_token(&x, cli, a, &e)
		     : !strcmp(what, "join") ? node_join(&x, cli, a, &e)
		     : !strcmp(what, "show") ? node_show(&x, cli, a->words[1], &e)
		     : !strcmp(what, "rm")   ? node_remove(&x, a->words[1], &e)
					     : node_list(&x, cli, &e);
	cluster_engine_close(&x.engine);
	json_decref(x.machines);
	return rc < 0 ? node_failed(cli, &e) : 0;
}

static const struct example examples[] = {
	{ "atoll node token",
	  "on a gateway: a token with which one machine can join within an hour" },
	{ "atoll node token --uses 3 --ttl 24h", "the same for three machines and a day" },
	{ "atoll node join https://gateway.example.org:7071 TOKEN", "on a machine: become a node" },
	{ "atoll node drain 7 --wait", "no new boxes on node 7, and wait until it has none" },
	{ "atoll node drain 7 --move",
	  "no new boxes on node 7; its boxes with on_loss restart move to other nodes" },
	{ "atoll node rm 7", "refuse node 7 from now on" },
	{ 0 },
};

const struct command command_node = {
	/* clang-format off */
	.name = "node",
	.group = "Machine",
	.usage = "token | join URL TOKEN | ls | show NODE | drain NODE | undrain NODE | rm NODE",
	.summary = "add, list, drain and remove nodes of a cluster",
	.notes = "join runs on the machine that joins; it sends the token only to a gateway of the token's cluster. drain and\n"
		 "undrain are requests to the daemon: a gateway (-H URL), or the node itself as `self`. The others run on a\n"
		 "gateway and use cluster.database and cluster.secrets. NODE is a number or a name.",
	.words = "token join ls show drain undrain rm",
	.flags = flags,
	.nflags = NODE_FLAGS,
	.max_words = 3,
	.examples = examples,
	.run = run_node,
	/* clang-format on */
};
