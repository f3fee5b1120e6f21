/* cert.c - `atoll cert`: TLS for a domain of boxes on a machine without a public certificate. */
#include "base/cleanup.h"
#include "record/record.h"
#include "commands/commands.h"
#include "http/dev_ca.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum { CERT_DIR, CERT_FORCE, CERT_FLAGS };

static const struct flag flags[CERT_FLAGS] = {
	[CERT_DIR] = { "dir", 0, FLAG_TEXT, "DIR",
		       "folder for the files (default: current folder)" },
	[CERT_FORCE] = { "force", 0, FLAG_SWITCH, NULL, "replace existing files" },
};

enum { FILE_CA, FILE_CERT, FILE_KEY, FILES };
static const struct {
	const char *name, *new_name;
	mode_t mode;
} files[FILES] = {
	[FILE_CA] = { "ca.pem", ".ca.pem.new", 0644 },
	[FILE_CERT] = { "cert.pem", ".cert.pem.new", 0644 },
	[FILE_KEY] = { "key.pem", ".key.pem.new", 0600 },
};

/* ---- files ---- */

static int open_folder(const char *path, struct err *e)
{
	int fd;

	if (mkdir(path, 0755) < 0 && errno != EEXIST)
		return err_sys(e, "make the folder %.100s", path);
	fd = open(path, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
	return fd < 0 ? err_sys(e, "open the folder %.100s", path) : fd;
}

static int any_there(int dir, struct err *e)
{
	for (unsigned i = 0; i < FILES; i++)
		if (faccessat(dir, files[i].name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
			return err_set(e, ERR_CONFLICT, "there is a %s already", files[i].name);
	return 0;
}

static int write_one(int dir, unsigned which, const struct buf *text, struct err *e)
{
	auto_fd int fd = -1;

	(void)!unlinkat(dir, files[which].new_name, 0); /* left by an interrupted command */
	fd = openat(dir, files[which].new_name,
		    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, files[which].mode);
	if (fd < 0 || fchmod(fd, files[which].mode) < 0 ||
	    write(fd, text->p, text->len) != (ssize_t)text->len || fsync(fd) < 0)
		return err_sys(e, "write %s", files[which].name);
	return 0;
}

/* Either all files are replaced or none: an old key with a new certificate would not work. */
static int write_all(int dir, const struct ca_files *made, int force, struct err *e)
{
	const struct buf *texts[FILES] = {
		[FILE_CA] = &made->ca, [FILE_CERT] = &made->cert, [FILE_KEY] = &made->key
	};
	unsigned replace = force ? 0 : RENAME_NOREPLACE, i;
	int rc = force ? 0 : any_there(dir, e);

	for (i = 0; i < FILES && rc == 0; i++)
		rc = write_one(dir, i, texts[i], e);
	for (i = 0; i < FILES && rc == 0; i++)
		if (renameat2(dir, files[i].new_name, dir, files[i].name, replace) < 0)
			rc = err_sys(e, "rename %s to its final name", files[i].name);
	for (i = 0; i < FILES && rc < 0; i++)
		(void)!unlinkat(dir, files[i].new_name, 0);
	return rc;
}

/* ---- the command ---- */

static int cert_refused(const struct cli *cli, const char *domain, const struct err *e)
{
	struct cli_error t;

	cli_error_what(&t, err_kind_name(e->kind), "%s", e->msg);
	if (e->kind == ERR_CONFLICT)
		cli_error_hint(&t, "replace", "atoll cert %.100s --force", domain);
	if (e->kind == ERR_INVALID)
		cli_error_hint(&t, "type", "atoll cert box.localhost");
	return cli_error_print(&t, cli->json,
			       e->kind == ERR_INVALID ? STATUS_USAGE : STATUS_FAILED);
}

/* ":7070"; "" for the default port of https; ":PORT" if the settings have none. */
static void cert_port(const struct cli *cli, char out[16])
{
	unsigned port = cli->listen_port ? cli->listen_port() : 0;

	out[0] = 0;
	if (port == 0)
		snprintf(out, 16, ":PORT");
	else if (port != 443)
		snprintf(out, 16, ":%u", port);
}

static void cert_tell(const struct cli *cli, const char *domain, const char *where,
		      const struct ca_files *made)
{
	char until[32], port[16];
	time_t at = made->until_s;
	struct tm day;

	cert_port(cli, port);
	strftime(until, sizeof(until), "%Y-%m-%d", gmtime_r(&at, &day));
	printf("%s/ca.pem, cert.pem, key.pem: for %s and *.%s, until %s\n\n", where, domain, domain,
	       until);
	printf("The daemon:\n  atoll serve --tls-cert %s/cert.pem --tls-key %s/key.pem --domain %s\n",
	       where, where, domain);
	printf("Its clients:\n  export NODE_EXTRA_CA_CERTS=%s/ca.pem   # Node\n"
	       "  export SSL_CERT_FILE=%s/ca.pem         # Python, and most others\n"
	       "  curl --cacert %s/ca.pem https://%s%s/\n",
	       where, where, where, domain, port);
}

static void tell_json(const char *domain, const char *where, const struct ca_files *made)
{
	json_t *doc =
		json_pack("{s:s, s:o, s:s, s:o}", "domain", domain, "until",
			  json_time((uint64_t)made->until_s * 1000000000u), "fingerprint",
			  made->fingerprint, "names", json_pack("[s, s+]", domain, "*.", domain));
	char path[PATH_MAX + 16];

	for (unsigned i = 0; i < FILES; i++) {
		snprintf(path, sizeof(path), "%s/%s", where, files[i].name);
		json_object_set_new(doc,
				    i == FILE_CA     ? "ca"
				    : i == FILE_CERT ? "cert"
						     : "key",
				    json_string(path));
	}
	json_dumpf(doc, stdout, JSON_COMPACT);
	putchar('\n');
	json_decref(doc);
}

static int cert_make(const struct cli *cli, const struct args *a, const char *domain, struct err *e)
{
	const char *path = args_text(a, CERT_DIR, ".");
	char where[PATH_MAX];
	struct ca_files made = { 0 };
	auto_fd int dir = -1;
	int rc;

	if (ca_check_domain(domain, e) < 0)
		return -1;
	dir = open_folder(path, e);
	if (dir < 0)
		return -1;
	if (!realpath(path, where))
		return err_sys(e, "find %.100s", path);
	rc = ca_make(domain, &made, e);
	if (rc == 0)
		rc = write_all(dir, &made, args_has(a, CERT_FORCE), e);
	if (rc == 0 && cli->json)
		tell_json(domain, where, &made);
	else if (rc == 0 && !cli->quiet)
		cert_tell(cli, domain, where, &made);
	ca_fini(&made);
	return rc;
}

static int cert_cert(const struct cli *cli, const struct args *a)
{
	char domain[256];
	struct cli_error t;
	struct err e;

	if (a->nwords != 1) {
		cli_error_what(&t, "usage", "cert: missing domain");
		cli_error_hint(&t, "type", "atoll cert box.localhost");
		return cli_error_print(&t, cli->json, STATUS_USAGE);
	}
	snprintf(domain, sizeof(domain), "%s", a->words[0]);
	for (char *p = domain; *p; p++)
		*p = (char)tolower((unsigned char)*p);
	return cert_make(cli, a, domain, &e) < 0 ? cert_refused(cli, domain, &e) : 0;
}

static const struct example examples[] = {
	{ "atoll cert box.localhost --dir ~/.atoll/tls",
	  "create a certificate for https://3000-<box>.box.localhost" },
	{ "atoll cert box.localhost --force", "replace expired certificates" },
	{ 0 },
};

const struct command command_cert = {
	.name = "cert",
	.group = "Machine",
	.usage = "DOMAIN",
	.summary = "create a certificate for a domain of boxes, for development",
	.notes =
		"Creates a certificate authority that is valid only for this domain, and a certificate for DOMAIN\n"
		"and *.DOMAIN signed by it. The key of the authority is discarded.",
	.flags = flags,
	.nflags = CERT_FLAGS,
	.max_words = 1,
	.examples = examples,
	.run = cert_cert,
};
