/* list_directory.h - lists of a gateway from the database of the cluster: also of nodes that are not connected. For the
 * files of this folder only.
 * Owns: the query in progress; it ends with the request. */
#pragma once
#include "gateway/gateway_call.h"

enum {
	LIST_DIRECTORY_MS = 500, /* for the database to answer; then the nodes are asked */
	LIST_AVOID_MS = 2000,    /* and they are asked at once for this long */
};

/* 1: the answer follows, from the database or by otherwise(), if that does not answer. 0: this list, or this filter, is
 * one that only nodes can answer: the caller asks them. */
int list_directory_begin(struct gateway_call *x, unsigned limit,
			 void (*otherwise)(struct gateway_call *x));
void list_directory_end(struct gateway_call *x);
