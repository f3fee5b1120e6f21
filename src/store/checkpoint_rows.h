/* checkpoint_rows.h - shared by the files about checkpoints of this folder. */
#pragma once
#include "store/checkpoints.h"
#include "store/sql.h"

#define CHECKPOINT_COLUMNS                                                                         \
	"id, team, box, generation, parent, origin, same_as, chain, name, note, "                  \
	"author, reason, created_ns, expires_ns, bytes, files, deleted, frozen_us, took_us, "      \
	"state, durable, pinned, template, tier, spec"

enum { STORE_CHAIN_TEXT = STORE_CHAIN * (ID_MAX + 3) + 3 };
/* text: as long as the statement. */
void checkpoint_rows_bind_chain(struct sql *q, const struct store_checkpoint *x,
				char text[STORE_CHAIN_TEXT]);
must_check int checkpoint_rows_list(struct sql *q, unsigned limit, struct store_checkpoints *out,
				    struct err *e);
must_check int checkpoint_rows_ids(struct sql *q, unsigned limit, struct store_ids *out,
				   struct err *e);
/* A statement with one value, an id. */
must_check int checkpoint_rows_run(struct store *s, const char *text, const char *id,
				   struct err *e);
