/* metrics: counts the ends of calls, and prints the counts. */

#include "mcp/server/metrics.h"

#include "base/buf.h"
#include "base/memory.h"
#include "base/value.h"
#include "mcp/server/mcp.h"
#include "tool/tool.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* From 1 ms, a file tool, to 600 s, the longest time of a command. */
static const double bounds[METRICS_BOUNDS] = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
					      0.1,   0.25,   0.5,   1,    2.5,   5,
					      10,    30,     60,    120,  300,   600};

/* The names of enum denial_kind, as denials have them. */
static const char *const kinds[METRICS_KINDS] = {"fs", "net", "proc", "limit", "policy"};

static const char other[] = "other";

void metrics_fini(struct metrics *metrics)
{
	for (size_t i = 0; i < metrics->tool_count; i++)
		free(metrics->tools[i].name);
	*metrics = (struct metrics){0};
}

/* The row of the tool NAME. NULL: the client has named no tool that exists. */
static struct metrics_tool *tool_row(struct metrics *metrics, const char *name)
{
	if (name == NULL)
		return &metrics->tools[METRICS_TOOLS_MAX];
	for (size_t i = 0; i < metrics->tool_count; i++) {
		if (strcmp(metrics->tools[i].name, name) == 0)
			return &metrics->tools[i];
	}
	if (metrics->tool_count == METRICS_TOOLS_MAX)
		return &metrics->tools[METRICS_TOOLS_MAX];
	metrics->tools[metrics->tool_count].name = memory_copy(name);
	return &metrics->tools[metrics->tool_count++];
}

static void take_end(struct metrics *metrics, const struct mcp_record *record)
{
	const struct tool_result *result = record->result;
	struct metrics_tool *row = tool_row(metrics, record->tool);

	row->counts[(unsigned)result->status % METRICS_STATUSES]++;
	metrics->calls++;
	metrics->seconds += result->seconds;
	for (size_t i = 0; i < METRICS_BOUNDS; i++)
		metrics->within[i] += result->seconds <= bounds[i];
}

void metrics_take(struct metrics *metrics, const struct mcp_record *record)
{
	const char *kind = value_text(value_member(record->denial, "kind"));

	if (record->what == MCP_TOLD_END)
		take_end(metrics, record);
	for (size_t i = 0;
	     record->what == MCP_TOLD_DENIAL && kind != NULL && i < METRICS_KINDS; i++)
		metrics->denials[i] += strcmp(kinds[i], kind) == 0;
}

void metrics_print_head(const char *name, const char *type, const char *help, struct buf *out)
{
	(void)buf_addf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void print_tool(const struct metrics_tool *row, const char *name, struct buf *out)
{
	for (size_t i = 0; i < METRICS_STATUSES; i++) {
		if (row->counts[i] > 0)
			(void)buf_addf(out,
				       "glovebox_calls_total{tool=\"%s\",status=\"%s\"} %" PRIu64
				       "\n",
				       name, result_status_name((enum result_status)i),
				       row->counts[i]);
	}
}

void metrics_print(const struct metrics *metrics, struct buf *out)
{
	metrics_print_head("glovebox_calls_total", "counter", "Calls that have ended.", out);
	for (size_t i = 0; i < metrics->tool_count; i++)
		print_tool(&metrics->tools[i], metrics->tools[i].name, out);
	print_tool(&metrics->tools[METRICS_TOOLS_MAX], other, out);
	metrics_print_head("glovebox_call_seconds", "histogram", "How long calls took.",
			   out);
	for (size_t i = 0; i < METRICS_BOUNDS; i++)
		(void)buf_addf(out, "glovebox_call_seconds_bucket{le=\"%g\"} %" PRIu64 "\n",
			       bounds[i], metrics->within[i]);
	(void)buf_addf(out,
		       "glovebox_call_seconds_bucket{le=\"+Inf\"} %" PRIu64
		       "\nglovebox_call_seconds_sum %.6f\nglovebox_call_seconds_count %" PRIu64
		       "\n",
		       metrics->calls, metrics->seconds, metrics->calls);
	metrics_print_head("glovebox_denials_total", "counter",
			   "What walls, rules and limits have refused to calls.", out);
	for (size_t i = 0; i < METRICS_KINDS; i++)
		(void)buf_addf(out, "glovebox_denials_total{kind=\"%s\"} %" PRIu64 "\n",
			       kinds[i], metrics->denials[i]);
	metrics_print_head("glovebox_queue_dropped_total", "counter",
			   "Records that were lost because nobody took them in time.", out);
	(void)buf_addf(out, "glovebox_queue_dropped_total %" PRIu64 "\n", metrics->dropped);
}
