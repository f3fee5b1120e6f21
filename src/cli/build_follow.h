/* build_follow.h - prints the log of a build: steps with their times and CACHED marks; on a terminal with colours and one
 * line of progress, else plain lines. To stderr; with --json each entry as a line to stdout. */
#pragma once
#include "cli/api_client.h"

/* Prints the log and, with follow, waits for the end of the build, over as many connections as needed. *out_build: the
 * build as it is now, owned by the caller. Returns 0 or r->status. */
must_check int build_follow_show(struct api_client *r, const char *id, int follow,
				 json_t **out_build);
/* 0: it is ready. Otherwise fills in the error of r: step, line, command; the end of the output is printed before. */
int build_follow_result(struct api_client *r, const json_t *build);
/* After an error: if it was that a template of the server is being built, prints the log of the build to stderr and waits.
 * 0: it is ready, repeat the request. Otherwise r->status. */
int build_follow_first(struct api_client *r, const char *name);
