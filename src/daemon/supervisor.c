/* supervisor.c - `atoll serve`: holds the sockets, starts the server and the keeper, and
 * restarts them. It reads nothing that clients send. docs/daemon.md has the drawing.
 *
 *   SIGTERM, SIGINT   the server drains, then both exit; boxes keep running
 *   SIGHUP            the configuration is read again: a new server takes over, the old one drains
 *   SIGUSR2           the same after executing the binary again: an upgrade. The sockets are kept
 *
 * Servers are a list: the newest is to serve, older ones drain. An old one gets the signal to
 * drain when the newest serves; when the newest fails before that, the one before it continues
 * to serve. Every server has a link to the supervisor and exits when the link breaks: without a
 * supervisor no process would manage it. */
#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/cleanup.h"
#include "base/run_dir.h"
#include "client/box_handle.h"
#include "cluster/role.h"
#include "jail/feature.h"
#include "daemon/activation.h"
#include "daemon/alert_child.h"
#include "daemon/addr.h"
#include "daemon/keeper_connect.h"
#include "daemon/confine.h"
#include "daemon/cluster_child.h"
#include "daemon/connector_child.h"
#include "daemon/doctor_child.h"
#include "daemon/llm_child.h"
#include "daemon/outbound_child.h"
#include "daemon/server.h"
#include "daemon/state_dir.h"
#include "daemon/egress_child.h"
#include "daemon/pidfile.h"
#include "daemon/prove_child.h"
#include "daemon/commands.h"
#include "wire/sock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <time.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* Kept across an upgrade: the pidfile and the listening sockets; the servers, each as PID:LINK. */
#define FDS_VAR "ATOLL_SERVE_FDS"
/* Its value does not change: the supervisor of version 0.1 sets it for the next one. */
#define SERVERS_VAR "ATOLL_SERVE_FRONTS"
#define STATE_VAR "ATOLL_SERVE_STATE"         /* the lock on the state folder */
#define CLUSTER_VAR "ATOLL_SERVE_CLUSTER"     /* the socket of cluster.listen */
#define ACTIVATED_VAR "ATOLL_SERVE_ACTIVATED" /* set: the service manager made the sockets */
enum { AGAIN_MS = 200, BACKLOG = 4096, SERVERS_MAX = 8, KEEPER_TRIES = 10, LOG_AGAIN_MS = 60000 };

struct server_process {
	pid_t pid;
	int link;            /* -1: it is ending */
	int told;            /* to drain */
	int wants_keeper;    /* requested a keeper, and has none yet */
	int wants_way;       /* requested a connection to egress, and has none yet */
	int wants_model;     /* requested a connection to the llm process, and has none yet */
	int wants_outbound;  /* the same for the outbound process */
	int wants_engines;   /* and for the cluster process */
	int wants_connector; /* and for the process that connects to gateways */
	uint64_t tried_ns;   /* time of the last attempt */
};

struct supervisor {
	const struct cli *cli;
	const struct args *args;
	struct config config;
	char run[256];
	struct state_dir state_dir;
	int listeners[SERVER_LISTENERS];
	unsigned nlisteners;
	int cluster_listener; /* cluster.listen of a gateway; -1: none */
	int signals;
	int pidfile;
	int state;        /* holds the lock on the state folder; its servers inherit it */
	int keeper_tries; /* failures since the last success */
	uint64_t keeper_logged_ns;
	char keeper_error[sizeof(((struct err *)0)->msg)];
	struct doctor_children doctors;
	struct alert_child alert_child;
	struct prove_child prove_child;
	struct server_process servers[SERVERS_MAX]; /* oldest first */
	unsigned nservers;
	struct egress_child egress_child;
	struct llm_child llm_child;
	struct outbound_child outbound_child;
	struct connector_child connector_child;
	struct cluster_child cluster_child;
	int upgraded; /* this process was started by an upgrade */
	int ready;    /* the newest serves */
	int leaving;
	int activated; /* the sockets were passed by a service manager */
	int announced; /* the addresses were printed */
	int failed;
	int crashed; /* the server that is started replaces one that ended unexpectedly */
	int failed_upgrades,
		upgrade_errno; /* for `atoll upgrade`, which reads them from serve.pid */
	char **argv;
	char exe[1024]; /* by its name, which an upgrade gives to another file */
};

/* ---- settings ---- */

static int supervisor_load(struct supervisor *w, struct config *out, struct err *e)
{
	struct config_given given[CONFIG_NFLAGS];
	struct config_source src = { .file = args_text(w->args, CONFIG_FLAG_FILE, NULL),
				     .given = given,
				     .ngiven = config_from_args(w->args, given, CONFIG_NFLAGS) };

	return config_load(out, &src, e);
}

