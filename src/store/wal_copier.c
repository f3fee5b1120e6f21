/* wal_copier.c - see wal_copier.h.
 *
 *   loop thread                      this thread
 *   commit -> hook: dirty, pages     sleeps until dirty, then until CALM_S has passed or
 *             (signal if many)       MANY pages wait; copies; sleeps
 *   sync -> signal                   at once: fdatasync() of the WAL, a byte into the pipe
 *
 * A passive checkpoint cannot restart the WAL while commits keep arriving: at the end of each
 * checkpoint there is one more commit. So a WAL of more than FLOOD pages is emptied with the
 * writer locked out, for the time of the few pages of the last moment and their sync. */
#include "store/wal_copier.h"
#include "store/sql.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
	MANY = 1000,
	FLOOD = 8192,    /* 32 MiB */
	LARGE = 4 << 20, /* bytes of a WAL file that is truncated */
	CALM_S = 3,
	FLOOD_WAIT_MS = 100, /* wait for readers; else the next checkpoint retries */
};

static unsigned wal_copier_waiting(const struct wal_copier *c)
{
	return c->pages < c->done ? c->pages : c->pages - c->done;
}

static int after_commit(void *user, sqlite3 *db, const char *name, int pages)
{
	struct wal_copier *c = user;

	(void)db;
	(void)name;
	pthread_mutex_lock(&c->lock);
	c->pages = (unsigned)pages;
	/* Only a thread that sleeps without a limit or for CALM_S needs a wake-up. */
	if (!c->dirty || wal_copier_waiting(c) >= MANY)
		pthread_cond_signal(&c->wake);
	c->dirty = 1;
	pthread_mutex_unlock(&c->lock);
	return SQLITE_OK;
}

/* Called with the lock. Sleeps until there is work, or until it must stop. 1: CALM_S passed with
 * fewer than MANY waiting pages. */
static int sleep_well(struct wal_copier *c)
{
	struct timespec until;

	while (!c->stopping && !c->dirty && !c->nsyncs)
		pthread_cond_wait(&c->wake, &c->lock);
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += CALM_S;
	while (!c->stopping && !c->nsyncs && wal_copier_waiting(c) < MANY)
		if (pthread_cond_timedwait(&c->wake, &c->lock, &until) == ETIMEDOUT)
			return 1;
	return 0;
}

/* The WAL restarts after a complete checkpoint, but its file keeps its size until it is
 * truncated. The writer is locked out for the duration of an ftruncate(). */
static void wal_copier_truncate_wal(struct wal_copier *c)
{
	sqlite3_wal_checkpoint_v2(c->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
}

static int is_large(const struct wal_copier *c)
{
	struct stat st;

	return stat(c->wal, &st) == 0 && st.st_size > LARGE;
}

static int wal_copier_copy(sqlite3 *db, unsigned *out_done)
{
	int log = 0, done = 0;
	int rc = sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_PASSIVE, &log, &done);

	if (rc == SQLITE_OK && log > FLOOD)
		rc = sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_RESTART, &log, &done);
	*out_done = done > 0 ? (unsigned)done : 0;
	return rc == SQLITE_OK && done >= log;
}

#ifdef ATOLL_TEST
/* A disk that is slow: if FILE.hold exists, it becomes FILE.held, and the sync begins when that is removed. */
static void wal_copier_hold(const char *file)
{
	enum { HOLD_MS = 10 };
	char hold[4200], held[4200];

	snprintf(hold, sizeof(hold), "%s.hold", file);
	snprintf(held, sizeof(held), "%s.held", file);
	if (rename(hold, held) < 0)
		return;
	while (access(held, F_OK) == 0)
		nanosleep(&(struct timespec){ .tv_nsec = HOLD_MS * 1000000L }, NULL);
}
#else
static void wal_copier_hold(const char *file)
{
	(void)file;
}
#endif

/* The commits of synchronous = NORMAL are in the file, and not on the disk. */
static void wal_copier_sync_now(const struct wal_copier *c, int notify)
{
	int fd;
	char code = 0;

	wal_copier_hold(c->wal);
	fd = open(c->wal, O_RDWR | O_CLOEXEC);
	if (fd < 0 || fdatasync(fd) < 0)
		code = (char)errno;
	if (fd >= 0)
		close(fd);
	(void)!write(notify, &code,
		     1); /* the pipe has room for it; without a reader it is not needed */
	close(notify);
}

