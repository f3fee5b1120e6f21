/* template.c - see template.h. Runs once per keeper, before it changes its root. */
#include "keeper/template.h"
#include "base/buf.h"
#include "base/cleanup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

/* Copied if it exists. Nothing that contains a secret, a list of users or the identity of the
 * machine. */
const struct template_row template_etc[] = {
	{ "alternatives", "half of /usr/bin points through it" },
	{ "ld.so.cache", "where libraries are" },
	{ "ld.so.conf", "where libraries are" },
	{ "ld.so.conf.d", "where libraries are" },
	{ "ssl/certs", "public certificates" },
	{ "ssl/openssl.cnf", "OpenSSL's defaults" },
	{ "ca-certificates.conf", "which certificates" },
	{ "protocols", "names of protocols" },
	{ "services", "names of ports" },
	{ "mime.types", "names of file types" },
	{ "magic", "file(1)" },
	{ "magic.mime", "file(1)" },
	{ "debian_version", "scripts ask" },
	{ "bash.bashrc", "interactive shells" },
	{ "inputrc", "line editing" },
	{ "terminfo", "terminals" },
	{ "shells", "which shells are shells" },
	{ "localtime", "the host's time zone" },
	{ "timezone", "the host's time zone" },
	{ "fonts", "plots with text" },
	{ "matplotlibrc", "plots" },
	{ "python3", "Debian's Python" },
	{ "python3.11", "Debian 12's Python" },
	{ "python3.12", "Ubuntu 24.04's Python" },
	{ "python3.13", "Debian 13's Python" },
	{ "perl", "Debian's Perl" },
	{ "R", "R's site files" },
	{ "php", "PHP's settings" },
	{ "java-17-openjdk", "Java's settings" },
	{ "java-21-openjdk", "Java's settings" },
	{ "ImageMagick-6", "convert's policy" },
	{ "gai.conf", "address order" },
	{ "debconf.conf", "scripts of packages ask" },
	{ "adduser.conf", "scripts of packages add users" },
	{ "deluser.conf", "scripts of packages remove users" },
	{ "login.defs", "ids of new users" },
	{ "host.conf", "resolver order" },
};
const unsigned template_netc = ARRAY_LEN(template_etc);

extern const struct driver_image {
	const char *name, *bytes, *end;
} driver_images[]; /* the last one has no name */

#define DEPTH_MAX 8
#define FILE_MAX_BYTES (4 << 20)

