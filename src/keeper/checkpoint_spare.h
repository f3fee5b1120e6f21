/* checkpoint_spare.h - a process for the next checkpoint, started in advance together with its capture and its check.
 *
 * Starting and confining three processes takes longer than a small checkpoint. So after a checkpoint the layer store, as
 * soon as it has nothing else to do, starts those for the next one. They wait without any descriptor of a box, and end
 * after a minute without a checkpoint. */
#pragma once
#include <stddef.h>
#include <stdint.h>
struct checkpoint_worker;

/* Gives an order of n bytes to the spare process. 0: there is none; from now on one is wanted. */
int checkpoint_spare_give(uint32_t check_uid, const void *order, size_t n, const int *fds,
			  unsigned nfds);
/* Starts or ends it when it is time. serve: runs in the new process, receives the order from sock, and does not return.
 * dir: of checkpoint_store_open(). Returns the milliseconds until the next call; -1: not before another order. */
int checkpoint_spare_refresh(int dir, void (*serve)(struct checkpoint_worker *w, int sock));
