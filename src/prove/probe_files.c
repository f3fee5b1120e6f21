/* probe_files.c - see probe.h. Ways to a file of the host, to environments and to descriptors of other processes. */
#include "prove/probe.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

extern char **environ;

static const char *files_path(void)
{
	return probe_word("file");
}

static int files_below(const char *top)
{
	char path[600];

	snprintf(path, sizeof(path), "%s%s", top, files_path());
	return probe_read(path);
}

static int files_direct(void)
{
	return files_below("");
}

static int files_climb(void)
{
	char up[600] = "";

	for (int i = 0; i < 60; i++)
		strcat(up, "../");
	strncat(up, files_path() + 1, 300);
	if (probe_read(up) == 0)
		return 0;
	return chdir("/") < 0 ? -1 : probe_read(up);
}

static int files_own_root(void)
{
	return files_below("/proc/self/root");
}

static int files_first_root(void)
{
	return files_below("/proc/1/root");
}

static int files_first_folder(void)
{
	return files_below("/proc/1/cwd/../../../../../../..");
}

/* Calls each for every process that can be seen; 0: one of them succeeded. */
static int files_each_process(int (*each)(const char *pid))
{
	int only =
		probe_number("only_pid"); /* in no box: processes of the host are not its concern */
	DIR *d = only ? NULL : opendir("/proc");
	struct dirent *entry;
	int found = -1, was = ENOENT;

	if (only)
		return each(probe_word("only_pid"));
	while (d && (entry = readdir(d)))
		if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9') {
			if (each(entry->d_name) == 0)
				found = 0;
			else
				was = errno;
		}
	if (d)
		closedir(d);
	errno = was;
	return found;
}

static int files_root_of(const char *pid)
{
	char top[64];

	snprintf(top, sizeof(top), "/proc/%.20s/root", pid);
	return files_below(top);
}

static int files_every_root(void)
{
	return files_each_process(files_root_of);
}

/* Descriptors of other processes: their content, and the way up from them. */
static int files_descriptors_of(const char *pid)
{
	char path[600];
	int found = -1;

	for (int fd = 0; fd < 32; fd++) {
		struct stat st;

		if (atoi(pid) == getpid() || atoi(pid) == getppid())
			continue;
		snprintf(path, sizeof(path), "/proc/%.20s/fd/%d", pid, fd);
		if (stat(path, &st) < 0)
			continue;
		if (S_ISREG(st.st_mode) && probe_read(path) == 0)
			found = 0;
		snprintf(path, sizeof(path), "/proc/%.20s/fd/%d/../../../../../..%s", pid, fd,
			 files_path());
		if (probe_read(path) == 0)
			found = 0;
	}
	return found;
}

static int files_other_descriptors(void)
{
	return files_each_process(files_descriptors_of);
}

static int files_inherited(void)
{
	int found = -1;
	char path[600];

	snprintf(path, sizeof(path), "../../../../../../../..%s", files_path());
	for (int fd = 0; fd < 256; fd++) {
		int up = openat(fd, path, O_RDONLY | O_CLOEXEC);
		char self[64];

		if (up >= 0) {
			snprintf(self, sizeof(self), "/proc/self/fd/%d", up);
			found = probe_read(self);
		}
	}
	return found;
}

static int files_link(void)
{
	unlink("prove-link");
	return symlink(files_path(), "prove-link") < 0 ? -1 : probe_read("prove-link");
}

static int files_hard_link(void)
{
	unlink("prove-hard");
	return link(files_path(), "prove-hard") < 0 ? -1 : probe_read("prove-hard");
}

static int files_mapped(const char *pid)
{
	char path[64];
	struct dirent *entry;
	int found = -1;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%.20s/map_files", pid);
	d = opendir(path);
	while (d && (entry = readdir(d)))
		if (entry->d_name[0] != '.' && openat(dirfd(d), entry->d_name, O_RDWR) >= 0)
			found = 0;
	if (d)
		closedir(d);
	return found;
}

static int files_every_mapping(void)
{
	return files_each_process(files_mapped);
}

