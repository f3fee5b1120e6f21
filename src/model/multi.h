/* multi.h - libcurl on our loop.
 * Owns:         its multi handle, and a watch for each connection that it has.
 * Does not own: transfers: who adds one removes it, also when done() was called. */
#pragma once
#include "loop/loop.h"
#include "model/curl.h"

struct multi {
	struct loop *loop;
	CURLM *handle;
	struct timer timer;
	void (*done)(void *owner, CURLcode rc); /* owner: CURLOPT_PRIVATE of the transfer */
};

void multi_init(struct multi *m, struct loop *l, void (*done)(void *owner, CURLcode rc));
void multi_fini(struct multi *m);
