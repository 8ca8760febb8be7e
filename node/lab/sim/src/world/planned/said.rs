//! What a member in a world tells of itself, as a real member prints it.

use node_core::io::Event;
use runs::events::Said;

/// What it says of a transition. A member that is established serves at once: its port needs no time to open.
pub(super) fn transition(event: &Event) -> Vec<Said> {
    match event {
        Event::Looking { left, .. } => vec![Said::Looking { left: left.map(|id| id.0) }],
        Event::Elected { leader, .. } => vec![Said::Elected { leader: leader.0 }],
        Event::Established { leader, epoch } => {
            vec![Said::Established { leader: leader.0, epoch: epoch.0 }, Said::Serving {}]
        }
        Event::Synchronizing { .. } => vec![Said::Synced {}],
        // The judges of the simulator compare the trees themselves.
        Event::Diverged { .. } => Vec::new(),
        // No run asks for it.
        Event::ReadOnly => Vec::new(),
    }
}
