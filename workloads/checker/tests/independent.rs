//! Values of every shape against every model: independent keys are split, and what a model does not know is
//! refused, and never read as something else.

use std::num::NonZeroUsize;

use checker::Budget;
use checker::catalogue::{Condition, ModelName, Question, confirm, judge};
use checker::history::records;
use checker::verdict::{Judged, Verdict};

fn asked(model: ModelName, condition: Condition, text: &str) -> Result<Judged, String> {
    let mut records = records(text.as_bytes()).map_err(|error| error.to_string())?;
    let question = Question {
        model,
        condition,
        budget: Budget::default(),
        threads: NonZeroUsize::MIN,
        witness: condition.has_witness(),
    };
    judge(&mut records, &question).map_err(|refusal| refusal.to_string())
}

/// One operation per line: process, `f`, what was asked, and what was answered; `!` before it is a failure,
/// and `?` no answer.
fn edn(script: &str) -> String {
    let mut text = String::new();
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let words: Vec<&str> = line.split(" | ").collect();
        let [process, f, asked, told] = words[..] else { panic!("four parts: {line}") };
        let mut line = |kind: &str, value: &str| {
            text.push_str(&format!("{{:process {process} :type :{kind} :f :{f} :value {value}}}\n"));
        };
        line("invoke", asked);
        match told.split_at(1) {
            ("!", told) => line("fail", told),
            ("?", told) => line("info", told),
            _ => line("ok", told),
        }
    }
    text
}

/// The same in lines of JSON.
fn json(script: &str) -> String {
    let mut text = String::new();
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let words: Vec<&str> = line.split(" | ").collect();
        let [process, f, asked, told] = words[..] else { panic!("four parts: {line}") };
        for (kind, value) in [("invoke", asked), ("ok", told)] {
            let value = value.replace("nil", "null").replace("#{", "[").replace('}', "]").replace(' ', ",");
            text.push_str(&format!(
                "{{\"process\":{process},\"type\":\"{kind}\",\"f\":\"{f}\",\"value\":{value}}}\n"
            ));
        }
    }
    text
}

#[track_caller]
fn says(model: ModelName, text: &str, expected: Verdict) -> Judged {
    let judged = asked(model, Condition::Linearizable, text).unwrap_or_else(|why| panic!("{why}\n{text}"));
    assert_eq!(judged.result.verdict, expected, "{model}: {}\n{text}", judged.result.summary);
    if expected == Verdict::Valid {
        let mut records = records(text.as_bytes()).expect("records");
        confirm(&mut records, model, Condition::Linearizable, &judged.witness).expect("its order proves it");
    }
    judged
}

#[track_caller]
fn refuses(model: ModelName, condition: Condition, text: &str, words: &str) {
    match asked(model, condition, text) {
        Ok(judged) => panic!("{model}: {}: {}\n{text}", judged.result.verdict, judged.result.summary),
        Err(why) => assert!(why.contains(words), "{model}: {why}\n{text}"),
    }
}

