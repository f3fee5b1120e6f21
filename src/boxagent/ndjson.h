/* ndjson.h - lines of JSON: from the host and to it, and the log.
 * Owns: what was read behind the last line. */
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
/* The next one. ERR_NOT_FOUND: the host has left; ERR_LIMIT: nothing came in time. */
must_check int ndjson_read(struct ndjson *in, uint64_t timeout_ms, json_t **out, struct err *e);
/* All of it, before this returns. */
must_check int ndjson_write(int fd, json_t *take_doc, struct err *e);
