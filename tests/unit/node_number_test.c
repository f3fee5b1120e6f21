/* node_number_test.c - the file with the number of this machine in its cluster. */
#include "base/id.h"
#include "daemon/node_number.h"
#include "tap.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

TEST(a_number_from_1_to_32767_is_accepted)
{
	static const struct {
		const char *text;
		uint32_t number;
	} rows[] = { { "1", 1 }, { "7\n", 7 }, { "32767\n", 32767 } };
	uint32_t number;
	struct err e;

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		CHECK_INT(node_number_parse(rows[i].text, strlen(rows[i].text), &number, &e), 0);
		CHECK_INT(number, rows[i].number);
	}
}

TEST(any_other_text_is_refused_with_the_next_step)
{
	static const char *const bad[] = {
		"",      "\n",   "0\n", "32768\n", "99999999999999999999",
		"-1\n",  "+1",   "0x7", "7 \n",    " 7\n",
		"7\n\n", "7\n8", "007", "seven"
	};
	uint32_t number = 1;
	struct err e;

	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		CHECK_INT(node_number_parse(bad[i], strlen(bad[i]), &number, &e), -1);
		CHECK_INT(e.kind, ERR_INVALID);
		CHECK(strstr(e.msg, "atoll node join"));
	}
	CHECK_INT(node_number_parse("7\0", 2, &number, &e), -1);
	CHECK_INT(number, 1);
}

TEST(a_machine_without_the_file_has_no_number)
{
	char dir[] = "/tmp/node_number.XXXXXX", path[64];
	uint32_t number = 1;
	struct err e;
	FILE *f;

	CHECK(mkdtemp(dir));
	CHECK_INT(node_number_read(dir, &number, &e), 0);
	CHECK_INT(number, ID_NODES);
	snprintf(path, sizeof(path), "%s/cluster", dir);
	CHECK_INT(mkdir(path, 0700), 0);
	CHECK_INT(node_number_read(dir, &number, &e), 0);
	CHECK_INT(number, ID_NODES);
	snprintf(path, sizeof(path), "%s/cluster/number", dir);
	f = fopen(path, "w");
	CHECK(f && fputs("12\n", f) >= 0 && fclose(f) == 0);
	CHECK_INT(node_number_read(dir, &number, &e), 0);
	CHECK_INT(number, 12);
	CHECK_INT(unlink(path), 0);
	CHECK_INT(mkdir(path, 0700), 0); /* a folder in its place */
	CHECK_INT(node_number_read(dir, &number, &e), -1);
	CHECK_INT(rmdir(path), 0);
	snprintf(path, sizeof(path), "%s/cluster", dir);
	CHECK(rmdir(path) == 0 && rmdir(dir) == 0);
}
