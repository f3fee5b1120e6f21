/* e2bcontrol.h - the control plane of the E2B protocol: sandboxes, snapshots, templates, volumes, keys.
 * Owns:         paths of E2B's API, each with its handler (routes.c).
 * Does not own: requests to ports of boxes; they belong to e2b/, whose surface is asked first. */
#pragma once
#include "api/api.h"

extern const struct api_surface e2bcontrol_surface;
extern const struct api_route e2bcontrol_routes[];
extern const unsigned e2bcontrol_nroutes;
