/* gvisor.c - see gvisor.h. The probe runs runsc as the keeper's user, in a process that has a time
 * limit; boxes run it as their own users, in an outer box. */
#include "tier/gvisor.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/hex.h"
#include "base/sha256.h"
#include "jail/feature.h"
#include "jail/seccomp.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define INSTALL "(apt install runsc)" /* what helps, where doctor finds it */
#define SCRATCH "/dev/shm" /* of the probe: a tmpfs of its own in a mount namespace of its own */

enum {
	PROBE_MS = 5000,     /* for each start of runsc */
	PROBE_OUTPUT = 4096, /* bytes; more is not the output of runsc */
	PROBE_ROUNDS = 3,    /* per platform, if there is a choice */
};

/* "bounding" ... "permitted": those of init, and SYS_ADMIN for the guest stub: it makes a pid
 * namespace and mounts /proc, in the kernel of gVisor. /tmp would be a tmpfs of gVisor, outside the
 * limit of the disk and outside snapshots. The writable layer changes without the knowledge of the mount
 * that shows it: mounts are therefore "shared". */
#define CAPS                                                                                       \
	"[\"CAP_CHOWN\",\"CAP_DAC_OVERRIDE\",\"CAP_FOWNER\",\"CAP_FSETID\",\"CAP_KILL\","          \
	"\"CAP_SETGID\",\"CAP_SETUID\",\"CAP_SETPCAP\",\"CAP_NET_BIND_SERVICE\","                  \
	"\"CAP_SYS_ADMIN\"]"

/* clang-format off */
#define GVISOR_CONFIG(etc) \
	"{\"ociVersion\":\"1.0.0\",\"hostname\":\"atoll\",\n" \
	"\"process\":{\"user\":{\"uid\":0,\"gid\":0},\"cwd\":\"/\",\"noNewPrivileges\":true,\n" \
	"\"args\":[\"/opt/atoll/engine/mux\",\"guest\",\"/opt/atoll/engine/init\",\"1000\",\"1\",\"/opt/atoll/engine/upper\"],\"env\":[\"PATH=/usr/bin\"],\n" \
	"\"rlimits\":[{\"type\":\"RLIMIT_NOFILE\",\"soft\":1024,\"hard\":16384}," \
	"{\"type\":\"RLIMIT_CORE\",\"soft\":0,\"hard\":0}],\n" \
	"\"capabilities\":{\"bounding\":" CAPS ",\n\"effective\":" CAPS ",\n\"permitted\":" CAPS \
	",\n\"inheritable\":[]}},\n" \
	"\"root\":{\"path\":\"/box\",\"readonly\":false},\n" \
	"\"mounts\":[{\"destination\":\"/proc\",\"type\":\"proc\",\"source\":\"proc\"},\n" \
	"{\"destination\":\"/dev\",\"type\":\"tmpfs\",\"source\":\"tmpfs\"},\n" \
	"{\"destination\":\"/dev/shm\",\"type\":\"tmpfs\",\"source\":\"tmpfs\",\"options\":[\"mode=1777\",\"nosuid\",\"nodev\",\"noexec\"]},\n" \
	"{\"destination\":\"/tmp\",\"type\":\"bind\",\"source\":\"/box/tmp\"},\n" \
	etc \
	"{\"destination\":\"/opt/atoll/engine/upper\",\"type\":\"bind\",\"source\":\"/upper\",\"options\":[\"ro\"]}],\n" \
	"\"linux\":{\"namespaces\":[{\"type\":\"pid\"},{\"type\":\"network\"},{\"type\":\"ipc\"}," \
	"{\"type\":\"uts\"},{\"type\":\"mount\"}]}}\n"
/* clang-format on */

static const char gvisor_config[] = GVISOR_CONFIG("");
/* Where the root is no overlay, /etc is a read-only mount of the outer box. The gofer does not report it: without a mount of its own,
 * programs would see a writable folder whose every change fails. */
static const char gvisor_config_etc[] = GVISOR_CONFIG(
	"{\"destination\":\"/etc\",\"type\":\"bind\",\"source\":\"/box/etc\",\"options\":[\"ro\"]},\n");

