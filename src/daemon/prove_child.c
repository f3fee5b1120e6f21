/* prove_child.c - see prove_child.h. */
#include "daemon/prove_child.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "daemon/child.h"
#include "daemon/prove_settings.h"
#include "prove/prove.h"
#include "wire/sock.h"

#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>

enum { PROVE_CHILD_LINK = 3 };

struct prove_job {
	const struct config *config;
	unsigned tier;
};

static char *prove_child_error(const struct err *e)
{
	json_t *doc = json_pack("{s:s}", "error", e->msg);
	char *text = doc ? json_dumps(doc, JSON_COMPACT) : NULL;

	json_decref(doc);
	return text ? text : strdup("{\"error\": \"\"}");
}

static void prove_child_be(void *ctx)
{
	const struct prove_job *j = ctx;
	struct buf settings = { 0 };
	struct store_proof p;
	char *text;
	struct err e;

	/* A proof without a daemon helps no one; the guard of the proof removes its folder. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prove_settings_text(j->config, &settings);
	struct prove_want w = { .settings = buf_str(&settings) };

	prove_want_tier(&w, j->tier);
	text = prove_run(&w, &p, &e) < 0 ? prove_child_error(&e) : prove_pack(&p);
	(void)!send(PROVE_CHILD_LINK, text, strlen(text), MSG_NOSIGNAL);
	_exit(0);
}

void prove_child_start(struct prove_child *o, const struct config *c, unsigned tier,
		       int server_link)
{
	struct frame head = sock_head(WIRE_PROVE, 0);
	struct prove_job job = { .config = c, .tier = tier };
	struct child child = { .link = -1 };
	struct err e;

	if (o->pid)
		return;
	if (child_start(&child, "atoll-prove", prove_child_be, &job, &e) < 0) {
		log_warn("the proof of a tier was not started", LOG_E(&e));
		return;
	}
	o->pid = child.pid;
	head.flags = (uint16_t)tier;
	if (sock_send(server_link, &head, sizeof(head), NULL, 0, &child.link, 1, &e) < 0)
		log_warn("the proof of a tier cannot be sent", LOG_E(&e));
	child_stop(&child);
}

int prove_child_ended(struct prove_child *o, pid_t pid)
{
	if (!o->pid || o->pid != pid)
		return 0;
	o->pid = 0;
	return 1;
}
