/*
 * style: which elements of a page its styles keep a reader from seeing, so that a page cannot
 * speak to a model behind a person's back. It is no engine of CSS: it reads the rules of <style>
 * and the attributes `style`, and of their properties those that hide: display, visibility,
 * opacity, the size and colour of the text, a place far off the screen, and a box without room.
 *
 * A selector is names of elements, classes and ids, at most STYLE_PARTS of them behind each other
 * ("a b", "a > b"); a selector with anything else is dropped. Of blocks that begin with "@" only
 * those of "@media all", "@media screen" and "@layer" are read. Names are compared in lower case.
 * The order of rules, "!important" and the weight of selectors count as in CSS (CSS Cascading and
 * Inheritance Level 4, section 6). STYLE_BYTES of rules are read, STYLE_SELECTORS kept, and as
 * much compared as STYLE_WORK says; style_is_full then says that rules were left out.
 */
#pragma once

#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	STYLE_BYTES = 1 << 20,
	STYLE_SELECTORS = 1 << 14,
	STYLE_PARTS = 4,
	STYLE_CLASSES = 16,    /* of an element; more are dropped */
	STYLE_WORK = 20 << 20, /* selectors that are compared: some tenths of a second */
};

/* An element, as selectors see it. Its names are numbers made of them. */
struct style_element {
	uint64_t tag, id;
	uint64_t classes[STYLE_CLASSES];
	size_t class_count;
	const struct style_element *parent; /* NULL: the outermost one */
};

/* Is the text of an element seen? */
enum style_sight {
	STYLE_INHERITED, /* as that of the element around it */
	STYLE_SEEN,
	STYLE_UNSEEN,
};

/* The look that styles give an element. */
struct style_look {
	bool hidden; /* with all that is in it */
	bool by_rule; /* a rule has said something that hides, and not the element itself */
	enum style_sight visibility, size, colour;
};

struct styles;
struct styles *style_new(void);
void style_free(struct styles *styles);
/* Read the rules of SHEET, which need not live on. */
void style_add(struct styles *styles, struct str sheet);
/* Set ELEMENT to TAG with its attributes; PARENT must live as long as ELEMENT. */
void style_name(struct style_element *element, struct str tag, struct str id,
		struct str classes, const struct style_element *parent);
/* The look of ELEMENT, whose attribute `style` is OWN, or empty. */
struct style_look style_look(struct styles *styles, const struct style_element *element,
			     struct str own);
/* Was a ceiling reached, so that elements may be seen that the page hides? */
bool style_is_full(const struct styles *styles);
