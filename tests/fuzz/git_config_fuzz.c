/*
 * Fuzz target of git/git_config. Whatever stands before it, a line that names a program
 * is never taken for nothing.
 */
#include "guard/readers.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_one(struct str text, bool is_active)
{
	struct git_config config;

	git_config_init(&config);
	git_config_read(text, &config);
	if (is_active && config.active.size == 0)
		abort();
	git_config_fini(&config);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf text;

	read_one((struct str){(const char *)data, size}, false);
	buf_init(&text, 2 * GIT_CONFIG_MAX);
	if (buf_add(&text, data, size) && buf_adds(&text, "\n[core]\nfsmonitor = x\n"))
		read_one(buf_str(&text), true);
	buf_fini(&text);
	return 0;
}
