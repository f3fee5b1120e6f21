/* server.c - see server.h.
 *
 *   supervisor                  server
 *   fork                  --->  confinement, store, fleet
 *                         <---  WIRE_INFO: requests a keeper connection
 *   connects              --->  WIRE_FD
 *                               restores running boxes, then listens
 *                         <---  WIRE_DONE
 *   WIRE_DONE             --->  no older server is left beside it
 *   SIGTERM               --->  drains: no new connections, running answers are finished
 *
 * The server listens only when every earlier box is in its table again: a client that connects
 * earlier waits in the socket's queue, and finds all boxes. */
#include "daemon/hibernate.h"
#include "daemon/prove_runner.h"
#include "daemon/prove_settings.h"
#include "daemon/server.h"
#include "daemon/server_cluster.h"
#include "outbound/outbound.h"
#include "alert/alerts.h"
#include "pipeline/pipeline.h"
#include "api/api.h"
#include "api/oidc.h"
#include "base/buf.h"
#include "base/id.h"
#include "base/log.h"
#include "v1agent/agents.h"
#include "v1box/copies.h"
#include "v1box/figures_route.h"
#include "v1box/host_sampler.h"
#include "v1run/fragment_spare.h"
#include "v1/doctor.h"
#include "v1/v1.h"
#include "base/cleanup.h"
#include "e2b/e2b.h"
#include "e2bcontrol/e2bcontrol.h"
#include "e2bcontrol/pause.h"
#include "e2bcontrol/webhooks.h"
#include "egress/net_rule.h"
#include "gateway/gateway.h"
#include "batch/batch.h"
#include "buildcache/compile_reuse.h"
#include "notebook/context.h"
#include "packages/package_preinstall.h"
#include "packages/packages.h"
#include "receipt/receipts.h"
#include "secret/vault.h"
#include "template/build.h"
#include "http/tls.h"
#include "cluster/role.h"
#include "daemon/certificates.h"
#include "daemon/confine.h"
#include "daemon/egress_child.h"
#include "daemon/node_number.h"
#include "tools/tool.h"
#include "v1/play.h"
#include "v1/ui.h"
#include "webhook/runner.h"
#include "v1ops/grants.h"
#include "v1ops/shared_rows.h"
#include "v1ops/schedule_runs.h"
#include "wire/sock.h"

#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysinfo.h>

enum on_shutdown { SHUTDOWN_CONTINUE, SHUTDOWN_HIBERNATE };
enum {
	SERVER_LOOK_MS = 20,
	SERVER_LEAVE_MS = 200, /* drain of a node whose requests have ended, or were waited for */
};

struct server {
	struct package_preinstall prepare;
	const struct server_start *start;
	struct loop loop;
	struct api api;
	struct frame_conn supervisor;
	struct on_signal term;
	struct timer drain, tick, leave;
	struct ssl_ctx_st *tls;
	struct vault vault;
	struct receipts receipts;
	struct prove_runner prove;
	struct buf prove_settings;
	struct server_cluster *cluster; /* NULL: not part of one */
	struct hibernate hibernate;
	uint64_t drain_ms;
	uint64_t leave_ms; /* a node that ends drains at the latest then; 0: it does not end */
	int status;
};

#define SERVER_NO_BOXES                                                                            \
	"this machine is a gateway (cluster.role) and has no boxes of its own: this request is not sent to nodes"

static int server_has_keeper(const struct server_start *s)
{
	return config_number(s->config, CONFIG_CLUSTER_ROLE) != CLUSTER_GATEWAY;
}

/* ---- the supervisor ---- */

static void ask_keeper(struct fleet *f)
{
	struct server *x = f->user;
	struct frame ask = sock_head(WIRE_INFO, 0);

	log_info("asking for a keeper");
	frame_conn_send(&x->supervisor, &ask, sizeof(ask), NULL, 0, -1);
}

static void ask_way(struct egress_client *g)
{
	struct server *x = g->user;
	struct frame ask = sock_head(WIRE_EGRESS_CONNECT, 0);

	frame_conn_send(&x->supervisor, &ask, sizeof(ask), NULL, 0, -1);
}

static void ask_model(void *user)
{
	struct server *x = user;
	struct frame ask = sock_head(WIRE_LLM_CONNECT, 0);

	frame_conn_send(&x->supervisor, &ask, sizeof(ask), NULL, 0, -1);
}

static void ask_outbound(void *user)
{
	struct server *x = user;
	struct frame ask = sock_head(WIRE_OUTBOUND_CONNECT, 0);

	frame_conn_send(&x->supervisor, &ask, sizeof(ask), NULL, 0, -1);
}

static void ask_command(void *user)
{
	struct server *x = user;
	struct frame ask = sock_head(WIRE_ALERT_COMMAND, 0);

	frame_conn_send(&x->supervisor, &ask, sizeof(ask), NULL, 0, -1);
}

static void ask_proof(void *user, unsigned wire_tier)
{
	struct server *x = user;
	struct frame ask = sock_head(WIRE_PROVE, 0);

	ask.flags = (uint16_t)wire_tier;
	frame_conn_send(&x->supervisor, &ask, sizeof(ask), NULL, 0, -1);
}

static void ask_doctor(struct api *a)
{
	struct server *x = loop_owner(a, struct server, api);
	struct frame ask = sock_head(WIRE_DOCTOR, 0);

	frame_conn_send(&x->supervisor, &ask, sizeof(ask), NULL, 0, -1);
}

