//! What became of a member in a world, as a real member's output and a real process's end would have told it.

use lab_sim::planned::{News, Word};
use node_core::io;
use runs::events::{Event, Said, Stamped};
use runs::member::MemberId;

/// The events of one piece of news. A member that is established serves at once: its port needs no time to
/// open.
pub(super) fn stamped(news: News) -> Vec<Stamped> {
    let (time, node) = (news.at_us * 1000, MemberId(news.member.0));
    let events = match news.word {
        Word::Spawned => vec![Event::Spawned],
        Word::Started => vec![Event::Said(Said::Started {})],
        Word::Exited(how) => vec![Event::Exited(how)],
        Word::Halted(reason) => vec![Event::Said(Said::Halt { reason })],
        Word::Paused => vec![Event::Paused],
        Word::Resumed => vec![Event::Resumed],
        Word::Clock { offset_ms } => {
            vec![Event::Clock { offset_ns: offset_ms.saturating_mul(1_000_000), gap_ns: None }]
        }
        Word::Commits(us) => vec![Event::Said(Said::Commits { us })],
        Word::Said(event) => transition(&event),
    };
    events.into_iter().map(|event| Stamped { time, node, event }).collect()
}

fn transition(event: &io::Event) -> Vec<Event> {
    let said = match event {
        io::Event::Looking { left, .. } => vec![Said::Looking { left: left.map(|id| id.0) }],
        io::Event::Elected { leader, .. } => vec![Said::Elected { leader: leader.0 }],
        io::Event::Established { leader, epoch } => {
            vec![Said::Established { leader: leader.0, epoch: epoch.0 }, Said::Serving {}]
        }
        io::Event::Synchronizing { .. } => vec![Said::Synced {}],
        // The judges of the simulator compare the trees themselves.
        io::Event::Diverged { .. } => Vec::new(),
        // No run asks for it.
        io::Event::ReadOnly => Vec::new(),
    };
    said.into_iter().map(Event::Said).collect()
}
