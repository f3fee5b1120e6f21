/* config_table.c - the table of settings; see config.h. Names, defaults and texts are here and
 * nowhere else: files, environment, flags, `atoll config` and the manual's test read these rows. */
#include "daemon/config.h"
#include "base/cleanup.h"
#include "egress/net_rule.h"
#include "daemon/addr.h"
#include "daemon/config_checks.h"
#include "daemon/config_cluster.h"
#include "outbound/target.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define DAY_MS UINT64_C(86400000)
#define LONGEST_MS (49 * DAY_MS) /* milliseconds are 32 bits wide on the wire */
#define NO_END UINT64_MAX
#define TIB (UINT64_C(1) << 40)

static int check_addr(const char *text, struct err *e)
{
	struct addr a;

	return addr_parse(&a, text, e);
}

static int check_socket(const char *path, struct err *e)
{
	struct addr a;
	char text[512];

	if ((size_t)snprintf(text, sizeof(text), "unix:%s", path) >= sizeof(text))
		return err_set(e, ERR_INVALID, "'%.40s...' is too long for a socket", path);
	return addr_parse(&a, text, e);
}

/* The path and "/boxes/<id>.sock" must fit into the address of a socket. */
static int check_run(const char *path, struct err *e)
{
	if (strlen(path) > 70)
		return err_set(e, ERR_INVALID, "'%.40s...' is longer than 70 bytes", path);
	return 0;
}

/* A host name, "*.example.org" for all below it. */
static int check_domain(const char *text, struct err *e)
{
	const char *c = text + (strncmp(text, "*.", 2) == 0 ? 2 : 0);

	for (; isalnum((unsigned char)*c) || *c == '-' || *c == '.'; c++)
		if (*c == '.' && (c == text || c[1] == '.' || !c[1]))
			break;
	if (*c || c == text || strlen(text) > 253)
		return err_set(
			e, ERR_INVALID,
			"'%.40s' is not a host name; write it like box.example.org or *.example.org",
			text);
	return 0;
}

/* Names that NO_PROXY of a box has (server.c): a program in the box connects to its own loopback
 * instead. */
static int config_check_not_loopback(const struct net_rule *r, const char *text, struct err *e)
{
	static const char suffix[] = ".localhost";
	size_t n = strlen(r->host);

	if (strcmp(r->host, "localhost") != 0 && strcmp(r->host, "127.0.0.1") != 0 &&
	    strcmp(r->host, "::1") != 0 &&
	    (n < sizeof(suffix) || strcmp(r->host + n - (sizeof(suffix) - 1), suffix) != 0))
		return 0;
	return err_set(
		e, ERR_INVALID,
		"'%.60s' names the box itself inside a box; for a server of this machine write 127.0.0.2 or an "
		"address of its network",
		text);
}

static int check_rule(const char *text, struct err *e)
{
	struct net_rule r;

	return net_rule_parse_allow(&r, text, e) < 0 ? -1 : config_check_not_loopback(&r, text, e);
}

static int check_internal_rule(const char *text, struct err *e)
{
	struct net_rule r;

	if (net_rule_parse_allow(&r, text, e) < 0)
		return -1;
	if (r.kind == NET_RULE_OPEN)
		return err_set(e, ERR_INVALID,
			       "'open' is the public internet; name the internal hosts or ranges");
	return config_check_not_loopback(&r, text, e);
}

static int check_deny_rule(const char *text, struct err *e)
{
	struct net_rule r;

	return net_rule_parse(&r, text, e);
}

static int check_outbound_rule(const char *text, struct err *e)
{
	struct net_rule r;

	if (net_rule_parse_allow(&r, text, e) < 0)
		return -1;
	return r.kind == NET_RULE_OPEN || r.methods[0] || r.path[0]
		       ? err_set(e, ERR_INVALID,
				 "'%.60s' is not a host; write it like 10.1.0.0/16 or hooks.internal:8080",
				 text)
		       : 0;
}

/* RFC 9110: the characters of a token. */
#define HEADER_NAME "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&'*+-.^_`|~"

static int check_url(const char *text, struct err *e)
{
	struct net_rule r;

	return net_rule_of_url(&r, text, e);
}

static int check_part(const char *text, struct err *e)
{
	uint64_t n, one;

	if (rates_parse("1", &one, e) < 0)
		return -1;
	return rates_parse(text, &n, e) < 0 || n > one
		       ? err_set(e, ERR_INVALID,
				 "'%.40s' is not a part; write it like 0.1, at most 1", text)
		       : 0;
}

static int check_header(const char *text, struct err *e)
{
	size_t name = strcspn(text, ":");

	return text[name] && name && strspn(text, HEADER_NAME) == name && !strpbrk(text, "\r\n")
		       ? 0
		       : err_set(e, ERR_INVALID,
				 "'%.40s' is not a header line; write it like Authorization: Bearer TOKEN",
				 text);
}

static int check_alert_url(const char *text, struct err *e)
{
	struct outbound_target t;

	if (outbound_target_parse(&t, text, e) < 0)
		return -1;
	return t.mail ? err_set(e, ERR_INVALID, "'%.60s' is not a URL of http or https", text) : 0;
}

static int check_mail_server(const char *text, struct err *e)
{
	struct outbound_target t;

	if (outbound_target_parse(&t, text, e) < 0)
		return -1;
	return t.mail ? 0
		      : err_set(e, ERR_INVALID,
				"'%.60s' is not a mail server; write it like smtp://mail.example.org",
				text);
}

static int check_registry(const char *text, struct err *e)
{
	struct net_rule r;

	return net_rule_of_url(&r, text, e) < 0 ? -1 : config_check_not_loopback(&r, text, e);
}

static int check_mirror(const char *text, struct err *e)
{
	struct net_rule r;
	char url[512];

	snprintf(url, sizeof(url), "https://%.480s", text);
	if (strstr(text, "://") || net_rule_of_url(&r, url, e) < 0)
		return err_set(e, ERR_INVALID, "'%.100s' is not HOST[:PORT][/PATH]", text);
	return config_check_not_loopback(&r, text, e);
}

static int check_dns(const char *text, struct err *e)
{
	struct net_rule r;

	if (net_rule_parse_host(&r, text, e) == 0 && r.kind == NET_RULE_HOST &&
	    net_is_literal(r.host))
		return 0;
	return err_set(e, ERR_INVALID,
		       "'%.40s' is not a server; write it like 192.0.2.53 or [2001:db8::53]:53",
		       text);
}

