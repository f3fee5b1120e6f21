/* zone.c - see zone.h. */
#include "schedule/zone.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/suggest.h"
#include "schedule/civil.h"
#include "schedule/zone_rule.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

struct zone_change {
	int64_t at; /* from this time on */
	int32_t offset;
};

struct zone {
	char name[ZONE_NAME + 1];
	int32_t first; /* the offset before all changes */
	unsigned n, room;
	struct zone_change *v; /* ascending; neighbours have different offsets */
};

enum { HEADER = 44, OFFSET_MOST = 26 * 3600 };

void zone_free(struct zone *z)
{
	if (z)
		free(z->v);
	free(z);
}

static void zone_free_p(struct zone **z)
{
	zone_free(*z);
}
#define auto_zone __attribute__((cleanup(zone_free_p)))

const char *zone_name(const struct zone *z)
{
	return z->name;
}

/* ---- reading TZif ---- */

static uint32_t zone_u32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static int64_t zone_i64(const uint8_t *p)
{
	return (int64_t)((uint64_t)zone_u32(p) << 32 | zone_u32(p + 4));
}

struct zone_counts {
	uint32_t isut, isstd, leap, times, types, chars;
};

static int zone_header(const uint8_t *p, size_t n, struct zone_counts *c)
{
	if (n < HEADER || memcmp(p, "TZif", 4) != 0)
		return -1;
	*c = (struct zone_counts){ zone_u32(p + 20), zone_u32(p + 24), zone_u32(p + 28),
				   zone_u32(p + 32), zone_u32(p + 36), zone_u32(p + 40) };
	return c->isut > 256 || c->isstd > 256 || c->leap > 1000 || c->times > 10000 ||
			       c->types > 256 || !c->types || c->chars > 1000
		       ? -1
		       : 0;
}

static size_t zone_block(const struct zone_counts *c, size_t time_size)
{
	return c->times * time_size + c->times + c->types * 6 + c->chars +
	       c->leap * (time_size + 4) + c->isstd + c->isut;
}

/* A change to the same offset (only the abbreviation differs) is left out, and one of a rule that does not
 * follow the last one. */
static void zone_add(struct zone *z, int64_t at, int32_t offset)
{
	int32_t last = z->n ? z->v[z->n - 1].offset : z->first;

	if (last == offset || (z->n && at <= z->v[z->n - 1].at))
		return;
	if (z->n == z->room) {
		z->room = z->room ? 2 * z->room : 64;
		z->v = realloc(z->v, z->room * sizeof(*z->v));
		if (!z->v)
			abort();
	}
	z->v[z->n++] = (struct zone_change){ at, offset };
}

static int zone_read_block(struct zone *z, const uint8_t *p, const struct zone_counts *c)
{
	const uint8_t *index = p + c->times * 8, *types = index + c->times;
	int64_t before = INT64_MIN;

	for (uint32_t i = 0; i < c->types; i++) {
		int32_t offset = (int32_t)zone_u32(types + i * 6);

		if (offset < -OFFSET_MOST || offset > OFFSET_MOST)
			return -1;
	}
	z->first = (int32_t)zone_u32(types);
	for (uint32_t i = 0; i < c->times; i++) {
		int64_t at = zone_i64(p + i * 8);

		if (at <= before || index[i] >= c->types)
			return -1;
		before = at;
		zone_add(z, at, (int32_t)zone_u32(types + index[i] * 6));
	}
	return 0;
}

/* The changes of the rule that follow the last one of the table. */
static void zone_expand(struct zone *z, const struct zone_rule *r, int64_t last)
{
	const int64_t first = civil_days(1900, 1, 1) * CIVIL_DAY_S,
		      end = civil_days(ZONE_LAST_YEAR + 1, 1, 1) * CIVIL_DAY_S;
	int year = last < first ? 1900 : last > end ? ZONE_LAST_YEAR : civil_of(last).year;

	if (!r->has_summer) {
		zone_add(z, last < first ? first : last, r->standard);
		return;
	}
	for (year -= 1; year <= ZONE_LAST_YEAR; year++) {
		int64_t from, until;

		zone_rule_changes(r, year, &from, &until);
		if (from < until && from > last)
			zone_add(z, from, r->summer);
		if (until > last)
			zone_add(z, until, r->standard);
		if (from > until && from > last)
			zone_add(z, from, r->summer);
	}
}

