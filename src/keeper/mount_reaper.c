/* mount_reaper.c - see mount_reaper.h. */
#include "keeper/mount_reaper.h"
#include "base/cleanup.h"

#include <pthread.h>
#include <unistd.h>

enum { MOST = 32 };

struct mount_reaper {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t work;
	int ns[MOST];
	unsigned n;
	int stop;
};

static void *close_all(void *arg)
{
	struct mount_reaper *l = arg;
	int ns;

	for (;;) {
		pthread_mutex_lock(&l->lock);
		while (!l->n && !l->stop)
			pthread_cond_wait(&l->work, &l->lock);
		ns = l->n ? l->ns[--l->n] : -1;
		pthread_mutex_unlock(&l->lock);
		if (ns < 0)
			return NULL;
		close(ns);
	}
}

int mount_reaper_start(struct mount_reaper **out, struct err *e)
{
	auto_free struct mount_reaper *l = calloc(1, sizeof(*l));

	if (!l)
		abort();
	pthread_mutex_init(&l->lock, NULL);
	pthread_cond_init(&l->work, NULL);
	if (pthread_create(&l->thread, NULL, close_all, l) != 0)
		return err_set(e, ERR_SYS, "cannot start the mount reaper");
	*out = steal(&l);
	return 0;
}

void mount_reaper_stop(struct mount_reaper *l)
{
	pthread_mutex_lock(&l->lock);
	l->stop = 1;
	pthread_cond_signal(&l->work);
	pthread_mutex_unlock(&l->lock);
	pthread_join(l->thread, NULL);
	pthread_mutex_destroy(&l->lock);
	pthread_cond_destroy(&l->work);
	free(l);
}

void mount_reaper_close(struct mount_reaper *l, int take_ns)
{
	auto_fd int ns = take_ns;

	if (ns < 0)
		return;
	pthread_mutex_lock(&l->lock);
	if (l->n < MOST)
		l->ns[l->n++] = steal_fd(&ns);
	pthread_cond_signal(&l->work);
	pthread_mutex_unlock(&l->lock);
}
