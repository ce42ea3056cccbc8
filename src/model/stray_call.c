/* stray_call: the marks that models are trained on. */
#include "model/stray_call.h"

#include <stddef.h>

static const struct {
	const char *begin, *end; /* END is what the text ends with */
} marks[] = {
	{"<tool_call>", "</tool_call>"}, /* Hermes, Qwen, GLM */
	{"<function=", "</function>"},   /* Llama, Qwen's coders … */
	{"<function=", "</tool_call>"},  /* … which often forget the beginning */
	{"[TOOL_CALLS]", "]"},           /* Mistral … */
	{"[TOOL_CALLS]", "}"},           /* … and its newer models */
	{"<|python_tag|>", "}"},         /* Llama 3 */
	{"<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"}, /* Kimi */
	{"<\xef\xbd\x9ctool\xe2\x96\x81"
	 "calls\xe2\x96\x81"
	 "begin\xef\xbd\x9c>",
	 "<\xef\xbd\x9ctool\xe2\x96\x81"
	 "calls\xe2\x96\x81"
	 "end\xef\xbd\x9c>"},                         /* DeepSeek */
	{"<|channel|>commentary to=functions.", "}"}, /* gpt-oss */
};

/* Does MARK stand at the beginning of a line of TEXT? */
static bool begins_a_line(struct str text, struct str mark)
{
	for (size_t at = 0; (at = str_find(text, mark, at)) != (size_t)-1; at++) {
		if (at == 0 || text.data[at - 1] == '\n')
			return true;
	}
	return false;
}

const char *stray_call_in(struct str text)
{
	text = str_trim(text);
	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
		if (str_ends(text, str_of(marks[i].end)) &&
		    begins_a_line(text, str_of(marks[i].begin)))
			return marks[i].begin;
	}
	return NULL;
}
