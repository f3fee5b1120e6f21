/* driver_process.c - the coordinator of a gateway's server: its cluster process has the engine. */
#include "coordinator/cluster_client.h"
#include "coordinator/coordinator.h"
#include "coordinator/message.h"

#include <stdlib.h>

struct driver_process {
	struct coordinator coordinator; /* the first member */
	struct cluster_client *client;
	struct process_ask *asks;
	char trouble[sizeof(((struct err *)0)->msg)]; /* of the last request; "": it was answered */
};

struct process_ask {
	struct process_ask *next;
	struct driver_process *driver;
	struct cluster_request request;
	struct answer answer;
};

static void driver_process_drop(struct process_ask *x)
{
	struct process_ask **at = &x->driver->asks;

	while (*at != x)
		at = &(*at)->next;
	*at = x->next;
	cluster_client_cancel(&x->request);
	answer_fini(&x->answer);
	free(x);
}

static void driver_process_done(struct cluster_request *r, const json_t *m, const struct err *e)
{
	struct process_ask *x = loop_owner(r, struct process_ask, request);
	struct err why;

	if (m && message_read_answer(m, &x->answer, &why) < 0) {
		why.kind = ERR_SYS;
		e = &why;
	}
	snprintf(x->driver->trouble, sizeof(x->driver->trouble), "%s",
		 e && e->kind == ERR_SYS ? e->msg : "");
	answer_give(&x->answer, e);
	driver_process_drop(x);
}

static void driver_process_ask(struct coordinator *c, const struct coordinator_request *q,
			       coordinator_done *done, void *user)
{
	struct driver_process *d = (struct driver_process *)c;
	struct process_ask *x = calloc(1, sizeof(*x));

	if (!x)
		abort();
	x->driver = d;
	x->next = d->asks;
	d->asks = x;
	x->request.done = driver_process_done;
	answer_init(&x->answer, q, done, user);
	cluster_client_send(d->client, &x->request,
			    json_pack("{s:o}", "coordinator", message_of_request(q)));
}

static const char *driver_process_trouble(const struct coordinator *c)
{
	return ((const struct driver_process *)c)->trouble;
}

static void driver_process_free(struct coordinator *c)
{
	struct driver_process *d = (struct driver_process *)c;

	while (d->asks)
		driver_process_drop(d->asks);
	free(d);
}

static const struct coordinator_driver driver_process = { driver_process_ask,
							  driver_process_trouble,
							  driver_process_free };

int coordinator_process_new(struct coordinator **out, struct cluster_client *client, struct err *e)
{
	struct driver_process *d = calloc(1, sizeof(*d));

	if (!d)
		return err_sys(e, "coordinator");
	d->coordinator.driver = &driver_process;
	d->client = client;
	*out = &d->coordinator;
	return 0;
}
