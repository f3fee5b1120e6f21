/* gvisor.h - the tier gvisor: runsc is the only program of an outer box.
 * Owns:         the command line and the configuration of runsc, the examination of its file.
 * Does not own: the root of the outer box (jail/mnt_gvisor.c), its start (jail/launch.h). */
#pragma once
#include "base/err.h"
#include "tier/tier.h"

enum { GVISOR_OLDEST = 20221219 }; /* Debian 12 has this build */

/* Writes what the guest needs to a folder of the keeper root: config.json and the images of mux and init. The configuration is the
 * same for every box of a host: no value of a request is in it. overlay: 0 where roots of boxes are no overlays, so that /etc is
 * read-only. */
must_check int gvisor_write_files(int dir, int overlay, int mux_exe, int init_exe, struct err *e);
/* The library of src/mux/preload.c, and the file that /etc/ld.so.preload of boxes leads to: in the other tiers that
 * folder is empty, and the link leads nowhere. */
must_check int gvisor_write_preload(int dir, const char *image, size_t n, struct err *e);

/* The output of `runsc --version`: its version without "release-", and its date as a number. */
must_check int gvisor_parse_version(const char *text, char out_version[40], unsigned *out_date,
				    struct err *e);

/* Examines this file: owner, mode, hash, version, and which platform starts a program fastest.
 * limit_ms: for each start of it. */
must_check int gvisor_probe_file(const char *path, int limit_ms, struct wire_tier_facts *out,
				 struct err *e);

/* Of the row of the table. */
extern const char *const gvisor_places[];
int gvisor_probe(const struct tier_host *h, struct wire_tier_facts *out, struct err *e);
int gvisor_outer_box(const struct tier_host *h, const struct wire_tier_facts *f,
		     const struct wire_box *about, struct spec *sp, struct jail_engine *out,
		     struct err *e);
void gvisor_release(struct jail_engine *engine);
