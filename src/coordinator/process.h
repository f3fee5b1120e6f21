/* process.h - the cluster process of a gateway: the only process of its daemon that is connected to the engines of the
 * cluster.
 * Owns: passwords and the key of the CA, connections to engines and to servers.
 *
 * A server sends numbered requests over a stream of JSON (cluster_client.h, driver_process.c):
 *
 *   {ask: n, coordinator: {op, ...}}             ->  {done: n, ok, ...}           (message.h)
 *   {ask: n, query: {name, params}}              ->  {done: n, results}           (queries.h)
 *   {ask: n, join: {token, request, name}}       ->  {done: n, number, certificate, ca}
 *   {ask: n, renew: {role, number, request}}     ->  {done: n, number, certificate, ca}
 *   {ask: n, object: {method, key}}              ->  {done: n, url}               (objects.h)
 *                                                or  {done: n, error, kind} */
#pragma once
#include "base/err.h"

struct cluster_process_conf { /* borrowed for the life of the process */
	const char *database, *secrets;
	const char *etcd;    /* addresses, separated by commas; "": PostgreSQL coordinates */
	const char *objects; /* URL of the bucket; "": none */
};

/* Runs the process until `supervisor` is closed and no server is connected: CLUSTER_ENGINES with a descriptor on it is the
 * stream of a server. walls() is called when no more secrets must be read. Returns the exit status. */
int cluster_process_main(const struct cluster_process_conf *conf, int supervisor,
			 int (*walls)(void *ctx, struct err *e), void *ctx);
