/* accounts.h - keys, teams and what teams have set (store/shared_rows.h) are the same at all gateways of a cluster.
 * Owns: the exchange between this gateway's store and the database of the cluster.
 *
 *   changed here  ->  account_changes.h  ->  accounts_push     (at once, and every ACCOUNTS_MS)
 *   all, at the start and after an interruption  <-  accounts_page
 *   changed elsewhere  <-  accounts_changed                    (every ACCOUNTS_MS)
 *
 * Requests read the local store as on one machine, so a key works while the database does not answer. A change that
 * was made meanwhile is sent when it answers again. */
#pragma once
#include "api/api.h"

struct cluster_client;
struct gateway_accounts;

enum { ACCOUNTS_MS = 250 };

/* Sets api->accounts. engines lives longer. */
struct gateway_accounts *gateway_accounts_new(struct api *a, struct cluster_client *engines);
/* 1: all rows were read, and the database has answered a moment ago. */
int gateway_accounts_are_fresh(const struct gateway_accounts *x);
void gateway_accounts_free(struct gateway_accounts *x); /* allowed on NULL */
