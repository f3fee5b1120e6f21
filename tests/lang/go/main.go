package main

import (
	"bufio"
	"fmt"
	"os"
	"strings"
)

func main() {
	switch os.Args[1] {
	case "talk":
		fmt.Println(greeting())
		for _, a := range os.Args[2:] {
			fmt.Println("arg:", a)
		}
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			fmt.Println("stdin:", in.Text())
		}
		os.Exit(7)
	case "fault":
		panic("boom ä")
	case "big":
		for i := 0; i < 10; i++ {
			os.Stdout.WriteString(strings.Repeat("x", 1<<20))
		}
	case "loop":
		for {
		}
	case "memory":
		for all := [][]byte{}; ; {
			block := make([]byte, 1<<20)
			for i := range block {
				block[i] = 1
			}
			all = append(all, block)
		}
	}
}
