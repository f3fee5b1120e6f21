/* sockets.h - the listening TCP sockets of a box, as its file worker reads them inside the box.
 * Owns: a file worker, from sockets_open() to sockets_close(), and the last list.
 * Each list is compared with the one before it: the events port.opened and port.closed report the
 * differences. So these events exist while a client reads the list, waits for a port, or follows
 * the events of the box, and cost nothing otherwise. */
#pragma once
#include "api/api.h"
#include "client/file_client.h"

enum { SOCKETS_MOST = 256, SOCKETS_PROCESS = 16 };

struct box;
struct sockets_item {
	uint16_t port;
	int v6;
	uint8_t addr[16]; /* 4 bytes of an IPv4 address, or 16 */
	int pid;          /* 0: not known; a process of the box's root, or the list is brief */
	char process[SOCKETS_PROCESS + 1];
};

struct sockets {
	struct file_client file_client;
	struct timer patience; /* a program in the box may stop the worker */
	struct fleet *fleet;
	char box[ID_MAX + 1];
	int open, ready, asked, brief;
	struct sockets_item v[SOCKETS_MOST];
	unsigned n;
	/* e NULL: v and n are the list, ordered by port. Else no more calls. May close s. */
	void (*done)(struct sockets *s, const struct err *e);
};

void sockets_open(struct sockets *s, struct box *b,
		  void (*done)(struct sockets *s, const struct err *e));
/* done() follows, from the loop. brief: without processes, for a list that is read often. */
void sockets_read(struct sockets *s, int brief);
void sockets_close(struct sockets *s); /* fine on a closed or zeroed one */
/* {address, pid, process}; found NULL: null each. */
json_t *sockets_json(const struct sockets_item *found);
