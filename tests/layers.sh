#!/bin/sh
# layers.sh - does every file in src/ include only what its folder may?
#
# The law is the table in docs/architecture.md: a row is `| folder | may include | ... |`, the
# second cell names folders, or "everything", or "-". A folder may always include itself.
# Prints the lines that break it, as file:line: text, and exits 1.
#
#	tests/layers.sh [ROOT]		ROOT is the checkout; by default the one this file is in
set -eu
cd "${1:-$(dirname "$0")/..}"

# The files come as arguments, so that awk sees each name; sorted, so that the report is stable.
find src -name '*.[chS]' | sort | tr '\n' '\0' | xargs -0 awk '
	function offend(why)
	{
		sub(/^[ \t]+/, "")
		printf "%s:%d: %s   <- %s\n", FILENAME, FNR, $0, why
		bad = 1
	}

	# First file: the table. Cells are "| `base` | - | ..."; backquotes and stars are decoration.
	FILENAME == "docs/architecture.md" {
		if (split($0, cell, "|") < 4) {
			in_table = 0
			next
		}
		gsub(/[`* \t]/, "", cell[2])
		in_table = in_table || cell[2] == "folder"
		if (!in_table || cell[2] !~ /^[a-z0-9]+$/ || cell[2] == "folder")
			next
		rows++
		known[cell[2]] = 1
		n = split(cell[3], names, " ")
		for (i = 1; i <= n; i++)
			may[cell[2], names[i]] = 1
		next
	}

	FNR == 1 {
		split(FILENAME, part, "/")
		folder = part[2]
		files++
		if (!(folder in known) && !(folder in told)) {
			printf "src/%s: no row in the table of docs/architecture.md\n", folder
			told[folder] = bad = 1
		}
	}

	/^[ \t]*#[ \t]*include[ \t]*["<]/ {
		quoted = $0 ~ /include[ \t]*"/
		name = $0
		sub(/^[^"<]*["<]/, "", name)
		sub(/[">].*/, "", name)
		top = name
		sub(/\/.*/, "", top)

		if (!quoted && !(top in known && name ~ /\//))
			next
		if (name !~ /\// || top !~ /^[a-z]/)
			offend("say folder/file.h")
		else if (top != folder && !((folder, top) in may) && !((folder, "everything") in may))
			offend(folder " may not include " top)
	}

	END {
		if (rows < 5) {
			print "docs/architecture.md: the layer table is not there"
			bad = 1
		}
		exit bad
	}
' docs/architecture.md || exit 1 # xargs would say 123
