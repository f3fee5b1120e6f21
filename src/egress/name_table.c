/* name_table.c - see name_table.h. */
#include "egress/name_table.h"

#include <stdlib.h>
#include <string.h>

struct name_row {
	char *name;
	uint32_t address;
	uint64_t used;
};

int name_table_has(uint32_t address)
{
	return address >> NAME_TABLE_BITS == NAME_TABLE_NET >> NAME_TABLE_BITS;
}

static struct name_row *name_row_of(struct name_table *t, uint32_t address)
{
	for (unsigned i = 0; i < t->n; i++)
		if (t->v[i].address == address)
			return &t->v[i];
	return NULL;
}

static struct name_row *name_row_free(struct name_table *t)
{
	struct name_row *oldest = t->v;

	if (!t->v)
		t->v = calloc(NAME_TABLE_MAX, sizeof(*t->v));
	if (!t->v)
		abort();
	if (t->n < NAME_TABLE_MAX)
		return &t->v[t->n++];
	for (unsigned i = 1; i < t->n; i++)
		if (t->v[i].used < oldest->used)
			oldest = &t->v[i];
	free(oldest->name);
	*oldest = (struct name_row){ 0 };
	return oldest;
}

/* The first and the last address of the range are not used. */
static uint32_t name_next_address(struct name_table *t)
{
	uint32_t address;

	do {
		t->last = t->last + 1 < (1u << NAME_TABLE_BITS) - 1 ? t->last + 1 : 1;
		address = NAME_TABLE_NET + t->last;
	} while (name_row_of(t, address));
	return address;
}

uint32_t name_table_address(struct name_table *t, const char *name)
{
	struct name_row *r = NULL;

	for (unsigned i = 0; i < t->n && !r; i++)
		if (strcmp(t->v[i].name, name) == 0)
			r = &t->v[i];
	if (!r) {
		uint32_t address = name_next_address(t);

		r = name_row_free(t);
		r->name = strdup(name);
		r->address = address;
		if (!r->name)
			abort();
	}
	r->used = ++t->turns;
	return r->address;
}

const char *name_table_find(struct name_table *t, uint32_t address)
{
	struct name_row *r = name_row_of(t, address);

	if (!r)
		return NULL;
	r->used = ++t->turns;
	return r->name;
}

void name_table_fini(struct name_table *t)
{
	for (unsigned i = 0; i < t->n; i++)
		free(t->v[i].name);
	free(t->v);
	*t = (struct name_table){ 0 };
}
