# strings.bash STRINGS FUNCTIONS: evals each NUL-ended text of the file STRINGS where every command is
# a stand-in. A record of what ran is \2 before each argument and \3 at its end; \4 ends a text.
#
# Files, variables and homes are there for whatever should be expanded by mistake to show.
mapfile -d '' -t texts <"$1"
exec </dev/null 2>/dev/null
a=expanded b=expanded c=expanded PATH=/nonexistent HOME=/expanded OLDPWD=/expanded

stand_in() {
	local record
	while IFS= builtin read -r -d $'\3' record; do
		builtin printf '%s\3' "$record"
	done
	builtin printf '\2%s' "$@"
	builtin printf '\3'
	return $((($# + 1) % 2))
}
command_not_found_handle() { stand_in "$@"; }
builtin source "$2"
# Those that a text may name: they would act instead of showing their arguments.
enable -n [ : . echo export

for text in "${texts[@]}"; do
	eval -- "$text"
	builtin printf '\4'
done