static void set_up_log(const struct config *c)
{
	log_setup(2, (enum log_form)config_number(c, CONFIG_LOG_FORMAT),
		  (enum log_level)config_number(c, CONFIG_LOG_LEVEL));
}

/* ---- sockets ---- */

static int add_listener(struct supervisor *w, int take_fd, struct err *e)
{
	if (w->nlisteners == SERVER_LISTENERS) {
		close(take_fd);
		return err_set(e, ERR_LIMIT, "more than %d addresses to listen on",
			       SERVER_LISTENERS);
	}
	w->listeners[w->nlisteners++] = take_fd;
	return 0;
}

static int supervisor_keep(int fd, struct err *e)
{
	if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
		return err_sys(e, "inherited descriptor %d", fd);
	return 0;
}

/* From before an upgrade. */
static int supervisor_inherit(struct supervisor *w, struct err *e)
{
	char *text = getenv(FDS_VAR), *servers = getenv(SERVERS_VAR), *rest = NULL;

	for (char *p = text ? strtok_r(text, ",", &rest) : NULL; p;
	     p = strtok_r(NULL, ",", &rest)) {
		int fd = atoi(p);

		if (supervisor_keep(fd, e) < 0)
			return -1;
		w->upgraded = 1;
		if (w->pidfile < 0)
			w->pidfile = fd;
		else if (add_listener(w, fd, e) < 0)
			return -1;
	}
	for (char *p = servers ? strtok_r(servers, ",", &rest) : NULL;
	     p && w->nservers < SERVERS_MAX; p = strtok_r(NULL, ",", &rest)) {
		struct server_process f = { .link = -1 };

		if (sscanf(p, "%d:%d", &f.pid, &f.link) != 2 || supervisor_keep(f.link, e) < 0)
			return -1;
		w->servers[w->nservers++] = f;
	}
	if (getenv(STATE_VAR)) {
		w->state = atoi(getenv(STATE_VAR));
		if (supervisor_keep(w->state, e) < 0)
			return -1;
	}
	if (getenv(CLUSTER_VAR)) {
		w->cluster_listener = atoi(getenv(CLUSTER_VAR));
		if (supervisor_keep(w->cluster_listener, e) < 0)
			return -1;
	}
	w->activated = getenv(ACTIVATED_VAR) != NULL;
	unsetenv(CLUSTER_VAR);
	unsetenv(FDS_VAR);
	unsetenv(SERVERS_VAR);
	unsetenv(STATE_VAR);
	unsetenv(ACTIVATED_VAR);
	return 0;
}

static int listen_on(struct supervisor *w, const char *where, struct err *e)
{
	struct addr a;
	int fd;

	if (addr_parse(&a, where, e) < 0)
		return -1;
	fd = addr_listen(&a, BACKLOG, e);
	return fd < 0 ? -1 : add_listener(w, fd, e);
}

/* 1: the service manager has opened this address. */
static int supervisor_has_listener(const struct supervisor *w, const char *where)
{
	struct addr a;
	struct err e;

	for (unsigned i = 0; i < w->nlisteners; i++)
		if (addr_of(w->listeners[i], &a, &e) == 0 && strcmp(a.text, where) == 0)
			return 1;
	return 0;
}

/* Members of serve.group may connect: the socket and the run folder belong to that group. Other sockets in the folder check
 * the uid of a client themselves. */
static int supervisor_admit_group(const struct supervisor *w, const char *path, struct err *e)
{
	gid_t gid = w->state_dir.access_gid;
	size_t n = strlen(w->run);
	struct stat st;

	if (chown(path, (uid_t)-1, gid) < 0)
		return err_sys(e, "give %.200s to group %u", path, (unsigned)gid);
	if (strncmp(path, w->run, n) != 0 || path[n] != '/' || stat(w->run, &st) < 0 ||
	    (st.st_mode & 0001))
		return 0;
	if (chown(w->run, (uid_t)-1, gid) < 0 || chmod(w->run, (st.st_mode & 07700) | 0010) < 0)
		return err_sys(e, "give %.200s to group %u", w->run, (unsigned)gid);
	return 0;
}

/* The socket on which the uid or the group of a client is its credential. Only its owner and its group may connect. */
static int listen_local(struct supervisor *w, const char *path, struct err *e)
{
	char where[300];

	snprintf(where, sizeof(where), "unix:%.250s", path);
	if (supervisor_has_listener(w, where))
		return 0;
	if (listen_on(w, where, e) < 0)
		return -1;
	return w->state_dir.access_gid ? supervisor_admit_group(w, path, e) : 0;
}

