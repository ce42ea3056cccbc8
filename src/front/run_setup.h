/*
 * run_setup: what the verbs that let an agent work have in common: their options, and the way
 * from those to hands.
 */
#pragma once
#include "front/options.h"
#include "front/setup.h"
#include "store/journal.h"

/* Rows of `run`, `chat` and `sessions resume`; of the first two, whose session is an option. */
/* clang-format off */
#define RUN_OPTION_ROW_RESUME \
	{"resume", 'r', OPTION_TEXT, "ID", "go on with the session ID, or with the last one", \
	 NAMES_SESSIONS}
#define RUN_OPTION_ROWS \
	{"model", 'm', OPTION_TEXT, "MODEL", "ask this model (default: $GLOVEBOX_MODEL)", \
	 NAMES_MODELS}, \
	{"max-iterations", 0, OPTION_COUNT, "N", "stop after N answers of the model"}, \
	{"budget-money", 0, OPTION_AMOUNT, "N", "stop before N US dollars are spent"}, \
	{"budget-tokens", 0, OPTION_COUNT, "N", "stop after N tokens, in and out"}, \
	{"budget-seconds", 0, OPTION_SECONDS, "N", "stop after N seconds"}, \
	OPTION_ROW_WORKSPACE, \
	OPTION_ROW_CONFIG, \
	OPTION_ROW_AGENT, \
	OPTION_ROW_ALLOW_HOST, \
	OPTION_ROW_ASK, \
	OPTION_ROW_LEVEL, \
	OPTION_ROW_HELP
/* clang-format on */

/*
 * Configuration, role, rights, servers, hosts and limits as OPTIONS say; AGENT (NULL: that of
 * the options) in the place of --agent. An exit code; complaints have been printed. setup_fini
 * in either case.
 */
int run_setup(const struct options *options, const char *agent, struct setup *setup);

/*
 * The session that NAME means goes on: FILLED is OPTIONS with where it was and as what it was,
 * unless told. The texts are FOUND's. journal_found_fini in either case.
 */
bool run_resume(const struct options *options, const char *name, struct options *filled,
		struct journal_found *found, struct err *err);
