/* package_request.h - requests the daemon to install packages: -p of several commands, and
 * `atoll packages`. */
#pragma once
#include "cli/options.h"
#include "cli/api_client.h"

#define OPTION_PACKAGE                                                                             \
	{                                                                                          \
		"package", 'p', FLAG_WORDS, "NAME",                                                \
			"install a package, e.g. numpy==1.26 or npm:left-pad; may be repeated"     \
	}

struct package_request {
	struct api_client *r;
	struct options *options; /* NULL: not for a box */
	json_t *done;            /* the answer; the caller's */
};
/* Adds "numpy" or "npm:left-pad" to {"pip": [...], ...}. A word without a manager belongs to
 * `otherwise`. */
void package_request_add(json_t *all, const char *word, const char *otherwise);
/* Prints the manager's output to stderr. 0 with p->done, or the exit status. */
int package_request_send(struct package_request *p, json_t *take_packages);

/* {"pip": [...]} of all -p; a word without a manager belongs to `otherwise`. NULL: there are
 * none. */
json_t *package_request_json(const struct args *a, unsigned flag, const char *otherwise);
/* Asks the daemon to install them, prints the manager's output to stderr, and puts their layers
 * into the options. Does nothing without -p. Returns 0, or the exit status after printing the
 * error. */
int package_request_for(struct options *o, const struct cli *cli, const struct args *a,
			unsigned flag, const char *language);
