/* config_cluster.c - see config_cluster.h. */
#include "daemon/config_cluster.h"
#include "cluster/role.h"
#include "daemon/addr.h"
#include "daemon/config.h"
#include "egress/net_rule.h"
#include "http/object_store.h"

#include <string.h>
#include <strings.h>

#define LETTERS "abcdefghijklmnopqrstuvwxyz"
#define DIGITS "0123456789"

enum { LABEL_MAX_LEN = 63 };

int config_check_cluster_name(const char *text, struct err *e)
{
	if (cluster_name_is_valid(text))
		return 0;
	return err_set(e, ERR_INVALID,
		       "'%.70s' is not the name of a machine: 1 to %d of a-z, 0-9, '-' and '.'; "
		       "write it like node-7",
		       text, CLUSTER_NAME_MAX);
}

int config_check_cluster_listen(const char *text, struct err *e)
{
	struct addr a;

	if (addr_parse(&a, text, e) < 0)
		return -1;
	return strncmp(a.text, "unix:", 5) == 0
		       ? err_set(e, ERR_INVALID,
				 "'%.60s' is a unix socket, and nodes are other machines; write it "
				 "like 0.0.0.0:7071",
				 text)
		       : 0;
}

int config_check_gateway(const char *text, struct err *e)
{
	char host[RULE_HOST];
	uint16_t port = 0;
	const char *why = "it has no port";

	if (net_authority_parse(text, strlen(text), host, &port, &why) == 0 && port)
		return 0;
	return err_set(e, ERR_INVALID,
		       "'%.60s' is not the address of a gateway: %s; write it like "
		       "gateway.example.org:7071",
		       text, why);
}

/* As a parameter, or as postgresql://user:password@host. */
static int config_database_has_password(const char *text)
{
	const char *host = strstr(text, "://");
	const char *at, *colon;

	if (strcasestr(text, "password"))
		return 1;
	if (!host)
		return 0;
	host += 3;
	at = memchr(host, '@', strcspn(host, "/?"));
	colon = at ? memchr(host, ':', (size_t)(at - host)) : NULL;
	return colon != NULL;
}

int config_check_database(const char *text, struct err *e)
{
	/* The value is not quoted: it may contain a password. */
	if (config_database_has_password(text))
		return err_set(e, ERR_INVALID,
			       "a connection string with a password is visible to every user of "
			       "this machine; write the password into the file 'database' of the "
			       "folder cluster.secrets");
	if (strncmp(text, "postgresql://", 13) == 0 || strncmp(text, "postgres://", 11) == 0 ||
	    (strchr(text, '=') && !strstr(text, "://")))
		return 0;
	return err_set(
		e, ERR_INVALID,
		"'%.60s' is not a connection string; write it like "
		"postgresql://atoll@db.example.org/atoll or 'host=/run/postgresql dbname=atoll'",
		text);
}

int config_check_label(const char *text, struct err *e)
{
	size_t name = strspn(text, LETTERS DIGITS "-._/");
	const char *value = text + name + 1;

	if (name && name <= LABEL_MAX_LEN && text[name] == '=' && *value &&
	    strlen(value) <= LABEL_MAX_LEN &&
	    strspn(value, LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZ" DIGITS "-._/") == strlen(value))
		return 0;
	return err_set(e, ERR_INVALID, "'%.70s' is not a label; write it like zone=eu-1", text);
}

int config_check_objects(const char *text, struct err *e)
{
	struct object_store store;

	return object_store_parse(&store, text, e);
}

int config_check_cluster(const struct config *c, struct err *e)
{
	enum cluster_role role = (enum cluster_role)config_number(c, CONFIG_CLUSTER_ROLE);
	const char *where = c->values[CONFIG_CLUSTER_ROLE].where,
		   *text = c->values[CONFIG_CLUSTER_ROLE].text;

	if (cluster_is_gateway(role) && !config_text(c, CONFIG_CLUSTER_DATABASE))
		return err_set(e, ERR_INVALID,
			       "cluster.role = %s (%.70s) needs a database; write "
			       "cluster.database = \"postgresql://atoll@db.example.org/atoll\"",
			       text, where);
	if (cluster_is_gateway(role) && !config_text(c, CONFIG_CLUSTER_SECRETS))
		return err_set(e, ERR_INVALID,
			       "cluster.role = %s (%.70s) needs a folder for passwords and keys; "
			       "write cluster.secrets = \"/etc/atoll/cluster\"",
			       text, where);
	if (role == CLUSTER_NODE && !config_list(c, CONFIG_CLUSTER_GATEWAYS)[0])
		return err_set(e, ERR_INVALID,
			       "cluster.role = %s (%.70s) needs the addresses of gateways; write "
			       "cluster.gateways = [\"gateway.example.org:7071\"]",
			       text, where);
	return 0;
}
