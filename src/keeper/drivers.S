/* drivers.S - the programs that run cells or tests and the agent of a box, inside ours. One that the build did not have is not in
 * the table: { name, first byte, behind the last }, and a row of zeros at its end. */
	.macro driver name, file
	.section .rodata
1:	.incbin "\file"
2:	.byte 0
3:	.asciz "\name"
	.section .data.rel.ro, "aw"
	.balign 8
	.quad 3b, 1b, 2b
	.endm

	.section .data.rel.ro, "aw"
	.balign 8
	.global driver_images
driver_images:
#ifdef DRIVER_PYTHON
	driver "python.py", DRIVER_PYTHON
#endif
#ifdef DRIVER_NODE
	driver "node.js", DRIVER_NODE
#endif
#ifdef DRIVER_ZYGOTE_NODE
	driver "zygote_node.js", DRIVER_ZYGOTE_NODE
#endif
#ifdef DRIVER_ZYGOTE_PYTHON
	driver "zygote_python.py", DRIVER_ZYGOTE_PYTHON
#endif
#ifdef DRIVER_BASH
	driver "bash.sh", DRIVER_BASH
#endif
#ifdef DRIVER_R
	driver "r.R", DRIVER_R
#endif
#ifdef DRIVER_RUBY
	driver "ruby.rb", DRIVER_RUBY
#endif
#ifdef DRIVER_PHP
	driver "php.php", DRIVER_PHP
#endif
#ifdef DRIVER_JSHELL
	driver "jshell.java", DRIVER_JSHELL
#endif
#ifdef DRIVER_TEST_PYTHON
	driver "test_python.py", DRIVER_TEST_PYTHON
#endif
#ifdef DRIVER_TEST_NODE
	driver "test_node.js", DRIVER_TEST_NODE
#endif
#ifdef DRIVER_TEST_RUBY
	driver "test_ruby.rb", DRIVER_TEST_RUBY
#endif
#ifdef DRIVER_SITE_PYTHON
	driver "python/sitecustomize.py", DRIVER_SITE_PYTHON
#endif
#ifdef DRIVER_SYNC_RUBY
	driver "sync.rb", DRIVER_SYNC_RUBY
#endif
	driver "bin/boxagent", BOXAGENT
	driver "bin/jupyter", JUPYTER
	driver "bin/checkpoint", CHECKPOINT_REQUEST
	.section .data.rel.ro, "aw"
	.quad 0, 0, 0
	.section .note.GNU-stack,"",%progbits
