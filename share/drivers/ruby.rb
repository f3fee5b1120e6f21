# frozen_string_literal: true

# ruby.rb - runs cells of Ruby, one after the other, in the top-level binding. The channel is
# descriptor 3 and its lines are those of docs/languages.md.
#
# An interrupt is SIGINT. The handler raises Interrupt only while the user's code runs; in our own it
# leaves a mark, and the user's code meets it when it would continue.
require "json"

module AtollDriver
  F_DUPFD_CLOEXEC = 1030 # of Linux
  LINE_MAX = 16 << 20
  TEXT_MAX = 1 << 20
  ERROR_MAX = 256 << 10
  FRAMES_MAX = 100
  SOURCES_MAX = 1000
  FILE = __FILE__
  RICH = {
    to_html: "text/html", to_markdown: "text/markdown", to_svg: "image/svg+xml",
    to_png: "image/png", to_jpeg: "image/jpeg", to_latex: "text/latex"
  }.freeze

  # $stdin of a cell: a line is asked for.
  class Input
    def gets(*)
      line = AtollDriver.ask("")
      $_ = line && "#{line}\n"
    end

    def readline(*)
      gets or raise EOFError, "end of input"
    end

    def each_line
      while (line = gets)
        yield line
      end
    end

    def read(*)
      raise IOError, "a cell has no end of stdin to read to; use gets"
    end

    def tty?
      false
    end
    alias isatty tty?

    def fileno
      0
    end
  end

  class << self
    def main(fd)
      @channel = IO.for_fd(IO.for_fd(fd, autoclose: false).fcntl(F_DUPFD_CLOEXEC, 200), "r+b")
      @channel.sync = true
      IO.for_fd(fd).close
      @pid = Process.pid
      @count = 0
      @queue = []
      @sources = {}
      @out = [$stdout.dup, $stderr.dup]
      [$stdout, $stderr].each { |io| io.sync = true }
      $stdin = Input.new
      $0 = "cell"
      Signal.trap("INT") { interrupt }
      emit(ev: "ready", language: "ruby", version: RUBY_VERSION)
      while (message = next_message)
        handle(message)
      end
    end

    # The user's code ---------------------------------------------------------------------------

    def attempt
      @user = true
      raise_pending
      value = yield
      @user = false
      [value, nil]
    rescue Exception => e # rubocop:disable Lint/RescueException
      @user = false
      [nil, e]
    end

    def interrupt
      if @user && !@ours
        raise Interrupt, "the cell was interrupted"
      elsif @cell || @starting || IO.select([@channel], nil, nil, 0)
        @pending = true # also when the cell is still on its way
      end
    end

    def raise_pending
      return unless @pending

      @pending = false
      raise Interrupt, "the cell was interrupted"
    end

    # Calls of the user into this file: no line may be torn.
    def shielded
      before = @ours
      @ours = true
      yield
    ensure
      @ours = before
      raise_pending if @user && !@ours
    end

    # The channel -------------------------------------------------------------------------------

    # What a strict reader refuses is written as text: NUL, bytes that are no UTF-8.
    def clean(text)
      text = text.to_s
      text = text.dup.force_encoding("UTF-8") if text.encoding == Encoding::BINARY
      text = text.encode("UTF-8", invalid: :replace, undef: :replace) unless text.encoding == Encoding::UTF_8
      text = text.scrub { |bytes| bytes.bytes.map { |b| format("\\x%02X", b) }.join }
      text.include?("\0") ? text.gsub("\0", "\\x00") : text
    end

    def emit(event)
      return if Process.pid != @pid

      @channel.write("#{JSON.generate(event, ascii_only: true)}\n")
    rescue SystemCallError, IOError
      exit!(1)
    end

    def next_message
      return @queue.shift unless @queue.empty?

      loop do
        IO.select([@channel])
        @starting = true # before the bytes are gone from where interrupt looks
        line = @channel.gets("\n", LINE_MAX + 1)
        return nil unless line
        return too_long(line) if line.bytesize > LINE_MAX

        message = parse(line)
        return message if message && message["op"] == "run"

        @starting = @pending = false
        note("driver: not a message: #{line[0, 80].inspect}") unless message
      end
    end

    def parse(line)
      message = JSON.parse(line.force_encoding("UTF-8"))
      ok = message.is_a?(Hash) && (message["op"] == "input" || (message["op"] == "run" && message["id"].is_a?(String)))
      ok ? message : nil
    rescue StandardError
      nil
    end

    def too_long(head)
      loop do
        more = @channel.gets("\n", 1 << 20)
        break if more.nil? || more.end_with?("\n")
      end
      { "op" => "run", "id" => head[0, 4096][/"id": ?"([^"\\]*)"/n, 1] || "", "too_long" => true }
    end

    def note(text)
      @out[1].write("#{text}\n")
    rescue SystemCallError, IOError
      nil
    end

    def ask(prompt, password: false)
      return nil unless @cell && Process.pid == @pid && Thread.current == Thread.main

      flush
      shielded { emit(ev: "input", id: @cell, prompt: clean(prompt), password: password) }
      loop do
        line = @channel.gets("\n", LINE_MAX + 1) or exit!(0)
        message = parse(line) or next
        @queue << message if message["op"] == "run" && @queue.size < 64
        next unless message["op"] == "input" && message["id"] == @cell

        return message["text"].is_a?(String) ? message["text"].chomp : nil
      end
    end

    # Results -----------------------------------------------------------------------------------

    def represent(value)
      data = {}
      RICH.each do |name, mime|
        next unless value.class.method_defined?(name) && !value.is_a?(String)

        rich = value.public_send(name)
        next unless rich.is_a?(String)

        data[mime] = mime.match?(/png|jpeg/) ? [rich].pack("m0") : clean(rich)
      rescue StandardError => e
        note("#{value.class}##{name}: #{e.class}: #{e.message}")
      end
      data["text/plain"] = clean(value.inspect)
      data
    end

    def send_result(value, main)
      data = represent(value)
      cut = []
      if data["text/plain"].size > TEXT_MAX
        data["text/plain"] = data["text/plain"][0, TEXT_MAX]
        cut << "text/plain"
      end
      sizes = data.transform_values { |v| JSON.generate(v, ascii_only: true).bytesize + 100 }
      while sizes.values.sum + 4096 > LINE_MAX
        largest = sizes.max_by { |_, size| size }.first
        [sizes, data].each { |h| h.delete(largest) }
        cut << largest
      end
      flush
      return puts(data["text/plain"]) unless @cell

      event = { ev: "result", id: @cell, main: main, data: data, extra: {} }
      event[:truncated] = cut unless cut.empty?
      shielded { emit(event) }
    end

    def flush
      [$stdout, $stderr, *@out].uniq.each do |io|
        io.flush
      rescue Interrupt
        raise
      rescue Exception # rubocop:disable Lint/RescueException
        nil # theirs, and broken
      end
    end

    # Errors ------------------------------------------------------------------------------------

    def frames_of(error)
      places = (error.backtrace_locations || []).reject { |l| l.path == FILE || l.path.start_with?("<internal:") }
      places = places.map { |l| { file: clean(l.path), line: l.lineno, name: clean(l.label), text: source(l.path, l.lineno) } }
      if places.empty? && error.is_a?(SyntaxError) && error.message =~ /\A(<cell \d+>):(\d+):/
        places = [{ file: $1, line: $2.to_i, name: "<main>", text: source($1, $2.to_i) }]
      end
      places.first(FRAMES_MAX).reverse
    end

    def source(file, line)
      text = @sources[file] or return ""
      clean((text.lines[line - 1] || "").strip[0, 1000])
    end

    # By the method of Module: a class may have one of its own.
    def name_of(error)
      clean(Module.instance_method(:name).bind_call(error.class) || "Exception")
    end

    def text_of(error, value, frames)
      places = frames.reverse.map { |f| "#{f[:file]}:#{f[:line]}:in `#{f[:name]}'" }
      return "#{name_of(error)}: #{value}" if places.empty? || error.is_a?(SyntaxError)

      "#{places.first}: #{value} (#{name_of(error)})" + places.drop(1).map { |p| "\n\tfrom #{p}" }.join
    end

    def send_error(error)
      (value, frames), bad = attempt { [clean(error.message), frames_of(error)] }
      value, frames = "<its message fails>", [] if bad
      text = text_of(error, value, frames)
      cause = error.cause
      text += "\ncaused by #{name_of(cause)}: #{attempt { clean(cause.message) }.first}" if cause
      emit(ev: "error", id: @cell, name: name_of(error), value: value[0, ERROR_MAX], frames: frames,
           text: text[0, ERROR_MAX])
    end

    # A cell ------------------------------------------------------------------------------------

    def set_env(env)
      env.to_h { |k, v| [k, ENV[k]].tap { ENV[k] = v } }
    end

    def handle(message)
      @cell = message["id"]
      return refuse("CellTooLarge", "the message has more than #{LINE_MAX >> 20} MiB") if message["too_long"]

      code, env = message["code"], message["env"] || {}
      return refuse("BadMessage", "code is a string, env an object") unless code.is_a?(String) && env.is_a?(Hash)

      run(code, env)
    end

    def run(code, env)
      @count += 1
      name = "<cell #{@count}>"
      @sources[name] = code
      @sources.shift if @sources.size > SOURCES_MAX
      before = {}
      Signal.trap("INT") { interrupt }
      restore_streams
      _, failed = attempt do
        before = set_env(env)
        value = TOPLEVEL_BINDING.eval(code, name, 1)
        TOPLEVEL_BINDING.local_variable_set(:_, value)
        send_result(value, true) unless value.nil?
      end
      child_ends(failed) if Process.pid != @pid
      finish(failed, before)
    end

    def restore_streams
      $stdout = STDOUT.reopen(@out[0]) if $stdout.respond_to?(:closed?) && $stdout.closed?
      $stderr = STDERR.reopen(@out[1]) if $stderr.respond_to?(:closed?) && $stderr.closed?
    rescue IOError
      $stdout, $stderr = @out
    end

    # A process that the cell has forked came back out of it. It is not the one that serves.
    def child_ends(error)
      note("#{error.class}: #{error.message}") if error && !error.is_a?(SystemExit)
      flush
      exit!(error.is_a?(SystemExit) ? error.status : (error ? 1 : 0))
    end

    def finish(error, before)
      attempt { flush }
      status = "ok"
      if error
        status = error.is_a?(Interrupt) ? "interrupted" : "error"
        send_error(error)
      end
      before.each { |k, v| ENV[k] = v }
      end_cell(status)
    end

    def end_cell(status)
      cell, @cell, @starting, @pending = @cell, nil, false, false
      emit(ev: "end", id: cell, status: status, count: @count)
    end

    def refuse(name, why)
      emit(ev: "error", id: @cell, name: name, value: why, frames: [], text: "#{name}: #{why}")
      end_cell("error")
    end
  end
end

module Kernel
  def display_value(*values)
    values.each { |value| AtollDriver.send_result(value, false) }
    nil
  end

  def gets(*)
    $stdin.gets
  end
  private :display_value, :gets
end

# Kernel's own display prints to_s of its receiver; with arguments, at the top, it is ours.
def self.display(*values)
  values.empty? ? super() : display_value(*values)
end

AtollDriver.main(3) if __FILE__ == $PROGRAM_NAME
