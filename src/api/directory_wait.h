/* directory_wait.h - waits until the directory of the cluster has all rows that this machine has written until now.
 * Owns: nothing; the memory is the caller's until done() or directory_wait_cancel(). */
#pragma once
#include <stddef.h>
#include <stdint.h>

struct node_rows;

struct directory_wait {                         /* zeroed by the caller, but for done */
	void (*done)(struct directory_wait *w); /* called once, from the loop */
	struct directory_wait *next, **at;      /* at NULL: does not wait */
	int64_t rev;
};

static inline void directory_wait_cancel(
	struct directory_wait *w) /* fine on a zeroed or finished one */
{
	if (!w->at)
		return;
	*w->at = w->next;
	if (w->next)
		w->next->at = w->at;
	w->at = NULL;
}
