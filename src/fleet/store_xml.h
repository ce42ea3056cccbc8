/*
 * store_xml: the answers of S3, which are small documents of XML: elements, text and the five
 * entities, without a document type. The reader is strict: what it does not know is no answer.
 */
#pragma once

#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>

enum {
	STORE_XML_MAX = 4 << 20, /* bytes of an answer; a page of 1,000 keys has 1 MiB at most */
	STORE_XML_TEXT_MAX = 8192, /* bytes of one text */
	STORE_XML_DEPTH_MAX = 8,
};

/*
 * Tell LEAF the text of each element of XML that has no elements in it, with the names of
 * the elements above it: "ListBucketResult/Contents/Key". Both live as long as the call. LEAF
 * returns false to end it, with ERR. EBADMSG: it is no such document.
 */
bool store_xml_read(struct str xml,
		    bool (*leaf)(void *context, const char *path, const char *text,
				 struct err *err),
		    void *context, struct err *err);