static int copy_file(int from, int to, const char *name, const struct stat *st, struct err *e)
{
	auto_fd int in = openat(from, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	auto_fd int out = -1;
	ssize_t n = 1;

	/* Files that other users cannot read on the host are not copied. */
	if (in < 0 || !(st->st_mode & S_IROTH) || st->st_size > FILE_MAX_BYTES)
		return 0;
	out = openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (out < 0)
		return err_sys(e, "create %s", name);
	while (n > 0)
		n = sendfile(out, in, NULL, FILE_MAX_BYTES);
	if (n < 0 || fchmod(out, st->st_mode & 0755) < 0)
		return err_sys(e, "copy %s", name);
	return 0;
}

static int copy_entry(int from, int to, const char *name, int depth, struct err *e);

static int copy_dir(int from, int to, const char *name, int depth, struct err *e)
{
	int in = openat(from, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *d = in < 0 ? NULL : fdopendir(in);
	auto_fd int out = -1;
	struct dirent *de;
	int bad = 0;

	if (!d)
		return 0; /* not readable here, so not copied */
	if (mkdirat(to, name, 0755) < 0 && errno != EEXIST)
		bad = err_sys(e, "mkdir %s", name);
	out = openat(to, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	while (!bad && out >= 0 && (de = readdir(d)) != NULL)
		if (strcmp(de->d_name, ".") != 0 && strcmp(de->d_name, "..") != 0)
			bad = copy_entry(in, out, de->d_name, depth + 1, e);
	closedir(d);
	return bad;
}

static int copy_entry(int from, int to, const char *name, int depth, struct err *e)
{
	char target[4096];
	struct stat st;
	ssize_t n;

	if (depth > DEPTH_MAX || fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	if (S_ISREG(st.st_mode))
		return copy_file(from, to, name, &st, e);
	if (S_ISDIR(st.st_mode))
		return copy_dir(from, to, name, depth, e);
	if (!S_ISLNK(st.st_mode))
		return 0;
	n = readlinkat(from, name, target, sizeof(target) - 1);
	if (n <= 0)
		return 0;
	target[n] = 0;
	return symlinkat(target, to, name) < 0 && errno != EEXIST ? err_sys(e, "link %s", name) : 0;
}

/* "ssl/certs" needs ssl first. */
static int copy_allowed(int etc, const char *path, struct err *e)
{
	char dir[32];
	const char *slash = strchr(path, '/');
	auto_fd int from = open("/etc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_fd int sub_from = -1, sub_to = -1;

	if (!slash)
		return copy_entry(from, etc, path, 0, e);
	snprintf(dir, sizeof(dir), "%.*s", (int)(slash - path), path);
	if (mkdirat(etc, dir, 0755) < 0 && errno != EEXIST)
		return err_sys(e, "mkdir %s", dir);
	sub_from = openat(from, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	sub_to = openat(etc, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return sub_from < 0 ? 0 : copy_entry(sub_from, sub_to, slash + 1, 0, e);
}

static int write_bytes(int dir, const char *name, const char *bytes, size_t n, struct err *e)
{
	auto_fd int fd =
		openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);

	if (fd < 0 || write(fd, bytes, n) != (ssize_t)n || fchmod(fd, 0644) < 0)
		return err_sys(e, "write %s", name);
	return 0;
}

static int write_file(int dir, const char *name, const char *text, struct err *e)
{
	return write_bytes(dir, name, text, strlen(text), e);
}

/* Debian's fixed ids (base-passwd), the same on every machine: files in /usr and archives name some
 * of them. No accounts of people or services, which would reveal what is installed on the host. */
static const struct account {
	/* clang-format off */
	const char *name;
	unsigned uid, gid; /* uid 0: only a group */
} accounts[] = {
	{ "daemon", 1, 1 },   { "bin", 2, 2 },      { "sys", 3, 3 },        { "sync", 4, 65534 },
	{ "games", 5, 60 },   { "man", 6, 12 },     { "lp", 7, 7 },         { "mail", 8, 8 },
	{ "news", 9, 9 },     { "uucp", 10, 10 },   { "proxy", 13, 13 },    { "www-data", 33, 33 },
	{ "backup", 34, 34 }, { "list", 38, 38 },   { "irc", 39, 39 },      { "_apt", 42, 65534 },
	{ "adm", 0, 4 },
	{ "tty", 0, 5 },      { "disk", 0, 6 },     { "dialout", 0, 20 },   { "fax", 0, 21 },
	{ "voice", 0, 22 },   { "cdrom", 0, 24 },   { "floppy", 0, 25 },    { "tape", 0, 26 },
	{ "sudo", 0, 27 },    { "audio", 0, 29 },   { "dip", 0, 30 },       { "operator", 0, 37 },
	{ "src", 0, 40 },     { "shadow", 0, 42 },  { "utmp", 0, 43 },      { "video", 0, 44 },
	{ "sasl", 0, 45 },    { "plugdev", 0, 46 }, { "staff", 0, 50 },     { "users", 0, 100 },
	/* clang-format on */
};

static int write_users(int etc, struct err *e)
{
	auto_buf struct buf out = { 0 };

	buf_puts(&out, "root:x:0:0:root:/root:/bin/bash\n"
		       "user:x:1000:1000:user:/home/user:/bin/bash\n"
		       "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n");
	for (unsigned i = 0; i < ARRAY_LEN(accounts); i++)
		if (accounts[i].uid)
			buf_printf(&out, "%s:x:%u:%u::/nonexistent:/usr/sbin/nologin\n",
				   accounts[i].name, accounts[i].uid, accounts[i].gid);
	return write_file(etc, "passwd", buf_str(&out), e);
}

static int write_groups(int etc, struct err *e)
{
	auto_buf struct buf out = { 0 };

	buf_puts(&out, "root:x:0:\nuser:x:1000:\nnogroup:x:65534:\n");
	for (unsigned i = 0; i < ARRAY_LEN(accounts); i++)
		if (accounts[i].gid != 65534)
			buf_printf(&out, "%s:x:%u:\n", accounts[i].name, accounts[i].gid);
	return write_file(etc, "group", buf_str(&out), e);
}

/* Not the file of the host, which starts `id` for every command of a login shell, and replaces the
 * PATH. */
static const char profile[] =
	"PATH=${PATH:-/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin}\n"
	"case :$PATH: in *:/opt/atoll/bin:*) ;; *) PATH=$PATH:/opt/atoll/bin ;; esac\n"
	"export PATH\n"
	"if [ \"${PS1-}\" ] && [ \"${BASH_VERSION-}\" ] && [ -f /etc/bash.bashrc ]; then\n"
	"\t. /etc/bash.bashrc\n"
	"fi\n";

static int write_network(int etc, struct err *e)
{
	if (write_file(etc, "hostname", "atoll\n", e) < 0 ||
	    write_file(etc, "hosts", "127.0.0.1 localhost atoll\n::1 localhost\n", e) < 0)
		return -1;
	/* Egress answers there; in a box without a network, a query fails at once. */
	return write_file(etc, "resolv.conf", "nameserver 127.0.0.53\n", e);
}

static int write_etc(int etc, struct err *e)
{
	static const char os[] = "../usr/lib/os-release";

	if (write_users(etc, e) < 0 || write_groups(etc, e) < 0 || write_network(etc, e) < 0 ||
	    /* PEP 668 protects packages of the host, which a box cannot write anyway: pip may
	     * install below the home. */
	    write_file(etc, "pip.conf",
		       "[global]\nbreak-system-packages = true\n"
		       "disable-pip-version-check = true\nretries = 1\n",
		       e) < 0 ||
	    write_file(etc, "profile", profile, e) < 0 ||
	    write_file(etc, "nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n", e) <
		    0)
		return -1;
	if (symlinkat(os, etc, "os-release") < 0)
		return err_sys(e, "link os-release");
	/* Leads nowhere but in gVisor: gvisor_write_preload(). */
	if (symlinkat("/opt/atoll/engine/ld.so.preload", etc, "ld.so.preload") < 0)
		return err_sys(e, "link ld.so.preload");
	return 0;
}

static const struct records_place {
	/* clang-format off */
	const char *path;
	unsigned mode, id;
} places[] = {
	{ "dev", 0755, 0 },      { "etc", 0755, 0 },       { "home", 0755, 0 },
	{ "home/user", 0755, 1000 },                       { "media", 0755, 0 },
	{ "mnt", 0755, 0 },      { "opt", 0755, 0 },       { "opt/atoll", 0755, 0 },
	{ "opt/atoll/bin", 0755, 0 },                      { "opt/atoll/python", 0755, 0 },
	{ "proc", 0755, 0 },
	{ "root", 0711, 0 },     { "run", 0755, 0 },       { "srv", 0755, 0 },
	{ "sys", 0755, 0 },      { "tmp", 01777, 0 },      { "usr", 0755, 0 },
	{ "var", 0755, 0 },      { "var/cache", 0755, 0 }, { "var/lib", 0755, 0 },
	{ "var/log", 0755, 0 },  { "var/tmp", 01777, 0 },   { "opt/atoll/dpkg", 0755, 0 },
	{ "opt/atoll/dpkg/triggers", 0755, 0 },           { "var/cache/debconf", 0755, 0 },
	{ "etc/apt", 0755, 0 },  { "etc/apt/apt.conf.d", 0755, 0 },
	{ "etc/apt/preferences.d", 0755, 0 },             { "etc/apt/sources.list.d", 0755, 0 },
	{ "etc/apt/trusted.gpg.d", 0755, 0 },             { "etc/pam.d", 0755, 0 },
	{ "opt/atoll/usr", 0755, 0 },                      { "opt/atoll/engine", 0755, 0 },
	/* clang-format on */
};

int template_has_folder(const char *path)
{
	char host[PATH_MAX];
	struct stat st;

	for (unsigned i = 0; i < ARRAY_LEN(places); i++)
		if (!strcmp(places[i].path, path))
			return 1;
	if (!*path || (strncmp(path, "usr/", 4) != 0 && strncmp(path, "etc/", 4) != 0))
		return !*path;
	return (size_t)snprintf(host, sizeof(host), "/%s", path) < sizeof(host) &&
	       lstat(host, &st) == 0 && S_ISDIR(st.st_mode);
}

static int make_places(int dir, const struct records_place *v, unsigned n, int one_id,
		       struct err *e)
{
	for (unsigned i = 0; i < n; i++) {
		const struct records_place *p = &v[i];

		if (mkdirat(dir, p->path, 0755) < 0 ||
		    (!one_id && fchownat(dir, p->path, p->id, p->id, AT_SYMLINK_NOFOLLOW) < 0) ||
		    fchmodat(dir, p->path, p->mode, 0) < 0)
			return err_sys(e, "make /%s", p->path);
	}
	return 0;
}

static int link_merged(int dir, struct err *e)
{
	static const char *const names[] = { "bin", "sbin", "lib", "lib32", "lib64", "libx32" };
	char usr[24], to[24];

	for (unsigned i = 0; i < ARRAY_LEN(names); i++) {
		snprintf(usr, sizeof(usr), "/usr/%s", names[i]);
		snprintf(to, sizeof(to), "usr/%s", names[i]);
		if (access(usr, F_OK) == 0 && symlinkat(to, dir, names[i]) < 0)
			return err_sys(e, "link /%s", names[i]);
	}
	return 0;
}

/* The programs that run cells, and the agent: drivers.S. One copy for all boxes: they see it
 * through their overlay, so an idle box needs no memory for it. */
static int write_drivers(int dir, struct err *e)
{
	auto_fd int to = openat(dir, "opt/atoll", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (to < 0)
		return err_sys(e, "open opt/atoll");
	for (const struct driver_image *d = driver_images; d->name; d++)
		if (write_bytes(to, d->name, d->bytes, (size_t)(d->end - d->bytes), e) < 0)
			return -1;
	return fchmodat(to, "bin/boxagent", 0755, 0) < 0 ||
			       fchmodat(to, "bin/jupyter", 0755, 0) < 0 ||
			       fchmodat(to, "bin/checkpoint", 0755, 0) < 0
		       ? err_sys(e, "mode of a program in opt/atoll/bin")
		       : 0;
}

/* Many programs for sandboxes use sudo. This one gives no privilege: root of a box is only for
 * clients with its token, so it runs the command as the calling user. */
static const char sudo[] = "#!/bin/sh\n"
			   "while [ $# -gt 0 ]; do\n"
			   "\tcase $1 in\n"
			   "\t--) shift; break ;;\n"
			   "\t-[CDghpRrTtUu]) shift; [ $# = 0 ] || shift ;;\n"
			   "\t-s | -i) shift; [ $# -gt 0 ] || set -- \"${SHELL:-/bin/bash}\" ;;\n"
			   "\t-*) shift ;;\n"
			   "\t[A-Za-z_]*=*) export \"$1\"; shift ;;\n"
			   "\t*) break ;;\n"
			   "\tesac\n"
			   "done\n"
			   "[ $# -gt 0 ] || exit 0\n"
			   "exec \"$@\"\n";

/* Names that programs expect and Debian does not have; last on the PATH. */
static int write_names(int dir, struct err *e)
{
	auto_fd int bin = openat(dir, "opt/atoll/bin", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (bin < 0)
		return err_sys(e, "open opt/atoll/bin");
	if (write_file(bin, "sudo", sudo, e) < 0)
		return -1;
	if (fchmodat(bin, "sudo", 0755, 0) < 0)
		return err_sys(e, "mode of sudo");
	return symlinkat("/usr/bin/python3", bin, "python") < 0 ? err_sys(e, "link python") : 0;
}

/* Copies the list of packages that are installed on the host, and so in every box: it decides which
 * packages an installation in a box adds. A host without dpkg needs no such list. */
static int copy_status(int dir, struct err *e)
{
	auto_fd int from = open("/var/lib/dpkg", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_fd int to = openat(dir, "opt/atoll", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (to < 0)
		return err_sys(e, "open opt/atoll");
	return from < 0 ? 0 : copy_entry(from, to, "status", 0, e);
}

/* Where a box may install packages, these files lie above those of the host (mnt_host.c). The locks of
 * its dpkg can be opened by the host's root only; its overrides name users and groups that no box
 * has; and scripts of packages must not start services. */
static int write_installer(int dir, struct err *e)
{
	static const struct {
		const char *path, *text;
	} files[] = {
		{ "opt/atoll/dpkg/lock", "" },
		{ "opt/atoll/dpkg/lock-frontend", "" },
		{ "opt/atoll/dpkg/triggers/Lock", "" },
		{ "opt/atoll/dpkg/statoverride", "" },
		/* Scripts of packages use chfn. No program of a box has setuid rights, so PAM
		 * has nothing to protect. */
		{ "etc/pam.d/other", "auth required pam_permit.so\naccount required pam_permit.so\n"
				     "password required pam_permit.so\n"
				     "session required pam_permit.so\n" },
	};

	struct stat st;

	for (unsigned i = 0; i < ARRAY_LEN(files); i++)
		if (write_file(dir, files[i].path, files[i].text, e) < 0)
			return -1;
	/* A link of the host must not be replaced by a folder. */
	if (lstat("/usr/sbin", &st) < 0 || !S_ISDIR(st.st_mode))
		return 0;
	if (mkdirat(dir, "opt/atoll/usr/sbin", 0755) < 0 ||
	    write_file(dir, "opt/atoll/usr/sbin/policy-rc.d",
		       "#!/bin/sh\n# No service is started while a template is built.\nexit 101\n",
		       e) < 0 ||
	    fchmodat(dir, "opt/atoll/usr/sbin/policy-rc.d", 0755, 0) < 0)
		return err_sys(e, "write policy-rc.d");
	return 0;
}

/* ---- above the root of an image ---- */

static const struct records_place image_places[] = {
	/* clang-format off */
	{ "dev", 0755, 0 },           { "etc", 0755, 0 },              { "opt", 0755, 0 },
	{ "opt/atoll", 0755, 0 },     { "opt/atoll/bin", 0755, 0 },    { "opt/atoll/python", 0755, 0 },
	{ "proc", 0755, 0 },          { "root", 0700, 0 },             { "run", 0755, 0 },
	{ "sys", 0755, 0 },           { "tmp", 01777, 0 },             { "opt/atoll/engine", 0755, 0 },
	/* clang-format on */
};

int template_image(int dir, int one_id, struct err *e)
{
	auto_fd int etc = -1;

	if (make_places(dir, image_places, ARRAY_LEN(image_places), one_id, e) < 0)
		return err_in(e, "skeleton of images");
	etc = openat(dir, "etc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (etc < 0)
		return err_sys(e, "skeleton of images: open etc");
	if (write_network(etc, e) < 0 || write_drivers(dir, e) < 0 || write_names(dir, e) < 0)
		return err_in(e, "skeleton of images");
	return 0;
}

int template_base(int dir, int one_id, struct err *e)
{
	auto_fd int etc = -1;

	if (make_places(dir, places, ARRAY_LEN(places), one_id, e) < 0 || link_merged(dir, e) < 0)
		return err_in(e, "template base");
	etc = openat(dir, "etc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (etc < 0)
		return err_sys(e, "template base: open etc");
	for (unsigned i = 0; i < template_netc; i++)
		if (copy_allowed(etc, template_etc[i].path, e) < 0)
			return err_in(e, "template base: /etc/%s", template_etc[i].path);
	if (write_etc(etc, e) < 0 || write_drivers(dir, e) < 0 || write_names(dir, e) < 0 ||
	    copy_status(dir, e) < 0 || write_installer(dir, e) < 0)
		return err_in(e, "template base");
	return 0;
}