static int zone_read_rule(struct zone *z, const char *p, size_t n, int64_t last)
{
	const char *end = n && *p == '\n' ? memchr(p + 1, '\n', n - 1) : NULL;
	struct zone_rule rule;
	char text[128];

	if (!end || (size_t)(end - p - 1) >= sizeof(text))
		return -1;
	memcpy(text, p + 1, (size_t)(end - p - 1));
	text[end - p - 1] = 0;
	if (!*text)
		return 0; /* the table is complete */
	if (zone_rule_parse(text, &rule) < 0)
		return -1;
	zone_expand(z, &rule, last);
	return 0;
}

/* Version 1 has 32-bit times only; all versions of the database since 2006 have the second block. */
static int zone_read(struct zone *z, const uint8_t *p, size_t n)
{
	struct zone_counts c;
	size_t block;
	int64_t last;

	if (zone_header(p, n, &c) < 0 || p[4] < '2')
		return -1;
	block = HEADER + zone_block(&c, 4);
	if (block > n || zone_header(p + block, n - block, &c) < 0 || c.leap)
		return -1;
	p += block + HEADER;
	n -= block + HEADER;
	block = zone_block(&c, 8);
	if (block > n || zone_read_block(z, p, &c) < 0)
		return -1;
	last = c.times ? zone_i64(p + (c.times - 1) * 8) : INT64_MIN;
	return zone_read_rule(z, (const char *)p + block, n - block, last);
}

static struct zone *zone_new(const char *name)
{
	struct zone *z = calloc(1, sizeof(*z));

	if (!z)
		abort();
	snprintf(z->name, sizeof(z->name), "%s", name);
	return z;
}

int zone_parse(struct zone **out, const char *name, const void *bytes, size_t n, struct err *e)
{
	auto_zone struct zone *z = zone_new(name);

	if (zone_read(z, bytes, n) < 0)
		return err_set(e, ERR_INVALID,
			       "time zone '%.64s': its file is damaged, or counts leap seconds",
			       name);
	*out = z;
	z = NULL;
	return 0;
}

/* ---- the database ---- */

static int zone_is_name(const char *name)
{
	size_t n = strlen(name);

	if (!n || n > ZONE_NAME || !isalpha((unsigned char)*name) || strstr(name, ".."))
		return 0;
	for (const char *p = name; *p; p++)
		if (!isalnum((unsigned char)*p) && !strchr("/_+-", *p))
			return 0;
	return !strstr(name, "//") && name[n - 1] != '/';
}

static int zone_read_file(const char *folder, const char *name, size_t most, struct buf *out)
{
	char path[512];
	auto_fd int fd = -1;
	ssize_t n;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return -1;
	do {
		char piece[16384];

		n = read(fd, piece, sizeof(piece));
		if (n > 0)
			buf_add(out, piece, (size_t)n);
	} while (n > 0 && out->len <= most);
	return n < 0 || out->len > most ? -1 : 0;
}

/* 1: typed in the wrong case, or without the continent: "europe/berlin", "berlin". */
static int zone_is_meant(const char *typed, const char *name)
{
	const char *city = strrchr(name, '/');

	return !strcasecmp(typed, name) || (city && !strcasecmp(typed, city + 1));
}

/* The name from a line of tzdata.zi: "Z Europe/Berlin ..." or "L Europe/Berlin Arctic/...". */
static char *zone_line_name(char *line)
{
	char *rest = NULL, *kind = strtok_r(line, " ", &rest), *name = strtok_r(NULL, " ", &rest);

	if (kind && !strcmp(kind, "L"))
		return strtok_r(NULL, " ", &rest);
	return kind && !strcmp(kind, "Z") ? name : NULL;
}

