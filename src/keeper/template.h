/* template.h - the skeleton of a box's root.
 * Owns: the allowlist of files of the host's /etc that a box sees, and the generated files. */
#pragma once
#include "base/err.h"

/* Fills the folder (in the keeper's mount namespace) with /etc, /home/user, links into /usr and
 * mount points. */
/* one_id: the keeper has one id, so owners cannot be changed. */
must_check int template_base(int dir, int one_id, struct err *e);

/* 1: a box of base has this folder ("" is its root; no slash in front), perhaps: of /usr and /etc it is
 * known only what the host has. */
int template_has_folder(const char *path);

/* Fills the folder that lies above the root of an image: mount points as folders, /opt/atoll, and
 * the files of /etc about names of hosts. */
must_check int template_image(int dir, int one_id, struct err *e);

struct template_row {
	const char *path, *why;
};
extern const struct template_row template_etc[];
extern const unsigned template_netc;
