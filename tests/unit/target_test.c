/* Where a gateway sends a request, and how it names the caller to a node. */
#include "api/identity.h"
#include "base/cleanup.h"
#include "gateway/target.h"
#include "tap.h"

static struct err err;

/* aab... is a box of node 1, bac... of node 1026. */
#define BOX "aabaaaaaaaaaaaa"
#define FAR "bacaaaaaaaaaaaa"

static struct target at(const char *method, const char *path, const char *name, const char *value)
{
	const struct http_header h = { name, value };
	const struct http_req r = {
		.method = method, .path = path, .headers = &h, .nheaders = name ? 1 : 0
	};
	struct target t;

	target_find(&t, &r, name && strcmp(name, "host") == 0);
	return t;
}

static int node_of(const char *method, const char *path)
{
	struct target t = at(method, path, NULL, NULL);

	return t.kind == TARGET_NODE ? (int)t.node : -(int)t.kind;
}

TEST(an_id_in_the_path_names_its_node)
{
	CHECK_INT(node_of("GET", "/v1/boxes/" BOX), 1);
	CHECK_INT(node_of("POST", "/v1/boxes/" FAR "/execs"), 1026);
	CHECK_INT(node_of("DELETE", "/v1/boxes/" BOX "/execs/" FAR), 1);
	CHECK_INT(node_of("GET", "/v1/runs/" FAR "/receipt"), 1026);
	CHECK_INT(node_of("GET", "/v1/batch/" FAR "/results"), 1026);
	CHECK_INT(node_of("GET", "/v1/pipelines/" FAR), 1026);
	CHECK_INT(node_of("DELETE", "/sandboxes/" BOX), 1);
	CHECK_INT(node_of("DELETE", "/sandboxes/" BOX "-00000000"), 1);
	CHECK_INT(node_of("POST", "/v2/sandboxes/" FAR "/connect"), 1026);
	CHECK_INT(node_of("GET", "/events/sandboxes/" FAR), 1026);
	CHECK_INT(node_of("GET", "/api/sandbox/" BOX "/files"), 1);
	CHECK_INT(target_node_of("777aaaaaaaaaaaa", 15), 32767);
}

TEST(what_is_not_an_id_of_fifteen_letters_is_a_name)
{
	static const char *const names[] = { "demo",
					     "aaaaaaaaaaaa",
					     BOX "a",
					     "AABAAAAAAAAAAAA",
					     "aab1aaaaaaaaaaa",
					     "%61abaaaaaaaaaaaa" };
	char path[64];
	struct target t;

	for (unsigned i = 0; i < ARRAY_LEN(names); i++) {
		snprintf(path, sizeof(path), "/v1/boxes/%s/files", names[i]);
		t = at("GET", path, NULL, NULL);
		CHECK_INT(t.kind, TARGET_NAME);
		CHECK_STR(t.object, names[i]);
		CHECK_STR(t.collection, "/v1/boxes");
	}
	t = at("GET", "/v1/snapshots/base", NULL, NULL);
	CHECK_INT(t.kind, TARGET_NAME);
	CHECK_STR(t.collection, "/v1/snapshots");
	/* Runs have no names: the gateway answers 404. */
	CHECK_INT(at("GET", "/v1/runs/demo", NULL, NULL).kind, TARGET_LOCAL);
}

TEST(a_host_with_port_and_id_needs_no_key)
{
	struct target t = at("GET", "/", "host", "3000-" BOX ".box.example.org");

	CHECK_INT(t.kind, TARGET_NODE);
	CHECK_INT(t.node, 1);
	CHECK(t.is_keyless);
	t = at("GET", "/", "host", "49983-" FAR "-00000000.box.example.org");
	CHECK_INT(t.kind, TARGET_NODE);
	CHECK_INT(t.node, 1026);
	t = at("GET", "/", "host", "3000-my-box.localhost:7070");
	CHECK_INT(t.kind, TARGET_NAME);
	CHECK_STR(t.object, "my-box");
	CHECK(t.is_keyless);
	/* Not of that form: an ordinary request. */
	CHECK(!at("GET", "/v1/boxes", "host", "example.org").is_keyless);
	CHECK(!at("GET", "/v1/boxes", "host", "123456-" BOX ".example.org").is_keyless);
	CHECK(!at("GET", "/v1/boxes", "host", "3000-.example.org").is_keyless);
	CHECK(!at("GET", "/v1/boxes", "host", "-" BOX ".example.org").is_keyless);
	CHECK(!at("GET", "/v1/boxes", "host", "3000-" BOX).is_keyless);
}

