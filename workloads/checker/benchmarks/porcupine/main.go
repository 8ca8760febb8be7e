// Judges history files by Porcupine: `beside MODEL SECONDS FILE...`.
//
// Prints for each file the seconds of the check by the clock and of processors, the verdict, and the MiB that the process
// held at most, with tabs between them. Models: register, kv, kv-whole, mutex, counter, set, set-whole, queue, multi-register. Files: lines of JSON as this
// project writes them, EDN as Jepsen does, and the text logs of Jepsen's etcd test.
package main

import (
	"fmt"
	"os"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/anishathalye/porcupine"
)

// What was asked; an element, a number and a register's value are numbers.
type input struct {
	f    string
	key  string
	a, b int64
	text string
	txn  []micro
}

// One read or write of a transaction.
type micro struct {
	write      bool
	key, value int64
}

// What was answered. What nobody answered takes effect at the end of the history if it can, and nothing is known of it.
type output struct {
	known, failed bool
	n             int64
	yes, told     bool
	text          string
	all           []int64
	txn           []micro
}

const null = int64(-1) << 62

func main() {
	seconds, _ := strconv.ParseFloat(os.Args[2], 64)
	model, found := models[os.Args[1]]
	if !found {
		fmt.Fprintln(os.Stderr, "beside: there is no model", os.Args[1])
		os.Exit(254)
	}
	for _, file := range os.Args[3:] {
		events, err := load(file)
		if err != nil {
			fmt.Fprintln(os.Stderr, "beside:", err)
			os.Exit(254)
		}
		begun, spent := time.Now(), processor()
		verdict := porcupine.CheckEventsTimeout(model, events, time.Duration(seconds*float64(time.Second)))
		clock := time.Since(begun).Seconds()
		fmt.Printf("%.6f\t%.6f\t%s\t%d\n", clock, processor()-spent, verdict, peak())
	}
}

// The seconds of processors that this process has had.
func processor() float64 {
	var usage syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()).Seconds()
}

// The most that this process ever held, in MiB.
func peak() int {
	text, _ := os.ReadFile("/proc/self/status")
	for _, line := range strings.Split(string(text), "\n") {
		if strings.HasPrefix(line, "VmHWM:") {
			kib, _ := strconv.Atoi(strings.Fields(line)[1])
			return kib / 1024
		}
	}
	return 0
}

func load(file string) ([]porcupine.Event, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	isLog := strings.HasSuffix(file, ".log")
	parse := parseEdn
	if strings.HasSuffix(file, ".jsonl") {
		parse = parseJSON
	} else if isLog {
		parse = parseLog
	}
	// A compare-and-set that failed in a log of the etcd test saw another value; in other files what failed did not happen.
	return pair(parse(string(text)), isLog)
}

func pair(records []record, refusals bool) ([]porcupine.Event, error) {
	running := map[string]int{}
	failed := map[int]bool{}
	ended := map[int]int{}
	for at, r := range records {
		if r.kind == "invoke" {
			running[r.process] = at
			continue
		}
		call, found := running[r.process]
		if !found {
			return nil, fmt.Errorf("process %s ends what it did not begin", r.process)
		}
		if r.kind == "fail" && !(refusals && r.f == "cas") {
			failed[call] = true
		}
		if r.kind != "info" {
			ended[at] = call
		}
		delete(running, r.process)
	}
	var events []porcupine.Event
	asked := map[int]bool{}
	for at, r := range records {
		if r.kind == "invoke" && !failed[at] {
			in, err := question(r)
			if err != nil {
				return nil, err
			}
			asked[at] = true
			events = append(events, porcupine.Event{Kind: porcupine.CallEvent, Value: in, Id: at})
		} else if call, found := ended[at]; found && asked[call] {
			delete(asked, call)
			events = append(events, porcupine.Event{Kind: porcupine.ReturnEvent, Value: answer(r), Id: call})
		}
	}
	for at := range records {
		if asked[at] {
			events = append(events, porcupine.Event{Kind: porcupine.ReturnEvent, Value: output{}, Id: at})
		}
	}
	return events, nil
}

func question(r record) (input, error) {
	in := input{f: r.f, key: fmt.Sprint(r.key), a: null}
	switch value := r.value.(type) {
	case int64:
		in.a = value
	case string:
		in.text = value
	case []interface{}:
		if r.f == "txn" {
			in.txn = transaction(value)
			return in, nil
		}
		numbers := make([]int64, 2)
		for at, number := range value {
			if number, ok := number.(int64); ok && at < 2 {
				numbers[at] = number
			}
		}
		in.a, in.b = numbers[0], numbers[1]
	case nil:
	default:
		return in, fmt.Errorf("%v is asked for", value)
	}
	return in, nil
}

func answer(r record) output {
	out := output{known: true, failed: r.kind == "fail", n: null}
	switch value := r.value.(type) {
	case int64:
		out.n = value
	case string:
		out.text = value
	case bool:
		out.yes, out.told = value, true
	case []interface{}:
		if r.f == "txn" {
			out.txn = transaction(value)
			return out
		}
		if r.f == "read" {
			for _, number := range value {
				if number, ok := number.(int64); ok {
					out.all = append(out.all, number)
				}
			}
			sort.Slice(out.all, func(one, other int) bool { return out.all[one] < out.all[other] })
			return out
		}
		if len(value) == 2 {
			if yes, ok := value[1].(bool); ok {
				out.yes, out.told = yes, true
			}
		}
	}
	return out
}

// What is no list of three is not looked at; a read that nobody answered has no value.
func transaction(list []interface{}) []micro {
	var txn []micro
	for _, one := range list {
		if parts, ok := one.([]interface{}); ok && len(parts) == 3 {
			key, _ := parts[1].(int64)
			value, _ := parts[2].(int64)
			txn = append(txn, micro{parts[0] == "w", key, value})
		}
	}
	return txn
}
