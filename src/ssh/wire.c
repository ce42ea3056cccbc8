/* wire: reads and writes the data types of SSH. */

#include "ssh/wire.h"

enum { NUMBER_BYTES = 4 };

bool wire_take_byte(struct str *rest, uint8_t *byte)
{
	if (rest->size < 1)
		return false;
	*byte = (uint8_t)rest->data[0];
	*rest = str_part(*rest, 1, rest->size);
	return true;
}

bool wire_take_number(struct str *rest, uint32_t *number)
{
	uint32_t made = 0;

	if (rest->size < NUMBER_BYTES)
		return false;
	for (size_t i = 0; i < NUMBER_BYTES; i++)
		made = made << 8 | (uint8_t)rest->data[i];
	*rest = str_part(*rest, NUMBER_BYTES, rest->size);
	*number = made;
	return true;
}

bool wire_take_string(struct str *rest, struct str *string)
{
	struct str behind = *rest;
	uint32_t size;

	if (!wire_take_number(&behind, &size) || size > behind.size)
		return false;
	*string = str_part(behind, 0, size);
	*rest = str_part(behind, size, behind.size);
	return true;
}

void wire_add_byte(struct buf *out, uint8_t byte)
{
	(void)buf_addc(out, (char)byte);
}

void wire_add_number(struct buf *out, uint32_t number)
{
	for (int shift = 24; shift >= 0; shift -= 8)
		wire_add_byte(out, (uint8_t)(number >> shift));
}

void wire_add_string(struct buf *out, struct str string)
{
	wire_add_number(out, (uint32_t)string.size);
	(void)buf_addstr(out, string);
}
