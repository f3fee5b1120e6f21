#include "other.hh"
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

int main(int argc, char **argv)
{
	static char block[1 << 20];
	char line[200];

	if (!strcmp(argv[1], "talk")) {
		puts(greeting());
		for (int i = 2; i < argc; i++)
			printf("arg: %s\n", argv[i]);
		while (fgets(line, sizeof(line), stdin))
			printf("stdin: %s", line);
		return 7;
	}
	memset(block, 'x', sizeof(block));
	for (int i = 0; i < 10 && !strcmp(argv[1], "big"); i++)
		fwrite(block, 1, sizeof(block), stdout);
	for (volatile int i = 0; !strcmp(argv[1], "loop"); i++)
		;
	while (!strcmp(argv[1], "memory"))
		memset(malloc(1 << 20), 1, 1 << 20);
	if (!strcmp(argv[1], "fault"))
		throw std::runtime_error("boom ä");
}
