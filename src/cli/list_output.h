/* list_output.h - prints a list from the daemon: a table for people, names for a script, JSON
 * for a program. */
#pragma once
#include "cli/api_client.h"
#include "cli/table.h"

struct list_output {
	const char *const *columns; /* as of a table */
	const char *name;           /* the member that --quiet prints */
	void (*row)(struct table *t, json_t *item);
};
/* Every item below that path. Returns the exit status. */
int list_output_show(struct api_client *r, const char *path, const struct list_output *l);
