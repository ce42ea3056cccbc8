/*
 * model_search: `web_search` by the model's own service (`search` of the configuration,
 * provider "model"): a question of its own, which the service answers with a search, and whose
 * answer and sources are the result. Nothing of it joins the conversation but the result, which
 * is marked as from the web. It costs what the service says, for the turn.
 */
#pragma once

#include "agent/agent.h"
#include "tool/tool.h"

/* A new tool, which has no agent yet; for model_search_free. */
struct tool *model_search_new(void);
void model_search_free(struct tool *tool); /* NULL is fine */
/* The calls of TOOL ask the model of AGENT from now on. */
void model_search_serve(struct tool *tool, struct agent *agent);
