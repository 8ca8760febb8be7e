package main

import (
	"hash/fnv"
	"sort"

	"github.com/anishathalye/porcupine"
)

var models = map[string]porcupine.Model{
	"register":       {Init: func() interface{} { return null }, Step: register, Hash: hashNumber},
	"counter":        {Init: func() interface{} { return int64(0) }, Step: counter, Hash: hashNumber},
	"mutex":          {Init: func() interface{} { return false }, Step: mutex, Hash: hashBool},
	"queue":          {Init: func() interface{} { return queueState{} }, Step: queue, Equal: sameQueue, Hash: hashQueue},
	"kv":             {Init: func() interface{} { return "" }, Step: kv, Hash: hashText, PartitionEvent: byKey},
	"kv-whole":       {Init: func() interface{} { return mapState{} }, Step: kvWhole, Equal: sameMap, Hash: hashMap},
	"set":            {Init: func() interface{} { return false }, Step: element, Hash: hashBool, PartitionEvent: byElement},
	"multi-register": {Init: func() interface{} { return registers{} }, Step: multi, Equal: sameRegisters, Hash: hashRegisters},
	"set-whole":      {Init: func() interface{} { return setState{} }, Step: setWhole, Equal: sameSet, Hash: hashSet},
}

func byKey(events []porcupine.Event) [][]porcupine.Event {
	return parts(events, func(in input) interface{} { return in.key })
}

func byElement(events []porcupine.Event) [][]porcupine.Event {
	return parts(events, func(in input) interface{} { return in.a })
}

func parts(events []porcupine.Event, part func(input) interface{}) [][]porcupine.Event {
	places, of := map[interface{}]int{}, map[int]int{}
	var parts [][]porcupine.Event
	for _, event := range events {
		if event.Kind == porcupine.CallEvent {
			key := part(event.Value.(input))
			if _, found := places[key]; !found {
				places[key] = len(parts)
				parts = append(parts, nil)
			}
			of[event.Id] = places[key]
		}
		parts[of[event.Id]] = append(parts[of[event.Id]], event)
	}
	return parts
}

func mixed(n uint64) uint64 {
	n = (n ^ n>>31) * 0x9e3779b97f4a7c15
	return n ^ n>>29
}

func hashNumber(state interface{}) uint64 { return mixed(uint64(state.(int64))) }

func hashBool(state interface{}) uint64 {
	if state.(bool) {
		return 1
	}
	return 0
}

func hashText(state interface{}) uint64 {
	h := fnv.New64a()
	h.Write([]byte(state.(string)))
	return h.Sum64()
}

func register(state, asked, answered interface{}) (bool, interface{}) {
	held, in, out := state.(int64), asked.(input), answered.(output)
	switch in.f {
	case "read":
		return !out.known || out.n == held, state
	case "write":
		return true, in.a
	default:
		if in.a == held {
			return !out.known || !out.failed, in.b
		}
		return !out.known || out.failed, state
	}
}

func counter(state, asked, answered interface{}) (bool, interface{}) {
	sum, in, out := state.(int64), asked.(input), answered.(output)
	if in.f == "add" {
		return true, sum + in.a
	}
	return !out.known || out.n == sum, state
}

// What nobody answered, and is put at the end, does nothing where it is not possible.
func mutex(state, asked, answered interface{}) (bool, interface{}) {
	held, acquires := state.(bool), asked.(input).f == "acquire"
	if held == acquires {
		return !answered.(output).known, state
	}
	return true, acquires
}

func kv(state, asked, answered interface{}) (bool, interface{}) {
	held, in, out := state.(string), asked.(input), answered.(output)
	switch in.f {
	case "get":
		return !out.known || out.text == held, state
	case "put":
		return true, in.text
	default:
		return true, held + in.text
	}
}

type mapState struct {
	texts map[string]string
	hash  uint64
}

func hashEntry(key, text string) uint64 {
	if text == "" {
		return 0
	}
	return mixed(hashText(key) + 3*hashText(text))
}

func kvWhole(state, asked, answered interface{}) (bool, interface{}) {
	held, in := state.(mapState), asked.(input)
	before := held.texts[in.key]
	ok, after := kv(before, asked, answered)
	if !ok || in.f == "get" {
		return ok, state
	}
	texts := make(map[string]string, len(held.texts)+1)
	for key, text := range held.texts {
		texts[key] = text
	}
	texts[in.key] = after.(string)
	return true, mapState{texts, held.hash ^ hashEntry(in.key, before) ^ hashEntry(in.key, after.(string))}
}