/* Of a gateway, for nodes. */
static int open_cluster_socket(struct supervisor *w, struct err *e)
{
	enum cluster_role role = (enum cluster_role)config_number(&w->config, CONFIG_CLUSTER_ROLE);
	struct addr a;

	if (!cluster_is_gateway(role) || w->cluster_listener >= 0)
		return 0;
	if (addr_parse(&a, config_text(&w->config, CONFIG_CLUSTER_LISTEN), e) < 0)
		return -1;
	w->cluster_listener = addr_listen(&a, BACKLOG, e);
	return w->cluster_listener < 0 ? err_in(e, "cluster.listen") : 0;
}

static int open_sockets(struct supervisor *w, struct err *e)
{
	const char *const *addresses = config_list(&w->config, CONFIG_LISTEN);
	const char *socket = config_text(&w->config, CONFIG_SOCKET);
	int fds[ACTIVATION_MOST], n;
	char path[300];

	if (w->nlisteners) /* from before an upgrade */
		return 0;
	n = activation_take(fds, e);
	if (n < 0)
		return -1;
	w->activated = n > 0;
	for (int i = 0; i < n; i++)
		if (add_listener(w, fds[i], e) < 0)
			return -1;
	for (; n == 0 && *addresses; addresses++)
		if (listen_on(w, *addresses, e) < 0)
			return -1;
	snprintf(path, sizeof(path), "%.250s/atoll.sock", w->run);
	return listen_local(w, socket ? socket : path, e);
}

/* ---- the server ---- */

static _Noreturn void be_server(struct supervisor *w, int link)
{
	struct server_start s = { .config = &w->config,
				  .layer_names = layer_names(),
				  .supervisor = link,
				  .nlisteners = w->nlisteners,
				  .cluster_listener = w->cluster_listener,
				  .alone = w->nservers == 0,
				  .uid = w->state_dir.uid,
				  .gid = w->state_dir.gid,
				  .own_uid = getuid(),
				  .access_gid = w->state_dir.access_gid,
				  .folder = w->state_dir.folder,
				  .crashed = w->crashed,
				  .models = w->llm_child.path[0] != 0 };
	sigset_t none;

	for (unsigned i = 0; i < w->nlisteners; i++)
		s.listeners[i] = w->listeners[i];
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGHUP, SIG_IGN);
	signal(SIGUSR2, SIG_IGN);
	signal(SIGINT, SIG_IGN); /* Ctrl-C reaches both; the supervisor decides when the server
				  * exits */
	own_close_fd(&w->signals);
	own_close_fd(&w->egress_child.child.link);
	own_close_fd(&w->llm_child.child.link);
	own_close_fd(&w->outbound_child.child.link);
	own_close_fd(&w->connector_child.child.link);
	own_close_fd(&w->cluster_child.child.link);
	/* Or the other servers would not notice the end of the supervisor. The pidfile stays
	 * open: the server holds its lock, too. */
	for (unsigned i = 0; i < w->nservers; i++)
		own_close_fd(&w->servers[i].link);
	prctl(PR_SET_NAME, "atoll-server");
	confine_clear_environment();
	exit(server_main(&s));
}

static struct server_process *supervisor_newest(struct supervisor *w)
{
	return w->nservers ? &w->servers[w->nservers - 1] : NULL;
}

/* Before it starts: a server that is not told of the new one would not count what that one
 * sends to a program. */
static void announce_server(struct supervisor *w)
{
	struct frame starts = sock_head(WIRE_DONE, 0);
	struct err e;

	starts.flags = WIRE_DONE_SHARED;
	for (unsigned i = 0; i < w->nservers; i++)
		if (w->servers[i].link >= 0 && sock_send(w->servers[i].link, &starts,
							 sizeof(starts), NULL, 0, NULL, 0, &e) < 0)
			log_warn("cannot notify a server of a new one", LOG_E(&e));
}

/* The newest one may have boxes to pause (serve.on_shutdown). The signal alone could also mean that another server takes
 * over. */
static void announce_stop(struct supervisor *w)
{
	struct server_process *newest = w->nservers ? &w->servers[w->nservers - 1] : NULL;
	struct frame stops = sock_head(WIRE_DONE, 0);
	struct err e;

	stops.flags = WIRE_DONE_STOPS;
	if (!w->leaving && newest && newest->link >= 0 &&
	    sock_send(newest->link, &stops, sizeof(stops), NULL, 0, NULL, 0, &e) < 0)
		log_warn("cannot notify the server that the daemon stops", LOG_E(&e));
}

