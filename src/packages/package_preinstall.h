/* package_preinstall.h - installs package sets before the first request.
 * Owns: the list of sets: those of the configuration, then the most requested ones of an earlier
 * interpreter. One after another, and only missing ones. */
#pragma once
#include "packages/packages.h"

enum {
	PACKAGE_PREINSTALL_MOST = 32,
	PACKAGE_PREINSTALL_USES = 2
}; /* maximum of sets; minimum of uses */

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
			      struct fleet *f); /* after the keeper is connected */
void package_preinstall_fini(struct package_preinstall *p);
