/* backup.h - a copy of the database while a daemon uses it.
 * Owns: nothing; all functions open and close connections of their own, and change no row. */
#pragma once
#include "base/buf.h"
#include "store/store.h"

/* Writes the state of one moment to the new file `to`: complete and consistent, without a WAL. Writers do not wait.
 * *out_schema: the version of the schema. */
must_check int store_backup(const char *dir, const char *to, int *out_schema, struct err *e);
/* Appends version and size of the database, and the number of rows of each table: text, a fact per line. */
must_check int store_describe(const char *dir, struct buf *out, struct err *e);
/* Checks that a file is a database of Atoll whose schema this version can open, and that it is not damaged. */
must_check int store_examine(const char *file, int *out_schema, struct err *e);
