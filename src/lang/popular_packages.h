/* popular_packages.h - very common packages, to say which one may have been meant. */
#pragma once
#include "lang/package.h"

extern const char *const *const common_names[PM_COUNT]; /* each ends with NULL; canonical names */
