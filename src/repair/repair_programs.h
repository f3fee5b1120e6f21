/* repair_programs.h - programs of ours that run in boxes to repair others: share/repair, in the executable. */
#pragma once

/* NULL: there is none for this language. */
const char *program_search(
	const char *language); /* looks for edits, or tries those that it is given */
const char *program_runner(
	const char *language); /* what the search program is written in; else the language itself */
const char *program_judge(const char *language); /* makes many calls in one box */
