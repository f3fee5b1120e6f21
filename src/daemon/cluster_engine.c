/* cluster_engine.c - see cluster_engine.h. */
#include "daemon/cluster_engine.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "coordinator/coordinator.h"
#include "coordinator/postgres.h"
#include "coordinator/schema.h"
#include "daemon/cluster_child.h"
#include "daemon/cluster_files.h"

#include <stdio.h>
#include <string.h>

enum { ENGINE_ANSWER_MS = 5000, ENGINE_LOOK_MS = 10 };

int cluster_engine_load(struct cluster_engine *x, const struct cluster_engine_flags *f,
			struct err *e)
{
	struct config_given given[3];
	unsigned n = 0;
	struct config_source src = { .file = f->config, .given = given };

	*x = (struct cluster_engine){ 0 };
	if (f->state)
		given[n++] = (struct config_given){ CONFIG_STATE, f->state };
	if (f->database)
		given[n++] = (struct config_given){ CONFIG_CLUSTER_DATABASE, f->database };
	if (f->name)
		given[n++] = (struct config_given){ CONFIG_CLUSTER_NAME, f->name };
	src.ngiven = n;
	return config_load(&x->config, &src, e);
}

const char *cluster_engine_secrets(const struct cluster_engine *x)
{
	return config_text(&x->config, CONFIG_CLUSTER_SECRETS);
}

/* A command reports the first failure; the daemon would try again. */
static int cluster_engine_wait_up(struct cluster_engine *x, struct err *e)
{
	char first[sizeof(e->msg)];

	snprintf(first, sizeof(first), "%s", postgres_trouble(x->db));
	for (unsigned i = 0; i < ENGINE_ANSWER_MS / ENGINE_LOOK_MS && !postgres_is_up(x->db) &&
			     strcmp(first, postgres_trouble(x->db)) == 0;
	     i++) {
		timer_set(&x->look, ENGINE_LOOK_MS);
		loop_run(&x->loop);
		x->loop.stopping = 0;
	}
	return postgres_is_up(x->db) ? 0 : err_set(e, ERR_SYS, "%s", postgres_trouble(x->db));
}

static void cluster_engine_looked(struct timer *t)
{
	loop_stop(&loop_owner(t, struct cluster_engine, look)->loop);
}

int cluster_engine_connect(struct cluster_engine *x, struct err *e)
{
	struct postgres_conf conf = { .database = config_text(&x->config, CONFIG_CLUSTER_DATABASE),
				      .answer_ms = ENGINE_ANSWER_MS,
				      .query = schema_query(),
				      .check = schema_check,
				      .setup = schema_setup() };
	struct buf password = { 0 };
	char etcd[CLUSTER_ETCD_TEXT];
	int rc;

	if (!conf.database || !cluster_engine_secrets(x))
		return err_set(e, ERR_INVALID,
			       "cluster.database is not set; write it into the settings, or give "
			       "--database postgresql://USER@HOST/NAME");
	log_setup(2, LOG_TEXT, LEVEL_NONE); /* the command reports errors itself */
	rc = membership_read_password(cluster_engine_secrets(x), &password, e);
	conf.password = password.len ? password.p : NULL;
	if (rc == 0 &&
	    (loop_init(&x->loop, e) < 0 || postgres_new(&x->db, &x->loop, &conf, e) < 0 ||
	     coordinator_engine_new(&x->coordinator, &x->loop, x->db,
				    cluster_child_etcd(&x->config, etcd), e) < 0))
		rc = -1;
	if (rc == 0)
		timer_init(&x->look, &x->loop, cluster_engine_looked);
	if (password.p)
		explicit_bzero(password.p, password.room);
	buf_fini(&password);
	x->membership.db = x->db;
	x->membership.coordinator = x->coordinator;
	return rc < 0 ? -1 : cluster_engine_wait_up(x, e);
}

void cluster_engine_close(struct cluster_engine *x)
{
	timer_fini(&x->look);
	coordinator_free(x->coordinator);
	postgres_free(x->db);
	if (x->loop.base)
		loop_fini(&x->loop);
	membership_fini(&x->membership);
	config_fini(&x->config);
}

void cluster_engine_answer(struct cluster_engine *x, const struct err *e)
{
	x->answered = 1;
	x->e = e ? *e : (struct err){ 0 };
	loop_stop(&x->loop);
}

int cluster_engine_wait(struct cluster_engine *x, struct err *e)
{
	if (!x->answered)
		loop_run(&x->loop);
	x->answered = 0;
	x->loop.stopping = 0;
	*e = x->e;
	return x->e.kind ? -1 : 0;
}