static int start_server(struct supervisor *w, struct err *e)
{
	int pair[2];
	pid_t pid;

	if (w->nservers == SERVERS_MAX)
		return err_set(e, ERR_LIMIT, "%d servers are still draining", SERVERS_MAX - 1);
	if (sock_pair(pair, e) < 0)
		return -1;
	announce_server(w);
	fflush(NULL);
	pid = fork();
	if (pid < 0) {
		close(pair[0]);
		close(pair[1]);
		return err_sys(e, "fork the server");
	}
	if (pid == 0) {
		close(pair[0]);
		be_server(w, pair[1]);
	}
	close(pair[1]);
	w->servers[w->nservers++] = (struct server_process){ .pid = pid, .link = pair[0] };
	w->ready = 0;
	return 0;
}

/* Logged when the reason changes, and once a minute. A daemon that has never served exits: the
 * service manager or user that started it gets the error. */
static void no_keeper(struct supervisor *w, const struct err *e)
{
	uint64_t now = now_ns();

	if (strcmp(w->keeper_error, e->msg) != 0 ||
	    now - w->keeper_logged_ns > LOG_AGAIN_MS * UINT64_C(1000000)) {
		log_error("no keeper", LOG_E(e));
		snprintf(w->keeper_error, sizeof(w->keeper_error), "%s", e->msg);
		w->keeper_logged_ns = now;
	}
	if (++w->keeper_tries < KEEPER_TRIES || w->announced || w->upgraded || w->leaving)
		return;
	fprintf(stderr, "atoll: cannot serve without a keeper: %s\n", e->msg);
	w->leaving = w->failed = 1;
	for (unsigned i = 0; i < w->nservers; i++)
		kill(w->servers[i].pid, SIGTERM);
}

/* Makes sure that a keeper runs and passes a connection on. With a delay: a server whose keepers
 * exit at once gets one every AGAIN_MS. */
static void hand_keeper(struct supervisor *w, struct server_process *f)
{
	struct frame head = sock_head(WIRE_FD, 0);
	auto_fd int fd = -1;
	struct err e;

	f->wants_keeper &= f->link >= 0;
	if (!f->wants_keeper || now_ns() - f->tried_ns < AGAIN_MS * UINT64_C(1000000))
		return;
	keeper_allow_process(config_bool(&w->config, CONFIG_ISOLATION_PROCESS));
	fd = keeper_connect(&e);
	f->tried_ns = now_ns();
	if (fd < 0) {
		no_keeper(w, &e);
		return;
	}
	f->wants_keeper = w->keeper_tries = 0;
	w->keeper_error[0] = 0;
	if (sock_send(f->link, &head, sizeof(head), NULL, 0, &fd, 1, &e) < 0)
		log_warn("the server did not accept the keeper connection", LOG_E(&e));
}

static void say_where(const struct supervisor *w)
{
	const char *scheme = config_text(&w->config, CONFIG_TLS_CERT) ? "https://" : "http://";
	struct addr a;
	struct err e;

	for (unsigned i = 0; i < w->nlisteners; i++)
		if (addr_of(w->listeners[i], &a, &e) == 0)
			fprintf(stderr, "atoll: serving on %s%s\n",
				strncmp(a.text, "unix:", 5) ? scheme : "", a.text);
	if (w->cluster_listener >= 0 && addr_of(w->cluster_listener, &a, &e) == 0)
		fprintf(stderr, "atoll: nodes connect to %s\n", a.text);
}

static void note_pidfile(struct supervisor *w)
{
	struct pidfile_record note = { .supervisor = getpid(),
				       .server = w->ready ? supervisor_newest(w)->pid : 0,
				       .failed_upgrades = w->failed_upgrades,
				       .upgrade_errno = w->upgrade_errno };
	struct err e;

	snprintf(note.version, sizeof(note.version), "%s", ATOLL_VERSION);
	if (pidfile_write(w->pidfile, &note, &e) < 0)
		log_warn("cannot write the pid file", LOG_E(&e));
}

/* The newest server serves: older ones get SIGTERM and drain. */
static void say_ready(struct supervisor *w)
{
	struct err e;

	if (!w->announced && !w->cli->quiet)
		say_where(w);
	w->ready = w->announced = 1;
	note_pidfile(w);
	for (unsigned i = 0; i + 1 < w->nservers; i++)
		if (!w->servers[i].told++)
			kill(w->servers[i].pid, SIGTERM);
	if (activation_notify("READY=1", &e) < 0)
		log_warn("service manager", LOG_E(&e));
}

