//! What the programs say, ask, show and refuse.

use node_client::{CreateMode, ErrorCode};
use rustix::process::Signal;

use crate::place::{Place, STUBBORN, until, writes};

#[test]
fn one_that_waits_says_behind_whom_and_one_that_lost_says_why() {
    let place = Place::new();
    for program in [&["elect", "/e", "--create", "--once"][..], &["lock", "/l"]] {
        let [first, second] = ["a", "b"].map(|name| format!("{name}{}", program[0]));
        let named = |name| [program, &["--name", name]].concat();
        let mut holder = place.run(&first, &named(&first), &["sh", "-c", STUBBORN]);
        writes(&place.lines(), &first);
        let _waits = place.run(&second, &named(&second), &["sh", "-c", STUBBORN]);
        place.says(&second, &format!("waiting behind {first} (/"));
        holder.signal(Signal::STOP);
        writes(&place.lines(), &second);
        holder.signal(Signal::CONT);
        assert_eq!(holder.ends().code(), Some(75));
        let said = place.said(&first);
        assert!(said.contains("is lost: ") && said.contains("The command was ended"), "{said}");
    }
}

#[test]
fn who_has_it_and_who_waits_is_printed() {
    let place = Place::new();
    for (program, has) in [("elect", "leads"), ("lock", "holds")] {
        let znode = format!("/{program}");
        let ask = [program, &znode, "--who"];
        assert_eq!(place.asked(&ask).0, Some(125), "there is no such znode");
        place.session(async |keeper| keeper.create_all(&znode).await.expect("made"));
        let nobody = place.asked(&ask);
        assert_eq!((nobody.0, &nobody.1[..]), (Some(1), ""), "{}", nobody.2);
        let stand = |name: &str| place.run(name, &[program, &znode, "--name", name], &["sh", "-c", STUBBORN]);
        let first = format!("{program}\t1");
        let _first = stand(&first);
        writes(&place.lines(), &first.clone());
        let _second = stand("second");
        place.says("second", "waiting behind");
        let (status, printed, said) = place.asked(&ask);
        assert_eq!(status, Some(0), "{said}");
        let lines: Vec<Vec<&str>> = printed.lines().map(|line| line.split('\t').collect()).collect();
        let [one, other] = &lines[..] else { panic!("{printed}") };
        assert_eq!((one[0], one[2]), (has, &*format!("{program}\\t1")), "tabs are escaped");
        assert_eq!((other[0], other[2]), ("waits", "second"));
        assert!(one[1].parse::<u64>().expect("a token") < other[1].parse().expect("a token"));
        assert!(one[3].starts_with(&znode), "{printed}");
    }
}

#[test]
fn who_is_active_and_who_must_be_fenced_is_printed() {
    let place = Place::new();
    let ask = ["standby", "/jobs", "--who"];
    assert_eq!(place.asked(&ask).0, Some(1));
    let program = ["standby", "/jobs", "--data", "first", "--fence", "false"];
    let mut first = place.run("first", &program, &["sh", "-c", STUBBORN]);
    writes(&place.lines(), "first");
    let (status, printed, _) = place.asked(&ask);
    assert_eq!(status, Some(0));
    assert!(printed.starts_with("active\t") && printed.lines().count() == 1, "{printed}");
    first.signal(Signal::KILL);
    first.ends();
    until("the lock is gone", || (place.asked(&ask).0 == Some(1)).then_some(()));
    let (_, printed, _) = place.asked(&ask);
    assert!(printed.starts_with("unfenced\t") && printed.contains("\tfirst\t"), "{printed}");
}

#[test]
fn a_missing_chroot_is_named_with_what_to_do() {
    let place = Place::new();
    let server = format!("{}/app", place.server());
    for program in [
        &["elect", "/k", "--create"][..],
        &["elect", "/k"],
        &["lock", "/k"],
        &["standby", "/k", "--data", "a", "--fence", "true"],
    ] {
        let (status, _, said) = place.asked(&[program, &["--server", &server, "--", "true"]].concat());
        assert_eq!(status, Some(125), "{said}");
        assert!(said.contains("there is no /app,") && said.contains("create that znode first"), "{said}");
    }
}

#[test]
fn a_grace_that_does_not_fit_the_time_out_that_was_granted_is_refused_and_blocks_nobody() {
    let place = Place::new();
    for program in [&["lock", "/g"][..], &["elect", "/g", "--create"]] {
        let asked = [program, &["--session-timeout", "2m", "--grace", "50s", "--", "true"]].concat();
        let (status, _, said) = place.asked(&asked);
        assert_eq!(status, Some(125), "{said}");
        assert!(
            said.contains("granted 40s (120s was asked for)") && said.contains("--grace 20s or less"),
            "{said}"
        );
        let (status, _, said) = place.asked(&["lock", "/g", "--wait", "0s", "--", "true"]);
        assert_eq!(status, Some(0), "nobody is in the way: {said}");
    }
    let (status, _, said) =
        place.asked(&["lock", "/g", "--session-timeout", "2m", "--grace", "20s", "--", "true"]);
    assert_eq!(status, Some(0), "{said}");
}

