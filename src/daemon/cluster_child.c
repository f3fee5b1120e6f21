/* cluster_child.c - see cluster_child.h. */
#include "daemon/cluster_child.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "cluster/role.h"
#include "coordinator/process.h"
#include "daemon/cluster_files.h"
#include "daemon/confine.h"
#include "wire/wire.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

enum { CLUSTER_UID = 64174, CLUSTER_FILES = 8192 };

static enum cluster_role cluster_child_role(const struct config *c)
{
	return (enum cluster_role)config_number(c, CONFIG_CLUSTER_ROLE);
}

int cluster_child_check(const struct config *c, struct err *e)
{
	const char *secrets = config_text(c, CONFIG_CLUSTER_SECRETS);

	/* Without the folder a gateway serves, and accepts no further machines. */
	if (!cluster_is_gateway(cluster_child_role(c)) ||
	    cluster_files_check_secrets(secrets, e) == 0 || e->kind == ERR_NOT_FOUND)
		return 0;
	return -1;
}

/* ---- the process ---- */

const char *cluster_child_etcd(const struct config *c, char out[CLUSTER_ETCD_TEXT])
{
	const char *const *all = config_list(c, CONFIG_CLUSTER_ETCD);
	size_t n = 0;

	out[0] = 0;
	for (; *all && n + strlen(*all) + 2 < CLUSTER_ETCD_TEXT; all++)
		n += (size_t)snprintf(out + n, CLUSTER_ETCD_TEXT - n, "%s%s", n ? "," : "", *all);
	return out;
}

static int cluster_walls(void *ctx, struct err *e)
{
	const struct cluster_child *o = ctx;
	uid_t uid = o->root ? CLUSTER_UID : (uid_t)-1;

	return confine_enter_engines(uid, uid, e);
}

static void cluster_be(void *ctx)
{
	const struct rlimit files = { CLUSTER_FILES, CLUSTER_FILES };
	struct cluster_child *o = ctx;
	char etcd[CLUSTER_ETCD_TEXT];
	struct cluster_process_conf conf = {
		.etcd = cluster_child_etcd(o->config, etcd),
		.database = config_text(o->config, CONFIG_CLUSTER_DATABASE),
		.secrets = config_text(o->config, CONFIG_CLUSTER_SECRETS),
		.objects = config_text(o->config, CONFIG_CLUSTER_OBJECTS),
	};

	conf.objects = conf.objects ? conf.objects : "";

	confine_clear_environment();
	(void)!setrlimit(RLIMIT_NOFILE, &files);
	_exit(cluster_process_main(&conf, 3, cluster_walls, o));
}

void cluster_child_init(struct cluster_child *o, int root)
{
	*o = (struct cluster_child){ .child.link = -1, .root = root };
}

void cluster_child_apply(struct cluster_child *o, const struct config *c)
{
	static const enum config_key keys[] = { CONFIG_CLUSTER_ROLE, CONFIG_CLUSTER_DATABASE,
						CONFIG_CLUSTER_SECRETS, CONFIG_CLUSTER_ETCD,
						CONFIG_CLUSTER_OBJECTS };
	struct buf now = { 0 };

	o->config = c;
	for (unsigned i = 0; i < ARRAY_LEN(keys); i++)
		buf_printf(&now, "%s\n", c->values[keys[i]].text ? c->values[keys[i]].text : "");
	if (o->settings && strcmp(o->settings, buf_str(&now)) == 0) {
		buf_fini(&now);
		return;
	}
	child_stop(&o->child); /* the old process serves the old server until that has drained */
	free(o->settings);
	o->settings = buf_steal(&now);
	o->child.tried_ns = 0;
	cluster_child_maintain(o);
}

int cluster_child_maintain(struct cluster_child *o)
{
	struct err e;

	if (o->child.pid || !o->config || !cluster_is_gateway(cluster_child_role(o->config)))
		return 0;
	if (child_rests(&o->child))
		return 1;
	if (child_start(&o->child, "atoll-cluster", cluster_be, o, &e) < 0)
		log_error("no cluster process", LOG_E(&e));
	return !o->child.pid;
}

int cluster_child_ended(struct cluster_child *o, pid_t pid)
{
	if (!child_is(&o->child, pid))
		return 0;
	log_error("the cluster process ended; starting another");
	child_stop(&o->child);
	return 1;
}

int cluster_child_hand(struct cluster_child *o, int server_link)
{
	int pair[2];

	if (!o->child.pid ||
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
		return -1;
	return child_hand(&o->child, WIRE_CLUSTER_ENGINES, pair, server_link);
}
