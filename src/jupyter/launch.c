/* launch.c - see launch.h. */
#include "jupyter/launch.h"
#include "base/buf.h"
#include "base/id.h"
#include "base/cleanup.h"
#include "base/hex.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define FOLDER "/tmp/.jupyter-XXXXXX" /* short: the path of a socket has 107 bytes */
#define SOCKETS "k"

void launch_socket(const struct launch *l, int port, char out[96])
{
	snprintf(out, 96, "%s/" SOCKETS "-%d", l->folder, port);
}

/* ---- the connection file ---- */

static int new_key(char out[JUPYTER_MSG_KEY + 1], struct err *e)
{
	unsigned char raw[JUPYTER_MSG_KEY / 2];

	if (id_random(raw, sizeof(raw), e) < 0)
		return -1;
	hex_encode(out, raw, sizeof(raw));
	return 0;
}

static int write_file(const struct launch *l, const char *name, struct err *e)
{
	auto_fd int fd = open(l->file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	auto_buf struct buf text = { 0 };

	buf_printf(&text,
		   "{\"transport\":\"ipc\",\"ip\":\"%s/" SOCKETS
		   "\",\"shell_port\":%d,\"iopub_port\":%d,"
		   "\"stdin_port\":%d,\"control_port\":%d,\"hb_port\":%d,\"key\":\"%s\","
		   "\"signature_scheme\":\"hmac-sha256\",\"kernel_name\":\"%s\"}\n",
		   l->folder, PORT_SHELL, PORT_IOPUB, PORT_STDIN, PORT_CONTROL, PORT_HEARTBEAT,
		   l->key, name);
	if (fd < 0 || write(fd, text.p, text.len) != (ssize_t)text.len)
		return err_sys(e, "write %s", l->file);
	return 0;
}

int launch_init(struct launch *l, const char *kernel_name, struct err *e)
{
	*l = (struct launch){ .folder = FOLDER };
	if (new_key(l->key, e) < 0)
		return -1;
	if (!mkdtemp(l->folder)) /* 0700 */
		return err_sys(e, "make %s", FOLDER);
	snprintf(l->file, sizeof(l->file), "%s/connection.json", l->folder);
	return write_file(l, kernel_name, e);
}

static void remove_folder(const struct launch *l)
{
	char path[96];

	for (int port = PORT_SHELL; port < PORTS; port++) {
		launch_socket(l, port, path);
		unlink(path);
	}
	unlink(l->file);
	rmdir(l->folder);
}

/* ---- words ---- */

void launch_word(struct buf *out, const char *word, const char *file, const char *folder)
{
	const struct {
		const char *name, *value;
	} places[] = { { "{connection_file}", file },
		       { "{resource_dir}", folder },
		       { "{prefix}", "/usr" } };

	while (*word) {
		unsigned i = 0;

		while (i < ARRAY_LEN(places) &&
		       strncmp(word, places[i].name, strlen(places[i].name)) != 0)
			i++;
		if (i == ARRAY_LEN(places)) {
			buf_putc(out, *word++);
			continue;
		}
		buf_puts(out, places[i].value);
		word += strlen(places[i].name);
	}
}

static size_t name_len(const char *p)
{
	return strspn(p, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789");
}

void launch_value(struct buf *out, const char *value)
{
	while (*value) {
		int braced = value[0] == '$' && value[1] == '{';
		size_t n = value[0] == '$' ? name_len(value + 1 + braced) : 0;
		char name[128];

		if (value[0] == '$' && value[1] == '$') {
			buf_putc(out, '$');
			value += 2;
			continue;
		}
		snprintf(name, sizeof(name), "%.*s", (int)n, value + 1 + braced);
		/* Unknown variables stay as written. */
		if (!n || n >= sizeof(name) || (braced && value[2 + n] != '}') || !getenv(name)) {
			buf_putc(out, *value++);
			continue;
		}
		buf_puts(out, getenv(name));
		value += 1 + n + (braced ? 2 : 0);
	}
}

/* Some specs name python where a distribution only has python3. */
static const char *program_of(const char *word)
{
	return !strcmp(word, "python") && access("/usr/bin/python", X_OK) < 0 &&
			       access("/usr/local/bin/python", X_OK) < 0
		       ? "python3"
		       : word;
}

/* ---- processes ---- */

static _Noreturn void become_kernel(const struct launch *l, const struct kernel_spec *s)
{
	static char *argv[SPEC_WORDS + 1];
	const char *name;
	json_t *v;
	size_t i;

	json_array_foreach((json_t *)s->argv, i, v)
	{
		struct buf word = { 0 };

		launch_word(&word, json_string_value(v), l->file, s->folder);
		argv[i] = buf_steal(&word);
		if (!argv[i])
			argv[i] = (char *)"";
	}
	json_object_foreach((json_t *)s->env, name, v)
	{
		struct buf value = { 0 };

		launch_value(&value, json_string_value(v));
		setenv(name, buf_str(&value), 1);
	}
	execvp(program_of(argv[0]), argv);
	dprintf(2, "jupyter: the kernel's program does not start: %.200s: %s\n", argv[0],
		strerror(errno));
	_exit(127);
}

static _Noreturn void launch_watch(const struct launch *l, int lives)
{
	sigset_t all;
	char none;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	setpgid(0, 0);
	/* Closes all descriptors of the driver, so that its exit closes the pipes. */
	dup2(lives, 0);
	close_range(1, ~0u, 0);
	while (read(0, &none, 1) < 0 && errno == EINTR)
		;
	kill(-l->kernel, SIGKILL);
	remove_folder(l);
	_exit(0);
}

/* The watcher has one end of a pipe whose other end only the driver has. */
static int start_watcher(const struct launch *l, struct err *e)
{
	int ends[2];
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_sys(e, "make a pipe");
	pid = fork();
	if (pid == 0) {
		close(ends[1]);
		launch_watch(l, ends[0]);
	}
	close(ends[0]);
	return pid < 0 ? err_sys(e, "start the kernel's watcher") : 0;
}

int launch_start(struct launch *l, const struct kernel_spec *s, const sigset_t *unblock,
		 struct err *e)
{
	int out[2], err[2];

	if (pipe2(out, O_CLOEXEC) < 0 || pipe2(err, O_CLOEXEC) < 0)
		return err_sys(e, "make a pipe");
	l->kernel = fork();
	if (l->kernel < 0)
		return err_sys(e, "start the kernel");
	if (l->kernel == 0) {
		dup2(out[1], 1);
		dup2(err[1], 2);
		/* A separate process group: the driver decides whether an interrupt is a signal. */
		setpgid(0, 0);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		signal(SIGPIPE, SIG_DFL);
		sigprocmask(SIG_UNBLOCK, unblock, NULL);
		become_kernel(l, s);
	}
	setpgid(l->kernel, l->kernel); /* parent and child both call it: either may run first */
	close(out[1]);
	close(err[1]);
	l->raw[0] = out[0];
	l->raw[1] = err[0];
	fcntl(out[0], F_SETFL, O_NONBLOCK);
	fcntl(err[0], F_SETFL, O_NONBLOCK);
	return start_watcher(l, e);
}

int launch_ended(const struct launch *l, siginfo_t *out)
{
	*out = (siginfo_t){ 0 };
	return waitid(P_PID, (id_t)l->kernel, out, WEXITED | WNOHANG | WNOWAIT) == 0 &&
	       out->si_pid != 0;
}