/// Of each model a history of two keys that is right, and one that is wrong on key 8.
const KEYED: [(ModelName, &str, &str); 6] = [
    (
        ModelName::Set,
        "0 | add | [7 1] | [7 1]
         1 | add | [8 1] | [8 1]
         0 | read | [7 nil] | [7 #{1}]",
        "0 | add | [7 1] | [7 1]
         1 | add | [8 1] | [8 1]
         1 | read | [8 nil] | [8 #{}]",
    ),
    (
        ModelName::Mutex,
        "0 | acquire | [7 nil] | [7 nil]
         1 | acquire | [8 nil] | [8 nil]
         0 | release | [7 nil] | [7 nil]",
        "0 | acquire | [8 nil] | [8 nil]
         1 | acquire | [8 nil] | [8 nil]",
    ),
    (
        ModelName::Queue,
        "0 | enqueue | [7 1] | [7 1]
         1 | enqueue | [8 2] | [8 2]
         1 | dequeue | [8 nil] | [8 2]
         0 | dequeue | [7 nil] | [7 1]
         0 | dequeue | [7 nil] | [7 nil]",
        "0 | enqueue | [7 1] | [7 1]
         1 | dequeue | [8 nil] | [8 1]",
    ),
    (
        ModelName::Counter,
        "0 | add | [7 1] | [7 1]
         1 | add | [8 2] | [8 2]
         1 | read | [8 nil] | [8 2]
         0 | read | [7 nil] | [7 1]",
        "0 | add | [7 1] | [7 1]
         1 | read | [8 nil] | [8 1]",
    ),
    (
        ModelName::CasRegister,
        "0 | write | [7 1] | [7 1]
         1 | write | [8 2] | [8 2]
         1 | cas | [8 [2 3]] | [8 [2 3]]
         1 | read | [8 nil] | [8 3]
         0 | read | [7 nil] | [7 1]",
        "0 | write | [7 1] | [7 1]
         1 | write | [8 2] | [8 2]
         1 | read | [8 nil] | [8 1]",
    ),
    (
        ModelName::Kv,
        "0 | put | [7 \"a\"] | [7 \"a\"]
         1 | append | [8 \"b\"] | [8 \"b\"]
         1 | get | [8 nil] | [8 \"b\"]
         0 | get | [7 nil] | [7 \"a\"]",
        "0 | put | [7 \"a\"] | [7 \"a\"]
         1 | get | [8 nil] | [8 \"a\"]",
    ),
];

#[test]
fn independent_keys_are_judged_each_by_itself_whatever_the_model_and_the_format() {
    for (model, right, wrong) in KEYED {
        for text in [edn(right), json(right), edn(right).replace("[7 ", "#jepsen.independent/tuple [7 ")] {
            says(model, &text, Verdict::Valid);
        }
        for text in [edn(wrong), json(wrong)] {
            let shown = says(model, &text, Verdict::Invalid).result.counterexample.expect("it is shown");
            assert!(
                shown.ops.iter().all(|op| op.key != checker::history::Datum::Int(7)),
                "{}",
                shown.sentence
            );
        }
    }
}

#[test]
fn keys_in_a_field_of_their_own_are_keys_as_well() {
    let line = |process: u32, kind: &str, f: &str, key: &str, value: &str| {
        format!(
            "{{\"process\":{process},\"type\":\"{kind}\",\"f\":\"{f}\",\"key\":{key},\"value\":{value}}}\n"
        )
    };
    let set = |key: &str, read: &str| {
        [
            line(0, "invoke", "add", "7", "1"),
            line(0, "ok", "add", "7", "1"),
            line(0, "invoke", "read", key, "null"),
            line(0, "ok", "read", key, read),
        ]
        .concat()
    };
    says(ModelName::Set, &set("7", "[1]"), Verdict::Valid);
    says(ModelName::Set, &set("8", "[]"), Verdict::Valid);
    says(ModelName::Set, &set("7", "[]"), Verdict::Invalid);
    let mutex = [
        line(0, "invoke", "acquire", "1", "null"),
        line(0, "ok", "acquire", "1", "null"),
        line(1, "invoke", "acquire", "\"b\"", "null"),
        line(1, "ok", "acquire", "\"b\"", "null"),
    ];
    says(ModelName::Mutex, &mutex.concat(), Verdict::Valid);
    let elsewhere = [line(0, "invoke", "acquire", "1", "null"), line(0, "ok", "acquire", "2", "null")];
    refuses(ModelName::Mutex, Condition::Linearizable, &elsewhere.concat(), "completes with 2");
}

#[test]
fn what_is_linearizable_under_keys_has_every_weaker_order() {
    for (model, right, wrong) in KEYED {
        for condition in [Condition::Sequential, Condition::OrderedSequential] {
            let verdict = |text| asked(model, condition, &edn(text)).expect("judged").result.verdict;
            assert_eq!(verdict(right), Verdict::Valid, "{model}, {condition}");
            let _ = verdict(wrong);
        }
    }
}

#[test]
fn a_read_that_is_asked_with_its_answer_is_a_read() {
    says(ModelName::Register, &edn("0 | write | 4 | 4\n1 | read | 4 | 4"), Verdict::Valid);
    says(ModelName::Set, &edn("0 | add | 4 | 4\n1 | read | #{4} | #{4}"), Verdict::Valid);
    let keyed = edn("0 | write | [7 4] | [7 4]\n1 | read | [7 4] | [7 4]");
    says(ModelName::Register, &keyed, Verdict::Valid);
    let failed = edn("0 | write | 4 | !4\n1 | read | nil | !nil");
    says(ModelName::Register, &failed, Verdict::Valid);
}

#[test]
fn pairs_where_something_shows_that_there_is_one_object_are_values() {
    says(
        ModelName::Set,
        &edn("0 | add | [7 1] | [7 1]
              0 | read | nil | #{[7 1]}"),
        Verdict::Valid,
    );
    says(
        ModelName::Queue,
        &edn("0 | enqueue | [7 1] | [7 1]
              0 | dequeue | nil | [7 1]"),
        Verdict::Valid,
    );
    // Maps and sets are the same in any order.
    says(
        ModelName::Set,
        &edn("0 | add | {:a 1 :b #{1 2}} | nil
              0 | read | nil | [{:b #{2 1} :a 1}]"),
        Verdict::Valid,
    );
}

#[test]
fn what_is_ambiguous_mixed_or_of_another_shape_is_refused_in_words() {
    use ModelName::{CasRegister, Counter, Kv, ListAppend, MultiRegister, Mutex, Queue, Register, Set};
    for (model, script, words) in [
        // Nothing tells whether a pair is an element.
        (Set, "0 | add | [7 1] | [7 1]", "write keys into the field key"),
        (Queue, "0 | enqueue | [7 1] | [7 1]", "write keys into the field key"),
        (Set, "0 | contains | [7 1] | true", "write keys into the field key"),
        // Some have keys, and some have none.
        (Set, "0 | add | [7 1] | [7 1]\n0 | read | [7 nil] | [7 #{1}]\n0 | add | 2 | 2", "line 5"),
        (Set, "0 | read | nil | #{}\n0 | read | [7 nil] | [7 #{}]", "what belongs together"),
        (Mutex, "0 | acquire | nil | nil\n1 | acquire | [7 nil] | [7 nil]", "what belongs together"),
        (Mutex, "0 | acquire | [7 nil] | [7 nil]\n0 | release | nil | nil", "what belongs together"),
        // What is asked with something that it has not.
        (Mutex, "0 | acquire | 7 | 7", "is asked with nothing"),
        (Mutex, "0 | acquire | \"a\" | nil", "is asked with nothing"),
        (Mutex, "0 | acquire | [7 8] | nil", "is asked with nothing"),
        (Mutex, "0 | acquire | {:key 7} | nil", "is asked with nothing"),
        (Queue, "0 | dequeue | 7 | 1", "is asked with nothing"),
        (Set, "0 | read | 7 | #{}", "is asked with nothing"),
        (Set, "0 | read | {:key 7} | #{}", "is asked with nothing"),
        (Counter, "0 | read | 7 | 1", "is asked with nothing"),
        (Kv, "0 | get | \"a\" | \"b\"", "is asked with nothing"),
        (Set, "0 | add | nil | nil", "needs a value"),
        (Queue, "0 | enqueue | nil | nil", "needs a value"),
        (Kv, "0 | put | nil | nil", "needs a value"),
        (Set, "0 | add | [7 nil] | [7 nil]\n0 | read | [7 nil] | [7 #{}]", "needs a value"),
        // What is answered has another shape.
        (Set, "0 | add | 1 | 1\n0 | read | nil | [7 #{1}]", "another shape"),
        (Set, "0 | add | 1 | 1\n0 | read | nil | {1 true}", "answered by a list"),
        (Set, "0 | add | 1 | 1\n0 | read | nil | 1", "answered by a list"),
        (Set, "0 | add | 1 | 1\n0 | read | nil | nil", "answered by a list"),
        (Set, "0 | add | [7 1] | [7 1]\n0 | read | [7 nil] | [8 #{1}]", "of another"),
        (Queue, "0 | enqueue | 5 | 5\n0 | dequeue | nil | [5 1 2 3]", "another shape"),
        (Queue, "0 | enqueue | 5 | 5\n0 | dequeue | nil | {:value 5}", "another shape"),
        (Counter, "0 | add | 1 | 1\n0 | read | nil | [1 2]", "a counter is no"),
        (Counter, "0 | add | \"x\" | \"x\"", "can't be added"),
        (Counter, "0 | add | 1.5 | 1.5", "can't be added"),
        (Counter, "0 | add | [1 [2]] | nil", "can't be added"),
        (Kv, "0 | put | {:a 1} | nil", "is no text"),
        (Register, "0 | write | 1 | 1\n0 | read | nil | [1 2]", ""),
        (Register, "0 | write | [1 2 3] | nil", ""),
        (Register, "0 | write | {:a 1} | nil", ""),
        (Register, "0 | write | 1.5 | nil", ""),
        (CasRegister, "0 | cas | [[1 2] [3 4]] | nil", "key"),
        // Transactions under keys.
        (
            MultiRegister,
            "0 | txn | [7 [[:w :x 1]]] | nil\n0 | txn | [[:w :x 1]] | nil",
            "what belongs together",
        ),
        (MultiRegister, "0 | txn | [7 [[:w :x 1]]] | [8 [[:w :x 1]]]", "which is of another"),
        (MultiRegister, "0 | txn | [7 [8 [[:w :x 1]]]] | nil", ""),
        (MultiRegister, "0 | txn | [nil [[:w :x 1]]] | nil", "of no key"),
    ] {
        refuses(model, Condition::Linearizable, &edn(script), words);
    }
    let txn = edn("0 | txn | [7 [[:append :x 1]]] | [8 [[:append :x 1]]]");
    refuses(ListAppend, ListAppend.usual_condition(), &txn, "which is of another");
}

#[test]
fn transactions_under_independent_keys_are_judged_each_key_by_itself() {
    let append = |read: &str| {
        format!(
            "0 | txn | [7 [[:append :x 1]]] | [7 [[:append :x 1]]]
             1 | txn | [8 [[:r :x nil]]] | [8 [[:r :x []]]]
             1 | txn | [7 [[:r :x nil]]] | [7 [[:r :x {read}]]]"
        )
    };
    let condition = ModelName::ListAppend.usual_condition();
    let judged = |text: &str| asked(ModelName::ListAppend, condition, text).expect("judged").result;
    let quoted = |script: String| {
        [":append", ":r", ":x"]
            .iter()
            .fold(script, |all, word| all.replace(word, &format!("\"{}\"", &word[1..])))
    };
    for is_json in [false, true] {
        let write = |read: &str| if is_json { json(&quoted(append(read))) } else { edn(&append(read)) };
        let right = judged(&write("[1]"));
        assert_eq!(right.verdict, Verdict::Valid, "{}", right.summary);
        assert!(right.summary.starts_with("each of 2 keys by itself; of key 7: "), "{}", right.summary);
        let wrong = judged(&write("[]"));
        assert_eq!(wrong.verdict, Verdict::Invalid, "{}", wrong.summary);
        assert!(wrong.summary.starts_with("of key 7: "), "{}", wrong.summary);
    }
    let registers = |read: &str| {
        edn(&format!(
            "0 | txn | [7 [[:w :x 1]]] | [7 [[:w :x 1]]]
             0 | txn | [8 [[:w :x 2] [:w :y 3]]] | [8 [[:w :x 2] [:w :y 3]]]
             1 | txn | [8 [[:r :y nil] [:r :x nil]]] | [8 [[:r :y 3] [:r :x 2]]]
             1 | txn | [7 [[:r :x nil]]] | [7 [[:r :x {read}]]]"
        ))
    };
    says(ModelName::MultiRegister, &registers("1"), Verdict::Valid);
    says(ModelName::MultiRegister, &registers("2"), Verdict::Invalid);
}

#[test]
fn an_order_is_asked_of_each_independent_key_by_itself_and_of_keys_in_a_field_together() {
    // Process 1 sees what came later at key 8, and then what came before at key 7.
    let each_has_an_order = [
        (
            ModelName::Register,
            "0 | write | [7 5] | [7 5]
             0 | write | [7 1] | [7 1]
             0 | write | [8 1] | [8 1]
             1 | read | [8 nil] | [8 1]
             1 | read | [7 nil] | [7 5]",
        ),
        (
            ModelName::Set,
            "0 | add | [7 1] | [7 1]
             0 | add | [8 1] | [8 1]
             1 | read | [8 nil] | [8 #{1}]
             1 | read | [7 nil] | [7 #{}]",
        ),
    ];
    for (model, script) in each_has_an_order {
        for condition in [Condition::Sequential, Condition::OrderedSequential] {
            for text in [edn(script), json(script)] {
                let judged = asked(model, condition, &text).expect("judged");
                assert_eq!(judged.result.verdict, Verdict::Valid, "{model}: {}", judged.result.summary);
                let mut records = records(text.as_bytes()).expect("records");
                let confirmed = confirm(&mut records, model, condition, &judged.witness);
                assert!(confirmed.expect("its orders prove it") >= 4, "{model}");
                let one_gone = &judged.witness[1..];
                let mut records = checker::history::records(text.as_bytes()).expect("records");
                assert!(confirm(&mut records, model, condition, one_gone).is_err(), "{model}");
            }
            let fielded: String = json(script).lines().map(in_a_field).collect();
            let judged = asked(model, condition, &fielded).expect("judged");
            assert_eq!(judged.result.verdict, Verdict::Invalid, "{model}: {}", judged.result.summary);
        }
    }
    // An answer of a key that cannot be is one, whatever the others are.
    let wrong = edn("0 | add | [7 1] | [7 1]\n1 | read | [8 nil] | [8 #{}]\n0 | read | [7 nil] | [7 #{}]");
    let judged = asked(ModelName::Set, Condition::Sequential, &wrong).expect("judged").result;
    assert_eq!(judged.verdict, Verdict::Invalid);
    assert!(judged.summary.starts_with("of key 7: "), "{}", judged.summary);
}

/// A line of JSON whose value is a key and a value, with the key in its field.
fn in_a_field(line: &str) -> String {
    let (before, pair) = line.split_once("\"value\":[").expect("a pair");
    let (key, value) = pair.split_once(',').expect("a pair");
    format!("{before}\"key\":{key},\"value\":{}\n", value.replacen("]}", "}", 1))
}

#[test]
fn where_nothing_was_observed_nothing_was_tested() {
    for (model, script) in [
        (ModelName::Set, "0 | add | 1 | 1\n0 | remove | 1 | 1"),
        (ModelName::Set, "0 | add | 1 | 1\n0 | read | nil | !nil"),
        (ModelName::Queue, "0 | enqueue | 1 | 1\n1 | dequeue | nil | ?nil"),
        (ModelName::Counter, "0 | add | 1 | 1"),
        (ModelName::Register, "0 | write | 1 | 1"),
        (ModelName::Kv, "0 | put | \"a\" | \"a\""),
        (ModelName::MultiRegister, "0 | write | {:x 1} | {:x 1}"),
    ] {
        let judged = says(model, &edn(script), Verdict::Unknown);
        assert!(judged.result.summary.starts_with("nothing was observed"), "{}", judged.result.summary);
    }
    let adds = "{:process 0 :type :invoke :f :add :value 1}\n{:process 0 :type :info :f :add :value 1}";
    says(ModelName::Set, adds, Verdict::Unknown);
}

#[test]
fn a_read_is_shown_as_it_was_answered() {
    for (texts, read) in [
        ("0 | add | \"a\" | nil\n0 | add | \"b\" | nil\n0 | read | nil | #{\"a\"}", "read → {a}"),
        ("0 | add | 1 | nil\n0 | add | 2 | nil\n0 | read | nil | #{1}", "read → {1}"),
    ] {
        let shown = says(ModelName::Set, &edn(texts), Verdict::Invalid).result.counterexample.expect("shown");
        assert!(shown.ops.iter().any(|op| op.call == read), "{:?}", shown.ops);
        assert!(shown.sentence.starts_with(read), "{}", shown.sentence);
    }
}
