/* gunzip.c - see gunzip.h. Consecutive members are one body (RFC 1952). */
#include "e2b/gunzip.h"

#include <stdint.h>
#include <stdlib.h>
#include <zlib.h>

enum { WINDOW = 15, GZIP_ONLY = 16, TAKEN_MOST = 1 << 20 };

struct gunzip {
	z_stream z;
	int ended;
};

struct gunzip *gunzip_new(void)
{
	struct gunzip *g = calloc(1, sizeof(*g));

	if (!g || inflateInit2(&g->z, WINDOW + GZIP_ONLY) != Z_OK)
		abort(); /* only for want of memory */
	return g;
}

void gunzip_free(struct gunzip *g)
{
	if (g)
		inflateEnd(&g->z);
	free(g);
}

int gunzip_ended(const struct gunzip *g)
{
	return g->ended;
}

long gunzip_some(struct gunzip *g, const char **in, size_t *n, char *out, size_t room,
		 struct err *e)
{
	z_stream *z = &g->z;

	z->next_out = (Bytef *)out;
	z->avail_out = (uInt)room;
	for (;;) {
		uInt given = (uInt)(*n < TAKEN_MOST ? *n : TAKEN_MOST);
		int rc;

		/* Even without new input, zlib may have more output of earlier input. */
		if (g->ended && given) {
			g->ended = 0;
			if (inflateReset(z) != Z_OK)
				return err_set(e, ERR_INVALID,
					       "gzip: zlib cannot start the next member");
		}
		if (g->ended || z->avail_out == 0)
			break;
		z->next_in = (Bytef *)(uintptr_t)*in;
		z->avail_in = given;
		rc = inflate(z, Z_NO_FLUSH);
		*in += given - z->avail_in;
		*n -= given - z->avail_in;
		if (rc == Z_STREAM_END)
			g->ended = 1;
		else if (rc == Z_BUF_ERROR || (rc == Z_OK && *n == 0 && z->avail_out))
			break;
		else if (rc != Z_OK)
			return err_set(e, ERR_INVALID, "gzip: %s",
				       z->msg ? z->msg : "this is not a gzip stream");
	}
	return (long)(room - z->avail_out);
}
