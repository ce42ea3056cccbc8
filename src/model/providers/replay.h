/*
 * replay: a model that says what a script tells it. Real tools run; only the words are
 * recorded. The script is JSON (comments allowed):
 *
 *   {"name": "demo",
 *    "turns": [
 *      {"thinking": "…", "text": "I look around first.",
 *       "calls": [{"tool": "list_files", "arguments": {"path": "."}}],
 *       "expect": [{"tool": "bash", "contains": "FAIL", "status": "done"}]},
 *      {"text": "Done.", "delay_ms": 30}
 *    ]}
 *
 * `arguments` may be a string: then it goes out unchanged, valid JSON or not. `expect` is
 * held against the results of the turn before, each row against the next result that
 * fits, so that results nobody cares about need no row; what a result's `status` was is
 * known here as `done` or not. When it does not fit, the replay ends with an error that
 * names script, turn, what was expected and what came. `usage` may give tokens (`input`,
 * `output`, `cached`). `delay_ms` streams the text word by word at that pace (at most
 * REPLAY_DELAY_MAX_MS). The newest prompt may be quoted in a text as ${prompt}. `repeat:
 * true` in the last turn plays it again for ever; else asking beyond the last turn is an
 * error that says so. A conversation that has answers already when it first asks (a session
 * that is resumed) goes on with the turn behind as many.
 */
#pragma once

#include "base/err.h"
#include "model/provider.h"

struct replay;

enum { REPLAY_SCRIPT_MAX = 4 << 20, REPLAY_DELAY_MAX_MS = 1000 };
/* NAME is for messages: the file's name or "embedded". */
bool replay_open(struct str script, const char *name, struct replay **replay,
		 struct err *err);
void replay_close(struct replay *replay);
/*
 * One turn, put into ANSWER. ECANCELED when stop_fd becomes readable (the turn is then
 * played again), EPROTO when the script does not fit.
 */
bool replay_ask(struct replay *replay, const struct model_request *request,
		struct answer *answer, struct err *err);
