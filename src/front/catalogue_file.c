/* catalogue_file: opens the models/catalogue.json that is built into the program. */
#include "front/catalogue_file.h"

#include "front/embedded.h"

bool catalogue_file_open(const struct value *additions, struct catalogue **catalogue,
			 struct err *err)
{
	return catalogue_open(embedded_text("models/catalogue.json"), additions,
			      catalogue, err);
}
