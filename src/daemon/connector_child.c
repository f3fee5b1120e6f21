/* connector_child.c - see connector_child.h. */
#include "daemon/connector_child.h"
#include "base/log.h"
#include "coordinator/connector.h"
#include "daemon/confine.h"
#include "wire/sock.h"
#include "wire/wire.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { CONNECTOR_UID = 64175, CONNECTOR_FILES = 1024 };

static int connector_walls(void *ctx, struct err *e)
{
	const struct connector_child *o = ctx;
	uid_t uid = o->root ? CONNECTOR_UID : (uid_t)-1;

	return confine_enter_outbound(uid, uid, e);
}

static void connector_be(void *ctx)
{
	const struct rlimit files = { CONNECTOR_FILES, CONNECTOR_FILES };
	struct connector_child *o = ctx;
	struct connector_conf conf = { .gateways = config_list(o->config, CONFIG_CLUSTER_GATEWAYS),
				       .objects = config_text(o->config, CONFIG_CLUSTER_OBJECTS),
				       .dns = config_list(o->config, CONFIG_EGRESS_DNS) };

	confine_clear_environment();
	(void)!setrlimit(RLIMIT_NOFILE, &files);
	_exit(connector_main(&conf, 3, connector_walls, o));
}

void connector_child_init(struct connector_child *o, int root)
{
	*o = (struct connector_child){ .child.link = -1, .root = root };
}

static void connector_print(const struct config *c, char *out, size_t room)
{
	static const enum config_key keys[] = { CONFIG_CLUSTER_GATEWAYS, CONFIG_EGRESS_DNS };
	const char *objects = config_text(c, CONFIG_CLUSTER_OBJECTS);
	size_t at = (size_t)snprintf(out, room, "%s\n", objects ? objects : "");

	for (unsigned i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		for (const char *const *t = config_list(c, keys[i]); *t && at < room; t++)
			at += (size_t)snprintf(out + at, room - at, "%u %s\n", i, *t);
}

void connector_child_apply(struct connector_child *o, const struct config *c)
{
	char fresh[sizeof(o->settings)];

	o->config = c;
	connector_print(c, fresh, sizeof(fresh));
	if (strcmp(fresh, o->settings) == 0)
		return;
	child_stop(&o->child);
	snprintf(o->settings, sizeof(o->settings), "%s", fresh);
	o->child.tried_ns = 0;
}

int connector_child_ended(struct connector_child *o, pid_t pid)
{
	if (!child_is(&o->child, pid))
		return 0;
	log_error("the process that connects to gateways ended");
	child_stop(&o->child);
	return 1;
}

int connector_child_hand(struct connector_child *o, int server_link)
{
	int pair[2];
	struct err e;

	if (!o->child.pid) {
		if (child_rests(&o->child))
			return -1;
		if (child_start(&o->child, "atoll-connector", connector_be, o, &e) < 0) {
			log_error("no connections to gateways", LOG_E(&e));
			return -1;
		}
	}
	if (sock_pair(pair, &e) < 0)
		return -1;
	return child_hand(&o->child, WIRE_CLUSTER_CONNECT, pair, server_link);
}
