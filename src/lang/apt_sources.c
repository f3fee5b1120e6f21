/* apt_sources.c - see apt_sources.h. */
#include "lang/apt_sources.h"

#include <stdio.h>
#include <string.h>

enum { APT_WORD = 64 };

/* The value of a line NAME=value or NAME="value"; -1: there is none, or it is no plain word. */
static int apt_release_word(const char *text, const char *name, char out[APT_WORD])
{
	size_t len = strlen(name), n;

	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, name, len) != 0 || line[len] != '=')
			continue;
		line += len + 1;
		line += *line == '"';
		n = strspn(line, "abcdefghijklmnopqrstuvwxyz0123456789-_.");
		if (n == 0 || n >= APT_WORD || !strchr("\"\n", line[n]))
			return -1;
		memcpy(out, line, n);
		out[n] = 0;
		return 0;
	}
	return -1;
}

int apt_sources(const char *urls, const char *os_release, struct buf *out)
{
	char id[APT_WORD], codename[APT_WORD];
	size_t before = out->len;

	if (apt_release_word(os_release, "ID", id) < 0 ||
	    apt_release_word(os_release, "VERSION_CODENAME", codename) < 0)
		return -1;
	for (const char *at = urls + strspn(urls, " "); *at; at += strspn(at, " ")) {
		int n = (int)strcspn(at, " ");
		int security = memmem(at, (size_t)n, "security", 8) != NULL;

		buf_printf(
			out,
			"deb [signed-by=/usr/share/keyrings/%s-archive-keyring.gpg] %.*s %s%s %s\n",
			id, n, at, codename, security ? "-security" : "",
			strcmp(id, "ubuntu") == 0 ? "main universe" : "main");
		at += n;
	}
	return out->len > before ? 0 : -1;
}