static void server_says(struct supervisor *w, struct server_process *f)
{
	char buf[WIRE_MAX];
	const struct frame *said = (const struct frame *)buf;
	unsigned nfds = 0;
	struct err e;
	int n = sock_recv(f->link, buf, NULL, &nfds, &e);

	if (n <= 0) { /* it is ending; its exit status has the reason */
		own_close_fd(&f->link);
		f->wants_keeper = f->wants_way = f->wants_model = f->wants_outbound = 0;
		f->wants_connector = f->wants_engines = 0;
		return;
	}
	if (said->type == WIRE_INFO)
		f->wants_keeper = 1;
	else if (said->type == WIRE_EGRESS_CONNECT)
		f->wants_way = 1;
	else if (said->type == WIRE_LLM_CONNECT)
		f->wants_model = 1;
	else if (said->type == WIRE_OUTBOUND_CONNECT)
		f->wants_outbound = 1;
	else if (said->type == WIRE_CLUSTER_CONNECT)
		f->wants_connector = 1;
	else if (said->type == WIRE_CLUSTER_ENGINES)
		f->wants_engines = 1;
	else if (said->type == WIRE_ALERT_COMMAND)
		alert_child_start(&w->alert_child, &w->config, &w->state_dir, f->link);
	else if (said->type == WIRE_DOCTOR)
		doctor_child_start(&w->doctors, f->link);
	else if (said->type == WIRE_PROVE)
		prove_child_start(&w->prove_child, &w->config, said->flags, f->link);
	else if (said->type == WIRE_DONE && f == supervisor_newest(w))
		say_ready(w);
}

/* ---- signals ---- */

static int hand_on(int fd)
{
	fcntl(fd, F_SETFD, 0);
	return fd;
}

static void begin_again(struct supervisor *w)
{
	auto_buf struct buf fds = { 0 }, servers = { 0 };
	char state[16];

	buf_printf(&fds, "%d", hand_on(w->pidfile));
	snprintf(state, sizeof(state), "%d", hand_on(w->state));
	setenv(STATE_VAR, state, 1);
	for (unsigned i = 0; i < w->nlisteners; i++)
		buf_printf(&fds, ",%d", hand_on(w->listeners[i]));
	if (w->cluster_listener >= 0) {
		snprintf(state, sizeof(state), "%d", hand_on(w->cluster_listener));
		setenv(CLUSTER_VAR, state, 1);
	}
	/* The servers stay children of this process, so the new binary reaps them. */
	for (unsigned i = 0; i < w->nservers; i++)
		if (w->servers[i].link >= 0)
			buf_printf(&servers, "%d:%d,", (int)w->servers[i].pid,
				   hand_on(w->servers[i].link));
	if (w->activated)
		setenv(ACTIVATED_VAR, "1", 1);
	setenv(FDS_VAR, fds.p, 1);
	setenv(SERVERS_VAR, servers.p ? servers.p : "", 1);
	log_info("executing the new binary");
	execv(w->exe, w->argv);
	w->upgrade_errno = errno;
	w->failed_upgrades++;
	log_error("upgrade: cannot execute the binary", LOG_S("file", w->exe),
		  LOG_S("error", strerror(w->upgrade_errno)));
	note_pidfile(w);
	unsetenv(FDS_VAR);
	unsetenv(SERVERS_VAR);
	unsetenv(STATE_VAR);
	unsetenv(ACTIVATED_VAR);
}

static void take_over(struct supervisor *w)
{
	struct config fresh = { 0 };
	struct err e;

	if (supervisor_load(w, &fresh, &e) < 0 || server_check(&fresh, &e) < 0 ||
	    llm_child_check(&fresh, &e) < 0 || outbound_child_check(&fresh, &e) < 0 ||
	    cluster_child_check(&fresh, &e) < 0) {
		log_error("reload refused, nothing was changed", LOG_E(&e));
		config_fini(&fresh);
		return;
	}
	config_fini(&w->config);
	w->config = fresh;
	set_up_log(&w->config);
	egress_child_apply(&w->egress_child, &w->config);
	llm_child_apply(&w->llm_child, &w->config);
	outbound_child_apply(&w->outbound_child, &w->config);
	connector_child_apply(&w->connector_child, &w->config);
	cluster_child_apply(&w->cluster_child, &w->config);
	if (start_server(w, &e) < 0)
		log_error("reload", LOG_E(&e));
}

