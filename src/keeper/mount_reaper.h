/* mount_reaper.h - the mounts of boxes that have ended, let go of by a thread that nobody waits for.
 * Owns:         the thread, and a few mount namespaces that it has not come to yet.
 * Does not own: those of living boxes; each is in its kbox.
 *
 * To take a box's mounts apart the kernel waits twice for all processors. It does so when the last
 * holder lets go. If that is init, whoever ends a box waits for it; so the keeper holds them a moment
 * longer. Only where nothing but memory comes of it: a box with a volume, a layer or a disk image has
 * let go of those when it is gone. */
#pragma once
#include "base/err.h"

struct linger;

must_check int mount_reaper_start(struct linger **out, struct err *e);
void mount_reaper_stop(struct linger *l);
/* Soon; at once if too many wait already. */
void mount_reaper_close(struct linger *l, int take_ns);
