/*
 * present_plan: what a model in MODE_PLAN calls when its plan is ready. The person is asked
 * (EVENT_QUESTION, kind "form") and answers with the mode in which the plan is carried out,
 * or with MODE_PLAN, and perhaps a sentence for the model, to have it changed. Where nobody
 * is asked, as in `run`, the plan is the answer of the run.
 *
 * The details of the result have the text as `plan`, and what the person chose as `next`
 * (absent: nobody was asked). Without a mode to work in, or a sentence, the turn is over
 * (AGENT_PLAN).
 */
#pragma once

#include "tool/tool.h"

extern const struct tool present_plan_tool;

/* The members of the answer's content. */
#define PRESENT_PLAN_MODE  "mode"
#define PRESENT_PLAN_WORDS "words"
