/* sluice.c - see sluice.h. */
#include "serve/sluice.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/own.h"
#include "serve/cell.h"
#include "wire/sock.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

enum { EGRESS_UID = 64171, AGAIN_MS = 500 };

/* ---- what is permitted ---- */

static int add(struct sluice_rules *out, const struct rule *r, struct err *e)
{
	for (unsigned i = 0; i < out->n; i++)
		if (memcmp(&out->v[i], r, sizeof(*r)) == 0)
			return 0;
	if (out->n == SLUICE_RULES)
		return err_set(e, ERR_LIMIT, "egress.allow: more than %d hosts", SLUICE_RULES);
	out->v[out->n++] = *r;
	return 0;
}

static int add_list(struct sluice_rules *out, const struct config *c, enum config_key key,
		    int internal, struct err *e)
{
	for (const char *const *text = config_list(c, key); *text; text++) {
		struct rule r;

		if (rule_parse(&r, *text, e) < 0)
			return -1;
		r.internal = (uint8_t)internal;
		if (add(out, &r, e) < 0)
			return -1;
	}
	return 0;
}

static int add_url(struct sluice_rules *out, const char *url, struct err *e)
{
	struct rule r;

	if (!url)
		return 0;
	return rule_of_url(&r, url, e) < 0 ? -1 : add(out, &r, e);
}

int sluice_rules(const struct config *c, struct sluice_rules *out, struct err *e)
{
	static const enum config_key urls[] = { CONFIG_PIP_INDEX, CONFIG_NPM_REGISTRY,
						CONFIG_GEM_SOURCE, CONFIG_CARGO_INDEX,
						CONFIG_GO_PROXY };

	memset(out, 0, sizeof(*out));
	if (add_list(out, c, CONFIG_EGRESS_ALLOW, 0, e) < 0 ||
	    add_list(out, c, CONFIG_EGRESS_INTERNAL, 1, e) < 0 ||
	    add_list(out, c, CONFIG_PACKAGES_HOSTS, 0, e) < 0)
		return -1;
	for (unsigned i = 0; i < ARRAY_LEN(urls); i++)
		if (add_url(out, config_text(c, urls[i]), e) < 0)
			return -1;
	for (const char *const *m = config_list(c, CONFIG_APT_MIRRORS); *m; m++)
		if (add_url(out, *m, e) < 0)
			return -1;
	return 0;
}

/* ---- the process ---- */

static int walls(void *ctx, struct err *e)
{
	const struct sluice *o = ctx;
	uid_t uid = o->root ? EGRESS_UID : (uid_t)-1;

	return cell_enter_egress(uid, uid, e);
}

static void many_files(void)
{
	struct rlimit r = { 65536, 65536 }, now;

	if (getrlimit(RLIMIT_NOFILE, &now) == 0 && geteuid() != 0)
		r.rlim_cur = r.rlim_max = now.rlim_max;
	(void)!setrlimit(RLIMIT_NOFILE, &r);
}

static _Noreturn void be_egress(struct sluice *o, int link)
{
	struct egress_conf conf = { .rules = o->rules.v,
				    .nrules = o->rules.n,
				    .dns = config_list(o->config, CONFIG_EGRESS_DNS),
				    .limits = o->limits };
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGHUP, SIG_IGN);
	signal(SIGUSR2, SIG_IGN);
	signal(SIGINT, SIG_IGN);
	/* Not the ports, not the links of fronts, not the seat: who holds one is not seen to leave. */
	if (dup2(link, 3) < 0 || syscall(SYS_close_range, 4, ~0U, 0) < 0)
		_exit(1);
	prctl(PR_SET_NAME, "atoll-egress");
	cell_forget_environment();
	many_files();
	_exit(egress_main(&conf, 3, walls, o));
}

static int start(struct sluice *o, struct err *e)
{
	int pair[2];

	o->tried_ns = now_ns();
	if (sock_pair(pair, e) < 0)
		return -1;
	fflush(NULL);
	o->pid = fork();
	if (o->pid == 0)
		be_egress(o, pair[1]);
	close(pair[1]);
	o->link = pair[0];
	if (o->pid > 0)
		return 0;
	o->pid = 0;
	own_close_fd(&o->link);
	return err_sys(e, "fork egress");
}

static void stop(struct sluice *o)
{
	own_close_fd(&o->link); /* it leaves when it reads that; reaped as nobody's */
	o->pid = 0;
}

void sluice_init(struct sluice *o, int root)
{
	*o = (struct sluice){ .link = -1, .root = root };
}

static struct egress_limits limits_of(const struct config *c)
{
	return (struct egress_limits){
		.bytes_in = config_number(c, CONFIG_EGRESS_IN),
		.bytes_out = config_number(c, CONFIG_EGRESS_OUT),
		.connections = (uint32_t)config_number(c, CONFIG_EGRESS_CONNECTIONS),
		.idle_ms = (uint32_t)config_number(c, CONFIG_EGRESS_IDLE),
	};
}

static int same_limits(const struct egress_limits *a, const struct egress_limits *b)
{
	return a->bytes_in == b->bytes_in && a->bytes_out == b->bytes_out &&
	       a->connections == b->connections && a->idle_ms == b->idle_ms;
}

void sluice_apply(struct sluice *o, const struct config *c)
{
	struct egress_limits limits = limits_of(c);
	struct sluice_rules fresh;
	struct err e;
	int same;

	o->config = c;
	if (sluice_rules(c, &fresh, &e) < 0) { /* was checked before */
		log_error("egress", LOG_E(&e));
		return;
	}
	same = memcmp(&fresh, &o->rules, sizeof(fresh)) == 0 && same_limits(&limits, &o->limits);
	if (same && (o->pid || !fresh.n))
		return;
	stop(o);
	o->rules = fresh;
	o->limits = limits;
	o->tried_ns = 0;
	sluice_tend(o);
}

int sluice_tend(struct sluice *o)
{
	struct err e;

	if (o->pid || !o->rules.n)
		return 0;
	if (o->tried_ns && now_ns() - o->tried_ns < AGAIN_MS * UINT64_C(1000000))
		return 1;
	if (start(o, &e) < 0)
		log_error("no egress", LOG_E(&e));
	return !o->pid;
}

int sluice_ended(struct sluice *o, pid_t pid)
{
	if (!o->pid || pid != o->pid)
		return 0;
	log_error("egress ended, starting another");
	stop(o);
	return 1;
}

int sluice_hand(struct sluice *o, int front_link)
{
	struct frame head = sock_head(WIRE_WAY, 0);
	int pair[2], rc;
	struct err e;

	if (!o->pid || sock_pair(pair, &e) < 0)
		return -1;
	rc = sock_send(o->link, &head, sizeof(head), NULL, 0, &pair[0], 1, &e);
	if (rc == 0)
		rc = sock_send(front_link, &head, sizeof(head), NULL, 0, &pair[1], 1, &e);
	close(pair[0]);
	close(pair[1]);
	return rc;
}
