/* curl.c - see curl.h. */
#include "outbound/curl.h"
#include "base/cleanup.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

struct curl curl;

static const struct {
	const char *name;
	size_t at;
} calls[] = {
#define X(call) { "curl_" #call, offsetof(struct curl, call) },
	CURL_CALLS(X)
#undef X
};

int curl_load(struct err *e)
{
	void *lib;

	if (curl.global_init)
		return 0;
	lib = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
	if (!lib)
		return err_set(e, ERR_NOT_FOUND,
			       "libcurl is needed for requests to other hosts: %.150s", dlerror());
	for (unsigned i = 0; i < ARRAY_LEN(calls); i++) {
		void *found = dlsym(lib, calls[i].name);

		if (!found)
			return err_set(e, ERR_NOT_FOUND, "libcurl has no %s", calls[i].name);
		memcpy((char *)&curl + calls[i].at, &found, sizeof(found));
	}
	if (curl.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		return err_set(e, ERR_SYS, "libcurl does not start");
	return 0;
}
