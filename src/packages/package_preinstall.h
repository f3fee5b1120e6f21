/* package_preinstall.h - packages that are installed before anybody asks.
 * Owns: the list of a start: what the configuration names, then what was asked for most, for another
 * interpreter than the host has now. One after another, and only what is not there. */
#pragma once
#include "packages/packages.h"

enum {
	PACKAGE_PREINSTALL_MOST = 32,
	PACKAGE_PREINSTALL_USES = 2
}; /* sets; used as often to be worth it */

struct package_preinstall {
	/* clang-format off */
	struct fleet *fleet;
	struct packages v[PACKAGE_PREINSTALL_MOST];
	unsigned n, at;
	struct packages_wait wait;
	/* clang-format on */
};

/* "pip numpy pandas==1.5": a manager and its packages. */
must_check int package_preinstall_parse(const char *text, struct packages *out, struct err *e);
void package_preinstall_begin(struct package_preinstall *p,
			      struct fleet *f); /* once the keeper is there */
void package_preinstall_fini(struct package_preinstall *p);
