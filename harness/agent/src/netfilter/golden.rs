//! Our batches beside the bytes that `nft` sends for the same table.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::net::IpAddr;

use super::super::wire::Messages;
use super::*;

const GOLDEN: &str = include_str!("golden.txt");

/// The messages that `nft` sent: what was written, and kind, flags and attributes in hex.
fn golden() -> Vec<(&'static str, &'static str)> {
    let lines: Vec<_> = GOLDEN.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).collect();
    lines.chunks(2).map(|pair| (pair[0].trim_start_matches("> "), pair[1])).collect()
}

/// The changes of a batch in the same form; flags without those that only say which answer is wanted.
fn ours(batch: Batch<'_>) -> Vec<String> {
    let (writer, _) = batch.finish(1);
    let messages: Vec<_> = Messages(writer.bytes()).map(|message| message.expect("sound")).collect();
    let changes = messages.iter().filter(|message| message.kind >> 8 == SUBSYSTEM);
    let lines = changes.map(|message| {
        assert_eq!(message.body[..4], [FAMILY_INET, 0, 0, 0]);
        let flags = message.flags & !flag::ACK & !flag::EXCLUSIVE;
        let mut line = format!("{:04x} {flags:04x} ", message.kind);
        message.body[4..].iter().for_each(|byte| write!(line, "{byte:02x}").expect("text"));
        line
    });
    lines.collect()
}

fn peers() -> Vec<(Peer, IpAddr)> {
    vec![(1, [10, 0, 0, 3].into()), (2, [0xfd00, 0, 0, 0, 0, 0, 0, 3].into())]
}

#[test]
fn counting_and_a_fault_are_the_bytes_that_nft_sends() {
    let mut batch = Batch::new("t");
    batch.count(&peers(), &[2888]);
    batch.fault("f", 999, &peers(), Refusal::Reset);
    batch.enter(["f"].into_iter());
    let ours = ours(batch);
    let golden = golden();
    for line in &ours {
        assert!(golden.iter().any(|(_, bytes)| bytes == line), "nft sends nothing like {line}");
    }
    let sent: BTreeSet<&str> = ours.iter().map(String::as_str).collect();
    for (rule, bytes) in golden.into_iter().filter(|(rule, _)| !rule.starts_with("table")) {
        assert!(sent.contains(bytes), "{rule} is missing");
    }
    // The order within a chain is what makes it right.
    let of_chain = |messages: Vec<&str>| -> Vec<String> {
        messages.into_iter().filter(|line| line.starts_with("0a06")).map(str::to_owned).collect()
    };
    let ordered = of_chain(ours.iter().map(String::as_str).collect());
    assert_eq!(ordered, of_chain(self::golden().into_iter().map(|(_, bytes)| bytes).collect()));
}

#[test]
fn a_silent_fault_rejects_nothing_and_lets_no_reset_in() {
    let mut batch = Batch::new("t");
    batch.fault("f", 999, &peers(), Refusal::Silence);
    let ours = ours(batch);
    let wanted: BTreeSet<&str> = golden()
        .into_iter()
        .filter(|(rule, _)| rule.contains("drop") || rule.contains("999") || rule.contains("133"))
        .map(|(_, bytes)| bytes)
        .collect();
    assert_eq!(ours[1..].iter().map(String::as_str).collect::<BTreeSet<_>>(), wanted);
}

#[test]
fn neighbour_discovery_is_spoken_of_only_where_there_is_ipv6() {
    let mut batch = Batch::new("t");
    batch.fault("f", 999, &peers()[..1], Refusal::Silence);
    assert_eq!(ours(batch).len(), 3, "the chain, the control port, one peer");
}

#[test]
fn a_batch_is_opened_numbered_acknowledged_once_and_ended() {
    let mut batch = Batch::new("t");
    batch.replace_table(true);
    batch.delete_chain("f");
    let (writer, steps) = batch.finish(u32::MAX);
    let messages: Vec<_> = Messages(writer.bytes()).map(|message| message.expect("sound")).collect();
    let kinds: Vec<_> = messages.iter().map(|message| message.kind).collect();
    assert_eq!(kinds, [BATCH_BEGIN, 0xa00, 0xa02, 0xa00, 0xa05, BATCH_END]);
    let numbers: Vec<_> = messages.iter().map(|message| message.sequence).collect();
    assert_eq!(numbers, [u32::MAX, 0, 1, 2, 3, 4]);
    let asking: Vec<_> = messages.iter().filter(|message| message.flags & flag::ACK != 0).collect();
    assert_eq!(asking.len(), 1);
    assert_eq!(asking[0].sequence, 3, "the last change");
    assert_eq!(steps.len(), 5);
    assert!(steps[3].concerns_ownership(), "the table's second making");
    for end in [&messages[0], &messages[5]] {
        assert_eq!(end.body, [0, 0, 0, 10]);
    }
}
