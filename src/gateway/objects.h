/* objects.h - files of nodes in the object store (docs/cluster.md, "Objects"): which exist is in the table `objects`.
 * Owns:         copies in progress, the collection of objects that nothing refers to.
 * Does not own: the store and its keys: the cluster process signs a URL for each request, and nodes send it.
 *
 *   a row "ready"? ── no ──► row "new" ─► PUT by the node that has the file ─► "ready", with SHA-256 and length
 *        └─ yes ─────────────────────────────────────────────┴──► GET by the node that needs it, which checks both */
#pragma once
#include "base/id.h"
#include "coordinator/cluster_client.h"
#include "gateway/node_request.h"

struct gateway_objects;

struct gateway_objects_conf {
	struct loop *loop;
	struct tunnels *tunnels;
	struct cluster_client *engines;
};
struct gateway_objects *gateway_objects_new(const struct gateway_objects_conf *conf);
/* Also ends what is in progress; done() is not called. Allowed on NULL. */
void gateway_objects_free(struct gateway_objects *g);

struct objects_what {
	const char *snapshot, *team, *name; /* copied. name: "" for none */
	unsigned owner;                     /* node that has the file */
	unsigned to;                        /* node that needs it; 0: none, it is only stored */
};
struct objects_copy;
/* done() is called once, from the loop, unless objects_copy_cancel() comes first. why NULL: done. */
struct objects_copy *objects_copy_new(struct gateway_objects *g, const struct objects_what *w,
				      void (*done)(void *user, const char *why), void *user);
void objects_copy_cancel(struct objects_copy *x); /* allowed on NULL */
/* 1: the store failed a moment ago; the caller does not wait for it. */
int gateway_objects_are_away(const struct gateway_objects *g);
/* A new snapshot of a node: its file is stored, if the store answers, and if the id is one of that node. */
void gateway_objects_keep(struct gateway_objects *g, const struct objects_what *w);
/* A client deletes this snapshot, which it names by id or name: its object is no longer used. */
void gateway_objects_forget(struct gateway_objects *g, const char *team, const char *snapshot);
