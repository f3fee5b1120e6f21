package main

func greeting() string {
	return "from the other file: Größe 漢字"
}