/* ---- the files of the guest ---- */

static int gvisor_new_file(int dir, const char *name, unsigned mode, struct err *e)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0 || fchmod(fd, mode) < 0) {
		own_close_fd(&fd);
		return err_sys(e, "create %s", name);
	}
	return fd;
}

static int gvisor_write_text(int dir, const char *name, const char *text, size_t n, struct err *e)
{
	auto_fd int to = gvisor_new_file(dir, name, 0644, e);

	if (to < 0)
		return -1;
	return write(to, text, n) == (ssize_t)n ? 0 : err_sys(e, "write %s", name);
}

static int gvisor_copy_image(int dir, const char *name, int from, struct err *e)
{
	auto_fd int to = gvisor_new_file(dir, name, 0755, e);
	off_t at = 0;
	ssize_t n;

	if (to < 0)
		return -1;
	while ((n = sendfile(to, from, &at, 1 << 20)) > 0)
		;
	return n < 0 ? err_sys(e, "copy the image of %s", name) : 0;
}

int gvisor_write_files(int dir, int overlay, int mux_exe, int init_exe, struct err *e)
{
	const char *config = overlay ? gvisor_config : gvisor_config_etc;

	if (gvisor_write_text(dir, "config.json", config, strlen(config), e) < 0)
		return -1;
	if (mkdirat(dir, "upper", 0755) < 0) /* a mount point */
		return err_sys(e, "make upper");
	return gvisor_copy_image(dir, "mux", mux_exe, e) < 0 ||
			       gvisor_copy_image(dir, "init", init_exe, e) < 0
		       ? -1
		       : 0;
}

int gvisor_write_preload(int dir, const char *image, size_t n, struct err *e)
{
	static const char list[] = "/opt/atoll/engine/preload.so\n";

	return gvisor_write_text(dir, "preload.so", image, n, e) < 0 ||
			       gvisor_write_text(dir, "ld.so.preload", list, sizeof(list) - 1, e) <
				       0
		       ? -1
		       : 0;
}

/* ---- the version ---- */

/* The first eight digits in sequence, as a number; 0: there are none. */
static unsigned gvisor_date(const char *version, size_t n)
{
	unsigned date = 0, digits = 0;

	for (size_t i = 0; i < n && digits < 8; i++) {
		int digit = isdigit((unsigned char)version[i]);

		date = digit ? date * 10 + (unsigned)(version[i] - '0') : 0;
		digits = digit ? digits + 1 : 0;
	}
	return digits < 8 ? 0 : date;
}

/* "runsc version 0.0~20221219.0", "runsc version release-20240729.0", then other lines. */
int gvisor_parse_version(const char *text, char out_version[40], unsigned *out_date, struct err *e)
{
	static const char start[] = "runsc version ", release[] = "release-";
	unsigned date;
	size_t n;

	if (strncmp(text, start, sizeof(start) - 1) != 0)
		return err_set(e, ERR_INVALID,
			       "--version does not print a version of runsc but '%.40s'", text);
	text += sizeof(start) - 1;
	if (strncmp(text, release, sizeof(release) - 1) == 0)
		text += sizeof(release) - 1;
	n = strcspn(text, "\n");
	if (n == 0 || n >= 40)
		return err_set(e, ERR_INVALID, "the version of runsc has %zu characters", n);
	date = gvisor_date(text, n);
	if (!date)
		return err_set(e, ERR_INVALID, "the version of runsc has no date: '%.*s'", (int)n,
			       text);
	memcpy(out_version, text, n);
	out_version[n] = 0;
	*out_date = date;
	return 0;
}

/* ---- running it ---- */

