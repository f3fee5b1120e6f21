/* command.c - a START frame from an argument list. Short lists are part of the frame. Long ones
 * would not fit a packet: they are sent as a sealed memfd, which cannot change while init has it
 * mapped. */
#include "base/cleanup.h"
#include "client/command.h"
#include "wire/sock.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

enum { TAIL_INLINE = 48 * 1024 };

/* Nothing of the caller's environment enters a box. */
const char *const box_default_env[] = {
	"PATH=" BOX_HOME "/.local/bin:" BOX_PATH,
	"HOME=" BOX_HOME,
	"USER=user",
	"LOGNAME=user",
	"SHELL=/bin/bash",
	"LANG=C.UTF-8",
	"NPM_CONFIG_PREFIX=" BOX_HOME "/.local",
	BOX_NO_REGISTRY_ENV,
	NULL,
};

static int command_measure(const char *const *strings, const char *what, uint32_t *count,
			   size_t *total, struct err *e)
{
	for (*count = 0; strings[*count]; ++*count) {
		size_t n = strlen(strings[*count]) + 1;

		if (n > BOX_STRING_MAX) {
			err_set(e, ERR_LIMIT,
				"%s %u is %zu bytes long ('%.20s...'): at most %d fit", what,
				*count, n - 1, strings[*count], BOX_STRING_MAX - 1);
			e->sys = E2BIG;
			return -1;
		}
		*total += n;
	}
	if (*total > BOX_ARGS_MAX) {
		err_set(e, ERR_LIMIT, "the argument list is %zu bytes long: at most %d fit", *total,
			BOX_ARGS_MAX);
		e->sys = E2BIG;
		return -1;
	}
	return 0;
}

static char *command_append(char *to, const char *const *strings, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		to = stpcpy(to, strings[i]) + 1;
	return to;
}

/* Writes cwd, argv, env into `tail`, which has room for all of them. */
static void command_fill(char *tail, const char *cwd, const struct box_command *cmd,
			 const char *const *env, const struct wire_start *start)
{
	tail = command_append(tail, &cwd, 1);
	tail = command_append(tail, cmd->argv, start->argc);
	command_append(tail, env, start->envc);
}

static int sealed_copy(const char *bytes, size_t n, struct err *e)
{
	auto_fd int fd = memfd_create("atoll-start", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return err_sys(e, "memfd_create");
	for (size_t done = 0; done < n;) {
		ssize_t w = write(fd, bytes + done, n - done);

		if (w < 0)
			return err_sys(e, "write %zu bytes of arguments", n);
		done += (size_t)w;
	}
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
		return err_sys(e, "seal the arguments");
	return steal_fd(&fd);
}

static int to_memfd(struct command_words *c, struct err *e)
{
	c->memfd = sealed_copy(c->tail, c->tail_len, e);
	free(steal(&c->tail));
	c->tail_len = 0;
	c->start.head.flags |= WIRE_START_MEMFD;
	return c->memfd < 0 ? -1 : 0;
}

int command_make(struct command_words *c, const struct box_command *cmd, uint32_t ref,
		 struct err *e)
{
	const char *const *env = cmd->env ? cmd->env : box_default_env;
	const char *cwd = cmd->cwd ? cmd->cwd : BOX_HOME;
	size_t total = strlen(cwd) + 1;

	*c = (struct command_words){ .memfd = -1 };
	c->start = (struct wire_start){
		.head = sock_head(WIRE_START, ref),
		.wall_ms = cmd->wall_ms,
		.grace_ms = cmd->grace_ms ? cmd->grace_ms : BOX_GRACE_MS,
		.rows = cmd->rows,
		.cols = cmd->cols,
		.log_bytes = cmd->log_bytes ? cmd->log_bytes : BOX_LOG_BYTES,
		.fsize_bytes = cmd->fsize_bytes,
		.credit = { cmd->credit, cmd->credit, cmd->credit },
		.without = (uint32_t)cmd->without,
		.uid = cmd->uid,
		.gid = cmd->gid,
	};
	c->start.head.flags = cmd->flags;
	if (command_measure(cmd->argv, "argument", &c->start.argc, &total, e) < 0 ||
	    command_measure(env, "environment variable", &c->start.envc, &total, e) < 0)
		return -1;
	c->start.tail_bytes = (uint32_t)total;
	c->tail_len = total;
	c->tail = malloc(total);
	if (!c->tail)
		abort();
	command_fill(c->tail, cwd, cmd, env, &c->start);
	return total > TAIL_INLINE ? to_memfd(c, e) : 0;
}

void command_fini(struct command_words *c)
{
	free(c->tail);
	own_close_fd(&c->memfd);
}

int boxh_start(struct box_handle *b, const struct box_command *cmd, uint32_t *out_ref,
	       struct err *e)
{
	struct command_words c;
	int rc;

	if (command_make(&c, cmd, b->next_ref, e) < 0)
		return -1;
	rc = sock_send(b->init, &c.start, sizeof(c.start), c.tail, c.tail_len, &c.memfd,
		       c.memfd >= 0, e);
	command_fini(&c);
	if (rc < 0)
		return err_in(e, "box %s", b->about.id);
	*out_ref = b->next_ref++;
	return 0;
}
