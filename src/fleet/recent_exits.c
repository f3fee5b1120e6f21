/* recent_exits.c - see recent_exits.h. */
#include "fleet/recent_exits.h"

#include <stdlib.h>
#include <string.h>

static int is_recent(const struct recent_exit *p)
{
	return loop_now_ms() - p->ended_ms < RECENT_EXITS_MS;
}

/* The newest is the first, so all after the first old one are old. */
static void drop_old(struct recent_exit **at, unsigned most)
{
	while (*at && most && is_recent(*at)) {
		at = &(*at)->next;
		most--;
	}
	while (*at) {
		struct recent_exit *p = *at;

		*at = p->next;
		free(p);
	}
}

void recent_exits_add(struct box *b, const struct exec *r)
{
	struct recent_exit *p;

	if (r->pid <= 0)
		return;
	p = calloc(1, sizeof(*p));
	if (!p)
		abort();
	p->next = b->past;
	p->pid = r->pid;
	p->ended_ms = loop_now_ms();
	memcpy(p->run, r->id, sizeof(p->run));
	memcpy(p->tag, r->tag, sizeof(p->tag));
	b->past = p;
	drop_old(&b->past, RECENT_EXITS_MOST);
}

const struct recent_exit *recent_exits_find(const struct box *b, int pid, const char *tag)
{
	for (const struct recent_exit *p = b->past; p && is_recent(p); p = p->next)
		if (pid ? p->pid == pid : *tag && !strcmp(p->tag, tag))
			return p;
	return NULL;
}

void recent_exits_free(struct box *b)
{
	drop_old(&b->past, 0);
}
