/* copy_job.h - one file on its way from node to node, through this gateway: the answer of one is the body of a request to
 * the other. The bytes are not kept.
 * Owns: one connection to each node. */
#pragma once
#include "base/id.h"
#include "cluster/tunnel.h"
#include "http/upstream.h"

struct copy_job { /* memory of the caller, zeroed; until done() or copy_job_cancel() */
	/* Called once, from the loop. why NULL: the file arrived, or was there already. */
	void (*done)(struct copy_job *j, const char *why);
	/* The rest is copy_job.c's. */
	struct loop *loop;
	struct tunnels *tunnels;
	struct copy_end {
		struct copy_job *job;
		unsigned node;
		struct tunnel_ask ask;
		struct upstream up;
		int has_link, has_ended, status;
	} from, to;
	struct timer clock, put;
	struct buf get_head, put_head;
	struct buf early; /* bytes of the answer before the request to the receiver has begun */
	int is_active;
	char snapshot[ID_MAX + 1], identity[128], why[200];
};

struct copy_job_what {
	struct loop *loop;
	struct tunnels *tunnels;
	unsigned from, to;
	const char
		*kind; /* "copies": for boxes with on_loss restart; "snapshots" (v1box/copies.h) */
	const char *snapshot, *identity; /* copied */
};
void copy_job_begin(struct copy_job *j, const struct copy_job_what *w);
void copy_job_cancel(
	struct copy_job *j); /* done() is not called; fine on a zeroed or finished one */
