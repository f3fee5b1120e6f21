require_relative "other"
mode, *args = ARGV
case mode
when "talk"
  puts greeting
  args.each { |a| puts "arg: #{a}" }
  $stdin.each_line { |l| puts "stdin: #{l.chomp}" }
  exit 7
when "fault"
  raise ArgumentError, "boom ä"
when "big"
  10.times { print "x" * (1 << 20) }
when "loop"
  loop {}
when "memory"
  x = "x" * (4 << 30)
end
