/* config_checks.c - see config_checks.h. */
#include "daemon/config_checks.h"
#include "fleet/isolation.h"
#include "packages/package_preinstall.h"
#include "tools/tool.h"

int config_check_tool(const char *text, struct err *e)
{
	const struct tool *t = tool_named(text);

	if (t && !t->alias)
		return 0;
	return err_set(e, ERR_INVALID, "'%.40s' is not a tool: see GET /v1/tools", text);
}

int config_check_set(const char *text, struct err *e)
{
	struct packages p;

	if (package_preinstall_parse(text, &p, e) < 0)
		return -1;
	packages_fini(&p);
	return 0;
}

int config_check_tier(const char *text, struct err *e)
{
	enum choose_tier t;

	return choose_tier_parse(text, &t, e);
}

int config_check_minimum(const char *text, struct err *e)
{
	return isolation_check_minimum(text, 0, e);
}
