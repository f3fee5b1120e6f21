/* cluster_cmd.c - `atoll cluster`: on a gateway, with the database of the cluster and the folder cluster.secrets. */
#include "base/cleanup.h"
#include "base/hex.h"
#include "cli/table.h"
#include "cluster/ca.h"
#include "daemon/cluster_engine.h"
#include "daemon/cluster_files.h"
#include "daemon/commands.h"
#include "http/tls.h"
#include "secret/vault.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum { CLUSTER_DATABASE, CLUSTER_NAME, CLUSTER_STATE, CLUSTER_CONFIG, CLUSTER_FLAGS };

static const struct flag flags[CLUSTER_FLAGS] = {
	[CLUSTER_DATABASE] = { "database", 0, FLAG_TEXT, "URL",
			       "init: PostgreSQL of the cluster, without password" },
	[CLUSTER_NAME] = { "name", 0, FLAG_TEXT, "NAME",
			   "init: name of this gateway (default: host name)" },
	[CLUSTER_STATE] = { "state", 0, FLAG_TEXT, "DIR", "state folder of the daemon" },
	[CLUSTER_CONFIG] = { "config", 0, FLAG_TEXT, "FILE", "configuration file of the daemon" },
};

struct cluster_cmd {
	struct cluster_engine engine;                /* the first member */
	char authority[2 * CLUSTER_FINGERPRINT + 1]; /* of the database; "": none */
	struct cluster_peer peer;
	struct buf cert;
	json_t *machines;
};

static int cluster_failed(const struct cli *cli, const struct err *e)
{
	struct cli_error t;

	cli_error_what(&t, err_kind_name(e->kind), "%s", e->msg);
	cli_error_hint(&t, "settings", "atoll config show --origin");
	return cli_error_print(&t, cli->json,
			       e->kind == ERR_NOT_FOUND ? STATUS_NOT_FOUND
			       : e->kind == ERR_DENIED  ? STATUS_NOT_ALLOWED
							: STATUS_FAILED);
}

/* ---- init ---- */

static void cluster_got_authority(void *user, const struct membership_answer *a,
				  const struct err *e)
{
	struct cluster_cmd *x = user;

	if (a)
		snprintf(x->authority, sizeof(x->authority), "%s", a->fingerprint);
	cluster_engine_answer(&x->engine, e);
}

static int cluster_ask_authority(struct cluster_cmd *x, int claim, struct err *e)
{
	membership_authority(&x->engine.membership, claim, cluster_got_authority, x);
	return cluster_engine_wait(&x->engine, e);
}

static int cluster_check_authority(const struct cluster_cmd *x, struct err *e)
{
	char own[2 * CLUSTER_FINGERPRINT + 1];

	hex_encode(own, x->engine.membership.fingerprint, CLUSTER_FINGERPRINT);
	if (strcmp(own, x->authority) == 0)
		return 0;
	return err_set(
		e, ERR_CONFLICT,
		"the database belongs to the cluster with the CA %.16s..., and %.80s has the CA "
		"%.16s...; use the folder cluster.secrets of a gateway of that cluster, or another "
		"database",
		x->authority, cluster_engine_secrets(&x->engine), own);
}

/* A CA is made only for a database that belongs to none. */
static int cluster_init_ca(struct cluster_cmd *x, struct err *e)
{
	const char *secrets = cluster_engine_secrets(&x->engine);

	if (cluster_ask_authority(x, 0, e) < 0)
		return -1;
	if (membership_load(&x->engine.membership, secrets, e) < 0) {
		if (e->kind != ERR_NOT_FOUND)
			return -1;
		if (*x->authority)
			return err_set(
				e, ERR_CONFLICT,
				"the database belongs to a cluster already (its CA is %.16s...), and "
				"%.80s has no ca.key; copy that folder from another gateway, then type "
				"`atoll cluster init` again",
				x->authority, secrets);
		if (cluster_files_make_ca(secrets, e) < 0 ||
		    membership_load(&x->engine.membership, secrets, e) < 0)
			return -1;
	}
	if (cluster_files_check_secrets(secrets, e) < 0 || cluster_ask_authority(x, 1, e) < 0)
		return -1;
	return cluster_check_authority(x, e);
}

static void cluster_got_number(void *user, const struct membership_answer *a, const struct err *e)
{
	struct cluster_cmd *x = user;

	if (a) {
		x->peer = a->peer;
		buf_puts(&x->cert, a->cert);
	}
	cluster_engine_answer(&x->engine, e);
}

