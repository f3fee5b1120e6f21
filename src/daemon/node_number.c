/* node_number.c - see node_number.h. */
#include "daemon/node_number.h"
#include "base/cleanup.h"
#include "base/id.h"
#include "cluster/control.h"
#include "cluster/role.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int node_number_parse(const char *text, size_t n, uint32_t *out, struct err *e)
{
	size_t digits = strspn(text, "0123456789");
	uint32_t number = 0;

	for (size_t i = 0; i < digits && number <= CLUSTER_NUMBER_MAX; i++)
		number = number * 10 + (uint32_t)(text[i] - '0');
	if (!digits || text[0] == '0' || number > CLUSTER_NUMBER_MAX ||
	    n != digits + (text[digits] == '\n'))
		return err_set(e, ERR_INVALID,
			       "cluster/number: '%.20s' is not a number from 1 to %d; join the "
			       "cluster again: atoll node join",
			       text, CLUSTER_NUMBER_MAX);
	*out = number;
	return 0;
}

int node_number_read(const char *state, uint32_t *out, struct err *e)
{
	char path[1200], text[64] = "";
	auto_fd int fd = -1;
	ssize_t n;

	*out = ID_NODES;
	snprintf(path, sizeof(path), "%.1000s/cluster/number", state);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
		return 0;
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n < 0)
		return err_sys(e, "read %.200s", path);
	return node_number_parse(text, (size_t)n, out, e);
}

void node_machine_read(const char *state, char out[NODE_MACHINE])
{
	char path[1200], boot[64] = "", text[160];
	auto_fd int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	struct stat st;

	out[0] = 0;
	snprintf(path, sizeof(path), "%.1000s/cluster", state);
	if (fd < 0 || read(fd, boot, sizeof(boot) - 1) <= 0 || stat(path, &st) < 0)
		return;
	snprintf(text, sizeof(text), "%s %llx %llx", boot, (unsigned long long)st.st_dev,
		 (unsigned long long)st.st_ino);
	snprintf(out, NODE_MACHINE, "%016llx", (unsigned long long)control_hash(text));
}
