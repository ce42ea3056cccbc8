/* shell_words: any text gives words that lie in it, and the scan ends. */
#include "base/text/shell.h"

#include "base/memory.h"
#include "tools/bash.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Every text that the shell runs within the words of TEXT lies in TEXT. */
static void check_inners(struct str text)
{
	auto_free char *values = memory_alloc(text.size + 1);
	struct shell_inners inners = {0};
	struct shell_lexer lexer;
	struct shell_token token;

	shell_lexer_init(&lexer, text, values);
	lexer.inners = &inners;
	do
		shell_lexer_next(&lexer, &token);
	while (token.kind != SHELL_END);
	for (size_t i = 0; i < inners.count; i++) {
		struct str inner = inners.items[i].text;

		if (inner.size == 0 || inner.data <= text.data ||
		    inner.data + inner.size > text.data + text.size)
			abort();
	}
	free(inners.items);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str text = {(const char *)data, size};
	struct shell_command command;
	struct shell_scan scan;
	struct buf sentence, inner;
	size_t commands = 0, inners = 0;

	buf_init(&inner, 2 * size + 1);
	shell_scan_init(&scan, text);
	while (shell_scan_next(&scan, &command)) {
		if (++commands > size || command.count > size)
			abort();
		for (size_t i = 0; i < command.count; i++) {
			struct str word = command.words[i];

			if (word.size == 0 || word.data < text.data ||
			    word.data + word.size > text.data + text.size ||
			    command.texts[i].size > word.size)
				abort();
		}
		buf_clear(&inner);
		(void)shell_command_inner(&command, &inner);
		if (inner.overflowed || (inner.size > 0 && shell_command_reads(&command)))
			abort();
		inners += scan.inners.count;
	}
	/* No text is found twice, and each has a mark before it. */
	if (inners + scan.inners.count > size)
		abort();
	shell_scan_fini(&scan);
	buf_fini(&inner);
	check_inners(text);
	buf_init(&sentence, 1 << 16);
	(void)bash_hints_interactive_refuses(text, true, &sentence);
	(void)bash_hints_interactive_meaning(text, 1);
	(void)bash_hints_interactive_meaning(text, INTERACTIVE_NOT_FOUND);
	buf_fini(&sentence);
	return 0;
}
