/* lang_fuzz.c - the first line is a file's name, the rest is the beginning of the file. */
#include "lang/lang.h"
#include "fuzz.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	const uint8_t *end = memchr(bytes, '\n', len);
	const struct lang *l;
	char name[256];
	size_t n;

	if (!end || (size_t)(end - bytes) >= sizeof(name))
		return 0;
	n = (size_t)(end - bytes);
	memcpy(name, bytes, n);
	name[n] = 0;
	l = lang_of(name, (const char *)end + 1, len - n - 1);
	assert(!l || lang_named(l->name) == l);
	lang_is_program((const char *)end + 1, len - n - 1);
	return 0;
}
