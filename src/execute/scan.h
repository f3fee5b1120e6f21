/* scan.h - what a program's text gives away before it runs. A hint, never the wall.
 * Owns: the parsed rules (share/scans), for the life of the process.
 *
 *	languages = ["python"]       "*": any file
 *
 *	[[rules]]
 *	name = "python-reverse-shell"
 *	has = ["dup2("]              one of these, in small letters: where to look
 *	match = '...'                and there, in this line and the `lines` behind it, this (POSIX, extended)
 *	all = [["socket"], ["a", "b"]] and of each group one, anywhere in the file
 *	action = "block"             or "warn"
 *	why = "..." */
#pragma once
#include "document/document.h"

/* [{rule, file, line, why, action: "warn"|"block"}], worst first; empty: nothing. files: {path: text}. */
json_t *scan_files(const char *language, const json_t *files);

/* A team's policy on what was found: "off" forgets it, "warn" lets everything run, "block" is as each rule
 * says; NULL or "": "block". Returns 1 if something must not run, 0 if all may, -1: there is no such policy. */
int scan_apply(json_t *findings, const char *policy);

/* For `atoll policy` and docs: every rule, [{rule, action, why, languages}]. */
json_t *scan_rules(void);
