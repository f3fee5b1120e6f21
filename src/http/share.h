/* share.h - how many connections each client address holds, and which of them can be closed to make
 * room. For the files of this folder only.
 * Owns:         one struct share per address with open connections, and the lists of connections
 *               that have no request in progress.
 * Does not own: the connections.
 *
 * A connection without a complete request head is on two lists, of its address and of the server,
 * oldest first:
 *   fresh  it has never sent a complete head
 *   kept   it has been answered and may send another one
 * At a limit the oldest fresh connection is closed, then the oldest kept one. A client whose kept
 * connection is closed knows that this can happen and connects again; a connection with a request
 * in progress is never closed here. */
#pragma once
#include "loop/loop.h"
#include <stdint.h>

struct http_conn;
struct http_core;
struct sockaddr_storage;

struct ring { /* a member of a circular list, or its head; next NULL: on no list */
	struct ring *next, *prev;
};

enum { SHARE_FRESH, SHARE_KEPT, SHARE_LISTS };

struct share { /* of one IPv4 address, one IPv6 /64, or one uid on the unix socket */
	struct share *next, **link; /* of the same bucket */
	uint8_t key[16];
	unsigned open; /* connections, without those that are being closed */
	struct ring lists[SHARE_LISTS];
	struct loop_budget budget; /* of its connections that have no other one */
};

enum { SHARE_BUCKETS = 1024 };
struct shares {
	struct share *buckets[SHARE_BUCKETS];
	struct ring lists[SHARE_LISTS];
	uint64_t seed; /* so that clients cannot choose addresses that share a bucket */
};

void shares_init(struct shares *all);
/* The part of an address by which connections are counted. */
void share_key(const struct sockaddr_storage *from, int is_unix, uint32_t uid, uint8_t out[16]);
struct share *share_find(const struct shares *all, const uint8_t key[16]); /* NULL: none is open */
/* The connection is open; it is fresh. */
void share_join(struct shares *all, struct http_conn *c, const uint8_t key[16]);
void share_leave(struct http_conn *c);                    /* allowed if it is not in the list */
void share_busy(struct http_conn *c);                     /* its request head is complete */
void share_idle(struct shares *all, struct http_conn *c); /* it waits for the next one */
/* The connection to close first; of: only one of that address. NULL: all have a request in
 * progress. */
struct http_conn *share_victim(const struct shares *all, const struct share *of);
