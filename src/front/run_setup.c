/* run_setup: makes a setup from the options of `run` and `chat`. */
#include "front/run_setup.h"

#include <errno.h>

#include "front/resume.h"
#include "front/verb.h"

/* Set the LIMITS that OPTIONS name. */
static bool set_limits(const struct options *options, struct policy_limits *limits,
		       struct err *err)
{
	limits->iterations = options_count(options, "max-iterations", limits->iterations);
	limits->tokens = options_count(options, "budget-tokens", limits->tokens);
	limits->money = options_amount(options, "budget-money", limits->money);
	limits->run_s = options_seconds(options, "budget-seconds", limits->run_s);
	return limits->run_s > 0 ||
	       err_set(err, EINVAL, "--budget-seconds: 0 seconds are no time to work in");
}

int run_setup(const struct options *options, const char *agent, struct setup *setup)
{
	const struct setup_flags flags = {.agent = agent};
	struct err err = {0};

	if (!setup_init_with(setup, options, &flags, &err))
		return verb_complain(CODE_FAILED, "%s", err.text);
	if (!setup_allow_hosts(setup, options, &err) || !setup_ask(setup, options, &err) ||
	    !set_limits(options, &setup->policy->limits, &err))
		return verb_complain(CODE_USAGE, "%s", err.text);
	if (!setup_serve(setup, &err))
		return verb_complain(CODE_FAILED, "%s", err.text);
	return CODE_DONE;
}

bool run_resume(const struct options *options, const char *name, struct options *filled,
		struct journal_found *found, struct err *err)
{
	if (!resume_find(name, options_text(options, "workspace"), found, err))
		return false;
	*filled = *options;
	options_fill(filled, "workspace", found->workspace);
	options_fill(filled, "agent", found->agent);
	options_fill(filled, "model", found->model);
	return true;
}
