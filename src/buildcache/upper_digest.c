/* upper_digest.c - see upper_digest.h. */
#include "buildcache/upper_digest.h"
#include "base/cleanup.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Is path at or below place? Both without a slash at their end. */
static int is_below(const char *path, size_t len, const char *place, size_t place_len)
{
	return len >= place_len && !memcmp(path, place, place_len) &&
	       (len == place_len || path[place_len] == '/');
}

/* Is it a parent folder of one of these folders? */
static int leads_to(const char *const *places, const char *path, size_t len)
{
	for (; places && *places; places++)
		if (strlen(*places) > len && is_below(*places, strlen(*places), path, len))
			return 1;
	return 0;
}

static int is_own(const struct upper_digest *u, const char *path, size_t len)
{
	for (const char *const *own = u->own; own && *own; own++)
		if (strlen(*own) == len && !memcmp(*own, path, len))
			return 1;
	return 0;
}

static int is_loose(const struct upper_digest *u, const char *path, size_t len)
{
	for (const char *const *loose = u->loose; loose && *loose; loose++)
		if (is_below(path, len, *loose, strlen(*loose)))
			return 1;
	return 0;
}

/* Entries that are not part of the digest. */
static int is_passed(struct upper_digest *u, const struct wire_entry *e, const char *path,
		     size_t len)
{
	if (S_ISDIR(e->mode) && (leads_to(u->own, path, len) || leads_to(u->loose, path, len)))
		return 1;
	if (is_own(u, path, len))
		return 1;
	if (!is_loose(u, path, len))
		return 0;
	u->has_loose = 1;
	return 1;
}

void upper_digest_missing(struct upper_digest *u)
{
	u->broken = 1;
}

static void digest_of(const struct wire_entry *e, const char *path, size_t len, uint8_t *out)
{
	/* The time of a folder changes with its files, including those of the request. */
	uint64_t look[] = { len, e->mode, e->uid, e->gid, S_ISREG(e->mode) ? e->mtime_ns : 0 };
	struct sha256 s;

	sha256_init(&s);
	sha256_add(&s, look, sizeof(look));
	sha256_add(&s, path, len);
	if (e->hashed)
		sha256_add(&s, e->sha256, sizeof(e->sha256));
	sha256_end(&s, out);
}

void upper_digest_entry(struct upper_digest *u, const struct wire_entry *e, const char *path,
			size_t len)
{
	if (u->broken || is_passed(u, e, path, len))
		return;
	/* The target of a link is not reported. */
	if (S_ISLNK(e->mode) || (S_ISREG(e->mode) && !e->hashed) || u->n == UPPER_DIGEST_ENTRIES) {
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

int upper_digest_end(struct upper_digest *u, uint8_t out[SHA256_BYTES])
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

void upper_digest_fini(struct upper_digest *u)
{
	free(u->entries);
	*u = (struct upper_digest){ 0 };
}
