/*
 * wire: the data types of SSH (RFC 4251, section 5): numbers with the highest byte first,
 * and strings with their length before them. Reading checks every length.
 */
#pragma once

#include "base/buf.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

/* Each takes a value from the start of *REST. False, with nothing taken, when it is cut. */
bool wire_take_byte(struct str *rest, uint8_t *byte);
bool wire_take_number(struct str *rest, uint32_t *number);
/* STRING is a view of *REST. */
bool wire_take_string(struct str *rest, struct str *string);

/* Each appends a value. When OUT is full, OUT has overflowed. */
void wire_add_byte(struct buf *out, uint8_t byte);
void wire_add_number(struct buf *out, uint32_t number);
void wire_add_string(struct buf *out, struct str string);
