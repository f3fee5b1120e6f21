/* routes.c - E2B's control plane: its paths and their handlers. */
#include "api/auth.h"
#include "base/cleanup.h"
#include "e2bcontrol/accounts.h"
#include "e2bcontrol/e2bcontrol.h"
#include "e2bcontrol/volume_files.h"
#include "e2bcontrol/create.h"
#include "e2bcontrol/sandbox_list.h"
#include "e2bcontrol/logs.h"
#include "e2bcontrol/metrics.h"
#include "e2bcontrol/network.h"
#include "e2bcontrol/pause.h"
#include "e2bcontrol/sandboxes.h"
#include "e2bcontrol/snapshots.h"
#include "e2bcontrol/template_builds.h"
#include "e2bcontrol/template_steps.h"
#include "e2bcontrol/template_upload.h"
#include "e2bcontrol/templates.h"
#include "e2bcontrol/volumes.h"
#include "e2bcontrol/webhooks.h"

#include <string.h>

#define NO_SECRETS "this server does not store secrets"

const struct api_route e2bcontrol_routes[] = {
	/* clang-format off */
	{ "GET", "/health", NEED_NOTHING, sandboxes_health, "check that the server is running", .query = e2b_any_query },

	/* sandboxes */
	{ "POST", "/sandboxes", NEED_EDITOR, create_v1, "create a sandbox", create_fields, .query = e2b_any_query, .action = "box.create", .flags = ROUTE_NO_FLUSH },
	{ "POST", "/v2/sandboxes", NEED_EDITOR, create_v2, "create a sandbox", create_fields, .query = e2b_any_query, .action = "box.create", .flags = ROUTE_NO_FLUSH },
	{ "GET", "/sandboxes", NEED_VIEWER, sandbox_list_v1, "list running sandboxes", .query = listing_v1_query },
	{ "GET", "/v2/sandboxes", NEED_VIEWER, sandbox_list_v2, "list all sandboxes, in pages", .query = listing_query },
	{ "GET", "/sandboxes/metrics", NEED_VIEWER, metrics_many, "show the resource usage of several sandboxes", .query = metrics_many_query },
	{ "GET", "/sandboxes/{box}", NEED_VIEWER, sandboxes_show, "show a sandbox", .query = e2b_any_query, .scope = SCOPE_BOX },
	{ "DELETE", "/sandboxes/{box}", NEED_EDITOR, sandboxes_delete, "end a sandbox", .query = e2b_any_query, .action = "box.delete", .scope = SCOPE_BOX, .flags = ROUTE_NO_FLUSH },
	{ "POST", "/sandboxes/{box}/timeout", NEED_EDITOR, sandboxes_timeout, "set the end of a sandbox, from now", sandboxes_timeout_fields, .query = e2b_any_query, .action = "box.change", .scope = SCOPE_BOX },
	{ "POST", "/sandboxes/{box}/refreshes", NEED_EDITOR, sandboxes_refresh, "extend the lifetime of a sandbox", sandboxes_refresh_fields, .query = e2b_any_query, .action = "box.change", .scope = SCOPE_BOX },
	{ "POST", "/sandboxes/{box}/connect", NEED_EDITOR, sandboxes_connect, "connect to a sandbox, and resume it if it is paused", sandboxes_connect_fields, .query = e2b_any_query, .action = "box.change", .scope = SCOPE_BOX },
	{ "POST", "/v2/sandboxes/{box}/connect", NEED_EDITOR, sandboxes_connect, "connect to a sandbox, and resume it if it is paused", sandboxes_connect_fields, .query = e2b_any_query, .action = "box.change", .scope = SCOPE_BOX },
	{ "POST", "/sandboxes/{box}/resume", NEED_EDITOR, sandboxes_resume, "resume a paused sandbox", sandboxes_connect_fields, .query = e2b_any_query, .action = "box.change", .scope = SCOPE_BOX },
	{ "PUT", "/sandboxes/{box}/network", NEED_EDITOR, network_put, "set the hosts that a sandbox may reach", network_update_fields, .query = e2b_any_query, .action = "box.change", .scope = SCOPE_BOX },
	{ "GET", "/sandboxes/{box}/metrics", NEED_VIEWER, metrics_one, "show the resource usage of a sandbox", .query = metrics_query, .scope = SCOPE_BOX },
	{ "GET", "/sandboxes/{box}/logs", NEED_VIEWER, logs_v1, "list the events of a sandbox", .query = logs_v1_query, .scope = SCOPE_BOX },
	{ "GET", "/v2/sandboxes/{box}/logs", NEED_VIEWER, logs_v2, "list the events of a sandbox", .query = logs_v2_query, .scope = SCOPE_BOX },
	{ "GET", "/events/sandboxes", NEED_VIEWER, logs_events, "list the events of all sandboxes", .query = logs_events_query },
	{ "GET", "/events/sandboxes/{box}", NEED_VIEWER, logs_events_box, "list the events of a sandbox", .query = logs_events_query, .scope = SCOPE_BOX },
	{ "GET", "/events/webhooks", NEED_EDITOR, e2b_webhooks_list, "list webhooks", .query = e2b_any_query },
	{ "POST", "/events/webhooks", NEED_EDITOR, e2b_webhooks_create, "create a webhook", e2b_webhook_fields, .query = e2b_any_query, .action = "webhook.create" },
	{ "GET", "/events/webhooks/{hook}", NEED_EDITOR, e2b_webhooks_show, "show a webhook", .query = e2b_any_query },
	{ "PATCH", "/events/webhooks/{hook}", NEED_EDITOR, e2b_webhooks_change, "change a webhook", e2b_webhook_change_fields, .query = e2b_any_query, .action = "webhook.change" },
	{ "DELETE", "/events/webhooks/{hook}", NEED_EDITOR, e2b_webhooks_delete, "delete a webhook", .query = e2b_any_query, .action = "webhook.delete" },

	/* pause, snapshots, forks */
	{ "POST", "/sandboxes/{box}/pause", NEED_EDITOR, pausing_pause, "pause a sandbox with its programs", pausing_fields, .query = e2b_any_query, .action = "box.pause", .scope = SCOPE_BOX },
	{ "POST", "/sandboxes/{box}/snapshots", NEED_EDITOR, e2b_snapshot_create, "save the files and programs of a sandbox as a snapshot", e2b_snapshot_fields, .query = e2b_any_query, .action = "snapshot.create", .scope = SCOPE_BOX },
	{ "POST", "/sandboxes/{box}/fork", NEED_EDITOR, e2b_fork, "create sandboxes with the files and programs of a sandbox", e2b_fork_fields, .query = e2b_any_query, .action = "box.fork", .scope = SCOPE_BOX },
	{ "GET", "/snapshots", NEED_VIEWER, e2b_snapshot_list, "list snapshots", .query = e2b_any_query },

	/* templates */
	{ "GET", "/templates", NEED_VIEWER, templates_list, "list templates", .query = e2b_any_query },
	{ "GET", "/v2/templates", NEED_VIEWER, templates_list, "list templates", .query = e2b_any_query },
	{ "GET", "/templates/aliases/{alias}", NEED_VIEWER, templates_alias, "check that a template with this name exists", .query = e2b_any_query },
	{ "GET", "/templates/{template}", NEED_VIEWER, templates_show, "show a template and its builds", .query = e2b_any_query },
	{ "PATCH", "/templates/{template}", NEED_EDITOR, templates_patch, "make a template public or private", templates_patch_fields, .query = e2b_any_query, .action = "template.change" },
	{ "PATCH", "/v2/templates/{template}", NEED_EDITOR, templates_patch, "make a template public or private", templates_patch_fields, .query = e2b_any_query, .action = "template.change" },
	{ "DELETE", "/templates/{template}", NEED_EDITOR, templates_delete, "delete a template or a snapshot", .query = e2b_any_query, .action = "template.delete" },
	{ "GET", "/templates/{template}/tags", NEED_VIEWER, templates_tags, "list the tags of a template", .query = e2b_any_query },
	{ "POST", "/templates/tags", NEED_EDITOR, templates_tag, "point tags to a build", templates_tag_fields, .query = e2b_any_query, .action = "template.change" },
	{ "DELETE", "/templates/tags", NEED_EDITOR, templates_untag, "remove tags", templates_untag_fields, .query = e2b_any_query, .action = "template.change" },
	{ "POST", "/v3/templates", NEED_EDITOR, template_builds_request, "request a build", template_builds_fields, .query = e2b_any_query, .action = "template.build" },
	{ "POST", "/v2/templates", NEED_EDITOR, template_builds_request_v2, "request a build", template_builds_fields, .query = e2b_any_query, .action = "template.build" },
	{ "POST", "/templates", NEED_EDITOR, template_builds_request_v1, "request a build of a Dockerfile", template_builds_v1_fields, .query = e2b_any_query, .action = "template.build" },
	{ "POST", "/templates/{template}", NEED_EDITOR, template_builds_again_v1, "request another build of a template from a Dockerfile", template_builds_v1_fields, .query = e2b_any_query, .action = "template.build" },
	{ "POST", "/templates/{template}/builds/{build}", NEED_EDITOR, template_builds_start_v1, "start a build of a Dockerfile", .query = e2b_any_query, .action = "template.build" },
	{ "POST", "/v2/templates/{template}/builds/{build}", NEED_EDITOR, template_builds_start, "start a build", template_steps_fields, .query = e2b_any_query, .action = "template.build" },
	{ "GET", "/templates/{template}/builds/{build}/status", NEED_VIEWER, template_builds_status, "show the state and the log of a build", .query = template_builds_status_query },
	{ "GET", "/templates/{template}/builds/{build}/logs", NEED_VIEWER, template_builds_logs, "show the log of a build", .query = template_builds_logs_query },
	{ "GET", "/templates/{template}/files/{hash}", NEED_EDITOR, template_upload_link, "get a link to upload files for COPY", .query = e2b_any_query },
	{ "PUT", "/templates/{template}/files/{hash}", NEED_NOTHING, template_upload_put, "upload files for COPY; the link authorizes it", .query = template_upload_query, .how = HTTP_BODY_STREAM, .action = "template.upload" },

	/* teams, keys, volumes, secrets */
	{ "GET", "/teams", NEED_VIEWER, accounts_teams, "show the caller's team", .query = e2b_any_query },
	{ "GET", "/teams/{team}/metrics", NEED_VIEWER, accounts_metrics, "show the resource usage of the team", .query = e2b_any_query },
	{ "GET", "/teams/{team}/metrics/max", NEED_VIEWER, accounts_metrics_max, "show the highest resource usage of the team", .query = accounts_max_query },
	{ "GET", "/api-keys", NEED_OWNER, accounts_keys, "list the keys of the team", .query = e2b_any_query },
	{ "POST", "/api-keys", NEED_OWNER, accounts_key_new, "create a key", accounts_key_fields, .query = e2b_any_query, .action = "key.create" },
	{ "DELETE", "/api-keys/{key}", NEED_OWNER, accounts_key_delete, "revoke a key", .query = e2b_any_query, .action = "key.delete" },
	{ "PATCH", "/api-keys/{key}", NEED_OWNER, e2b_refuse, "the name of a key cannot be changed", .query = e2b_any_query },
	{ "POST", "/access-tokens", NEED_OWNER, e2b_refuse, "this server has no access tokens: create an API key", .query = e2b_any_query },
	{ "GET", "/volumes", NEED_VIEWER, e2b_volumes_list, "list the volumes of the team", .query = e2b_any_query },
	{ "POST", "/volumes", NEED_EDITOR, e2b_volumes_create, "create a volume", e2b_volume_fields, .query = e2b_any_query, .action = "volume.create" },
	{ "GET", "/volumes/{volume}", NEED_VIEWER, e2b_volumes_show, "show a volume", .query = e2b_any_query },
	{ "DELETE", "/volumes/{volume}", NEED_EDITOR, e2b_volumes_delete, "delete a volume", .query = e2b_any_query, .action = "volume.delete" },
	{ "GET", "/volumecontent/{volume}/path", NEED_VIEWER, volume_files_stat, "show type, size and times of a path in a volume", .query = volume_files_query },
	{ "PATCH", "/volumecontent/{volume}/path", NEED_EDITOR, volume_files_patch, "set the mode of a path in a volume", volume_files_patch_fields, .query = volume_files_query },
	{ "DELETE", "/volumecontent/{volume}/path", NEED_EDITOR, volume_files_remove, "delete a file or folder in a volume", .query = volume_files_query },
	{ "GET", "/volumecontent/{volume}/dir", NEED_VIEWER, volume_files_list, "list a folder in a volume", .query = volume_files_list_query },
	{ "POST", "/volumecontent/{volume}/dir", NEED_EDITOR, volume_files_mkdir, "create a folder in a volume", .query = volume_files_make_query },
	{ "GET", "/volumecontent/{volume}/file", NEED_VIEWER, volume_files_get, "read a file in a volume", .query = volume_files_query },
	{ "PUT", "/volumecontent/{volume}/file", NEED_EDITOR, volume_files_put, "write a file in a volume", .query = volume_files_make_query, .how = HTTP_BODY_STREAM },
	{ "GET", "/secrets", NEED_VIEWER, e2b_refuse, NO_SECRETS, .query = e2b_any_query },
	{ "POST", "/secrets", NEED_VIEWER, e2b_refuse, NO_SECRETS, .query = e2b_any_query },
	{ "GET", "/secrets/{secret}", NEED_VIEWER, e2b_refuse, NO_SECRETS, .query = e2b_any_query },
	{ "POST", "/secrets/{secret}", NEED_VIEWER, e2b_refuse, NO_SECRETS, .query = e2b_any_query },
	{ "DELETE", "/secrets/{secret}", NEED_VIEWER, e2b_refuse, NO_SECRETS, .query = e2b_any_query },
	/* clang-format on */
};
const unsigned e2bcontrol_nroutes = ARRAY_LEN(e2bcontrol_routes);
static struct api_table e2bcontrol_table = { .rows = e2bcontrol_routes,
					     .n = ARRAY_LEN(e2bcontrol_routes),
					     .format = &e2b_format };

static const char *const theirs[] = {
	/* clang-format off */
	"health", "sandboxes", "snapshots", "templates", "teams", "api-keys", "volumes",
	"volumecontent", "secrets", "events", "nodes", "access-tokens", "admin",
	/* versions that only E2B's API has */
	"v2", "v3",
	/* clang-format on */
};

static int e2b_owns_path(const char *path)
{
	size_t n = strcspn(path + 1, "/");

	for (unsigned i = 0; i < ARRAY_LEN(theirs); i++)
		if (strlen(theirs[i]) == n && strncmp(path + 1, theirs[i], n) == 0)
			return 1;
	return 0;
}

/* By the first segment of the path; a path that is not in the table gets an error in E2B's shape. */
static int e2bcontrol_take(struct call *c)
{
	const char *why;
	int status;

	if (!e2b_owns_path(c->req->path))
		return 0;
	c->format = &e2b_format;
	status = auth_origin(c->api, c->req, &why);
	if (status)
		call_error(c, status, "denied", "not at this address", why, NULL);
	else
		call_serve(c, &e2bcontrol_table);
	return 1;
}

const struct api_surface e2bcontrol_surface = { e2bcontrol_take, NULL, 0, NULL };
