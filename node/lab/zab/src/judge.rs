//! What ZAB promises, judged after every step (Junqueira, Reed and Serafini, DSN 2011, section 3).
//!
//! - `one-leader`: at most one member establishes an epoch.
//! - `agreement`: what members deliver are prefixes of one sequence (total order, agreement).
//! - `primary-order`: that sequence has the epochs in order, and of each epoch every proposal from the first
//!   on, in the order in which its leader made them. So nobody delivers a change without those that its
//!   leader made before it.
//! - `halt`: no member stops.

use std::collections::BTreeMap;

use harness_protocols::{Broken, Id};
use node_core::MemberView;
use node_core::Role;
use node_wire::ids::Zxid;

use crate::words::{dotted, ranges};

/// What the judge remembers.
#[derive(Clone, Debug, Default, Hash)]
pub struct Memory {
    /// Who established each epoch.
    leaders: BTreeMap<u32, Id>,
    /// Who leads an established epoch now.
    leading: BTreeMap<Id, u32>,
    /// Up to where each member has delivered in its present life.
    delivered: BTreeMap<Id, Zxid>,
    /// All that anybody delivered, with what it is.
    sequence: Vec<(Zxid, Vec<u8>)>,
}

impl Memory {
    /// Looks at a member.
    ///
    /// # Errors
    /// The promise that is broken.
    pub(crate) fn see(&mut self, id: Id, view: Option<&dyn MemberView>) -> Result<(), Broken> {
        let Some(view) = view else {
            self.leading.remove(&id);
            self.delivered.remove(&id);
            return Ok(());
        };
        let status = view.status();
        self.leading.remove(&id);
        if status.established && status.role == Role::Leading {
            let epoch = status.current_epoch.0;
            self.leading.insert(id, epoch);
            let first = *self.leaders.entry(epoch).or_insert(id);
            if first != id {
                return Err(Broken::new("one-leader", format!("{first} and {id} established epoch {epoch}")));
            }
        }
        if self.delivered.insert(id, status.last_applied) != Some(status.last_applied) {
            self.delivers(id, view)?;
        }
        Ok(())
    }

    fn delivers(&mut self, id: Id, view: &dyn MemberView) -> Result<(), Broken> {
        let (entries, applied) = view.history();
        for (place, entry) in entries.iter().take(applied).enumerate() {
            let zxid = entry.zxid();
            match self.sequence.get(place) {
                Some((other, bytes)) if (*other, bytes.as_slice()) == (zxid, entry.bytes.as_ref()) => {}
                Some((other, _)) => {
                    let words =
                        format!("{id} delivers {} where {} was delivered", dotted(zxid), dotted(*other));
                    return Err(Broken::new("agreement", words));
                }
                None => {
                    let last = self.sequence.last().map_or(Zxid::ZERO, |(last, _)| *last);
                    let begins = zxid.counter() == 1 && zxid.epoch() > last.epoch();
                    if last.next() != Some(zxid) && !begins {
                        let words = format!("{id} delivers {} behind {}", dotted(zxid), dotted(last));
                        return Err(Broken::new("primary-order", words));
                    }
                    self.sequence.push((zxid, entry.bytes.to_vec()));
                }
            }
        }
        Ok(())
    }

    /// What is so by now.
    pub(crate) fn look(&self) -> String {
        let leads: Vec<String> =
            self.leading.iter().map(|(id, epoch)| format!("{id} leads epoch {epoch}")).collect();
        let leads = if leads.is_empty() { "nobody leads".to_owned() } else { leads.join(", ") };
        let delivered = ranges(self.sequence.iter().map(|(zxid, _)| *zxid));
        let delivered = if delivered.is_empty() { "nothing".to_owned() } else { delivered };
        format!("{leads}; delivered {delivered}")
    }
}
