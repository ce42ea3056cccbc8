# fixture: what the tools of this package share. A tool is a file with a description, perhaps the
# parameters, and the function `run`; it ends with: . "${0%/*}/fixture.bash".
# Lines go to descriptor 3 by `tell`; answers come on descriptor 4 by `hear`.
set -euo pipefail

png=iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==
wav=UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQIAAAAAAA==
parameters=${parameters:-'{"type": "object", "properties": {}}'}
name=${0##*/}
name=${name%.bash}

# tell JSON: its line ends are only for the reader of the script
tell()
{
	printf '%s\n' "${1//$'\n'/ }" >&3
}

# picture: of one pixel; sound: of one sample
picture()
{
	tell '{"type": "image", "data": "'"$png"'", "mimeType": "image/png"}'
}

sound()
{
	tell '{"type": "audio", "data": "'"$wav"'", "mimeType": "audio/wav"}'
}

# hear PATH: of the next answer
hear()
{
	local answer
	read -r answer <&4
	glovebox json get "$1" --default '' <<<"$answer"
}

# text_form NAME: the schema of a form with one text
text_form()
{
	printf '{"type": "object", "properties": {"%s": {"type": "string"}}, "required": ["%s"]}' "$1" "$1"
}

case ${1:-} in
schema)
	printf '{"id": "%s", "version": "1.0.0", "args_mode": "json", "tools": [{"type": "function",\n' "$name"
	printf '"function": {"name": "%s", "description": "%s",\n' "$name" "$description"
	printf '"parameters": %s}}]}\n' "$parameters"
	;;
preview)
	printf '%s\n' "$name"
	;;
run)
	arguments=$(cat)
	run
	;;
*)
	exit 2
	;;
esac