/* Finds the closest name in the list of the database; "": none. */
static void zone_suggest(const char *folder, const char *typed, char out[ZONE_NAME + 1])
{
	auto_buf struct buf text = { 0 };
	auto_free const char **names = NULL;
	unsigned n = 0;
	char *rest = NULL;
	const char *near;

	*out = 0;
	if (zone_read_file(folder, "tzdata.zi", 1 << 20, &text) < 0 || !text.len)
		return;
	names = calloc(text.len / 4 + 2, sizeof(*names)); /* more than it has lines */
	if (!names)
		abort();
	for (char *line = strtok_r(text.p, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		const char *name = zone_line_name(line);

		if (name && zone_is_meant(typed, name)) {
			snprintf(out, ZONE_NAME + 1, "%s", name);
			return;
		}
		if (name)
			names[n++] = name;
	}
	near = suggest_nearest(typed, names);
	snprintf(out, ZONE_NAME + 1, "%s", near ? near : "");
}

static int zone_missing(const char *folder, const char *name, struct err *e)
{
	char near[ZONE_NAME + 1];

	if (access(folder, R_OK) < 0)
		return err_set(
			e, ERR_INVALID,
			"time zone '%.64s': this machine has no time zone database (install tzdata); "
			"without it only UTC is known",
			name);
	zone_suggest(folder, name, near);
	return near[0] ? err_set(e, ERR_INVALID,
				 "there is no time zone '%.64s'; did you mean '%s'?", name, near)
		       : err_set(e, ERR_INVALID,
				 "there is no time zone '%.64s'; names look like Europe/Berlin or UTC",
				 name);
}

int zone_load_from(struct zone **out, const char *folder, const char *name, struct err *e)
{
	auto_buf struct buf text = { 0 };

	if (!strcmp(name, "UTC")) {
		*out = zone_new(name);
		return 0;
	}
	if (!zone_is_name(name) || zone_read_file(folder, name, ZONE_FILE_MAX, &text) < 0)
		return zone_missing(folder, name, e);
	if (text.len < 4 || memcmp(text.p, "TZif", 4) != 0)
		return zone_missing(folder, name, e);
	return zone_parse(out, name, text.p, text.len, e);
}

int zone_load(struct zone **out, const char *name, struct err *e)
{
	return zone_load_from(out, ZONE_FOLDER, name, e);
}

/* ---- asking ---- */

/* How many changes are at or before this time. */
static unsigned zone_passed(const struct zone *z, int64_t utc_s)
{
	unsigned lo = 0, hi = z->n;

	while (lo < hi) {
		unsigned mid = (lo + hi) / 2;

		if (z->v[mid].at <= utc_s)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static int32_t zone_offset_after(const struct zone *z, unsigned changes)
{
	return changes ? z->v[changes - 1].offset : z->first;
}

int32_t zone_offset(const struct zone *z, int64_t utc_s)
{
	return zone_offset_after(z, zone_passed(z, utc_s));
}

int64_t zone_next_change(const struct zone *z, int64_t utc_s)
{
	unsigned i = zone_passed(z, utc_s);

	return i < z->n ? z->v[i].at : INT64_MAX;
}

enum zone_local zone_resolve(const struct zone *z, int64_t local_s, int64_t *out_utc)
{
	unsigned i = zone_passed(z, local_s - OFFSET_MOST - 1), found = 0;

	/* From one change to the next, local time is UTC plus a constant. */
	for (;; i++) {
		int64_t from = i ? z->v[i - 1].at : INT64_MIN,
			utc = local_s - zone_offset_after(z, i);
		int64_t to = i < z->n ? z->v[i].at : INT64_MAX;

		if (!found && utc < from) { /* the clocks were set forward over it */
			*out_utc = from;
			return ZONE_GAP;
		}
		if (utc >= from && utc < to) {
			if (found++)
				return ZONE_FOLD;
			*out_utc = utc;
		}
		if (to > local_s + OFFSET_MOST)
			return ZONE_ONCE;
	}
}
