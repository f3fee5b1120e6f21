/* volume.h - checks the name of a volume and where it may be mounted. Pure, for unit tests. */
#pragma once
#include "base/err.h"
#include "wire/wire.h"

int volume_id_valid(const char id[WIRE_VOLUME_ID]); /* it is the name of a file on the host */
/* Up to WIRE_MOUNTS of them, each name once, no mount point inside another, only in folders for
 * data. */
must_check int volume_mounts_sane(const struct wire_mount *m, uint32_t n, struct err *e);
