/* template_build.h - `atoll template build`, `export` and `import`. */
#pragma once
#include "cli/api_client.h"

enum {
	TEMPLATE_NAME,
	TEMPLATE_TAG,
	TEMPLATE_FILE,
	TEMPLATE_ARG,
	TEMPLATE_TARGET,
	TEMPLATE_SECRET,
	TEMPLATE_FORCE,
	TEMPLATE_FROM_BOX,
	TEMPLATE_FROM_SNAPSHOT,
	TEMPLATE_DETACH,
	TEMPLATE_FOLLOW,
	TEMPLATE_YES,
	TEMPLATE_NFLAGS,
};

int template_build(struct api_client *r, const struct args *a);
/* Prints the log of a build and its result; Ctrl-C asks whether to cancel it. Returns the exit status. */
int template_follow(struct api_client *r, const char *id);

/* template_file.c */
int template_export(struct api_client *r, const struct args *a);
int template_import(struct api_client *r, const struct args *a);
