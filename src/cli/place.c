/* place.c - see place.h. */
#include "cli/place.h"
#include "base/own.h"

#include <stdio.h>
#include <string.h>

void place_parse(struct place *p, const char *word)
{
	size_t n = strcspn(word, ":/");

	*p = (struct place){ .path = word };
	if (word[n] != ':' || n == 0 || n >= sizeof(p->box))
		return;
	memcpy(p->box, word, n);
	p->path = word + n + 1;
}

int place_look(struct remote *r, const char *box, const char *path, unsigned *mode)
{
	json_t *doc = remote_get(r, "/v1/boxes/%s/files/stat?path=%s", box, *path ? path : ".");
	const char *type;
	int found;

	if (!doc && r->http == 404) {
		remote_explain_box(r, box);
		/* The box is there, then it is the path that is not. */
		return strncmp(r->trouble.what, "no box", 6) ? PLACE_NOTHING : -1;
	}
	if (!doc)
		return -1;
	type = remote_text(doc, "type");
	if (!strcmp(type, "link"))
		type = remote_text(doc, "target_type");
	found = !strcmp(type, "folder") ? PLACE_FOLDER :
		!strcmp(type, "file")   ? PLACE_FILE :
					  PLACE_OTHER;
	if (mode)
		*mode = (unsigned)strtoul(remote_text(doc, "mode"), NULL, 8) & 0777;
	json_decref(doc);
	return found;
}

const char *place_last(const char *path, char out[256])
{
	size_t end = strlen(path), from;

	while (end && path[end - 1] == '/')
		end--;
	for (from = end; from && path[from - 1] != '/'; from--)
		;
	snprintf(out, 256, "%.*s", (int)(end - from), path + from);
	if (!strcmp(out, ".") || !strcmp(out, ".."))
		out[0] = 0;
	return out;
}
