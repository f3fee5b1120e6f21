/* edit_distance_test.c - typing errors between two names. */
#include "base/edit_distance.h"
#include "tap.h"

#include <string.h>

TEST(each_kind_of_typing_error_counts_once)
{
	CHECK_INT(edit_distance("", ""), 0);
	CHECK_INT(edit_distance("numpy", "numpy"), 0);
	CHECK_INT(edit_distance("doktor", "doctor"), 1);
	CHECK_INT(edit_distance("nump", "numpy"), 1);
	CHECK_INT(edit_distance("numppy", "numpy"), 1);
	CHECK_INT(edit_distance("nupmy", "numpy"), 1);
	CHECK_INT(edit_distance("", "abc"), 3);
	CHECK_INT(edit_distance("abc", ""), 3);
	CHECK_INT(edit_distance("kitten", "sitting"), 3);
}

TEST(a_name_over_the_length_limit_has_the_maximum_distance)
{
	char longest[EDIT_DISTANCE_MAX + 1], longer[EDIT_DISTANCE_MAX + 2];

	memset(longest, 'a', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = 0;
	memset(longer, 'a', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = 0;
	CHECK_INT(edit_distance(longest, longest), 0);
	CHECK_INT(edit_distance(longest, longer), EDIT_DISTANCE_MAX);
	CHECK_INT(edit_distance(longer, longer), EDIT_DISTANCE_MAX);
}
