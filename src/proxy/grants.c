/* grants: the tokens of the commands that run now. */
#include "base/memory.h"
#include "proxy/proxy_parts.h"

#include <string.h>

bool grants_add(struct proxy *proxy, uint64_t call, const char *token)
{
	if (proxy->grant_count >= GRANTS_MAX || strlen(token) != PROXY_TOKEN)
		return false;
	proxy->grants = memory_grow(proxy->grants, proxy->grant_count + 1,
				    sizeof(proxy->grants[0]));
	struct grant *grant = &proxy->grants[proxy->grant_count++];
	*grant = (struct grant){.call = call};
	memcpy(grant->token, token, PROXY_TOKEN);
	return true;
}

void grants_remove(struct proxy *proxy, uint64_t call)
{
	struct grant *grant;

	/* A call that moved to a second worker had two grants. */
	while ((grant = grants_of(proxy, call)) != NULL)
		*grant = proxy->grants[--proxy->grant_count];
}

struct grant *grants_of(struct proxy *proxy, uint64_t call)
{
	for (size_t i = 0; i < proxy->grant_count; i++) {
		if (proxy->grants[i].call == call)
			return &proxy->grants[i];
	}
	return NULL;
}

/* Takes the same time however many bytes are equal. */
static bool is_same(const char *a, const char *b)
{
	unsigned different = 0;

	for (size_t i = 0; i < PROXY_TOKEN; i++)
		different |= (unsigned char)a[i] ^ (unsigned char)b[i];
	return different == 0;
}

struct grant *grants_find(struct proxy *proxy, const char *token)
{
	if (strlen(token) != PROXY_TOKEN)
		return NULL;
	for (size_t i = 0; i < proxy->grant_count; i++) {
		if (is_same(proxy->grants[i].token, token))
			return &proxy->grants[i];
	}
	return NULL;
}
