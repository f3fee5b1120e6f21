/* zone.h - a time zone: which offset from UTC its clocks have, at which time.
 * Owns: the table of its changes, read from the time zone database of the machine (TZif, RFC 8536).
 *
 * The file ends with a rule for the years after its last change; the rule is expanded up to the year
 * ZONE_LAST_YEAR. */
#pragma once
#include "base/err.h"
#include <stddef.h>
#include <stdint.h>

#define ZONE_FOLDER "/usr/share/zoneinfo"
enum { ZONE_NAME = 64, ZONE_FILE_MAX = 1 << 16, ZONE_LAST_YEAR = 2200 };

struct zone;

/* "UTC" needs no file. ERR_INVALID: no such zone; the message names the closest one. */
must_check int zone_load(struct zone **out, const char *name, struct err *e);
/* The same from another folder than ZONE_FOLDER. */
must_check int zone_load_from(struct zone **out, const char *folder, const char *name,
			      struct err *e);
/* The content of a file. */
must_check int zone_parse(struct zone **out, const char *name, const void *bytes, size_t n,
			  struct err *e);
void zone_free(struct zone *z); /* allowed on NULL */
const char *zone_name(const struct zone *z);

/* Local time minus UTC, in seconds. */
int32_t zone_offset(const struct zone *z, int64_t utc_s);
/* The first time after this one at which the offset changes; INT64_MAX: it does not change again. */
int64_t zone_next_change(const struct zone *z, int64_t utc_s);

enum zone_local {
	ZONE_ONCE, /* this local time exists once */
	ZONE_FOLD, /* twice, because clocks were set back: *out_utc is the first one */
	ZONE_GAP, /* not at all, because clocks were set forward: *out_utc is the time of the change */
};
enum zone_local zone_resolve(const struct zone *z, int64_t local_s, int64_t *out_utc);
