/* scan.h - finds suspicious code in a program before it runs. A hint, not part of the isolation.
 * Owns: the parsed rules (share/scans), for the life of the process.
 *
 *	languages = ["python"]       "*": any file
 *
 *	[[rules]]
 *	name = "python-reverse-shell"
 *	has = ["dup2("]              one of these, in small letters: where to look
 *	match = '...'                and there, in this line and the `lines` after it, this (POSIX, extended)
 *	all = [["socket"], ["a", "b"]] and of each group one, anywhere in the file
 *	action = "block"             or "warn"
 *	why = "..." */
#pragma once
#include "document/document.h"

/* [{rule, file, line, why, action: "warn"|"block"}], worst first; empty: nothing. files: {path: text}. */
json_t *scan_files(const char *language, const json_t *files);

/* Applies the policy of a team to the findings: "off" drops them, "warn" blocks nothing, "block"
 * uses the action of each rule; NULL or "": "block". Returns 1 if the program must not run, 0 if it
 * may, -1: unknown policy. */
int scan_apply(json_t *findings, const char *policy);

/* For `atoll policy` and docs: every rule, [{rule, action, why, languages}]. */
json_t *scan_rules(void);
