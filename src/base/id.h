/* id.h - ids that cannot be guessed and are easy to read aloud.
 *
 *   k3xq7h2mzp4a        a machine that is alone: ID_LEN random letters
 *   aahk3xq7h2mzp4a     a machine of a cluster: three letters in front, the number of the node
 *
 * The letters are a-z and 2-7, for 0 to 31; of the number the most significant one comes first. Both
 * lengths are valid everywhere: a machine keeps its ids when it joins a cluster. */
#pragma once
#include "base/err.h"
#include <stdint.h>

#define ID_LEN 12 /* random letters, 60 bits */
#define ID_MAX 15 /* the longest id; buffers have one byte more */
#define ID_NODES 32768

/* From now on id_new() of this process puts this number in front; ID_NODES or more: none. */
void id_set_node(uint32_t number);
uint32_t id_own_node(void); /* ID_NODES: none was set */
must_check int id_new(char out_id[ID_MAX + 1], struct err *e);
int id_valid(const char *id);       /* exactly those letters, and one of both lengths */
int id_node(const char *id);        /* the number in it; -1: it has none, or is not an id */
uint32_t id_hash(const char *text); /* FNV-1a: for tables and short names, not for security */
must_check int id_random(void *out, unsigned len, struct err *e);
