/* cp.c - `atoll cp`: copies files and folders into a box and out of it, as cp -r does. */
#include "base/cleanup.h"
#include "cli/box_path.h"
#include "cli/untar.h"
#include "commands/commands.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static int cp_ours(struct api_client *r, const char *what, const char *path)
{
	int status = errno == ENOENT ? STATUS_NOT_FOUND : STATUS_FAILED;
	char shown[SHOWN];

	cli_error_what(&r->error, status == STATUS_FAILED ? "failed" : "not_found", "%s %s: %s",
		       what, cli_error_shown(path, shown), strerror(errno));
	return r->status = status;
}

static int cp_told(struct api_client *r, const char *box, const json_t *answer)
{
	if (r->status)
		api_client_explain_box(r, box);
	else if (r->cli->json && answer)
		api_client_print(answer);
	return r->status;
}

/* The target of a copy of `from`: a file in `to` if that is a folder, else `to`. */
static char *cp_target(const char *to, int is_folder, const char *from)
{
	struct buf path = { 0 };
	char last[256];
	size_t n = strlen(to);

	buf_puts(&path, n ? to : ".");
	box_path_last(from, last);
	/* "dir/." means the content of dir. */
	if (*last && (is_folder || (n && to[n - 1] == '/')))
		buf_printf(&path, "%s%s", path.p[path.len - 1] == '/' ? "" : "/", last);
	return buf_steal(&path);
}

/* ---- in ---- */

static int put_archive(struct api_client *r, const char *box, const char *path, int from)
{
	auto_free char *url =
		api_client_path("/v1/boxes/%s/files/archive?path=%s", box, *path ? path : ".");
	struct api_client_bytes x = {
		.method = "PUT", .path = url, .type = "application/x-tar", .from = from, .to = -1
	};

	r->status = api_client_bytes(r, &x);
	cp_told(r, box, x.answer);
	json_decref(x.answer);
	return r->status;
}

static int put_file(struct api_client *r, const char *box, const char *path, int from, mode_t mode)
{
	auto_free char *begin = api_client_path("/v1/boxes/%s/files?path=%s", box, path);
	auto_buf struct buf url = { 0 };
	struct api_client_bytes x = {
		.method = "PUT", .type = "application/octet-stream", .from = from, .to = -1
	};

	buf_printf(&url, "%s&mode=%04o", begin, (unsigned)mode & 0777);
	x.path = buf_str(&url);
	r->status = api_client_bytes(r, &x);
	cp_told(r, box, x.answer);
	json_decref(x.answer);
	return r->status;
}

static int put_folder(struct api_client *r, const char *folder, const char *box, const char *path)
{
	auto_fd int fd = -1;
	pid_t pid = box_path_start_tar(folder, &fd);
	int how = 0, status;

	if (pid < 0)
		return cp_ours(r, "start tar for", folder);
	status = put_archive(r, box, path, fd);
	own_close_fd(&fd);
	waitpid(pid, &how, 0);
	if (!status && how != 0) {
		cli_error_what(&r->error, "failed", "tar could not read all of %.200s", folder);
		status = r->status = STATUS_FAILED;
	}
	return status;
}

static int copy_in(struct api_client *r, const char *from, const struct box_path *to)
{
	auto_fd int fd = -1;
	auto_free char *path = NULL;
	struct stat st;
	int there;

	if (!strcmp(from, "-"))
		return put_archive(r, to->box, to->path, 0);
	fd = open(from, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st) < 0)
		return cp_ours(r, "read", from);
	there = box_path_look(r, to->box, to->path, NULL);
	if (there < 0)
		return r->status;
	path = cp_target(to->path, there == BOX_PATH_FOLDER, from);
	if (S_ISDIR(st.st_mode)) {
		if (there == BOX_PATH_NOTHING) { /* then it is the target itself */
			free(path);
			path = cp_target(to->path, 0, "");
		}
		return put_folder(r, from, to->box, path);
	}
	if (!S_ISREG(st.st_mode) && !S_ISFIFO(st.st_mode)) {
		errno = EINVAL;
		return cp_ours(r, "read", from);
	}
	(void)!fcntl(fd, F_SETFL, 0);
	return put_file(r, to->box, path, fd, S_ISREG(st.st_mode) ? st.st_mode : 0644);
}

/* ---- out ---- */

/* It appears completely, or not at all. */
static int get_file(struct api_client *r, const struct box_path *from, const char *to,
		    unsigned mode)
{
	auto_free char *url = box_path_content(r, from);
	auto_buf struct buf hidden = { 0 };
	struct api_client_bytes x = { .method = "GET", .path = url, .from = -1 };
	auto_fd int fd = -1;
	mode_t mask = umask(0);

	umask(mask);
	if (!url)
		return r->status;
	buf_printf(&hidden, "%s.XXXXXX", to);
	fd = mkostemp(hidden.p, O_CLOEXEC);
	if (fd < 0)
		return cp_ours(r, "write", to);
	x.to = fd;
	r->status = api_client_bytes(r, &x);
	if (!r->status && (fchmod(fd, mode & 0777 & ~mask) < 0 || rename(hidden.p, to) < 0))
		cp_ours(r, "write", to);
	else if (!r->status && r->cli->json) {
		json_t *doc = json_pack("{s:o, s:I}", "path", json_string(to), "size",
					(json_int_t)x.written);

		api_client_print(doc);
		json_decref(doc);
	}
	if (r->status)
		unlink(hidden.p);
	return box_path_of_checkpoint(from) ? r->status : cp_told(r, from->box, NULL);
}

static int cp_sink(void *ctx, const char *bytes, size_t n, struct err *e)
{
	return untar_take(ctx, bytes, n, e);
}