static void server_ended(struct supervisor *w, unsigned i)
{
	struct frame alone = sock_head(WIRE_DONE, 0);
	struct server_process *last;
	struct err e;

	own_close_fd(&w->servers[i].link);
	memmove(&w->servers[i], &w->servers[i + 1], (--w->nservers - i) * sizeof(w->servers[0]));
	last = supervisor_newest(w);
	if (w->nservers == 1 && last->link >= 0 &&
	    sock_send(last->link, &alone, sizeof(alone), NULL, 0, NULL, 0, &e) < 0)
		log_warn("cannot notify the server that it is the only one", LOG_E(&e));
}

/* Starts another server instead of the newest, unless the one before it still serves. */
static void replace_server(struct supervisor *w, int status)
{
	struct timespec a_while = { .tv_nsec = AGAIN_MS * 1000000 };
	struct server_process *last = supervisor_newest(w);
	struct err e;

	if (!w->ready && last && !last->told && last->link >= 0) {
		log_error("the new server failed; the previous one continues");
		w->ready = w->announced = 1;
		note_pidfile(w);
		return;
	}
	if (!w->announced) /* it never served: the process exits, and its parent gets the error */
		w->leaving = w->failed = 1;
	if (w->leaving)
		return;
	log_error("the server ended; starting a new one",
		  LOG_I("status", WIFEXITED(status) ? WEXITSTATUS(status) : -1),
		  LOG_I("signal", WIFSIGNALED(status) ? WTERMSIG(status) : 0));
	if (!w->ready) /* it never served: no restart loop without a pause */
		nanosleep(&a_while, NULL);
	w->crashed = 1;
	if (start_server(w, &e) < 0)
		log_error("no server", LOG_E(&e));
	w->crashed = 0;
}

static void supervisor_reap(struct supervisor *w)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (egress_child_ended(&w->egress_child, pid) ||
		    llm_child_ended(&w->llm_child, pid) ||
		    outbound_child_ended(&w->outbound_child, pid) ||
		    connector_child_ended(&w->connector_child, pid) ||
		    cluster_child_ended(&w->cluster_child, pid) ||
		    alert_child_ended(&w->alert_child, pid) ||
		    doctor_child_ended(&w->doctors, pid) || prove_child_ended(&w->prove_child, pid))
			continue;
		for (unsigned i = 0; i < w->nservers; i++)
			if (w->servers[i].pid == pid) {
				int was_newest = i + 1 == w->nservers;

				if ((w->leaving || !was_newest) && WIFSIGNALED(status) &&
				    WTERMSIG(status) != SIGKILL)
					log_error("a server that was stopping ended by a signal",
						  LOG_I("signal", WTERMSIG(status)));
				server_ended(w, i);
				if (was_newest)
					replace_server(w, status);
				break;
			}
	}
}

/* The sockets in the file system that this process created. */
static void remove_sockets(const struct supervisor *w)
{
	struct addr a;
	struct err e;

	for (unsigned i = 0; i < w->nlisteners; i++)
		if (!w->activated && addr_of(w->listeners[i], &a, &e) == 0 &&
		    !strncmp(a.text, "unix:/", 6))
			unlink(a.text + 5);
}

/* The servers close theirs and drain. A client that connected to an open one would wait until the last server has ended; one
 * that is refused uses another machine. */
static void supervisor_stop_listening(struct supervisor *w)
{
	remove_sockets(w);
	for (unsigned i = 0; i < w->nlisteners; i++)
		close(w->listeners[i]);
	w->nlisteners = 0;
	if (w->cluster_listener >= 0)
		close(w->cluster_listener);
	w->cluster_listener = -1;
}

static void on_signal(struct supervisor *w)
{
	struct signalfd_siginfo si;
	struct err e;

	if (read(w->signals, &si, sizeof(si)) != sizeof(si))
		return;
	switch (si.ssi_signo) {
	case SIGCHLD:
		supervisor_reap(w);
		break;
	case SIGHUP:
		take_over(w);
		break;
	case SIGUSR2:
		begin_again(w);
		break;
	default:
		if (activation_notify("STOPPING=1", &e) < 0)
			log_warn("service manager", LOG_E(&e));
		announce_stop(w);
		/* A second signal kills the servers at once. */
		for (unsigned i = 0; i < w->nservers; i++)
			kill(w->servers[i].pid, w->leaving ? SIGKILL : SIGTERM);
		w->leaving = 1;
		supervisor_stop_listening(w);
	}
}

static int catch_signals(struct supervisor *w, struct err *e)
{
	static const int caught[] = { SIGCHLD, SIGHUP, SIGUSR2, SIGTERM, SIGINT };
	sigset_t set;

	sigemptyset(&set);
	for (unsigned i = 0; i < ARRAY_LEN(caught); i++)
		sigaddset(&set, caught[i]);
	sigprocmask(SIG_BLOCK, &set, NULL);
	w->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return w->signals < 0 ? err_sys(e, "signalfd") : 0;
}