/* Before any request that waits for the keeper. The answer has no ref, so it is ignored. */
static void server_send_number(int keeper)
{
	struct wire_node_number n = { .head = sock_head(WIRE_NODE_NUMBER, 0),
				      .number = id_own_node() < ID_NODES ? id_own_node()
									 : WIRE_NO_NODE };
	struct err e;

	if (sock_send(keeper, &n, sizeof(n), NULL, 0, NULL, 0, &e) < 0)
		log_warn("the keeper did not take the number of this node", LOG_E(&e));
}

static void keeper_came(struct server *x, int take_fd)
{
	struct wire_pool_size fill = { .head = sock_head(WIRE_POOL_SIZE, 0),
				       .depth = (uint32_t)config_number(x->start->config,
									CONFIG_POOL) };
	struct fleet *f = &x->api.fleet;

	server_send_number(take_fd);
	fleet_keeper(f, take_fd);
	frame_conn_send(&f->keeper.post, &fill, sizeof(fill), NULL, 0,
			-1); /* no caller waits for its answer */
	templates_prepare(x->api.builds);
}

/* SIGTERM follows; it also comes when another server takes over. */
static void server_stops(struct server *x)
{
	if (server_has_keeper(x->start) &&
	    config_number(x->start->config, CONFIG_ON_SHUTDOWN) == SHUTDOWN_HIBERNATE)
		hibernate_pause_all(&x->hibernate);
}

static void supervisor_says(struct frame_conn *p, const struct frame *f, size_t len, int *fd)
{
	struct server *x = loop_owner(p, struct server, supervisor);

	(void)len;
	if (f->type == WIRE_FD && *fd >= 0)
		keeper_came(x, steal_fd(fd));
	else if (f->type == WIRE_EGRESS_CONNECT && *fd >= 0)
		egress_client_connect(&x->api.fleet.egress_client, steal_fd(fd));
	else if (f->type == WIRE_LLM_CONNECT && *fd >= 0 && x->api.model)
		llm_client_connect(x->api.model, steal_fd(fd));
	else if (f->type == WIRE_OUTBOUND_CONNECT && *fd >= 0)
		outbound_connect(x->api.outbound, steal_fd(fd));
	else if (f->type == WIRE_ALERT_COMMAND && *fd >= 0)
		alerts_command_connect(x->api.alerts, steal_fd(fd));
	else if (f->type == WIRE_DOCTOR && *fd >= 0)
		doctor_connect(&x->api, steal_fd(fd));
	else if (f->type == WIRE_PROVE && *fd >= 0)
		prove_runner_connect(&x->prove, steal_fd(fd));
	else if (f->type == WIRE_CLUSTER_CONNECT && *fd >= 0)
		server_cluster_connect(x->cluster, steal_fd(fd));
	else if (f->type == WIRE_CLUSTER_ENGINES && *fd >= 0)
		server_cluster_engines(x->cluster, steal_fd(fd));
	else if (f->type == WIRE_DONE && f->flags & WIRE_DONE_STOPS)
		server_stops(x);
	else if (f->type == WIRE_DONE && f->flags & WIRE_DONE_SHARED) {
		fleet_set_sole_server(&x->api.fleet, 0);
		pipelines_alone(x->api.pipelines);
		schedule_runs_alone(x->api.schedules);
	} else if (f->type == WIRE_DONE) {
		fleet_set_sole_server(&x->api.fleet, !timer_pending(&x->drain));
		batches_alone(x->api.batches);
		pipelines_alone(x->api.pipelines);
		schedule_runs_alone(x->api.schedules);
		builds_restore(x->api.builds);
		agents_set_sole_server(&x->api);
	}
}

static void begin_drain(struct server *x)
{
	if (timer_pending(&x->drain))
		return;
	log_info("draining", LOG_U("connections", x->api.http.open));
	/* Another one is there, or will be soon. */
	fleet_set_sole_server(&x->api.fleet, 0);
	pipelines_alone(x->api.pipelines);
	webhook_runner_stop(x->api.webhooks);
	schedule_runs_alone(x->api.schedules);
	alerts_stop(x->api.alerts);
	server_cluster_stop(x->cluster);
	http_drain(&x->api.http);
	timer_set(&x->drain, x->drain_ms);
	timer_set(&x->tick, 10);
}

/* Without the supervisor no keeper would be started; and the server of the next supervisor,
 * which does not know this process, must not run beside it. So it exits at once: clients resume
 * their streams at the new server. */
static void supervisor_left(struct frame_conn *p, const struct err *why)
{
	struct server *x = loop_owner(p, struct server, supervisor);

	(void)why;
	log_warn("the supervisor has exited");
	loop_stop(&x->loop);
}

/* ---- the end ---- */

/* A node of a cluster that ends, with no server after it: its gateways would refuse requests for as long as the longest
 * answer takes. So it serves until no request of a gateway is left, or for serve.drain, and is away for the moment between two
 * daemons only; clients resume their streams. */
static void leave_when_idle(struct timer *t)
{
	struct server *x = loop_owner(t, struct server, leave);

	if (server_cluster_is_used(x->cluster) && loop_now_ms() < x->leave_ms) {
		timer_set(&x->leave, SERVER_LOOK_MS);
		return;
	}
	x->drain_ms = SERVER_LEAVE_MS;
	begin_drain(x);
}

static void told_to_leave(struct on_signal *s, int signo)
{
	struct server *x = loop_owner(s, struct server, term);

	(void)signo;
	if (!x->api.fleet.alone || !server_cluster_is_used(x->cluster)) {
		begin_drain(x);
	} else if (!x->leave_ms) {
		log_info("ending when no request of a gateway is left");
		x->leave_ms = loop_now_ms() + x->drain_ms;
		timer_set(&x->leave, 0);
	}
}

static void drained_enough(struct timer *t)
{
	loop_stop(&loop_owner(t, struct server, drain)->loop);
}

