/* ndjson.h - lines of JSON: from the host and to it, and the log.
 * Owns: bytes read after the last line. */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include <jansson.h>
#include <stdint.h>

enum { NDJSON_LINE = 16 << 20 };

struct ndjson {
	int fd;
	struct buf bytes;
	size_t taken;
};
/* Reads the next line. ERR_NOT_FOUND: the host has closed; ERR_LIMIT: timeout. */
must_check int ndjson_read(struct ndjson *in, uint64_t timeout_ms, json_t **out, struct err *e);
/* Writes everything before it returns. */
must_check int ndjson_write(int fd, json_t *take_doc, struct err *e);