static int hand_keepers(struct supervisor *w)
{
	int waiting = 0;

	for (unsigned i = 0; i < w->nservers; i++) {
		if (w->servers[i].wants_keeper)
			hand_keeper(w, &w->servers[i]);
		waiting |= w->servers[i].wants_keeper;
	}
	return waiting;
}

/* Keeps egress running as long as a server may need it, and connects the servers that requested
 * it. */
static int hand_ways(struct supervisor *w)
{
	int waiting = !w->leaving && egress_child_maintain(&w->egress_child);

	for (unsigned i = 0; i < w->nservers; i++) {
		struct server_process *f = &w->servers[i];

		if (f->wants_way && f->link >= 0 &&
		    egress_child_hand(&w->egress_child, f->link) == 0)
			f->wants_way = 0;
		waiting |= f->wants_way && w->egress_child.rules.n;
	}
	return waiting;
}

/* The same for models. */
static int hand_models(struct supervisor *w)
{
	int waiting = !w->leaving && llm_child_maintain(&w->llm_child);

	for (unsigned i = 0; i < w->nservers; i++) {
		struct server_process *f = &w->servers[i];

		if (f->wants_model && f->link >= 0 && llm_child_hand(&w->llm_child, f->link) == 0)
			f->wants_model = 0;
		waiting |= f->wants_model && w->llm_child.path[0];
	}
	return waiting;
}

/* The outbound process is started when a server needs it. */
static int hand_outbound(struct supervisor *w)
{
	int waiting = 0;

	for (unsigned i = 0; i < w->nservers; i++) {
		struct server_process *f = &w->servers[i];

		if (f->wants_outbound && f->link >= 0 &&
		    outbound_child_hand(&w->outbound_child, f->link) == 0)
			f->wants_outbound = 0;
		waiting |= f->wants_outbound;
	}
	return waiting;
}

/* The same for the process that connects to gateways. */
static int hand_connector(struct supervisor *w)
{
	int waiting = 0;

	for (unsigned i = 0; i < w->nservers; i++) {
		struct server_process *f = &w->servers[i];

		if (f->wants_connector && f->link >= 0 &&
		    connector_child_hand(&w->connector_child, f->link) == 0)
			f->wants_connector = 0;
		waiting |= f->wants_connector;
	}
	return waiting;
}

/* The cluster process runs as long as a server may need it. */
static int hand_engines(struct supervisor *w)
{
	int waiting = !w->leaving && cluster_child_maintain(&w->cluster_child);

	for (unsigned i = 0; i < w->nservers; i++) {
		struct server_process *f = &w->servers[i];

		if (f->wants_engines && f->link >= 0 &&
		    cluster_child_hand(&w->cluster_child, f->link) == 0)
			f->wants_engines = 0;
		waiting |= f->wants_engines;
	}
	return waiting;
}

static void supervisor_watch(struct supervisor *w)
{
	while (!w->leaving || w->nservers) {
		struct pollfd p[SERVERS_MAX + 1] = { { .fd = w->signals, .events = POLLIN } };
		unsigned n = w->nservers;
		int rc;

		for (unsigned i = 0; i < n; i++)
			p[i + 1] = (struct pollfd){ .fd = w->servers[i].link, .events = POLLIN };
		rc = poll(p, n + 1,
			  hand_keepers(w) | hand_ways(w) | hand_models(w) | hand_outbound(w) |
					  hand_connector(w) | hand_engines(w)
				  ? AGAIN_MS / 4
				  : -1);
		if (rc < 0 && errno != EINTR)
			return;
		if (rc <= 0)
			continue;
		/* A signal may change the list of servers; then the poll set is out of date. */
		if (p[0].revents) {
			on_signal(w);
			continue;
		}
		for (unsigned i = 0; i < n; i++)
			if (p[i + 1].revents && w->servers[i].link >= 0)
				server_says(w, &w->servers[i]);
	}
}

/* After an upgrade the keeper still runs the old binary. Its boxes keep running; the next keeper
 * adopts them. */
static void retire_keeper(void)
{
	struct keeper_sync k = { .fd = -1 };
	struct wire_info about;
	struct err e;

	if (keeper_sync_open(&k, 0, &e) < 0)
		return;
	if (keeper_sync_info(&k, &about, &e) < 0)
		log_warn("the previous keeper is kept", LOG_E(&e));
	else if (about.pid > 1)
		kill((pid_t)about.pid, SIGTERM);
	keeper_sync_close(&k);
}

