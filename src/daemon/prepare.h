/* prepare.h - what `atoll tier prepare NAME` can install or build on this machine.
 * Owns: the table. Preparations are made by this command only, never during a request. */
#pragma once
#include "base/err.h"
#include "daemon/state_dir.h"

struct prepare_how {
	const char *from;
	const char *module,
		*into; /* wasm: one module instead of the known ones; where to; or NULL */
	int force, quiet;
};

struct preparation {
	const char *name;
	const char *summary; /* one line, lower case */
	/* Prints what it does to stderr unless quiet. from: a folder with the packages that npm would
	 * install (node_modules), or NULL. force: again, although it is there. */
	int (*run)(const struct state_dir *dir, const struct prepare_how *how, struct err *e);
};

extern const struct preparation preparation_microvm, preparation_play, preparation_wasm;

/* Runs npm: packages ("name@version", NULL-terminated) into folder/node_modules. No script of a
 * package is executed. */
must_check int prepare_npm(const char *folder, const char *const *packages,
			   const struct prepare_how *how, struct err *e);
/* Runs a program and waits for it: its output goes to stderr. -1: it could not be started, or failed. */
must_check int prepare_run(const char *const *argv, struct err *e);
/* The folder and everything in it; what does not exist is no error. Symbolic links are not followed. */
must_check int prepare_remove(const char *folder, struct err *e);
