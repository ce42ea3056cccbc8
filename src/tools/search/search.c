/* search: sentences and names of the searching tools; see search.h. */
#include "tools/search/search.h"

#include "base/text/text.h"
#include "tool/call.h"
#include "tools/search/ranking.h"
#include "tools/search/walk.h"

#include <inttypes.h>

void search_add_where(const struct walk_start *start, struct buf *out)
{
	(void)buf_adds(out, " in ");
	if (str_is(buf_str(&start->shown), "."))
		(void)buf_adds(out, "the workspace");
	else
		walk_start_name(start, STR(""), out);
}

void search_add_ignored(const struct walk_start *start, struct buf *out)
{
	if (start->ignored)
		(void)buf_adds(out, "The folder is itself ignored by a .gitignore; no ignore rule "
				    "is applied in it.\n");
}

void search_add_gaps(const struct walk_start *start, const struct walk_summary *summary,
		     struct buf *out)
{
	if (summary->end == WALK_STOPPED)
		(void)buf_addf(out,
			       "Stopped early, out of time, after %" PRIu64
			       " entries: there may be more. Name a smaller path.\n",
			       summary->entries);
	if (summary->end == WALK_FULL)
		(void)buf_addf(out,
			       "Stopped early after %" PRIu64
			       " entries: the tree is too large to be searched at once, there "
			       "may be more. Name a smaller path.\n",
			       summary->entries);
	if (summary->unreadable > 0) {
		(void)text_add_count(out, summary->unreadable, "folder");
		(void)buf_adds(out, " could not be read: ");
		walk_start_name(start, buf_str(&summary->example), out);
		(void)buf_adds(out, summary->unreadable > 1 ? " and others.\n" : ".\n");
	}
	if (summary->too_long > 0) {
		(void)text_add_count(out, summary->too_long, "path");
		(void)buf_adds(out, " longer than any program can open, left out.\n");
	}
}

void search_add_ignored_gap(const struct walk_summary *summary, bool found, struct buf *out)
{
	if (summary->end == WALK_COMPLETE)
		return;
	(void)buf_adds(out, found ? "Not all ignored files were looked at.\n"
				  : "Ignored files (.gitignore) were looked into for a moment "
				    "only, with nothing found so far. Name one of their "
				    "folders as path to search it.\n");
}

void search_set_details(struct tool_result *result, const struct walk_summary *summary)
{
	struct value *details = tool_details(result);

	value_set_boolean(details, "stopped_early",
			  summary->end == WALK_STOPPED || summary->end == WALK_FULL ||
				  summary->end == WALK_GIVEN_UP);
	value_set_integer(details, "entries", (int64_t)summary->entries);
	value_set_integer(details, "ignored", (int64_t)summary->ignored);
	value_set_integer(details, "unreadable_folders", (int64_t)summary->unreadable);
}

void search_add_names(const struct walk_start *start, const struct ranking *found,
		      uint64_t total, struct buf *out)
{
	for (size_t i = 0; i < found->count; i++) {
		(void)buf_adds(out, i > 0 ? ", " : "");
		walk_start_name(start, str_of(found->items[i].path), out);
	}
	if (total > found->count)
		(void)buf_addf(out, " and %" PRIu64 " more", total - found->count);
}

enum result_status search_end(struct call *call, struct tool_result *result,
			      const struct walk_summary *summary)
{
	if (summary->end != WALK_STOPPED)
		return tool_done(result);
	if (call->cancelled) {
		buf_clear(&result->text);
		return call_stop_result(call, result);
	}
	result->status = RESULT_TIMED_OUT;
	return result->status;
}
