#!/bin/sh
# words.sh - tests/words.sh finds banned words, and allows the texts of the glossary's exceptions.
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
	has "$out" 'src/fleet/x.c:2: berth   <- box'
	tree 'int box_open(void);'
	check_words
	is "$status $out" "0 "
}

a_banned_idiom_fails_in_prose_and_in_identifiers() {
	tree '/* The client is told. */' 'void a_client_is_told_once(void);'
	check_words
	is "$status" 1
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

an_exception_is_allowed_and_the_rest_of_its_line_is_checked() {
	tree '/* GET /v1/who returns it; chat front ends */'
	check_words
	is "$status $out" "0 "
	tree '/* GET /v1/who is for the client who asks */'
	check_words
	is "$status" 1
	has "$out" 'src/fleet/x.c:1: who   <- '
}

a_path_limits_the_hits() {
	tree '/* nobody */'
	mkdir src/wire
	echo '/* somebody */' >src/wire/y.c
	check_words src/wire
	is "$status" 1
	is "$out" "$(echo "$out" | grep '^src/wire/y.c:1: somebody')"
	check_words docs
	is "$status $out" "0 "
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
