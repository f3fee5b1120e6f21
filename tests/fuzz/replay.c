/* replay.c - runs a fuzzer's corpus as a test: every input once, in any build, without libFuzzer. */
#include "fuzz.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int visible(const struct dirent *d)
{
	return d->d_name[0] != '.';
}

static void replay(const char *name)
{
	static char path[4096], bytes[1 << 20];
	uint8_t *exact;
	size_t len;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", CORPUS, name);
	f = fopen(path, "rb");
	if (!f)
		abort();
	len = fread(bytes, 1, sizeof(bytes), f);
	fclose(f);
	exact = malloc(len ? len
			   : 1); /* exact size: the sanitizer then reports a read after the end */
	if (!exact)
		abort();
	memcpy(exact, bytes, len);
	LLVMFuzzerTestOneInput(exact, len);
	free(exact);
}

int main(void)
{
	struct dirent **names;
	int n = scandir(CORPUS, &names, visible, alphasort);

	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("1..%d\n", n);
	for (int i = 0; i < n; i++) {
		replay(names[i]->d_name);
		printf("ok %d - %s\n", i + 1, names[i]->d_name);
		free(names[i]);
	}
	free(names);
	return n > 0 ? 0 : 1;
}
