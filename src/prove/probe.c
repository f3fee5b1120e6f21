/* probe.c - see probe.h.
 *
 *	probe attempt NAME=VALUE...	all attempts, then waits for the end of stdin
 *	probe hold NAME=VALUE...	things that another box must not reach; at the end of stdin: what has happened to them
 *	probe use KIND MOST		uses up a resource */
#include "prove/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <netinet/in.h>
#include <time.h>
#include <unistd.h>

static char **probe_words;

struct probe_shared { /* with the process of the attempt */
	int result;   /* 0, or an errno */
	unsigned n;
	char got[PROBE_GOT];
};
static struct probe_shared *probe_shared;

const char *probe_nth(const char *name, unsigned i)
{
	size_t n = strlen(name);

	for (char **w = probe_words; *w; w++)
		if (!strncmp(*w, name, n) && (*w)[n] == '=' && !i--)
			return *w + n + 1;
	return NULL;
}

const char *probe_word(const char *name)
{
	const char *value = probe_nth(name, 0);

	return value ? value : "";
}

int probe_number(const char *name)
{
	return atoi(probe_word(name));
}

void probe_got(const char *bytes, size_t n)
{
	struct probe_shared *s = probe_shared;
	size_t room = sizeof(s->got) - s->n;

	n = n < room ? n : room;
	memcpy(s->got + s->n, bytes, n);
	s->n += (unsigned)n;
}

void probe_got_text(const char *text)
{
	probe_got(text, strlen(text));
}

int probe_read(const char *path)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	char text[512];
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text));
	int was = n == 0 ? ENODATA : errno;

	if (fd >= 0)
		close(fd);
	if (n > 0)
		probe_got(text, (size_t)n);
	errno = was;
	return n > 0 ? 0 : -1;
}

/* ---- lines ---- */

static void probe_put_text(const char *p, size_t n)
{
	putchar('"');
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)p[i];

		if (c == '"' || c == '\\')
			printf("\\%c", c);
		else if (!c)
			putchar(' ');
		else if (c < 32 || c > 126)
			printf("\\u%04x", c); /* bytes that are not UTF-8 must not break the line */
		else
			putchar(c);
	}
	putchar('"');
}

static void probe_line(const char *probe, const char *way, const char *result, const char *got,
		       size_t n)
{
	printf("{\"probe\": \"%s\", \"way\": \"%s\", \"result\": \"%s\", \"got\": ", probe, way,
	       result);
	probe_put_text(got, n);
	puts("}");
	fflush(stdout);
}

static const char *probe_errno_name(int n)
{
	const char *name = n ? strerrorname_np(n) : "ok";

	return name ? name : "errno";
}

static void probe_attempt(const struct probe_row *row)
{
	struct probe_shared *s = probe_shared;
	const char *result;
	int status;
	pid_t pid;

	s->n = 0;
	s->result = EIO;
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		alarm(2);
		errno = 0;
		s->result = row->attempt() == 0 ? 0 : errno ? errno : EIO;
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		result = "no process";
	else if (WIFSIGNALED(status))
		result = WTERMSIG(status) == SIGALRM ? "late" : "killed";
	else
		result = probe_errno_name(s->result);
	probe_line(row->probe, row->way, result, s->got, s->n);
}

static void probe_table(const struct probe_row *rows)
{
	for (; rows->probe; rows++)
		probe_attempt(rows);
}

/* ---- identity ---- */

static void probe_fact(const char *what, const char *text)
{
	probe_line("identity", what, "ok", text, strlen(text));
}

static void probe_fact_file(const char *what, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char text[1024];
	ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text));

	if (fd >= 0)
		close(fd);
	while (n > 0 && text[n - 1] == '\n')
		n--;
	probe_line("identity", what, "ok", text, n > 0 ? (size_t)n : 0);
}

static void probe_identity(void)
{
	unsigned char bytes[32];
	char text[80] = "";
	struct timespec now;
	struct utsname u;

	uname(&u);
	probe_fact("release", u.release);
	probe_fact("host name", u.nodename);
	probe_fact_file("boot id", "/proc/sys/kernel/random/boot_id");
	probe_fact_file("cgroup", "/proc/self/cgroup");
	if (getrandom(bytes, sizeof(bytes), 0) == (ssize_t)sizeof(bytes))
		for (unsigned i = 0; i < sizeof(bytes); i++)
			snprintf(text + 2 * i, 3, "%02x", bytes[i]);
	probe_fact("random", text);
	clock_gettime(CLOCK_REALTIME, &now);
	snprintf(text, sizeof(text), "%lld%09ld", (long long)now.tv_sec, now.tv_nsec);
	probe_fact("clock", text);
}

/* ---- the other box ---- */

static int probe_listen(int family, const void *addr, socklen_t len)
{
	int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd >= 0 && (bind(fd, addr, len) < 0 || listen(fd, 8) < 0)) {
		close(fd);
		return -1;
	}
	return fd;
}

static void probe_write(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		probe_line("other box", path, probe_errno_name(errno), "", 0);
	if (fd >= 0)
		close(fd);
}

static void probe_wait_for_end(void)
{
	char c;

	while (read(0, &c, 1) > 0)
		;
}

static int probe_hold(void)
{
	struct sockaddr_in in = { .sin_family = AF_INET,
				  .sin_port = htons((uint16_t)probe_number("tcp")),
				  .sin_addr.s_addr = htonl(INADDR_ANY) };
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	const char *name = probe_word("abstract"), *canary = probe_word("canary");
	int tcp, abstract, accepted = 0, fd;
	char path[200], text[32];

	signal(SIGUSR1, SIG_IGN);
	snprintf(un.sun_path + 1, sizeof(un.sun_path) - 1, "%s", name);
	tcp = probe_listen(AF_INET, &in, sizeof(in));
	abstract = probe_listen(
		AF_UNIX, &un,
		(socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name)));
	snprintf(path, sizeof(path), "/dev/shm/%s", name);
	probe_write(path, canary);
	snprintf(path, sizeof(path), "/tmp/%s", name);
	probe_write(path, canary);
	probe_identity();
	probe_line("other box", "listens", tcp >= 0 && abstract >= 0 ? "ok" : "failed", "", 0);
	probe_wait_for_end();
	while ((fd = accept(tcp, NULL, NULL)) >= 0 || (fd = accept(abstract, NULL, NULL)) >= 0) {
		accepted++;
		close(fd);
	}
	snprintf(text, sizeof(text), "%d", accepted);
	probe_line("other box", "accepted", "ok", text, strlen(text));
	return 0;
}

static int probe_all(void)
{
	probe_identity();
	probe_table(probe_files);
	probe_table(probe_processes);
	probe_table(probe_sockets);
	probe_table(probe_kernel);
	probe_line("end", "all attempts were made", "ok", "", 0);
	probe_wait_for_end();
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	probe_words = argv + (argc > 1 ? 2 : 1);
	probe_shared = mmap(NULL, sizeof(*probe_shared), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (probe_shared == MAP_FAILED)
		return 2;
	if (!strcmp(what, "attempt"))
		return probe_all();
	if (!strcmp(what, "hold"))
		return probe_hold();
	if (!strcmp(what, "use") && argc == 4)
		return probe_use(argv[2], atol(argv[3]));
	return 2;
}
