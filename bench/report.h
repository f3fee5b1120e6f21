/* report.h - the results as a table and as JSON. */
#pragma once
#include "base/err.h"
#include "density.h"
#include "facts.h"

struct findings {
	const struct facts *facts;
	unsigned rounds;
	int with_latency, with_rates, with_density;
	struct density *density;
};

void report_table(struct findings *f);
must_check int report_json(struct findings *f, const char *path, struct err *e);
