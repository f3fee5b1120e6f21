#include "other.hh"

const char *greeting(void)
{
	return "from the other file: Größe 漢字";
}
