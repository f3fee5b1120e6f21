/* doctor_child.c - see doctor_child.h. */
#include "daemon/doctor_child.h"
#include "base/log.h"
#include "daemon/child.h"
#include "daemon/doctor.h"
#include "wire/sock.h"

static pid_t *doctor_child_find(struct doctor_children *d, pid_t pid)
{
	for (unsigned i = 0; i < DOCTOR_CHILDREN; i++)
		if (d->pid[i] == pid)
			return &d->pid[i];
	return NULL;
}

void doctor_child_start(struct doctor_children *d, int server_link)
{
	struct frame head = sock_head(WIRE_DOCTOR, 0);
	struct child child = { .link = -1 };
	pid_t *slot = doctor_child_find(d, 0);
	struct err e;

	if (!slot) {
		log_warn("a check of the machine was not started: too many run",
			 LOG_U("most", DOCTOR_CHILDREN));
		return;
	}
	if (child_start(&child, "atoll-doctor", doctor_report, NULL, &e) < 0) {
		log_warn("the check of the machine was not started", LOG_E(&e));
		return;
	}
	*slot = child.pid;
	if (sock_send(server_link, &head, sizeof(head), NULL, 0, &child.link, 1, &e) < 0)
		log_warn("the result of the check cannot be sent", LOG_E(&e));
	child_stop(&child);
}

int doctor_child_ended(struct doctor_children *d, pid_t pid)
{
	pid_t *slot = doctor_child_find(d, pid);

	if (slot)
		*slot = 0;
	return slot != NULL;
}
