/* volume.h - what a volume may be called and where it may be mounted. Pure; the unit test's door. */
#pragma once
#include "base/err.h"
#include "wire/wire.h"

int volume_id_valid(const char id[WIRE_VOLUME_ID]); /* a file of the host is named by it */
/* Up to WIRE_MOUNTS of them, each name once, no place inside another, only where data belongs. */
must_check int volume_mounts_sane(const struct wire_mount *m, uint32_t n, struct err *e);