static int cluster_init_number(struct cluster_cmd *x, const char *name, struct err *e)
{
	struct cluster_identity id = { .ca = x->engine.membership.ca_cert };
	auto_buf struct buf request = { 0 };
	int rc = cluster_files_key(&x->engine.config, &id.key, &request, e);

	if (rc == 0) {
		membership_add_gateway(&x->engine.membership, name, buf_str(&request),
				       cluster_got_number, x);
		rc = cluster_engine_wait(&x->engine, e);
	}
	if (rc == 0) {
		id.cert = x->cert;
		rc = cluster_files_store(&id, &x->peer, &x->engine.config, e);
	}
	if (id.key.p)
		explicit_bzero(id.key.p, id.key.room);
	buf_fini(&id.key);
	return rc;
}

static void cluster_init_report(const struct cluster_cmd *x, const struct cli *cli,
				const char *name)
{
	const struct config *c = &x->engine.config;
	int alone = config_number(c, CONFIG_CLUSTER_ROLE) == CLUSTER_ALONE;

	if (cli->json) {
		json_t *doc = json_pack("{s:i, s:s, s:s, s:s}", "number", (int)x->peer.number,
					"name", name, "fingerprint", x->authority, "secrets",
					cluster_engine_secrets(&x->engine));

		json_dumpf(doc, stdout, JSON_COMPACT);
		putchar('\n');
		json_decref(doc);
		return;
	}
	printf("%u\n", x->peer.number);
	if (cli->quiet)
		return;
	fprintf(stderr,
		"atoll: this machine is gateway %u ('%s') of the cluster with the CA %.16s...\n",
		x->peer.number, name, x->authority);
	if (alone)
		fprintf(stderr, "  settings:   cluster.role = \"gateway\" (or \"both\")%s%s%s\n",
			c->values[CONFIG_CLUSTER_DATABASE].from == FROM_FLAG
				? ", cluster.database = \""
				: "",
			c->values[CONFIG_CLUSTER_DATABASE].from == FROM_FLAG
				? config_text(c, CONFIG_CLUSTER_DATABASE)
				: "",
			c->values[CONFIG_CLUSTER_DATABASE].from == FROM_FLAG ? "\"" : "");
	fprintf(stderr,
		"  start:      atoll serve\n"
		"  nodes:      atoll node token\n"
		"  back up:    %s (its owner can add machines to the cluster)\n",
		cluster_engine_secrets(&x->engine));
}

/* All gateways encrypt secrets of teams with this key, unless this machine has one that is in use. */
static int cluster_init_secrets(const struct cluster_cmd *x, struct err *e)
{
	char path[1200], own[1200];
	struct stat st;

	snprintf(path, sizeof(path), "%.1000s/secrets.key", cluster_engine_secrets(&x->engine));
	snprintf(own, sizeof(own), "%.1000s/secrets.key",
		 config_text(&x->engine.config, CONFIG_STATE));
	if (stat(own, &st) == 0 && st.st_size)
		return 0;
	return vault_make_key(path, e);
}

static int cluster_init(struct cluster_cmd *x, const struct cli *cli, struct err *e)
{
	char name[CLUSTER_NAME_MAX + 1];

	cluster_files_name(&x->engine.config, name);
	if (cluster_engine_connect(&x->engine, e) < 0 || cluster_init_ca(x, e) < 0 ||
	    cluster_init_secrets(x, e) < 0 || cluster_init_number(x, name, e) < 0)
		return -1;
	cluster_init_report(x, cli, name);
	return 0;
}

/* ---- status ---- */

static void cluster_got_machines(void *user, const struct membership_answer *a, const struct err *e)
{
	struct cluster_cmd *x = user;

	if (a)
		x->machines = json_incref(a->machines);
	cluster_engine_answer(&x->engine, e);
}

static int cluster_status(struct cluster_cmd *x, const struct cli *cli, struct err *e)
{
	static const char *const columns[] = { "NUMBER", "ROLE", "NAME", "STATE", NULL };
	struct table t;
	json_t *m;
	size_t i;

	if (cluster_engine_connect(&x->engine, e) < 0 || cluster_ask_authority(x, 0, e) < 0)
		return -1;
	if (!*x->authority)
		return err_set(e, ERR_NOT_FOUND,
			       "the database belongs to no cluster yet; type `atoll cluster init`");
	membership_list(&x->engine.membership, cluster_got_machines, x);
	if (cluster_engine_wait(&x->engine, e) < 0)
		return -1;
	if (cli->json) {
		json_t *doc = json_pack("{s:s, s:O}", "fingerprint", x->authority, "machines",
					x->machines);

		json_dumpf(doc, stdout, JSON_COMPACT);
		putchar('\n');
		json_decref(doc);
		return 0;
	}
	table_init(&t, columns);
	json_array_foreach(x->machines, i, m)
	{
		table_cell(&t, "%lld", (long long)json_integer_value(json_object_get(m, "number")));
		table_cell(&t, "%s", json_string_value(json_object_get(m, "role")));
		table_cell(&t, "%s", json_string_value(json_object_get(m, "name")));
		table_cell(&t, "%s", json_string_value(json_object_get(m, "state")));
	}
	table_print(&t, !cli->quiet);
	return 0;
}

