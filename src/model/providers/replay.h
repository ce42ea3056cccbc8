/*
 * replay: a model that says what a script tells it. The tools are real; only the model's
 * words are recorded. The script is JSON (comments allowed):
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
 * compared with the results of the turn before, each row with the next result that fits,
 * so results that no row asks for are skipped; a result's `status` is known here only as
 * `done` or not. When a row fits no result, the replay ends with an error that names the
 * script, the turn, the expected and the real result. `usage` may give tokens (`input`,
 * `output`, `cached`). `delay_ms` streams the text word by word at that pace (at most
 * REPLAY_DELAY_MAX_MS). A text may quote the newest prompt as ${prompt}. `repeat: true`
 * in the last turn plays that turn again for ever; else a question after the last turn is
 * an error that says so. When a conversation has answers already at its first question (a
 * resumed session), the replay skips as many turns.
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
 * Play one turn into ANSWER. ERR: ECANCELED when stop_fd becomes readable (the turn is
 * then played again), EPROTO when the script does not fit.
 */
bool replay_ask(struct replay *replay, const struct model_request *request,
		struct answer *answer, struct err *err);
