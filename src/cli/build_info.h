/* build_info.h - the sources and the compiler that made this executable. Filled by main() from a header that
 * scripts/build-stamp writes: only the two executables are linked again after a commit. */
#pragma once

struct build_info {
	const char *commit; /* 40 hex digits; "": unknown */
	int changed;        /* the checkout had changes that were not committed */
	const char *
		date; /* "2026-11-18T06:00:00Z", of the commit or of SOURCE_DATE_EPOCH; "": unknown */
	const char *compiler; /* "gcc 12.2.0" */
	const char *arch;     /* "x86_64" */
};
