/* cluster_files.c - see cluster_files.h. */
#include "daemon/cluster_files.h"
#include "base/cleanup.h"
#include "cluster/ca.h"
#include "daemon/state_dir.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void cluster_files_folder(const struct config *c, char out[1200])
{
	snprintf(out, 1200, "%.1100s/cluster", config_text(c, CONFIG_STATE));
}

static int cluster_files_make_folder(const char *path, struct err *e)
{
	if (state_dir_make(path, 0700, e) < 0)
		return -1;
	return chmod(path, 0700) < 0 ? err_sys(e, "chmod 700 %.200s", path) : 0;
}

/* Complete or not at all, also after a crash. */
static int cluster_files_write(const char *folder, const char *name, const struct buf *text,
			       struct err *e)
{
	char path[1300], part[1320];
	auto_fd int fd = -1;

	snprintf(path, sizeof(path), "%.1200s/%s", folder, name);
	snprintf(part, sizeof(part), "%s.new", path);
	fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, text->p, text->len) != (ssize_t)text->len || fsync(fd) < 0 ||
	    rename(part, path) < 0)
		return err_sys(e, "write %.200s", path);
	return 0;
}

int cluster_files_load(struct cluster_identity *id, const struct config *c, struct err *e)
{
	char folder[1200];

	cluster_files_folder(c, folder);
	return cluster_identity_load(id, folder, e);
}

int cluster_files_store(const struct cluster_identity *id, const struct cluster_peer *self,
			const struct config *c, struct err *e)
{
	auto_buf struct buf number = { 0 };
	char folder[1200];

	cluster_files_folder(c, folder);
	buf_printf(&number, "%u\n", self->number);
	if (cluster_files_make_folder(folder, e) < 0 ||
	    cluster_files_write(folder, "own.key", &id->key, e) < 0 ||
	    cluster_files_write(folder, "ca.crt", &id->ca, e) < 0 ||
	    cluster_files_write(folder, "number", &number, e) < 0)
		return -1;
	return cluster_files_write(folder, "own.crt", &id->cert, e);
}

int cluster_files_key(const struct config *c, struct buf *out_key, struct buf *out_request,
		      struct err *e)
{
	char folder[1200];

	cluster_files_folder(c, folder);
	if (cluster_files_make_folder(folder, e) < 0)
		return -1;
	if (cluster_read_file(folder, "own.key", out_key, e) == 0)
		return cluster_ca_request_for(out_key, out_request, e);
	if (e->kind != ERR_NOT_FOUND || cluster_ca_request(out_request, out_key, e) < 0)
		return -1;
	return cluster_files_write(folder, "own.key", out_key, e);
}

int cluster_files_check_secrets(const char *secrets, struct err *e)
{
	struct stat st;

	if (stat(secrets, &st) < 0)
		return errno == ENOENT
			       ? err_set(e, ERR_NOT_FOUND,
					 "cluster.secrets: %.120s does not exist; type `atoll cluster "
					 "init`, or copy the folder of another gateway",
					 secrets)
			       : err_sys(e, "cluster.secrets: %.120s", secrets);
	if (st.st_mode & 077)
		return err_set(
			e, ERR_INVALID,
			"cluster.secrets: %.120s has mode %04o, and other users must not read it; "
			"type `chmod 700 %.120s`",
			secrets, (unsigned)(st.st_mode & 07777), secrets);
	return 0;
}

int cluster_files_make_ca(const char *secrets, struct err *e)
{
	auto_buf struct buf cert = { 0 };
	struct buf key = { 0 };
	int rc = cluster_ca_make(&cert, &key, e);

	if (rc == 0)
		rc = cluster_files_make_folder(secrets, e) < 0 ||
				     cluster_files_write(secrets, "ca.crt", &cert, e) < 0 ||
				     cluster_files_write(secrets, "ca.key", &key, e) < 0
			     ? -1
			     : 0;
	if (key.p)
		explicit_bzero(key.p, key.room);
	buf_fini(&key);
	return rc;
}

void cluster_files_name(const struct config *c, char out[CLUSTER_NAME_MAX + 1])
{
	const char *name = config_text(c, CONFIG_CLUSTER_NAME);
	char host[256] = "";
	size_t n = 0;

	if (!name && gethostname(host, sizeof(host) - 1) == 0)
		name = host;
	for (; name && *name && n < CLUSTER_NAME_MAX; name++) {
		char letter = (char)tolower((unsigned char)*name);

		if (isalnum((unsigned char)letter) || (n && (letter == '-' || letter == '.')))
			out[n++] = letter;
		else if (n)
			out[n++] = '-';
	}
	out[n] = 0;
	if (!n)
		snprintf(out, CLUSTER_NAME_MAX + 1, "machine");
}
