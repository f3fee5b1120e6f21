# Required before a Ruby program (runtimes/ruby.toml): output arrives when it is written, as on a terminal.
$stdout.sync = true
