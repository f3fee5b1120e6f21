/* csv.h - usage as comma-separated values (RFC 4180). Pure functions. */
#pragma once
#include "base/buf.h"
#include "store/usage.h"

/* One cell: in quotes where necessary. Spreadsheets execute a cell that begins with = + - @, a tab or a carriage
 * return as a formula: such a text gets an apostrophe in front of it. */
void csv_cell(struct buf *out, const char *text);
/* The header line; `by` is the name of the first column. */
void csv_usage_head(struct buf *out, const char *by);
void csv_usage_row(struct buf *out, const struct store_usage_row *r);
