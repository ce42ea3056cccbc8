/*
 * insets: pastes and pictures that stand in a typed text as one character each, shown as
 * "[paste 1: 212 lines]". The characters are U+FDD0 to U+FDEF, which Unicode keeps for the
 * inside of programs. No text from outside may hold them: insets_are_in finds those that do.
 */
#pragma once

#include "base/buf.h"
#include "base/str.h"
#include "base/value.h"

#include <stdbool.h>
#include <stddef.h>

enum {
	INSETS_MAX = 32, /* as many characters as there are */
	INSETS_SIZE = 3, /* bytes of each */
	INSETS_BYTES_MAX = 8 << 20,
	/* A paste of more than this is an inset. */
	INSETS_LINES_SHOWN = 10,
	INSETS_CHARACTERS_SHOWN = 1000,
	INSETS_LABEL_MAX = 80,
};

struct inset {
	char label[INSETS_LABEL_MAX];
	struct buf text;       /* of a paste */
	struct value *picture; /* NULL: a paste; else as tool/picture.h makes it */
};

struct insets {
	struct inset items[INSETS_MAX];
	size_t count;
	size_t bytes; /* of all texts */
};

void insets_init(struct insets *insets);
void insets_clear(struct insets *insets); /* forget all; the end as well */

/* Is an inset in TEXT? */
bool insets_are_in(struct str text);
/* Append TEXT, which comes from outside, with U+FFFD in place of the characters of insets. */
void insets_add_clean(struct str text, struct buf *out);

/* Is the paste TEXT so long that it becomes an inset? */
bool insets_are_for(struct str text);
/*
 * A new inset for the paste TEXT, or for the picture TAKE_PICTURE. Its character is appended to
 * OUT. False, and the picture is freed: there are too many insets, or they are too long.
 */
bool insets_add_paste(struct insets *insets, struct str text, struct buf *out);
bool insets_add_picture(struct insets *insets, struct value *take_picture, struct buf *out);

/* The inset whose character TEXT begins with; NULL: it begins with none. */
const struct inset *insets_at(const struct insets *insets, struct str text);

/*
 * Append TEXT as it is sent: each paste in place of its inset, each picture as its label. False
 * when OUT is full.
 */
bool insets_add_whole(const struct insets *insets, struct str text, struct buf *out);
/* Append TEXT as it is shown: each inset as its label. */
void insets_add_shown(const struct insets *insets, struct str text, struct buf *out);
/* Append TEXT, which was shown to the person elsewhere: the labels of pictures are insets again. */
void insets_add_again(const struct insets *insets, struct str text, struct buf *out);
/* The size of what insets_add_whole appends. */
size_t insets_whole_size(const struct insets *insets, struct str text);
/* The pictures in TEXT as an array, in their order; NULL: there is none. The caller frees it. */
struct value *insets_pictures(const struct insets *insets, struct str text);

/*
 * Append TEXT, whose insets are those of FROM, with insets of TO in their place. An inset for which
 * there is no room becomes what insets_add_whole makes of it.
 */
void insets_move(const struct insets *from, struct str text, struct insets *to,
		 struct buf *out);
