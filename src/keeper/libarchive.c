/* libarchive.c - see libarchive.h. */
#include "keeper/libarchive.h"
#include "base/cleanup.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

struct libarchive libarchive;

static const struct {
	const char *name;
	size_t at;
} libarchive_calls[] = {
#define X(call) { "archive_" #call, offsetof(struct libarchive, call) },
	LIBARCHIVE_CALLS(X)
#undef X
};

int libarchive_load(struct err *e)
{
	void *lib;

	if (libarchive.read_new)
		return 0;
	lib = dlopen("libarchive.so.13", RTLD_NOW | RTLD_LOCAL);
	if (!lib)
		return err_set(
			e, ERR_NOT_FOUND,
			"libarchive is needed to unpack images: apt-get install libarchive13 "
			"(%.120s)",
			dlerror());
	for (unsigned i = 0; i < ARRAY_LEN(libarchive_calls); i++) {
		void *found = dlsym(lib, libarchive_calls[i].name);

		if (!found)
			return err_set(e, ERR_NOT_FOUND, "libarchive has no %s",
				       libarchive_calls[i].name);
		memcpy((char *)&libarchive + libarchive_calls[i].at, &found, sizeof(found));
	}
	return 0;
}
