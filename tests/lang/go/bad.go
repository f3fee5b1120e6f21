package main

func main() {
	undeclared()
}
