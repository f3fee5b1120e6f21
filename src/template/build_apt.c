/* build_apt.c - before a command over base: apt-get gets the mirrors of packages.apt_mirrors, as
 * /etc/apt/sources.list. A list that the template has already stays. See build_internal.h. */
#include "template/build_internal.h"
#include "base/cleanup.h"
#include "lang/apt_sources.h"

#include <string.h>

#define APT_LIST "/etc/apt/sources.list"

static void apt_listed(struct build *b)
{
	build_changes_free(b);
	b->apt_ready(b);
}

static void apt_release_read(struct build *b)
{
	auto_buf struct buf text = { 0 };

	if (apt_sources(b->all->fleet->conf.packages.install.source[PM_APT], buf_str(&b->release),
			&text) < 0) {
		build_log(b, "warn",
			  "apt-get has no source: /usr/lib/os-release has no known release");
		b->apt_ready(b);
		return;
	}
	build_changes_new(b, apt_listed);
	build_change_add(b, WIRE_PUT, APT_LIST, 0644)->text = buf_text("%s", buf_str(&text));
	build_change_next(b);
}

static void apt_release_data(struct file_client *c, const char *bytes, size_t n)
{
	struct build *b = loop_owner(c, struct build_box, files)->build;

	if (n == 0)
		apt_release_read(b);
	else if (b->release.len + n <= BUILD_TEXT)
		buf_add(&b->release, bytes, n);
}

static void apt_list_exists(struct file_client *c, const struct wire_entry *x, const char *name,
			    size_t n)
{
	struct build *b = loop_owner(c, struct build_box, files)->build;

	(void)x;
	(void)name;
	(void)n;
	b->apt_ready(b);
}

static void apt_list_missing(struct file_client *c, const struct err *e)
{
	static const struct file_client_events on = { .data = apt_release_data,
						      .failed = build_change_failed };
	static const char path[] = "/usr/lib/os-release";
	struct build *b = loop_owner(c, struct build_box, files)->build;
	struct wire_get ask = { .bytes = BUILD_TEXT };

	if (e->kind != ERR_NOT_FOUND) {
		build_fail_err(b, e);
		return;
	}
	buf_cut(&b->release, 0);
	b->box.files.on = &on;
	file_client_ask(&b->box.files, WIRE_GET, &ask, sizeof(ask), path, strlen(path));
}

void build_apt(struct build *b, void (*ready)(struct build *b))
{
	static const struct file_client_events on = { .entry = apt_list_exists,
						      .failed = apt_list_missing };
	struct frame ask = { 0 };

	if (!json_is_true(json_object_get(build_stage(b), "base")) ||
	    !b->all->fleet->conf.packages.install.source[PM_APT]) {
		ready(b);
		return;
	}
	b->apt_ready = ready;
	b->box.files.on = &on;
	file_client_ask(&b->box.files, WIRE_ENTRY_OF, &ask, sizeof(ask), APT_LIST,
			strlen(APT_LIST));
}
