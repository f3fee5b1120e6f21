/* keeper_sync.h - a blocking request to the keeper and its answer. Shared by keeper_sync.c, tests and
 * box_handle.c only. */
#pragma once
#include "client/box_handle.h"

struct answer {
	uint8_t want; /* the type of frame that answers; an ERROR becomes e */
	void *to;     /* the answer is written here, */
	size_t room;  /* if it fits */
	int wants_fd; /* the answer must carry a descriptor */
	size_t len;   /* out: bytes of the frame */
	int fd;       /* out */
};

/* Sends `ask`, whose ref is filled in, and waits for the answer with that ref. A keeper that exits
 * before it answers is replaced once. */
must_check int link_ask(struct keeper_sync *k, void *ask, size_t ask_len, struct answer *a,
			struct err *e);
/* A further answer to the request of that ref. */
must_check int link_hear(struct keeper_sync *k, uint32_t ref, struct answer *a, struct err *e);