static void gvisor_exec(const char *const *argv, int output, int scratch)
{
	static char path[] = "PATH=/usr/bin:/bin", tmp[] = "TMPDIR=" SCRATCH;
	char *env[] = { path, tmp, NULL };
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	setsid(); /* so that one signal ends its children, too */
	if (scratch &&
	    (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	     mount("tmpfs", SCRATCH, "tmpfs", MS_NOSUID | MS_NODEV, "size=16m") < 0))
		_exit(126);
	/* The probe may be in a new pid namespace: runsc writes to /proc/PID of its children. Where a
	 * new procfs is not permitted, the visible one must suffice. */
	if (scratch)
		(void)mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
	if (null < 0 || dup2(null, 0) < 0 || dup2(output, 1) < 0 || dup2(output, 2) < 0 ||
	    chdir("/") < 0)
		_exit(126);
	execve(argv[0], (char *const *)(uintptr_t)argv, env);
	_exit(127);
}

static int gvisor_is_late(uint64_t late, struct err *e)
{
	return now_ns() < late ? 0 : err_set(e, ERR_LIMIT, "does not end in time");
}

/* Until the end of the output. */
static int gvisor_read_output(int fd, char *out, size_t room, uint64_t late, struct err *e)
{
	size_t n = 0;

	out[0] = 0;
	while (gvisor_is_late(late, e) == 0) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		ssize_t got;

		if (poll(&p, 1, 100) <= 0)
			continue;
		got = read(fd, out + n, room - 1 - n);
		if (got < 0)
			return err_sys(e, "read its output");
		if (got == 0)
			return 0;
		n += (size_t)got;
		out[n] = 0;
		if (n == room - 1)
			return err_set(e, ERR_LIMIT, "prints more than %zu bytes", room - 2);
	}
	return -1;
}

/* A program may close its output and continue. */
static int gvisor_wait(pid_t pid, const char *output, uint64_t late, struct err *e)
{
	int status = 0;

	while (waitpid(pid, &status, WNOHANG) == 0) {
		if (gvisor_is_late(late, e) < 0)
			return -1;
		usleep(500);
	}
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	if (WIFEXITED(status))
		return err_set(e, ERR_SYS, "exit status %d: %.80s", WEXITSTATUS(status), output);
	return err_set(e, ERR_SYS, "ended by signal %d", WTERMSIG(status));
}

static int gvisor_run(const char *const *argv, int scratch, int limit_ms, char out[PROBE_OUTPUT],
		      struct err *e)
{
	uint64_t late = now_ns() + (uint64_t)limit_ms * 1000000;
	int pipes[2], done;
	pid_t pid;

	if (pipe2(pipes, O_CLOEXEC) < 0)
		return err_sys(e, "make a pipe");
	pid = fork();
	if (pid == 0)
		gvisor_exec(argv, pipes[1], scratch);
	close(pipes[1]);
	if (pid < 0)
		done = err_sys(e, "fork");
	else
		done = gvisor_read_output(pipes[0], out, PROBE_OUTPUT, late, e) < 0
			       ? -1
			       : gvisor_wait(pid, out, late, e);
	close(pipes[0]);
	if (pid < 0)
		return -1;
	kill(-pid, SIGKILL); /* what it has left behind */
	kill(pid, SIGKILL);  /* it may not have made its session yet */
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		; /* ECHILD: gvisor_wait() has reaped it */
	return done;
}

/* ---- the probe ---- */

static int gvisor_check_file(int fd, const char *path, struct err *e)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_sys(e, "stat %s", path);
	if (!S_ISREG(st.st_mode))
		return err_set(e, ERR_INVALID, "%s is no regular file " INSTALL, path);
	if (st.st_uid != 0 && st.st_uid != geteuid())
		return err_set(e, ERR_DENIED, "%s belongs to uid %u: sudo chown root %s", path,
			       (unsigned)st.st_uid, path);
	if (st.st_mode & (S_IWGRP | S_IWOTH))
		return err_set(e, ERR_DENIED, "%s can be written by others: sudo chmod 755 %s",
			       path, path);
	if ((st.st_mode & 0111) != 0111)
		return err_set(e, ERR_DENIED, "%s is not executable: sudo chmod 755 %s", path,
			       path);
	return 0;
}

