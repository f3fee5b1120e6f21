/* page.c - see page.h. */
#include "api/page.h"

#include <stdio.h>

int page_read(struct page *p, struct call *c, struct err *e)
{
	const char *after = call_query(c, "after");

	*p = (struct page){ .limit = (unsigned)call_query_int(c, "limit", 0) };
	if (after && store_cursor_parse(after, &p->at, e) < 0)
		return -1;
	p->after = after ? &p->at : NULL;
	return 0;
}

void page_ends(struct page *p, int64_t ns, const char *id)
{
	struct store_cursor last = { .ns = ns };

	snprintf(last.id, sizeof(last.id), "%s", id);
	store_cursor_text(&last, p->next);
}
