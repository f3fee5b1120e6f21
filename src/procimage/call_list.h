/* call_list.h - builds lists of system calls, and the data they point to, for one address.
 * Owns: both, until call_list_fini(). Addresses are those in the process that executes the list. */
#pragma once
#include "procimage/restorer.h"

struct call_list {
	struct restorer_call *calls;
	uint64_t count, room;
	unsigned step; /* of the calls that are added */
};

struct call_data { /* grows at a fixed address */
	char *bytes;
	uint64_t len, room;
	uint64_t at;   /* address of the first byte */
	uint64_t most; /* bytes that may be used there */
};

/* Out of memory aborts. Returns the call, for its save and from_slot; good until the next one. */
struct restorer_call *call_list_add(struct call_list *l, long number, enum restorer_check check,
				    const uint64_t args[6]);
#define CALL(list, number, check, ...)                                                             \
	call_list_add(list, number, check, (const uint64_t[6]){ __VA_ARGS__ })
void call_list_fini(struct call_list *l);

/* Address of n bytes, zero if bytes is NULL; `align` is a power of two. */
uint64_t call_data_add(struct call_data *d, const void *bytes, uint64_t n, uint64_t align);
void *call_data_pointer(struct call_data *d, uint64_t address);
struct restorer_list call_data_add_list(struct call_data *d, const struct call_list *l);