static void is_drained(struct timer *t)
{
	struct server *x = loop_owner(t, struct server, tick);

	if (http_drained(&x->api.http) && !hibernate_is_busy(&x->hibernate))
		loop_stop(&x->loop);
	else
		timer_set(&x->tick, 50);
}

/* ---- the beginning ---- */

/* 0: a unix socket. There no other machine is in between, and the kernel reports the uid of the
 * peer: no TLS. */
static uint16_t port_of(int fd)
{
	struct sockaddr_storage at = { 0 };
	socklen_t len = sizeof(at);

	if (getsockname(fd, (struct sockaddr *)&at, &len) < 0 || at.ss_family == AF_UNIX)
		return 0;
	return ntohs(at.ss_family == AF_INET ? ((struct sockaddr_in *)&at)->sin_port
					     : ((struct sockaddr_in6 *)&at)->sin6_port);
}

static uint16_t first_port(const struct server_start *s)
{
	uint16_t port = 0;

	for (unsigned i = 0; i < s->nlisteners && !port; i++)
		port = port_of(s->listeners[i]);
	return port;
}

static void all_restored(struct fleet *f)
{
	struct server *x = f->user;
	struct frame done = sock_head(WIRE_DONE, 0);
	struct err e;

	for (unsigned i = 0; i < x->start->nlisteners; i++)
		if (http_listen(&x->api.http, x->start->listeners[i],
				port_of(x->start->listeners[i]) ? x->tls : NULL, &e) < 0) {
			log_error("cannot listen", LOG_E(&e));
			x->status = 1;
			loop_stop(&x->loop);
			return;
		}
	if (server_cluster_start(x->cluster, &e) < 0) {
		log_error("cannot listen for nodes", LOG_E(&e));
		x->status = 1;
		loop_stop(&x->loop);
		return;
	}
	batches_alone(x->api.batches);
	pipelines_alone(x->api.pipelines);
	schedule_runs_alone(x->api.schedules);
	builds_restore(x->api.builds);
	agents_set_sole_server(&x->api);
	if (!f->keeper.refusal)
		package_preinstall_begin(&x->prepare, f);
	if (!f->keeper.refusal && x->start->alone)
		hibernate_resume_all(&x->hibernate);
	webhook_runner_start(x->api.webhooks);
	alerts_start(x->api.alerts);
	log_info("serving", LOG_U("boxes", f->count), LOG_U("runs", f->figures.restored_runs));
	frame_conn_send(&x->supervisor, &done, sizeof(done), NULL, 0, -1);
}

/* Which interpreter the host has, and so every box: the file that its name leads to, and its
 * size. An interpreter that is replaced gets package sets of its own. Called before the
 * confinement, in which the file cannot be seen. */
static const char *host_runtime(enum package_manager m, char out[64])
{
	static const char *const programs[PM_COUNT] = {
		[PM_PIP] = "/usr/bin/python3", [PM_NPM] = "/usr/bin/node",
		[PM_GEM] = "/usr/bin/ruby",    [PM_CARGO] = "/usr/bin/cargo",
		[PM_GO] = "/usr/bin/go",       [PM_APT] = "/usr/bin/apt-get"
	};
	char real[PATH_MAX];
	const char *name;
	struct stat st;

	out[0] = 0;
	if (!programs[m] || !realpath(programs[m], real) || stat(real, &st) < 0)
		return out;
	name = strrchr(real, '/') + 1;
	if (m == PM_GEM) /* gems live below the version of the language: ruby3.1 is 3.1.0 */
		snprintf(out, 64, "%.20s.0 %lld", name + strspn(name, "ruby"),
			 (long long)st.st_size);
	else
		snprintf(out, 64, "%.30s %lld", name, (long long)st.st_size);
	return out;
}

/* Hosts that an install may reach: the registry, and the host of its files. */
static const char *install_hosts(const struct config *c, const char *url, const char **out_trusted)
{
	const char *const *more = config_list(c, CONFIG_PACKAGES_HOSTS);
	json_t *all = json_array();
	char text[RULE_TEXT], *dump, one[512];
	struct net_rule r;
	struct err e;

	*out_trusted = NULL;
	for (; *url; url += strcspn(url, " "), url += strspn(url, " ")) {
		snprintf(one, sizeof(one), "%.*s", (int)strcspn(url, " "), url);
		if (net_rule_of_url(&r, one, &e) < 0)
			continue;
		json_array_append_new(all, json_string(net_rule_text(&r, text)));
		if (strncmp(one, "http://", 7) == 0)
			*out_trusted = strdup(r.host);
	}
	for (; more && *more; more++)
		json_array_append_new(all, json_string(*more));
	dump = json_dumps(all, JSON_COMPACT);
	json_decref(all);
	return dump; /* as long as we live */
}

/* Rules for the registries of all managers, each once; NULL: boxes may reach none. */
static const char *const *registry_rules(const struct config *c, const struct install_conf *conf)
{
	static const char *all[RULES_MAX + 1];
	unsigned n = 0;

	for (int m = 0; m < PM_COUNT && config_bool(c, CONFIG_PACKAGES_IN_BOXES); m++) {
		json_t *hosts = conf->hosts[m] ? json_loads(conf->hosts[m], 0, NULL) : NULL, *host;
		size_t i;

		json_array_foreach(hosts, i, host)
		{
			unsigned k = 0;

			while (k < n && strcmp(all[k], json_string_value(host)) != 0)
				k++;
			if (k == n && n < RULES_MAX)
				all[n++] = strdup(json_string_value(host)); /* as long as we live */
		}
		json_decref(hosts);
	}
	return n ? all : NULL;
}

