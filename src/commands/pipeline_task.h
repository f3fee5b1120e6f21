/* pipeline_task.h - `atoll pipeline new`: the request body, from the flags of the command. */
#pragma once
#include "cli/api_client.h"

/* Flags of `atoll pipeline`. */
enum {
	PIPELINE_LANGUAGE,
	PIPELINE_FILE,
	PIPELINE_EXAMPLE,
	PIPELINE_TEST,
	PIPELINE_STDIN,
	PIPELINE_PACKAGE,
	PIPELINE_MODE,
	PIPELINE_RACE,
	PIPELINE_BOX,
	PIPELINE_ATTEMPTS,
	PIPELINE_TIME,
	PIPELINE_FORGET,
	PIPELINE_FOLLOW,
	PIPELINE_ATTEMPT,
	PIPELINE_SCAN,
	PIPELINE_MEMORY,
	PIPELINE_ISOLATION,
	PIPELINE_TRUST,
	PIPELINE_NFLAGS,
};

/* Reads the files that the flags name. NULL: r has the error. */
json_t *pipeline_task(struct api_client *r, const struct args *a);
