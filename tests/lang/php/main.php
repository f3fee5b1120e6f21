<?php
require __DIR__ . "/other.php";
switch ($argv[1]) {
case "talk":
	echo greeting(), "\n";
	foreach (array_slice($argv, 2) as $a)
		echo "arg: $a\n";
	while (($line = fgets(STDIN)) !== false)
		echo "stdin: $line";
	exit(7);
case "fault":
	throw new RuntimeException("boom ä");
case "big":
	for ($i = 0; $i < 10; $i++)
		echo str_repeat("x", 1 << 20);
	break;
case "loop":
	while (true);
case "memory":
	for ($all = [];;)
		$all[] = str_repeat(chr(rand(1, 99)), 1 << 20);
}
