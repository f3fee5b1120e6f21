<?php
/* php.php - runs cells of PHP, one after the other, in the global scope. The channel is descriptor 3
 * and its lines are those of docs/languages.md.
 *
 * A cell is included from cell://N, a stream of ours: so errors know which cell they are from, long
 * after it ran. The last statement gets a `return` when it is an expression, for that is its value.
 * Nothing can catch an exit, so in a cell it is made to throw. A fatal error (a function declared
 * twice, no memory left) ends PHP: the error is sent while PHP ends, and the context is dead.
 *
 * PHP has a stream for descriptor 3 but cannot move it; children inherit it where there is no FFI. */

final class AtollExit extends Error
{
	public function __construct(public mixed $status = 0) { parent::__construct(is_scalar($status) ? (string) $status : ''); }
}

final class AtollInterrupt extends Error
{
}

/* cell://3 is the third cell. */
final class AtollStream
{
	public $context;
	private string $rest;

	public function stream_open(string $path): bool
	{
		$this->rest = AtollDriver::$code;
		return str_starts_with($path, 'cell://');
	}

	public function stream_read(int $count): string
	{
		$piece = substr($this->rest, 0, $count);
		$this->rest = substr($this->rest, $count);
		return $piece;
	}

	public function stream_eof(): bool { return $this->rest === ''; }
	public function stream_stat(): array { return []; }
	public function stream_set_option(): bool { return false; }
}

final class AtollDriver
{
	const LINE_MAX = 16 << 20;
	const TEXT_MAX = 1 << 20;
	const ERROR_MAX = 256 << 10;
	const SOURCES_MAX = 1000;
	const JSON = JSON_INVALID_UTF8_SUBSTITUTE | JSON_PARTIAL_OUTPUT_ON_ERROR | JSON_PRESERVE_ZERO_FRACTION;

	private static $channel;
	private static string $got = '';
	private static array $queue = [];
	private static array $sources = [];
	private static array $before = [];
	private static int $count = 0;
	private static int $pid = 0;
	private static bool $pending = false;
	public static string $code = ''; /* what cell:// gives */
	public static ?string $cell = null; /* the one that runs */
	public static bool $user = false; /* its code is running: an interrupt concerns it */

	public static function begin(): void
	{
		self::$pid = getmypid();
		self::$channel = fopen('php://fd/3', 'r+');
		stream_set_blocking(self::$channel, true);
		stream_set_read_buffer(self::$channel, 0);
		self::closeOnExec();
		ini_set('display_errors', 'stderr');
		ini_set('html_errors', '0');
		ini_set('log_errors', '0');
		error_reporting(E_ALL);
		set_time_limit(0);
		stream_wrapper_register('cell', AtollStream::class);
		if (function_exists('pcntl_async_signals')) {
			pcntl_async_signals(true);
			pcntl_signal(SIGINT, [self::class, 'interrupt']);
		}
		register_shutdown_function([self::class, 'shutdown']);
		self::emit(['ev' => 'ready', 'language' => 'php', 'version' => PHP_VERSION]);
	}

	/* php://fd/3 is a copy; 3 itself can go, and the copy must not reach children. */
	private static function closeOnExec(): void
	{
		try {
			$c = FFI::cdef('int fcntl(int, int, ...); int close(int);');
			$c->close(3);
			for ($fd = 3; $fd < 32; $fd++)
				if (@filetype("/proc/self/fd/$fd") === 'socket' || str_starts_with((string) @readlink("/proc/self/fd/$fd"), 'socket:'))
					$c->fcntl($fd, 2 /* F_SETFD */, 1 /* FD_CLOEXEC */);
		} catch (Throwable) {
			/* no FFI here */
		}
	}

	public static function interrupt(): void
	{
		if (self::$user)
			throw new AtollInterrupt('the cell was interrupted');
		self::$pending = self::$cell !== null || self::$got !== '' || self::readable(0);
	}

	/* The channel ----------------------------------------------------------------------------- */

	private static function clean(string $text): string
	{
		if (!preg_match('//u', $text))
			$text = preg_replace_callback('/[\x80-\xff]/', fn ($m) => sprintf('\\x%02x', ord($m[0])), $text);
		return str_replace("\0", '\\x00', $text);
	}

	private static function emit(array $event): void
	{
		if (getmypid() !== self::$pid)
			return;
		$line = json_encode($event, self::JSON) . "\n";
		while ($line !== '') {
			$n = @fwrite(self::$channel, $line);
			if ($n === false || ($n === 0 && feof(self::$channel)))
				atoll_gone();
			$line = substr($line, (int) $n);
		}
	}

