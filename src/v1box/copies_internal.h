/* copies_internal.h - for copies.c and copies_restart.c. */
#pragma once
#include "v1box/copies.h"

void copies_restart(struct call *c);
extern const struct field copies_restart_fields[];
