/* table.h - rows for people: columns as wide as needed, a header only on a terminal.
 * Owns: the cells, until they are printed. Foreign text cannot move the cursor. */
#pragma once
#include "base/buf.h"
#include "cli/cli_error.h"

enum { TABLE_COLUMNS = 10 };

struct table {
	const char *const
		*names; /* NULL-terminated; a title that begins with '>' is aligned right */
	unsigned ncolumns, ncells;
	unsigned width[TABLE_COLUMNS];
	struct buf cells; /* each with its NUL */
};

void table_init(struct table *t, const char *const *names);
void table_cell(struct table *t, const char *fmt, ...) CLI_ERROR_FORMAT(2, 3);
void table_print(struct table *t, int header); /* and empties it */
