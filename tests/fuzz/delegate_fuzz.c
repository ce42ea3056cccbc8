/*
 * Fuzz target of agent/delegate_report: what a delegate may print, in any pieces. What counts
 * must not depend on where the pieces end.
 */
#include "agent/delegate.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void show(void *context, struct value *child)
{
	if (!value_member(child, "event_of"))
		++*(unsigned *)context;
}

static bool take(struct delegate_report *report, struct str bytes, size_t piece)
{
	bool taken = true;

	for (size_t at = 0; at < bytes.size && taken; at += piece)
		taken = delegate_report_take(report, str_part(bytes, at, piece), NULL);
	delegate_report_end(report);
	return taken;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct str bytes = {(const char *)data, size};
	struct delegate_report whole, pieces;
	unsigned odd = 0;

	delegate_report_init(&whole);
	delegate_report_init(&pieces);
	whole.show = show;
	whole.context = &odd;
	if (take(&whole, bytes, size + 1) != take(&pieces, bytes, 3) ||
	    whole.answers != pieces.answers || whole.usage.input != pieces.usage.input ||
	    strcmp(whole.session, pieces.session) != 0 ||
	    strcmp(whole.said.data, pieces.said.data) != 0)
		abort();
	delegate_report_fini(&whole);
	delegate_report_fini(&pieces);
	return 0;
}
