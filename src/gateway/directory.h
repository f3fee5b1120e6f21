/* directory.h - rows of nodes on their way into the database of the cluster.
 * Owns: batches that are not stored yet. A batch is acknowledged after its commit; one whose outcome is not known is sent
 * again, which changes nothing if it was stored: rows have revisions.
 *
 * A node is not trusted: a row names an object that belongs to the node by its number, has one of six kinds and bounded
 * texts, or the connection of the node is closed. */
#pragma once
#include "api/api.h"
#include "cluster/tunnel.h"

struct cluster_client;
struct directory;

enum {
	DIRECTORY_EVENTS_DAYS = 30, /* older partitions are dropped */
	DIRECTORY_RUNS_DAYS = 90,
	DIRECTORY_AUDIT_DAYS = 400,
};

/* t: the hook `rows` is set. */
struct directory *directory_new(struct loop *l, struct tunnels *t, struct cluster_client *engines);
void directory_free(struct directory *d); /* allowed on NULL */
/* Rows of this gateway itself; kept(user, last) is called when they are stored. */
must_check int directory_add_own(struct directory *d, unsigned number, const json_t *rows,
				 uint64_t last, void (*kept)(void *user, uint64_t last), void *user,
				 struct err *e);
/* The row of a box that a node has just made, from the header of its answer. Sent with others of this node, and before any
 * other request of this gateway to the database: a list that it reads later contains the box. A text that is not such a row
 * is ignored. stored(user, team) is called when the row is in the database, also by another way, or after a minute; NULL:
 * nothing waits for it. */
void directory_add_box(struct directory *d, unsigned node, const char *text, const char *team,
		       void (*stored)(void *user, const char *team), void *user);
/* 0: the rows are such rows of this node. */
must_check int directory_check(const json_t *rows, unsigned node, struct err *e);

struct directory_figures {
	uint64_t rows, batches, repeated, refused;
	uint64_t rejected; /* rows that the database rejects; they are left out */
	unsigned waiting;  /* batches */
};
struct directory_figures directory_figures(const struct directory *d);
