/* node_number.h - what this machine is in its cluster: its number, <state>/cluster/number.
 * Owns: nothing. The file is written when the machine joins, and read when a server starts. */
#pragma once
#include "base/err.h"
#include <stddef.h>
#include <stdint.h>

/* The content of the file: a number from 1 to CLUSTER_NUMBER_MAX, and at most one line end. */
must_check int node_number_parse(const char *text, size_t n, uint32_t *out, struct err *e);
/* *out ID_NODES: there is no such file, because the machine is in no cluster. */
must_check int node_number_read(const char *state, uint32_t *out, struct err *e);

enum { NODE_MACHINE = 17 };
/* Differs on another machine, and in a copy of the state folder, which has the same number and certificate. "" if it cannot
 * be read. */
void node_machine_read(const char *state, char out[NODE_MACHINE]);
