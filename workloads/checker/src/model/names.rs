//! Numbers for values, keys and elements: searches compare numbers, not texts.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::history::Datum;

/// A table of names, numbered from 0 in the order of their first use. Filled while a history is decoded, read
/// while it is explained; searches do not touch it.
#[derive(Debug, Default)]
pub(super) struct Names(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    numbers: HashMap<Datum, u32>,
    names: Vec<Datum>,
}

impl Names {
    fn table(&self) -> MutexGuard<'_, Table> {
        // A table is whole after every statement, so one left behind by a panic is too.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of `name`.
    ///
    /// # Errors
    /// When there are more names than numbers.
    pub(super) fn number(&self, name: &Datum) -> Result<u32, String> {
        let mut table = self.table();
        if let Some(&number) = table.numbers.get(name) {
            return Ok(number);
        }
        let name = &name.in_any_order();
        if let Some(&number) = table.numbers.get(name) {
            return Ok(number);
        }
        let number = u32::try_from(table.names.len()).map_err(|_| "too many different values".to_owned())?;
        table.numbers.insert(name.clone(), number);
        table.names.push(name.clone());
        Ok(number)
    }

    /// What has this number.
    pub(super) fn name(&self, number: u32) -> Datum {
        usize::try_from(number).ok().and_then(|at| self.table().names.get(at).cloned()).unwrap_or_default()
    }
}

/// Up to this many items are written out.
const MOST_ITEMS: usize = 6;

/// A few of many items, for a sentence.
pub(super) fn few(items: impl ExactSizeIterator<Item = String>, [open, close]: [&str; 2]) -> String {
    let all = items.len();
    let shown: Vec<String> = items.take(MOST_ITEMS).collect();
    let rest = if all > MOST_ITEMS { format!(" … {} more", all - MOST_ITEMS) } else { String::new() };
    format!("{open}{}{rest}{close}", shown.join(" "))
}
