/* bounds.h - the most that one box may be given, whoever asks: limits.max_* of the settings.
 * Owns: nothing. A maximum of 0 is none. */
#pragma once
#include "base/err.h"
#include "wire/wire.h"

/* ERR_INVALID names the value, the maximum and the setting. Defaults (WIRE_DEFAULT) are not looked at. */
must_check int bounds_check(const struct wire_limits *most, const struct wire_limits *want,
			    struct err *e);
/* For what nobody asked for, the needs of a language for instance: lowered to the maximum. */
void bounds_lower(const struct wire_limits *most, struct wire_limits *limits);
