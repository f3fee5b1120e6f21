/* doctor.h - the checks of `atoll doctor`, for GET /v1/doctor. */
#pragma once

/* Main function of a child of the supervisor (daemon/child.h): sends the rows of `atoll doctor
 * --json` as one packet to descriptor 3, and exits. */
void doctor_report(void *ctx);
