/*
 * ollama: Ollama's own API, POST /api/chat. Its Chat Completions endpoint takes no size of
 * the context (docs.ollama.com/api/openai-compatibility) and gives most machines 4,096
 * tokens, of which it drops the oldest without a word; here `num_ctx` is sent with each
 * request. One JSON object a line, calls whole, arguments as objects.
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "model/provider.h"

#include <stdbool.h>

/* In a thinking part's `extra`, under CHAT_EXTRA_FIELD: it came from here and goes back. */
#define OLLAMA_THINKING "thinking"

bool ollama_write(const struct provider_settings *settings,
		  const struct model_request *request, struct buf *body, struct err *err);
