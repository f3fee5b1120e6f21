/* keeper_sync.h - asking the keeper: one request, its answer. Shared by link.c and box.c only. */
#pragma once
#include "client/box_handle.h"

struct answer {
	uint8_t want; /* the type of frame that answers; an ERROR becomes e */
	void *to;     /* it goes here, */
	size_t room;  /* if it fits */
	int wants_fd; /* a descriptor must come with it */
	size_t len;   /* out: bytes of the frame */
	int fd;       /* out */
};

/* Sends `ask`, whose ref is filled in, and waits for the answer with that ref. A keeper that goes
 * away meanwhile is replaced once. */
must_check int link_ask(struct keeper_sync *k, void *ask, size_t ask_len, struct answer *a,
			struct err *e);
/* A further answer to the request of that ref. */
must_check int link_hear(struct keeper_sync *k, uint32_t ref, struct answer *a, struct err *e);
