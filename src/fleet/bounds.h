/* bounds.h - the maximum limits of one box, for every client: limits.max_* of the settings.
 * Owns: nothing. A maximum of 0 means no maximum. */
#pragma once
#include "base/err.h"
#include "wire/wire.h"

/* The message of ERR_INVALID has the value, the maximum and the setting. Defaults (WIRE_DEFAULT)
 * are not checked. */
must_check int bounds_check(const struct wire_limits *most, const struct wire_limits *want,
			    struct err *e);
/* For limits that no client has requested, such as the needs of a language: lowers them to the
 * maximum. */
void bounds_lower(const struct wire_limits *most, struct wire_limits *limits);
/* Sets the limits that a language needs and the request does not have, up to the maximum. */
struct lang_limits;
void bounds_for_language(const struct lang_limits *needs, const struct wire_limits *most,
			 struct wire_limits *limits);
