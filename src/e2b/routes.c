/* routes.c - E2B's control plane: which paths are its, and who answers them. */
#include "api/auth.h"
#include "base/own.h"
#include "e2b/pause.h"
#include "e2b/sandboxes.h"
#include "e2b/snapshots.h"

#include <string.h>

static const struct api_route rows[] = {
	/* clang-format off */
	{ "GET", "/health", NEED_NOTHING, sandboxes_health, "is it up?", .query = e2b_any_query },

	/* sandboxes */
	{ "POST", "/sandboxes", NEED_EDITOR, sandboxes_create, "make one", sandboxes_create_fields, .query = e2b_any_query, .action = "box.create" },
	{ "POST", "/v2/sandboxes", NEED_EDITOR, sandboxes_create, "make one", sandboxes_create_fields, .query = e2b_any_query, .action = "box.create" },
	{ "DELETE", "/sandboxes/{box}", NEED_EDITOR, sandboxes_delete, "end it", .query = e2b_any_query, .action = "box.delete" },

	/* pause, snapshots, forks */
	{ "POST", "/sandboxes/{box}/pause", NEED_EDITOR, pausing_pause, "everything in it stands still", pausing_fields, .query = e2b_any_query, .action = "box.pause" },
	{ "POST", "/sandboxes/{box}/snapshots", NEED_EDITOR, e2b_snapshot_create, "keep its files", e2b_snapshot_fields, .query = e2b_any_query, .action = "snapshot.create" },
	{ "POST", "/sandboxes/{box}/fork", NEED_EDITOR, e2b_fork, "others with the same files", e2b_fork_fields, .query = e2b_any_query, .action = "box.fork" },
	{ "GET", "/snapshots", NEED_VIEWER, e2b_snapshot_list, "what was kept", .query = e2b_any_query },

	/* templates */

	/* teams, keys, volumes, secrets */
	/* clang-format on */
};
struct api_table e2b_control = { .rows = rows, .n = ARRAY_LEN(rows), .manner = &e2b_manner };

const struct field e2b_any_query[] = { { .name = FIELDS_OTHERS }, { 0 } };

static const char *const theirs[] = {
	"health", "sandboxes", "snapshots", "templates", "teams", "api-keys", "volumes",
	"volumecontent", "secrets", "events", "nodes", "access-tokens",
};

/* The first segment of their paths, behind a version. */
int e2b_control_take(struct call *c)
{
	const char *path = c->req->path + 1, *why;
	int status;
	size_t n;

	if (path[0] == 'v' && (path[1] == '2' || path[1] == '3') && path[2] == '/')
		path += 3;
	n = strcspn(path, "/");
	for (unsigned i = 0; i < ARRAY_LEN(theirs); i++) {
		if (strlen(theirs[i]) != n || strncmp(path, theirs[i], n) != 0)
			continue;
		c->manner = &e2b_manner;
		status = auth_origin(c->api, c->req, &why);
		if (status)
			call_error(c, status, "denied", "not at this address", why, NULL);
		else
			call_serve(c, &e2b_control);
		return 1;
	}
	return 0;
}