/* One word each; NULL: none. */
static const char *server_joined(const char *const *list)
{
	auto_buf struct buf all = { 0 };

	for (const char *const *one = list; one && *one; one++)
		buf_printf(&all, "%s%s", one == list ? "" : " ", *one);
	return all.len ? strdup(buf_str(&all)) : NULL; /* as long as we live */
}

static struct packages_conf packages_settings(const struct config *c)
{
	static char runtimes[PM_COUNT][64];
	struct packages_conf conf = {
		.install.source = { [PM_PIP] = config_text(c, CONFIG_PIP_INDEX),
				    [PM_NPM] = config_text(c, CONFIG_NPM_REGISTRY),
				    [PM_GEM] = config_text(c, CONFIG_GEM_SOURCE),
				    [PM_CARGO] = config_text(c, CONFIG_CARGO_INDEX),
				    [PM_GO] = config_text(c, CONFIG_GO_PROXY),
				    [PM_APT] = server_joined(config_list(c, CONFIG_APT_MIRRORS)) },
		.install.mirror = config_text(c, CONFIG_PACKAGES_MIRROR),
		.cache_bytes = config_number(c, CONFIG_PACKAGES_CACHE),
		.timeout_ms = config_number(c, CONFIG_PACKAGES_TIMEOUT),
		.preinstall = config_list(c, CONFIG_PACKAGES_PREINSTALL),
	};

	for (int m = 0; m < PM_COUNT; m++)
		conf.install.runtime[m] = host_runtime((enum package_manager)m, runtimes[m]);
	for (int m = 0; m < PM_COUNT; m++)
		if (conf.install.source[m])
			conf.install.hosts[m] =
				install_hosts(c, conf.install.source[m], &conf.install.trusted[m]);
	return conf;
}

static uint64_t or_default(uint64_t n)
{
	return n ? n : WIRE_DEFAULT;
}

static const char *const proxy_names[] = { "HTTP_PROXY", "HTTPS_PROXY", "http_proxy",
					   "https_proxy" };
static const struct {
	enum package_manager manager;
	const char *name;
	const char *more[3]; /* set with it */
} way_sources[] = {
	{ PM_PIP, "PIP_INDEX_URL", { NULL } },
	{ PM_NPM,
	  "NPM_CONFIG_REGISTRY",
	  { "NPM_CONFIG_FETCH_RETRIES=1", "NPM_CONFIG_UPDATE_NOTIFIER=false" } },
	/* Without GOSUMDB=off, go would ask a server that the box cannot reach. */
	{ PM_GO, "GOPROXY", { "GOSUMDB=off", "GOTOOLCHAIN=local" } },
	{ PM_GEM, "BUNDLE_MIRROR__ALL", { NULL } },
};
enum { WAY_MORE = 3 }; /* variables for each source, at most */
static const char *way_env[ARRAY_LEN(proxy_names) + 3 + WAY_MORE * ARRAY_LEN(way_sources) + 1];

static uint64_t memory_half(void)
{
	uint64_t half = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE) / 2,
		 least = 512ull << 20;

	return half > least ? half : least;
}

/* A quarter of the kernel's limit of process ids; 1024 where that cannot be read. */
static uint64_t pid_quarter(void)
{
	auto_fd int fd = open("/proc/sys/kernel/pid_max", O_RDONLY | O_CLOEXEC);
	char text[24] = "";
	unsigned long n =
		fd >= 0 && read(fd, text, sizeof(text) - 1) > 0 ? strtoul(text, NULL, 10) : 0;

	return n / 4 > 1024 ? n / 4 : 1024;
}

/* Half of the disk that has the images; 16 GiB where its size cannot be read. */
static uint64_t disk_half(const char *state)
{
	struct statvfs v;
	uint64_t least = 256ull << 20, half;

	if (statvfs(state, &v) < 0)
		return 16ull << 30;
	half = (uint64_t)v.f_bavail * v.f_frsize / 2;
	return half > least ? half : least;
}

static uint64_t or_else(uint64_t n, uint64_t otherwise)
{
	return n ? n : otherwise;
}

static struct wire_limits bounds_settings(const struct config *c)
{
	return (struct wire_limits){
		.mem_bytes = or_else(config_number(c, CONFIG_MAX_MEM), memory_half()),
		.disk_bytes = or_else(config_number(c, CONFIG_MAX_DISK),
				      disk_half(config_text(c, CONFIG_STATE))),
		.disk_files = config_number(c, CONFIG_MAX_FILES),
		.cpu_milli = (uint32_t)or_else(config_number(c, CONFIG_MAX_CPU),
					       (uint64_t)get_nprocs() * 1000),
		.pids = (uint32_t)or_else(config_number(c, CONFIG_MAX_PIDS), pid_quarter()),
	};
}

/* Variables that package managers read in a box with egress. */
static void set_way_env(const struct install_conf *conf)
{
	static char proxy[4][64], found[ARRAY_LEN(way_sources)][600], trusted[300];
	unsigned n = 0;

	for (unsigned i = 0; i < ARRAY_LEN(proxy_names); i++, n++) {
		snprintf(proxy[i], sizeof(proxy[i]), "%s=http://127.0.0.1:%d", proxy_names[i],
			 EGRESS_CLIENT_PORT);
		way_env[n] = proxy[i];
	}
	way_env[n++] = "NO_PROXY=localhost,127.0.0.1,::1";
	way_env[n++] = "no_proxy=localhost,127.0.0.1,::1";
	for (unsigned i = 0; i < ARRAY_LEN(way_sources); i++) {
		const char *from = conf->source[way_sources[i].manager];

		if (!from)
			continue;
		snprintf(found[i], sizeof(found[i]), "%s=%.500s", way_sources[i].name, from);
		way_env[n++] = found[i];
		for (const char *const *more = way_sources[i].more; *more; more++)
			way_env[n++] = *more;
	}
	if (conf->trusted[PM_PIP]) {
		snprintf(trusted, sizeof(trusted), "PIP_TRUSTED_HOST=%s", conf->trusted[PM_PIP]);
		way_env[n++] = trusted;
	}
	way_env[n] = NULL;
}

