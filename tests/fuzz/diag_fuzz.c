/* diag_fuzz.c - the first byte chooses a language, the rest is the output of a compiler or a program. */
#include "lang/diag.h"
#include "fuzz.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	const struct lang *l = len ? lang_at(bytes[0] % lang_count()) : NULL;
	const char *text = (const char *)bytes + 1;
	char unit[LANG_UNIT];
	json_t *errors, *fault;

	if (!l)
		return 0;
	errors = diag_errors(l, text, len - 1);
	fault = diag_fault(l, text, len - 1);
	assert(!errors || json_array_size(errors) > 0);
	assert(!fault || json_object_size(fault) == 4);
	json_decref(errors);
	json_decref(fault);
	lang_unit_of(l, "x/y.z", text, len - 1, unit);
	lang_file_of(l, text, len - 1, unit);
	(void)lang_warm(l, text, len - 1);
	return 0;
}
