/* process.c - see process.h. */
#include "llm/process.h"
#include "base/log.h"
#include "base/cleanup.h"
#include "llm/completion.h"
#include "outbound/json_pipe.h"
#include "wire/sock.h"

#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

enum { LEAVE_MS = 1 }; /* json_pipe.h writes within a turn of the loop */

struct process {
	struct loop loop;
	struct models_config book;
	struct asker asker;
	struct watch supervisor;
	struct process_link *links;
	struct timer leave; /* after the last answers were written */
	int leaving;
};

struct process_link { /* to a server */
	struct process_link *next;
	struct process *process;
	struct json_pipe pipe;
	struct process_question *questions;
};

struct process_question {
	struct process_question *next;
	struct process_link *link;
	struct completion_owner owner;
	struct completion *ask;
	json_int_t number;
};

static void *process_must(void *p)
{
	if (!p)
		abort();
	return p;
}

static void leave_if_done(struct process *x)
{
	if (x->leaving && !x->asker.under_way)
		timer_set(&x->leave, LEAVE_MS);
}

static void process_leave(struct timer *t)
{
	struct process *x = loop_owner(t, struct process, leave);

	if (!x->asker.under_way)
		loop_stop(&x->loop);
}

/* ---- questions ---- */

static void process_tell(struct process_link *l, json_int_t number, json_t *take_answer,
			 const struct err *e)
{
	json_t *m = json_pack("{s:I, s:o}", "done", number, "answer", take_answer);

	if (e) {
		json_object_set_new(m, "kind", json_integer(e->kind));
		json_object_set_new(m, "message", json_string(e->msg));
	}
	json_pipe_send(&l->pipe, m);
}

static void process_drop(struct process_question *q)
{
	struct process_question **at = &q->link->questions;

	while (*at != q)
		at = &(*at)->next;
	*at = q->next;
	free(q);
}

static void process_said(struct completion_owner *o, json_t *take_event)
{
	struct process_question *q = loop_owner(o, struct process_question, owner);

	json_pipe_send(&q->link->pipe,
		       json_pack("{s:I, s:o}", "said", q->number, "event", take_event));
}

static void process_done(struct completion_owner *o, json_t *take_answer, const struct err *e)
{
	struct process_question *q = loop_owner(o, struct process_question, owner);
	struct process *x = q->link->process;

	process_tell(q->link, q->number, take_answer, e);
	process_drop(q);
	leave_if_done(x);
}

static json_t *process_refusal(const struct err *e)
{
	static const struct usage none;

	return json_pack("{s:o, s:i, s:{s:s, s:s, s:b}}", "usage", usage_json(&none), "tries", 0,
			 "error", "category", e->kind == ERR_LIMIT ? "unavailable" : "invalid",
			 "message", e->msg, "retriable", e->kind == ERR_LIMIT);
}

static void process_asks(struct process_link *l, json_int_t number, json_t *request)
{
	struct process_question *q = process_must(calloc(1, sizeof(*q)));
	struct err e;

	/* Requests that were not accepted are sent by the server to the next process. */
	json_pipe_send(&l->pipe, json_pack("{s:I}", "taken", number));
	*q = (struct process_question){ .link = l,
					.owner = { .said = process_said, .done = process_done },
					.number = number };
	q->ask = completion_start(&l->process->asker, json_incref(request), &q->owner, &e);
	if (!q->ask) {
		free(q);
		process_tell(l, number, process_refusal(&e), &e);
		return;
	}
	q->next = l->questions;
	l->questions = q;
}

static void process_cancels(struct process_link *l, json_int_t number)
{
	struct err e = { .kind = ERR_CONFLICT, .msg = "cancelled" };

	for (struct process_question *q = l->questions; q; q = q->next)
		if (q->number == number) {
			process_tell(l, number, completion_cancel(q->ask),
				     &e); /* paid tokens are counted */
			process_drop(q);
			leave_if_done(l->process);
			return;
		}
}

/* ---- servers ---- */

static void process_server_message(struct json_pipe *p, const json_t *m)
{
	struct process_link *l = loop_owner(p, struct process_link, pipe);
	const json_t *ask = json_object_get(m, "ask"), *cancel = json_object_get(m, "cancel");
	json_t *request = json_object_get(m, "request");

	if (json_is_integer(ask) && request)
		process_asks(l, json_integer_value(ask), request);
	else if (json_is_integer(cancel))
		process_cancels(l, json_integer_value(cancel));
}

static void process_server_closed(struct json_pipe *p)
{
	struct process_link *l = loop_owner(p, struct process_link, pipe),
			    **at = &l->process->links;
	struct process *x = l->process;

	while (l->questions) {
		json_decref(completion_cancel(l->questions->ask));
		process_drop(l->questions);
	}
	while (*at != l)
		at = &(*at)->next;
	*at = l->next;
	json_pipe_fini(&l->pipe);
	free(l);
	leave_if_done(x);
}

static void process_add_server(struct process *x, int take_fd)
{
	struct process_link *l = process_must(calloc(1, sizeof(*l)));

	l->process = x;
	l->pipe.message = process_server_message;
	l->pipe.gone = process_server_closed;
	l->next = x->links;
	x->links = l;
	json_pipe_init(&l->pipe, &x->loop, take_fd);
	json_pipe_send(&l->pipe, json_pack("{s:o}", "book", models_config_public(&x->book)));
}

/* ---- the process ---- */

static void supervisor_says(struct watch *w, unsigned what)
{
	static char buf[WIRE_MAX];
	struct process *x = loop_owner(w, struct process, supervisor);
	unsigned nfds = 1;
	auto_fd int fd = -1;
	struct err e;
	int n = sock_recv(w->fd, buf, &fd, &nfds, &e);

	(void)what;
	if (n <= 0) { /* another process replaces this one: accepted requests are still answered */
		watch_stop(w);
		x->leaving = 1;
		leave_if_done(x);
	} else if (((const struct frame *)buf)->type == WIRE_LLM_CONNECT && nfds) {
		process_add_server(x, steal_fd(&fd));
	}
}

int llm_main(const char *book_path, int supervisor, int (*walls)(void *ctx, struct err *e),
	     void *ctx)
{
	static struct process x;
	const struct rlimit none = { 0, 0 };
	struct err e;

	signal(SIGPIPE, SIG_IGN);
	setrlimit(RLIMIT_CORE, &none); /* the memory has keys */
	if (models_config_load(&x.book, book_path, &e) < 0 || loop_init(&x.loop, &e) < 0 ||
	    asker_init(&x.asker, &x.loop, &x.book, &e) < 0 || walls(ctx, &e) < 0) {
		log_error("models cannot be called", LOG_E(&e));
		return 1;
	}
	timer_init(&x.leave, &x.loop, process_leave);
	watch_init(&x.supervisor, &x.loop, supervisor, supervisor_says);
	watch_want(&x.supervisor, LOOP_READ);
	log_info("models can be asked", LOG_U("models", x.book.nmodels),
		 LOG_U("roles", x.book.nroles));
	loop_run(&x.loop);
	models_config_fini(&x.book);
	return 0;
}
