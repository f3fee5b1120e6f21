/* hints.h - the next step for the failures that users meet most: a missing module or command, no
 * network. Reads the last output of a program, which is untrusted: limited in size, and used for a
 * hint only. */
#pragma once
#include "base/buf.h"
#include "lang/install.h"
#include "lang/lang.h"

struct hints_about {
	const struct lang *lang; /* NULL: the exec is a command */
	const char *said;        /* the end of its stderr */
	int status;              /* as a shell reports it */
	int timed_out;
	const char *command; /* its last argument; for a shell, the whole script */
	int network;         /* the box may reach hosts of its own list */
	int registries;      /* the box may reach the registries of conf */
	int own_box;         /* of /v1/run, where the request can name packages */
	const struct install_conf *conf;
};
/* 1: out has a hint. */
int hints_find(const struct hints_about *x, struct buf *out);
