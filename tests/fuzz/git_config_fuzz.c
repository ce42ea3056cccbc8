/*
 * Fuzz target of git/git_config. Whatever stands before it, a line that names a program
 * is never taken for nothing. Every value is read as the address of a remote too: a name
 * that comes of it is in one spelling only, and no way out of its service.
 */
#include "guard/readers.h"
#include "policy/credentials/forge.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_address(void *context, const char *section, const char *sub,
			 const char *key, struct str value)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789.-_/:";
	char name[FORGE_NAME_MAX], again[FORGE_NAME_MAX], address[FORGE_NAME_MAX + 16];

	(void)context, (void)section, (void)sub, (void)key;
	if (!forge_read_address(value, name)) {
		assert(name[0] == '\0');
		return;
	}
	assert(strspn(name, letters) == strlen(name) && strchr(name, '/') > name);
	assert(strstr(name, "//") == NULL && strstr(name, "/../") == NULL);
	assert(strstr(name, "/./") == NULL && name[strlen(name) - 1] != '/');
	/* An address of IPv6 has brackets there, and a name none. */
	if (memchr(name, ':', strcspn(name, "/")) != NULL)
		return;
	(void)snprintf(address, sizeof(address), "https://%s.git", name);
	assert(forge_read_address(str_of(address), again) && strcmp(name, again) == 0);
}

static void read_one(struct str text, bool is_active)
{
	struct git_config config;

	git_config_init(&config);
	config.each = read_address;
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
