#!/bin/sh
# words.sh - do names and sentences keep to docs/glossary.md?
#
#	tests/words.sh [-C ROOT]		compare every folder with its numbers in tests/words.allowed
#	tests/words.sh [-C ROOT] -l		the same, and write smaller numbers into that file
#	tests/words.sh [-C ROOT] PATH...	print every hit below these paths; --help is a path, too
#
# The banned words are the tables "Names" and "Idioms" of the glossary. A line of words.allowed is
# `path names idioms`: the hits that a folder may still have; a folder without a line may have none.
# More hits fail. Fewer print "lower it"; -l does that, so that the numbers only become smaller.
# A hit is printed as `file:line: word   <- write instead`. The help texts are those of $ATOLL, by
# default ROOT/build/atoll; where there is no such program they are left out.
set -eu
root=$(dirname "$0")/.. lower=0
while getopts C:l option; do
	case $option in
	C) root=$OPTARG ;;
	l) lower=1 ;;
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
[ "$(wc -l <"$work/banned")" -ge 20 ] || { echo "docs/glossary.md: the tables of banned words are not there"; exit 1; }

# All lines that may have a hit, as file:line:text. Corpora and the TOML suite are not our text; the
# glossary and the test of this file name banned words on purpose.
cut -f 2 "$work/banned" >"$work/fits"
find src docs man tests bench ui README.md CONTRIBUTING.md \( -path tests/fuzz/corpus -o -path tests/toml -o \
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

# One line per hit: folder TAB kind TAB file:line: word   <- write instead
awk -F '\t' '
	NR == FNR {
		kind[++n] = $1; fit[n] = $2; word[n] = $3; instead[n] = $4
		some[n] = $5 != ""
		k = split($5, only, " ")
		for (i = 1; i <= k; i++)
			within[n] = within[n] " " only[i]
		next
	}

	# Is the file in one of the folders that the row names?
	function concerns(i, file,	part, k, j)
	{
		k = split(within[i], part, " ")
		for (j = 1; j <= k; j++)
			if (file == part[j] || index(file, part[j] "/") == 1)
				return 1
		return !some[i]
	}
	{
		file = $0
		sub(/:.*/, "", file)
		line = substr($0, length(file) + 2)
		sub(/:.*/, "", line)
		text = tolower(substr($0, length(file) + length(line) + 3))
		folder = file
		if (split(file, part, "/") > 2)
			folder = part[1] "/" part[2]
		if (part[1] == "--help")
			folder = "--help"
		for (i = 1; i <= n; i++)
			if (text ~ fit[i] && concerns(i, file))
				printf "%s\t%s\t%s:%s: %s   <- %s\n", folder, kind[i], file, line, word[i], instead[i]
	}
' "$work/banned" "$work/lines" >"$work/hits"

if [ $# -gt 0 ]; then
	for path; do
		cut -f 3 "$work/hits" | awk -v path="${path%/}" '
			index($0, path "/") == 1 || index($0, path ":") == 1 { print; n++ }
			END { exit n > 0 }' || found=1
	done
	exit ${found:-0}
fi

touch "$work/none"
[ -f tests/words.allowed ] && allowed=tests/words.allowed || allowed=$work/none
awk -v allowed="$allowed" -v lowered="$work/lowered" -v risen="$work/risen" '
	FILENAME == allowed {
		if ($0 !~ /^#/ && NF == 3) {
			may[$1, "names"] = $2; may[$1, "idioms"] = $3
			path[$1] = 1
		}
		next
	}
	{ has[$1, $2]++; path[$1] = 1 }

	function compare(p, kind,	now, was)
	{
		now = has[p, kind] + 0
		was = may[p, kind] + 0
		if (now > was) {
			printf "%s: %d %s of the glossary that are banned, %d allowed\n", p, now, kind, was
			print p "\t" kind >risen
			bad = 1
			return was
		}
		if (now < was)
			printf "%s: %d %s, %d allowed: lower it (tests/words.sh -l)\n", p, now, kind, was
		return now
	}
	END {
		for (p in path) {
			names = compare(p, "names")
			idioms = compare(p, "idioms")
			if (names + idioms > 0)
				print p, names, idioms | ("sort >" lowered)
		}
		close("sort >" lowered)
		exit bad
	}
' "$allowed" FS='\t' "$work/hits" >"$work/report" || bad=1
sort "$work/report"
if [ $lower = 1 ]; then
	{
		echo "# path names idioms: hits of tests/words.sh that a folder may still have. Only lower them."
		cat "$work/lowered"
	} >tests/words.allowed
fi
[ "${bad:-}" ] || exit 0

# Of these folders, print the hits in lines that are new since the numbers were last changed. Without
# git, and of help texts, all.
base=$(git log -n 1 --format=%H -- tests/words.allowed 2>/dev/null) || base=
if [ "$base" ]; then
	git diff -U0 --no-color "$base" -- . | awk '
		/^\+\+\+ b\// { file = substr($0, 7) }
		/^@@/ {
			lines = split(substr($3, 2), at, ",") == 2 ? at[2] : 1
			for (i = 0; i < lines; i++)
				print file ":" at[1] + i
		}'
	git ls-files -o --exclude-standard
fi >"$work/new"
awk -F '\t' -v every="${base:-all}" '
	FILENAME ~ /risen$/ { rose[$1, $2] = 1; next }
	FILENAME ~ /new$/ { new[$0] = 1; next }
	($1, $2) in rose {
		split($3, part, ":")
		if (every == "all" || $1 == "--help" || part[1] in new || (part[1] ":" part[2]) in new)
			print $3
	}
' "$work/risen" "$work/new" "$work/hits"
exit 1
