/* driver.c - see driver.h. */
#include "lang/driver.h"
#include "base/cleanup.h"
#include "jupyter/spec.h"

#include <string.h>

static const struct driver rows[] = {
	{ "python", { "/usr/bin/python3", DRIVER_DIR "python.py" }, 1 },
	{ "node", { "/usr/bin/node", DRIVER_DIR "node.js" }, 1 },
	{ "typescript", { "/usr/bin/node", DRIVER_DIR "node.js", "typescript" }, 1 },
	{ "bash", { "/usr/bin/bash", DRIVER_DIR "bash.sh" }, 0 },
	{ "r", { "/usr/bin/Rscript", DRIVER_DIR "r.R" }, 0 },
	{ "ruby", { "/usr/bin/ruby", DRIVER_DIR "ruby.rb" }, 0 },
	{ "php", { "/usr/bin/php", DRIVER_DIR "php.php" }, 0 },
	/* "java" is a program that is compiled and run; the interpreter has another name. */
	{ "jshell",
	  { "/usr/bin/java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto",
	    "-Xmx256m", "--add-opens=java.base/java.io=ALL-UNNAMED", DRIVER_DIR "jshell.java" },
	  0 },
};

/* Any kernel of the box; its name is the last argument. */
static const struct driver jupyter = { "jupyter", { DRIVER_DIR "bin/jupyter" }, 0 };

static const char *kernel_of(const char *language)
{
	size_t n = strlen(SPEC_PREFIX);

	return !strncmp(language, SPEC_PREFIX, n) && spec_name_valid(language + n) ? language + n
										   : NULL;
}

const struct driver *driver_of(const char *language)
{
	if (kernel_of(language))
		return &jupyter;
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++)
		if (!strcmp(rows[i].language, language))
			return &rows[i];
	return NULL;
}

void driver_words(const struct driver *d, const char *language, const char *out[DRIVER_WORDS])
{
	memcpy(out, d->argv, sizeof(d->argv));
	if (d == &jupyter)
		out[1] = kernel_of(language);
}