/* The shortest retention of records of all plans; 0: none has one. */
static uint64_t least_retention(const struct config *c)
{
	uint64_t least = 0;

	for (unsigned i = 0; i < c->nplans; i++)
		least = plan_lower(c->plans[i].retention_records_ms, least);
	return least;
}

/* Which proof a tier has, for its facts as the keeper reports them now. */
static void server_proof(struct fleet *f, enum choose_tier t, const struct wire_tier_facts *w,
			 struct isolation_proof *out)
{
	struct server *x = f->user;

	prove_runner_judge(&x->prove, t, w, out);
}

static void server_init_prove(struct server *x)
{
	const struct config *c = x->start->config;

	prove_settings_text(c, &x->prove_settings);
	x->prove.settings = buf_str(&x->prove_settings);
	x->prove.enabled = config_bool(c, CONFIG_ISOLATION_PROVE) && server_has_keeper(x->start);
	x->prove.need = ask_proof;
	x->prove.user = x;
	prove_runner_init(&x->prove, &x->api.fleet, x->api.metrics);
	x->api.fleet.isolation.proof = server_proof;
	isolation_prove(&x->api.fleet);
}

/* Each text was checked when it was read. */
static struct choose_settings isolation_settings(const struct config *c)
{
	struct choose_settings s = choose_defaults;
	const char *const *prefer = config_list(c, CONFIG_ISOLATION_PREFER);
	struct err e;

	for (unsigned i = 0; i < CHOOSE_TRUSTS; i++)
		(void)!choose_tier_parse(config_text(c, CONFIG_ISOLATION + i), &s.label[i], &e);
	s.process = config_bool(c, CONFIG_ISOLATION_PROCESS);
	s.emulation = config_bool(c, CONFIG_ISOLATION_EMULATION);
	if (prefer[0])
		s.nprefer = 0;
	for (unsigned i = 0; prefer[i] && s.nprefer < CHOOSE_TIERS; i++)
		if (choose_tier_parse(prefer[i], &s.prefer[s.nprefer], &e) == 0)
			s.nprefer++;
	return s;
}

static struct fleet_conf fleet_settings(const struct server_start *s)
{
	const struct config *c = s->config;
	struct packages_conf packages = packages_settings(c);

	set_way_env(&packages.install);
	return (struct fleet_conf){
		.lifetime_ms = config_number(c, CONFIG_DEFAULT_LIFETIME),
		.lifetime_max_ms = config_number(c, CONFIG_MAX_LIFETIME),
		.idle_ms = config_number(c, CONFIG_DEFAULT_IDLE),
		.retention_ms = config_number(c, CONFIG_RETENTION)
					? config_number(c, CONFIG_RETENTION)
					: STORE_FOREVER,
		.run_wall_ms = config_number(c, CONFIG_RUN_TIME),
		.cell_ms = config_number(c, CONFIG_CELL_TIME),
		.history_ms = config_number(c, CONFIG_HISTORY),
		.history_bytes = config_number(c, CONFIG_HISTORY_SIZE),
		.history_least_ms = least_retention(c),
		.limits = { .mem_bytes = or_default(config_number(c, CONFIG_BOX_MEM)),
			    .disk_bytes = or_default(config_number(c, CONFIG_BOX_DISK)),
			    .disk_files = or_default(config_number(c, CONFIG_BOX_FILES)),
			    .cpu_milli = (uint32_t)or_default(config_number(c, CONFIG_BOX_CPU)),
			    .pids = (uint32_t)or_default(config_number(c, CONFIG_BOX_PIDS)) },
		.most = bounds_settings(c),
		.boxes_most = (unsigned)config_number(c, CONFIG_MAX_BOXES),
		.isolation = isolation_settings(c),
		.layer_names = s->layer_names,
		.packages = packages,
		.way_env = way_env,
		.registries = registry_rules(c, &packages.install),
	};
}

/* Rules of all registries and of templates.hosts, as JSON. */
static const char *build_hosts(const struct config *c, const struct install_conf *conf)
{
	const char *const *more = config_list(c, CONFIG_TEMPLATES_HOSTS);
	json_t *all = json_array(), *hosts, *host;
	char *dump;
	size_t i;

	for (int m = 0; m < PM_COUNT; m++) {
		hosts = conf->hosts[m] ? json_loads(conf->hosts[m], 0, NULL) : NULL;
		json_array_foreach(hosts, i, host) json_array_append(all, host);
		json_decref(hosts);
	}
	for (; more && *more; more++)
		json_array_append_new(all, json_string(*more));
	dump = json_array_size(all) ? json_dumps(all, JSON_COMPACT) : NULL;
	json_decref(all);
	return dump; /* as long as we live */
}

static struct image_conf image_settings(const struct server_start *s)
{
	const struct config *c = s->config;

	return (struct image_conf){
		.registries = config_list(c, CONFIG_TEMPLATES_REGISTRIES),
		.mirror = config_text(c, CONFIG_TEMPLATES_MIRROR),
		.insecure = config_list(c, CONFIG_TEMPLATES_INSECURE),
		.timeout_ms = config_number(c, CONFIG_TEMPLATES_STEP),
		.bytes_most = config_number(c, CONFIG_TEMPLATES_DISK),
		.files_most = 1000000,
		.folder = s->folder,
	};
}

static struct builds_conf builds_settings(const struct server_start *s, const struct fleet_conf *f)
{
	const struct config *c = s->config;

