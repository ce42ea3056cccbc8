/* exec_hints: see exec_hints.h. */
#include "front/exec_hints.h"

#include "base/buf.h"
#include "base/path.h"
#include "front/repository.h"
#include "policy/policy.h"
#include "runtime/claims.h"
#include "runtime/denial.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

void hint_repository(const struct tool_result *result, const struct session *session,
		     const char *program)
{
	enum { GIT_FATAL = 128 };
	struct buf above;

	if (result->exit_code != GIT_FATAL || strcmp(path_base_name(program), "git") != 0)
		return;
	buf_init(&above, PATH_MAX);
	if (repository_above(session_workspace(session), &above))
		(void)fprintf(stderr,
			      "glovebox: the workspace is a part of the repository %s, which the "
			      "cell does not show; -C %s works on all of it\n",
			      above.data, above.data);
	buf_fini(&above);
}

void hint_harm(const struct tool_result *result)
{
	const struct value *told = value_member(result->details, "destroys");

	if (told != NULL)
		(void)fprintf(stderr, "glovebox: %s %s. %s\n",
			      value_text(value_member(told, "command")),
			      value_text(value_member(told, "does")),
			      value_text(value_member(told, "next")));
}

void hint_protected(struct str messages)
{
	struct tool_result said;
	struct buf line;

	tool_result_init(&said);
	claims_protected(messages, &said);
	buf_init(&line, RESULT_TEXT_MAX);
	const struct value *list = denial_list(&said);
	for (size_t i = 0; i < value_count(list); i++) {
		buf_clear(&line);
		denial_print(value_item(list, i), &line);
		(void)fprintf(stderr, "glovebox: %s\n", line.data);
	}
	buf_fini(&line);
	tool_result_fini(&said);
}

void hint_network(const struct tool_result *result, const struct session *session,
		  struct str messages)
{
	const struct policy *policy = session_policy(session);
	struct tool_result claims;
	const char *host;

	if (policy->network.count > 0 || result->status != RESULT_DONE ||
	    result->exit_code == 0)
		return;
	tool_result_init(&claims);
	claims_gather_hosts(messages, &claims);
	const struct value *first = value_item(value_member(claims.details, CLAIMS_KEY), 0);
	host = value_text(value_member(first, "host"));
	if (host != NULL)
		(void)fprintf(stderr,
			      "glovebox: perhaps refused: %s (the policy lists no host, so the cell "
			      "has no network); --allow-host %s opens it\n",
			      *host != '\0' ? host : "the network",
			      *host != '\0' ? host : "HOST");
	tool_result_fini(&claims);
}
