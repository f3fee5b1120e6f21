/* doctor_cluster.h - rows of `atoll doctor` for a machine with a role in a cluster. */
#pragma once

enum doctor_verdict { DOCTOR_GOOD, DOCTOR_POOR, DOCTOR_BAD };
typedef void doctor_row(void *user, const char *name, enum doctor_verdict v, const char *value,
			const char *fix);

/* Certificate, clock, and what the role needs: gateways, the database. No rows for a machine that is alone, or whose
 * settings cannot be read (another command reports that). */
void doctor_cluster(doctor_row *row, void *user);
