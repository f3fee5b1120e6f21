/* run_request_files.h - writes the files of a plan into the box before the first program runs.
 * Owns:         the worker that writes them.
 * Does not own: the plan, which has the bytes. */
#pragma once
#include "v1run/run_request_plan.h"
#include "base/buf.h"
#include "client/file_client.h"

struct run_request_files {
	struct file_client file_client;
	int open;
	const struct run_request_plan *plan;
	struct buf text; /* decoded base64 */
	unsigned unanswered;
	void (*done)(struct run_request_files *x,
		     const struct err *e); /* e: NULL when all are written */
};

/* 1: the plan has no files. 0: done() will be called once, after this function has returned. */
int run_request_files_put(struct run_request_files *x, const struct run_request_plan *p,
			  struct init_conn *box);
void run_request_files_fini(struct run_request_files *x); /* at any time; fine on a zeroed one */
