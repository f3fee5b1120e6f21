/* process.c - see process.h. */
#include "coordinator/process.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "coordinator/coordinator.h"
#include "coordinator/membership.h"
#include "coordinator/message.h"
#include "coordinator/objects.h"
#include "coordinator/postgres.h"
#include "coordinator/queries.h"
#include "coordinator/schema.h"
#include "outbound/json_pipe.h"
#include "wire/sock.h"

#include <resolv.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

struct cluster_process {
	const struct cluster_process_conf *conf;
	struct loop loop;
	struct watch supervisor;
	struct postgres *db;
	struct coordinator *coordinator;
	struct membership membership;
	struct objects objects;
	unsigned links; /* servers */
	int leaving;
};

struct process_link { /* to a server */
	struct cluster_process *process;
	struct json_pipe pipe;
	struct process_job *jobs;
};

struct process_job {
	struct process_job *next;
	struct cluster_process *process;
	struct process_link *link; /* NULL: the server has left */
	json_int_t number;
};

static void process_leave_if_done(struct cluster_process *x)
{
	if (x->leaving && !x->links)
		loop_stop(&x->loop);
}

/* ---- requests ---- */

static void process_answer(struct process_job *take_j, json_t *take_answer, const struct err *e)
{
	struct process_link *l = take_j->link;

	if (!take_answer)
		take_answer = json_pack("{s:s, s:i}", "error", e->msg, "kind", (int)e->kind);
	if (l) {
		struct process_job **at = &l->jobs;

		while (*at != take_j)
			at = &(*at)->next;
		*at = take_j->next;
		json_object_set_new(take_answer, "done", json_integer(take_j->number));
		json_pipe_send(&l->pipe, take_answer);
	} else {
		json_decref(take_answer);
	}
	free(take_j);
}

static void process_signed(void *user, const struct membership_answer *a, const struct err *e)
{
	struct process_job *j = user;

	process_answer(j,
		       a ? json_pack("{s:i, s:s, s:s}", "number", (int)a->peer.number,
				     "certificate", a->cert, "ca",
				     buf_str(&j->process->membership.ca_cert))
			 : NULL,
		       e);
}

/* "": not a text. */
static const char *process_text(const json_t *m, const char *name)
{
	const char *text = json_string_value(json_object_get(m, name));

	return text ? text : "";
}

static void process_renew(struct process_job *j, const json_t *m)
{
	json_int_t number = json_integer_value(json_object_get(m, "number"));
	struct cluster_peer peer = { .number = (unsigned)number };
	struct err e;

	peer.role = !strcmp(process_text(m, "role"), "gateway") ? CLUSTER_GATEWAY : CLUSTER_NODE;
	if (number < 1 || number > CLUSTER_NUMBER_MAX) {
		err_set(&e, ERR_INVALID, "%lld is not the number of a machine", (long long)number);
		process_answer(j, NULL, &e);
		return;
	}
	membership_renew(&j->process->membership, &peer, process_text(m, "request"), process_signed,
			 j);
}

static void process_coordinated(void *user, const struct coordinator_answer *a, const struct err *e)
{
	process_answer(user, a ? message_of_answer(a) : NULL, e);
}

static void process_coordinate(struct process_job *j, const json_t *m)
{
	struct coordinator_request q;
	struct view_gateway *dead;
	struct err e;

	if (message_read_request(m, &q, &dead, &e) < 0)
		process_answer(j, NULL, &e);
	else
		coordinator_ask(j->process->coordinator, &q, process_coordinated, j);
	free(dead);
}

static void process_queried(void *user, const struct postgres_answer *a, const struct err *e)
{
	process_answer(user, a ? query_answer(a) : NULL, e);
}

static void process_sign(struct process_job *j, const json_t *m)
{
	auto_buf struct buf url = { 0 };
	struct err e;

	if (objects_sign(&j->process->objects, m, (int64_t)time(NULL), &url, &e) < 0)
		process_answer(j, NULL, &e);
	else
		process_answer(j, json_pack("{s:s}", "url", buf_str(&url)), NULL);
}

