/* shell_words: any text gives words that lie in it, and the scan ends. */
#include "base/text/shell.h"
#include "tools/bash.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str text = {(const char *)data, size};
	struct shell_command command;
	struct shell_scan scan;
	struct buf sentence;
	size_t commands = 0;

	shell_scan_init(&scan, text);
	while (shell_scan_next(&scan, &command)) {
		if (++commands > size || command.count > size)
			abort();
		for (size_t i = 0; i < command.count; i++) {
			struct str word = command.words[i];

			if (word.size == 0 || word.data < text.data ||
			    word.data + word.size > text.data + text.size)
				abort();
		}
		struct str inner;

		if (shell_command_inner(&command, &inner) && inner.size > size)
			abort();
	}
	shell_scan_fini(&scan);
	buf_init(&sentence, 1 << 16);
	(void)bash_hints_interactive_refuses(text, true, &sentence);
	(void)bash_hints_interactive_meaning(text, 1);
	(void)bash_hints_interactive_meaning(text, INTERACTIVE_NOT_FOUND);
	buf_fini(&sentence);
	return 0;
}