TEST(headers_of_e2b_and_mcp_name_a_node)
{
	struct target t = at("POST", "/process.Process/Start", "e2b-sandbox-id", FAR);

	CHECK_INT(t.kind, TARGET_NODE);
	CHECK_INT(t.node, 1026);
	CHECK(t.is_keyless);
	CHECK_INT(at("POST", "/x", "e2b-sandbox-id", "nonsense").kind, TARGET_LOCAL);
	CHECK_INT(at("POST", "/mcp", "mcp-session-id", FAR).kind, TARGET_NODE);
	CHECK_INT(at("POST", "/mcp", NULL, NULL).kind, TARGET_CREATE);
}

TEST(lists_creations_and_local_paths_are_distinguished)
{
	CHECK_INT(at("GET", "/v1/boxes", NULL, NULL).kind, TARGET_LIST);
	CHECK_INT(at("HEAD", "/v1/boxes", NULL, NULL).kind, TARGET_LIST);
	CHECK_INT(at("POST", "/v1/boxes", NULL, NULL).kind, TARGET_CREATE);
	CHECK_INT(at("POST", "/v1/run", NULL, NULL).kind, TARGET_CREATE);
	CHECK_INT(at("POST", "/v1/batch", NULL, NULL).kind, TARGET_STREAM);
	CHECK_INT(at("POST", "/v1/snapshots", NULL, NULL).kind, TARGET_BODY);
	CHECK_INT(at("GET", "/v2/sandboxes", NULL, NULL).shape, TARGET_ARRAY);
	CHECK_INT(at("GET", "/v1/events", NULL, NULL).kind, TARGET_LIST);
	CHECK_INT(at("GET", "/v1/audit", NULL, NULL).kind, TARGET_LIST);
	CHECK_INT(at("GET", "/v1/languages", NULL, NULL).kind, TARGET_ANY);
	CHECK_INT(at("GET", "/v1/who", NULL, NULL).kind, TARGET_LOCAL);
	CHECK_INT(at("POST", "/v1/keys", NULL, NULL).kind, TARGET_LOCAL);
	CHECK_INT(at("GET", "/v1/keys/" BOX, NULL, NULL).kind, TARGET_LOCAL);
	CHECK_INT(at("GET", "/healthz", NULL, NULL).kind, TARGET_LOCAL);
	CHECK_INT(at("GET", "/assets/app.js", NULL, NULL).kind, TARGET_LOCAL);
	/* A path of nodes that gateways do not serve is never answered from the gateway's own empty store. */
	CHECK_INT(at("GET", "/v1/webhooks", NULL, NULL).kind, TARGET_LOCAL);
	CHECK_INT(at("PUT", "/v1/secrets/A", NULL, NULL).kind, TARGET_LOCAL);
	CHECK_INT(at("DELETE", "/v1/packages/x", NULL, NULL).kind, TARGET_EVERY);
	CHECK_INT(at("GET", "/v1/receipts/key", NULL, NULL).kind, TARGET_CHAIN);
	CHECK_INT(at("GET", "/v1/boxesx", NULL, NULL).kind, TARGET_ABSENT);
	CHECK_INT(at("GET", "/v1", NULL, NULL).kind, TARGET_ABSENT);
	CHECK_INT(at("POST", "/v1/schedules", NULL, NULL).kind, TARGET_CREATE);
	CHECK_INT(at("GET", "/v1/schedules/next", NULL, NULL).kind, TARGET_ANY);
	CHECK_INT(at("POST", "/v3/templates", NULL, NULL).kind, TARGET_TEMPLATE);
	CHECK_INT(at("GET", "/v2/templates", NULL, NULL).kind, TARGET_GATHER);
	CHECK_INT(at("DELETE", "/templates/tags", NULL, NULL).kind, TARGET_BODY);
	CHECK_INT(at("PUT", "/v1/templates/uploads/ab", NULL, NULL).kind, TARGET_HOME);
	CHECK_INT(at("GET", "/sandboxes/metrics", NULL, NULL).kind, TARGET_GATHER);
	CHECK_INT(at("GET", "/teams/default/metrics/max", NULL, NULL).shape, TARGET_SUM);
	CHECK_INT(at("GET", "/volumes/x", NULL, NULL).shape, TARGET_VOLUME);
	CHECK_INT(at("DELETE", "/volumes/x", NULL, NULL).shape, TARGET_PAGE);
}

