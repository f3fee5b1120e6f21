/* prove_host.c - test builds: the probe runs as a process of the host, in no box, so that every probe is seen to fail. */
#include "base/cleanup.h"
#include "prove/prove_internal.h"

#ifdef ATOLL_TEST

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

extern const char prove_probe_image[], prove_probe_image_end[]; /* probe_image.S */
extern char **environ;

static uint64_t prove_host_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static _Noreturn void prove_host_be(const struct prove_run *r, const char *const *words, int in,
				    int out)
{
	size_t n = (size_t)(prove_probe_image_end - prove_probe_image);
	int image = memfd_create("probe", 0);
	const char *argv[64] = { "probe" };

	for (unsigned i = 0; words[i] && i + 2 < ARRAY_LEN(argv); i++)
		argv[i + 1] = words[i];
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* What it may change of mounts and names is its own. */
	if (unshare(CLONE_NEWNS | CLONE_NEWUTS) < 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 || chdir(r->canary.folder) < 0 ||
	    write(image, prove_probe_image, n) != (ssize_t)n || dup2(in, 0) < 0 || dup2(out, 1) < 0)
		_exit(1);
	fexecve(image, (char *const *)argv, environ);
	_exit(1);
}

static pid_t prove_host_start(const struct prove_run *r, const char *const *words, int in[2],
			      int out[2])
{
	pid_t pid;

	if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0)
		return -1;
	pid = fork();
	if (pid == 0)
		prove_host_be(r, words, in[0], out[1]);
	close(in[0]);
	close(out[1]);
	return pid;
}

/* Up to the text, or to its end. */
static void prove_host_read(struct prove_box *x, int fd, const char *text)
{
	char bytes[4096];
	ssize_t n;

	while (!(text && strstr(buf_str(&x->out), text)) && x->out.len < PROVE_OUTPUT &&
	       (n = read(fd, bytes, sizeof(bytes))) > 0)
		buf_add(&x->out, bytes, (size_t)n);
}

/* Files of the probe outside of the folder of the proof, and its folders in it. */
static void prove_host_clean(const struct prove_run *r)
{
	static const char *const folders[] = { "/dev/shm", "/tmp" };
	static const char *const made[] = { "prove-link", "prove-hard", "prove-node", "prove-mount",
					    "prove-root" };
	char path[200];

	for (unsigned i = 0; i < ARRAY_LEN(folders); i++) {
		snprintf(path, sizeof(path), "%s/other-%.20s", folders[i], r->canary.token);
		unlink(path);
	}
	for (unsigned i = 0; i < ARRAY_LEN(made); i++) {
		snprintf(path, sizeof(path), "%s/%s", r->canary.folder, made[i]);
		remove(path);
	}
}

int prove_on_host(struct prove_run *r, const char *const *hold, const char *const *attempt,
		  struct err *e)
{
	int in[2][2], out[2][2];
	pid_t a, b;

	r->a.started_ns = r->b.started_ns = prove_host_now_ns();
	b = prove_host_start(r, hold, in[1], out[1]);
	if (b < 0)
		return err_sys(e, "start the probe");
	prove_host_read(&r->b, out[1][0], "\"way\": \"listens\"");
	a = prove_host_start(r, attempt, in[0], out[0]);
	if (a < 0)
		return err_sys(e, "start the probe");
	prove_host_read(&r->a, out[0][0], "\"probe\": \"end\"");
	r->a.last_ns = r->b.last_ns = prove_host_now_ns();
	r->a.handle.about.init_pid = a;
	r->b.handle.about.init_pid = b;
	prove_judge_processes(r);
	close(in[0][1]);
	close(in[1][1]);
	prove_host_read(&r->a, out[0][0], NULL);
	prove_host_read(&r->b, out[1][0], NULL);
	close(out[0][0]);
	close(out[1][0]);
	waitpid(a, NULL, 0);
	waitpid(b, NULL, 0);
	prove_host_clean(r);
	return 0;
}

#else

int prove_on_host(struct prove_run *r, const char *const *hold, const char *const *attempt,
		  struct err *e)
{
	(void)r;
	(void)hold;
	(void)attempt;
	return err_set(e, ERR_INVALID, "a probe can run without a box in test builds only");
}

#endif