static int gvisor_hash(int fd, char out[WIRE_LAYER_ID], struct err *e)
{
	_Static_assert(WIRE_LAYER_ID > 2 * SHA256_BYTES, "a hash and a NUL");
	uint8_t hash[SHA256_BYTES];
	char bytes[65536];
	struct sha256 s;
	ssize_t n;

	sha256_init(&s);
	while ((n = read(fd, bytes, sizeof(bytes))) > 0)
		sha256_add(&s, bytes, (size_t)n);
	if (n < 0)
		return err_sys(e, "read");
	sha256_end(&s, hash);
	hex_encode(out, hash, sizeof(hash));
	return 0;
}

static int gvisor_version(const char *path, int limit_ms, char out[40], struct err *e)
{
	const char *argv[] = { path, "--version", NULL };
	char text[PROBE_OUTPUT];
	unsigned date;

	if (gvisor_run(argv, 0, limit_ms, text, e) < 0 ||
	    gvisor_parse_version(text, out, &date, e) < 0)
		return err_in(e, "%s", path);
	if (date < GVISOR_OLDEST)
		return err_set(e, ERR_DENIED, "%s is version %s, older than %d " INSTALL, path, out,
			       GVISOR_OLDEST);
	return 0;
}

/* Starts a program in it. The time in microseconds, or -1. */
static long gvisor_try_platform(const char *path, const char *platform, int limit_ms, struct err *e)
{
	char option[40], text[PROBE_OUTPUT];
	const char *argv[] = { path,
			       "--root=" SCRATCH "/g",
			       "--network=none",
			       "--ignore-cgroups",
			       "--rootless",
			       option,
			       "do",
			       "/bin/echo",
			       "ready",
			       NULL };
	uint64_t began = now_ns();

	snprintf(option, sizeof(option), "--platform=%s", platform);
	if (gvisor_run(argv, 1, limit_ms, text, e) < 0)
		return -1;
	if (strcmp(text, "ready\n") != 0)
		return err_set(e, ERR_SYS, "a program in it prints '%.40s', not 'ready'", text);
	return (long)((now_ns() - began) / 1000);
}

static void gvisor_keep_fastest(long us, const char *name, long *best_us, char out[24])
{
	if (us < 0 || us >= *best_us)
		return;
	*best_us = us;
	snprintf(out, 24, "%s", name);
}

/* The faster one of those that work: with few processors ptrace, with many systrap. A platform that
 * this build of runsc does not know ends with an error. kvm needs /dev/kvm, which an outer box does
 * not have. */
static int gvisor_platform(const char *path, int limit_ms, char out[24], struct err *e)
{
	static const char *const platforms[] = { "systrap", "ptrace" };
	long first[ARRAY_LEN(platforms)], best = LONG_MAX;
	unsigned working = 0;
	struct err later;

	for (unsigned i = 0; i < ARRAY_LEN(platforms); i++) {
		first[i] = gvisor_try_platform(path, platforms[i], limit_ms, e);
		working += first[i] >= 0;
		gvisor_keep_fastest(first[i], platforms[i], &best, out);
	}
	if (!working)
		return err_in(e, "%s --platform=ptrace", path);
	for (unsigned i = 0; working > 1 && i < PROBE_ROUNDS * ARRAY_LEN(platforms); i++) {
		const char *name = platforms[i % ARRAY_LEN(platforms)];

		gvisor_keep_fastest(gvisor_try_platform(path, name, limit_ms, &later), name, &best,
				    out);
	}
	return 0;
}

int gvisor_probe_file(const char *path, int limit_ms, struct wire_tier_facts *out, struct err *e)
{
	auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return err_sys(e, "open %s", path);
	if (gvisor_check_file(fd, path, e) < 0)
		return -1;
	snprintf(out->engine, sizeof(out->engine), "%s", path);
	if (gvisor_hash(fd, out->sha256, e) < 0)
		return err_in(e, "%s", path);
	if (gvisor_version(path, limit_ms, out->version, e) < 0 ||
	    gvisor_platform(path, limit_ms, out->platform, e) < 0)
		return -1;
	out->features &= ~FEATURE_BIT(FEATURE_LANDLOCK); /* runsc mounts, which landlock forbids */
	out->state = WIRE_TIER_OFFERED;
	return 0;
}

