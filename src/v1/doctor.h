/* doctor.h - GET /v1/doctor: what `atoll doctor --json` prints, for operators.
 * Owns: the calls that wait for a check, and the connection by which its result arrives.
 *
 * The server has no access to the machine, so a child of the supervisor performs the check. All
 * calls that arrive during one check get its result. */
#pragma once
#include "api/api.h"

void doctor_show(struct call *c);
void doctor_connect(struct api *a, int take_fd); /* the result arrives here as one packet */
void doctor_free(struct doctor *d);
