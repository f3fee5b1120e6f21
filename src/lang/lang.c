/* lang.c - see lang.h. A new language is a row. */
#include "lang/lang.h"
#include "base/own.h"

#include <string.h>
#include <unistd.h>

const struct lang lang_rows[] = {
	{ "python", ".py", "python3 python", "python3", { 0 }, { "/usr/bin/python3", "@" } },
	{ "node", ".js .mjs .cjs", "node nodejs", "nodejs", { 0 }, { "/usr/bin/node", "@" } },
	{ "bash", ".sh .bash", "bash sh dash", "bash", { 0 }, { "/usr/bin/bash", "@" } },
	{ "c", ".c", "", "gcc libc-dev", { "/usr/bin/cc", "-O2", "-o", "%", "@", "-lm" }, { "%" } },
	{ "c++", ".cc .cpp .cxx", "", "g++", { "/usr/bin/g++", "-O2", "-o", "%", "@" }, { "%" } },
	{ "go", ".go", "", "golang-go", { "/usr/bin/go", "build", "-o", "%", "@" }, { "%" } },
	{ "java", ".java", "", "default-jdk-headless", { 0 }, { "/usr/bin/java", "@" } },
	{ "ruby", ".rb", "ruby", "ruby", { 0 }, { "/usr/bin/ruby", "@" } },
	{ "perl", ".pl", "perl", "perl", { 0 }, { "/usr/bin/perl", "@" } },
	{ "php", ".php", "php", "php-cli", { 0 }, { "/usr/bin/php", "@" } },
	{ "lua", ".lua", "lua", "lua5.4", { 0 }, { "/usr/bin/lua", "@" } },
	{ "r", ".R .r", "Rscript", "r-base-core", { 0 }, { "/usr/bin/Rscript", "@" } },
};
const unsigned lang_nrows = ARRAY_LEN(lang_rows);

static int in_list(const char *list, const char *word, size_t len)
{
	for (; len && *list; list += strcspn(list, " "), list += *list == ' ')
		if (strcspn(list, " ") == len && !memcmp(list, word, len))
			return 1;
	return 0;
}

const struct lang *lang_named(const char *name)
{
	for (unsigned i = 0; i < lang_nrows; i++)
		if (!strcmp(lang_rows[i].name, name))
			return &lang_rows[i];
	return NULL;
}

/* "#!/usr/bin/env -S python3 -u" and "#!/usr/bin/python3" both name python3. */
static const struct lang *by_first_line(const char *head, size_t len)
{
	const char *end = memchr(head, '\n', len), *at = head + 2;

	end = end ? end : head + len;
	while (at < end) {
		const char *word, *slash;

		while (at < end && (*at == ' ' || *at == '\t' || *at == '\r'))
			at++;
		word = at;
		while (at < end && *at != ' ' && *at != '\t' && *at != '\r')
			at++;
		if (at == word || *word == '-')
			continue;
		slash = memrchr(word, '/', (size_t)(at - word));
		word = slash ? slash + 1 : word;
		if (at - word == 3 && !memcmp(word, "env", 3))
			continue;
		for (unsigned i = 0; i < lang_nrows; i++)
			if (in_list(lang_rows[i].interpreters, word, (size_t)(at - word)))
				return &lang_rows[i];
		return NULL;
	}
	return NULL;
}

const struct lang *lang_of(const char *file_name, const char *head, size_t head_len)
{
	const char *dot = strrchr(file_name, '.');

	if (dot && dot != file_name && !strchr(dot, '/'))
		for (unsigned i = 0; i < lang_nrows; i++)
			if (in_list(lang_rows[i].endings, dot, strlen(dot)))
				return &lang_rows[i];
	if (head_len > 2 && !memcmp(head, "#!", 2))
		return by_first_line(head, head_len);
	return NULL;
}

int lang_is_program(const char *head, size_t head_len)
{
	return (head_len >= 4 && !memcmp(head, "\177ELF", 4)) ||
	       (head_len > 2 && !memcmp(head, "#!", 2));
}

const char *lang_program(const struct lang *l)
{
	return l->compile[0] ? l->compile[0] : l->run[0];
}

int lang_present(const struct lang *l)
{
	return access(lang_program(l), X_OK) == 0;
}

unsigned lang_command(const char *const row[LANG_ARGS], const char *source, const char *binary,
		      const char *out[LANG_ARGS + 1])
{
	unsigned n = 0;

	for (; n < LANG_ARGS && row[n]; n++)
		out[n] = !strcmp(row[n], "@") ? source : !strcmp(row[n], "%") ? binary : row[n];
	out[n] = NULL;
	return n;
}
