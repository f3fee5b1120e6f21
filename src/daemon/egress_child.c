/* egress_child.c - see egress_child.h. */
#include "daemon/egress_child.h"
#include "daemon/certificates.h"
#include "base/log.h"
#include "base/cleanup.h"
#include "daemon/confine.h"
#include "wire/sock.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

enum { EGRESS_UID = 64171 };

/* ---- what is permitted ---- */

static int egress_add(struct egress_child_rules *out, const struct net_rule *r, struct err *e)
{
	for (unsigned i = 0; i < out->n; i++)
		if (memcmp(&out->v[i], r, sizeof(*r)) == 0)
			return 0;
	if (out->n == EGRESS_CHILD_RULES)
		return err_set(e, ERR_LIMIT, "egress.allow: more than %d hosts",
			       EGRESS_CHILD_RULES);
	out->v[out->n++] = *r;
	return 0;
}

static int add_list(struct egress_child_rules *out, const struct config *c, enum config_key key,
		    int internal, struct err *e)
{
	for (const char *const *text = config_list(c, key); *text; text++) {
		struct net_rule r;

		if (net_rule_parse_allow(&r, *text, e) < 0)
			return -1;
		r.internal = (uint8_t)internal;
		if (egress_add(out, &r, e) < 0)
			return -1;
	}
	return 0;
}

static int add_deny(struct egress_child_rules *out, const struct config *c, struct err *e)
{
	for (const char *const *text = config_list(c, CONFIG_EGRESS_DENY); *text; text++) {
		if (out->ndeny == EGRESS_CHILD_DENY)
			return err_set(e, ERR_LIMIT, "egress.deny: more than %d rules",
				       EGRESS_CHILD_DENY);
		if (net_rule_parse(&out->deny[out->ndeny], *text, e) < 0)
			return -1;
		out->ndeny++;
	}
	return 0;
}

static int add_url(struct egress_child_rules *out, const char *url, struct err *e)
{
	struct net_rule r;

	if (!url)
		return 0;
	return net_rule_of_url(&r, url, e) < 0 ? -1 : egress_add(out, &r, e);
}

int egress_child_rules(const struct config *c, struct egress_child_rules *out, struct err *e)
{
	static const enum config_key urls[] = { CONFIG_PIP_INDEX, CONFIG_NPM_REGISTRY,
						CONFIG_GEM_SOURCE, CONFIG_CARGO_INDEX,
						CONFIG_GO_PROXY };
	char mirror[512];

	memset(out, 0, sizeof(*out));
	if (add_list(out, c, CONFIG_EGRESS_ALLOW, 0, e) < 0 ||
	    add_list(out, c, CONFIG_EGRESS_INTERNAL, 1, e) < 0 ||
	    add_list(out, c, CONFIG_PACKAGES_HOSTS, 0, e) < 0 ||
	    add_list(out, c, CONFIG_TEMPLATES_HOSTS, 0, e) < 0 ||
	    add_list(out, c, CONFIG_TEMPLATES_REGISTRIES, 0, e) < 0 || add_deny(out, c, e) < 0)
		return -1;
	if (config_text(c, CONFIG_TEMPLATES_MIRROR)) {
		snprintf(mirror, sizeof(mirror), "https://%.480s",
			 config_text(c, CONFIG_TEMPLATES_MIRROR));
		if (add_url(out, mirror, e) < 0)
			return -1;
	}
	for (unsigned i = 0; i < ARRAY_LEN(urls); i++)
		if (add_url(out, config_text(c, urls[i]), e) < 0)
			return -1;
	for (const char *const *m = config_list(c, CONFIG_APT_MIRRORS); *m; m++)
		if (add_url(out, *m, e) < 0)
			return -1;
	return 0;
}

int egress_child_wanted(const struct config *c, const struct egress_child_rules *rules)
{
	return rules->n || config_bool(c, CONFIG_EGRESS_LINKS);
}

/* ---- the process ---- */

static int egress_walls(void *ctx, struct err *e)
{
	const struct egress_child *o = ctx;
	uid_t uid = o->root ? EGRESS_UID : (uid_t)-1;

	return confine_enter_egress(uid, uid, e);
}

static void many_files(void)
{
	struct rlimit r = { 65536, 65536 }, now;

	if (getrlimit(RLIMIT_NOFILE, &now) == 0 && geteuid() != 0)
		r.rlim_cur = r.rlim_max = now.rlim_max;
	(void)!setrlimit(RLIMIT_NOFILE, &r);
}

