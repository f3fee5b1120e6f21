/* versions.h - the versions that this machine's compilers and interpreters print. */
#pragma once
#include "lang/lang.h"

struct versions {
	char text[64][LANG_VERSION +
		      1]; /* by the row's number; "": not installed, or it prints no version */
};

/* Runs all of them at once, or only one (a row of lang_at()); each has ten seconds to answer. */
void versions_ask(struct versions *v, const struct lang *only);
const char *versions_of(const struct versions *v, const struct lang *l);
