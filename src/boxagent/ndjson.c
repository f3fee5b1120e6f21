/* ndjson.c - see ndjson.h. */
#include "boxagent/ndjson.h"
#include "base/cleanup.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <time.h>

enum { READ_MOST = 64 * 1024 };

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static int ndjson_more(struct ndjson *in, uint64_t until, struct err *e)
{
	struct pollfd p = { .fd = in->fd, .events = POLLIN };
	uint64_t now = now_ms();
	ssize_t n;
	int rc;

	if (in->bytes.len > NDJSON_LINE)
		return err_set(e, ERR_INVALID, "the host's line does not end");
	rc = now < until ? poll(&p, 1, (int)(until - now < INT32_MAX ? until - now : INT32_MAX))
			 : 0;
	if (rc == 0)
		return err_set(e, ERR_LIMIT, "the host does not answer");
	n = read(in->fd, buf_space(&in->bytes, READ_MOST), READ_MOST);
	if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN))
		return err_set(e, ERR_NOT_FOUND, "the host has disconnected");
	if (n > 0)
		buf_grew(&in->bytes, (size_t)n);
	return 0;
}

int ndjson_read(struct ndjson *in, uint64_t timeout_ms, json_t **out, struct err *e)
{
	uint64_t until = now_ms() + timeout_ms;
	size_t looked = 0, n;
	char *end;

	if (in->taken) {
		memmove(in->bytes.p, in->bytes.p + in->taken, in->bytes.len - in->taken);
		buf_cut(&in->bytes, in->bytes.len - in->taken);
		in->taken = 0;
	}
	while (!(end = in->bytes.p ? memchr(in->bytes.p + looked, '\n', in->bytes.len - looked)
				   : NULL)) {
		looked = in->bytes.len;
		if (ndjson_more(in, until, e) < 0)
			return -1;
	}
	n = (size_t)(end - in->bytes.p);
	in->taken = n + 1;
	*out = json_loadb(in->bytes.p, n, JSON_ALLOW_NUL, NULL);
	return *out ? 0 : err_set(e, ERR_INVALID, "the host's line is not JSON");
}

int ndjson_write(int fd, json_t *take_doc, struct err *e)
{
	auto_free char *text = json_dumps(take_doc, JSON_COMPACT);
	size_t n, at = 0;

	json_decref(take_doc);
	if (!text)
		return err_set(e, ERR_INVALID, "the line is not UTF-8 text");
	n = strlen(text);
	text[n++] = '\n'; /* replaces the NUL: one write per line */
	while (at < n) {
		ssize_t some = write(fd, text + at, n - at);

		if (some < 0 && errno != EINTR)
			return err_sys(e, "write to the host");
		at += some > 0 ? (size_t)some : 0;
	}
	return 0;
}
