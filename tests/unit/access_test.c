/* access_test.c - authorization: every route of the native API and of the other surfaces, for every kind of caller.
 *
 * What a caller must not reach is requested from the real handlers. What a caller may reach ends in a
 * handler of the test, which only looks the box up: real ones would wait for a keeper. */
#include "fake_fleet.h"
#include "api/auth.h"
#include "e2bcontrol/e2bcontrol.h"
#include "http_rig.h"
#include "store/keys.h"
#include "tools/tool.h"
#include "wire/frame.h"
#include "v1/v1.h"

#include <ftw.h>

enum { REACHED = 204, PATH_BYTES = 256 };

enum caller_kind {
	NO_KEY,
	VIEWER,
	EDITOR,
	OWNER,
	BOUND_VIEWER,
	BOUND_EDITOR,
	BOUND_OWNER,
	BOUND_ELSEWHERE,
	OTHER_TEAM,
	CALLERS
};

static const struct {
	const char *name, *team;
	enum store_role role;
	int bound; /* to box 1 or 2; 0: to none */
} callers[CALLERS] = {
	[NO_KEY] = { "no key", NULL, 0, 0 },
	[VIEWER] = { "viewer", "default", ROLE_VIEWER, 0 },
	[EDITOR] = { "editor", "default", ROLE_EDITOR, 0 },
	[OWNER] = { "owner", "default", ROLE_OWNER, 0 },
	[BOUND_VIEWER] = { "viewer-of-box", "default", ROLE_VIEWER, 1 },
	[BOUND_EDITOR] = { "editor-of-box", "default", ROLE_EDITOR, 1 },
	[BOUND_OWNER] = { "owner-of-box", "default", ROLE_OWNER, 1 },
	[BOUND_ELSEWHERE] = { "owner-of-another-box", "default", ROLE_OWNER, 2 },
	[OTHER_TEAM] = { "owner-of-another-team", "other", ROLE_OWNER, 0 },
};

static struct api api;
static struct fake_peer inits[2];
static char keys[CALLERS][KEY_TEXT + 1];
static struct api_route stub_rows[256];
static struct api_table stub_table;

static void stub_run(struct call *c)
{
	if (c->row->scope != SCOPE_BOX || call_box_peek(c, 0))
		call_empty(c, REACHED);
}

/* The same rows with the handler of the test; body and query are not checked. */
static void use_stubs(void)
{
	for (unsigned i = 0; i < v1_nroutes; i++) {
		stub_rows[i] = v1_routes[i];
		stub_rows[i].run = stub_run;
		stub_rows[i].body = NULL;
		stub_rows[i].query = NULL;
		stub_rows[i].how = 0;
	}
	stub_table = (struct api_table){ .rows = stub_rows, .n = v1_nroutes };
	api.native = &stub_table;
}

static int make_key(enum caller_kind kind)
{
	struct store_key k = { .role = callers[kind].role };

	snprintf(k.name, sizeof(k.name), "%s", callers[kind].name);
	snprintf(k.team, sizeof(k.team), "%s", callers[kind].team);
	if (callers[kind].bound)
		snprintf(k.box, sizeof(k.box), "%s", inits[callers[kind].bound - 1].id);
	return store_key_make(keys[kind], &k, &oops) < 0 ? -1
							 : store_key_add(fake.store, &k, &oops);
}

static int listen_here(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(where);

	where = (struct sockaddr_in){ .sin_family = AF_INET,
				      .sin_addr = { htonl(INADDR_LOOPBACK) } };
	if (fd < 0 || bind(fd, (void *)&where, sizeof(where)) < 0 || listen(fd, 64) < 0 ||
	    getsockname(fd, (void *)&where, &len) < 0)
		return -1;
	return http_listen(&api.http, fd, NULL, &oops);
}

static const struct api_surface *const surfaces[] = { &e2bcontrol_surface, &tool_surface,
						      &mcp_surface, &swerex_surface, NULL };

