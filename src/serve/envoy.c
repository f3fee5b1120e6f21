/* envoy.c - see envoy.h. */
#include "serve/envoy.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/own.h"
#include "model/book.h"
#include "model/process.h"
#include "serve/cell.h"
#include "wire/sock.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { MODEL_UID = 64172, AGAIN_MS = 500, FILES = 1024 };

/* ---- which file ---- */

static int beside(const char *settings, char out[512])
{
	const char *slash = strrchr(settings, '/');

	return slash && snprintf(out, 512, "%.*s/models.toml", (int)(slash - settings), settings) < 512 &&
	       access(out, F_OK) == 0;
}

void envoy_path(const struct config *c, char out[512])
{
	const char *given = config_text(c, CONFIG_MODELS);

	if (given) {
		snprintf(out, 512, "%s", given);
		return;
	}
	for (unsigned i = c->nfiles; i-- > 0;)
		if (beside(c->files[i], out))
			return;
	if (geteuid() != 0 || !beside("/etc/atoll/config.toml", out))
		out[0] = 0;
}

struct verdict {
	struct err err; /* kind ERR_NONE: it can be used */
	uint8_t digest[ENVOY_DIGEST];
};

static _Noreturn void judge(const char *path, int to)
{
	struct verdict v = { 0 };
	struct book b;

	if (book_load(&b, path, &v.err) == 0) {
		v.err.kind = ERR_NONE;
		book_digest(&b, v.digest);
	}
	(void)!write(to, &v, sizeof(v));
	_exit(0);
}

/* A child looks: what it read is gone with it. */
static int look(const char *path, struct verdict *out, struct err *e)
{
	int pair[2], status;
	ssize_t n;
	pid_t pid;

	if (pipe2(pair, O_CLOEXEC) < 0)
		return err_sys(e, "pipe");
	fflush(NULL);
	pid = fork();
	if (pid == 0)
		judge(path, pair[1]);
	close(pair[1]);
	n = pid < 0 ? -1 : read(pair[0], out, sizeof(*out));
	close(pair[0]);
	if (pid > 0)
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
	return n == sizeof(*out) ? 0 : err_set(e, ERR_SYS, "nobody could look into %.200s", path);
}

static int judged(const struct config *c, char path[512], struct verdict *v, struct err *e)
{
	memset(v, 0, sizeof(*v));
	envoy_path(c, path);
	if (!path[0])
		return 0;
	if (look(path, v, e) < 0)
		return -1;
	if (v->err.kind != ERR_NONE) {
		*e = v->err;
		return err_in(e, "models");
	}
	return 0;
}

int envoy_check(const struct config *c, struct err *e)
{
	struct verdict v;
	char path[512];

	return judged(c, path, &v, e);
}

/* ---- the process ---- */

static int walls(void *ctx, struct err *e)
{
	const struct envoy *o = ctx;
	uid_t uid = o->root ? MODEL_UID : (uid_t)-1;

	cell_forget_environment(); /* a key may have come by it */
	return cell_enter_model(uid, uid, e);
}

static _Noreturn void be_model(struct envoy *o, int link)
{
	struct rlimit files = { FILES, FILES };
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGHUP, SIG_IGN);
	signal(SIGUSR2, SIG_IGN);
	signal(SIGINT, SIG_IGN);
	/* Not the ports, not the links of fronts, not the seat: who holds one is not seen to leave. */
	if (dup2(link, 3) < 0 || syscall(SYS_close_range, 4, ~0U, 0) < 0)
		_exit(1);
	prctl(PR_SET_NAME, "atoll-model");
	(void)!setrlimit(RLIMIT_NOFILE, &files);
	_exit(model_main(o->path, 3, walls, o));
}

static int start(struct envoy *o, struct err *e)
{
	int pair[2];

	o->tried_ns = now_ns();
	if (sock_pair(pair, e) < 0)
		return -1;
	fflush(NULL);
	o->pid = fork();
	if (o->pid == 0)
		be_model(o, pair[1]);
	close(pair[1]);
	o->link = pair[0];
	if (o->pid > 0)
		return 0;
	o->pid = 0;
	own_close_fd(&o->link);
	return err_sys(e, "fork the process that asks models");
}

static void stop(struct envoy *o)
{
	own_close_fd(&o->link); /* it leaves when it reads that and owes no answer; reaped as nobody's */
	o->pid = 0;
}

void envoy_init(struct envoy *o, int root)
{
	*o = (struct envoy){ .link = -1, .root = root };
}

void envoy_apply(struct envoy *o, const struct config *c)
{
	struct verdict v;
	char path[512];
	struct err e;

	if (judged(c, path, &v, &e) < 0) { /* was checked before */
		log_error("models", LOG_E(&e));
		return;
	}
	if (strcmp(path, o->path) == 0 && memcmp(v.digest, o->digest, sizeof(v.digest)) == 0 &&
	    (o->pid || !path[0]))
		return;
	stop(o);
	snprintf(o->path, sizeof(o->path), "%s", path);
	memcpy(o->digest, v.digest, sizeof(o->digest));
	o->tried_ns = 0;
	envoy_tend(o);
}

int envoy_tend(struct envoy *o)
{
	struct err e;

	if (o->pid || !o->path[0])
		return 0;
	if (o->tried_ns && now_ns() - o->tried_ns < AGAIN_MS * UINT64_C(1000000))
		return 1;
	if (start(o, &e) < 0)
		log_error("no models", LOG_E(&e));
	return !o->pid;
}

int envoy_ended(struct envoy *o, pid_t pid)
{
	if (!o->pid || pid != o->pid)
		return 0;
	log_error("the process that asks models ended, starting another");
	stop(o);
	return 1;
}

int envoy_hand(struct envoy *o, int front_link)
{
	struct frame head = sock_head(WIRE_MODEL, 0);
	int pair[2], rc;
	struct err e;

	if (!o->pid || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
		return -1;
	rc = sock_send(o->link, &head, sizeof(head), NULL, 0, &pair[0], 1, &e);
	if (rc == 0)
		rc = sock_send(front_link, &head, sizeof(head), NULL, 0, &pair[1], 1, &e);
	close(pair[0]);
	close(pair[1]);
	return rc;
}
