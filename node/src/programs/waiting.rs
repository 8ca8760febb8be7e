//! What is said while one waits in a line: behind whom, and whether all in it see each other.

use std::time::Duration;

use bytestring::ByteString;
use node_client::Keeper;
use node_client::recipes::machines::names::in_order;
use node_client::recipes::{Behind, Intent, Layout};
use tokio::task::JoinHandle;

use super::say;
use super::who::field;

/// A task that ends with this.
#[derive(Debug)]
pub(super) struct Beside(JoinHandle<()>);

impl Drop for Beside {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Says each time behind whom one waits, until this is dropped.
pub(super) fn tell(keeper: &Keeper, mut behind: Behind) -> Beside {
    let keeper = keeper.clone();
    Beside(tokio::spawn(async move {
        while let Some(ahead) = behind.next().await {
            match keeper.get_data(ahead.clone()).await {
                Ok(reply) if !reply.value.data.is_empty() => {
                    say(format_args!("waiting behind {} ({ahead})", field(&reply.value.data)));
                }
                // It has no name, or went in between and the next one is told of soon.
                _ => say(format_args!("waiting behind {ahead}")),
            }
        }
    }))
}

/// Reads the line now and then, until this is dropped, and warns of contenders that may not see others.
pub(super) fn look_out(keeper: &Keeper, resource: &ByteString, layout: Layout, intent: Intent) -> Beside {
    let (keeper, resource) = (keeper.clone(), resource.clone());
    Beside(tokio::spawn(async move {
        let mut looks = tokio::time::interval(keeper.timeout().max(Duration::from_secs(1)) / 2);
        looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut is_warned = false;
        loop {
            looks.tick().await;
            let Ok(reply) = keeper.get_children(resource.clone()).await else { continue };
            let order = in_order(&reply.value.names);
            let other = order.iter().find(|contender| !layout.stands_with(intent, contender));
            match other {
                Some(other) if !is_warned => say(format_args!(
                    "warning: {} stands below {resource}, and is not named as this program names its own: \
                     programs over other libraries may not see each other, and then two hold at a time. Use \
                     one layout in a line: see --layout",
                    other.name
                )),
                _ => {}
            }
            is_warned = other.is_some();
        }
    }))
}
