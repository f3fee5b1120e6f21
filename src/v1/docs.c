/* docs.c - see docs.h. Errors name such a page in their field `doc`. */
#include "v1/docs.h"
#include "base/buf.h"
#include "base/cleanup.h"

#include <string.h>

/* docs.S */
struct doc {
	const char *name, *text, *end;
};
extern const struct doc v1_docs[], v1_docs_end[];

static const struct doc *docs_find(const char *name)
{
	for (const struct doc *d = v1_docs; d < v1_docs_end; d++)
		if (!strcmp(d->name, name))
			return d;
	return NULL;
}

void docs_show(struct call *c)
{
	const struct doc *d = docs_find(call_param(c, 0));
	auto_buf struct buf names = { 0 };

	if (d) {
		http_reply(c->req, 200, "text/plain; charset=utf-8", d->text,
			   (size_t)(d->end - d->text));
		return;
	}
	for (d = v1_docs; d < v1_docs_end; d++)
		buf_printf(&names, "%s/docs/%s", d == v1_docs ? "" : ", ", d->name);
	call_error(c, 404, "not_found", "there is no such page", call_param(c, 0), buf_str(&names));
}