static int check_origin(const char *text, struct err *e)
{
	const char *host = strstr(text, "://");

	if ((strncmp(text, "http://", 7) != 0 && strncmp(text, "https://", 8) != 0) || !host[3] ||
	    strpbrk(host + 3, "/?#@ "))
		return err_set(
			e, ERR_INVALID,
			"'%.40s' is not an origin; write it like https://app.example.org, without a path",
			text);
	return 0;
}

static int check_host(const char *text, struct err *e)
{
	if (strncmp(text, "unix:/", 6) != 0 && strncmp(text, "http://", 7) != 0 &&
	    strncmp(text, "https://", 8) != 0)
		return err_set(
			e, ERR_INVALID,
			"'%.40s' is not a daemon; write it like http://127.0.0.1:7070 or unix:/path",
			text);
	return 0;
}

static int check_issuer(const char *text, struct err *e)
{
	if (strncmp(text, "https://", 8) != 0 && strncmp(text, "http://", 7) != 0)
		return err_set(e, ERR_INVALID,
			       "'%.40s' is not a URL; write it like https://id.example.org", text);
	return 0;
}

static int check_key(const char *text, struct err *e)
{
	size_t n = strlen(text);

	/* The value may be a secret, so it is not quoted. */
	if (n != 44 || strncmp(text, "e2b_", 4) != 0 || strspn(text + 4, "0123456789abcdef") != 40)
		return err_set(e, ERR_INVALID,
			       "a key is e2b_ and 40 hex digits; this one has %zu characters", n);
	return 0;
}

static const char *const levels[] = { "debug", "info", "warn", "error", "none", NULL };
static const char *const formats[] = { "json", "text", NULL }; /* in the order of enum log_form */
static const char *const networks[] = { "off", NULL };
/* In the order of enum cluster_role. */
static const char *const cluster_roles[] = { "alone", "node", "gateway", "both", NULL };
/* In the order of enum on_shutdown. */
static const char *const shutdowns[] = { "continue", "hibernate", NULL };
static const char *const placements[] = { "spread", "pack", NULL };

