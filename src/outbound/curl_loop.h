/* curl_loop.h - libcurl on the event loop.
 * Owns: its multi handle, and a watch for each connection that it has.
 * Does not own: transfers: the caller that adds one removes it, also after done(). */
#pragma once
#include "loop/loop.h"

struct curl_loop {
	struct loop *loop;
	void *handle; /* CURLM */
	struct timer timer;
	void (*done)(void *owner, int rc); /* CURLOPT_PRIVATE of the transfer; a CURLcode */
};

void curl_loop_init(struct curl_loop *m, struct loop *l, void (*done)(void *owner, int rc));
