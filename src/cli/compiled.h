/* compiled.h - the compile cache of `atoll run FILE`: a program that was compiled before is not
 * compiled again.
 * Owns: the key of one program, and the folder of the cache, $XDG_CACHE_HOME/atoll or
 * ~/.cache/atoll. Only programs of one file are stored, compiled in a box that contained nothing
 * else, by a compiler that printed nothing. The key is a digest of all inputs of the compiler
 * (lang/compile_cache.h). If the cache cannot be used, the compiler runs. */
#pragma once
#include "cli/run_inputs.h"
#include "cli/local_run.h"
#include "lang/compile_cache.h"

struct compiled {
	struct compile_caches cache; /* folder -1: this program is not stored */
	struct compile_cache_key key;
};

/* argv: of the compiler. */
void compiled_init(struct compiled *c, const struct local_run *s, const struct run_inputs *in,
		   const char *const *argv);
/* 1: the program is in the box now. 0: it has to be compiled. */
must_check int compiled_take(struct compiled *c, struct local_run *s, const struct run_inputs *in,
			     struct err *e);
/* After a compiler that succeeded and printed nothing. */
void compiled_keep(struct compiled *c, struct local_run *s, const struct run_inputs *in);
void compiled_fini(struct compiled *c);
