/* template.h - the skeleton of a box's root.
 * Owns: the allowlist of what a box may see of the host's /etc, and the files we write ourselves. */
#pragma once
#include "base/err.h"

/* Fills the folder (on the stage) with /etc, /home/user, links into /usr and mount points. */
/* one_id: we own everything and can give nothing away. */
must_check int template_base(int dir, int one_id, struct err *e);

struct template_row {
	const char *path, *why;
};
extern const struct template_row template_etc[];
extern const unsigned template_netc;