/* Called with the lock. */
static void wal_copier_serve_syncs(struct wal_copier *c)
{
	while (c->nsyncs) {
		int notify = c->syncs[--c->nsyncs];

		pthread_mutex_unlock(&c->lock);
		wal_copier_sync_now(c, notify);
		pthread_mutex_lock(&c->lock);
	}
}

int wal_copier_sync(struct wal_copier *c, struct err *e)
{
	int ends[2], queued;

	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
		return err_sys(e, "wait for the disk");
	pthread_mutex_lock(&c->lock);
	queued = c->started && c->nsyncs < WAL_COPIER_SYNCS;
	if (queued) {
		c->syncs[c->nsyncs++] = ends[1];
		pthread_cond_signal(&c->wake);
	}
	pthread_mutex_unlock(&c->lock);
	if (!queued)
		wal_copier_sync_now(c, ends[1]);
	return ends[0];
}

static void *wal_copier_work(void *user)
{
	struct wal_copier *c = user;

	pthread_mutex_lock(&c->lock);
	for (;;) {
		unsigned done;
		int all, calm, large;

		calm = sleep_well(c);
		wal_copier_serve_syncs(c);
		if (c->stopping)
			break;
		if (!c->dirty || (!calm && wal_copier_waiting(c) < MANY))
			continue;
		c->dirty = 0;
		pthread_mutex_unlock(&c->lock);
		all = wal_copier_copy(c->db, &done);
		large = is_large(c);
		if (all && calm && large)
			wal_copier_truncate_wal(c);
		pthread_mutex_lock(&c->lock);
		c->done = done;
		/* A full disk or a concurrent reader: not reported, the rows are safe in the
		 * WAL. */
		c->dirty |= !all || (large && !calm); /* then truncated after CALM_S */
		if (!all && wal_copier_waiting(c) >= MANY)
			c->done = c->pages; /* do not retry at once */
	}
	pthread_mutex_unlock(&c->lock);
	return NULL;
}

static int start_thread(struct wal_copier *c)
{
	pthread_attr_t attr;
	sigset_t all, old;
	int rc;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 256 << 10);
	/* Signals are for the loop. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(&c->thread, &attr, wal_copier_work, c);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	return rc;
}

int wal_copier_start(struct wal_copier *c, sqlite3 *db, const char *path, unsigned timeout_ms,
		     struct err *e)
{
	int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX;
	pthread_condattr_t attr;
	int rc = sqlite3_open_v2(path, &c->db, flags, NULL);

	/* The pragma reads the schema, for which it needs a read lock. */
	if (rc == SQLITE_OK)
		rc = sqlite3_busy_timeout(c->db, (int)timeout_ms);
	if (rc == SQLITE_OK)
		rc = sqlite3_exec(c->db, "PRAGMA synchronous = NORMAL", NULL, NULL, NULL);
	if (rc != SQLITE_OK) {
		sql_fail(c->db, rc, e);
		sqlite3_close(c->db);
		c->db = NULL;
		return -1;
	}
	sqlite3_busy_timeout(c->db, FLOOD_WAIT_MS);
	snprintf(c->wal, sizeof(c->wal), "%s-wal", path);
	pthread_mutex_init(&c->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&c->wake, &attr);
	pthread_condattr_destroy(&attr);
	c->started = (errno = start_thread(c)) == 0;
	if (!c->started) {
		err_sys(e, "start of the checkpoint thread");
		wal_copier_stop(c);
		return -1;
	}
	sqlite3_wal_hook(db, after_commit, c); /* replaces the automatic checkpoints of SQLite */
	return 0;
}

void wal_copier_stop(struct wal_copier *c)
{
	if (!c->db)
		return;
	if (c->started) {
		pthread_mutex_lock(&c->lock);
		c->stopping = 1;
		pthread_cond_signal(&c->wake);
		pthread_mutex_unlock(&c->lock);
		pthread_join(c->thread, NULL);
	}
	sqlite3_close(c->db);
	pthread_cond_destroy(&c->wake);
	pthread_mutex_destroy(&c->lock);
	*c = (struct wal_copier){ 0 };
}
