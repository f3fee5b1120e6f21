/* doctor_child.h - children of the supervisor that check the machine for GET /v1/doctor.
 * Owns: which of them run. At most DOCTOR_CHILDREN do, whatever a server requests: each is a
 *       privileged process. */
#pragma once
#include <sys/types.h>

enum { DOCTOR_CHILDREN = 4 };

struct doctor_children {
	pid_t pid[DOCTOR_CHILDREN]; /* 0: none */
};

/* Starts one; the server reads the result from it directly. If too many run, the request gets no
 * answer, and the server reports that after its time limit. */
void doctor_child_start(struct doctor_children *d, int server_link);
int doctor_child_ended(struct doctor_children *d, pid_t pid); /* 1: it was one of them */
