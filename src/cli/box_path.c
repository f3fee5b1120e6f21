/* box_path.c - see box_path.h. */
#include "cli/box_path.h"
#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>

void box_path_parse(struct box_path *p, const char *word)
{
	size_t n = strcspn(word, ":/");

	*p = (struct box_path){ .path = word };
	if (word[n] != ':' || n == 0 || n >= sizeof(p->box))
		return;
	memcpy(p->box, word, n);
	p->path = word + n + 1;
}

int box_path_words(struct api_client *r, const struct args *a, struct box_path *out)
{
	*out = (struct box_path){ .path = "" };
	if (a->nwords == 1)
		box_path_parse(out, a->words[0]);
	if (a->nwords == 2 && strlen(a->words[0]) < sizeof(out->box)) {
		snprintf(out->box, sizeof(out->box), "%s", a->words[0]);
		out->path = a->words[1];
	}
	if (out->box[0] && *out->path)
		return 0;
	api_client_usage(r, "%s: missing box and path", a->command->name);
	cli_error_hint(&r->error, "type", "atoll %s BOX:PATH", a->command->name);
	return r->status;
}

/* The checkpoint with this name, among these and their children. */
static const json_t *box_path_named(const json_t *items, const char *name)
{
	const json_t *one, *below;
	size_t i;

	json_array_foreach(items, i, one)
	{
		if (!strcmp(api_client_text(one, "name"), name) ||
		    !strcmp(api_client_text(one, "id"), name))
			return one;
		below = box_path_named(json_object_get(one, "children"), name);
		if (below)
			return below;
	}
	return NULL;
}

char *box_path_content(struct api_client *r, const struct box_path *p)
{
	const char *at = strchr(p->box, '@');
	char box[sizeof(p->box)], *route = NULL;
	const json_t *found;
	json_t *doc;

	if (!at)
		return api_client_path("/v1/boxes/%s/files?path=%s", p->box, p->path);
	snprintf(box, sizeof(box), "%.*s", (int)(at - p->box), p->box);
	doc = api_client_get(r, "/v1/boxes/%s/checkpoints?tree=true", box);
	if (!doc) {
		api_client_explain_box(r, box);
		return NULL;
	}
	found = box_path_named(json_object_get(doc, "items"), at + 1);
	if (found) {
		route = api_client_path("/v1/checkpoints/%s/files?path=%s",
					api_client_text(found, "id"), p->path);
	} else {
		cli_error_what(&r->error, "not_found", "%s has no checkpoint %s", box, at + 1);
		cli_error_hint(&r->error, "list them", "atoll checkpoints %s", box);
		r->status = STATUS_NOT_FOUND;
	}
	json_decref(doc);
	return route;
}

int box_path_look(struct api_client *r, const char *box, const char *path, unsigned *mode)
{
	json_t *doc = api_client_get(r, "/v1/boxes/%s/files/stat?path=%s", box, *path ? path : ".");
	const char *type;
	int found;

	if (!doc && r->http == 404) {
		api_client_explain_box(r, box);
		/* If the box exists, the path is the part that was not found. */
		return strncmp(r->error.what, "no box", 6) ? BOX_PATH_NOTHING : -1;
	}
	if (!doc)
		return -1;
	type = api_client_text(doc, "type");
	if (!strcmp(type, "link"))
		type = api_client_text(doc, "target_type");
	found = !strcmp(type, "folder") ? BOX_PATH_FOLDER
		: !strcmp(type, "file") ? BOX_PATH_FILE
					: BOX_PATH_OTHER;
	if (mode)
		*mode = (unsigned)strtoul(api_client_text(doc, "mode"), NULL, 8) & 0777;
	json_decref(doc);
	return found;
}

const char *box_path_last(const char *path, char out[256])
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

extern char **environ;

pid_t box_path_start_tar(const char *folder, int *out_fd)
{
	const char *const argv[] = { "tar", "-C", folder, "-cf", "-", ".", NULL };
	posix_spawn_file_actions_t actions;
	pid_t pid = -1;
	int pair[2], rc;

	if (pipe2(pair, O_CLOEXEC) < 0)
		return -1;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, pair[1], 1);
	rc = posix_spawnp(&pid, "tar", &actions, NULL, (char *const *)argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	close(pair[1]);
	if (rc != 0) {
		close(pair[0]);
		errno = rc;
		return -1;
	}
	*out_fd = pair[0];
	return pid;
}
