/* sweep.c - cleans up after an earlier keeper: adopts running boxes and removes the rest. Only by
 * record: an id, a pid with its start time, a uid range. Never by the form of a name. */
#include "base/cleanup.h"
#include "jail/launch.h"
#include "keeper/keeper_internal.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A pidfd of the recorded process, if exactly this process still runs. */
static int find_process(const struct keeper *k, const struct box_record *m)
{
	int pid = m->about.init_pid, low, high;

	if (m->boot != k->host.boot || pid <= 1 || !m->start_time)
		return -1;
	low = (int)syscall(SYS_pidfd_open, pid, 0);
	/* The start time is read after the pidfd was opened, so it cannot be that of another
	 * process. */
	if (low >= 0 && box_record_start_time(k->host.proc, pid, low) != m->start_time) {
		close(low);
		return -1;
	}
	high = low < 0 ? -1 : fcntl(low, F_DUPFD_CLOEXEC, JAIL_FD_HIGH);
	if (low >= 0)
		close(low);
	return high;
}

static void adopt_or_end(struct keeper *k, const struct box_record *m, uint32_t place)
{
	struct keeper_box *b = keeper_box_new(&k->boxes, m->about.id);
	struct err e;

	b->meta = *m;
	b->place = place;
	if (m->about.uid_base)
		uid_range_mark(&k->ranges, m->about.uid_base);
	teardown_watch_cpu(k, b);
	b->death.fd = find_process(k, m);
	if (b->death.fd < 0 || keeper_watch(k, &b->death, &e) < 0) {
		teardown_seen(k, b);
		return;
	}
	/* No client had the box, or its end was started: end it. */
	if (m->about.state != WIRE_BOX_TAKEN) {
		teardown_kill(k, b);
		return;
	}
	checkpoint_adopt(k, b);
	deadline_adopt(k, b);
}

/* An unreadable record may belong to a running box, so it is neither adopted nor removed. */
static void from_record(uint32_t place, const struct box_record *m, void *arg)
{
	struct keeper *k = arg;

	if (m && !keeper_box_find(&k->boxes, m->about.id))
		adopt_or_end(k, m, place);
	else
		fprintf(stderr, "atoll: keeper: record %u of boxes is %s; left alone\n", place,
			m ? "another's, too" : "not whole");
}

/* A record file of an older keeper. It is removed when the box has a record in the new format. */
static int from_old(const char *id, void *arg)
{
	struct keeper *k = arg;
	uint32_t place;
	struct box_record m;
	struct err e;

	if (keeper_box_find(&k->boxes,
			    id)) { /* it has one: the keeper that wrote it was killed before it
				    * removed the file */
		box_record_old_remove(k->host.run, id);
		return 0;
	}
	if (box_record_old_read(k->host.run, id, &m, &e) < 0) {
		/* Empty: the keeper died before there was anything to record. */
		if (e.kind == ERR_NOT_FOUND)
			box_record_old_remove(k->host.run, id);
		else
			fprintf(stderr, "atoll: keeper: %s; left alone\n", e.msg);
		return 0;
	}
	if (record_file_take(&k->records, &place, &e) < 0 ||
	    record_file_write(k->records.fd, place, &m, &e) < 0) {
		fprintf(stderr, "atoll: keeper: %s; box %s is left alone\n", e.msg, id);
		return 0;
	}
	adopt_or_end(k, &m, place);
	box_record_old_remove(k->host.run, id);
	return 0;
}

/* A cgroup below the parent that no record names: a cached one, or one of an incomplete box. */
static void remove_unnamed(const char *name, void *arg)
{
	struct keeper *k = arg;
	struct err e;

	for (struct keeper_box *b = keeper_box_after(&k->boxes, ""); b;
	     b = keeper_box_after(&k->boxes, b->meta.about.id))
		if (strcmp(b->meta.cgroup, name) == 0)
			return;
	cgroup_kill(&k->host.cgroups, name);
	if (cgroup_remove(&k->host.cgroups, name, &e) < 0)
		fprintf(stderr, "atoll: keeper: %s\n", e.msg);
}

int sweep_start(struct keeper *k, struct err *e)
{
	if (record_file_each(&k->records, from_record, k, e) < 0 ||
	    box_record_old_each(k->host.run, from_old, k, e) < 0 ||
	    record_file_begin(&k->records, e) < 0)
		return -1;
	cgroups_each(&k->host.cgroups, remove_unnamed, k);
	return 0;
}