static void process_request(struct json_pipe *p, const json_t *m)
{
	struct process_link *l = loop_owner(p, struct process_link, pipe);
	const json_t *join = json_object_get(m, "join"), *renew = json_object_get(m, "renew"),
		     *coordinate = json_object_get(m, "coordinator"),
		     *query = json_object_get(m, "query"), *object = json_object_get(m, "object");
	struct process_job *j = calloc(1, sizeof(*j));
	struct err e;

	if (!j)
		abort();
	*j = (struct process_job){ .next = l->jobs,
				   .process = l->process,
				   .link = l,
				   .number = json_integer_value(json_object_get(m, "ask")) };
	l->jobs = j;
	if (join) {
		membership_join(&l->process->membership, process_text(join, "token"),
				process_text(join, "request"), process_text(join, "name"),
				process_signed, j);
	} else if (renew) {
		process_renew(j, renew);
	} else if (coordinate) {
		process_coordinate(j, coordinate);
	} else if (query) {
		if (query_send(l->process->db, query, process_queried, j, &e) < 0)
			process_answer(j, NULL, &e);
	} else if (object) {
		process_sign(j, object);
	} else {
		err_set(&e, ERR_INVALID, "the cluster process does not know this request");
		process_answer(j, NULL, &e);
	}
}

static void process_server_left(struct json_pipe *p)
{
	struct process_link *l = loop_owner(p, struct process_link, pipe);
	struct cluster_process *x = l->process;

	for (struct process_job *j = l->jobs; j; j = j->next)
		j->link = NULL;
	json_pipe_fini(&l->pipe);
	free(l);
	x->links--;
	process_leave_if_done(x);
}

/* ---- servers ---- */

static void process_add_stream(struct cluster_process *x, int take_fd)
{
	struct process_link *l = calloc(1, sizeof(*l));

	if (!l)
		abort();
	l->process = x;
	l->pipe.message = process_request;
	l->pipe.gone = process_server_left;
	json_pipe_init(&l->pipe, &x->loop, take_fd);
	x->links++;
}

static void process_supervisor(struct watch *w, unsigned what)
{
	static char buf[WIRE_MAX];
	struct cluster_process *x = loop_owner(w, struct cluster_process, supervisor);
	const struct frame *f = (const struct frame *)buf;
	unsigned nfds = 1;
	auto_fd int fd = -1;
	struct err e;
	int n = sock_recv(w->fd, buf, &fd, &nfds, &e);

	(void)what;
	if (n <= 0) { /* another process replaces this one */
		watch_stop(w);
		x->leaving = 1;
		process_leave_if_done(x);
	} else if (f->type == WIRE_CLUSTER_ENGINES && nfds) {
		process_add_stream(x, steal_fd(&fd));
	}
}

/* ---- the start ---- */

/* Without its keys the store is not used: files travel through gateways. */
static void process_open_objects(struct cluster_process *x)
{
	struct err e;

	if (*x->conf->objects &&
	    objects_open(&x->objects, x->conf->objects, x->conf->secrets, &e) < 0)
		log_error("the object store is not used", LOG_E(&e));
}

static int process_open_engines(struct cluster_process *x, struct err *e)
{
	struct buf password = { 0 };
	struct postgres_conf conf = { .database = x->conf->database,
				      .query = schema_query(),
				      .check = schema_check,
				      .setup = schema_setup() };
	int rc = membership_read_password(x->conf->secrets, &password, e);

	conf.password = password.len ? password.p : NULL;
	if (rc == 0 && membership_load(&x->membership, x->conf->secrets, e) < 0) {
		if (e->kind == ERR_NOT_FOUND)
			log_warn("no machine can join at this gateway", LOG_E(e));
		else
			rc = -1;
	}
	if (rc == 0 &&
	    (postgres_new(&x->db, &x->loop, &conf, e) < 0 ||
	     coordinator_engine_new(&x->coordinator, &x->loop, x->db, x->conf->etcd, e) < 0))
		rc = -1;
	process_open_objects(x);
	if (password.p)
		explicit_bzero(password.p, password.room);
	buf_fini(&password);
	x->membership.db = x->db;
	x->membership.coordinator = x->coordinator;
	/* libpq resolves host names itself; its resolver reads its settings now. */
	res_init();
	return rc;
}

int cluster_process_main(const struct cluster_process_conf *conf, int supervisor,
			 int (*walls)(void *ctx, struct err *e), void *ctx)
{
	static struct cluster_process x;
	const struct rlimit none = { 0, 0 };
	struct err e;

	x.conf = conf;
	signal(SIGPIPE, SIG_IGN);
	setrlimit(RLIMIT_CORE, &none); /* the memory has passwords and the key of the CA */
	if (loop_init(&x.loop, &e) < 0 || process_open_engines(&x, &e) < 0 || walls(ctx, &e) < 0) {
		log_error("the cluster process cannot start", LOG_E(&e));
		return 1;
	}
	watch_init(&x.supervisor, &x.loop, supervisor, process_supervisor);
	watch_want(&x.supervisor, LOOP_READ);
	loop_run(&x.loop);
	return 0;
}