/* The handle of the host's file, which needs no path. */
static int files_handle(void)
{
	static const char *const mounts[] = { "/", "/usr", "/tmp", "/dev", "/proc", "." };
	const char *hex = probe_word("handle");
	struct {
		struct file_handle h;
		unsigned char bytes[128];
	} handle = { .h.handle_type = probe_number("handle_type") };
	char self[64];

	for (; hex[0] && hex[1] && handle.h.handle_bytes < sizeof(handle.bytes); hex += 2) {
		char two[3] = { hex[0], hex[1], 0 };

		handle.bytes[handle.h.handle_bytes++] = (unsigned char)strtoul(two, NULL, 16);
	}
	for (unsigned i = 0; i < sizeof(mounts) / sizeof(*mounts); i++) {
		int at = open(mounts[i], O_RDONLY | O_CLOEXEC);
		int fd = open_by_handle_at(at, &handle.h, O_RDONLY);

		snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
		if (fd >= 0 && probe_read(self) == 0)
			return 0;
	}
	return -1;
}

static int files_bind_mount(void)
{
	char folder[300];

	snprintf(folder, sizeof(folder), "%s", probe_word("folder"));
	mkdir("prove-mount", 0700);
	if (mount(folder, "prove-mount", NULL, MS_BIND, NULL) < 0)
		return -1;
	return probe_read("prove-mount/canary");
}

static int files_mount_in_user_namespace(void)
{
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		return -1;
	return files_bind_mount();
}

/* The second chroot leaves the first one: the current folder is above it. */
static int files_double_chroot(void)
{
	mkdir("prove-root", 0700);
	if (chroot("prove-root") < 0)
		return -1;
	return files_climb();
}

static int files_first_mounts(void)
{
	int fd = open("/proc/1/ns/mnt", O_RDONLY | O_CLOEXEC);

	return fd < 0 || setns(fd, 0) < 0 ? -1 : files_direct();
}

static int files_create(void)
{
	char path[400];
	int fd;

	snprintf(path, sizeof(path), "%s/made-by-the-box", probe_word("folder"));
	mkdir(probe_word("folder"), 0777);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	return fd < 0 ? -1 : 0;
}

/* ---- environment ---- */

static int files_own_environment(void)
{
	for (char **e = environ; *e; e++) {
		probe_got_text(*e);
		probe_got_text(" ");
	}
	return 0;
}

static int files_environment_of(const char *pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%.20s/environ", pid);
	return probe_read(path);
}

static int files_every_environment(void)
{
	return files_each_process(files_environment_of);
}

static int files_command_line_of(const char *pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%.20s/cmdline", pid);
	return probe_read(path);
}

static int files_every_command_line(void)
{
	return files_each_process(files_command_line_of);
}

/* Their numbers: only the standard streams are expected. */
static int files_own_descriptors(void)
{
	char text[32];

	for (int fd = 0; fd < 1024; fd++)
		if (fcntl(fd, F_GETFD) >= 0) {
			snprintf(text, sizeof(text), "%d ", fd);
			probe_got_text(text);
		}
	return 0;
}

const struct probe_row probe_files[] = {
	{ "host files", "by its path", files_direct },
	{ "host files", "up from the current folder", files_climb },
	{ "host files", "/proc/self/root", files_own_root },
	{ "host files", "/proc/1/root", files_first_root },
	{ "host files", "/proc/1/cwd", files_first_folder },
	{ "host files", "the root of every process", files_every_root },
	{ "host files", "descriptors of other processes", files_other_descriptors },
	{ "host files", "inherited descriptors", files_inherited },
	{ "host files", "a symbolic link", files_link },
	{ "host files", "a hard link", files_hard_link },
	{ "host files", "mapped files of every process", files_every_mapping },
	{ "host files", "its file handle", files_handle },
	{ "host files", "a bind mount", files_bind_mount },
	{ "host files", "a mount in a new user namespace", files_mount_in_user_namespace },
	{ "host files", "chroot twice", files_double_chroot },
	{ "host files", "the mount namespace of pid 1", files_first_mounts },
	{ "host files", "a new file beside it", files_create },
	{ "host environment", "own environment", files_own_environment },
	{ "host environment", "environment of every process", files_every_environment },
	{ "host environment", "command line of every process", files_every_command_line },
	{ "host environment", "own descriptors", files_own_descriptors },
	{ 0 },
};
