/* template_build.h - `atoll template build`: packs a folder, uploads it, and follows the build. */
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
	TEMPLATE_DETACH,
	TEMPLATE_FOLLOW,
	TEMPLATE_YES,
	TEMPLATE_NFLAGS,
};

int template_build(struct api_client *r, const struct args *a);
