// render.go - the templates of a Helm chart, without helm: those functions of helm that the chart uses. Not a replacement
// for it: no dependencies, hooks or notes.
//
//	go run render.go VALUES.json TEMPLATE...
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"
)

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "render:", err)
		os.Exit(1)
	}
}

func main() {
	functions := template.FuncMap{
		"quote":  func(v interface{}) string { return fmt.Sprintf("%q", fmt.Sprint(v)) },
		"toJson": func(v interface{}) (string, error) { b, err := json.Marshal(v); return string(b), err },
		"int":    func(v interface{}) int { return int(v.(float64)) },
		"until": func(n int) []int {
			list := make([]int, n)
			for i := range list {
				list[i] = i
			}
			return list
		},
		"join": func(with string, list []interface{}) string {
			text := make([]string, len(list))
			for i, v := range list {
				text[i] = fmt.Sprint(v)
			}
			return strings.Join(text, with)
		},
		"required": func(why string, v interface{}) (interface{}, error) {
			if v == nil || v == "" {
				return nil, fmt.Errorf("%s", why)
			}
			return v, nil
		},
	}
	data, err := os.ReadFile(os.Args[1])
	fail(err)
	var values map[string]interface{}
	fail(json.Unmarshal(data, &values))
	for _, path := range os.Args[2:] {
		text, err := os.ReadFile(path)
		fail(err)
		t, err := template.New(filepath.Base(path)).Option("missingkey=error").Funcs(functions).Parse(string(text))
		fail(err)
		fmt.Println("---")
		fail(t.Execute(os.Stdout, map[string]interface{}{"Values": values}))
	}
}
