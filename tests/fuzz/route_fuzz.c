/* route_fuzz.c - a method, a line break, a path. A route that is found has the parameters of its
 * pattern, and each of them is a range of the path. */
#include "http/route.h"
#include "fuzz.h"

#include <assert.h>
#include <string.h>

static const struct route table[] = {
	{ "GET", "/", "0" },
	{ "GET", "/v1/boxes", "0" },
	{ "POST", "/v1/boxes", "0" },
	{ "GET", "/v1/boxes/{box}", "1" },
	{ "GET", "/v1/boxes/stats", "0" },
	{ "DELETE", "/v1/{kind}/{id}", "2" },
	{ "GET", "/v1/boxes/{box}/execs/{exec}", "2" },
	{ "GET", "/{a}/{b}/{c}/{d}", "4" },
};

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	char text[4096], *path;
	struct route_match m;
	int status;

	if (len >= sizeof(text))
		return 0;
	memcpy(text, bytes, len);
	text[len] = 0;
	path = strchr(text, '\n');
	if (!path)
		return 0;
	*path++ = 0;
	status = route_find(table, sizeof(table) / sizeof(table[0]), text, path, &m);
	assert(status == 0 || status == 400 || status == 404 || status == 405 || status == 414);
	assert((status == 405) == (m.allow != NULL));
	assert(status != 405 || (m.allow[0] && strlen(m.allow) < sizeof(m.allow_text)));
	if (status)
		return 0;
	assert(m.nparams == (unsigned)(*(const char *)m.route->target - '0'));
	for (unsigned i = 0; i < m.nparams; i++)
		assert(m.params[i][0] && strcmp(m.params[i], ".") != 0 &&
		       strcmp(m.params[i], "..") != 0);
	return 0;
}