TEST(templates_volumes_and_schedules_have_names)
{
	static const struct {
		const char *path, *collection;
	} v[] = {
		{ "/v1/templates/demo/export", "/v1/templates" },
		{ "/templates/demo/builds/x/status", "/v1/templates" },
		{ "/templates/aliases/demo", "/v1/templates" },
		{ "/v2/templates/demo/builds/x", "/v1/templates" },
		{ "/v1/builds/demo/log", "/v1/builds" },
		{ "/v1/schedules/demo/pause", "/v1/schedules" },
		{ "/volumecontent/demo/file", "/v1/volumes" },
		{ "/sandboxes/demo/pause", "/v1/boxes" },
	};

	for (unsigned i = 0; i < ARRAY_LEN(v); i++) {
		struct target t = at("GET", v[i].path, NULL, NULL);

		CHECK_INT(t.kind, TARGET_NAME);
		CHECK_STR(t.object, "demo");
		CHECK_STR(t.collection, v[i].collection);
	}
	CHECK_INT(node_of("DELETE", "/v1/checkpoints/" FAR), 1026);
	CHECK_INT(at("GET", "/v1/checkpoints/demo", NULL, NULL).kind, TARGET_LOCAL);
}

static struct target link_with(const char *query)
{
	const struct http_req r = { .method = "PUT",
				    .path = "/templates/x/files/ab",
				    .query = query };
	struct target t;

	target_find(&t, &r, 0);
	return t;
}

TEST(a_signed_link_names_its_node_and_needs_no_key)
{
	static const char *const wrong[] = { "",        "token=a",     "node=",
					     "node=x",  "xnode=7",     "node=-1",
					     "node=7x", "node=123456", "token=node=7" };
	struct target t = link_with("token=a&node=1026");

	CHECK_INT(t.kind, TARGET_NODE);
	CHECK_INT(t.node, 1026);
	CHECK(t.is_keyless);
	for (unsigned i = 0; i < ARRAY_LEN(wrong); i++) {
		t = link_with(wrong[i]);
		CHECK_INT(t.kind, TARGET_LOCAL);
		CHECK(!t.is_keyless);
	}
	t = at("GET", "/v1/shared/runs/0123", NULL, NULL);
	CHECK_INT(t.kind, TARGET_SHARED);
	CHECK(t.is_keyless);
}

TEST(an_identity_survives_its_text)
{
	struct identity x = { .principal = { .role = ROLE_EDITOR,
					     .until_ns = 1234567890123456789 } },
			y;
	char text[IDENTITY_TEXT];

	strcpy(x.principal.team, "blue");
	strcpy(x.principal.id, "aaaaaaaaaaaa");
	strcpy(x.principal.box, "bbbbbbbbbbbb");
	strcpy(x.principal.isolation, "gvisor");
	identity_text(&x, text);
	CHECK_STR(text, "blue editor aaaaaaaaaaaa bbbbbbbbbbbb 1234567890123456789 gvisor -");
	CHECK_INT(identity_parse(text, &y, &err), 0);
	CHECK_STR(y.principal.team, "blue");
	CHECK_STR(y.principal.box, "bbbbbbbbbbbb");
	CHECK_STR(y.principal.isolation, "gvisor");
	CHECK_STR(y.team_isolation, "");
	CHECK_INT(y.principal.role, ROLE_EDITOR);
	CHECK_INT(y.principal.until_ns, 1234567890123456789);
}

TEST(an_invalid_identity_is_rejected)
{
	static const char *const bad[] = {
		"",
		"blue",
		"blue editor aaaaaaaaaaaa - 0 -",
		"blue editor aaaaaaaaaaaa - 0 - - -",
		"blue king aaaaaaaaaaaa - 0 - -",
		"- editor aaaaaaaaaaaa - 0 - -",
		"blue editor - - 0 - -",
		"blue editor aaaaaaaaaaaa box 0 - -",
		"blue editor aaaaaaaaaaaa - -1 - -",
		"blue editor aaaaaaaaaaaa - 1x - -",
		"blue editor aaaaaaaaaaaa - 99999999999999999999 - -",
		"blue editor aaaaaaaaaaaa - - - -",
		"blue  editor aaaaaaaaaaaa - 0 - -",
		"bl\xc3\xbc editor aaaaaaaaaaaa - 0 - -",
		"blue editor aaaaaaaaaaaa - 0 a-tier-whose-name-is-longer-than-any-word-of-the-store-may-be -",
	};
	struct identity y;

	for (unsigned i = 0; i < ARRAY_LEN(bad); i++)
		CHECK_INT(identity_parse(bad[i], &y, &err), -1);
}
