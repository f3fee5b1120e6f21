/* scan.h - what a program's text gives away before it runs. A hint, never the wall.
 * Owns: the parsed rules (src/agent/scans), for the life of the process. */
#pragma once
#include "agent/agent.h"

/* [{rule, file, line, why, action: "warn"|"block"}], worst first; empty: nothing. files: {path: text}. */
json_t *scan_files(const char *language, const json_t *files);
