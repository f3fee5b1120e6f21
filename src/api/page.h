/* page.h - one page of a list of /v1, newest first: ?limit=, ?after=, and the answer's `next`.
 * Owns: nothing. Lists that are sorted by a name or a number have cursors of their own. */
#pragma once
#include "api/api.h"
#include "store/store.h"

struct page {
	struct store_cursor at;
	const struct store_cursor *after; /* NULL: from the start */
	unsigned limit;                   /* 0: the default */
	char next[STORE_CURSOR_TEXT];     /* for call_list(); "": no further page */
};

must_check int page_read(struct page *p, struct call *c, struct err *e);
/* The page ends with this row, and more rows follow. */
void page_ends(struct page *p, int64_t ns, const char *id);
