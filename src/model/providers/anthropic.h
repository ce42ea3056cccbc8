/*
 * anthropic: what its files share. The API wants its blocks back unchanged and in place,
 * and knows more of them than we do: what a part itself does not hold is in its `extra`
 * under ANTHROPIC_EXTRA. Of thinking that is the block without its text, of a call what
 * is beside id, name and input; all other blocks (redacted thinking, the service's own
 * tools) are thinking without a text, and the whole block is there.
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "model/provider.h"

#include <stdbool.h>

#define ANTHROPIC_EXTRA "anthropic_block"

/* Provider's `request`. */
bool anthropic_write(const struct provider_settings *settings,
		     const struct model_request *request, struct buf *body,
		     struct err *err);

/* Append `"max_tokens":…` and what the model is told about thinking and temperature. */
void anthropic_write_limits(const struct provider_settings *settings, struct buf *body);
