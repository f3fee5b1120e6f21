/* jshell.java - runs cells of Java, one after the other, in one JShell that lives in this process. The
 * lines on the channel (descriptor 3) are those of docs/languages.md. Started from its source:
 *
 *	java --add-opens java.base/java.io=ALL-UNNAMED jshell.java
 *
 * The value of a cell is that of its last snippet, if it is an expression. Java cannot change its
 * environment: the variables of the box and of a cell are system properties, too. */
import java.io.ByteArrayOutputStream;
import java.io.FileDescriptor;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import jdk.jshell.Diag;
import jdk.jshell.EvalException;
import jdk.jshell.JShell;
import jdk.jshell.JShellException;
import jdk.jshell.Snippet;
import jdk.jshell.SnippetEvent;
import jdk.jshell.SourceCodeAnalysis;
import jdk.jshell.UnresolvedReferenceException;

class Driver {
	static final int LINE_MAX = 16 << 20; // one line on the channel, both ways
	static final int TEXT_MAX = 1 << 20;  // text/plain of a result
	static final int ERROR_MAX = 256 << 10;
	static final String[] IMPORTS = { "java.io.*", "java.math.*", "java.net.*", "java.nio.file.*",
		"java.util.*", "java.util.concurrent.*", "java.util.function.*", "java.util.regex.*",
		"java.util.stream.*" };

	static InputStream in;
	static OutputStream out;
	static JShell shell;
	static PrintStream stdout, stderr;
	static volatile boolean running, interrupted;
	static int count;

	// ---- the channel ----

	static FileDescriptor descriptor(int number) throws ReflectiveOperationException {
		Constructor<FileDescriptor> make = FileDescriptor.class.getDeclaredConstructor(int.class);
		make.setAccessible(true);
		return make.newInstance(number);
	}

	/** The next line; one beyond LINE_MAX is cut to its beginning, which is no message. */
	static byte[] readLine() throws IOException {
		ByteArrayOutputStream line = new ByteArrayOutputStream();
		for (int c; (c = in.read()) != '\n';) {
			if (c < 0)
				return null;
			if (line.size() < LINE_MAX)
				line.write(c);
		}
		return line.toByteArray();
	}

	static synchronized void emit(String ev, Object... pairs) throws IOException {
		Map<String, Object> doc = new LinkedHashMap<>();
		doc.put("ev", ev);
		for (int i = 0; i < pairs.length; i += 2)
			doc.put((String)pairs[i], pairs[i + 1]);
		StringBuilder text = new StringBuilder();
		putJson(text, doc);
		out.write(text.append('\n').toString().getBytes(StandardCharsets.US_ASCII));
		out.flush();
	}

	// ---- JSON ----

	static void putJson(StringBuilder out, Object value) {
		if (value instanceof Map<?, ?> map) {
			String between = "{";
			for (Map.Entry<?, ?> e : map.entrySet()) {
				out.append(between);
				putText(out, (String)e.getKey());
				out.append(':');
				putJson(out, e.getValue());
				between = ",";
			}
			out.append(map.isEmpty() ? "{}" : "}");
		} else if (value instanceof List<?> list) {
			out.append('[');
			for (int i = 0; i < list.size(); i++) {
				out.append(i > 0 ? "," : "");
				putJson(out, list.get(i));
			}
			out.append(']');
		} else if (value instanceof String text) {
			putText(out, text);
		} else {
			out.append(value);
		}
	}

	/** ASCII; no NUL and no half of a surrogate pair. */
	static void putText(StringBuilder out, String text) {
		out.append('"');
		for (int i = 0; i < text.length(); i++) {
			char c = text.charAt(i);
			boolean pair = Character.isHighSurrogate(c) && i + 1 < text.length() &&
				Character.isLowSurrogate(text.charAt(i + 1));
			if (c == '"' || c == '\\')
				out.append('\\').append(c);
			else if (c >= ' ' && c < 127)
				out.append(c);
			else if (c == 0)
				out.append("\\\\x00");
			else if (pair)
				out.append(unicode(c)).append(unicode(text.charAt(++i)));
			else if (Character.isSurrogate(c))
				out.append('\\').append(unicode(c));
			else
				out.append(unicode(c));
		}
		out.append('"');
	}

	static String unicode(char c) {
		return String.format("\\u%04x", (int)c);
	}

	/** Objects and strings, which is all that a message has. */
	static class Reader {
		final String text;
		int at;

		Reader(String text) {
			this.text = text;
		}

		char next() {
			if (at >= text.length())
				throw new IllegalArgumentException("the message ends early");
			return text.charAt(at++);
		}

		char skip() {
			char c;
			while ((c = next()) == ' ' || c == '\t' || c == '\r')
				;
			return c;
		}

		Object value() {
			char c = skip();
			if (c == '"')
				return string();
			if (c == '{')
				return object();
			at--;
			while (at < text.length() && ",}] ".indexOf(text.charAt(at)) < 0)
				at++;
			return null; // a number, a word: none of them means anything to us
		}

