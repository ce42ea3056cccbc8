/*
 * Fuzz target of fleet/store_xml: whatever a service answers, leaves have a root in common and texts within
 * their ceiling; and any text that is written as XML is read as it was.
 */
#include "base/buf.h"
#include "fleet/store_xml.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool check_leaf(void *context, const char *path, const char *text, struct err *err)
{
	struct buf *root = context;
	const size_t first = strcspn(path, "/");

	(void)err;
	if (first == 0 || strlen(text) > STORE_XML_TEXT_MAX)
		abort();
	if (root->size == 0)
		(void)buf_add(root, path, first);
	if (root->size != first || memcmp(root->data, path, first) != 0)
		abort();
	return true;
}

static bool keep_leaf(void *context, const char *path, const char *text, struct err *err)
{
	(void)err;
	if (strcmp(path, "a/b") != 0)
		abort();
	return buf_adds(context, text);
}

static void check_text(struct str text)
{
	struct buf xml, read;

	buf_init(&xml, 8 * STORE_XML_TEXT_MAX);
	buf_init(&read, STORE_XML_TEXT_MAX);
	(void)buf_adds(&xml, "<a>\n <b>");
	for (size_t i = 0; i < text.size; i++) {
		if (strchr("&<>\"'", text.data[i]) != NULL)
			(void)buf_addf(&xml, "&#%d;", text.data[i]);
		else
			(void)buf_addc(&xml, text.data[i]);
	}
	(void)buf_adds(&xml, "</b>\n</a>");
	if (!store_xml_read(buf_str(&xml), keep_leaf, &read, NULL) ||
	    read.size != text.size || memcmp(read.data, text.data, text.size) != 0)
		abort();
	buf_fini(&xml);
	buf_fini(&read);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct str input = {(const char *)data, size};
	struct buf root;

	buf_init(&root, 1024);
	(void)store_xml_read(input, check_leaf, &root, NULL);
	buf_fini(&root);
	if (size <= STORE_XML_TEXT_MAX && size > 0 && memchr(data, '\0', size) == NULL)
		check_text(input);
	return 0;
}