/* "$run", "$state" and "$secrets" in a default are the folders of this user. */
/* clang-format off */
const struct config_row config_rows[CONFIG_NKEYS] = {
	[CONFIG_LISTEN] = { "serve.listen", CONFIG_LIST, "127.0.0.1:7070", "ATOLL_LISTEN",
		.flag = "listen", .metavar = "ADDR:PORT", .check = check_addr,
		.help = "addresses to listen on, or unix:PATH" },
	[CONFIG_SOCKET] = { "serve.socket", CONFIG_PATH, "$run/atoll.sock", "ATOLL_SOCKET",
		.flag = "socket", .metavar = "PATH", .check = check_socket,
		.help = "unix socket on which the caller's uid is the credential" },
	[CONFIG_STATE] = { "serve.state", CONFIG_PATH, "$state", "ATOLL_STATE",
		.flag = "state", .metavar = "DIR",
		.help = "folder of the database, the volumes and large disks" },
	[CONFIG_USER] = { "serve.user", CONFIG_TEXT, NULL, "ATOLL_USER",
		.flag = "user", .metavar = "USER",
		.help = "user (name or uid) that the API server runs as" },
	[CONFIG_TLS_CERT] = { "serve.tls_cert", CONFIG_PATH, NULL, "ATOLL_TLS_CERT",
		.flag = "tls-cert", .metavar = "FILE", .reload = 1,
		.help = "certificate chain, PEM; enables TLS on every TCP port" },
	[CONFIG_TLS_KEY] = { "serve.tls_key", CONFIG_PATH, NULL, "ATOLL_TLS_KEY",
		.flag = "tls-key", .metavar = "FILE", .reload = 1,
		.help = "private key of the certificate, PEM" },
	[CONFIG_DOMAIN] = { "serve.domain", CONFIG_LIST, NULL, "ATOLL_DOMAIN",
		.flag = "domain", .metavar = "HOST", .check = check_domain, .reload = 1,
		.help = "accepted names in the Host header, in addition to those of the loopback" },
	[CONFIG_PREVIEW_DOMAIN] = { "serve.preview_domain", CONFIG_LIST, NULL, "ATOLL_PREVIEW_DOMAIN",
		.flag = "preview-domain", .metavar = "HOST", .check = check_domain, .reload = 1,
		.help = "names below which ports of boxes are reached, of another site than serve.domain; none: serve.domain" },
	[CONFIG_ORIGINS] = { "serve.origins", CONFIG_LIST, NULL, "ATOLL_ORIGINS",
		.flag = "origins", .metavar = "URL", .check = check_origin, .reload = 1,
		.help = "origins of other web pages that may call the API" },
	[CONFIG_DRAIN] = { "serve.drain", CONFIG_TIME, "30s", "ATOLL_DRAIN",
		.flag = "drain", .metavar = "TIME", .lowest = 1, .highest = DAY_MS, .reload = 1,
		.help = "grace period for requests in progress on shutdown" },
	[CONFIG_LOG_LEVEL] = { "log.level", CONFIG_CHOICE, "info", "ATOLL_LOG_LEVEL",
		.flag = "log-level", .metavar = "LEVEL", .words = levels, .reload = 1,
		.help = "lowest level that is logged: debug, info, warn, error, none" },
	[CONFIG_LOG_FORMAT] = { "log.format", CONFIG_CHOICE, "json", "ATOLL_LOG_FORMAT",
		.flag = "log-format", .metavar = "FORM", .words = formats, .reload = 1,
		.help = "format of log lines: json or text" },
	[CONFIG_POOL] = { "keeper.pool", CONFIG_COUNT, "4", "ATOLL_POOL",
		.flag = "pool", .metavar = "N", .highest = 1000,
		.help = "number of boxes that are kept ready" },
	[CONFIG_MODELS] = { "serve.models", CONFIG_PATH, NULL, "ATOLL_MODELS",
		.flag = "models", .metavar = "FILE", .reload = 1,
		.help = "file of language models; none: models.toml in the folder of the settings file" },

	[CONFIG_RUN] = { "serve.run", CONFIG_PATH, "$run", "ATOLL_RUN", .check = check_run,
		.help = "folder of the keeper's socket and the records of boxes" },
	[CONFIG_GROUP] = { "serve.group", CONFIG_TEXT, NULL, "ATOLL_GROUP",
		.help = "group (name or gid) whose members use the unix socket without a key, as owners of team default" },
	[CONFIG_ON_SHUTDOWN] = { "serve.on_shutdown", CONFIG_CHOICE, "continue", "ATOLL_ON_SHUTDOWN", .words = shutdowns, .reload = 1,
		.help = "when the daemon stops, boxes continue to run, or are paused to the disk until it starts: continue, hibernate" },

	[CONFIG_MAX_LIFETIME] = { "limits.max_lifetime", CONFIG_TIME, "24h", "ATOLL_MAX_LIFETIME",
		.lowest = 1000, .highest = LONGEST_MS, .reload = 1,
		.help = "longest lifetime that a box may request" },
	[CONFIG_DEFAULT_LIFETIME] = { "limits.default_lifetime", CONFIG_TIME, "10m", "ATOLL_DEFAULT_LIFETIME",
		.lowest = 1000, .highest = LONGEST_MS, .reload = 1,
		.help = "lifetime of a box whose request sets none" },
	[CONFIG_DEFAULT_IDLE] = { "limits.default_idle", CONFIG_TIME, "none", "ATOLL_DEFAULT_IDLE",
		.highest = LONGEST_MS, .reload = 1,
		.help = "time without activity after which a box times out" },
	[CONFIG_RETENTION] = { "limits.retention", CONFIG_TIME, "24h", "ATOLL_RETENTION",
		.highest = LONGEST_MS, .reload = 1,
		.help = "how long files of a box are kept after its timeout; none: until deleted" },
	[CONFIG_RUN_TIME] = { "limits.default_run_time", CONFIG_TIME, "5m", "ATOLL_DEFAULT_RUN_TIME",
		.highest = LONGEST_MS, .reload = 1,
		.help = "time limit of a command whose request sets no timeout_ms; none: no limit" },
	[CONFIG_CELL_TIME] = { "limits.default_cell_time", CONFIG_TIME, "5m", "ATOLL_DEFAULT_CELL_TIME",
		.highest = LONGEST_MS, .reload = 1,
		.help = "time limit of a cell whose request sets no timeout_ms; none: no limit" },
	[CONFIG_HISTORY] = { "limits.history", CONFIG_TIME, "720h", "ATOLL_HISTORY",
		.highest = 3650 * DAY_MS, .reload = 1,
		.help = "how long finished runs, deleted boxes and the audit log are kept; none: without limit" },
	[CONFIG_HISTORY_SIZE] = { "limits.history_size", CONFIG_SIZE, "256M", "ATOLL_HISTORY_SIZE",
		.highest = 16 * TIB, .reload = 1,
		.help = "maximum size of a team's runs, of its deleted boxes, and of its idempotent answers; none: no limit" },
	[CONFIG_MAX_BODY] = { "limits.max_body", CONFIG_SIZE, "64M", "ATOLL_MAX_BODY",
		.lowest = 1024, .highest = 16 * TIB, .reload = 1,
		.help = "largest request body that is held in memory" },
	[CONFIG_MAX_JSON] = { "limits.max_json", CONFIG_SIZE, "4M", "ATOLL_MAX_JSON",
		.lowest = 1024, .highest = UINT64_C(1) << 30, .reload = 1,
		.help = "largest JSON document of a request" },
	[CONFIG_UPLOAD_MAX] = { "limits.upload_max", CONFIG_SIZE, "none", "ATOLL_UPLOAD_MAX",
		.highest = 16 * TIB, .reload = 1,
		.help = "largest file that is streamed into a box; none: the size of its disk" },
	[CONFIG_MAX_BOXES] = { "limits.max_boxes", CONFIG_COUNT, "none", "ATOLL_MAX_BOXES",
		.highest = 1000000, .reload = 1,
		.help = "maximum number of boxes on this host; none: no fixed limit" },
	[CONFIG_MAX_MEM] = { "limits.max_mem", CONFIG_SIZE, "none", "ATOLL_MAX_MEM",
		.highest = 16 * TIB, .reload = 1,
		.help = "largest memory limit that one box may request; none: half of the host's memory" },
	[CONFIG_MAX_CPU] = { "limits.max_cpu", CONFIG_CPUS, "none", "ATOLL_MAX_CPU",
		.highest = 1024 * 1000, .reload = 1,
		.help = "largest number of processors that one box may request; none: all of them" },
	[CONFIG_MAX_PIDS] = { "limits.max_pids", CONFIG_COUNT, "none", "ATOLL_MAX_PIDS",
		.highest = 4194304, .reload = 1,
		.help = "largest number of processes that one box may request; none: a quarter of pid_max" },
	[CONFIG_MAX_DISK] = { "limits.max_disk", CONFIG_SIZE, "none", "ATOLL_MAX_DISK",
		.highest = 16 * TIB, .reload = 1,
		.help = "largest disk that one box may request; none: half of the space that was free at the start" },
	[CONFIG_MAX_FILES] = { "limits.max_files", CONFIG_COUNT, "1048576", "ATOLL_MAX_FILES",
		.lowest = 16, .highest = INT32_MAX, .reload = 1,
		.help = "largest number of files that one box may request" },
	[CONFIG_MAX_CONNECTIONS] = { "limits.max_connections", CONFIG_COUNT, "10000", "ATOLL_MAX_CONNECTIONS",
		.lowest = 1, .highest = 1000000,
		.help = "connections at the same time; then the one that is idle longest is closed" },
	[CONFIG_ADDRESS_CONNECTIONS] = { "limits.max_connections_per_address", CONFIG_COUNT, "none",
		"ATOLL_MAX_CONNECTIONS_PER_ADDRESS", .highest = 1000000,
		.help = "connections of one client address (IPv6: one /64); none: half of limits.max_connections" },

	[CONFIG_BOX_MEM] = { "box.mem", CONFIG_SIZE, "none", "ATOLL_BOX_MEM",
		.highest = 16 * TIB, .reload = 1, .project = 1,
		.help = "memory of a box whose request sets none; none: 512M" },
	[CONFIG_BOX_CPU] = { "box.cpu", CONFIG_CPUS, "none", "ATOLL_BOX_CPU",
		.highest = 1024 * 1000, .reload = 1, .project = 1,
		.help = "processors of a box whose request sets none; none: 1" },
	[CONFIG_BOX_DISK] = { "box.disk", CONFIG_SIZE, "none", "ATOLL_BOX_DISK",
		.highest = 16 * TIB, .reload = 1, .project = 1,
		.help = "disk of a box whose request sets none; none: half of its memory, at most 256M" },
	[CONFIG_BOX_PIDS] = { "box.pids", CONFIG_COUNT, "none", "ATOLL_BOX_PIDS",
		.highest = 4194304, .reload = 1, .project = 1,
		.help = "processes and threads of a box whose request sets none; none: 512" },
	[CONFIG_BOX_FILES] = { "box.files", CONFIG_COUNT, "none", "ATOLL_BOX_FILES",
		.highest = INT32_MAX, .reload = 1, .project = 1,
		.help = "files of a box whose request sets none; none: 65536" },
	[CONFIG_NETWORK] = { "network.default", CONFIG_CHOICE, "off", "ATOLL_NETWORK",
		.words = networks, .reload = 1, .project = 1,
		.help = "network of a box whose request sets none" },

	[CONFIG_SECRETS_KEY] = { "secrets.key_file", CONFIG_PATH, NULL, "ATOLL_SECRETS_KEY",
		.reload = 1,
		.help = "file of the key that encrypts secrets (secrets.key in the state folder)" },
	[CONFIG_EGRESS_ALLOW] = { "egress.allow", CONFIG_LIST, NULL, "ATOLL_EGRESS_ALLOW",
		.check = check_rule, .reload = 1,
		.help = "destinations that boxes may request: name, *.name, address, CIDR, each with :port or :first-last, or open; none: no outbound network access" },
	[CONFIG_EGRESS_DENY] = { "egress.deny", CONFIG_LIST, NULL, "ATOLL_EGRESS_DENY",
		.check = check_deny_rule, .reload = 1,
		.help = "destinations that no box may reach, whatever is allowed; without a port: every port" },
	[CONFIG_EGRESS_INTERNAL] = { "egress.allow_internal", CONFIG_LIST, NULL, "ATOLL_EGRESS_INTERNAL",
		.check = check_internal_rule, .reload = 1,
		.help = "like egress.allow, for hosts with addresses of a private network or of this host" },
	[CONFIG_EGRESS_DNS] = { "egress.dns", CONFIG_LIST, NULL, "ATOLL_EGRESS_DNS",
		.check = check_dns, .reload = 1,
		.help = "DNS servers for these hosts; none: those of /etc/resolv.conf" },
	[CONFIG_EGRESS_IN] = { "egress.bytes_in", CONFIG_SIZE, "16G", "ATOLL_EGRESS_IN",
		.highest = NO_END, .reload = 1,
		.help = "bytes that a box may receive in its lifetime" },
	[CONFIG_EGRESS_OUT] = { "egress.bytes_out", CONFIG_SIZE, "1G", "ATOLL_EGRESS_OUT",
		.highest = NO_END, .reload = 1,
		.help = "bytes that a box may send in its lifetime" },
	[CONFIG_EGRESS_QUERIES] = { "egress.dns_queries", CONFIG_COUNT, "100000", "ATOLL_EGRESS_QUERIES",
		.lowest = 1, .highest = INT32_MAX, .reload = 1,
		.help = "names that a box may ask DNS for or connect to in its lifetime" },
	[CONFIG_EGRESS_CONNECTIONS] = { "egress.connections", CONFIG_COUNT, "64", "ATOLL_EGRESS_CONNECTIONS",
		.lowest = 1, .highest = 1024, .reload = 1,
		.help = "connections of a box at the same time; further connections wait" },
	[CONFIG_EGRESS_IDLE] = { "egress.idle", CONFIG_TIME, "2m", "ATOLL_EGRESS_IDLE",
		.lowest = 100, .highest = DAY_MS, .reload = 1,
		.help = "time without traffic after which a connection is closed" },
	[CONFIG_EGRESS_CA] = { "egress.ca", CONFIG_PATH, NULL, "ATOLL_EGRESS_CA",
		.reload = 1,
		.help = "further certificate authorities, PEM, for hosts whose TLS egress opens for a secret, and for webhooks and mails" },
	[CONFIG_EGRESS_LINKS] = { "egress.links", CONFIG_BOOL, "false", "ATOLL_EGRESS_LINKS", .reload = 1,
		.help = "boxes may be linked: one reaches another of its team under a name" },
	[CONFIG_EGRESS_ASK] = { "egress.ask_timeout", CONFIG_TIME, "1m", "ATOLL_EGRESS_ASK",
		.lowest = 1000, .highest = 3600000, .reload = 1,
		.help = "how long a connection of a box with network.ask waits for an approval" },
	[CONFIG_OUTBOUND_ALLOW] = { "outbound.allow", CONFIG_LIST, NULL, "ATOLL_OUTBOUND_ALLOW",
		.check = check_outbound_rule, .reload = 1,
		.help = "hosts and ranges with internal addresses that webhooks of teams may use; without a port: every port" },
	[CONFIG_TRACE_ENDPOINT] = { "trace.endpoint", CONFIG_TEXT, NULL, "ATOLL_TRACE_ENDPOINT",
		.check = check_url, .reload = 1,
		.help = "URL of an OpenTelemetry collector (OTLP/HTTP), such as http://127.0.0.1:4318; none: no spans are recorded" },
	[CONFIG_TRACE_SAMPLE] = { "trace.sample", CONFIG_TEXT, "1", "ATOLL_TRACE_SAMPLE",
		.check = check_part, .reload = 1,
		.help = "part of the requests without a traceparent whose spans are recorded, 0 to 1" },
	[CONFIG_TRACE_HEADERS] = { "trace.headers", CONFIG_LIST, NULL, "ATOLL_TRACE_HEADERS",
		.check = check_header, .reload = 1,
		.help = "further header lines for the collector, such as Authorization: Bearer TOKEN" },
	[CONFIG_ALERTS_INTERVAL] = { "alerts.interval", CONFIG_TIME, "10s", "ATOLL_ALERTS_INTERVAL",
		.lowest = 100, .highest = 3600000, .reload = 1,
		.help = "time between two evaluations of the alert rules" },
	[CONFIG_ALERTS_WEBHOOK] = { "alerts.webhook", CONFIG_TEXT, NULL, "ATOLL_ALERTS_WEBHOOK",
		.check = check_alert_url, .reload = 1,
		.help = "URL that alerts are sent to, as JSON; its host may have an internal address" },
	[CONFIG_ALERTS_SECRET] = { "alerts.webhook_secret", CONFIG_SECRET, NULL, "ATOLL_ALERTS_WEBHOOK_SECRET", .reload = 1,
		.help = "key of the signatures of these requests; none: they are not signed" },
	[CONFIG_ALERTS_MAIL_SERVER] = { "alerts.mail_server", CONFIG_TEXT, NULL, "ATOLL_ALERTS_MAIL_SERVER",
		.check = check_mail_server, .reload = 1,
		.help = "mail server for alerts: smtp://host[:port], with TLS if it offers it, or smtps://host[:port]" },
	[CONFIG_ALERTS_MAIL_FROM] = { "alerts.mail_from", CONFIG_TEXT, NULL, "ATOLL_ALERTS_MAIL_FROM", .reload = 1,
		.help = "address of the sender of these mails" },
	[CONFIG_ALERTS_MAIL_TO] = { "alerts.mail_to", CONFIG_LIST, NULL, "ATOLL_ALERTS_MAIL_TO", .reload = 1,
		.help = "addresses that alerts are mailed to, at most 16" },
	[CONFIG_ALERTS_MAIL_USER] = { "alerts.mail_user", CONFIG_TEXT, NULL, "ATOLL_ALERTS_MAIL_USER", .reload = 1,
		.help = "user of the mail server; its password is sent with TLS only" },
	[CONFIG_ALERTS_MAIL_PASSWORD] = { "alerts.mail_password", CONFIG_SECRET, NULL, "ATOLL_ALERTS_MAIL_PASSWORD", .reload = 1,
		.help = "password of that user" },
	[CONFIG_ALERTS_COMMAND] = { "alerts.command", CONFIG_PATH, NULL, "ATOLL_ALERTS_COMMAND", .reload = 1,
		.help = "executable that gets each alert as JSON on its stdin; it runs as the user of the API server" },
	[CONFIG_PIP_INDEX] = { "packages.pip_index", CONFIG_TEXT, NULL, "ATOLL_PIP_INDEX",
		.check = check_registry, .reload = 1,
		.help = "URL of the Python package index; none: pip cannot install packages" },
	[CONFIG_NPM_REGISTRY] = { "packages.npm_registry", CONFIG_TEXT, NULL, "ATOLL_NPM_REGISTRY",
		.check = check_registry, .reload = 1, .help = "URL of the npm registry" },
	[CONFIG_APT_MIRRORS] = { "packages.apt_mirrors", CONFIG_LIST, NULL, "ATOLL_APT_MIRRORS",
		.check = check_registry, .reload = 1, .help = "URLs of apt mirrors" },
	[CONFIG_GEM_SOURCE] = { "packages.gem_source", CONFIG_TEXT, NULL, "ATOLL_GEM_SOURCE",
		.check = check_registry, .reload = 1, .help = "URL of the gem source" },
	[CONFIG_CARGO_INDEX] = { "packages.cargo_index", CONFIG_TEXT, NULL, "ATOLL_CARGO_INDEX",
		.check = check_registry, .reload = 1, .help = "URL of the cargo index" },
	[CONFIG_GO_PROXY] = { "packages.go_proxy", CONFIG_TEXT, NULL, "ATOLL_GO_PROXY",
		.check = check_registry, .reload = 1, .help = "URL of the Go module proxy" },
	[CONFIG_PACKAGES_HOSTS] = { "packages.hosts", CONFIG_LIST, NULL, "ATOLL_PACKAGES_HOSTS", .check = check_rule,
		.reload = 1, .help = "hosts that installations may connect to in addition to the registry; syntax of egress.allow" },
	[CONFIG_PACKAGES_IN_BOXES] = { "packages.in_boxes", CONFIG_BOOL, "true", "ATOLL_PACKAGES_IN_BOXES", .reload = 1,
		.help = "programs in boxes may connect to these registries; false: only the daemon's own installations" },
	[CONFIG_PACKAGES_MIRROR] = { "packages.mirror", CONFIG_TEXT, NULL, "ATOLL_PACKAGES_MIRROR",
		.reload = 1, .help = "volume of team default with a mirror, in the folders pip, npm, gem, cargo, go, apt" },
	[CONFIG_PACKAGES_CACHE] = { "packages.cache_bytes", CONFIG_SIZE, "10G", "ATOLL_PACKAGES_CACHE",
		.highest = 16 * TIB, .reload = 1,
		.help = "disk space for installed packages; none: no limit" },
	[CONFIG_PACKAGES_TIMEOUT] = { "packages.timeout", CONFIG_TIME, "30s", "ATOLL_PACKAGES_TIMEOUT",
		.lowest = 1000, .highest = 3600000, .reload = 1,
		.help = "time limit of a package manager" },
	[CONFIG_PACKAGES_PREINSTALL] = { "packages.preinstall", CONFIG_LIST, NULL, "ATOLL_PACKAGES_PREINSTALL",
		.check = config_check_set, .reload = 1,
		.help = "package sets that are installed when the daemon starts: pip numpy pandas==1.5" },

	[CONFIG_TEMPLATES_BUILDS] = { "templates.builds", CONFIG_COUNT, "2", "ATOLL_TEMPLATES_BUILDS",
		.lowest = 1, .highest = 64, .reload = 1,
		.help = "builds of templates at the same time; others wait" },
	[CONFIG_TEMPLATES_STEP] = { "templates.step_timeout", CONFIG_TIME, "15m", "ATOLL_TEMPLATES_STEP_TIMEOUT",
		.lowest = 1000, .highest = 86400000, .reload = 1,
		.help = "time limit of one command of a build" },
	[CONFIG_TEMPLATES_TOTAL] = { "templates.build_timeout", CONFIG_TIME, "1h", "ATOLL_TEMPLATES_BUILD_TIMEOUT",
		.lowest = 1000, .highest = 86400000, .reload = 1,
		.help = "time limit of a whole build" },
	[CONFIG_TEMPLATES_READY] = { "templates.ready_timeout", CONFIG_TIME, "10m", "ATOLL_TEMPLATES_READY_TIMEOUT",
		.lowest = 1000, .highest = 86400000, .reload = 1,
		.help = "time until the ready command of a template must have succeeded" },
	[CONFIG_TEMPLATES_DISK] = { "templates.build_disk", CONFIG_SIZE, "8G", "ATOLL_TEMPLATES_BUILD_DISK",
		.lowest = 1 << 20, .highest = 16 * TIB, .reload = 1,
		.help = "disk of a build box: what one step may write" },
	[CONFIG_TEMPLATES_MEM] = { "templates.build_memory", CONFIG_SIZE, "2G", "ATOLL_TEMPLATES_BUILD_MEMORY",
		.lowest = 16 << 20, .highest = 16 * TIB, .reload = 1,
		.help = "memory of a build box" },
	[CONFIG_TEMPLATES_CPU] = { "templates.build_cpu", CONFIG_COUNT, "2000", "ATOLL_TEMPLATES_BUILD_CPU",
		.lowest = 10, .highest = 1024000, .reload = 1,
		.help = "processor share of a build box, in thousandths of a processor" },
	[CONFIG_TEMPLATES_CACHE] = { "templates.cache_bytes", CONFIG_SIZE, "20G", "ATOLL_TEMPLATES_CACHE",
		.highest = 16 * TIB, .reload = 1,
		.help = "disk space for layers that only the cache of builds uses, and for uploads; none: no limit" },
	[CONFIG_TEMPLATES_UPLOAD] = { "templates.upload_bytes", CONFIG_SIZE, "2G", "ATOLL_TEMPLATES_UPLOAD",
		.lowest = 1 << 20, .highest = 16 * TIB, .reload = 1,
		.help = "size of one uploaded archive or build context" },
	[CONFIG_TEMPLATES_HOSTS] = { "templates.hosts", CONFIG_LIST, NULL, "ATOLL_TEMPLATES_HOSTS", .check = check_rule,
		.reload = 1, .help = "hosts that build boxes may connect to in addition to the registries of packages.*; syntax of egress.allow" },
	[CONFIG_TEMPLATES_REGISTRIES] = { "templates.registries", CONFIG_LIST, NULL, "ATOLL_TEMPLATES_REGISTRIES", .check = check_rule,
		.reload = 1, .help = "registries that images may be pulled from, and the hosts of their files; syntax of egress.allow" },
	[CONFIG_TEMPLATES_MIRROR] = { "templates.mirror", CONFIG_TEXT, NULL, "ATOLL_TEMPLATES_MIRROR", .check = check_mirror,
		.reload = 1, .help = "registry for images without a host, as HOST[:PORT][/PATH]; debian:12 is library/debian:12 there" },
	[CONFIG_TEMPLATES_INSECURE] = { "templates.insecure_registries", CONFIG_LIST, NULL, "ATOLL_TEMPLATES_INSECURE_REGISTRIES",
		.check = check_rule, .reload = 1,
		.help = "registries, as HOST:PORT, that may be used without TLS or with an unknown certificate" },
	[CONFIG_TEMPLATES_PREPARE] = { "templates.prepare", CONFIG_LIST, NULL, "ATOLL_TEMPLATES_PREPARE", .reload = 1,
		.help = "templates that come with the server, which the daemon builds at its start, for all teams; boxes of them wait in a pool" },

	[CONFIG_QUOTA_BOXES] = { "quota.boxes", CONFIG_COUNT, "256", "ATOLL_QUOTA_BOXES",
		.highest = 1000000, .reload = 1,
		.help = "boxes of a team at the same time, unless the team has its own quota" },
	[CONFIG_QUOTA_EXECUTIONS] = { "quota.executions_per_day", CONFIG_COUNT, "none", "ATOLL_QUOTA_EXECUTIONS",
		.highest = INT32_MAX, .reload = 1,
		.help = "programs that a team may start per day" },
	[CONFIG_QUOTA_COMPUTE] = { "quota.compute_seconds_per_month", CONFIG_COUNT, "none", "ATOLL_QUOTA_COMPUTE",
		.highest = INT32_MAX, .reload = 1,
		.help = "CPU seconds of a team per month" },
	[CONFIG_QUOTA_OUTPUT] = { "quota.output_bytes_per_day", CONFIG_SIZE, "none", "ATOLL_QUOTA_OUTPUT",
		.highest = NO_END, .reload = 1,
		.help = "bytes of output of a team's programs per day" },
	[CONFIG_QUOTA_REQUESTS] = { "quota.requests_per_second", CONFIG_COUNT, "none", "ATOLL_QUOTA_REQUESTS",
		.highest = 1000000, .reload = 1,
		.help = "requests of a team per second" },

	[CONFIG_BATCH_JOBS] = { "batch.jobs", CONFIG_COUNT, "none", "ATOLL_BATCH_JOBS",
		.highest = 10000, .reload = 1,
		.help = "programs of all batches at the same time; none: 4 per processor" },
	[CONFIG_BATCH_BYTES] = { "batch.max_bytes", CONFIG_SIZE, "1G", "ATOLL_BATCH_BYTES",
		.highest = 16 * TIB, .reload = 1,
		.help = "size of the items of one batch" },
	[CONFIG_BATCH_KEEP] = { "batch.keep", CONFIG_TIME, "24h", "ATOLL_BATCH_KEEP",
		.highest = LONGEST_MS, .reload = 1,
		.help = "how long the results of a batch are kept; none: until deleted" },
	[CONFIG_QUOTA_BATCH] = { "quota.batch_bytes", CONFIG_SIZE, "8G", "ATOLL_QUOTA_BATCH",
		.highest = NO_END, .reload = 1,
		.help = "size of the items and results of all batches of a team" },
	[CONFIG_PIPELINE_KEEP] = { "pipeline.keep", CONFIG_TIME, "168h", "ATOLL_PIPELINE_KEEP",
		.highest = NO_END, .reload = 1,
		.help = "how long a finished pipeline is kept; none: until deleted" },
	[CONFIG_PIPELINE_MEMORY] = { "pipeline.memory", CONFIG_BOOL, "true", "ATOLL_PIPELINE_MEMORY", .reload = 1,
		.help = "store successful fixes of pipelines for their team" },

	[CONFIG_QUOTA_SNAPSHOTS] = { "quota.snapshot_bytes", CONFIG_SIZE, "32G", "ATOLL_QUOTA_SNAPSHOTS",
		.highest = NO_END, .reload = 1,
		.help = "size of the files of all snapshots of a team" },
	[CONFIG_QUOTA_CHECKPOINTS] = { "quota.checkpoint_bytes", CONFIG_SIZE, "32G", "ATOLL_QUOTA_CHECKPOINTS",
		.highest = NO_END, .reload = 1,
		.help = "size of the files of all checkpoints of a team" },
	[CONFIG_CHECKPOINTS_PER_BOX] = { "limits.checkpoints_per_box", CONFIG_COUNT, "1000", "ATOLL_CHECKPOINTS_PER_BOX",
		.highest = NO_END, .reload = 1,
		.help = "checkpoints that one box may have" },
	[CONFIG_CHECKPOINT_WAIT] = { "limits.checkpoint_wait", CONFIG_TIME, "20ms", "ATOLL_CHECKPOINT_WAIT",
		.highest = NO_END, .reload = 1,
		.help = "how long a program waits for the automatic checkpoint before it; none: not at all" },

	[CONFIG_CURRENCY] = { "rates.currency", CONFIG_TEXT, "USD", "ATOLL_RATES_CURRENCY",
		.check = rates_check_currency, .reload = 1,
		.help = "currency of all rates and budgets, in three letters" },
	[CONFIG_RATE_CPU] = { "rates.cpu_second", CONFIG_RATE, "0", "ATOLL_RATES_CPU_SECOND",
		.reload = 1, .help = "cost of a second of CPU time" },
	[CONFIG_RATE_MEMORY] = { "rates.memory_gib_second", CONFIG_RATE, "0", "ATOLL_RATES_MEMORY_GIB_SECOND",
		.reload = 1, .help = "cost of a GiB of memory for a second" },
	[CONFIG_RATE_DISK] = { "rates.disk_gib_day", CONFIG_RATE, "0", "ATOLL_RATES_DISK_GIB_DAY",
		.reload = 1, .help = "cost of a GiB of snapshots, volumes and disks of stopped or paused boxes for a day" },
	[CONFIG_RATE_NETWORK] = { "rates.network_gib", CONFIG_RATE, "0", "ATOLL_RATES_NETWORK_GIB",
		.reload = 1, .help = "cost of a GiB that a box sends" },
	[CONFIG_RATE_GPU] = { "rates.gpu_second", CONFIG_RATE, "0", "ATOLL_RATES_GPU_SECOND",
		.reload = 1, .help = "cost of a second of a box with a GPU; this version has none" },
	[CONFIG_RATE_TOKENS_IN] = { "rates.tokens_in_million", CONFIG_RATE, "0", "ATOLL_RATES_TOKENS_IN_MILLION",
		.reload = 1, .help = "cost of a million tokens that pipelines send to language models" },
	[CONFIG_RATE_TOKENS_OUT] = { "rates.tokens_out_million", CONFIG_RATE, "0", "ATOLL_RATES_TOKENS_OUT_MILLION",
		.reload = 1, .help = "cost of a million tokens that language models answer to pipelines" },

	[CONFIG_ISOLATION_TRUSTED] = { "isolation.trusted", CONFIG_TEXT, "container", "ATOLL_ISOLATION_TRUSTED",
		.check = config_check_tier, .reload = 1,
		.help = "minimum isolation tier of code that is trusted: container, wasm, gvisor, microvm; process only here" },
	[CONFIG_ISOLATION_GENERATED] = { "isolation.generated", CONFIG_TEXT, "container", "ATOLL_ISOLATION_GENERATED",
		.check = config_check_minimum, .reload = 1,
		.help = "minimum isolation tier of code that a model has written, and of requests without a label" },
	[CONFIG_ISOLATION_UNTRUSTED] = { "isolation.untrusted", CONFIG_TEXT, "gvisor", "ATOLL_ISOLATION_UNTRUSTED",
		.check = config_check_minimum, .reload = 1,
		.help = "minimum isolation tier of code of unknown origin" },
	[CONFIG_ISOLATION_HOSTILE] = { "isolation.hostile", CONFIG_TEXT, "microvm", "ATOLL_ISOLATION_HOSTILE",
		.check = config_check_minimum, .reload = 1,
		.help = "minimum isolation tier of code that is expected to attack the host" },
	[CONFIG_ISOLATION_PROCESS] = { "isolation.process", CONFIG_BOOL, "false", "ATOLL_ISOLATION_PROCESS", .reload = 1,
		.help = "keys with --isolation process may request that tier, which is weaker than a container" },
	[CONFIG_ISOLATION_EMULATION] = { "isolation.emulation", CONFIG_BOOL, "false", "ATOLL_ISOLATION_EMULATION", .reload = 1,
		.help = "offer microvm without /dev/kvm: emulated, slow, and ranked as a container; for tests" },
	[CONFIG_ISOLATION_PREFER] = { "isolation.prefer", CONFIG_LIST, "container,wasm,gvisor,microvm", "ATOLL_ISOLATION_PREFER",
		.check = config_check_minimum, .reload = 1,
		.help = "order in which tiers are tried for a request that names none; tiers that are not listed are used by name only" },
	[CONFIG_ISOLATION_PROVE] = { "isolation.prove", CONFIG_BOOL, "true", "ATOLL_ISOLATION_PROVE", .reload = 1,
		.help = "prove tiers without a valid proof: stronger ones after the start, container after half a minute without activity" },

	[CONFIG_OIDC_ISSUER] = { "auth.oidc_issuer", CONFIG_TEXT, NULL, "ATOLL_OIDC_ISSUER",
		.check = check_issuer, .reload = 1,
		.help = "issuer of bearer tokens (claim iss)" },
	[CONFIG_OIDC_JWKS] = { "auth.oidc_jwks", CONFIG_PATH, NULL, "ATOLL_OIDC_JWKS", .reload = 1,
		.help = "file with the public keys of the issuer (JWKS)" },
	[CONFIG_OIDC_AUDIENCE] = { "auth.oidc_audience", CONFIG_TEXT, NULL, "ATOLL_OIDC_AUDIENCE", .reload = 1,
		.help = "required audience of bearer tokens (claim aud)" },
	[CONFIG_OIDC_TEAM_CLAIM] = { "auth.oidc_team_claim", CONFIG_TEXT, "team", "ATOLL_OIDC_TEAM_CLAIM",
		.reload = 1, .help = "claim that contains the team" },
	[CONFIG_OIDC_ROLE_CLAIM] = { "auth.oidc_role_claim", CONFIG_TEXT, "role", "ATOLL_OIDC_ROLE_CLAIM",
		.reload = 1, .help = "claim that contains the role; a token without it is a viewer" },
	[CONFIG_METRICS_PUBLIC] = { "metrics.public", CONFIG_BOOL, "false", "ATOLL_METRICS_PUBLIC", .reload = 1,
		.help = "serve /metrics without a key" },
	[CONFIG_E2B_INTERNET] = { "e2b.internet", CONFIG_BOOL, "false", "ATOLL_E2B_INTERNET", .reload = 1,
		.help = "E2B sandboxes that do not set internet access may connect to all hosts of egress.allow" },
	[CONFIG_E2B_INSECURE] = { "e2b.insecure", CONFIG_BOOL, "false", "ATOLL_E2B_INSECURE", .reload = 1,
		.help = "POST /sandboxes without \"secure\": true creates a sandbox without tokens, for old E2B clients" },
	[CONFIG_MCP_APPROVE] = { "mcp.approve", CONFIG_LIST, NULL, "ATOLL_MCP_APPROVE", .check = config_check_tool, .reload = 1,
		.help = "tools that a person must approve for each call, through the MCP client" },

	[CONFIG_CLUSTER_ROLE] = { "cluster.role", CONFIG_CHOICE, "alone", "ATOLL_CLUSTER_ROLE", .words = cluster_roles,
		.help = "alone; node: runs boxes for gateways; gateway: serves clients and sends their requests to nodes; both" },
	[CONFIG_CLUSTER_NAME] = { "cluster.name", CONFIG_TEXT, NULL, "ATOLL_CLUSTER_NAME", .check = config_check_cluster_name,
		.help = "name of this machine in the cluster; none: its host name" },
	[CONFIG_CLUSTER_GATEWAYS] = { "cluster.gateways", CONFIG_LIST, NULL, "ATOLL_CLUSTER_GATEWAYS", .check = config_check_gateway,
		.help = "gateways that a node connects to, as HOST:PORT" },
	[CONFIG_CLUSTER_LISTEN] = { "cluster.listen", CONFIG_TEXT, "0.0.0.0:7071", "ATOLL_CLUSTER_LISTEN", .check = config_check_cluster_listen,
		.help = "address at which a gateway accepts nodes" },
	[CONFIG_CLUSTER_DATABASE] = { "cluster.database", CONFIG_TEXT, NULL, "ATOLL_CLUSTER_DATABASE", .check = config_check_database,
		.help = "PostgreSQL of the gateways: postgresql://USER@HOST/NAME or 'host=... dbname=...', without the password" },
	[CONFIG_CLUSTER_ETCD] = { "cluster.etcd", CONFIG_LIST, NULL, "ATOLL_CLUSTER_ETCD", .check = check_url,
		.help = "members of etcd, as URLs; none: PostgreSQL coordinates the cluster" },
	[CONFIG_CLUSTER_OBJECTS] = { "cluster.objects", CONFIG_TEXT, NULL, "ATOLL_CLUSTER_OBJECTS", .check = config_check_objects,
		.help = "URL of an S3-compatible bucket, the same at gateways and nodes; none: files travel through gateways" },
	[CONFIG_CLUSTER_SECRETS] = { "cluster.secrets", CONFIG_PATH, "$secrets", "ATOLL_CLUSTER_SECRETS",
		.help = "folder of a gateway with its passwords and the key of the cluster's certificate authority; mode 0700" },
	[CONFIG_CLUSTER_PLACEMENT] = { "cluster.placement", CONFIG_CHOICE, "spread", "ATOLL_CLUSTER_PLACEMENT", .words = placements, .reload = 1,
		.help = "new boxes: spread over nodes, or pack them on as few as possible" },
	[CONFIG_CLUSTER_LABELS] = { "cluster.labels", CONFIG_LIST, NULL, "ATOLL_CLUSTER_LABELS", .check = config_check_label, .reload = 1,
		.help = "labels of a node, as NAME=VALUE, that requests can ask for" },
	[CONFIG_CLUSTER_FORGET_AFTER] = { "cluster.forget_after", CONFIG_TIME, "10m", "ATOLL_CLUSTER_FORGET_AFTER",
		.lowest = 1000, .highest = LONGEST_MS, .reload = 1,
		.help = "time after which boxes of a lost node are reported lost" },
	[CONFIG_CLUSTER_NODES_MIN] = { "cluster.nodes_min", CONFIG_COUNT, "1", "ATOLL_CLUSTER_NODES_MIN", .highest = 32767, .reload = 1,
		.help = "nodes that GET /v1/scale wants at least" },
	[CONFIG_CLUSTER_NODE_BOOT] = { "cluster.node_boot", CONFIG_TIME, "2m", "ATOLL_CLUSTER_NODE_BOOT",
		.lowest = 1000, .highest = LONGEST_MS, .reload = 1,
		.help = "time from the request for a further node until it takes boxes, for GET /v1/scale" },

	[CONFIG_HOST] = { "host", CONFIG_TEXT, NULL, "ATOLL_HOST", .check = check_host,
		.help = "daemon that the command line uses" },
	[CONFIG_KEY] = { "key", CONFIG_SECRET, NULL, "ATOLL_KEY", .check = check_key,
		.help = "API key for that daemon" },
	[CONFIG_KEY_FILE] = { "key_file", CONFIG_PATH, NULL, "ATOLL_KEY_FILE",
		.help = "file that contains the API key" },
};
/* clang-format on */

struct flag config_flags[CONFIG_FLAGS];

void config_init_flags(void)
{
	for (unsigned i = 0; i < CONFIG_NFLAGS; i++)
		config_flags[i] = (struct flag){ .name = config_rows[i].flag,
						 .type = FLAG_WORDS,
						 .metavar = config_rows[i].metavar,
						 .help = config_rows[i].help };
	config_flags[CONFIG_FLAG_FILE] =
		(struct flag){ "config", 0, FLAG_TEXT, "FILE", "read only this file" };
}
