/* repair_programs.c - see repair_programs.h. */
#include "repair/repair_programs.h"
#include "lang/lang.h"

#include <stddef.h>
#include <string.h>

extern const char repair_python[], repair_python_judge[], repair_node[];

static const struct {
	const char *language, *search, *judge, *runner;
} programs[] = {
	{ "python", repair_python, repair_python_judge, "python" },
	{ "node", repair_node, NULL, "node" },
	{ "typescript", repair_node, NULL, "node" },
};

static int row_of(const char *language)
{
	const struct lang *l = lang_named(language);

	for (unsigned i = 0; l && i < sizeof(programs) / sizeof(programs[0]); i++)
		if (!strcmp(programs[i].language, l->name))
			return (int)i;
	return -1;
}

const char *program_search(const char *language)
{
	int i = row_of(language);

	return i < 0 ? NULL : programs[i].search;
}

const char *program_judge(const char *language)
{
	int i = row_of(language);

	return i < 0 ? NULL : programs[i].judge;
}

const char *program_runner(const char *language)
{
	int i = row_of(language);

	return i < 0 ? language : programs[i].runner;
}