	return (struct builds_conf){
		.state = s->folder,
		.at_once = (unsigned)config_number(c, CONFIG_TEMPLATES_BUILDS),
		.step_ms = config_number(c, CONFIG_TEMPLATES_STEP),
		.total_ms = config_number(c, CONFIG_TEMPLATES_TOTAL),
		.ready_ms = config_number(c, CONFIG_TEMPLATES_READY),
		.disk_bytes = config_number(c, CONFIG_TEMPLATES_DISK),
		.mem_bytes = config_number(c, CONFIG_TEMPLATES_MEM),
		.cpu_milli = (uint32_t)config_number(c, CONFIG_TEMPLATES_CPU),
		.cache_bytes = config_number(c, CONFIG_TEMPLATES_CACHE),
		.hosts = build_hosts(c, &f->packages.install),
		.image = image_settings(s),
		.prepare = config_list(c, CONFIG_TEMPLATES_PREPARE),
	};
}

static struct rates rates_settings(const struct config *c)
{
	struct rates r = { 0 };

	_Static_assert(CONFIG_RATE_TOKENS_OUT - CONFIG_RATES + 1 == RATE_COUNT,
		       "a rate without a setting");
	for (unsigned i = 0; i < RATE_COUNT; i++)
		r.v[i] = config_number(c, (enum config_key)(CONFIG_RATES + i));
	snprintf(r.currency, sizeof(r.currency), "%s", config_text(c, CONFIG_CURRENCY));
	return r;
}

static struct api_conf api_settings(const struct server_start *s)
{
	const struct config *c = s->config;
	uint64_t upload = config_number(c, CONFIG_UPLOAD_MAX);

	return (struct api_conf){
		.json_max = config_number(c, CONFIG_MAX_JSON),
		.upload_max = upload,
		.template_max = config_number(c, CONFIG_TEMPLATES_UPLOAD),
		.hosts = config_list(c, CONFIG_DOMAIN),
		.previews = config_list(c, CONFIG_PREVIEW_DOMAIN),
		.port = first_port(s),
		.tls = config_text(c, CONFIG_TLS_CERT) != NULL,
		.origins = config_list(c, CONFIG_ORIGINS),
		.metrics_public = config_bool(c, CONFIG_METRICS_PUBLIC),
		.approve = config_list(c, CONFIG_MCP_APPROVE),
		.e2b_insecure = config_bool(c, CONFIG_E2B_INSECURE),
		.e2b_internet = config_bool(c, CONFIG_E2B_INTERNET),
		.quota = { .boxes = config_number(c, CONFIG_QUOTA_BOXES),
			   .executions_per_day = config_number(c, CONFIG_QUOTA_EXECUTIONS),
			   .compute_ms_per_month = config_number(c, CONFIG_QUOTA_COMPUTE) * 1000,
			   .output_bytes_per_day = config_number(c, CONFIG_QUOTA_OUTPUT),
			   .requests_per_second =
				   (uint32_t)config_number(c, CONFIG_QUOTA_REQUESTS) },
		.rates = rates_settings(c),
		.plans = c->plans,
		.nplans = c->nplans,
		.statm = -1,
		.state = s->folder,
		.batch_jobs = (unsigned)config_number(c, CONFIG_BATCH_JOBS),
		.batch_bytes = config_number(c, CONFIG_BATCH_BYTES),
		.batch_keep_ms = config_number(c, CONFIG_BATCH_KEEP),
		.batch_team_bytes = config_number(c, CONFIG_QUOTA_BATCH),
		.pipeline_keep_ms = config_number(c, CONFIG_PIPELINE_KEEP),
		.pipeline_forgetful = !config_bool(c, CONFIG_PIPELINE_MEMORY),
		.snapshot_bytes = config_number(c, CONFIG_QUOTA_SNAPSHOTS),
		.checkpoint_bytes = config_number(c, CONFIG_QUOTA_CHECKPOINTS),
		.checkpoints_per_box = config_number(c, CONFIG_CHECKPOINTS_PER_BOX),
		.checkpoint_wait_ms = config_number(c, CONFIG_CHECKPOINT_WAIT),
		.own_uid = s->own_uid,
		.access_gid = s->access_gid,
	};
}

static struct alerts_conf alert_settings(struct server *x)
{
	const struct config *c = x->start->config;

	return (struct alerts_conf){
		.interval_ms = (uint32_t)config_number(c, CONFIG_ALERTS_INTERVAL),
		.webhook = config_text(c, CONFIG_ALERTS_WEBHOOK),
		.webhook_secret = config_text(c, CONFIG_ALERTS_SECRET),
		.mail_server = config_text(c, CONFIG_ALERTS_MAIL_SERVER),
		.mail_from = config_text(c, CONFIG_ALERTS_MAIL_FROM),
		.mail_to = config_list(c, CONFIG_ALERTS_MAIL_TO),
		.mail_user = config_text(c, CONFIG_ALERTS_MAIL_USER),
		.mail_password = config_text(c, CONFIG_ALERTS_MAIL_PASSWORD),
		.command = config_text(c, CONFIG_ALERTS_COMMAND),
		.need_command = ask_command,
		.ctx = x,
	};
}

static int read_boot(char out[64], struct err *e)
{
	auto_fd int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, out, 63);

	if (n <= 0)
		return err_sys(e, "read the boot id");
	out[strcspn((out[n] = 0, out), "\n")] = 0;
	return 0;
}

static void many_files(void)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r) < 0)
		return;
	if (geteuid() == 0 && r.rlim_max < 65536)
		r.rlim_max = 65536;
	r.rlim_cur = r.rlim_max;
	(void)!setrlimit(RLIMIT_NOFILE, &r);
}