	private static function readable(?int $seconds): bool
	{
		$read = [self::$channel];
		$none = null;
		return (bool) @stream_select($read, $none, $none, $seconds);
	}

	/* A line; null at the end. */
	private static function line(): ?string
	{
		$head = null;
		while (($end = strpos(self::$got, "\n")) === false) {
			if (strlen(self::$got) > self::LINE_MAX) {
				$head ??= substr(self::$got, 0, 4096);
				self::$got = substr(self::$got, -4096);
			}
			if (!self::readable(null))
				continue; /* a signal */
			$piece = fread(self::$channel, 1 << 20);
			if ($piece === '' || $piece === false) {
				if (feof(self::$channel) || $piece === false)
					return null;
				continue;
			}
			self::$got .= $piece;
		}
		$line = substr(self::$got, 0, $end);
		self::$got = substr(self::$got, $end + 1);
		if ($head === null)
			return $line;
		preg_match('/"id": ?"([^"\\\\]*)"/', $head, $found);
		return json_encode(['op' => 'long', 'id' => $found[1] ?? '']);
	}

	private static function message(): ?array
	{
		if (self::$queue)
			return array_shift(self::$queue);
		while (($line = self::line()) !== null) {
			$m = json_decode($line, true, 64);
			if (is_array($m) && is_string($m['op'] ?? null) && is_string($m['id'] ?? null))
				return $m;
			self::note('driver: not a message: ' . substr($line, 0, 80));
		}
		return null;
	}

	private static function note(string $text): void
	{
		@fwrite(STDERR, "$text\n");
	}

	public static function ask(string $prompt): string|false
	{
		if (self::$cell === null)
			return false;
		self::flush();
		self::shielded(fn () => self::emit(['ev' => 'input', 'id' => self::$cell, 'prompt' => self::clean($prompt), 'password' => false]));
		while (($line = self::line()) !== null) {
			$m = json_decode($line, true, 64);
			if (($m['op'] ?? '') === 'input' && ($m['id'] ?? '') === self::$cell)
				return is_string($m['text'] ?? null) ? rtrim($m['text'], "\n") : false;
			if (is_array($m) && ($m['op'] ?? '') === 'run' && count(self::$queue) < 64)
				self::$queue[] = $m;
		}
		return false;
	}

	/* Our code, called by the user's: no line may be torn. */
	private static function shielded(callable $call): void
	{
		$before = self::$user;
		self::$user = false;
		$call();
		self::$user = $before;
		self::raisePending();
	}

	public static function raisePending(): void
	{
		if (self::$pending && self::$user) {
			self::$pending = false;
			throw new AtollInterrupt('the cell was interrupted');
		}
	}

	/* Code ------------------------------------------------------------------------------------ */

	/* What begins a statement that has no value. */
	const STATEMENTS = [T_IF, T_FOR, T_FOREACH, T_WHILE, T_DO, T_SWITCH, T_TRY, T_ECHO, T_FUNCTION, T_CLASS, T_ABSTRACT, T_FINAL,
		T_INTERFACE, T_TRAIT, T_ENUM, T_NAMESPACE, T_USE, T_RETURN, T_BREAK, T_CONTINUE, T_GOTO, T_GLOBAL, T_UNSET, T_CONST, T_DECLARE,
		T_INLINE_HTML, T_CLOSE_TAG, T_OPEN_TAG_WITH_ECHO, T_HALT_COMPILER, T_THROW];

	private static function tokens(string $code): array
	{
		return array_slice(PhpToken::tokenize("<?php $code"), 1);
	}

	/* exit becomes a throw; the code has what it had on each line. */
	private static function withoutExit(array $tokens): string
	{
		$out = '';
		foreach ($tokens as $i => $t)
			$out .= $t->id === T_EXIT && !self::isMember($tokens, $i) ? 'throw new \\AtollExit' : $t->text;
		return $out;
	}

	private static function isMember(array $tokens, int $i): bool
	{
		while (--$i >= 0 && $tokens[$i]->isIgnorable());
		return $i >= 0 && in_array($tokens[$i]->id, [T_OBJECT_OPERATOR, T_NULLSAFE_OBJECT_OPERATOR, T_DOUBLE_COLON, T_FUNCTION], true);
	}

