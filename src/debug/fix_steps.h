/* fix_steps.h - every fix by name; fix.c makes a table of it, the files fix_*.c have the
 * functions. */
#pragma once
#include "debug/fix.h"

/* clang-format off */
#define FIXES                                                                                      \
	/* steps_package.c */                                                                      \
	FIX(install) FIX(module_path) FIX(header) FIX(link) FIX(package_drop) FIX(unpin)     \
	FIX(extension) FIX(near_command)                                                         \
	/* steps_text.c */                                                                         \
	FIX(fences) FIX(quotes) FIX(tabs) FIX(dedent) FIX(close) FIX(semicolon) FIX(colon)  \
	FIX(equals) FIX(end) FIX(semicolon_before) FIX(shell_end) FIX(shell_cut) FIX(crlf)   \
	FIX(blanks_around)                                                                        \
	/* steps_old.c */                                                                          \
	FIX(python2) FIX(esm) FIX(cjs) FIX(typescript) FIX(ts_nocheck) FIX(renamed)          \
	/* steps_name.c */                                                                         \
	FIX(import) FIX(meant) FIX(near) FIX(near_member) FIX(drop_line) FIX(use_it)         \
	FIX(mutable) FIX(using_std) FIX(undefined) FIX(throws) FIX(my)                        \
	FIX(renamed_import) FIX(near_import) FIX(shadow) FIX(pin)                \
	/* steps_entry.c */                                                                        \
	FIX(main_wrapper) FIX(call_main) FIX(package_main) FIX(rename_file) FIX(entry_file)   \
	FIX(main_inside)                                                                          \
	/* steps_place.c */                                                                        \
	FIX(file_path) FIX(file_ask) FIX(path_here) FIX(port) FIX(utf8) FIX(input)           \
	FIX(raise_time) FIX(raise_memory) FIX(raise_install) FIX(locate) FIX(cut)             \
	FIX(own_runtime) FIX(quoted_file) FIX(command_missing) FIX(port_of_line)               \
	FIX(raise_wait)                                                                           \
/* clang-format on */

#define FIX(name) int fix_##name(struct failure_case *s);
FIXES
#undef FIX

/* ---- shared by them ---- */

/* Replaces every occurrence of a word; returns their number. */
unsigned text_rename(struct buf *out, const char *text, const char *word, const char *with);
/* The paths of the files of the artifact, sorted. NULL after the last. */
const char *failure_path(const struct failure_case *s, size_t i);
/* Adds this to artifact.env. */
void child_env(json_t *child, const char *name, const char *value);
