/* table.c - see table.h. */
#include "cli/table.h"
#include "base/cleanup.h"
#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { WIDEST = 60 };

/* Characters, not bytes: a name may be in any language. */
static unsigned width_of(const char *text)
{
	unsigned n = 0;

	for (; *text; text++)
		n += !utf8_continues(*text);
	return n;
}

static const char *table_plain(const char *name)
{
	return name + (*name == '>');
}

void table_init(struct table *t, const char *const *names)
{
	*t = (struct table){ .names = names };
	for (; names[t->ncolumns]; t->ncolumns++)
		t->width[t->ncolumns] = width_of(table_plain(names[t->ncolumns]));
}

void table_cell(struct table *t, const char *fmt, ...)
{
	size_t from = t->cells.len;
	unsigned column = t->ncells++ % t->ncolumns, width;
	va_list ap;

	va_start(ap, fmt);
	buf_vprintf(&t->cells, fmt, ap);
	va_end(ap);
	if (t->cells.len == from)
		buf_putc(&t->cells, '-');
	for (char *c = t->cells.p + from; *c; c++)
		if ((unsigned char)*c < 32 || *c == 127)
			*c = '?';
	width = width_of(t->cells.p + from);
	buf_putc(&t->cells, 0);
	if (width > t->width[column] && width <= WIDEST)
		t->width[column] = width;
}

static void print_cell(const struct table *t, unsigned column, const char *text)
{
	int pad = (int)t->width[column] - (int)width_of(text);
	int right = t->names[column][0] == '>', last = column + 1 == t->ncolumns;

	pad = pad < 0 ? 0 : pad;
	printf("%*s%s%*s%s", right ? pad : 0, "", text, right || last ? 0 : pad, "",
	       last ? "\n" : "  ");
}

void table_print(struct table *t, int header)
{
	const char *at = buf_str(&t->cells);

	for (unsigned i = 0; header && i < t->ncolumns; i++)
		print_cell(t, i, table_plain(t->names[i]));
	for (unsigned i = 0; i < t->ncells; i++, at += strlen(at) + 1)
		print_cell(t, i % t->ncolumns, at);
	buf_fini(&t->cells);
	table_init(t, t->names);
}
