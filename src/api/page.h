/* page.h - a list of /v1 a page at a time, newest first: ?limit=, ?after=, and the answer's `next`.
 * Owns: nothing. Lists that go by a name or a number have cursors of their own. */
#pragma once
#include "api/api.h"
#include "store/store.h"

struct page {
	struct store_cursor at;
	const struct store_cursor *after; /* NULL: from the start */
	unsigned limit;                   /* 0: as usual */
	char next[STORE_CURSOR_TEXT];     /* for call_list(); "": there is none */
};

must_check int page_read(struct page *p, struct call *c, struct err *e);
void page_ends(struct page *p, int64_t ns, const char *id); /* at this row, and there are more */
