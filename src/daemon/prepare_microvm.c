/* prepare_microvm.c - `atoll tier prepare microvm`: gives src/tier/qemu_prepare.c the images of init and
 * mux, and the skeleton of a box's root. */
#include "base/cleanup.h"
#include "daemon/prepare.h"
#include "keeper/host_state.h"
#include "keeper/template.h"
#include "tier/tier.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int microvm_open_folder(const char *path, struct err *e)
{
	int fd;

	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return err_sys(e, "make %s", path);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? err_sys(e, "open %s", path) : fd;
}

static int microvm_prepare(const struct tier_host *h, int quiet, struct err *e)
{
	const struct tier *t = tier_find(WIRE_TIER_MICROVM);
	struct wire_tier_facts facts;

	tier_probe(WIRE_TIER_MICROVM, h, &facts);
	if (!facts.sha256[0])
		return err_set(e, ERR_NOT_FOUND, "%s", facts.reason);
	if (!quiet)
		fprintf(stderr, "QEMU %s: image of /usr, then one guest of each memory class ...\n",
			facts.version);
	if (t->prepare(h, &facts, e) < 0)
		return -1;
	tier_probe(WIRE_TIER_MICROVM, h, &facts);
	if (facts.state != WIRE_TIER_OFFERED)
		return err_set(e, ERR_SYS, "%s", facts.reason);
	if (!quiet)
		fprintf(stderr, "microvm is prepared: %s%s\n", facts.platform,
			facts.emulated ? " (emulated: KVM does not run a guest here)" : "");
	return 0;
}

static void microvm_remove(int *folder, const char *path)
{
	struct err ignored;

	if (*folder < 0)
		return;
	own_close_fd(folder);
	if (prepare_remove(path, &ignored) < 0)
		fprintf(stderr, "atoll: %s\n", ignored.msg);
}

static int microvm_run(const struct state_dir *dir, const struct prepare_how *how, struct err *e)
{
	struct tier_host h = {
		.dir = -1, .init_exe = -1, .mux_exe = -1, .skeleton = -1, .image_skeleton = -1
	};
	char skeleton[600], image[600];
	int done;

	if (geteuid() != 0)
		return err_set(e, ERR_DENIED, "needs root; type: sudo atoll tier prepare microvm");
	if (how->from)
		return err_set(e, ERR_INVALID, "--from is not for microvm");
	if (snprintf(h.dir_path, sizeof(h.dir_path), "%s/tiers", dir->state) >=
	    (int)sizeof(h.dir_path))
		return err_set(e, ERR_LIMIT, "the name of the state folder is too long");
	snprintf(skeleton, sizeof(skeleton), "%s/skeleton.new", h.dir_path);
	snprintf(image, sizeof(image), "%s/image.new", h.dir_path);
	umask(0); /* the modes of the skeleton are those of a box */
	h.dir = microvm_open_folder(h.dir_path, e);
	done = h.dir < 0 || prepare_remove(skeleton, e) < 0 ||
			       (h.skeleton = microvm_open_folder(skeleton, e)) < 0 ||
			       fchmod(h.skeleton, 0755) < 0 ||
			       template_base(h.skeleton, 0, e) < 0 ||
			       prepare_remove(image, e) < 0 ||
			       (h.image_skeleton = microvm_open_folder(image, e)) < 0 ||
			       fchmod(h.image_skeleton, 0755) < 0 ||
			       template_image(h.image_skeleton, 0, e) < 0 ||
			       host_seal_images(&h.init_exe, &h.mux_exe, e) < 0
		       ? -1
		       : microvm_prepare(&h, how->quiet, e);
	microvm_remove(&h.skeleton, skeleton);
	microvm_remove(&h.image_skeleton, image);
	own_close_fd(&h.dir);
	own_close_fd(&h.init_exe);
	own_close_fd(&h.mux_exe);
	return done;
}

const struct preparation preparation_microvm = {
	.name = "microvm",
	.summary = "kernel, image of /usr and saved guests for virtual machines",
	.run = microvm_run,
};
