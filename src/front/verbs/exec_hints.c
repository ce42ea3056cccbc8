/* exec_hints: finds and prints the hints. */
#include "front/verbs/exec_hints.h"

#include "base/buf.h"
#include "base/memory.h"
#include "base/path.h"
#include "front/verbs/repository.h"
#include "policy/policy.h"
#include "tool/denial.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Is FOLDER a home, or does it hold the caller's home? Then it may not be a workspace
 * (shape_open_workspace).
 */
static bool holds_home(const char *folder)
{
	const char *home = getenv("HOME");
	auto_free char *real = home != NULL ? realpath(home, NULL) : NULL;

	return policy_is_home(folder) || (real != NULL && path_within(real, folder));
}

void hint_repository(const struct tool_result *result, const struct session *session,
		     const char *program)
{
	enum { GIT_FATAL = 128 };
	struct buf above;

	if (result->exit_code != GIT_FATAL || strcmp(path_base_name(program), "git") != 0)
		return;
	buf_init(&above, PATH_MAX);
	if (repository_above(session_workspace(session), &above) && !holds_home(above.data))
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

/* Does RESULT already say that a host was refused? Then no hint repeats it. */
static bool tells_of_network(const struct tool_result *result)
{
	const struct value *list = denial_list(result);

	for (size_t i = 0; i < value_count(list); i++) {
		if (denial_is(value_item(list, i), DENIAL_NET))
			return true;
	}
	return false;
}

void hint_messages(const struct tool_result *result, const struct session *session,
		   const struct policy_words *words, struct str messages)
{
	const bool told = tells_of_network(result);
	struct tool_result said;
	struct buf line, worded;

	tool_result_init(&said);
	session_judge_messages(session, messages, &said);
	buf_init(&line, RESULT_TEXT_MAX);
	buf_init(&worded, RESULT_TEXT_MAX);
	const struct value *list = denial_list(&said);
	for (size_t i = 0; i < value_count(list); i++) {
		if (told && denial_is(value_item(list, i), DENIAL_NET))
			continue;
		buf_clear(&line);
		buf_clear(&worded);
		denial_print(value_item(list, i), &line);
		policy_words_add(words, line.data, &worded);
		(void)fprintf(stderr, "glovebox: %s\n", worded.data);
	}
	buf_fini(&worded);
	buf_fini(&line);
	tool_result_fini(&said);
}