	/* With `return` in front of the last statement; null where that cannot be. */
	private static function withReturn(array $tokens): ?string
	{
		$start = 0;
		$depth = 0;
		$last = null; /* the start of the last statement that has anything in it */
		foreach ($tokens as $i => $t) {
			if (in_array($t->text, ['{', '(', '[', '${', '#['], true) || $t->id === T_CURLY_OPEN)
				$depth++;
			elseif (in_array($t->text, ['}', ')', ']'], true))
				$depth--;
			elseif (!$t->isIgnorable() && $depth === 0 && $t->text !== ';' && $start !== null) {
				$last = $i;
				$start = null;
			}
			if (!$t->isIgnorable() && $start !== null && $depth === 1 && in_array($t->text, ['(', '['], true)) {
				$last = $i;
				$start = null;
			}
			if ($depth === 0 && ($t->text === ';' || $t->text === '}'))
				$start = $i + 1;
		}
		if ($last === null || in_array($tokens[$last]->id, self::STATEMENTS, true))
			return null;
		array_splice($tokens, $last, 0, [new PhpToken(T_RETURN, 'return ')]);
		$code = self::withoutExit($tokens);
		return preg_match('/[;}]\s*$/', $code) ? $code : "$code\n;";
	}

	/* The code that is included: with a value if that is PHP, else as it is. */
	private static function prepare(string $code): string
	{
		$code = preg_replace('/^\s*<\?php\b/', '', $code);
		$tokens = self::tokens($code);
		$valued = self::withReturn($tokens);
		if ($valued !== null) {
			try {
				PhpToken::tokenize("<?php $valued", TOKEN_PARSE);
				return $valued;
			} catch (ParseError) {
				/* then it is no expression */
			}
		}
		$plain = self::withoutExit($tokens);
		return $plain . (preg_match('/\?>(?!.*<\?)/s', $plain) ? "<?php\n" : "\n;") . 'return null;';
	}

	/* The address of the next cell, or null at the end of the channel. */
	public static function next(): ?string
	{
		while (($m = self::message()) !== null) {
			if ($m['op'] === 'input')
				continue;
			self::$cell = $m['id'];
			if ($m['op'] === 'long')
				self::refuse('CellTooLarge', 'the message has more than ' . (self::LINE_MAX >> 20) . ' MiB');
			elseif ($m['op'] !== 'run' || !is_string($m['code'] ?? null) || !is_array($m['env'] ?? []))
				self::refuse('BadMessage', 'code is a string, env an object');
			else
				return self::start($m['code'], $m['env'] ?? []);
		}
		return null;
	}

	private static function start(string $code, array $env): string
	{
		self::$count++;
		self::$sources[self::$count] = $code;
		if (count(self::$sources) > self::SOURCES_MAX)
			unset(self::$sources[array_key_first(self::$sources)]);
		self::$before = [];
		foreach ($env as $name => $value) {
			self::$before[$name] = getenv((string) $name);
			putenv("$name=$value");
			$_ENV[$name] = $value;
		}
		self::$code = '<?php ' . self::prepare($code);
		return 'cell://' . self::$count;
	}

	private static function refuse(string $name, string $why): void
	{
		self::emit(['ev' => 'error', 'id' => self::$cell, 'name' => $name, 'value' => $why, 'frames' => [], 'text' => "$name: $why"]);
		self::end('error');
	}

	/* Results --------------------------------------------------------------------------------- */

	private static function text(mixed $value): string
	{
		if (is_object($value) && !$value instanceof UnitEnum)
			return $value instanceof Stringable ? (string) $value : print_r($value, true);
		return is_array($value) ? print_r($value, true) : var_export($value, true);
	}

	public static function result(mixed $value, bool $main): void
	{
		$data = ['text/plain' => self::clean(self::text($value))];
		$extra = ['ev' => 'result', 'id' => self::$cell, 'main' => $main];
		if (strlen($data['text/plain']) > self::TEXT_MAX) {
			$data['text/plain'] = self::clean(substr($data['text/plain'], 0, self::TEXT_MAX));
			$extra['truncated'] = ['text/plain'];
		}
		$json = is_array($value) ? json_encode($value, 0, 60) : false;
		if ($json !== false && strlen($json) < 1 << 20 && !str_contains($json, '\u0000'))
			$data['application/json'] = $value;
		self::flush();
		self::shielded(fn () => self::emit($extra + ['data' => $data, 'extra' => new stdClass]));
	}

	private static function flush(): void
	{
		while (ob_get_level() > 0 && @ob_end_flush());
	}

	/* Errors ---------------------------------------------------------------------------------- */

