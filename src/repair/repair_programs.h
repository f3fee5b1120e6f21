/* repair_programs.h - programs that run in boxes for a repair: share/repair, embedded in the
 * executable. */
#pragma once

/* NULL: there is none for this language. */
const char *program_search(const char *language); /* searches for edits, or tests given ones */
const char *program_runner(
	const char *language); /* the language of the search program, if different */
const char *program_judge(const char *language); /* makes many calls in one box */
