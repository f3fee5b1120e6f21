/* procimage_cipher.c - see procimage_cipher.h. */
#include "keeper/procimage_cipher.h"
#include "base/cleanup.h"
#include "jail/caps.h"
#include "jail/seccomp.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <openssl/evp.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	CIPHER_FILE = 3,
	CIPHER_PIPE,
	CIPHER_REPORT,
	CIPHER_ID = 65534,
	CIPHER_PIECE = 256 << 10,
	CIPHER_END_MS = 120000
};

struct cipher_report {
	struct err err;
	uint64_t bytes;
};

static const char cipher_calls[] =
	"read write close fsync fdatasync mmap munmap mremap mprotect madvise brk futex "
	"getpid gettid getrandom clock_gettime rt_sigreturn rt_sigprocmask exit exit_group";
static const struct seccomp_zero cipher_zero[] = { SECCOMP_NO_EXEC };
static struct seccomp cipher_filter;

int cipher_prepare(struct err *e)
{
	return seccomp_compile_list(&cipher_filter, cipher_calls, cipher_zero,
				    ARRAY_LEN(cipher_zero), e);
}

/* ---- the process ---- */

static int cipher_read(int fd, void *to, size_t n, struct err *e)
{
	for (size_t done = 0; done < n;) {
		ssize_t k = read(fd, (char *)to + done, n - done);

		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0)
			return k ? err_sys(e, "read a process image")
				 : err_set(e, ERR_SYS,
					   "the other end of a process image has ended");
		done += (size_t)k;
	}
	return 0;
}

static int cipher_write(int fd, const void *from, size_t n, struct err *e)
{
	for (size_t done = 0; done < n;) {
		ssize_t k = write(fd, (const char *)from + done, n - done);

		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0)
			return err_sys(e, "hand over a process image");
		done += (size_t)k;
	}
	return 0;
}

static int cipher_encrypt(struct sealed_image *f, const struct procimage_order *o, struct err *e)
{
	const struct sealed_image_about about = { o->id, o->team };
	static char piece[CIPHER_PIECE];
	struct sealed_image_section x;

	if (sealed_image_create(f, CIPHER_FILE, &about, o->key, e) < 0)
		return -1;
	for (;;) {
		if (cipher_read(CIPHER_PIPE, &x, sizeof(x), e) < 0)
			return -1;
		if (!x.kind)
			break;
		if (sealed_image_begin(f, &x, e) < 0)
			return -1;
		for (uint64_t left = x.bytes; left;) {
			size_t n = left < sizeof(piece) ? left : sizeof(piece);

			if (cipher_read(CIPHER_PIPE, piece, n, e) < 0 ||
			    sealed_image_add(f, piece, n, e) < 0)
				return -1;
			left -= n;
		}
	}
	if (sealed_image_end(f, e) < 0)
		return -1;
	return fsync(CIPHER_FILE) < 0 ? err_sys(e, "write the process image to the disk") : 0;
}

static int cipher_decrypt(struct sealed_image *f, const struct procimage_order *o, struct err *e)
{
	const struct sealed_image_about about = { o->id, o->team };
	static char piece[CIPHER_PIECE];
	struct sealed_image_section x;
	int more;

	if (sealed_image_open(f, CIPHER_FILE, &about, o->key, e) < 0)
		return -1;
	while ((more = sealed_image_next(f, &x, e)) > 0) {
		if (cipher_write(CIPHER_PIPE, &x, sizeof(x), e) < 0)
			return -1;
		for (uint64_t left = x.bytes; left;) {
			size_t n = left < sizeof(piece) ? left : sizeof(piece);

			if (sealed_image_read(f, piece, n, e) < 0 ||
			    cipher_write(CIPHER_PIPE, piece, n, e) < 0)
				return -1;
			left -= n;
		}
	}
	x = (struct sealed_image_section){ 0 };
	return more < 0 ? -1 : cipher_write(CIPHER_PIPE, &x, sizeof(x), e);
}