		Map<String, Object> object() {
			Map<String, Object> map = new LinkedHashMap<>();
			for (char c = skip(); c != '}'; c = skip()) {
				if (c == ',')
					c = skip();
				if (c != '"')
					throw new IllegalArgumentException("not a key");
				String key = string();
				if (skip() != ':')
					throw new IllegalArgumentException("no value");
				map.put(key, value());
			}
			return map;
		}

		String string() {
			StringBuilder out = new StringBuilder();
			for (char c; (c = next()) != '"';)
				out.append(c != '\\' ? c : escaped(next()));
			return out.toString();
		}

		char escaped(char c) {
			switch (c) {
			case 'n': return '\n';
			case 't': return '\t';
			case 'r': return '\r';
			case 'b': return '\b';
			case 'f': return '\f';
			case 'u':
				at += 4;
				return (char)Integer.parseInt(text.substring(at - 4, at), 16);
			default: return c;
			}
		}
	}

	// ---- interrupts ----

	/** Again and again: a snippet that is being compiled cannot be stopped before it runs. */
	static void stopIt() {
		for (int cell = count; running && interrupted && cell == count;) {
			shell.stop();
			try {
				Thread.sleep(50);
			} catch (InterruptedException e) {
				return;
			}
		}
	}

	/** By reflection: the compiler would warn, on stderr, that this class is not public API. */
	static void onInterrupt() throws ReflectiveOperationException {
		Class<?> signal = Class.forName("sun.misc.Signal"), handler = Class.forName("sun.misc.SignalHandler");
		Object ours = Proxy.newProxyInstance(Driver.class.getClassLoader(), new Class<?>[] { handler },
			(proxy, method, args) -> {
				if (method.getName().equals("handle") && running && !interrupted) {
					interrupted = true;
					Thread stopper = new Thread(Driver::stopIt);
					stopper.setDaemon(true);
					stopper.start();
				}
				return null;
			});
		Method handle = signal.getMethod("handle", signal, handler);
		handle.invoke(null, signal.getConstructor(String.class).newInstance("INT"), ours);
	}

	// ---- variables ----

	static Map<String, String> setProperties(Map<?, ?> env) {
		Map<String, String> before = new HashMap<>();
		for (Map.Entry<?, ?> e : env.entrySet()) {
			String name = (String)e.getKey();
			if (name.isEmpty() || !(e.getValue() instanceof String))
				continue;
			before.put(name, System.getProperty(name));
			System.setProperty(name, (String)e.getValue());
		}
		return before;
	}

	static void resetProperties(Map<String, String> before) {
		before.forEach((name, value) -> {
			if (value == null)
				System.clearProperty(name);
			else
				System.setProperty(name, value);
		});
	}

	// ---- a cell ----

	/** What went wrong; told once. */
	record Failure(String name, String value, String text, List<Object> frames) {
	}

	static String cut(String text, int most) {
		return text.length() <= most ? text : text.substring(0, most);
	}

	static Map<String, Object> frame(String file, int line, String name, String text) {
		Map<String, Object> f = new LinkedHashMap<>();
		f.put("file", file);
		f.put("line", Math.max(line, 0));
		f.put("name", name == null ? "" : name);
		f.put("text", text);
		return f;
	}

	static int lineAt(String text, int offset) {
		return (int)text.substring(0, Math.min(Math.max(offset, 0), text.length())).chars().filter(c -> c == '\n').count() + 1;
	}

	/** A snippet that is no Java. base: where it begins in the cell. */
	static Failure rejected(Snippet snippet, String cell, int base) {
		List<Object> frames = new ArrayList<>();
		StringBuilder text = new StringBuilder();
		String first = "";
		for (Diag d : (Iterable<Diag>)shell.diagnostics(snippet)::iterator) {
			if (!d.isError())
				continue;
			int line = lineAt(cell, base + (int)d.getStartPosition());
			String source = cell.split("\n", -1)[line - 1].strip();
			String message = d.getMessage(Locale.ROOT);
			if (frames.isEmpty())
				first = message;
			frames.add(frame("<cell " + count + ">", line, "", cut(source, 1000)));
			text.append("line ").append(line).append(": ").append(message).append('\n')
				.append("    ").append(cut(source, 1000)).append('\n');
		}
		return new Failure("CompilationException", first, "CompilationException:\n" + text, frames);
	}

	static Failure thrown(JShellException e) {
		String name = e instanceof EvalException x ? x.getExceptionClassName() : "UnresolvedReferenceException";
		String value = e instanceof UnresolvedReferenceException u ?
			"a declaration it uses is not there yet: " + u.getSnippet().source() : e.getMessage();
		StringBuilder text = new StringBuilder(name).append(value == null ? "" : ": " + value);
		List<Object> frames = new ArrayList<>();
		for (StackTraceElement at : e.getStackTrace()) {
			String file = at.getFileName() == null ? "" : at.getFileName();
			if (at.getClassName().startsWith("jdk.") || frames.size() > 100)
				continue;
			text.append("\n\tat ").append(at.getMethodName() == null || at.getMethodName().isEmpty() ? "" : at.getMethodName() + " ")
				.append('(').append(file).append(':').append(at.getLineNumber()).append(')');
			frames.add(frame(file, at.getLineNumber(), at.getMethodName(), ""));
		}
		if (e.getCause() instanceof JShellException cause)
			text.append("\nCaused by: ").append(thrown(cause).text());
		return new Failure(name, value == null ? "" : value, text.toString(), frames);
	}

