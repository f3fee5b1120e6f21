/* bring.h - a snapshot of one node on its way to another one, on which a box is created from it. Requests for the same file
 * wait for one job.
 * Owns: jobs. A job continues when the requests that waited for it have left.
 * With an object store the file travels through it; if that fails, through this gateway (copy_job.h).
 * Does not own: the file; the receiver checks its digest (v1box/copy_file.h). */
#pragma once
#include "base/id.h"
#include "cluster/tunnel.h"

struct gateway_bring;
struct gateway_objects;
/* objects: tried first; NULL: there is no object store. */
struct gateway_bring *gateway_bring_new(struct loop *l, struct tunnels *t,
					struct gateway_objects *objects);
void gateway_bring_free(struct gateway_bring *g); /* done() is not called; allowed on NULL */

struct bring_job;
struct bring_ask { /* memory of the caller, zeroed; valid until done() or bring_cancel() */
	/* Called once, from the loop. why NULL: the node has the file. */
	void (*done)(struct bring_ask *a, const char *why);
	int is_missing; /* in done(): its node has no such snapshot of this team */
	/* Of bring.c. */
	struct bring_ask *next;
	struct bring_job *job;
};
struct bring_what {
	const char *snapshot, *team; /* team of the caller: the snapshot must be its own */
	unsigned owner, to;
};
void bring_begin(struct gateway_bring *g, struct bring_ask *a, const struct bring_what *w);
void bring_cancel(struct bring_ask *a); /* also if it has ended or has never begun */