static int cipher_confine(pid_t parent, struct err *e)
{
	if (setgroups(0, NULL) < 0 || setresgid(CIPHER_ID, CIPHER_ID, CIPHER_ID) < 0 ||
	    caps_bound(0, e) < 0)
		return err_sys(e, "confine the process of a file");
	if (setresuid(CIPHER_ID, CIPHER_ID, CIPHER_ID) < 0)
		return err_sys(e, "confine the process of a file");
	/* After the ids have changed, because the kernel clears it then. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ||
	    getppid() != parent)
		return err_set(e, ERR_SYS, "the worker has ended");
	if (caps_only(0, e) < 0 || caps_no_new_privs(e) < 0)
		return -1;
	return seccomp_apply(&cipher_filter, e);
}

static int cipher_place(int file, int pipe, int report, struct err *e)
{
	const int from[] = { file, pipe, report };
	int high[3];

	for (int i = 0; i < 3; i++)
		if ((high[i] = fcntl(from[i], F_DUPFD_CLOEXEC, 64)) < 0)
			return err_sys(e, "descriptors of the process of a file");
	for (int i = 0; i < 3; i++)
		if (dup3(high[i], CIPHER_FILE + i, O_CLOEXEC) < 0)
			return err_sys(e, "descriptors of the process of a file");
	return close_range(CIPHER_REPORT + 1, ~0U, 0) < 0
		       ? err_sys(e, "descriptors of the process of a file")
		       : 0;
}

static _Noreturn void cipher_process(pid_t parent, const struct procimage_order *o, int file,
				     int pipe, int report, int encrypt)
{
	struct cipher_report r = { 0 };
	struct sealed_image f = { 0 };
	EVP_CIPHER *loaded;
	int rc;

	if (cipher_place(file, pipe, report, &r.err) < 0)
		_exit(1);
	prctl(PR_SET_NAME, "atoll-cipher");
	/* The library may read files when it is used first, and finds none in the root folder of a worker. */
	loaded = EVP_CIPHER_fetch(NULL, "AES-256-GCM", NULL);
	EVP_CIPHER_free(loaded);
	rc = cipher_confine(parent, &r.err);
	if (rc == 0)
		rc = encrypt ? cipher_encrypt(&f, o, &r.err) : cipher_decrypt(&f, o, &r.err);
	if (rc == 0)
		r.err.kind = ERR_NONE;
	r.bytes = f.bytes;
	sealed_image_fini(&f);
	(void)!write(CIPHER_REPORT, &r, sizeof(r));
	_exit(rc < 0);
}

/* ---- the worker ---- */

int cipher_start(struct cipher *c, const struct procimage_order *o, int file, int encrypt,
		 struct err *e)
{
	int ends[2], pair[2];
	pid_t parent = getpid();

	*c = (struct cipher){ .pipe = -1, .report = -1 };
	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_sys(e, "pipe to the process of a file");
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
		close(ends[0]);
		close(ends[1]);
		return err_sys(e, "socket to the process of a file");
	}
	fcntl(ends[1], F_SETPIPE_SZ, 1 << 20);
	c->pid = fork();
	if (c->pid == 0)
		cipher_process(parent, o, file, ends[!encrypt], pair[1], encrypt);
	close(ends[!encrypt]);
	close(pair[1]);
	c->pipe = ends[encrypt];
	c->report = pair[0];
	return c->pid < 0 ? err_sys(e, "start the process of a file") : 0;
}

/* Why it does not take or send more. The pipe is closed first, so that it ends in any case. */
static int cipher_failed(struct cipher *c, struct err *e)
{
	struct err why;

	return cipher_end(c, NULL, &why) < 0
		       ? (*e = why, -1)
		       : err_set(e, ERR_SYS, "the process of the file has ended early");
}

int cipher_put(struct cipher *c, const void *bytes, size_t n, struct err *e)
{
	return cipher_write(c->pipe, bytes, n, e) < 0 ? cipher_failed(c, e) : 0;
}

int cipher_begin(struct cipher *c, uint32_t kind, uint32_t index, uint64_t bytes, struct err *e)
{
	const struct sealed_image_section x = { kind, index, bytes };

	return cipher_put(c, &x, sizeof(x), e);
}

int cipher_get(struct cipher *c, void *to, size_t n, struct err *e)
{
	return cipher_read(c->pipe, to, n, e) < 0 ? cipher_failed(c, e) : 0;
}

int cipher_expect(struct cipher *c, uint32_t kind, uint64_t most, uint64_t *out_bytes,
		  struct err *e)
{
	struct sealed_image_section x;

	if (cipher_get(c, &x, sizeof(x), e) < 0)
		return -1;
	if (x.kind != kind || x.bytes > most)
		return err_set(
			e, ERR_CONFLICT,
			"the process image has a section of kind %u with %llu bytes in place "
			"of one of kind %u",
			x.kind, (unsigned long long)x.bytes, kind);
	*out_bytes = x.bytes;
	return 0;
}

int cipher_end(struct cipher *c, uint64_t *out_bytes, struct err *e)
{
	struct pollfd p = { .fd = c->report, .events = POLLIN };
	struct cipher_report r;
	int ready;

	own_close_fd(&c->pipe);
	do
		ready = poll(&p, 1, CIPHER_END_MS);
	while (ready < 0 && errno == EINTR);
	if (ready <= 0 || recv(c->report, &r, sizeof(r), 0) != (ssize_t)sizeof(r))
		return err_set(e, ERR_SYS, "the process of the file has ended without a result");
	r.err.msg[sizeof(r.err.msg) - 1] = 0;
	if (r.err.kind)
		return *e = r.err, -1;
	if (out_bytes)
		*out_bytes = r.bytes;
	return 0;
}

void cipher_fini(struct cipher *c)
{
	own_close_fd(&c->pipe);
	own_close_fd(&c->report);
	if (c->pid > 0) {
		kill(c->pid, SIGKILL);
		while (waitpid(c->pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	*c = (struct cipher){ .pipe = -1, .report = -1 };
}
