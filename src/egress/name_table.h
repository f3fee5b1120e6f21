/* name_table.h - addresses of 198.18.0.0/15 that stand for names, in one box.
 * Owns: the rows: NAME_TABLE_MAX at most, the one that was not used for the longest time is replaced.
 * An address is not given to another name soon: a program that kept it gets a refusal, not another
 * host. */
#pragma once
#include <stdint.h>

enum { NAME_TABLE_MAX = 1024, NAME_TABLE_BITS = 17 };
#define NAME_TABLE_NET 0xc6120000u /* 198.18.0.0 */

struct name_row;

struct name_table { /* zeroed: empty */
	struct name_row *v;
	unsigned n;
	uint32_t last;  /* number of the last new address */
	uint64_t turns; /* counts uses */
};

/* The address for that name, in host order. */
uint32_t name_table_address(struct name_table *t, const char *name);
int name_table_has(uint32_t address); /* is it in 198.18.0.0/15? */
/* NULL: it stands for no name. */
const char *name_table_find(struct name_table *t, uint32_t address);
void name_table_fini(struct name_table *t);
