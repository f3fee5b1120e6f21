#!/bin/sh
# words.sh - do names and sentences keep to docs/glossary.md?
#
#	tests/words.sh [-C ROOT]		print every hit in the repository
#	tests/words.sh [-C ROOT] PATH...	print every hit below these paths; --help is a path, too
#
# The banned words are the tables "Names" and "Idioms" of the glossary. Texts of its table "Exceptions"
# are removed from a line before it is checked. A hit is printed as `file:line: word   <- write instead`,
# and the exit status is then 1. The help texts are those of $ATOLL, by default ROOT/build/atoll; without
# such a program they are not checked.
set -eu
root=$(dirname "$0")/..
while getopts C: option; do
	case $option in
	C) root=$OPTARG ;;
	*) exit 2 ;;
	esac
done
shift $((OPTIND - 1))
atoll=$(realpath "${ATOLL:-$root/build/atoll}" 2>/dev/null) || atoll=
cd "$root"
export LC_ALL=C
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# kind TAB words as a regular expression TAB the word as it is printed TAB what to write TAB only in
awk '
	/^#/ { kind = $0 == "### Names" ? "names" : $0 == "### Idioms" ? "idioms" : "" }
	kind && split($0, cell, "|") >= 5 && cell[2] ~ /`/ {
		n = split(cell[2], word, "`")
		gsub(/^ +| +$/, "", cell[3])
		gsub(/^ +| +$/, "", cell[4])
		for (i = 2; i <= n; i += 2) {
			fit = tolower(word[i])
			end = sub(/_$/, "", fit) ? "_" : sub(/ $/, "", fit) ? "( +[a-z]|$)" : "s?([^a-z0-9]|$)"
			gsub(/[.]/, "[.]", fit)
			gsub(/[ _]/, "[ _]+", fit)
			fit = "(^|[^a-z0-9])" fit end
			sub(/ $/, "", word[i])
			printf "%s\t%s\t%s\t%s\t%s\n", kind, fit, word[i], cell[3], cell[4]
		}
	}
' docs/glossary.md >"$work/banned"
awk '
	/^#/ { on = $0 == "### Exceptions" }
	on && split($0, cell, "|") >= 4 && cell[2] ~ /`/ {
		n = split(cell[2], text, "`")
		for (i = 2; i <= n; i += 2)
			print tolower(text[i])
	}
' docs/glossary.md >"$work/exceptions"
[ "$(wc -l <"$work/banned")" -ge 20 ] || { echo "docs/glossary.md: the tables of banned words are not there"; exit 1; }

# All lines that may have a hit, as file:line:text. Corpora, the TOML suite and the tasks of the planner are
# data. The statements of schema.c and store_v1.h created the databases of released versions and never
# change. The glossary and the test of this file contain banned words on purpose.
cut -f 2 "$work/banned" >"$work/fits"
find src docs man share tests bench ui README.md CONTRIBUTING.md \( \
	-path tests/fuzz/corpus -o -path tests/toml -o -path share/tasks -o -path tests/unit/debug -o \
	-path src/store/schema.c -o -path tests/unit/store_v1.h -o \
	-name node_modules -o -name dist -o -name __pycache__ -o -name package-lock.json -o \
	-path docs/glossary.md -o -path tests/system/words.sh \) \
	-prune -o -type f -print 2>/dev/null | sort | tr '\n' '\0' |
	xargs -0 grep -HInaiE -f "$work/fits" >"$work/lines" || :

help_of() { "$atoll" "$@" 2>/dev/null | awk -v path="--help/${2:-atoll}" '{ print path ":" NR ":" $0 }'; }
if [ -x "$atoll" ]; then
	help_of help
	for command in $("$atoll" help | sed -n 's/^  \([a-z]*\)  *[^ ].*/\1/p' | grep -vx atoll); do
		help_of help "$command"
	done
else
	echo "words.sh: no executable: the help texts are not checked" >&2
fi >>"$work/lines"

# One line per hit: file:line: word   <- write instead
awk -F '\t' '
	FILENAME ~ /banned$/ {
		fit[++n] = $2; word[n] = $3; instead[n] = $4; within[n] = $5
		next
	}
	FILENAME ~ /exceptions$/ { exception[++exceptions] = $0; next }

	# Is the file in one of the folders that the row names?
	function concerns(i, file,	part, k, j)
	{
		k = split(within[i], part, " ")
		for (j = 1; j <= k; j++)
			if (file == part[j] || index(file, part[j] "/") == 1)
				return 1
		return k == 0
	}

	# The text without the exceptions.
	function without(text,	i, at)
	{
		for (i = 1; i <= exceptions; i++)
			while (at = index(text, exception[i]))
				text = substr(text, 1, at - 1) "." substr(text, at + length(exception[i]))
		return text
	}
	{
		file = $0
		sub(/:.*/, "", file)
		line = substr($0, length(file) + 2)
		sub(/:.*/, "", line)
		text = without(tolower(substr($0, length(file) + length(line) + 3)))
		for (i = 1; i <= n; i++)
			if (text ~ fit[i] && concerns(i, file))
				printf "%s:%s: %s   <- %s\n", file, line, word[i], instead[i]
	}
' "$work/banned" "$work/exceptions" "$work/lines" >"$work/hits"

[ $# -gt 0 ] || set -- ""
for path; do
	awk -v path="${path%/}" '
		path == "" || index($0, path "/") == 1 || index($0, path ":") == 1 { print; n++ }
		END { exit n > 0 }' "$work/hits" || found=1
done
exit ${found:-0}