static int open_tls(struct server *x, struct err *e)
{
	const char *cert = config_text(x->start->config, CONFIG_TLS_CERT),
		   *key = config_text(x->start->config, CONFIG_TLS_KEY);

	if (!cert && !key)
		return 0;
	if (!cert || !key)
		return err_set(e, ERR_INVALID, "TLS needs both serve.tls_cert and serve.tls_key");
	return tls_server(cert, key, &x->tls, e);
}

static int read_whole(const char *path, struct buf *out, size_t most, struct err *e)
{
	auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t n = -1;

	if (fd < 0)
		return err_sys(e, "open %.200s", path);
	while (out->len <= most && (n = read(fd, buf_space(out, 65536), 65536)) > 0)
		buf_grew(out, (size_t)n);
	if (n < 0)
		return err_sys(e, "read %.200s", path);
	return out->len <= most
		       ? 0
		       : err_set(e, ERR_LIMIT, "%.200s has more than %zu bytes", path, most);
}

/* NULL: tokens are not configured. */
static int open_oidc(const struct config *c, struct oidc **out, struct err *e)
{
	const char *path = config_text(c, CONFIG_OIDC_JWKS);
	struct oidc_conf conf = { .issuer = config_text(c, CONFIG_OIDC_ISSUER),
				  .audience = config_text(c, CONFIG_OIDC_AUDIENCE),
				  .team_claim = config_text(c, CONFIG_OIDC_TEAM_CLAIM),
				  .role_claim = config_text(c, CONFIG_OIDC_ROLE_CLAIM) };
	auto_buf struct buf jwks = { 0 };

	*out = NULL;
	if (!path)
		return 0;
	if (read_whole(path, &jwks, OIDC_JWKS, e) < 0)
		return err_in(e, "auth.oidc_jwks");
	if (oidc_new(out, &conf, buf_str(&jwks), jwks.len, e) < 0)
		return err_in(e, "auth.oidc_jwks: %.100s", path);
	return 0;
}

/* The key of secrets is in the state folder, which the confined server cannot see. */
static void open_vault(struct server *x)
{
	const struct config *c = x->start->config;
	const char *given = config_text(c, CONFIG_SECRETS_KEY),
		   *folder = config_text(c, CONFIG_CLUSTER_SECRETS);
	char path[1200], of_cluster[1200];
	struct stat st;

	snprintf(path, sizeof(path), "%.1000s/secrets.key", config_text(c, CONFIG_STATE));
	/* All gateways of a cluster have the same key: it is in the folder of which each has a copy. */
	snprintf(of_cluster, sizeof(of_cluster), "%.1000s/secrets.key", folder ? folder : "");
	if (folder &&
	    cluster_is_gateway((enum cluster_role)config_number(c, CONFIG_CLUSTER_ROLE)) &&
	    (stat(of_cluster, &st) == 0 ||
	     ((stat(path, &st) < 0 || st.st_size == 0) && stat(folder, &st) == 0)))
		snprintf(path, sizeof(path), "%s", of_cluster);
	vault_open(&x->vault, given ? given : path);
	if (x->vault.fd < 0)
		log_warn("secrets cannot be used", LOG_E(&x->vault.trouble));
}

/* The same for the key that signs receipts. */
static void open_receipts(struct server *x)
{
	node_key_open(&x->receipts.key, config_text(x->start->config, CONFIG_STATE));
	if (!x->receipts.key.key)
		log_warn("receipts cannot be signed", LOG_E(&x->receipts.key.trouble));
}

/* Ids begin with the number of this machine in its cluster. */
static int server_set_number(const struct config *c, struct err *e)
{
	uint32_t number;

	if (node_number_read(config_text(c, CONFIG_STATE), &number, e) < 0)
		return -1;
	id_set_node(number);
	return 0;
}

int server_check(const struct config *c, struct err *e)
{
	auto_buf struct buf certificates = { 0 };
	struct egress_child_rules rules;
	struct oidc *o;

	if (egress_child_rules(c, &rules, e) < 0 || certificates_read(c, &certificates, e) < 0)
		return -1;

	if (open_oidc(c, &o, e) < 0)
		return -1;
	oidc_free(o);
	return 0;
}

/* Boxes whose TLS egress opens trust these, too; read before the confinement. */
static const char *box_certificates(const struct config *c)
{
	struct buf all = { 0 };
	struct err e;

	if (certificates_read(c, &all, &e) < 0)
		log_warn("boxes trust the certificates of this machine only", LOG_E(&e));
	return buf_steal(&all); /* as long as we live */
}

/* The settings were checked. */
static int server_trace(struct server *x, struct err *e)
{
	const struct config *c = x->start->config;
	struct trace_conf conf = { .endpoint = config_text(c, CONFIG_TRACE_ENDPOINT),
				   .headers = config_list(c, CONFIG_TRACE_HEADERS),
				   .sample = strtod(config_text(c, CONFIG_TRACE_SAMPLE), NULL) };

	return conf.endpoint ? trace_start(&conf, &x->loop, x->api.outbound, e) : 0;
}

