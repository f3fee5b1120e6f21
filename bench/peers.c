/* peers.c - a plain process, and bubblewrap. */
#include "peers.h"

#include "base/cleanup.h"
#include "spawn.h"
#include "subject.h"
#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static const char *const true_argv[] = { "/bin/true", NULL };
static const struct spawn plain = { .path = "/bin/true", .argv = true_argv, .mnt_ns = -1 };

int fork_open(struct subject *s, struct err *e)
{
	(void)s;
	return spawn_wait(&plain, e);
}

int fork_once(struct subject *s, struct err *e)
{
	(void)s;
	return spawn_wait(&plain, e);
}

/* As its manual shows a shell: every namespace, the host's /usr read-only, nothing else of the
 * host. No cgroup and no filter: bubblewrap does not set them up, which makes it faster here. */
static const char *const bwrap_head[] = {
	"bwrap",     "--unshare-all", "--uid", "1000",      "--gid",   "1000",
	"--ro-bind", "/usr",          "/usr",  "--ro-bind", "/etc",    "/etc",
	"--proc",    "/proc",         "--dev", "/dev",      "--tmpfs", "/tmp",
};
static const char *const usr_links[] = { "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32" };
static const char *bwrap_argv[ARRAY_LEN(bwrap_head) + 3 * ARRAY_LEN(usr_links) + 3];
static char bwrap_path[PATH_MAX];
static char link_target[ARRAY_LEN(usr_links)][64];

/* /bin, /lib and others as this host has them: links into /usr, or folders. */
static unsigned add_links(unsigned at)
{
	for (unsigned i = 0; i < ARRAY_LEN(usr_links); i++) {
		ssize_t n = readlink(usr_links[i], link_target[i], sizeof(link_target[i]) - 1);

		if (n < 0 && access(usr_links[i], F_OK) < 0)
			continue;
		bwrap_argv[at++] = n < 0 ? "--ro-bind" : "--symlink";
		bwrap_argv[at++] = n < 0 ? usr_links[i] : link_target[i];
		bwrap_argv[at++] = usr_links[i];
	}
	return at;
}

int bwrap_open(struct subject *s, struct err *e)
{
	const char *const ask[] = { "bwrap", "--version", NULL };
	unsigned n = ARRAY_LEN(bwrap_head);

	if (spawn_find("bwrap", bwrap_path, sizeof(bwrap_path), e) < 0)
		return -1;
	spawn_first_line(bwrap_path, ask, s->version, sizeof(s->version));
	memcpy(bwrap_argv, bwrap_head, sizeof(bwrap_head));
	n = add_links(n);
	bwrap_argv[n++] = "--";
	bwrap_argv[n++] = "/bin/true";
	assert(n < ARRAY_LEN(bwrap_argv));
	return bwrap_once(s, e);
}

int bwrap_once(struct subject *s, struct err *e)
{
	struct spawn sp = { .path = bwrap_path, .argv = bwrap_argv, .quiet = 1, .mnt_ns = -1 };

	(void)s;
	return spawn_wait(&sp, e);
}