	private static function frame(string $file, int $line, string $name): array
	{
		$text = '';
		if (preg_match('~^cell://(\d+)$~', $file, $found)) {
			$file = "<cell $found[1]>";
			$text = trim(explode("\n", self::$sources[(int) $found[1]] ?? '')[$line - 1] ?? '');
		}
		return ['file' => self::clean($file), 'line' => $line, 'name' => $name,
			'text' => self::clean(substr($text, 0, 1000))];
	}

	private static function frames(Throwable $e): array
	{
		$frames = [];
		$file = $e->getFile();
		$line = $e->getLine();
		foreach (array_slice($e->getTrace(), 0, 200) as $call) {
			if ($file !== __FILE__)
				$frames[] = self::frame($file, $line, self::clean(($call['class'] ?? '') . ($call['type'] ?? '') . $call['function']));
			$file = $call['file'] ?? '[internal]';
			$line = $call['line'] ?? 0;
		}
		if ($frames && in_array(end($frames)['name'], ['include', 'require'], true))
			$frames[count($frames) - 1]['name'] = '{main}';
		if (!$frames && $e instanceof ParseError)
			$frames[] = self::frame($e->getFile(), $e->getLine(), '{main}');
		return array_reverse(array_slice($frames, 0, 100));
	}

	public static function error(Throwable $e): void
	{
		$name = match (true) { $e instanceof AtollExit => 'SystemExit', $e instanceof AtollInterrupt => 'Interrupted', default => $e::class };
		$value = substr(self::clean($e->getMessage()), 0, self::ERROR_MAX);
		$frames = self::frames($e);
		$text = "$name: $value";
		foreach (array_reverse($frames) as $f)
			$text .= "\n    at {$f['name']} ({$f['file']}:{$f['line']})";
		if ($e->getPrevious())
			$text .= "\ncaused by " . $e->getPrevious()::class . ': ' . self::clean($e->getPrevious()->getMessage());
		if (is_string($e->status ?? null))
			self::note($e->status); /* as die("text") would print it */
		self::emit(['ev' => 'error', 'id' => self::$cell, 'name' => $name, 'value' => $value, 'frames' => $frames, 'text' => $text]);
	}

	public static function finish(?Throwable $e): void
	{
		self::$user = false;
		if (getmypid() !== self::$pid)
			exit($e instanceof AtollExit && is_int($e->status) ? $e->status : (int) ($e !== null));
		self::flush();
		if ($e !== null)
			self::error($e);
		foreach (self::$before as $name => $value) {
			putenv($value === false ? (string) $name : "$name=$value");
			unset($_ENV[$name]);
		}
		self::end(match (true) { $e === null => 'ok', $e instanceof AtollInterrupt => 'interrupted', default => 'error' });
	}

	private static function end(string $status): void
	{
		[$cell, self::$cell, self::$pending] = [self::$cell, null, false];
		self::emit(['ev' => 'end', 'id' => $cell, 'status' => $status, 'count' => self::$count]);
	}

	/* PHP ends, and nothing can stop it: an exit in a file, or a fatal error. */
	public static function shutdown(): void
	{
		if (self::$cell === null || getmypid() !== self::$pid)
			return;
		self::$user = false;
		$last = error_get_last();
		$fatal = $last && ($last['type'] & (E_ERROR | E_CORE_ERROR | E_COMPILE_ERROR));
		self::flush();
		self::emit(['ev' => 'error', 'id' => self::$cell, 'name' => $fatal ? 'FatalError' : 'SystemExit',
			'value' => $fatal ? self::clean($last['message']) : '', 'frames' => $fatal ? [self::frame($last['file'], $last['line'], '{main}')] : [],
			'text' => $fatal ? 'FatalError: ' . self::clean($last['message']) : 'SystemExit']);
		self::end('error');
	}
}

function atoll_gone(): never
{
	exit(1); /* the server has closed the channel */
}

function display(mixed ...$values): void
{
	foreach ($values as $value)
		AtollDriver::result($value, false);
}

if (!function_exists('prompt')) {
	function prompt(string $text = ''): string|false { return AtollDriver::ask($text); }
}

/* Here, not in a function: the variables of the cells are global ones. */
AtollDriver::begin();
while (($__atoll_code = AtollDriver::next()) !== null) {
	$__atoll_error = null;
	try {
		AtollDriver::$user = true;
		AtollDriver::raisePending();
		$__atoll_value = include $__atoll_code;
		if ($__atoll_value !== null)
			AtollDriver::result($_ = $__atoll_value, true);
		AtollDriver::$user = false;
	} catch (Throwable $__atoll_error) {
		AtollDriver::$user = false;
	}
	AtollDriver::finish($__atoll_error);
	unset($__atoll_error, $__atoll_value);
}
