/* self.h - checkpoints that a program of a box requests: /opt/atoll/bin/checkpoint.
 * Owns:         a listening socket in the network of each box whose field checkpoints.self is true,
 *               and the connections to it.
 * Does not own: the checkpoints: they are taken as those of the API, of the files only.
 *
 * What a box sends is hostile: a line of one name. A box may take SELF_BURST checkpoints at once and one
 * per second later; they are deleted like automatic ones, also those with a name. */
#pragma once

struct checkpoints;
#define CHECKPOINT_PROGRAM "program" /* the reason */

/* Opens and closes the sockets that boxes need now. Called every second. */
void checkpoint_self_turn(struct checkpoints *c);
void checkpoint_self_free(struct checkpoints *c);
