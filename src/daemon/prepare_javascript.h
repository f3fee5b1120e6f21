/* prepare_javascript.h - QuickJS as a WASI module. No package has it as one that wasm2c of Debian 12 translates, so it is compiled
 * with clang from its C sources, which are in an npm package, together with share/wasm/javascript.c and javascript.js. */
#pragma once
#include "daemon/prepare.h"

#define QUICKJS_PACKAGE "react-native-quickjs@0.0.2"
#define QUICKJS_APT "clang lld wasi-libc libclang-rt-dev-wasm32"

/* modules: the folder with the package. Compares its files with a known SHA-256. */
must_check int prepare_javascript_check(const char *modules, struct err *e);
/* Checks them, too. work: an existing folder, for the
 * module and what it is made of. out_module: its path, to be freed. */
must_check int prepare_javascript(const char *modules, const char *work, char **out_module,
				  struct err *e);
