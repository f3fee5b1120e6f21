/* swerex.c - see swerex.h: the table of its routes, and its surface. */
#include "api/auth.h"
#include "base/cleanup.h"
#include "swerex/swerex_call.h"

#include <string.h>

static const struct api_route rows[] = {
	/* clang-format off */
	{ "GET", "/swerex/{box}/is_alive", NEED_VIEWER, swerex_is_alive, "check that the box exists",
	  .group = "tools", .scope = SCOPE_BOX },
	{ "POST", "/swerex/{box}/create_session", NEED_EDITOR, swerex_create_session,
	  "create a named shell", swerex_start_fields, .group = "tools", .scope = SCOPE_BOX },
	{ "POST", "/swerex/{box}/run_in_session", NEED_EDITOR, swerex_run_in_session,
	  "run a command in a shell, or interrupt it", swerex_run_fields, .group = "tools", .scope = SCOPE_BOX },
	{ "POST", "/swerex/{box}/close_session", NEED_EDITOR, swerex_close_session, "end a shell",
	  swerex_close_fields, .group = "tools", .scope = SCOPE_BOX },
	{ "POST", "/swerex/{box}/execute", NEED_EDITOR, swerex_execute, "run a program without a shell session",
	  swerex_execute_fields, .group = "tools", .scope = SCOPE_BOX },
	{ "POST", "/swerex/{box}/read_file", NEED_VIEWER, swerex_read_file, "read a file as text", swerex_read_fields,
	  .group = "tools", .scope = SCOPE_BOX },
	{ "POST", "/swerex/{box}/write_file", NEED_EDITOR, swerex_write_file, "write a file", swerex_write_fields,
	  .group = "tools", .scope = SCOPE_BOX },
	{ "POST", "/swerex/{box}/upload", NEED_EDITOR, swerex_upload, "upload a file or an archive, as a form",
	  .how = HTTP_BODY_WHOLE, .group = "tools", .scope = SCOPE_BOX },
	{ "POST", "/swerex/{box}/close", NEED_EDITOR, swerex_close, "end all shells", swerex_end_fields,
	  .group = "tools", .scope = SCOPE_BOX },
	/* clang-format on */
};
static struct api_table table = { rows, ARRAY_LEN(rows), &swerex_format, NULL };

static int swerex_take(struct call *c)
{
	const char *why;
	int status;

	if (strncmp(c->req->path, "/swerex/", 8) != 0)
		return 0;
	c->format = &swerex_format;
	status = auth_origin(c->api, c->req, &why);
	if (status)
		call_error(c, status, "denied", "not at this address", why, NULL);
	else
		call_serve(c, &table);
	return 1;
}

const struct api_surface swerex_surface = { swerex_take, rows, ARRAY_LEN(rows), NULL };
