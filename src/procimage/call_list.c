/* call_list.c - see call_list.h. */
#include "procimage/call_list.h"

#include <stdlib.h>
#include <string.h>

struct restorer_call *call_list_add(struct call_list *l, long number, enum restorer_check check,
				    const uint64_t args[6])
{
	struct restorer_call *c;

	if (l->count == l->room) {
		l->room = l->room ? l->room * 2 : 64;
		l->calls = reallocarray(l->calls, l->room, sizeof(*l->calls));
		if (!l->calls)
			abort();
	}
	c = &l->calls[l->count++];
	*c = (struct restorer_call){ .number = (int32_t)number,
				     .check = (uint8_t)check,
				     .step = (uint8_t)l->step };
	memcpy(c->args, args, sizeof(c->args));
	return c;
}

void call_list_fini(struct call_list *l)
{
	free(l->calls);
	*l = (struct call_list){ 0 };
}

uint64_t call_data_add(struct call_data *d, const void *bytes, uint64_t n, uint64_t align)
{
	uint64_t from = (d->len + align - 1) & ~(align - 1);

	if (from + n > d->most)
		abort(); /* the caller has computed a bound */
	if (from + n > d->room) {
		d->room = (from + n) * 2;
		d->bytes = realloc(d->bytes, d->room);
		if (!d->bytes)
			abort();
	}
	memset(d->bytes + d->len, 0, from + n - d->len);
	if (bytes)
		memcpy(d->bytes + from, bytes, n);
	d->len = from + n;
	return d->at + from;
}

void *call_data_pointer(struct call_data *d, uint64_t address)
{
	return d->bytes + (address - d->at);
}

struct restorer_list call_data_add_list(struct call_data *d, const struct call_list *l)
{
	return (struct restorer_list){ call_data_add(d, l->calls, l->count * sizeof(*l->calls), 16),
				       l->count };
}
