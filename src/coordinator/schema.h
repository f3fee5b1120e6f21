/* schema.h - the tables of a cluster in PostgreSQL, and their versions.
 * Owns: the steps. A landed step is never changed; each step only adds, so that programs of the version before
 * continue to work. */
#pragma once
#include "base/err.h"

struct pg_result;

enum {
	SCHEMA_VERSION = 10, /* number of the last step */
	SCHEMA_OLDEST_READER =
		1, /* programs that know fewer steps than this must not use the tables */
};

const char *schema_query(void);                             /* for postgres_conf.query */
int schema_check(const struct pg_result *r, struct err *e); /* for postgres_conf.check */
const char *schema_setup(
	void); /* for postgres_conf.setup: all steps that are missing, in one transaction */
