//! True histories made false, or nearly so.

use crate::chance::Chance;
use crate::history::{Datum, EventKind, Record};

/// Changes one answer of a history into another that may be impossible; none when it has no answer to change.
pub fn falsify(records: &mut [Record], random: &mut Chance) -> Option<()> {
    let answers: Vec<usize> = (0..records.len())
        .filter(|&at| {
            matches!(records[at].kind, EventKind::Ok | EventKind::Fail) && records[at].value != Datum::Nil
        })
        .collect();
    let at = *answers.get(random.below(answers.len()))?;
    corrupt(&mut records[at].value, random);
    Some(())
}

fn corrupt(value: &mut Datum, random: &mut Chance) {
    match value {
        Datum::Int(number) => *number += if random.per_mille(500) { 1 } else { -1 },
        Datum::Text(text) => {
            // Another of the few data, or the next number.
            let digits = text.len() - text.chars().rev().take_while(char::is_ascii_digit).count();
            let number: u64 = text[digits..].parse().unwrap_or(0);
            let width = text.len() - digits;
            *text = format!("{}{:0width$}", &text[..digits], (number + 1) % if width == 1 { 3 } else { 100 })
                .into();
        }
        Datum::List(elements) => {
            if elements.is_empty() || random.per_mille(300) {
                elements.push(Datum::text("n0"));
            } else {
                elements.swap_remove(random.below(elements.len()));
            }
        }
        Datum::Map(entries) if !entries.is_empty() => {
            let at = random.below(entries.len());
            let (_, entry) = &mut entries[at];
            match entry {
                // A multi has a result for each step.
                Datum::List(results) if matches!(results.first(), Some(Datum::Map(_) | Datum::Nil)) => {
                    let at = random.below(results.len());
                    corrupt(&mut results[at], random);
                }
                _ => corrupt(entry, random),
            }
        }
        Datum::Map(_) | Datum::Nil | Datum::Bool(_) => {}
    }
}
