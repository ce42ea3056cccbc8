/*
 * run_setup: the common part of the verbs that let an agent work: their options, and
 * making a setup from these.
 */
#pragma once
#include "front/setup.h"
#include "front/verb.h"
#include "store/journal.h"

/*
 * RUN_OPTION_ROWS: of `run`, `chat` and `sessions resume`. RUN_OPTION_ROW_RESUME: of
 * `run` and `chat`, where the session is an option.
 */
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
 * Fill SETUP with configuration, role, rights, servers, hosts and limits as OPTIONS say.
 * AGENT replaces --agent unless it is NULL. Returns an exit code; complaints have been
 * printed. Call setup_fini in either case.
 */
int run_setup(const struct options *options, const char *agent, struct setup *setup);

/*
 * Find the session NAME, which goes on. FILLED becomes OPTIONS, with folder, agent and
 * model of the session where OPTIONS do not name them. FOUND owns these texts. Call
 * journal_found_fini in either case.
 */
bool run_resume(const struct options *options, const char *name, struct options *filled,
		struct journal_found *found, struct err *err);
