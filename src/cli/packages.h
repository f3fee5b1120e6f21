/* packages.h - packages for a box, from the daemon that installs them. */
#pragma once
#include "cli/options.h"
#include "cli/api_client.h"

#define OPTION_PACKAGE                                                                             \
	{                                                                                          \
		"package", 'p', FLAG_WORDS, "NAME",                                                \
			"install a package, e.g. numpy==1.26 or npm:left-pad; may be repeated"     \
	}

/* {"pip": [...]} of all -p; a word without a manager belongs to `otherwise`. NULL: there are
 * none. */
json_t *packages_json(const struct args *a, unsigned flag, const char *otherwise);
/* Asks the daemon to install them, prints the manager's output to stderr, and puts their layers
 * into the options. Does nothing without -p. Returns 0, or the exit status after printing the
 * error. */
int packages_for(struct options *o, const struct cli *cli, const struct args *a, unsigned flag,
		 const char *language);