static int remember_exe(struct supervisor *w, struct err *e)
{
	ssize_t n = readlink("/proc/self/exe", w->exe, sizeof(w->exe) - 1);

	if (n <= 0)
		return err_sys(e, "find the path of this executable");
	w->exe[n] = 0;
	return 0;
}

static int supervisor_begin(struct supervisor *w, struct err *e)
{
	if (supervisor_load(w, &w->config, e) < 0 || server_check(&w->config, e) < 0 ||
	    llm_child_check(&w->config, e) < 0 || outbound_child_check(&w->config, e) < 0 ||
	    cluster_child_check(&w->config, e) < 0)
		return -1;
	set_up_log(&w->config);
	if (run_dir_find(w->run, sizeof(w->run), e) < 0 || state_dir_make(w->run, 0711, e) < 0 ||
	    state_dir_open(&w->state_dir, &w->config, e) < 0 || remember_exe(w, e) < 0 ||
	    supervisor_inherit(w, e) < 0)
		return -1;
	/* Before the sockets: a daemon that is exiting still has them. */
	if (w->pidfile < 0)
		w->pidfile = pidfile_take(w->run, e);
	if (w->pidfile >= 0 && w->state < 0)
		w->state = pidfile_lock_state(w->state_dir.state, e);
	if (w->pidfile < 0 || w->state < 0 || open_sockets(w, e) < 0 ||
	    open_cluster_socket(w, e) < 0 || catch_signals(w, e) < 0)
		return -1;
	note_pidfile(w);
	/* The disk images of the keeper are in this folder, too. */
	if (setenv("ATOLL_STATE", w->state_dir.state, 1) < 0)
		return err_sys(e, "setenv");
	if (w->upgraded && config_number(&w->config, CONFIG_CLUSTER_ROLE) != CLUSTER_GATEWAY)
		retire_keeper();
	egress_child_apply(&w->egress_child, &w->config);
	llm_child_apply(&w->llm_child, &w->config);
	outbound_child_apply(&w->outbound_child, &w->config);
	connector_child_apply(&w->connector_child, &w->config);
	cluster_child_apply(&w->cluster_child, &w->config);
	return start_server(w, e);
}

static int run_serve(const struct cli *cli, const struct args *a)
{
	struct supervisor w = { .cli = cli,
				.args = a,
				.signals = -1,
				.pidfile = -1,
				.state = -1,
				.cluster_listener = -1 };
	struct cli_error t;
	struct err e;

	w.argv = cli->argv;
	egress_child_init(&w.egress_child, geteuid() == 0);
	llm_child_init(&w.llm_child, geteuid() == 0);
	outbound_child_init(&w.outbound_child, geteuid() == 0);
	connector_child_init(&w.connector_child, geteuid() == 0);
	cluster_child_init(&w.cluster_child, geteuid() == 0);
	if (supervisor_begin(&w, &e) < 0) {
		cli_error_what(&t, err_kind_name(e.kind), "%s", e.msg);
		if (e.kind == ERR_CONFLICT && strstr(e.msg, " is in use"))
			cli_error_hint(&t, "another port", "atoll serve --listen 127.0.0.1:7071");
		cli_error_hint(&t, "settings", "atoll config show --origin");
		/* Or a script that waits for the start would take the file for that of a running
		 * daemon. */
		if (w.pidfile >= 0 && !w.upgraded)
			pidfile_leave(w.run, w.pidfile);
		config_fini(&w.config);
		return cli_error_print(&t, cli->json, STATUS_FAILED);
	}
	supervisor_watch(&w);
	remove_sockets(&w);
	pidfile_leave(w.run, w.pidfile);
	config_fini(&w.config);
	return w.failed ? STATUS_FAILED : 0;
}

static const struct example examples[] = {
	{ "atoll serve", "serve on 127.0.0.1:7070, state in /var/lib/atoll" },
	{ "atoll serve --listen 0.0.0.0:7070 --tls-cert c.pem --tls-key k.pem",
	  "serve other machines, with TLS" },
	{ 0 },
};

const struct command command_serve = {
	.name = "serve",
	.group = "Machine",
	.usage = "",
	.summary = "run the daemon: serve the API on one port",
	.notes =
		"SIGHUP reads the configuration again, SIGTERM finishes requests and exits, `atoll upgrade`\n"
		"executes the new binary. Boxes keep running in all cases, also if a process of the daemon is killed.",
	.flags = config_flags,
	.nflags = CONFIG_FLAGS,
	.max_words = 0,
	.examples = examples,
	.run = run_serve,
};
