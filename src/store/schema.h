/* schema.h - the tables, as a history. */
#pragma once
#include "base/err.h"

struct sqlite3;

/* The SQL that turns version i into i + 1. A released step is never changed: existing files have
 * run it already. */
extern const char *const schema_steps[];
extern const int schema_newest; /* how many there are */

/* Rejects a file that is not a database of Atoll, or from a newer version, and leaves it
 * unchanged. */
must_check int schema_accept(struct sqlite3 *db, int newest, struct err *e);
/* Runs the steps that are missing, each in a transaction of its own. */
must_check int schema_migrate(struct sqlite3 *db, const char *const *steps, int newest,
			      struct err *e);
/* "PRAGMA user_version" and the like: the number in the first column of the first row. */
must_check int schema_number(struct sqlite3 *db, const char *query, int *out, struct err *e);
