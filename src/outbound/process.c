/* process.c - see process.h. */
#include "outbound/process.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "outbound/json_pipe.h"
#include "outbound/transfer.h"
#include "wire/sock.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

enum { OUTBOUND_NICE = 5 };
enum { LEAVE_MS = 1 }; /* json_pipe.h writes within a turn of the loop */

struct outbound_process {
	struct loop loop;
	struct transfers transfers;
	struct watch supervisor;
	struct timer leave; /* after the last answers were written */
	int leaving;
};

struct outbound_link { /* to a server */
	struct outbound_process *process;
	struct json_pipe pipe;
	struct outbound_job *jobs;
};

struct outbound_job {
	struct outbound_job *next;
	struct outbound_link *link;
	struct transfer_owner owner;
	struct transfer *transfer;
	json_int_t number;
};

static void *process_must(void *p)
{
	if (!p)
		abort();
	return p;
}

static void process_leave_if_done(struct outbound_process *x)
{
	if (x->leaving && !x->transfers.under_way)
		timer_set(&x->leave, LEAVE_MS);
}

static void process_leave(struct timer *t)
{
	struct outbound_process *x = loop_owner(t, struct outbound_process, leave);

	if (!x->transfers.under_way)
		loop_stop(&x->loop);
}

static void process_drop(struct outbound_job *j)
{
	struct outbound_job **at = &j->link->jobs;

	while (*at != j)
		at = &(*at)->next;
	*at = j->next;
	free(j);
}

static void process_done(struct transfer_owner *o, json_t *take_answer)
{
	struct outbound_job *j = loop_owner(o, struct outbound_job, owner);
	struct outbound_process *x = j->link->process;

	json_object_set_new(take_answer, "done", json_integer(j->number));
	json_pipe_send(&j->link->pipe, take_answer);
	process_drop(j);
	process_leave_if_done(x);
}

static void process_send(struct outbound_link *l, json_int_t number, json_t *message)
{
	struct outbound_job *j = process_must(calloc(1, sizeof(*j)));

	*j = (struct outbound_job){
		.next = l->jobs, .link = l, .owner.done = process_done, .number = number
	};
	l->jobs = j;
	j->transfer = transfer_start(&l->process->transfers, json_incref(message), &j->owner);
}

static void process_cancel(struct outbound_link *l, json_int_t number)
{
	for (struct outbound_job *j = l->jobs; j; j = j->next)
		if (j->number == number) {
			transfer_cancel(j->transfer);
			process_drop(j);
			process_leave_if_done(l->process);
			return;
		}
}

static void process_server_message(struct json_pipe *p, const json_t *m)
{
	struct outbound_link *l = loop_owner(p, struct outbound_link, pipe);
	const json_t *number = json_object_get(m, "send"), *cancel = json_object_get(m, "cancel");
	json_t *message = json_object_get(m, "message"), *body = json_object_get(m, "body");

	if (body && json_object_set(message, "body", body) < 0)
		return;
	if (json_is_integer(number) && message)
		process_send(l, json_integer_value(number), message);
	else if (json_is_integer(cancel))
		process_cancel(l, json_integer_value(cancel));
}

static void process_server_closed(struct json_pipe *p)
{
	struct outbound_link *l = loop_owner(p, struct outbound_link, pipe);
	struct outbound_process *x = l->process;

	while (l->jobs) {
		transfer_cancel(l->jobs->transfer);
		process_drop(l->jobs);
	}
	json_pipe_fini(&l->pipe);
	free(l);
	process_leave_if_done(x);
}

static void process_add_server(struct outbound_process *x, int take_fd)
{
	struct outbound_link *l = process_must(calloc(1, sizeof(*l)));

	l->process = x;
	l->pipe.message = process_server_message;
	l->pipe.gone = process_server_closed;
	json_pipe_init(&l->pipe, &x->loop, take_fd);
}

static void process_supervisor(struct watch *w, unsigned what)
{
	static char buf[WIRE_MAX];
	struct outbound_process *x = loop_owner(w, struct outbound_process, supervisor);
	unsigned nfds = 1;
	auto_fd int fd = -1;
	struct err e;
	int n = sock_recv(w->fd, buf, &fd, &nfds, &e);

	(void)what;
	if (n <= 0) { /* another process replaces this one */
		watch_stop(w);
		x->leaving = 1;
		process_leave_if_done(x);
	} else if (((const struct frame *)buf)->type == WIRE_OUTBOUND_CONNECT && nfds) {
		process_add_server(x, steal_fd(&fd));
	}
}

int outbound_main(const struct outbound_conf *conf, int supervisor,
		  int (*walls)(void *ctx, struct err *e), void *ctx)
{
	static struct outbound_process x;
	const struct rlimit none = { 0, 0 };
	struct err e;

	signal(SIGPIPE, SIG_IGN);
	(void)!nice(OUTBOUND_NICE);    /* requests of clients and programs in boxes come first */
	setrlimit(RLIMIT_CORE, &none); /* the memory has passwords of mail servers */
	if (loop_init(&x.loop, &e) < 0 ||
	    transfers_init(&x.transfers, &x.loop, &conf->rules, conf->authorities, conf->dns, &e) <
		    0 ||
	    walls(ctx, &e) < 0) {
		log_error("no requests can be sent to other hosts", LOG_E(&e));
		return 1;
	}
	timer_init(&x.leave, &x.loop, process_leave);
	watch_init(&x.supervisor, &x.loop, supervisor, process_supervisor);
	watch_want(&x.supervisor, LOOP_READ);
	loop_run(&x.loop);
	return 0;
}
