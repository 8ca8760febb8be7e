//! `--who`: who has it and who waits, as the ensemble sees it.

use std::io::Write;

use bytes::Bytes;
use node_client::recipes::Standing;
use node_client::recipes::machines::names::child;
use node_client::recipes::machines::standby::{BREADCRUMB, LOCK};
use node_client::{ErrorCode, OpError};

use super::reach::Reached;
use super::say;

/// Nobody has it.
const NOBODY: u8 = 1;

/// Text in one field of a line: what would break the line is escaped.
pub(super) fn field(data: &[u8]) -> String {
    let text = String::from_utf8_lossy(data);
    text.chars().fold(String::new(), |mut field, char| {
        if char.is_control() {
            field.extend(char.escape_default());
        } else {
            field.push(char);
        }
        field
    })
}

fn print(lines: &[String]) -> anyhow::Result<u8> {
    let mut out = std::io::stdout().lock();
    for line in lines {
        writeln!(out, "{line}")?;
    }
    Ok(0)
}

/// Prints a line for each who stands, with tabs between its fields: what it does, its token, its name, its
/// znode. `has` says who has it, by its place in the line.
pub(super) fn line(standing: &[Standing], has: &str, holds: impl Fn(usize) -> bool) -> anyhow::Result<u8> {
    if standing.is_empty() {
        say(format_args!("nobody stands there"));
        return Ok(NOBODY);
    }
    let lines: Vec<String> = standing
        .iter()
        .enumerate()
        .map(|(at, one)| {
            let what = if holds(at) { has } else { "waits" };
            format!("{what}\t{}\t{}\t{}", one.token, field(&one.data), one.path)
        })
        .collect();
    print(&lines)
}

/// Prints a line for the active one, and one for whom the next must fence where that is another.
pub(super) async fn standby(reached: &Reached, base: &str) -> anyhow::Result<u8> {
    let active = read(reached, &child(base, LOCK)).await?;
    let crumb = read(reached, &child(base, BREADCRUMB)).await?;
    let mut lines = Vec::new();
    if let Some((data, token)) = &active {
        lines.push(format!("active\t{token}\t{}\t{}", field(data), child(base, LOCK)));
    }
    if let Some((data, token)) = crumb.filter(|(data, _)| active.as_ref().is_none_or(|(own, _)| own != data))
    {
        lines.push(format!("unfenced\t{token}\t{}\t{}", field(&data), child(base, BREADCRUMB)));
    }
    print(&lines)?;
    if active.is_none() {
        say(format_args!("nobody is active there"));
        return Ok(NOBODY);
    }
    Ok(0)
}

async fn read(reached: &Reached, znode: &str) -> anyhow::Result<Option<(Bytes, u64)>> {
    // What is read is what the ensemble has now.
    let _ = reached.keeper.sync(znode).await;
    match reached.keeper.get_data(znode).await {
        Ok(reply) => Ok(Some((reply.value.data, reply.value.stat.czxid.0))),
        Err(OpError::Refused { code: ErrorCode::NoNode, .. }) => Ok(None),
        Err(error) => Err(reached.explained(error, znode).await),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_can_not_break_a_line() {
        assert_eq!(field("a\tb\nc\u{1b}[0m é".as_bytes()), "a\\tb\\nc\\u{1b}[0m é");
    }
}