const char *const gvisor_places[] = { "/usr/bin/runsc", "/usr/local/bin/runsc", NULL };

int gvisor_probe(const struct tier_host *h, struct wire_tier_facts *out, struct err *e)
{
	char real[WIRE_PATH > PATH_MAX ? WIRE_PATH : PATH_MAX];

	if (h->rootless)
		return err_set(e, ERR_DENIED,
			       "needs a range of uids, so a keeper that runs as root");
	for (const char *const *place = gvisor_places; *place; place++) {
		if (!realpath(*place, real))
			continue;
		if (strncmp(real, "/usr/", 5) != 0 || strlen(real) >= sizeof(out->engine))
			return err_set(e, ERR_DENIED,
				       "%s leads to %.80s, which outer boxes do not see: copy it "
				       "below /usr",
				       *place, real);
		return gvisor_probe_file(real, PROBE_MS, out, e);
	}
	return err_set(e, ERR_NOT_FOUND, "runsc is not installed " INSTALL);
}

/* ---- the outer box ---- */

struct gvisor_command {
	char engine[WIRE_PATH], platform[40];
	const char *argv[24];
};

static const char *const gvisor_options[] = {
	"--root=/run/g",   "--network=none",          "--ignore-cgroups",
	"--overlay2=none", "--file-access=exclusive", "--file-access-mounts=shared",
	"--host-uds=none", "--host-fifo=none",        "--oci-seccomp=false",
};
/* Later builds let the sentry open files itself, as root of the box and with a second user namespace,
 * unless an option forbids it. */
enum { GVISOR_DIRECTFS = 20230501 };
static const char *const gvisor_run_words[] = { "run", "-detach", "-bundle",
						"/box/opt/atoll/engine", "box" };

/* Compiled once; builder threads may ask at the same time. */
static const struct seccomp *gvisor_filter(struct err *e)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static struct seccomp filter;
	int done = 0;

	pthread_mutex_lock(&lock);
	if (!filter.code)
		done = seccomp_compile(&filter, SECCOMP_GVISOR | SECCOMP_NO_CORE, e);
	pthread_mutex_unlock(&lock);
	return done < 0 ? NULL : &filter;
}

int gvisor_outer_box(const struct tier_host *h, const struct wire_tier_facts *f,
		     const struct wire_box *about, struct spec *sp, struct jail_engine *out,
		     struct err *e)
{
	const struct seccomp *filter = gvisor_filter(e);
	struct gvisor_command *c;
	unsigned n = 0;

	(void)h;
	(void)about;
	(void)sp;
	if (!filter)
		return -1;
	c = calloc(1, sizeof(*c));
	if (!c)
		abort();
	snprintf(c->engine, sizeof(c->engine), "%s", f->engine);
	snprintf(c->platform, sizeof(c->platform), "--platform=%s", f->platform);
	c->argv[n++] = "@runsc"; /* mux then takes some system calls away (mux.h) */
	c->argv[n++] = c->engine;
	for (unsigned i = 0; i < ARRAY_LEN(gvisor_options); i++)
		c->argv[n++] = gvisor_options[i];
	if (gvisor_date(f->version, strlen(f->version)) >= GVISOR_DIRECTFS)
		c->argv[n++] = "--directfs=false";
	c->argv[n++] = c->platform;
	for (unsigned i = 0; i < ARRAY_LEN(gvisor_run_words); i++)
		c->argv[n++] = gvisor_run_words[i];
	_Static_assert(ARRAY_LEN(gvisor_options) + ARRAY_LEN(gvisor_run_words) + 5 <=
			       ARRAY_LEN(c->argv),
		       "the command line and a NULL");
	*out = (struct jail_engine){ .tier = JAIL_GVISOR,
				     .argv = c->argv,
				     .filter = filter,
				     .user_namespaces = 1, /* of the sentry */
				     .own = c };
	return 0;
}

void gvisor_release(struct jail_engine *engine)
{
	free(engine->own);
	*engine = (struct jail_engine){ 0 };
}
