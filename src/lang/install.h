/* install.h - the install command of each manager, and the meaning of its errors. Tables and pure
 * functions; packages/packages.c runs them. */
#pragma once
#include "lang/package.h"

#define INSTALL_HOME "/home/user/layer" /* files below it are copied out of the box */
#define INSTALL_MIRROR "/mnt/mirror"    /* where a mirror on a volume is */

enum { INSTALL_STEPS = 3, INSTALL_WORDS = PACKAGES_MOST + 32 };

struct install_conf {
	const char *source[PM_COUNT];  /* URL of the registry; NULL: none */
	const char *runtime[PM_COUNT]; /* the interpreter of the host; "": none */
	const char *hosts
		[PM_COUNT]; /* hosts that an install box may reach then: a JSON array; NULL: none */
	const char *trusted[PM_COUNT]; /* host of a registry without TLS; NULL: it uses TLS */
	const char *mirror;            /* name of a volume with a mirror, or NULL */
};

enum { INSTALL_ENV = 6 };
/* NAME=value for the manager; source NULL: the mirror. Filled into out, which ends with NULL. */
void install_env(enum package_manager m, const char *source, char text[512],
		 const char *out[INSTALL_ENV + 1]);
/* NAME=value that programs need to find files of the layer; NULL at the end. */
const char *const *install_box_env(enum package_manager m);

struct install_step {
	const char *argv[INSTALL_WORDS]; /* NULL at the end; points into the set and the plan */
};

struct install_plan {
	struct install_step steps[INSTALL_STEPS];
	unsigned nsteps;
	const char *from, *place; /* of the box's folder, and where it is in the layer */
	char text[4][512];        /* strings allocated for it */
};

const char *install_setting(enum package_manager m); /* "packages.pip_index": names its registry */
/* ERR_DENIED: this manager has no source configured, or is not installed. */
must_check int install_plan(const struct packages *p, const struct install_conf *conf,
			    struct install_plan *out, struct err *e);

enum install_fault {
	INSTALL_UNKNOWN,
	INSTALL_NO_PACKAGE,
	INSTALL_NO_VERSION,
	INSTALL_BUILD,
	INSTALL_UNREACHABLE,
	INSTALL_NOT_CONFIGURED,
	INSTALL_NO_MANAGER, /* the manager itself is not on this host */
	INSTALL_TIMEOUT,
	INSTALL_TOO_LARGE,
	INSTALL_FAULTS,
};
const char *install_fault_name(enum install_fault f); /* "no_such_package" */

struct install_diagnosis {
	enum install_fault fault;
	char package[PACKAGE_TEXT + 1]; /* the package, or "" */
	char versions[512];             /* available versions, or "" */
	char line[256];                 /* the line with the error, or "" */
};
/* Diagnoses the output of a manager that failed. */
void install_diagnose(enum package_manager m, const char *said, size_t n,
		      struct install_diagnosis *out);
/* The message for the caller. A failure that no row of the table describes is explained by the last line
 * of the output, which is then d->line too. */
void install_explain(enum package_manager m, const char *said, size_t n,
		     struct install_diagnosis *d, char *out, size_t size);
