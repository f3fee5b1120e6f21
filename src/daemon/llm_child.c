/* llm_child.c - see llm_child.h. */
#include "daemon/llm_child.h"
#include "base/log.h"
#include "llm/models_config.h"
#include "llm/process.h"
#include "daemon/confine.h"
#include "wire/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum { MODEL_UID = 64172, FILES = 1024 };

/* ---- which file ---- */

static int llm_beside(const char *settings, char out[512])
{
	const char *slash = strrchr(settings, '/');

	return slash &&
	       snprintf(out, 512, "%.*s/models.toml", (int)(slash - settings), settings) < 512 &&
	       access(out, F_OK) == 0;
}

/* The models file: serve.models, or models.toml in the folder of the settings file; "": there is
 * none. */
static void llm_child_path(const struct config *c, char out[512])
{
	const char *given = config_text(c, CONFIG_MODELS);

	if (given) {
		snprintf(out, 512, "%s", given);
		return;
	}
	for (unsigned i = c->nfiles; i-- > 0;)
		if (llm_beside(c->files[i], out))
			return;
	if (geteuid() != 0 || !llm_beside("/etc/atoll/config.toml", out))
		out[0] = 0;
}

struct verdict {
	struct err err; /* kind ERR_NONE: it can be used */
	uint8_t digest[LLM_CHILD_DIGEST];
};

static _Noreturn void llm_judge(const char *path, int to)
{
	struct verdict v = { 0 };
	struct models_config b;

	if (models_config_load(&b, path, &v.err) == 0) {
		v.err.kind = ERR_NONE;
		models_config_digest(&b, v.digest);
	}
	(void)!write(to, &v, sizeof(v));
	_exit(0);
}

/* A child process reads the file, so that this process never has the keys in memory. */
static int llm_look(const char *path, struct verdict *out, struct err *e)
{
	int pair[2], status;
	ssize_t n;
	pid_t pid;

	if (pipe2(pair, O_CLOEXEC) < 0)
		return err_sys(e, "pipe");
	fflush(NULL);
	pid = fork();
	if (pid == 0)
		llm_judge(path, pair[1]);
	close(pair[1]);
	n = pid < 0 ? -1 : read(pair[0], out, sizeof(*out));
	close(pair[0]);
	if (pid > 0)
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
	return n == sizeof(*out) ? 0 : err_set(e, ERR_SYS, "cannot read %.200s", path);
}

static int llm_judged(const struct config *c, char path[512], struct verdict *v, struct err *e)
{
	memset(v, 0, sizeof(*v));
	llm_child_path(c, path);
	if (!path[0])
		return 0;
	if (llm_look(path, v, e) < 0)
		return -1;
	if (v->err.kind != ERR_NONE) {
		*e = v->err;
		return err_in(e, "models");
	}
	return 0;
}

int llm_child_check(const struct config *c, struct err *e)
{
	struct verdict v;
	char path[512];

	return llm_judged(c, path, &v, e);
}

/* ---- the process ---- */

static int llm_walls(void *ctx, struct err *e)
{
	const struct llm_child *o = ctx;
	uid_t uid = o->root ? MODEL_UID : (uid_t)-1;

	confine_clear_environment(); /* an API key may have been in it */
	return confine_enter_llm(uid, uid, e);
}

static void be_model(void *ctx)
{
	struct rlimit files = { FILES, FILES };
	struct llm_child *o = ctx;

	(void)!setrlimit(RLIMIT_NOFILE, &files);
	_exit(llm_main(o->path, 3, llm_walls, o));
}

void llm_child_init(struct llm_child *o, int root)
{
	*o = (struct llm_child){ .child.link = -1, .root = root };
}

void llm_child_apply(struct llm_child *o, const struct config *c)
{
	struct verdict v;
	char path[512];
	struct err e;

	if (llm_judged(c, path, &v, &e) < 0) { /* was checked before */
		log_error("models", LOG_E(&e));
		return;
	}
	if (strcmp(path, o->path) == 0 && memcmp(v.digest, o->digest, sizeof(v.digest)) == 0 &&
	    (o->child.pid || !path[0]))
		return;
	child_stop(&o->child); /* it finishes its current requests */
	snprintf(o->path, sizeof(o->path), "%s", path);
	memcpy(o->digest, v.digest, sizeof(o->digest));
	o->child.tried_ns = 0;
	llm_child_maintain(o);
}

int llm_child_maintain(struct llm_child *o)
{
	struct err e;

	if (o->child.pid || !o->path[0])
		return 0;
	if (child_rests(&o->child))
		return 1;
	if (child_start(&o->child, "atoll-llm", be_model, o, &e) < 0)
		log_error("no models", LOG_E(&e));
	return !o->child.pid;
}

int llm_child_ended(struct llm_child *o, pid_t pid)
{
	if (!child_is(&o->child, pid))
		return 0;
	log_error("the llm process ended; starting another");
	child_stop(&o->child);
	return 1;
}

int llm_child_hand(struct llm_child *o, int server_link)
{
	int pair[2];

	if (!o->child.pid ||
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
		return -1;
	return child_hand(&o->child, WIRE_LLM_CONNECT, pair, server_link);
}
