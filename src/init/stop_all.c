/* stop_all.c - see stop_all.h. */
#include "init/stop_all.h"
#include "initlib/boot_id.h"
#include "init/conn.h"
#include "init/exec.h"
#include "initlib/sys.h"

static struct stop_waiter {
	struct conn *conn; /* NULL: a free slot */
	uint32_t ref;
} waiters[STOP_MAX];
static int stopping;

int stop_busy(void)
{
	return stopping;
}

int stop_start(struct conn *c, uint32_t ref)
{
	struct stop_waiter *w = waiters;
	int err;

	while (w < waiters + STOP_MAX && w->conn)
		w++;
	if (w == waiters + STOP_MAX)
		return -EAGAIN;
	err = exec_kill_all();
	if (err < 0)
		return err;
	*w = (struct stop_waiter){ c, ref };
	stopping = 1;
	return 0;
}

void stop_drop(const struct conn *c)
{
	int i;

	for (i = 0; i < STOP_MAX; i++)
		if (waiters[i].conn == c)
			waiters[i].conn = NULL;
}

/* A client whose socket is full gets its answer in a later turn: its socket wakes init. */
void stop_turn(void)
{
	int i;

	if (stopping && exec_childless()) {
		stopping = 0;
		boot_again();
	}
	for (i = 0; !stopping && i < STOP_MAX; i++) {
		struct frame done = conn_head(WIRE_DONE, waiters[i].ref);

		if (waiters[i].conn && conn_answer(waiters[i].conn, &done, sizeof(done), -1))
			waiters[i].conn = NULL;
	}
}
