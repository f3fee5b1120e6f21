/* control_lines.c - bytes of a control connection into lines; versions of programs. See control.h. */
#include "cluster/control.h"

#include <stdlib.h>
#include <string.h>

/* ---- lines ---- */

int control_feed(struct control_lines *c, const char *bytes, size_t n,
		 int (*line)(void *user, const char *text, size_t len, struct err *e), void *user,
		 struct err *e)
{
	while (n > 0) {
		const char *end = memchr(bytes, '\n', n);
		size_t part = end ? (size_t)(end - bytes) : n;
		int rc = 0;

		if (part > c->most - c->line.len)
			return err_set(e, ERR_LIMIT, "a line is longer than %zu bytes", c->most);
		if (!end || c->line.len)
			buf_add(&c->line, bytes, part);
		if (!end)
			return 0;
		rc = c->line.len ? line(user, c->line.p, c->line.len, e)
				 : line(user, bytes, part, e);
		buf_fini(&c->line);
		if (rc < 0)
			return -1;
		bytes += part + 1;
		n -= part + 1;
	}
	return 0;
}

/* ---- versions ---- */

static int control_version_parts(const char *text, unsigned out[2])
{
	char *end = NULL;

	for (unsigned i = 0; i < 2; i++) {
		if (*text < '0' || *text > '9' || strspn(text, "0123456789") > 6)
			return -1;
		out[i] = (unsigned)strtoul(text, &end, 10);
		if (*end != (i == 0 ? '.' : *end))
			return -1;
		text = end + 1;
	}
	return *end == 0 || strchr(".-+~", *end) ? 0 : -1;
}

int control_check_version(const char *own, const char *other, struct err *e)
{
	unsigned a[2], b[2];

	if (control_version_parts(own, a) < 0 || control_version_parts(other, b) < 0)
		return err_set(e, ERR_INVALID, "'%.24s' is not a version such as 1.2.0", other);
	if (a[0] != b[0] || a[1] > b[1] + 1 || b[1] > a[1] + 1)
		return err_set(e, ERR_CONFLICT,
			       "version %.24s does not work with version %.24s: the minor versions "
			       "may differ by one; upgrade gateways first, then nodes",
			       other, own);
	return 0;
}
