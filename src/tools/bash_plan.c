/* bash_plan: from the wire's list to programs; see bash_plan.h. */
#include "tools/bash_plan.h"

#include "base/memory.h"
#include "process/program.h"
#include "tools/commands.h"

#include <errno.h>

static bool join_of(struct str text, enum program_join *join)
{
	static const char *const joins[] = {
		[PROGRAM_THEN] = ";", [PROGRAM_AND] = "&&", [PROGRAM_OR] = "||", [PROGRAM_PIPE] = "|"};

	for (size_t i = 0; i < sizeof(joins) / sizeof(joins[0]); i++) {
		if (str_is(text, joins[i])) {
			*join = (enum program_join)i;
			return true;
		}
	}
	return false;
}

const char **bash_plan_argv(const struct value *plan, size_t at, struct arena *arena)
{
	const struct value *list = value_member(value_item(plan, at), "argv");
	size_t count = value_count(list);
	const char **argv = arena_alloc(arena, (count + 1) * sizeof(*argv));

	for (size_t i = 0; i < count; i++)
		argv[i] = value_text(value_item(list, i));
	return argv;
}

bool bash_plan_start(const struct call *call, const char *folder,
		     struct program_ahead *ahead, struct err *err)
{
	size_t count = value_count(call->plan);
	auto_free const char **environment = commands_environment(call->environment, NULL);
	auto_free struct program_item *items = memory_array(count, sizeof(*items));
	const struct program_start start = {
		.environment = environment,
		.folder = folder,
		.fds = {-1, -1, -1},
		.terms = call->terms,
	};
	struct arena arena;
	bool ok = true;

	arena_init(&arena);
	for (size_t i = 0; ok && i < count; i++) {
		const struct value *part = value_item(call->plan, i);

		items[i].argv = bash_plan_argv(call->plan, i, &arena);
		/* The front made it. */
		ok = (items[i].argv[0] != NULL &&
		      join_of(value_str(value_member(part, "join")), &items[i].join)) ||
		     err_set(err, EPROTO, "a plan with a part that is none");
	}
	/*
	 * End the launcher: it can become only one program, not a list, and must not count
	 * as a process that the command left.
	 */
	if (call->launcher != NULL)
		program_launcher_end(call->launcher);
	ok = ok && program_list_start_ahead(&start, items, count, ahead, err);
	arena_fini(&arena);
	return ok;
}
