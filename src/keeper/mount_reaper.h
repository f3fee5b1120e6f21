/* mount_reaper.h - a thread that releases the mounts of boxes that have ended, so that no client
 * waits for it.
 * Owns:         the thread, and a few mount namespaces that it has not released yet.
 * Does not own: those of running boxes; each is in its keeper_box.
 *
 * To destroy the mounts of a box the kernel waits twice for all processors. It does so when the
 * last holder releases them. If that is init, the client that ends the box waits for it; so the
 * keeper holds them a moment longer. Only if this delays nothing but the release of memory: a box
 * with a volume, a layer or a disk image has released those when its end is reported. */
#pragma once
#include "base/err.h"

struct mount_reaper;

must_check int mount_reaper_start(struct mount_reaper **out, struct err *e);
void mount_reaper_stop(struct mount_reaper *l);
/* Releases it soon; immediately if too many wait already. */
void mount_reaper_close(struct mount_reaper *l, int take_ns);
