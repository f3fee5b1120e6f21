# test_ruby.rb - runs the tests of a folder with minitest or test-unit: test_ruby.rb DIR [SOURCE].
# Exit status: theirs; 5 if there was no test.
folder, source = ARGV.map { |word| File.expand_path(word) }
ARGV.clear # both look at it
$LOAD_PATH.unshift(folder)
files = Dir[File.join(folder, "**/*test*.rb")].sort
files << source if source && !files.include?(source) && File.file?(source) &&
                   File.read(source).match?(/^\s*def\s+test_|Minitest::Test|Test::Unit/)
files.each { |file| require file }

Minitest.seed ||= 0 if defined?(Minitest) && Minitest.respond_to?(:seed=) # runnable_methods() of some versions reads it
# A file without either of them is a program that raises, or does not.
counts = []
counts << Minitest::Runnable.runnables.sum { |of| of.respond_to?(:runnable_methods) && of != Minitest::Test ? of.runnable_methods.size : 0 } if defined?(Minitest::Runnable)
counts << Test::Unit::TestCase::DESCENDANTS.sum { |of| of.public_instance_methods(true).grep(/\Atest/).size } if defined?(Test::Unit::TestCase::DESCENDANTS)
if files.empty? || (!counts.empty? && counts.sum.zero?)
  warn "no tests were found in #{folder}: files *test*.rb with methods test_* are looked for; #{files.size} such files are there"
  exit! 5
end
