/* What a node may store in the object store of its cluster: files under its own ids. */
#include "gateway/objects_internal.h"
#include "tap.h"

static int may_keep(const char *snapshot, unsigned owner)
{
	return objects_may_keep(&(struct objects_what){
		.snapshot = snapshot, .team = "t", .name = "", .owner = owner });
}

TEST(a_node_stores_only_snapshots_with_its_own_number)
{
	CHECK(may_keep("aahbcdefghijklm", 7));
	CHECK(!may_keep("aaibcdefghijklm", 7));
	CHECK(!may_keep("bcdefghijklm", 7)); /* an id of a machine that is in no cluster */
	CHECK(!may_keep("", 7));
	CHECK(!may_keep("../aahbcdefghij", 7));
	CHECK(!may_keep("aahbcdefghijklmn", 7));
}