	/** The value of a snippet that has one to show. */
	static String valueOf(SnippetEvent event) {
		boolean shown = event.snippet().kind() == Snippet.Kind.EXPRESSION ||
			event.snippet().subKind() == Snippet.SubKind.TEMP_VAR_EXPRESSION_SUBKIND;
		return shown && event.value() != null && !event.value().isEmpty() ? event.value() : null;
	}

	/** Snippet by snippet, up to the first that fails. */
	static Failure evaluate(String cell, String[] value) {
		SourceCodeAnalysis analysis = shell.sourceCodeAnalysis();
		String rest = cell;
		while (!rest.isBlank() && !interrupted) {
			SourceCodeAnalysis.CompletionInfo info = analysis.analyzeCompletion(rest);
			if (info.completeness() == SourceCodeAnalysis.Completeness.EMPTY)
				break;
			String source = info.source() == null || info.source().isBlank() ? rest : info.source();
			int base = cell.length() - rest.length();
			rest = info.source() == null || info.source().isBlank() ? "" : info.remaining();
			value[0] = null;
			for (SnippetEvent event : shell.eval(source)) {
				if (event.causeSnippet() != null)
					continue;
				if (event.status() == Snippet.Status.REJECTED)
					return rejected(event.snippet(), cell, base);
				if (event.exception() != null)
					return thrown(event.exception());
				value[0] = valueOf(event);
			}
		}
		return null;
	}

	static void runCell(String id, String code, Map<?, ?> env) throws IOException {
		String[] value = { null };
		Failure failure;

		count++;
		interrupted = false;
		System.setOut(stdout); // whatever the cell before has put there
		System.setErr(stderr);
		Map<String, String> before = setProperties(env);
		running = true;
		try {
			failure = evaluate(code, value);
		} catch (Throwable e) { // JShell itself: too deep, out of memory
			failure = new Failure(e.getClass().getName(), String.valueOf(e.getMessage()), e.toString(), List.of());
		}
		running = false;
		resetProperties(before);
		stdout.flush();
		stderr.flush();
		if (interrupted)
			failure = new Failure("Interrupted", "the cell was interrupted", "Interrupted", List.of());
		if (failure != null)
			emit("error", "id", id, "name", failure.name(), "value", cut(failure.value(), ERROR_MAX),
				"frames", failure.frames(), "text", cut(failure.text(), ERROR_MAX).stripTrailing());
		else if (value[0] != null)
			emit("result", "id", id, "main", true, "data", Map.of("text/plain", cut(value[0], TEXT_MAX)),
				"extra", Map.of());
		emit("end", "id", id, "status", interrupted ? "interrupted" : failure != null ? "error" : "ok", "count", count);
	}

	static void handle(byte[] line) throws IOException {
		Map<String, Object> message;
		try {
			Reader reader = new Reader(new String(line, StandardCharsets.UTF_8));
			if (reader.skip() != '{')
				throw new IllegalArgumentException("not an object");
			message = reader.object();
		} catch (RuntimeException e) {
			stderr.println("driver: not a message");
			return;
		}
		if (!"run".equals(message.get("op")) || !(message.get("id") instanceof String id))
			return;
		Object env = message.get("env");
		if (message.get("code") instanceof String code) {
			runCell(id, code, env instanceof Map<?, ?> map ? map : Map.of());
		} else {
			emit("error", "id", id, "name", "BadMessage", "value", "code is a string", "frames", List.of(),
				"text", "BadMessage: code is a string");
			emit("end", "id", id, "status", "error", "count", count);
		}
	}

	static PrintStream stream(FileDescriptor fd) {
		return new PrintStream(new FileOutputStream(fd), true, StandardCharsets.UTF_8);
	}

	public static void main(String[] args) throws Exception {
		FileDescriptor channel = descriptor(3);
		in = new java.io.BufferedInputStream(new FileInputStream(channel), 1 << 16);
		out = new java.io.BufferedOutputStream(new FileOutputStream(channel), 1 << 16);
		stdout = stream(FileDescriptor.out);
		stderr = stream(FileDescriptor.err);
		System.setOut(stdout);
		System.setErr(stderr);
		System.getenv().forEach((name, value) -> {
			if (!name.isEmpty() && System.getProperty(name) == null)
				System.setProperty(name, value);
		});
		shell = JShell.builder().executionEngine("local").out(stdout).err(stderr).build();
		for (String name : IMPORTS)
			shell.eval("import " + name + ";");
		onInterrupt();
		emit("ready", "language", "jshell", "version", System.getProperty("java.version"));
		for (byte[] line; (line = readLine()) != null;)
			handle(line);
		System.exit(0);
	}
}