#[test]
fn a_line_with_names_of_another_layout_is_warned_of_before_and_behind() {
    let place = Place::new();
    let kazoo = format!("/e/{:032x}__lock__", 7);
    let make = async |keeper: &node_client::Keeper| {
        keeper.create_all("/e").await.expect("made");
        keeper.create(kazoo.clone(), "", CreateMode::PersistentSequential).await.expect("made");
    };
    let warning = "warning: 00000000000000000000000000000007__lock__";
    let _first = place.run("first", &["elect", "/e", "--create"], &["sh", "-c", STUBBORN]);
    writes(&place.lines(), "first");
    place.session(make);
    place.says("first", warning);
    let _second = place.run("second", &["elect", "/e"], &["true"]);
    place.says("second", warning);
    let _third = place.run("third", &["elect", "/e", "--layout", "curator"], &["true"]);
    place.says("third", "warning: ");
    // All of one layout: nothing to warn of.
    let _alone = place.run("alone", &["lock", "/l"], &["sh", "-c", STUBBORN]);
    writes(&place.lines(), "alone");
    assert!(!place.said("alone").contains("warning"), "{}", place.said("alone"));
}

#[test]
fn a_standby_takes_no_layout_and_warns_of_data_that_two_share() {
    let place = Place::new();
    let program = ["standby", "/s", "--data", "same", "--fence", "true"];
    let (status, _, said) = place.asked(&[&program[..], &["--layout", "kazoo", "--", "true"]].concat());
    assert_eq!(status, Some(2), "{said}");
    assert!(said.contains("--layout"), "{said}");
    let _first = place.run("first", &program, &["sh", "-c", STUBBORN]);
    writes(&place.lines(), "first");
    let _second = place.run("second", &program, &["true"]);
    place.says("second", "warning: the active one has the same --data");
}

#[test]
fn a_place_with_an_access_list_is_taken_away_by_nobody_else() {
    let place = Place::new();
    let secret = place.folder.path().join("secret");
    std::fs::write(&secret, "digest:ann:secret\n").expect("written");
    let secret = secret.to_str().expect("text");
    let shown = ["--auth-file", secret, "--acl", "auth::cdrwa"];
    for program in [
        &["elect", "/e/k", "--create"][..],
        &["lock", "/l/k"],
        &["standby", "/s/k", "--data", "first", "--fence", "true"],
    ] {
        let name = program[0];
        let _first = place.run(name, &[program, &shown].concat(), &["sh", "-c", STUBBORN]);
        writes(&place.lines(), name);
        assert!(!place.said(name).contains("warning"), "{}", place.said(name));
        place.session(async |keeper| {
            let refused = keeper.get_children(program[1]).await.expect_err("it is not ours");
            assert_eq!(refused.refusal(), Some(ErrorCode::NoAuth));
            keeper.auth("digest", "ann:secret").await.expect("taken");
            for child in keeper.get_children(program[1]).await.expect("ours now").value.names {
                let path = format!("{}/{child}", program[1]);
                let list = keeper.get_acl(path.clone()).await.expect("readable").value.acl;
                assert!(list.iter().all(|entry| entry.scheme == "digest"), "{path}: {list:?}");
            }
        });
        let stranger = [program, &["--", "true"]].concat();
        let (status, _, said) = place.asked(&stranger);
        assert_eq!(status, Some(125), "{said}");
        assert!(said.contains("NoAuth") && said.contains("--auth-file"), "{said}");
        let friend = [program, &shown, &["--", "true"]].concat();
        let _second = place.start("second", &friend);
        place.says("second", if name == "standby" { "standing by" } else { "waiting behind" });
    }
}

#[test]
fn identities_and_access_lists_that_can_not_be_used_are_refused_before_anything_is_done() {
    let place = Place::new();
    let none = place.folder.path().join("none");
    let none = none.to_str().expect("text");
    for (flags, status, word) in [
        (&["--acl", "world"][..], 2, "scheme:id:rights"),
        (&["--auth", "digest"], 2, "digest:ann:secret"),
        (&["--acl", "auth::cdrwa"], 125, "add --auth-file"),
        (&["--auth-file", none], 125, none),
        (&["--tls-trust", none], 125, none),
        (&["--tls-identity", none], 2, "--tls-trust"),
        (&["--sasl-user", "ann"], 2, "--sasl-password-file"),
    ] {
        let (got, _, said) = place.asked(&[&["lock", "/l"], flags, &["--", "true"]].concat());
        assert_eq!(got, Some(status), "{flags:?}: {said}");
        assert!(said.contains(word), "{flags:?}: {said}");
    }
    place.session(async |keeper| {
        assert!(keeper.exists("/l").await.expect("asked").value.is_none(), "nothing was made");
    });
}

#[test]
fn a_resource_that_is_open_to_anyone_is_warned_of_where_an_access_list_is_asked_for() {
    let place = Place::new();
    place.session(async |keeper| keeper.create_all("/open").await.expect("made"));
    let shown = ["--auth", "digest:ann:secret", "--acl", "auth::cdrwa"];
    let (status, _, said) = place.asked(&[&["lock", "/open"], &shown[..], &["--", "true"]].concat());
    assert_eq!(status, Some(0), "{said}");
    assert!(said.contains("warning: /open is open to anyone"), "{said}");
}
