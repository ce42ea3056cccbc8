/* hello: who is there, and what both can: the handshake of the legacy era, discovery and the
 * `_meta` of each request in the modern one. */
#include "base/memory.h"
#include "mcp/server/mcp_parts.h"

#include <string.h>

/* A box with two round ports: an SVG of 200 bytes. */
static const char icon[] =
	"data:image/svg+xml;base64,"
	"PHN2ZyB4bWxucz0naHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmcnIHZpZXdCb3g9JzAgMCAx"
	"NiAxNic+PHBhdGggZD0nTTIgM2gxMnYxMEgyeicgZmlsbD0nI2NjZCcgc3Ryb2tlPScjNDQ1"
	"Jy8+PGNpcmNsZSBjeD0nNS41JyBjeT0nOCcgcj0nMicgZmlsbD0nIzQ0NScvPjxjaXJjbGUg"
	"Y3g9JzEwLjUnIGN5PSc4JyByPScyJyBmaWxsPScjNDQ1Jy8+PC9zdmc+";

const char *mcp_modern_version(const struct mcp_message *message)
{
	const struct value *meta = value_member(message->params, "_meta");

	return value_text(value_member(meta, MCP_META_VERSION));
}

bool mcp_version_is_legacy(const char *version)
{
	return mcp_version_find(version) < MCP_2026_07_28;
}

int mcp_log_level(const char *name)
{
	static const char *const levels[] = {"debug", "info",     "notice", "warning",
					     "error", "critical", "alert",  "emergency"};

	for (int i = 0; name != NULL && i < (int)(sizeof(levels) / sizeof(levels[0])); i++) {
		if (strcmp(levels[i], name) == 0)
			return i;
	}
	return -1;
}

struct value *mcp_server_info(const struct mcp *mcp)
{
	struct value *info = value_new_object();

	value_set_text(info, "name", "glovebox");
	value_set_text(info, "version", mcp->version);
	return info;
}

static void read_capabilities(struct mcp_client *client, const struct value *capabilities)
{
	const struct value *elicitation = value_member(capabilities, "elicitation");

	client->url = value_member(elicitation, "url") != NULL;
	/* Without a word about kinds it is the one that was there first. */
	client->form = elicitation != NULL &&
		       (value_count(elicitation) == 0 ||
			value_member(elicitation, "form") != NULL || !client->url);
	client->sampling = value_member(capabilities, "sampling") != NULL;
	client->roots = value_member(capabilities, "roots") != NULL;
}

static struct value *object_with(const char *key)
{
	struct value *object = value_new_object();

	if (key != NULL)
		value_set_boolean(object, key, true);
	return object;
}

static struct value *our_capabilities(const struct mcp *mcp, bool modern)
{
	struct value *all = value_new_object();
	struct value *resources = object_with("listChanged");

	value_set_boolean(resources, "subscribe", true);
	value_set(all, "tools",
		  object_with(mcp->options.tools_change ? "listChanged" : NULL));
	value_set(all, "resources", resources);
	value_set(all, "prompts", object_with("listChanged"));
	value_set(all, "completions", object_with(NULL));
	if (!modern)
		value_set(all, "logging", object_with(NULL));
	return all;
}

static struct value *our_icons(void)
{
	struct value *icons = value_new_array(), *row = value_new_object();

	value_set_text(row, "src", icon);
	value_set_text(row, "mimeType", "image/svg+xml");
	value_set(row, "sizes", value_new_array());
	value_append(value_member(row, "sizes"), value_new_text("any"));
	value_append(icons, row);
	return icons;
}

void mcp_initialize(struct mcp_request *request)
{
	struct mcp_peer *peer = request->peer;
	const char *asked = value_text(value_member(request->params, "protocolVersion"));
	enum mcp_version version = mcp_version_find(asked);
	struct value *result, *info;

	if (asked == NULL) {
		mcp_fail(request, MCP_CODE_PARAMS, NULL,
			 "initialize needs a protocolVersion.");
		return;
	}
	/*
	 * A client that asks for a version without handshake gets the newest that has
	 * one.
	 */
	if (version >= MCP_2026_07_28)
		version = MCP_2025_11_25;
	peer->known = true;
	peer->client = (struct mcp_client){.version = version};
	read_capabilities(&peer->client, value_member(request->params, "capabilities"));
	info = mcp_server_info(request->mcp);
	if (version >= MCP_2025_06_18)
		value_set_text(info, "title", "Glovebox");
	if (version >= MCP_2025_11_25)
		value_set(info, "icons", our_icons());
	result = value_new_object();
	value_set_text(result, "protocolVersion", mcp_version_name(version));
	value_set(result, "capabilities", our_capabilities(request->mcp, false));
	value_set(result, "serverInfo", info);
	value_set_text(result, "instructions", request->mcp->instructions);
	mcp_answer(request, result);
}

void mcp_discover(struct mcp_request *request)
{
	struct value *result = value_new_object(), *versions = value_new_array();

	/* The others are settled by initialize, not by saying them in a request. */
	value_append(versions, value_new_text(mcp_version_name(MCP_2026_07_28)));
	value_set(result, "supportedVersions", versions);
	value_set(result, "capabilities", our_capabilities(request->mcp, true));
	value_set_text(result, "instructions", request->mcp->instructions);
	mcp_answer(request, result);
}

void mcp_ping(struct mcp_request *request)
{
	mcp_answer_text(request, STR(""));
}

void mcp_set_level(struct mcp_request *request)
{
	int level = mcp_log_level(value_text(value_member(request->params, "level")));

	if (level < 0) {
		mcp_fail(request, MCP_CODE_PARAMS, NULL,
			 "level must be debug, info, notice, warning, error, critical, alert "
			 "or emergency.");
		return;
	}
	request->peer->client.log_level = level;
	mcp_answer_text(request, STR(""));
}

static void refuse_version(struct mcp_request *request, const char *asked)
{
	struct value *data = value_new_object(), *supported = value_new_array();

	value_append(supported, value_new_text(mcp_version_name(MCP_2026_07_28)));
	value_set(data, "supported", supported);
	value_set_text(data, "requested", asked);
	mcp_fail(request, MCP_CODE_VERSION, data,
		 "Protocol version %.40s is not spoken here; %s is, and older ones after "
		 "initialize.",
		 asked, mcp_version_name(MCP_2026_07_28));
}

bool mcp_read_modern(struct mcp_request *request)
{
	const struct value *meta = value_member(request->params, "_meta");
	const char *asked = value_text(value_member(meta, MCP_META_VERSION));
	const struct value *capabilities = value_member(meta, MCP_META_CLIENT);
	const struct value *level = value_member(meta, MCP_META_LOG);

	request->client =
		(struct mcp_client){.version = MCP_2026_07_28, .log_level = MCP_LOG_NONE};
	if (asked == NULL || value_kind(capabilities) != VALUE_OBJECT) {
		mcp_fail(request, MCP_CODE_PARAMS, NULL,
			 "_meta must have %s (a text) and %s (an object).",
			 MCP_META_VERSION, MCP_META_CLIENT);
		return false;
	}
	if (mcp_version_find(asked) != MCP_2026_07_28) {
		refuse_version(request, asked);
		return false;
	}
	read_capabilities(&request->client, capabilities);
	if (level != NULL && mcp_log_level(value_text(level)) >= 0)
		request->client.log_level = mcp_log_level(value_text(level));
	return true;
}
