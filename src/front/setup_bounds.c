/* setup_bounds: holds a setup to the rights of the agents on whose behalf it works. */
#include "front/setup.h"

#include <fcntl.h>

#include "base/fd.h"
#include "base/value.h"
#include "view/shape.h"

/*
 * Narrow *POLICY to the rights of ROW, an item of such a list. TOOLS: first check the
 * tools of ROW's policy.
 */
static bool hold_to(const struct setup *setup, const struct value *row, bool tools,
		    struct policy **policy, struct err *err)
{
	auto_close int folder = open(setup->workspace, O_PATH | O_DIRECTORY | O_CLOEXEC);
	auto_policy struct policy *bound = NULL;
	struct policy *both;

	if (!config_policy(NULL, value_member(row, "entry"),
			   value_text(value_member(row, "agent")), setup->workspace,
			   &bound, err) ||
	    (tools && !session_check_tools(bound, setup->tools, err)))
		return err_while(err, "the rights of who delegates");
	shape_limits(&(*policy)->limits, folder);
	shape_limits(&bound->limits, folder);
	both = policy_intersect(*policy, bound);
	policy_free(*policy);
	*policy = both;
	return true;
}

bool setup_serve_within(struct setup *setup, const struct value *bounds, struct err *err)
{
	const size_t count = value_count(bounds);

	for (size_t i = 0; i < count && setup->servers.take_policy != NULL; i++) {
		if (!hold_to(setup, value_item(bounds, i), false,
			     &setup->servers.take_policy, err))
			return false;
	}
	if (!setup_serve(setup, err))
		return false;
	for (size_t i = 0; i < count; i++) {
		if (!hold_to(setup, value_item(bounds, i), true, &setup->policy, err))
			return false;
	}
	return true;
}
