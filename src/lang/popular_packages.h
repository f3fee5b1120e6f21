/* popular_packages.h - very common packages, for suggestions. */
#pragma once
#include "lang/package.h"

extern const char *const *const common_names[PM_COUNT]; /* each ends with NULL; canonical names */
