/* envd.h - port 49983 of a box: programs and files, as E2B's daemon offers them. */
#pragma once
#include "e2b/e2b.h"

/* process.c */

/* filesystem.c, files.c */