func hashMap(state interface{}) uint64 { return state.(mapState).hash }

func sameMap(one, other interface{}) bool {
	a, b := one.(mapState), other.(mapState)
	if a.hash != b.hash || len(a.texts) != len(b.texts) {
		return false
	}
	for key, text := range a.texts {
		if b.texts[key] != text {
			return false
		}
	}
	return true
}

func element(state, asked, answered interface{}) (bool, interface{}) {
	there, in, out := state.(bool), asked.(input), answered.(output)
	switch in.f {
	case "add":
		return !out.told || out.yes != there, true
	case "remove":
		return !out.told || out.yes == there, false
	default:
		return !out.told || out.yes == there, state
	}
}

type setState struct {
	elements []int64
	hash     uint64
}

func setWhole(state, asked, answered interface{}) (bool, interface{}) {
	held, number := state.(setState), asked.(input).a
	if asked.(input).f == "read" {
		out := answered.(output)
		return !out.known || sameNumbers(out.all, held.elements), state
	}
	at := sort.Search(len(held.elements), func(at int) bool { return held.elements[at] >= number })
	there := at < len(held.elements) && held.elements[at] == number
	ok, now := element(there, asked, answered)
	if !ok || now.(bool) == there {
		return ok, state
	}
	elements := append(make([]int64, 0, len(held.elements)+1), held.elements[:at]...)
	if there {
		elements = append(elements, held.elements[at+1:]...)
	} else {
		elements = append(append(elements, number), held.elements[at:]...)
	}
	return true, setState{elements, held.hash ^ mixed(uint64(number)+1)}
}

func hashSet(state interface{}) uint64 { return state.(setState).hash }

func sameSet(one, other interface{}) bool {
	a, b := one.(setState), other.(setState)
	return a.hash == b.hash && sameNumbers(a.elements, b.elements)
}

func sameNumbers(one, other []int64) bool {
	if len(one) != len(other) {
		return false
	}
	for at := range one {
		if one[at] != other[at] {
			return false
		}
	}
	return true
}

// The hash is the sum over all values of value x factor^place, counted from the first that was ever enqueued.
type queueState struct {
	values []int64
	gone   uint64
	hash   uint64
}

func power(n uint64) uint64 { return mixed(n+0x51ed270b) | 1 }

func queue(state, asked, answered interface{}) (bool, interface{}) {
	held, in, out := state.(queueState), asked.(input), answered.(output)
	if in.f == "enqueue" {
		values := append(make([]int64, 0, len(held.values)+1), held.values...)
		place := power(held.gone + uint64(len(values)))
		return true, queueState{append(values, in.a), held.gone, held.hash + mixed(uint64(in.a))*place}
	}
	if len(held.values) == 0 {
		return !out.known || out.n == null, state
	}
	head := held.values[0]
	rest := queueState{held.values[1:], held.gone + 1, held.hash - mixed(uint64(head))*power(held.gone)}
	return !out.known || out.n == head, rest
}

func hashQueue(state interface{}) uint64 { return state.(queueState).hash }

// Of two configurations with the same operations placed as many values are gone if they are equal.
func sameQueue(one, other interface{}) bool {
	a, b := one.(queueState), other.(queueState)
	return a.hash == b.hash && sameNumbers(a.values, b.values)
}

// Registers are small numbers.
type registers struct {
	values []int64
	hash   uint64
}

func hashRegisters(state interface{}) uint64 { return state.(registers).hash }

func sameRegisters(one, other interface{}) bool {
	a, b := one.(registers), other.(registers)
	return a.hash == b.hash && sameNumbers(a.values, b.values)
}

func multi(state, asked, answered interface{}) (bool, interface{}) {
	held, in, out := state.(registers), asked.(input), answered.(output)
	now, copied := held, false
	for at, one := range in.txn {
		var before int64
		if one.key < int64(len(now.values)) {
			before = now.values[one.key]
		}
		if !one.write {
			if out.known && out.txn[at].value != before {
				return false, state
			}
			continue
		}
		if !copied {
			size := len(held.values)
			if size <= int(one.key) {
				size = int(one.key) + 1
			}
			values := make([]int64, size)
			copy(values, held.values)
			now.values, copied = values, true
		}
		for int64(len(now.values)) <= one.key {
			now.values = append(now.values, 0)
		}
		now.values[one.key] = one.value
		now.hash ^= entry(one.key, before) ^ entry(one.key, one.value)
	}
	return true, now
}

func entry(key, value int64) uint64 { return mixed(uint64(key)<<48 ^ uint64(value)) }
