/* state_dir.c - see state_dir.h. */
#include "daemon/state_dir.h"
#include "base/cleanup.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SERVER_UID = 64170 };

/* The user that the server becomes: as configured, else the user "atoll" where it exists, else
 * an unused uid. Started by a user that is not root, it keeps that uid. */
static int find_user(struct state_dir *h, const struct config *c, struct err *e)
{
	const char *name = config_text(c, CONFIG_USER);
	const struct passwd *pw = getpwnam(name ? name : "atoll");
	char *end;

	h->uid = (uid_t)-1;
	if (geteuid() != 0)
		return 0;
	if (pw) {
		h->uid = pw->pw_uid;
		h->gid = pw->pw_gid;
		return pw->pw_uid ? 0
				  : err_set(e, ERR_INVALID,
					    "serve.user: the server must not run as root");
	}
	h->uid = h->gid = name ? (uid_t)strtoul(name, &end, 10) : SERVER_UID;
	if (name && (*end || h->uid == 0))
		return err_set(e, ERR_NOT_FOUND, "serve.user: no user named '%.40s'", name);
	return 0;
}

/* Members of this group are owners of team default. Group 0 would include processes of root that dropped their uid. */
static int find_group(struct state_dir *h, const struct config *c, struct err *e)
{
	const char *name = config_text(c, CONFIG_GROUP);
	const struct group *gr = name ? getgrnam(name) : NULL;
	unsigned long gid = 0;
	char *end = NULL;

	if (!name)
		return 0;
	if (gr)
		gid = gr->gr_gid;
	else if (*name >= '0' && *name <= '9')
		gid = strtoul(name, &end, 10);
	if ((!gr && (!end || *end)) || gid >= UINT32_MAX)
		return err_set(e, ERR_NOT_FOUND, "serve.group: no group named '%.40s'", name);
	if (gid == 0)
		return err_set(e, ERR_INVALID, "serve.group: must not be the group of root");
	h->access_gid = (gid_t)gid;
	return 0;
}

int state_dir_make(const char *path, mode_t mode, struct err *e)
{
	char part[1200];

	snprintf(part, sizeof(part), "%s", path);
	for (char *p = part + 1; *p; p++) {
		if (*p != '/')
			continue;
		*p = 0;
		if (mkdir(part, 0755) < 0 && errno != EEXIST)
			return err_sys(e, "make folder %s", part);
		*p = '/';
	}
	if (mkdir(path, mode) < 0 && errno != EEXIST)
		return err_sys(e, "make folder %s", path);
	return 0;
}

/* Version 0.1 has named the server's folder "front". An existing one is used and not renamed: during
 * an upgrade the old server still has its files open. */
static void find_folder(struct state_dir *h)
{
	static const char *const names[] = { "server", "front" };

	for (unsigned i = 0; i < ARRAY_LEN(names); i++) {
		snprintf(h->folder, sizeof(h->folder), "%s/%s", h->state, names[i]);
		if (access(h->folder, F_OK) == 0)
			return;
	}
	snprintf(h->folder, sizeof(h->folder), "%s/server", h->state);
}

/* The state folder stays root's, or the server could place files in it that mislead the keeper. */
static int make_state(struct state_dir *h, const struct config *c, struct err *e)
{
	const char *state = config_text(c, CONFIG_STATE);
	struct stat st;

	snprintf(h->state, sizeof(h->state), "%s", state);
	find_folder(h);
	if (state_dir_make(h->folder, 0700, e) < 0)
		return -1;
	/* A keeper may have created it, for itself alone; the server needs to pass through it. */
	if (h->uid != (uid_t)-1 && stat(h->state, &st) == 0 && st.st_uid == 0 &&
	    chmod(h->state, (st.st_mode & 07777) | 0111) < 0)
		return err_sys(e, "make %s accessible to the server", h->state);
	if (h->uid != (uid_t)-1 && chown(h->folder, h->uid, h->gid) < 0)
		return err_sys(e, "give %s to uid %u", h->folder, (unsigned)h->uid);
	return 0;
}

int state_dir_open(struct state_dir *h, const struct config *c, struct err *e)
{
	*h = (struct state_dir){ .uid = (uid_t)-1 };
	if (find_user(h, c, e) < 0 || find_group(h, c, e) < 0)
		return -1;
	return make_state(h, c, e);
}

int state_dir_find(struct state_dir *h, const char *state, const char *config, struct err *e)
{
	struct config_given given = { CONFIG_STATE, state };
	struct config_source src = { .file = config, .given = &given, .ngiven = state != NULL };
	struct config c;
	int rc;

	if (config_load(&c, &src, e) < 0)
		return -1;
	rc = state_dir_open(h, &c, e);
	config_fini(&c);
	return rc;
}
