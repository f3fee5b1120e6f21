/* upper.c - see upper.h. */
#include "fleet/upper.h"
#include "base/own.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Is path at or below place? Both without a slash at their end. */
static int is_below(const char *path, size_t len, const char *place, size_t place_len)
{
	return len >= place_len && !memcmp(path, place, place_len) &&
	       (len == place_len || path[place_len] == '/');
}

static int is_own(const struct upper *u, const struct wire_entry *e, const char *path, size_t len)
{
	for (const char *const *own = u->own; own && *own; own++) {
		size_t n = strlen(*own);

		if (is_below(path, len, *own, n) ||
		    (S_ISDIR(e->mode) && is_below(*own, n, path, len)))
			return 1;
	}
	return 0;
}

void upper_missing(struct upper *u)
{
	u->broken = 1;
}

static void digest_of(const struct wire_entry *e, const char *path, size_t len, uint8_t *out)
{
	/* A folder's time is that of what was in it, ours as well. */
	uint64_t look[] = { len, e->mode, e->uid, e->gid, S_ISREG(e->mode) ? e->mtime_ns : 0 };
	struct sha256 s;

	sha256_init(&s);
	sha256_add(&s, look, sizeof(look));
	sha256_add(&s, path, len);
	if (e->hashed)
		sha256_add(&s, e->sha256, sizeof(e->sha256));
	sha256_end(&s, out);
}

void upper_entry(struct upper *u, const struct wire_entry *e, const char *path, size_t len)
{
	if (u->broken || is_own(u, e, path, len))
		return;
	/* Where a link leads is not told. */
	if (S_ISLNK(e->mode) || (S_ISREG(e->mode) && !e->hashed) || u->n == UPPER_ENTRIES) {
		u->broken = 1;
		return;
	}
	if (u->n == u->room) {
		u->room = u->room ? 2 * u->room : 64;
		u->entries = reallocarray(u->entries, u->room, sizeof(*u->entries));
		if (!u->entries)
			abort();
	}
	digest_of(e, path, len, u->entries[u->n++]);
}

static int by_bytes(const void *a, const void *b)
{
	return memcmp(a, b, SHA256_BYTES);
}

int upper_end(struct upper *u, uint8_t out[SHA256_BYTES])
{
	struct sha256 s;

	if (u->broken || !u->n)
		return u->broken ? -1 : 0;
	qsort(u->entries, u->n, sizeof(*u->entries), by_bytes);
	sha256_init(&s);
	sha256_add(&s, u->entries, u->n * sizeof(*u->entries));
	sha256_end(&s, out);
	return 1;
}

void upper_fini(struct upper *u)
{
	free(u->entries);
	*u = (struct upper){ 0 };
}
