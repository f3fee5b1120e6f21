/* probe.c - a static program that looks at a box from inside, and tries to get out.
 *
 *	probe facts [KEY...]           what it finds: ids, capabilities, mounts, descriptors ...
 *	probe try NAME[=ARG]...        one line per action: `NAME[=ARG] ok`, or an errno, or `killed SIG`
 *	probe use WHAT MOST            allocates up to MOST of a resource: `WHAT GOT`, then frees it
 *	probe spin MS N                N processes at full speed for that long: `spin CPU-MS`
 *	probe hold NAME[=ARG]...       as try, but keeps what it opened, prints `ready`, and waits for the
 *	                               end of its stdin
 *	probe watch PATH               counts opens of it until the end of its stdin: `opened N`
 *	probe daemon WORD              starts a process in another session, whose parent has exited
 *	probe later WORD...            prints `later`, waits for a byte of its stdin, and does then what the words say: a
 *	                               program that is captured meanwhile does it in its copy, without another execve
 *
 * and on the host's side:
 *	probe listen DIR               TCP, abstract and path sockets: counts connections
 *	probe with-key NAME CMD...     runs CMD with a session keyring that holds a secret
 *	probe on-terminal CMD...       runs CMD as leader of a session with a terminal
 *	probe hold-exec PID            stops the next program that PID starts before its first instruction,
 *	                               until the end of its stdin: `watching`, `held PID`
 *	probe block CALL... -- CMD...  runs CMD on a kernel without these system calls
 *	probe names PID                owner of its user namespace, seals of its program
 *
 * No library but libc, no sanitizer: it must run in a box that has nothing but itself. */
#include "probe.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/wait.h>
#include <unistd.h>

int probe_number(const char *arg, int otherwise)
{
	return arg ? (int)strtol(arg, NULL, 0) : otherwise;
}

static const struct probe_action *find(const char *word)
{
	size_t n = strcspn(word, "=");

	for (size_t i = 0; i < endpoint_nactions; i++)
		if (strlen(endpoint_actions[i].name) == n &&
		    !strncmp(endpoint_actions[i].name, word, n))
			return &endpoint_actions[i];
	for (size_t i = 0; i < calls_nactions; i++)
		if (strlen(calls_actions[i].name) == n && !strncmp(calls_actions[i].name, word, n))
			return &calls_actions[i];
	return NULL;
}

static int attempt(const struct probe_action *d, const char *word)
{
	const char *arg = strchr(word, '=');

	errno = 0;
	return d->run(arg ? arg + 1 : NULL);
}

static void verdict(const char *word, int status)
{
	if (WIFSIGNALED(status))
		printf("%s killed SIG%s\n", word, sigabbrev_np(WTERMSIG(status)));
	else if (WEXITSTATUS(status) == 0)
		printf("%s ok\n", word);
	else
		printf("%s %s\n", word, strerrorname_np(WEXITSTATUS(status)));
}

static int try(char **words)
{
	for (; *words; words++) {
		const struct probe_action *d = find(*words);
		int status = 0;
		pid_t pid;

		if (!d) {
			fprintf(stderr, "probe: no action named %s\n", *words);
			return 2;
		}
		fflush(stdout);
		pid = fork();
		if (pid < 0)
			return 3;
		if (pid == 0)
			_exit(attempt(d, *words) == 0 ? 0 : errno ? errno : EIO);
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
		verdict(*words, status);
	}
	return 0;
}

static int wait_for_end(void)
{
	char c;

	puts("ready");
	fflush(stdout);
	while (read(0, &c, 1) > 0)
		;
	return 0;
}

static int watch(const char *path)
{
	char events[4096];
	int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC), opened = 0;
	ssize_t n;

	if (fd < 0 || inotify_add_watch(fd, path, IN_OPEN) < 0) {
		printf("watch %s\n", strerrorname_np(errno));
		return wait_for_end();
	}
	wait_for_end();
	while ((n = read(fd, events, sizeof(events))) > 0)
		opened += (int)(n / (ssize_t)sizeof(struct inotify_event));
	printf("opened %d\n", opened);
	return 0;
}

static int hold(char **words)
{
	for (; *words; words++) {
		const struct probe_action *d = find(*words);
		int failed = !d || attempt(d, *words) < 0;

		printf("%s %s\n", *words, failed ? strerrorname_np(errno) : "ok");
	}
	return wait_for_end();
}

/* A process in its own session, whose parent has exited, without inherited descriptors: neither a
 * signal to the process group nor a wait for the end of a pipe finds it. */
static int leave_daemon(const char *word)
{
	char *argv[] = { "probe", "sleep", (char *)word, NULL }, *env[] = { NULL };

	if (fork() > 0) {
		printf("daemon ok\n");
		return 0;
	}
	setsid();
	if (fork() > 0)
		_exit(0);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	for (int fd = 0; fd < 64; fd++)
		close(fd);
	execve("/proc/self/exe", argv, env);
	_exit(127);
}

static int wait_for_byte(void)
{
	char c;

	puts("later");
	fflush(stdout);
	return read(0, &c, 1) == 1 ? 0 : -1;
}

int main(int argc, char **argv)
{
	const char *command = argc > 1 ? argv[1] : "", *arg;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!strcmp(command, "later")) {
		if (wait_for_byte() < 0)
			return 1;
		argv++;
		argc--;
		command = argc > 1 ? argv[1] : "";
	}
	arg = argc > 2 ? argv[2] : NULL;
	if (!strcmp(command, "facts"))
		return facts_print(argv + 2), 0;
	if (!strcmp(command, "try"))
		return try(argv + 2);
	if (!strcmp(command, "hold"))
		return hold(argv + 2);
	if (!strcmp(command, "watch") && arg)
		return watch(arg);
	if (!strcmp(command, "use") && argc == 4)
		return use_up(arg, atol(argv[3]));
	if (!strcmp(command, "spin") && argc == 4)
		return use_cpu(atoi(arg), atoi(argv[3]));
	if (!strcmp(command, "daemon") && arg)
		return leave_daemon(arg);
	if (!strcmp(command, "sleep"))
		for (;;)
			pause();
	if (!strcmp(command, "listen") && arg)
		return outside_listen(arg);
	if (!strcmp(command, "with-key") && argc > 3)
		return outside_with_key(arg, argv + 3);
	if (!strcmp(command, "on-terminal") && arg)
		return outside_on_terminal(argv + 2);
	if (!strcmp(command, "hold-exec") && arg)
		return outside_hold_exec(arg);
	if (!strcmp(command, "block") && arg)
		return outside_block(argv + 2);
	if (!strcmp(command, "names") && arg)
		return outside_names(arg);
	fprintf(stderr, "probe: unknown command or wrong arguments (see the top of probe.c)\n");
	return 2;
}