/* ---- check ---- */

static int cluster_check_row(const char *what, int rc, const struct err *e)
{
	printf("%-12s %s%s\n", what, rc < 0 ? "failed: " : "ok", rc < 0 ? e->msg : "");
	return rc < 0;
}

static int cluster_check_certificate(const struct cluster_cmd *x, struct err *e)
{
	enum cluster_role role =
		(enum cluster_role)config_number(&x->engine.config, CONFIG_CLUSTER_ROLE);
	struct cluster_identity id;
	struct cluster_peer self;
	int64_t renew_s;
	int rc;

	if (cluster_files_load(&id, &x->engine.config, e) < 0)
		return -1;
	rc = cluster_identity_self(&id, &self, e) < 0 ||
			     cluster_ca_renew_at(&id.cert, &renew_s, e) < 0
		     ? -1
		     : 0;
	if (rc == 0 && renew_s + CLUSTER_RENEW_DAYS * 86400 < time(NULL))
		rc = err_set(e, ERR_INVALID,
			     "the certificate of this machine has expired; type `atoll %s`",
			     self.role == CLUSTER_GATEWAY ? "cluster init" : "node join");
	if (rc == 0 && role != CLUSTER_ALONE &&
	    cluster_is_gateway(role) != (self.role == CLUSTER_GATEWAY))
		rc = err_set(e, ERR_INVALID,
			     "cluster.role is %s, and the certificate is that of a %s",
			     config_text(&x->engine.config, CONFIG_CLUSTER_ROLE),
			     self.role == CLUSTER_GATEWAY ? "gateway" : "node");
	cluster_identity_fini(&id);
	return rc;
}

/* Returns the number of rows that failed. */
static int cluster_check(struct cluster_cmd *x)
{
	const char *secrets = cluster_engine_secrets(&x->engine);
	struct err e = { 0 };
	int failed = cluster_check_row("certificate", cluster_check_certificate(x, &e), &e), rc;

	rc = cluster_files_check_secrets(secrets, &e) < 0 ||
			     membership_load(&x->engine.membership, secrets, &e) < 0
		     ? -1
		     : 0;
	failed += cluster_check_row("secrets", rc, &e);
	rc = cluster_engine_connect(&x->engine, &e) < 0 || cluster_ask_authority(x, 0, &e) < 0 ? -1
											       : 0;
	failed += cluster_check_row("database", rc, &e);
	if (!failed)
		failed += cluster_check_row("authority", cluster_check_authority(x, &e), &e);
	return failed;
}

/* ---- the command ---- */

static int run_cluster(const struct cli *cli, const struct args *a)
{
	const char *what = a->nwords ? a->words[0] : "status";
	const struct cluster_engine_flags f = { .config = args_text(a, CLUSTER_CONFIG, NULL),
						.state = args_text(a, CLUSTER_STATE, NULL),
						.database = args_text(a, CLUSTER_DATABASE, NULL),
						.name = args_text(a, CLUSTER_NAME, NULL) };
	struct cluster_cmd x = { 0 };
	struct err e;
	int rc = cluster_engine_load(&x.engine, &f, &e), failed = 0;

	if (rc == 0 && !strcmp(what, "check"))
		failed = cluster_check(&x);
	else if (rc == 0)
		rc = !strcmp(what, "init") ? cluster_init(&x, cli, &e)
					   : cluster_status(&x, cli, &e);
	cluster_engine_close(&x.engine);
	buf_fini(&x.cert);
	json_decref(x.machines);
	return rc < 0 ? cluster_failed(cli, &e) : failed ? STATUS_FAILED : 0;
}

static const struct example examples[] = {
	{ "atoll cluster init --database postgresql://atoll@db.example.org/atoll",
	  "make this machine the first gateway of a cluster" },
	{ "atoll cluster status", "list gateways and nodes" },
	{ "atoll cluster check", "check certificate, secrets and database of this gateway" },
	{ 0 },
};

const struct command command_cluster = {
	/* clang-format off */
	.name = "cluster",
	.group = "Machine",
	.usage = "init | status | check",
	.summary = "make and inspect a cluster of machines, on a gateway",
	.notes = "init creates the tables in the database, the certificate authority in cluster.secrets and the certificate of\n"
		 "this gateway. A further gateway gets a copy of cluster.secrets first. init can be repeated.",
	.words = "init status check",
	.flags = flags,
	.nflags = CLUSTER_FLAGS,
	.max_words = 1,
	.examples = examples,
	.run = run_cluster,
	/* clang-format on */
};