static int server_begin(struct server *x, struct err *e)
{
	const struct server_start *s = x->start;
	static const struct box_hooks *const hooks[] = { &notebook_hooks, &compile_reuse_hooks,
							 &packages_hooks, &fragment_spare_hooks,
							 NULL };
	struct fleet_conf conf = fleet_settings(s);
	struct builds_conf builds;
	struct alerts_conf alerts;
	static struct egress_child_rules rules;
	int statm = open("/proc/self/statm",
			 O_RDONLY | O_CLOEXEC); /* the confined process has no /proc */
	static const struct api_surface *const surfaces[] = { &gateway_surface,
							      &e2b_surface,
							      &play_surface,
							      &ui_surface,
							      &e2bcontrol_surface,
							      &tool_surface,
							      &mcp_surface,
							      &swerex_surface,
							      &shared_rows_surface,
							      &grants_surface,
							      &figures_route_surface,
							      &copies_surface,
							      NULL };
	char boot[64];

	conf.hooks = hooks;
	conf.certificates = box_certificates(s->config);
	x->api.host = host_sampler_new(s->folder);
	many_files();
	if (server_set_number(s->config, e) < 0)
		return -1;
	open_vault(x);
	open_receipts(x);
	if (egress_child_rules(s->config, &rules, e) < 0)
		return -1;
	if (read_boot(boot, e) < 0 || open_tls(x, e) < 0 ||
	    open_oidc(s->config, &x->api.oidc, e) < 0 || loop_init(&x->loop, e) < 0 ||
	    server_cluster_load(&x->cluster, s, e) < 0 ||
	    confine_enter(s->uid, s->gid, s->folder, e) < 0)
		return -1;
	/* From here on the process has its final uid. */
	if (store_open(&x->api.store, s->folder, e) < 0)
		return -1;
	x->api.loop = &x->loop;
	x->api.conf = api_settings(s);
	x->api.conf.statm = statm;
	x->api.conf.certificate_until_s = x->tls ? tls_expires_s(x->tls) : 0;
	x->api.conf.replaces_crashed = s->crashed;
	http_server_init(&x->api.http, &x->loop);
	x->api.http.limits.connections = (uint32_t)config_number(s->config, CONFIG_MAX_CONNECTIONS);
	x->api.http.limits.per_address =
		(uint32_t)config_number(s->config, CONFIG_ADDRESS_CONNECTIONS);
	fleet_init(&x->api.fleet, &x->loop, x->api.store, &conf, boot);
	if (fleet_load_draining(&x->api.fleet, s->folder, e) < 0)
		return -1;
	x->api.fleet.user = x;
	x->vault.store = x->api.store;
	x->api.fleet.vault = &x->vault;
	receipts_init(&x->receipts, &x->api.fleet);
	x->api.fleet.alone = s->alone;
	x->api.fleet.on_ready = all_restored;
	x->api.fleet.need_keeper = ask_keeper;
	x->api.fleet.egress_client.user = x;
	x->api.fleet.egress_client.need = egress_child_wanted(s->config, &rules) ? ask_way : NULL;
	x->api.conf.rules = rules.v;
	x->api.conf.nrules = rules.n;
	x->api.conf.links = config_bool(s->config, CONFIG_EGRESS_LINKS);
	frame_conn_init(&x->supervisor, &x->loop, s->supervisor);
	x->supervisor.on_frame = supervisor_says;
	x->supervisor.on_gone = supervisor_left;
	timer_init(&x->drain, &x->loop, drained_enough);
	timer_init(&x->tick, &x->loop, is_drained);
	timer_init(&x->leave, &x->loop, leave_when_idle);
	on_signal_init(&x->term, &x->loop, SIGTERM, told_to_leave);
	x->drain_ms = config_number(s->config, CONFIG_DRAIN);
	x->api.need_doctor = ask_doctor;
	x->api.surfaces = surfaces;
	if (s->models && llm_client_new(&x->api.model, &x->loop, ask_model, x, e) < 0)
		return -1;
	if (outbound_new(&x->api.outbound, &x->loop, ask_outbound, x, e) < 0 ||
	    server_trace(x, e) < 0)
		return -1;
	x->api.webhooks = webhook_runner_new(&x->api.fleet, x->api.outbound);
	webhook_runner_set_e2b(x->api.webhooks, e2b_webhook_event, &x->api);
	builds = builds_settings(s, &conf);
	if (v1_init(&x->api, e) < 0 || e2b_init(&x->api, e) < 0 ||
	    builds_new(&x->api.builds, &x->api.fleet, &builds, e) < 0)
		return -1;
	pausing_init(&x->api);
	hibernate_init(&x->hibernate, &x->api.fleet, x->api.checkpoints);
	if (server_cluster_init(x->cluster, &x->api, &x->supervisor, e) < 0)
		return -1;
	server_init_prove(x);
	alerts = alert_settings(x);
	x->api.alerts = alerts_new(&x->api.fleet, x->api.metrics, x->api.outbound, &alerts);
	if (server_has_keeper(s))
		ask_keeper(&x->api.fleet);
	else
		keeper_client_refuse(&x->api.fleet.keeper, SERVER_NO_BOXES);
	egress_client_begin(&x->api.fleet.egress_client);
	return fleet_restore(&x->api.fleet, e);
}

int server_main(const struct server_start *s)
{
	static struct server x;
	struct err e;

	x.start = s;
	if (server_begin(&x, &e) < 0) {
		log_error("the server cannot start", LOG_E(&e));
		return 1;
	}
	loop_run(&x.loop);
	http_server_fini(&x.api.http);
	hibernate_free(&x.hibernate);
	server_cluster_free(x.cluster);
	package_preinstall_fini(&x.prepare);
	mcp_fini(&x.api);
	swerex_fini(&x.api);
	e2b_fini(&x.api);
	fragment_spares_free(&x.api);
	builds_free(x.api.builds);
	alerts_free(x.api.alerts);
	v1_fini(&x.api);
	prove_runner_fini(&x.prove);
	buf_fini(&x.prove_settings);
	llm_client_free(x.api.model);
	trace_stop();
	webhook_runner_free(x.api.webhooks);
	outbound_free(x.api.outbound);
	fleet_fini(&x.api.fleet);
	store_close(x.api.store);
	vault_close(&x.vault);
	receipts_fini(&x.receipts);
	oidc_free(x.api.oidc);
	return x.status;
}