/* A server with two boxes of team "default", and one key for each caller. */
static int begin(void)
{
	struct store_team other = { .name = "other" };
	struct box_spec spec = fake_spec("default");

	memset(&api, 0, sizeof(api));
	if (loop_init(&loop, &oops) < 0 || fake_begin(&loop, &api.fleet) < 0)
		return -1;
	api.loop = &loop;
	api.store = fake.store;
	api.surfaces = surfaces;
	api.conf = (struct api_conf){
		.json_max = 1 << 20, .upload_max = 1 << 20, .statm = -1, .state = fake.dir
	};
	http_server_init(&api.http, &loop);
	if (store_team_put(fake.store, &other, &oops) < 0 || v1_init(&api, &oops) < 0)
		return -1;
	for (unsigned i = 0; i < 2; i++)
		if (!fake_box(&spec, &inits[i]))
			return -1;
	for (unsigned i = NO_KEY + 1; i < CALLERS; i++)
		if (make_key((enum caller_kind)i) < 0)
			return -1;
	return listen_here();
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	return remove(path);
}

static void finish(void)
{
	free(stub_table.routes);
	stub_table.routes = NULL;
	http_server_fini(&api.http);
	mcp_fini(&api);
	swerex_fini(&api);
	v1_fini(&api);
	for (unsigned i = 0; i < 2; i++)
		own_close_fd(&inits[i].fd);
	fake_end();
	loop_fini(&loop);
	nftw(fake.dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* The path of a row: {box} is the first box, other parameters are ids that do not exist. */
static void path_of(const struct api_route *row, char out[PATH_BYTES])
{
	size_t n = 0;

	for (const char *p = row->pattern; *p;) {
		size_t len = *p == '{' ? strcspn(p, "}") + 1 : 1;
		const char *text = *p != '{'                  ? p
				   : !strncmp(p, "{box}", 5)  ? inits[0].id
				   : !strncmp(p, "{port}", 6) ? "8080"
							      : "aaaaaaaaaaaa";

		n += (size_t)snprintf(out + n, PATH_BYTES - n, "%.*s", *p == '{' ? 64 : 1, text);
		p += len;
	}
}

/* Sends the request on a new connection; returns the status of the answer, -1: none arrived. */
static int ask(const struct api_route *row, const char *path, const char *key, const char *body)
{
	char head[PATH_BYTES * 3];
	int fd = dial(), status = -1;

	snprintf(
		head, sizeof(head),
		"%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n%s%s%s%sContent-Length: %zu\r\n\r\n",
		row->method, path, key ? "X-API-Key: " : "", key ? key : "", key ? "\r\n" : "",
		row->body ? "Content-Type: application/json\r\n" : "", strlen(body));
	if (fd >= 0 && say(fd, head) && say(fd, body) && UNTIL(ended(fd)))
		status = status_of();
	close(fd);
	return status;
}

static int expected_status(const struct api_route *row, enum caller_kind kind)
{
	if (row->need == NEED_NOTHING)
		return REACHED;
	if (kind == NO_KEY)
		return 401;
	if ((int)callers[kind].role < (int)row->need - NEED_VIEWER)
		return 403;
	if (callers[kind].bound && row->scope == SCOPE_TEAM)
		return 403;
	if ((kind == BOUND_ELSEWHERE || kind == OTHER_TEAM) && row->scope == SCOPE_BOX)
		return 404;
	return REACHED;
}

/* The number of routes that answer this caller differently from the table. */
static unsigned wrong_answers(enum caller_kind kind)
{
	unsigned wrong = 0;

	for (unsigned i = 0; i < v1_nroutes; i++) {
		const struct api_route *row = &v1_routes[i];
		int want = expected_status(row, kind), got_status;
		char path[PATH_BYTES];

		path_of(row, path);
		got_status = ask(&stub_rows[i], path, kind == NO_KEY ? NULL : keys[kind], "");
		if (got_status == want)
			continue;
		printf("# %s %s for %s: %d, not %d\n", row->method, row->pattern,
		       callers[kind].name, got_status, want);
		wrong++;
	}
	return wrong;
}

TEST(routes_of_boxes_and_no_others_name_a_box_first)
{
	CHECK(v1_nroutes > 100 && v1_nroutes <= ARRAY_LEN(stub_rows));
	for (unsigned i = 0; i < v1_nroutes; i++) {
		const char *first = strchr(v1_routes[i].pattern, '{');
		int names_box = first && !strncmp(first, "{box}", 5);

		if (names_box != (v1_routes[i].scope == SCOPE_BOX))
			printf("# %s %s\n", v1_routes[i].method, v1_routes[i].pattern);
		CHECK_INT(v1_routes[i].scope == SCOPE_BOX, names_box);
	}
}

/* A new row without authentication must be added here, too. */
TEST(routes_without_a_key_are_these_five)
{
	static const char *const known[] = { "/", "/docs/{page}", "/healthz",
					     "/v1/shared/runs/{token}", "/v1/ui/sessions" };
	unsigned n = 0;

	for (unsigned i = 0; i < v1_nroutes; i++) {
		if (v1_routes[i].need != NEED_NOTHING)
			continue;
		CHECK(n < ARRAY_LEN(known));
		CHECK_STR(v1_routes[i].pattern, known[n]);
		n++;
	}
	CHECK_INT(n, ARRAY_LEN(known));
}

/* Their handlers hide other boxes from a key that is bound to a box. */
TEST(routes_for_keys_of_any_scope_are_these_four)
{
	static const char *const known[] = { "/v1/info", "/v1/languages", "/v1/who", "/v1/socket" };
	unsigned n = 0;

	for (unsigned i = 0; i < v1_nroutes; i++) {
		if (v1_routes[i].scope != SCOPE_ANY)
			continue;
		CHECK(n < ARRAY_LEN(known));
		CHECK_STR(v1_routes[i].pattern, known[n]);
		CHECK_STR(v1_routes[i].method, "GET");
		n++;
	}
	CHECK_INT(n, ARRAY_LEN(known));
}

TEST(routes_that_change_something_need_an_editor)
{
	for (unsigned i = 0; i < v1_nroutes; i++) {
		const struct api_route *row = &v1_routes[i];

		if (!strcmp(row->method, "GET") || !strcmp(row->pattern, "/v1/ui/sessions"))
			continue;
		if (row->need < NEED_EDITOR || !row->action)
			printf("# %s %s\n", row->method, row->pattern);
		CHECK(row->need >= NEED_EDITOR);
		CHECK(row->action);
	}
}

/* Keys, the audit log and routes that concern other teams; a row that is added or relaxed must
 * be changed here. */
TEST(routes_that_need_an_owner_are_these)
{
	static const char *const known[] = {
		"GET /v1/doctor",
		"POST /v1/nodes/{node}/drain",
		"POST /v1/nodes/{node}/undrain",
		"POST /v1/tiers/refresh",
		"PUT /v1/pipelines/policy",
		"GET /v1/packages",
		"GET /v1/packages/{set}",
		"DELETE /v1/packages/{set}",
		"POST /v1/packages/{set}/check",
		"GET /v1/runs/{run}/shares",
		"POST /v1/runs/{run}/shares",
		"DELETE /v1/runs/{run}/shares/{share}",
		"GET /v1/alerts",
		"GET /v1/alerts/rules",
		"PUT /v1/alerts/rules/{rule}",
		"DELETE /v1/alerts/rules/{rule}",
		"GET /v1/alerts/notices",
		"POST /v1/alerts/test",
		"GET /v1/keys",
		"POST /v1/keys",
		"GET /v1/keys/{key}",
		"DELETE /v1/keys/{key}",
		"GET /v1/boxes/{box}/shares",
		"POST /v1/boxes/{box}/shares",
		"DELETE /v1/boxes/{box}/shares/{share}",
		"POST /v1/ui/links",
		"PUT /v1/teams/{team}",
		"DELETE /v1/teams/{team}",
		"PUT /v1/teams/{team}/network",
		"GET /v1/audit",
	};
	unsigned n = 0;

	for (unsigned i = 0; i < v1_nroutes; i++) {
		char name[PATH_BYTES];

		if (v1_routes[i].need != NEED_OWNER)
			continue;
		snprintf(name, sizeof(name), "%s %s", v1_routes[i].method, v1_routes[i].pattern);
		CHECK(n < ARRAY_LEN(known));
		CHECK_STR(name, known[n]);
		n++;
	}
	CHECK_INT(n, ARRAY_LEN(known));
}

TEST(every_route_answers_every_caller_as_its_row_says)
{
	CHECK_INT(begin(), 0);
	use_stubs();
	for (unsigned i = 0; i < CALLERS; i++)
		CHECK_INT(wrong_answers((enum caller_kind)i), 0);
	finish();
}

/* ---- with the real handlers ---- */

/* But for what a server asks without a request, each second: counters of boxes, its own figures. */
static int keeper_was_not_asked(void)
{
	for (int i = 0; i < 10; i++)
		fake_turn();
	while (fake_is_readable(&fake.keeper)) {
		int type = fake_read(&fake.keeper);

		if (type != WIRE_DEADLINE && type != WIRE_COUNTERS && type != WIRE_INFO &&
		    type != WIRE_TIERS) {
			printf("# the keeper got %s\n", frame_name((uint8_t)type));
			return 0;
		}
	}
	return 1;
}

static json_t *value_of(const struct field *f);

/* Parameters that handlers check before they search the box. */
static const char *text_for(const char *field)
{
	return !strcmp(field, "signal") ? "TERM" : !strcmp(field, "mode") ? "644" : "a";
}

/* The smallest body that the fields accept. */
static json_t *body_of(const struct field *fields)
{
	json_t *doc = json_object();

	for (const struct field *f = fields; f && f->name; f++)
		if (f->required)
			json_object_set_new(doc, f->name, value_of(f));
	return doc;
}

static json_t *value_of(const struct field *f)
{
	switch (f->type) {
	case FIELD_INT:
		return json_integer(f->least);
	case FIELD_BOOL:
		return json_true();
	case FIELD_TEXTS:
		return json_pack("[s]", "a");
	case FIELD_MAP:
		return json_object();
	case FIELD_OBJECT:
		return body_of(f->fields);
	case FIELD_CHOICE:
		return json_string(f->fields[0].name);
	default:
		return json_string(text_for(f->name));
	}
}

/* Appends the required parameters to the path; a search needs a name or a text. */
static void add_query(const struct field *query, char path[PATH_BYTES])
{
	char separator = '?';

	for (const struct field *f = query; f && f->name; f++) {
		size_t n = strlen(path);

		if (!f->required && !(strstr(path, "/search") && !strcmp(f->name, "name")))
			continue;
		snprintf(path + n, PATH_BYTES - n, "%c%s=%s", separator, f->name,
			 f->type == FIELD_INT ? "1" : "a");
		separator = '&';
	}
}

/* ---- E2B, tools, MCP, SWE-ReX ---- */

struct surface_rows {
	const char *name;
	const struct api_route *rows;
	unsigned n,
		least; /* least: fewer rows would mean that the table is not the one that is served */
	int every_key; /* a key that is bound to a box uses that box, without naming it */
};

/* Sends the smallest valid request, so that only the caller can be the reason for a refusal. */
static int ask_row(const struct api_route *row, enum caller_kind kind)
{
	json_t *doc = body_of(row->body);
	auto_free char *body = row->body ? json_dumps(doc, 0) : strdup("");
	char path[PATH_BYTES];

	json_decref(doc);
	path_of(row, path);
	add_query(row->query, path);
	return ask(row, path, kind == NO_KEY ? NULL : keys[kind], body);
}

/* The number of requests that the surface should refuse and did not. */
static unsigned wrongly_admitted(const struct surface_rows *s, enum caller_kind kind)
{
	unsigned wrong = 0;

	for (unsigned i = 0; i < s->n; i++) {
		const struct api_route *row = &s->rows[i];
		int want = expected_status(row, kind), status;

		if (s->every_key && kind != NO_KEY)
			want = REACHED;
		if (want == REACHED)
			continue;
		status = ask_row(row, kind);
		/* 422: SWE-ReX checks the body first; that shows nothing of the box. */
		if (status == want || (want == 404 && status == 422))
			continue;
		printf("# %s: %s %s for %s: %d, not %d: %.200s\n", s->name, row->method,
		       row->pattern, callers[kind].name, status, want, got);
		wrong++;
	}
	return wrong;
}

static const struct surface_rows *rows_of_surfaces(unsigned *n)
{
	static struct surface_rows all[4];

	all[0] = (struct surface_rows){ "e2b", e2bcontrol_routes, e2bcontrol_nroutes, 60, 0 };
	all[1] = (struct surface_rows){ "tools", tool_surface.routes, tool_surface.nroutes, 4, 0 };
	all[2] = (struct surface_rows){ "mcp", mcp_surface.routes, mcp_surface.nroutes, 2, 1 };
	all[3] = (struct surface_rows){ "swerex", swerex_surface.routes, swerex_surface.nroutes, 9,
					0 };
	*n = ARRAY_LEN(all);
	return all;
}

TEST(every_route_of_other_surfaces_refuses_the_callers_that_its_row_excludes)
{
	unsigned n;
	const struct surface_rows *all = rows_of_surfaces(&n);

	CHECK_INT(begin(), 0);
	for (unsigned i = 0; i < n; i++) {
		CHECK(all[i].n >= all[i].least);
		for (unsigned k = 0; k < CALLERS; k++)
			CHECK_INT(wrongly_admitted(&all[i], (enum caller_kind)k), 0);
	}
	CHECK(keeper_was_not_asked());
	finish();
}

/* Routes that are not implemented need no editor: they share the handler of POST /secrets. The address
 * of an upload contains an encrypted permission, which an editor has requested. */
TEST(e2b_routes_that_change_something_need_an_editor)
{
	void (*refuse)(struct call * c) = NULL;

	for (unsigned i = 0; i < e2bcontrol_nroutes; i++)
		if (!strcmp(e2bcontrol_routes[i].pattern, "/secrets"))
			refuse = e2bcontrol_routes[i].run;
	CHECK(refuse);
	for (unsigned i = 0; i < e2bcontrol_nroutes; i++) {
		const struct api_route *row = &e2bcontrol_routes[i];

		if (!strcmp(row->method, "GET") || row->run == refuse ||
		    !strcmp(row->pattern, "/templates/{template}/files/{hash}"))
			continue;
		if (row->need < NEED_EDITOR)
			printf("# %s %s\n", row->method, row->pattern);
		CHECK(row->need >= NEED_EDITOR);
	}
}

static unsigned boxes_shown(enum caller_kind kind)
{
	unsigned wrong = 0;

	for (unsigned i = 0; i < v1_nroutes; i++) {
		const struct api_route *row = &v1_routes[i];
		int status;

		if (row->scope != SCOPE_BOX)
			continue;
		status = ask_row(row, kind);
		if (status == 404 && strstr(got, "no such box"))
			continue;
		printf("# %s %s for %s: %d: %.300s\n", row->method, row->pattern,
		       callers[kind].name, status, got);
		wrong++;
	}
	return wrong;
}

TEST(no_handler_shows_a_box_of_another_team_or_another_key)
{
	CHECK_INT(begin(), 0);
	CHECK_INT(boxes_shown(OTHER_TEAM), 0);
	CHECK_INT(boxes_shown(BOUND_ELSEWHERE), 0);
	CHECK(keeper_was_not_asked());
	finish();
}

/* Its box has the same name as a box of another team. */
TEST(name_of_a_box_is_looked_up_in_the_callers_team)
{
	static const struct api_route row = { .method = "GET" };
	struct fake_peer theirs = { .fd = -1 };
	struct box_spec spec = fake_spec("other");

	CHECK_INT(begin(), 0);
	snprintf(spec.row.name, sizeof(spec.row.name), "web");
	CHECK(fake_box(&spec, &theirs));
	CHECK_INT(ask(&row, "/v1/boxes/web", keys[OTHER_TEAM], ""), 200);
	CHECK_INT(ask(&row, "/v1/boxes/web", keys[OWNER], ""), 404);
	CHECK_INT(ask(&row, "/v1/boxes", keys[OWNER], ""), 200);
	CHECK(strstr(got, inits[0].id) && !strstr(got, theirs.id));
	own_close_fd(&theirs.fd);
	finish();
}

TEST(unknown_revoked_and_expired_keys_are_rejected)
{
	static const struct api_route row = { .method = "GET" };
	struct store_key old = {
		.name = "old", .team = "default", .role = ROLE_OWNER, .expires_ns = 1
	};
	char text[KEY_TEXT + 1];

	CHECK_INT(begin(), 0);
	CHECK_INT(ask(&row, "/v1/info", keys[VIEWER], ""), 200);
	CHECK_INT(ask(&row, "/v1/info", "e2b_0000000000000000000000000000000000000000", ""), 401);
	CHECK_INT(ask(&row, "/v1/info", "not a key", ""), 401);
	CHECK_INT(store_key_make(text, &old, &oops), 0);
	CHECK_INT(store_key_add(fake.store, &old, &oops), 0);
	CHECK_INT(ask(&row, "/v1/info", text, ""), 401);
	CHECK_INT(store_key_revoke(fake.store, "default", callers[VIEWER].name, &oops), 0);
	auth_changed(&api);
	CHECK_INT(ask(&row, "/v1/info", keys[VIEWER], ""), 401);
	CHECK_INT(ask(&row, "/v1/nothing-here", NULL, ""), 401); /* paths are not revealed */
	CHECK_INT(ask(&row, "/v1/nothing-here", keys[OWNER], ""), 404);
	finish();
}

TEST(wrong_keys_are_slowed_down_and_a_valid_one_is_not)
{
	static const struct api_route row = { .method = "GET" };
	int status = 401;

	CHECK_INT(begin(), 0);
	for (unsigned i = 0; i < 200 && status == 401; i++)
		status = ask(&row, "/v1/info", "wrong", "");
	CHECK_INT(status, 429);
	CHECK_INT(ask(&row, "/v1/info", keys[VIEWER], ""), 200);
	finish();
}

TEST(host_and_origin_are_checked_before_the_key)
{
	static const struct {
		const char *line;
		int status;
	} rows[] = { { "Host: localhost", 401 },
		     { "Host: localhost:80x", 421 },
		     { "Host: attacker.example", 421 },
		     { "Host: localhost\r\nOrigin: http://localhost", 401 },
		     { "Host: localhost\r\nOrigin: http://attacker.example", 403 } };

	CHECK_INT(begin(), 0);
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		char head[200];
		int fd = dial();

		snprintf(head, sizeof(head),
			 "GET /v1/info HTTP/1.1\r\n%s\r\nConnection: close\r\n\r\n", rows[i].line);
		CHECK(fd >= 0 && say(fd, head) && UNTIL(ended(fd)));
		CHECK_INT(status_of(), rows[i].status);
		close(fd);
	}
	finish();
}

/* Owners of a team other than "default" are not operators. */
TEST(routes_for_operators_reject_owners_of_other_teams)
{
	static const struct field no_fields[1];
	static const struct {
		struct api_route row;
		int status; /* 404: other teams are not revealed */
	} rows[] = {
		{ { .method = "PUT", .pattern = "/v1/teams/third", .body = no_fields }, 404 },
		{ { .method = "GET", .pattern = "/v1/teams/default" }, 404 },
		{ { .method = "DELETE", .pattern = "/v1/teams/default" }, 404 },
		{ { .method = "GET", .pattern = "/v1/packages" }, 403 },
		{ { .method = "GET", .pattern = "/v1/packages/aaaaaaaaaaaa" }, 403 },
		{ { .method = "DELETE", .pattern = "/v1/packages/aaaaaaaaaaaa" }, 403 },
		{ { .method = "POST", .pattern = "/v1/packages/aaaaaaaaaaaa/check" }, 403 },
		{ { .method = "GET", .pattern = "/v1/doctor" }, 403 },
		{ { .method = "GET", .pattern = "/v1/stats" }, 403 },
		{ { .method = "GET", .pattern = "/v1/stats/history" }, 403 },
	};

	CHECK_INT(begin(), 0);
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		const struct api_route *row = &rows[i].row;
		int status = ask(row, row->pattern, keys[OTHER_TEAM], row->body ? "{}" : "");

		if (status != rows[i].status)
			printf("# %s %s: %.300s\n", row->method, row->pattern, got);
		CHECK_INT(status, rows[i].status);
	}
	finish();
}
