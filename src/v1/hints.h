/* hints.h - the next step for the failures that users meet most: a module or a command that is not there, no network.
 * Reads the end of what a program wrote, which is hostile: bounded, and believed for a hint only. */
#pragma once
#include "base/buf.h"
#include "lang/install.h"
#include "lang/lang.h"

struct hints_about {
	const struct lang *lang; /* NULL: a command */
	const char *said;        /* the end of its stderr */
	int status;              /* as a shell sees it */
	int timed_out;
	const char *command; /* the last word of it: of a shell, all that it was given */
	int network;         /* its box may reach some host */
	int own_box;         /* of /v1/run: the request can name packages */
	const struct install_conf *conf;
};
/* 1: out has a hint. */
int hints_find(const struct hints_about *x, struct buf *out);