static void be_egress(void *ctx)
{
	struct egress_child *o = ctx;
	struct buf certificates = { 0 };
	struct err e;
	struct egress_conf conf = { .rules = o->rules.v,
				    .nrules = o->rules.n,
				    .deny = o->rules.deny,
				    .ndeny = o->rules.ndeny,
				    .used = o->used,
				    .dns = config_list(o->config, CONFIG_EGRESS_DNS),
				    .limits = o->limits };

	confine_clear_environment();
	many_files();
	if (certificates_read(o->config, &certificates, &e) < 0)
		log_error("egress trusts the certificates of this machine only", LOG_E(&e));
	conf.certificates = buf_str(&certificates);
	_exit(egress_main(&conf, 3, egress_walls, o));
}

/* No other child of the supervisor may write what egress has counted. */
static void egress_share_used(const struct egress_child *o, int on)
{
	if (o->used)
		(void)!madvise(o->used, EGRESS_WAYS * sizeof(*o->used),
			       on ? MADV_DOFORK : MADV_DONTFORK);
}

void egress_child_init(struct egress_child *o, int root)
{
	void *used = mmap(NULL, EGRESS_WAYS * sizeof(struct egress_used), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	*o = (struct egress_child){ .child.link = -1,
				    .root = root,
				    .used = used == MAP_FAILED ? NULL : used };
	egress_share_used(o, 0);
}

static struct egress_limits limits_of(const struct config *c)
{
	return (struct egress_limits){
		.bytes_in = config_number(c, CONFIG_EGRESS_IN),
		.bytes_out = config_number(c, CONFIG_EGRESS_OUT),
		.dns_queries = config_number(c, CONFIG_EGRESS_QUERIES),
		.connections = (uint32_t)config_number(c, CONFIG_EGRESS_CONNECTIONS),
		.idle_ms = (uint32_t)config_number(c, CONFIG_EGRESS_IDLE),
		.ask_ms = (uint32_t)config_number(c, CONFIG_EGRESS_ASK),
	};
}

static int same_limits(const struct egress_limits *a, const struct egress_limits *b)
{
	return a->bytes_in == b->bytes_in && a->bytes_out == b->bytes_out &&
	       a->dns_queries == b->dns_queries && a->connections == b->connections &&
	       a->idle_ms == b->idle_ms && a->ask_ms == b->ask_ms;
}

void egress_child_apply(struct egress_child *o, const struct config *c)
{
	const char *ca = config_text(c, CONFIG_EGRESS_CA);
	struct egress_limits limits = limits_of(c);
	struct egress_child_rules fresh;
	struct err e;
	int same;

	o->config = c;
	if (egress_child_rules(c, &fresh, &e) < 0) { /* was checked before */
		log_error("egress", LOG_E(&e));
		return;
	}
	same = memcmp(&fresh, &o->rules, sizeof(fresh)) == 0 && same_limits(&limits, &o->limits) &&
	       strcmp(ca ? ca : "", o->ca) == 0 && o->links == config_bool(c, CONFIG_EGRESS_LINKS);
	if (same && (o->child.pid || !egress_child_wanted(c, &fresh)))
		return;
	child_stop(&o->child);
	o->links = config_bool(c, CONFIG_EGRESS_LINKS);
	o->rules = fresh;
	o->limits = limits;
	snprintf(o->ca, sizeof(o->ca), "%s", ca ? ca : "");
	o->child.tried_ns = 0;
	egress_child_maintain(o);
}

int egress_child_maintain(struct egress_child *o)
{
	struct err e;

	if (o->child.pid || !egress_child_wanted(o->config, &o->rules))
		return 0;
	if (child_rests(&o->child))
		return 1;
	egress_share_used(o, 1);
	if (child_start(&o->child, "atoll-egress", be_egress, o, &e) < 0)
		log_error("no egress", LOG_E(&e));
	egress_share_used(o, 0);
	return !o->child.pid;
}

int egress_child_ended(struct egress_child *o, pid_t pid)
{
	if (!child_is(&o->child, pid))
		return 0;
	log_error("egress ended, starting another");
	child_stop(&o->child);
	return 1;
}

int egress_child_hand(struct egress_child *o, int server_link)
{
	int pair[2];
	struct err e;

	if (!o->child.pid || sock_pair(pair, &e) < 0)
		return -1;
	return child_hand(&o->child, WIRE_EGRESS_CONNECT, pair, server_link);
}
