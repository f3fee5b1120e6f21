/* host_main.c - see host.h: start.
 *
 *   atoll-wasm [--memory=MIB] [--deterministic] [--] ARGUMENT...
 *   atoll-wasm --save FILE ARGUMENT...     the preparation: executes until the state can be saved */
#include "wasm/host.h"
#include <stdio.h>
#include <unistd.h>

/* What the driver of an interpreter reads after its state was restored: the working folder, arguments, environment. */
static void host_start_text(void)
{
	static char text[262144];
	size_t n = 0;
	char cwd[4096];
	char **const lists[] = { host.argv, host.envp };

	if (!getcwd(cwd, sizeof cwd))
		memcpy(cwd, "/", 2);
	n = (size_t)snprintf(text, sizeof text, "%s", cwd) + 1;
	for (int i = 0; i < 2; i++) {
		for (char **p = lists[i]; *p; p++) {
			size_t k = strlen(*p) + 1;

			if (n + k + 1 > sizeof text)
				host_fail("arguments and environment are larger than 256 KiB",
					  NULL);
			memcpy(text + n, *p, k);
			n += k;
		}
		text[n++] = 0; /* an empty text ends the list */
	}
	host_files_start_text(text, n);
}

static int host_parse(char **argv)
{
	int i = 1;

	for (; argv[i] && argv[i][0] == '-' && argv[i][1] == '-'; i++) {
		if (!strcmp(argv[i], "--"))
			return i + 1;
		if (!strcmp(argv[i], "--deterministic"))
			host.deterministic = true;
		else if (!strncmp(argv[i], "--memory=", 9))
			host.pages_max =
				(uint32_t)((strtoull(argv[i] + 9, NULL, 10) << 20) / HOST_PAGE);
		else if (!strcmp(argv[i], "--save") && argv[i + 1])
			host.save = argv[++i];
		else
			host_fail("unknown option", argv[i]);
	}
	return i;
}

int main(int argc, char **argv, char **envp)
{
	int first = host_parse(argv);
	const char *home = getenv("HOME");

	if (!host.pages_max || host.pages_max > 65535)
		host.pages_max = 65535;
	if (getenv("ATOLL_DETERMINISTIC"))
		host.deterministic = true;
	host.argc = argc - first + 1;
	host.argv = argv + first - 1;
	host.argv[0] = argv[0];
	host.envp = envp;
	host_map_memory();
	host_catch_faults();
	host_files_init(HOST_FOLDER, home ? home : "/home/user");
	host_start_text();
	wasm_module_init();
	host_image_open(host.save ? HOST_FOLDER "/data" : HOST_FOLDER "/image");
	if (!host.save)
		host_filter_load();
	if (host_image_is_initialised())
		host_image_resume();
	wasm_instance_init();
	host_image_start();
}
