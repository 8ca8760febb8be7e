package main

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
)

// One line of a history.
type record struct {
	process, kind, f string
	key, value       interface{}
}

func parseJSON(text string) []record {
	var records []record
	for _, line := range strings.Split(text, "\n") {
		var read struct {
			Process    json.Number
			Type, F    string
			Key, Value interface{}
		}
		if json.Unmarshal([]byte(line), &read) == nil && read.Type != "" {
			records = append(records, record{read.Process.String(), read.Type, read.F, read.Key, whole(read.Value)})
		}
	}
	return records
}

// Numbers are whole ones.
func whole(value interface{}) interface{} {
	switch value := value.(type) {
	case float64:
		return int64(value)
	case []interface{}:
		for at := range value {
			value[at] = whole(value[at])
		}
	}
	return value
}

var (
	ednMap   = regexp.MustCompile(`\{[^{}]*\}`)
	ednField = regexp.MustCompile(`:(process|type|f|key|value)\s+("[^"]*"|\[[^\]]*\]|[^\s,}]+)`)
	number   = regexp.MustCompile(`-?\d+`)
	logLine  = regexp.MustCompile(`(?m)^INFO\s+jepsen\.util\s+-\s+(\d+)\s+:(\w+)\s+:(\w+)\s+(\S.*?)\s*$`)
)

func parseEdn(text string) []record {
	var records []record
	for _, one := range ednMap.FindAllString(text, -1) {
		var r record
		for _, field := range ednField.FindAllStringSubmatch(one, -1) {
			switch field[1] {
			case "process":
				r.process = field[2]
			case "type":
				r.kind = field[2][1:]
			case "f":
				r.f = field[2][1:]
			case "key":
				r.key = ednValue(field[2])
			case "value":
				r.value = ednValue(field[2])
			}
		}
		if number.MatchString(r.process) && r.kind != "" {
			records = append(records, r)
		}
	}
	return records
}

func ednValue(text string) interface{} {
	switch {
	case text[0] == '"':
		return text[1 : len(text)-1]
	case text[0] == '[':
		var list []interface{}
		for _, digits := range number.FindAllString(text, -1) {
			value, _ := strconv.ParseInt(digits, 10, 64)
			list = append(list, value)
		}
		return list
	case text == "true" || text == "false":
		return text == "true"
	}
	if value, err := strconv.ParseInt(text, 10, 64); err == nil {
		return value
	}
	return nil
}

func parseLog(text string) []record {
	var records []record
	for _, found := range logLine.FindAllStringSubmatch(text, -1) {
		records = append(records, record{found[1], found[2], found[3], nil, ednValue(found[4])})
	}
	return records
}
