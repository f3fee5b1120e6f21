/* libpq.c - see libpq.h. */
#include "coordinator/libpq.h"
#include "base/cleanup.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

struct libpq libpq;

static const struct {
	const char *name;
	size_t at;
} libpq_calls[] = {
#define X(call) { "PQ" #call, offsetof(struct libpq, call) },
	LIBPQ_CALLS(X)
#undef X
};

int libpq_load(struct err *e)
{
	struct libpq found = { 0 };
	void *lib;

	if (libpq.connectStartParams)
		return 0;
	lib = dlopen("libpq.so.5", RTLD_NOW | RTLD_LOCAL);
	if (!lib)
		return err_set(
			e, ERR_NOT_FOUND,
			"libpq is needed for cluster.database: apt-get install libpq5 (%.120s)",
			dlerror());
	for (unsigned i = 0; i < ARRAY_LEN(libpq_calls); i++) {
		void *call = dlsym(lib, libpq_calls[i].name);

		if (!call)
			return err_set(e, ERR_NOT_FOUND,
				       "libpq has no %s: version 14 or later is needed",
				       libpq_calls[i].name);
		memcpy((char *)&found + libpq_calls[i].at, &call, sizeof(call));
	}
	libpq = found;
	return 0;
}
