/*
 * bash_plan: what the policy's list made of a command (call->plan): programs and their
 * arguments, started without a shell, in the environment of the shell that there is else.
 */
#pragma once
#include "base/err.h"
#include "base/memory.h"
#include "process/program.h"
#include "tool/call.h"

/* Start it in FOLDER; it then has to be followed. */
bool bash_plan_start(const struct call *call, const char *folder,
		     struct program_ahead *ahead, struct err *err);

/* The arguments of part AT of PLAN, NULL-ended, of ARENA. */
const char **bash_plan_argv(const struct value *plan, size_t at, struct arena *arena);
