#!/usr/bin/env bash
description='Asks for choices, in every form that a choice can have.'
run()
{
	local answer
	tell '{"type": "question", "id": "user", "required": true, "message": "Please choose.", "schema":
		{"type": "object", "properties": {
		"untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
		"titledSingle": {"type": "string", "oneOf": [{"const": "value1", "title": "First Option"},
			{"const": "value2", "title": "Second Option"}, {"const": "value3", "title": "Third Option"}]},
		"legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"],
			"enumNames": ["Option One", "Option Two", "Option Three"]},
		"untitledMulti": {"type": "array", "items": {"type": "string", "enum": ["option1", "option2", "option3"]}},
		"titledMulti": {"type": "array", "items": {"anyOf": [{"const": "value1", "title": "First Choice"},
			{"const": "value2", "title": "Second Choice"}, {"const": "value3", "title": "Third Choice"}]}}}}}'
	read -r answer <&4
	printf 'Elicitation completed: action=%s, content=%s' "$(glovebox json get .action <<<"$answer")" \
		"$(glovebox json get --default '{}' .content <<<"$answer")"
}
. "${0%/*}/fixture.bash"
