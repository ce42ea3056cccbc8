/* Fuzz target of session/review: the report of a worker that has read what programs left. */
#include "base/value.h"
#include "session/review.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_change(const struct review_change *change)
{
	if (change->kind >= REVIEW_KINDS || change->class >= REVIEW_CLASSES ||
	    change->path == NULL || change->path[0] == '\0' ||
	    (change->kind == REVIEW_RENAMED && change->from == NULL) ||
	    (change->class == REVIEW_REFUSED &&
	     overlay_refusal_names[change->refused] == NULL) ||
	    change->lines.items[0] < 0 || change->lines.items[1] < 0 ||
	    change->since_ms < 0 || change->before.size < -1 || change->after.size < -1)
		abort();
	if (change->before.hash != NULL && strlen(change->before.hash) != HASH_HEX)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct review_report report = {0};
	struct err err = {0};

	if (review_report_parse((struct str){(const char *)data, size}, &report, &err)) {
		auto_value struct value *printed = review_report_value(&report, "3f9a61c2");

		if (strlen(report.hash) != HASH_HEX || report.lands < 0 ||
		    report.conflicts < 0 ||
		    value_count(value_member(printed, "changes")) != report.count)
			abort();
		for (size_t i = 0; i < report.count; i++)
			check_change(&report.changes[i]);
		for (size_t i = 0; i < report.tag_count; i++) {
			if (report.tags[i].name == NULL || report.tags[i].commit == NULL)
				abort();
		}
		(void)review_report_has_news(&report);
	} else if (err.text[0] == '\0') {
		abort();
	}
	review_report_fini(&report);
	return 0;
}
