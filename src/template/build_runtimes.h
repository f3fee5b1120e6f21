/* build_runtimes.h - the interpreters of a template: which it has, and whether they can wait in its boxes.
 * Owns: nothing; `runtimes` of a build's settings has the result:
 *
 *   {"python": {"program": "/usr/local/bin/python3", "version": "3.12.1", "warm": true},
 *    "node": {"program": "/opt/node/bin/node", "version": "20.1.0", "warm": false, "why": "..."}} */
#pragma once
#include <jansson.h>

/* Executed in a box of the template, as its user, with its variables; prints a line per interpreter. */
extern const char build_runtimes_script[];
/* The output of the script. Lines that it cannot have printed are ignored. */
json_t *build_runtimes_parse(const char *said);
/* The name of the warm interpreter that a box of this template should have; NULL: none. root: what the box
 * remembers of its template, or NULL: base. */
const char *build_runtimes_warm(const json_t *root, const char *name);
