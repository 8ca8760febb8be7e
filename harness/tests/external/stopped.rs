//! Systems that stop for good, each in another way: their members and the network are sound, and no fault is
//! in force. They are accused, and told since when.

use super::{Folder, ended, text};

/// The way, the time limit, and what the headline says. Where all is silent, or a key, the run waits by
/// itself until that is for good.
const WAYS: [(&str, &str, &str); 5] = [
    ("refusing", "12s", "no write was acknowledged for the last"),
    ("silent", "12s", "no write was acknowledged for the last"),
    ("dead", "12s", "no write was acknowledged for the last"),
    ("key", "12s", "no write to key 1 was acknowledged for the last"),
    ("member", "26s", "n1 served nobody for the last"),
];

/// What the file says of coming back.
const WITHIN: &str =
    "comes_back = { promise = \"with-quorum\", source = \"tiny.py\" }\ncomes_back_within = \"8s\"";

#[test]
fn a_system_that_stops_for_good_is_accused_in_whichever_way_it_stops() {
    let folder = Folder::new();
    std::thread::scope(|scope| {
        for (way, limit, headline) in WAYS {
            let folder = &folder;
            scope.spawn(move || {
                let system = folder.system(&format!("--stops-{way}"), "sound", WITHIN);
                let flags = ["--time-limit", limit, "--store", way, "--rate", "60", "--keys", "2"];
                let output = folder.harness(
                    &[&["run", "--system", &system, "--nodes", "3", "--concurrency", "6"][..], &flags]
                        .concat(),
                );
                ended(&output, 1);
                let told = text(&output.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
                assert!(told.contains("it never came back: "), "{way}: {told}");
                assert!(told.contains(headline), "{way}: {told}");
            });
        }
    });
}

#[test]
fn what_a_file_says_about_coming_back_is_checked_and_kept() {
    let folder = Folder::new();
    for (line, advice) in [
        ("comes_back = \"soon\"", "write always, with-quorum, never"),
        ("comes_back_within = \"soon\"", "member.comes_back_within"),
        ("comes_back = \"never\"\ncomes_back_within = \"9s\"", "leave one of them out"),
    ] {
        let refused = folder.run(&folder.system("", "sound", line), &["--time-limit", "3s"]);
        ended(&refused, 254);
        assert!(text(&refused.stderr).contains(advice), "{}", text(&refused.stderr));
    }
    ended(&folder.run(&folder.system("", "sound", WITHIN), &["--time-limit", "3s"]), 0);
    let run = std::fs::read_to_string(folder.latest().join("run.json")).expect("a run");
    let run: serde_json::Value = serde_json::from_str(&run).expect("JSON");
    let kept = serde_json::json!({"when": "with-quorum", "within_ms": 8000, "source": "tiny.py"});
    assert_eq!(run["comes_back"], kept);
}
