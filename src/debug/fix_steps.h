/* fix_steps.h - every step by name; mend.c makes a table of it, the files steps_*.c have the functions. */
#pragma once
#include "debug/fix.h"

#define MENDS                                                                                      \
	/* steps_package.c */                                                                      \
	MEND(install) MEND(module_path) MEND(header) MEND(link) MEND(package_drop) MEND(unpin)     \
	MEND(extension) MEND(near_command)                                                         \
	/* steps_text.c */                                                                         \
	MEND(fences) MEND(quotes) MEND(tabs) MEND(dedent) MEND(close) MEND(semicolon) MEND(colon)  \
	MEND(equals) MEND(end) MEND(semicolon_before) MEND(shell_end) MEND(shell_cut) MEND(crlf)   \
	MEND(blanks_around)                                                                        \
	/* steps_old.c */                                                                          \
	MEND(python2) MEND(esm) MEND(cjs) MEND(typescript) MEND(ts_nocheck) MEND(renamed)          \
	/* steps_name.c */                                                                         \
	MEND(import) MEND(meant) MEND(near) MEND(near_member) MEND(drop_line) MEND(use_it)         \
	MEND(mutable) MEND(using_std) MEND(undefined) MEND(throws) MEND(my)                        \
	MEND(renamed_import) MEND(near_import) MEND(shadow) MEND(pin)                \
	/* steps_entry.c */                                                                        \
	MEND(main_wrapper) MEND(call_main) MEND(package_main) MEND(rename_file) MEND(entry_file)   \
	MEND(main_inside)                                                                          \
	/* steps_place.c */                                                                        \
	MEND(file_path) MEND(file_ask) MEND(path_here) MEND(port) MEND(utf8) MEND(input)           \
	MEND(raise_time) MEND(raise_memory) MEND(raise_install) MEND(locate) MEND(cut)             \
	MEND(own_runtime) MEND(quoted_file) MEND(command_missing) MEND(port_of_line)               \
	MEND(raise_wait)                                                                           \

#define MEND(name) int mend_##name(struct sick *s);
MENDS
#undef MEND

/* ---- shared by them ---- */

/* Every word like this becomes the other one; how many did? */
unsigned text_rename(struct buf *out, const char *text, const char *word, const char *with);
/* The artifact's files, in one order: path by path. NULL behind the last. */
const char *sick_path(const struct sick *s, size_t i);
/* artifact.env gets this. */
void child_env(json_t *child, const char *name, const char *value);
