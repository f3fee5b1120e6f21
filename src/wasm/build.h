/* build.h - compiles a WASI module ahead of time: wasm2c, split.c, gcc, then the state of its interpreter.
 * Owns: the folder of compiled modules, one folder for each, named by the SHA-256 of the module:
 *
 *   INTO/SHA256/atoll-wasm  the module and its host (host.h), static
 *   INTO/SHA256/data        the initial memory
 *   INTO/SHA256/image       the state after initialisation, if the module has one
 *   INTO/SHA256/root        read-only files of the module
 *   INTO/NAME               a link to the executable; written last */
#pragma once
#include "base/err.h"
#include <stddef.h>

struct wasm_module {
	const char *name; /* of the link; NULL: none */
	const char *file; /* the module */
	const char *root; /* a .tar.gz with its files below usr/local/lib, or NULL */
	const char *sha256, *root_sha256; /* of both; NULL: any */
	/* The arguments with which it initialises itself (host.h, HOST_START_FILE); a word "@FILE" is replaced by
	 * the text of an embedded file. NULL: it starts from the beginning in every run. */
	const char *const *init;
	int force, quiet;
};

/* out: the path of the executable. */
must_check int wasm_build(const struct wasm_module *m, const char *into, char *out, size_t out_size,
			  struct err *e);
const char *wasm_source_text(const char *name); /* of a file in sources.S; NULL: there is none */
/* Imports of the module that the host does not have, from the header that wasm2c writes: returns the text of
 * functions that answer "not supported", to be freed, or NULL: e names an import that is not part of WASI. */
char *wasm_stubs(const char *header, struct err *e);
