/*
 * junit: a bounded reader of the XML that test runners write: elements, attributes, text,
 * CDATA; comments, processing instructions and declarations are passed over. No entity but
 * the five and the numbered ones, nothing is loaded, nothing is nested in memory.
 */
#pragma once

#include "base/buf.h"
#include "base/str.h"

#include <stdbool.h>

enum xml_event { XML_END, XML_OPEN, XML_CLOSE, XML_TEXT };

struct xml {
	struct str rest;
	struct str name;       /* of XML_OPEN and XML_CLOSE */
	struct str attributes; /* of XML_OPEN, as written */
	struct str text;       /* of XML_TEXT, as written */
	/* it comes from CDATA, so xml_add_text leaves it unchanged */
	bool literal;
	bool closes; /* an element without content: its XML_CLOSE comes next */
};

/* Read the next event. XML_END also where the text breaks off or is no XML. */
enum xml_event xml_next(struct xml *xml);
/* Append the text of XML_TEXT, its entities decoded. */
void xml_add_text(const struct xml *xml, struct buf *out);
/* Replace OUT by an attribute's value, decoded. False: there is none. */
bool xml_attribute(const struct xml *xml, const char *name, struct buf *out);