static int get_folder(struct api_client *r, const struct box_path *from, const char *to)
{
	auto_free char *url = api_client_path("/v1/boxes/%s/files/archive?path=%s", from->box,
					      *from->path ? from->path : ".");
	struct api_client_bytes x = {
		.method = "GET", .path = url, .from = -1, .to = -1, .sink = cp_sink
	};
	auto_fd int root = -1;
	struct untar u;
	struct err e;

	if (mkdir(to, 0777) < 0 && errno != EEXIST)
		return cp_ours(r, "make the folder", to);
	root = open(to, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return cp_ours(r, "open the folder", to);
	untar_init(&u, root);
	x.ctx = &u;
	r->status = api_client_bytes(r, &x);
	if (!r->status && untar_end(&u, &e) < 0) {
		cli_error_what(&r->error, "failed", "%s", e.msg);
		r->status = STATUS_FAILED;
	}
	if (!r->status && u.skipped && !r->cli->quiet)
		fprintf(stderr,
			"atoll: %llu entries were left out: no files, folders or links, or not "
			"below the folder\n",
			(unsigned long long)u.skipped);
	if (!r->status && r->cli->json) {
		json_t *doc = json_pack("{s:o, s:I, s:I}", "path", json_string(to), "files",
					(json_int_t)u.files, "skipped", (json_int_t)u.skipped);

		api_client_print(doc);
		json_decref(doc);
	}
	untar_fini(&u);
	return cp_told(r, from->box, NULL);
}

static int get_archive(struct api_client *r, const struct box_path *from)
{
	auto_free char *url = api_client_path("/v1/boxes/%s/files/archive?path=%s", from->box,
					      *from->path ? from->path : ".");
	struct api_client_bytes x = { .method = "GET", .path = url, .from = -1, .to = 1 };

	if (isatty(1)) {
		api_client_usage(r, "will not write an archive to a terminal");
		cli_error_hint(&r->error, "type", "atoll cp %s:%s - | tar t", from->box,
			       from->path);
		return r->status;
	}
	r->status = api_client_bytes(r, &x);
	return cp_told(r, from->box, NULL);
}

static int copy_out(struct api_client *r, const struct box_path *from, const char *to)
{
	auto_free char *path = NULL;
	struct stat st;
	unsigned mode = 0644;
	int is_folder = stat(to, &st) == 0 && S_ISDIR(st.st_mode), there;
	char shown[SHOWN];

	if (box_path_of_checkpoint(from) && strcmp(to, "-") != 0) {
		path = cp_target(to, is_folder, from->path);
		return get_file(r, from, path, mode);
	}
	if (box_path_of_checkpoint(from)) {
		api_client_usage(r, "cp: no archive of a checkpoint");
		cli_error_hint(&r->error, "type", "atoll checkpoint export CHECKPOINT FILE");
		return r->status;
	}
	if (!strcmp(to, "-"))
		return get_archive(r, from);
	there = box_path_look(r, from->box, from->path, &mode);
	if (there < 0)
		return r->status;
	if (there == BOX_PATH_NOTHING) {
		cli_error_what(&r->error, "not_found", "%s does not exist in %s",
			       cli_error_shown(from->path, shown), from->box);
		return r->status = STATUS_NOT_FOUND;
	}
	/* A folder that does not exist yet is the target itself. */
	path = cp_target(to, is_folder, there == BOX_PATH_FOLDER && !is_folder ? "" : from->path);
	return there == BOX_PATH_FOLDER ? get_folder(r, from, path) : get_file(r, from, path, mode);
}

/* ---- which way ---- */

static int cp_copy(struct api_client *r, const struct args *a)
{
	struct box_path from, to;

	if (a->nwords == 2) {
		box_path_parse(&from, a->words[0]);
		box_path_parse(&to, a->words[1]);
		if (!from.box[0] && to.box[0])
			return copy_in(r, a->words[0], &to);
		if (from.box[0] && !to.box[0])
			return copy_out(r, &from, a->words[1]);
		api_client_usage(r, from.box[0] ? "one of the two must be here"
						: "one of the two must be in a box");
	} else {
		api_client_usage(r, "cp: missing source or destination");
	}
	cli_error_hint(&r->error, "in", "atoll cp FILE BOX:PATH");
	cli_error_hint(&r->error, "out", "atoll cp BOX:PATH FILE");
	cli_error_hint(&r->error, "across", "atoll cp BOX:PATH - | atoll cp - OTHER:PATH");
	return r->status;
}

static int run_cp(const struct cli *cli, const struct args *a)
{
	return api_client_command(cli, a, cp_copy);
}

static const struct example examples[] = {
	{ "atoll cp ./src demo:src/", "copy a folder into the box" },
	{ "atoll cp demo:out.png .", "copy a file from the home folder of the box" },
	{ "atoll cp demo@good:out.png .", "... as it was at the checkpoint good" },
	{ "tar c . | atoll cp - demo:", "unpack an archive from stdin in the home folder" },
	{ "atoll cp demo:/home/user - | tar t", "write an archive to stdout" },
	{ 0 },
};

const struct command command_cp = {
	.name = "cp",
	.group = "Files",
	.usage = "FILE BOX:PATH | BOX:PATH FILE",
	.summary = "copy files and folders into a box or out of it",
	.notes =
		"Copies like cp -r: into the destination if it is an existing folder, else under the name of the\n"
		"destination. DIR/. copies the contents of DIR. Relative paths of a box are below /home/user. A\n"
		"local name with a colon is written ./a:b. - is a tar archive on stdin or stdout. Files from a box\n"
		"are created below the given folder and never through a symbolic link; devices and other special\n"
		"files are skipped.",
	.max_words = 2,
	.examples = examples,
	.run = run_cp,
};
