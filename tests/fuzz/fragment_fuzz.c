/* fragment_fuzz.c - the body of a chat front end's request, checked and translated as the API does it.
 * The result has files with texts, exactly one program to run, and the requested session. */
#include "api/fields.h"
#include "fuzz.h"
#include "v1run/fragment.h"

#include <assert.h>
#include <string.h>

static int fragment_has(const json_t *doc, const char *name)
{
	return json_object_get(doc, name) != NULL;
}

/* A text that becomes a C string. */
static void fragment_check_text(const json_t *doc, const char *name, size_t most)
{
	const json_t *v = json_object_get(doc, name);

	assert(!v || (json_is_string(v) && json_string_length(v) <= most));
	assert(!v || strlen(json_string_value(v)) == json_string_length(v));
}

static void fragment_check_session(const json_t *body, const json_t *out)
{
	static const char *const names[] = { "session", "sessionId", "sessionID", "userID" };
	int asked = 0;

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		asked |= json_string_length(json_object_get(body, names[i])) > 0;
	assert(!asked || fragment_has(out, "session"));
	fragment_check_text(out, "session", STORE_SESSION);
}

static void fragment_check(const json_t *body, const json_t *out)
{
	const json_t *files = json_object_get(out, "files");
	const char *path;
	json_t *v;

	assert(json_is_object(files) && json_object_size(files) <= 2001);
	json_object_foreach((json_t *)files, path, v)
		assert(*path && strlen(path) <= 400 && json_is_string(v));
	assert(fragment_has(out, "code") + fragment_has(out, "command") +
		       fragment_has(out, "entry") + fragment_has(out, "cell_code") ==
	       1);
	fragment_check_text(out, "code", SIZE_MAX);
	fragment_check_text(out, "cell_code", SIZE_MAX);
	fragment_check_text(out, "command", 1 << 16);
	fragment_check_text(out, "install", 1 << 16);
	fragment_check_text(out, "entry", 400);
	fragment_check_session(body, out);
	assert(fragment_has(out, "port") == fragment_has(out, "background"));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct err e = { 0 };
	json_t *body = fields_parse((const char *)bytes, len, &e), *out;

	if (!body) {
		assert(e.msg[0]);
		return 0;
	}
	if (fields_check(body, fragment_request_fields, "", &e) < 0) {
		assert(e.kind == ERR_INVALID && e.msg[0]);
		json_decref(body);
		return 0;
	}
	fields_prune(body, fragment_request_fields);
	out = fragment_translate(body, fragment_builtin, NULL, &e);
	assert(out || (e.kind == ERR_INVALID && e.msg[0]));
	if (out)
		fragment_check(body, out);
	json_decref(out);
	json_decref(body);
	return 0;
}
