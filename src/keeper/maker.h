/* maker.h - boxes are made off the loop, on threads of their own.
 * Owns:         the threads and the jobs in flight.
 * Does not own: the kbox of a job; the loop lends it until the job is back, and touches it no more
 *               than the table does. */
#pragma once
#include "base/err.h"
#include "keeper/host.h"
#include "keeper/kbox.h"

struct job {
	struct kbox *box;
	uint64_t without; /* test builds */
	int for_pool;
	uint64_t client;  /* who waits for it, and for what request */
	uint32_t ref;
	struct err err;   /* kind 0: it lives */
	uint64_t began_ns;
	struct job *next;
};

struct maker;
must_check int maker_start(struct maker **out, const struct host *h, unsigned threads, struct err *e);
int maker_fd(const struct maker *m); /* readable when a job is back */
void maker_give(struct maker *m, struct job *take_job);
struct job *maker_back(struct maker *m); /* NULL: none */
void maker_stop(struct maker *m); /* joins the threads; nothing may be in flight */
unsigned maker_busy(const struct maker *m); /* given and not yet back; the loop's view */
