#!/bin/sh
# words.sh - tests/words.sh finds banned words, and allows as many as the number of the folder.
. "$(dirname "$0")/lib.sh"
top=$(cd "$here/../.." && pwd)

# A checkout with one source file, of this text.
tree() {
	mkdir -p src/fleet docs tests
	cp "$top/docs/glossary.md" docs/
	printf '%s\n' "$@" >src/fleet/x.c
}
check_words() {
	status=0
	out=$(ATOLL=/nonexistent "$top/tests/words.sh" -C "$PWD" "$@" 2>/dev/null) || status=$?
}

a_banned_name_fails_with_its_line_and_replacement() {
	tree 'int box_open(void);' 'struct BERTH_list *b; /* a berth */'
	check_words
	is "$status" 1
	has "$out" 'src/fleet: 1 names of the glossary that are banned, 0 allowed'
	has "$out" 'src/fleet/x.c:2: berth   <- box'
	tree 'int box_open(void);'
	check_words
	is "$status $out" "0 "
}

a_banned_idiom_fails_in_prose_and_in_identifiers() {
	tree '/* The client is told. */' 'void a_client_is_told_once(void);'
	check_words
	is "$status" 1
	has "$out" 'src/fleet: 2 idioms'
	has "$out" 'src/fleet/x.c:1: is told   <- '
	has "$out" 'src/fleet/x.c:2: is told   <- '
}

parts_of_longer_words_are_no_hits() {
	tree 'whole desktop yearly berthing_x heardx'
	check_words
	is "$status $out" "0 "
}

a_word_with_a_space_is_a_hit_before_another_word_only() {
	tree 'int who(struct x *who);' 'c->who.team = who ? 1 : 0;'
	check_words
	is "$status $out" "0 "
	tree '/* who asks */'
	check_words
	has "$out" 'src/fleet/x.c:1: who   <- '
}

a_word_of_one_folder_is_allowed_in_others() {
	tree '/* gate */'
	mkdir src/wire
	mv src/fleet/x.c src/wire/
	check_words
	is "$status" 0
	mv src/wire/x.c src/fleet/
	check_words
	is "$status" 1
}

the_numbers_can_only_become_smaller() {
	tree '/* nobody */' '/* somebody */'
	echo 'src/fleet 0 3' >tests/words.allowed
	check_words
	is "$status" 0
	has "$out" 'src/fleet: 2 idioms, 3 allowed: lower it'
	check_words -l
	is "$(tail -n 1 tests/words.allowed)" "src/fleet 0 2"
	echo '/* nobody */' >>src/fleet/x.c
	check_words -l
	is "$status" 1
	is "$(tail -n 1 tests/words.allowed)" "src/fleet 0 2"
}

help_texts_are_checked() {
	tree 'int x;'
	printf '#!/bin/sh\n[ $# = 2 ] && echo "run: whoever comes" || echo "  run    run it"\n' >atoll
	chmod +x atoll
	status=0
	out=$(ATOLL=$PWD/atoll "$top/tests/words.sh" -C "$PWD") || status=$?
	is "$status" 1
	has "$out" '--help/run:1: whoever   <- '
}

a_glossary_without_its_tables_fails() {
	tree 'int x;'
	echo '# Glossary' >docs/glossary.md
	check_words
	is "$status" 1
}

run_tests
