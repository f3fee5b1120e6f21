/* outbound_child.c - see outbound_child.h. */
#include "daemon/outbound_child.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "daemon/certificates.h"
#include "daemon/confine.h"
#include "outbound/process.h"
#include "wire/wire.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

enum { OUTBOUND_UID = 64173, OUTBOUND_FILES = 2048 };

/* Settings with URLs of the operator, whose hosts may have internal addresses; CONFIG_NKEYS is the
 * end. */
static const enum config_key outbound_urls[] = { CONFIG_TRACE_ENDPOINT, CONFIG_ALERTS_WEBHOOK,
						 CONFIG_ALERTS_MAIL_SERVER, CONFIG_NKEYS };

static int outbound_add(struct outbound_child_list *l, const struct net_rule *r, const char *what,
			struct err *e)
{
	if (l->n == OUTBOUND_CHILD_RULES)
		return err_set(e, ERR_LIMIT, "%s: more than %d rules", what, OUTBOUND_CHILD_RULES);
	l->v[l->n++] = *r;
	return 0;
}

static int outbound_read_rules(const struct config *c, struct outbound_child_rules *out,
			       struct err *e)
{
	struct net_rule r;

	memset(out, 0, sizeof(*out));
	for (const char *const *t = config_list(c, CONFIG_OUTBOUND_ALLOW); *t; t++)
		if (net_rule_parse_allow(&r, *t, e) < 0 ||
		    outbound_add(&out->allow, &r, "outbound.allow", e) < 0)
			return -1;
	for (const char *const *t = config_list(c, CONFIG_EGRESS_DENY); *t; t++)
		if (net_rule_parse(&r, *t, e) < 0 ||
		    outbound_add(&out->deny, &r, "egress.deny", e) < 0)
			return -1;
	for (unsigned i = 0; outbound_urls[i] != CONFIG_NKEYS; i++) {
		const char *url = config_text(c, outbound_urls[i]),
			   *name = config_rows[outbound_urls[i]].name;

		if (url && (outbound_target_rule(&r, url, e) < 0 ||
			    outbound_add(&out->named, &r, name, e) < 0))
			return err_in(e, "%s", name);
	}
	return 0;
}

int outbound_child_check(const struct config *c, struct err *e)
{
	static struct outbound_child_rules rules;

	return outbound_read_rules(c, &rules, e);
}

/* ---- the process ---- */

static int outbound_walls(void *ctx, struct err *e)
{
	const struct outbound_child *o = ctx;
	uid_t uid = o->root ? OUTBOUND_UID : (uid_t)-1;

	return confine_enter_outbound(uid, uid, e);
}

static void outbound_be(void *ctx)
{
	const struct rlimit files = { OUTBOUND_FILES, OUTBOUND_FILES };
	struct outbound_child *o = ctx;
	struct buf authorities = { 0 };
	struct outbound_conf conf = {
		.rules = { .allow = o->rules.allow.v,
			   .nallow = o->rules.allow.n,
			   .named = o->rules.named.v,
			   .nnamed = o->rules.named.n,
			   .deny = o->rules.deny.v,
			   .ndeny = o->rules.deny.n },
		.dns = config_list(o->config, CONFIG_EGRESS_DNS),
	};
	struct err e;

	confine_clear_environment();
	(void)!setrlimit(RLIMIT_NOFILE, &files);
	if (certificates_read(o->config, &authorities, &e) < 0)
		log_error("outbound trusts the certificates of this machine only", LOG_E(&e));
	conf.authorities = buf_str(&authorities);
	_exit(outbound_main(&conf, 3, outbound_walls, o));
}

void outbound_child_init(struct outbound_child *o, int root)
{
	*o = (struct outbound_child){ .child.link = -1, .root = root };
}

void outbound_child_apply(struct outbound_child *o, const struct config *c)
{
	static struct outbound_child_rules fresh;
	const char *ca = config_text(c, CONFIG_EGRESS_CA);
	struct err e;

	o->config = c;
	if (outbound_read_rules(c, &fresh, &e) < 0) { /* was checked before */
		log_error("outbound", LOG_E(&e));
		return;
	}
	if (memcmp(&fresh, &o->rules, sizeof(fresh)) == 0 && strcmp(ca ? ca : "", o->ca) == 0)
		return;
	child_stop(&o->child); /* it finishes its current requests */
	o->rules = fresh;
	snprintf(o->ca, sizeof(o->ca), "%s", ca ? ca : "");
	o->child.tried_ns = 0;
}

int outbound_child_ended(struct outbound_child *o, pid_t pid)
{
	if (!child_is(&o->child, pid))
		return 0;
	log_error("the outbound process ended");
	child_stop(&o->child);
	return 1;
}

int outbound_child_hand(struct outbound_child *o, int server_link)
{
	int pair[2];
	struct err e;

	if (!o->child.pid) {
		if (child_rests(&o->child))
			return -1;
		if (child_start(&o->child, "atoll-outbound", outbound_be, o, &e) < 0) {
			log_error("no requests to other hosts", LOG_E(&e));
			return -1;
		}
	}
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
		return -1;
	return child_hand(&o->child, WIRE_OUTBOUND_CONNECT, pair, server_link);
}
