//! What is tried on a script: larger parts first, single lines then, and at last what makes it easier to
//! read.

use std::mem::discriminant;

use workloads::op::Body;

use super::groups;
use super::head::SETTINGS;
use super::lines::{Crash, Line, Transition};
use super::parties::{client_mut, client_of, hosts_of, rename_hosts};
use super::shrinker::{Shrinker, with_lines};
use super::{ClientAction, Prompt, Script};
use crate::network::HostIndex;

/// Rounds over all passes at most: each round is worth it only when the one before found something.
const MAX_ROUNDS: usize = 60;

/// Entries after which something may happen instead.
const SOONER: [u64; 9] = [1, 2, 3, 4, 6, 8, 16, 32, 64];

/// Everything, until nothing can be spared.
pub(super) fn all(shrinker: &mut Shrinker) {
    cut_end(shrinker);
    prompt(shrinker);
    without_kinds(shrinker);
    settings(shrinker);
    without_clients(shrinker);
    without_members(shrinker);
    for _ in 0..MAX_ROUNDS {
        let before = shrinker.best.clone();
        groups::without_groups(shrinker);
        without_lines(shrinker);
        without_times(shrinker);
        prompt(shrinker);
        groups::merge_ticks(shrinker);
        merge_ticks(shrinker);
        fewer_ticks(shrinker);
        whole_dials(shrinker);
        plain(shrinker);
        without_members(shrinker);
        settings(shrinker);
        if shrinker.is_spent() {
            break;
        }
        // The dearer ones only when the others find nothing more.
        if shrinker.best == before
            && !groups::without_two_lines(shrinker)
            && !elsewhere(shrinker)
            && !groups::without_two_groups(shrinker)
        {
            break;
        }
    }
    without_strangers(shrinker);
}

fn try_without(shrinker: &mut Shrinker, spared: impl Fn(&Transition) -> bool) -> bool {
    let kept: Vec<Line> =
        shrinker.best.lines.iter().filter(|line| !spared(&line.transition)).cloned().collect();
    kept.len() < shrinker.best.lines.len() && shrinker.tries(with_lines(&shrinker.best, kept))
}

/// Where the clients' history convicts, it does so at the end; what is behind its last operation is too much.
fn cut_end(shrinker: &mut Shrinker) {
    let (mut fails, mut holds) = (0, shrinker.best.lines.len());
    while holds - fails > 1 {
        let middle = fails + (holds - fails) / 2;
        let lines = shrinker.best.lines.get(..middle).map(<[Line]>::to_vec).unwrap_or_default();
        if shrinker.tries(with_lines(&shrinker.best, lines)) {
            holds = shrinker.best.lines.len().min(middle);
            fails = fails.min(holds);
        } else {
            fails = middle;
        }
    }
}

/// What may happen by itself, at once.
fn prompt(shrinker: &mut Shrinker) {
    for more in [
        Prompt { clients: true, ..Prompt::default() },
        Prompt { disks: true, ..Prompt::default() },
        Prompt { votes: true, ..Prompt::default() },
    ] {
        let now = shrinker.best.head.prompt;
        let script = prompter(&shrinker.best, more);
        if script.head.prompt != now {
            shrinker.tries(script);
        }
    }
}

/// The script in which this happens by itself, and has no lines.
fn prompter(script: &Script, more: Prompt) -> Script {
    let now = script.head.prompt;
    let prompt = Prompt {
        clients: now.clients || more.clients,
        disks: now.disks || more.disks,
        votes: now.votes || more.votes,
    };
    let says = |transition: &Transition| match transition {
        Transition::Hears { .. } | Transition::Listens { .. } | Transition::Drops { .. } => prompt.clients,
        Transition::Stored { .. } | Transition::Wrote { .. } | Transition::Told { .. } => prompt.disks,
        Transition::Vote { .. } => prompt.votes,
        _ => false,
    };
    let lines = script.lines.iter().filter(|line| !says(&line.transition)).cloned().collect();
    let mut script = with_lines(script, lines);
    script.head.prompt = prompt;
    script
}

/// All lines of one kind.
fn without_kinds(shrinker: &mut Shrinker) {
    let mut tried = Vec::new();
    let kind_of = |transition: &Transition| {
        let packet = if let Transition::Packet { kind, .. } = transition { Some(*kind) } else { None };
        (discriminant(transition), packet)
    };
    while let Some(kind) =
        shrinker.best.lines.iter().map(|line| kind_of(&line.transition)).find(|kind| !tried.contains(kind))
    {
        tried.push(kind);
        try_without(shrinker, |transition| kind_of(transition) == kind);
        if shrinker.is_spent() {
            return;
        }
    }
}

fn settings(shrinker: &mut Shrinker) {
    for (index, setting) in SETTINGS.iter().enumerate() {
        if shrinker.best.head.settings[index] != setting.usual {
            let mut script = shrinker.best.clone();
            script.head.settings[index] = setting.usual;
            if !shrinker.tries(script) && setting.counts {
                sooner(shrinker, index);
            }
        }
    }
    if shrinker.best.head.outside {
        let mut script = shrinker.best.clone();
        script.head.outside = false;
        shrinker.tries(script);
    }
}

/// What happens every so many entries happens sooner.
fn sooner(shrinker: &mut Shrinker, index: usize) {
    for fewer in SOONER {
        let mut script = shrinker.best.clone();
        script.head.settings[index] = fewer;
        if fewer >= shrinker.best.head.settings[index] || shrinker.tries(script) {
            return;
        }
    }
}

fn without_clients(shrinker: &mut Shrinker) {
    for client in (0..shrinker.best.head.clients).rev() {
        try_without(shrinker, |transition| client_of(transition) == Some(client));
    }
}

/// Fewer members: two at a time, so that a quorum goes with a majority's half, and one.
fn without_members(shrinker: &mut Shrinker) {
    while shrinker.best.head.members > 1 && !shrinker.is_spent() {
        let members = shrinker.best.head.members;
        let mut sets: Vec<Vec<HostIndex>> = Vec::new();
        for one in (0..members).rev() {
            sets.extend((0..one).rev().filter(|_| members > 2).map(|other| vec![other, one]));
        }
        // An even ensemble is no simpler than the odd one above it.
        sets.extend((0..members).rev().filter(|_| members.is_multiple_of(2)).map(|one| vec![one]));
        if !sets.into_iter().any(|gone| try_without_members(shrinker, &gone)) {
            return;
        }
    }
}

fn try_without_members(shrinker: &mut Shrinker, gone: &[HostIndex]) -> bool {
    let stays =
        |line: &&Line| !hosts_of(&line.transition).into_iter().flatten().any(|host| gone.contains(&host));
    let mut lines: Vec<Line> = shrinker.best.lines.iter().filter(stays).cloned().collect();
    for line in &mut lines {
        rename_hosts(&mut line.transition, |host| host - gone.iter().filter(|gone| **gone < host).count());
    }
    let mut script = with_lines(&shrinker.best, lines);
    script.head.members -= gone.len();
    // Elections of fewer go otherwise; those that happen by themselves go somehow.
    let all = Prompt { clients: true, disks: true, votes: true };
    let votes = Prompt { disks: false, ..all };
    [Prompt::default(), all, votes].into_iter().any(|more| shrinker.tries(prompter(&script, more)))
}

/// Delta debugging over lines: halves, quarters, and so on down to single lines.
fn without_lines(shrinker: &mut Shrinker) {
    let mut chunk = shrinker.best.lines.len() / 2;
    while chunk > 0 && !shrinker.is_spent() {
        let mut found = false;
        // From the end: what comes later rests on what came before.
        let mut end = shrinker.best.lines.len();
        while end > 0 && !shrinker.is_spent() {
            let from = end.saturating_sub(chunk);
            let mut lines = shrinker.best.lines.clone();
            lines.drain(from..end);
            if shrinker.tries(with_lines(&shrinker.best, lines)) {
                found = true;
                end = from.min(shrinker.best.lines.len());
            } else {
                end = from;
            }
        }
        if !(found && chunk == 1) {
            chunk /= 2;
        }
    }
}

/// Lines that say no time are easier to read.
fn without_times(shrinker: &mut Shrinker) {
    let timed = |line: &Line| line.at_us.is_some();
    let mut chunk = shrinker.best.lines.len();
    while chunk > 0 && shrinker.best.lines.iter().any(timed) && !shrinker.is_spent() {
        let mut from = 0;
        while from < shrinker.best.lines.len() {
            let to = shrinker.best.lines.len().min(from + chunk);
            if shrinker.best.lines[from..to].iter().any(timed) {
                let mut script = shrinker.best.clone();
                for line in &mut script.lines[from..to] {
                    line.at_us = None;
                }
                shrinker.tries(script);
            }
            from += chunk;
        }
        chunk /= 2;
    }
}

fn tick_of(line: &Line) -> Option<(HostIndex, u32)> {
    if let Transition::Tick { host, times } = line.transition { Some((host, times)) } else { None }
}

/// Ticks beside each other become one line for each member.
fn merge_ticks(shrinker: &mut Shrinker) {
    let mut from = 0;
    while from < shrinker.best.lines.len() && !shrinker.is_spent() {
        let run = shrinker.best.lines[from..].iter().take_while(|line| tick_of(line).is_some()).count();
        if run < 2 {
            from += 1;
            continue;
        }
        let ticks = shrinker.best.lines[from..from + run].to_vec();
        let mut merged: Vec<Line> = Vec::new();
        for tick in &ticks {
            let Some((host, times)) = tick_of(tick) else { continue };
            match merged.iter_mut().find(|line| tick_of(line).is_some_and(|(merged, _)| merged == host)) {
                Some(line) => {
                    let sum = tick_of(line).map_or(times, |(_, sum)| sum.saturating_add(times));
                    line.transition = Transition::Tick { host, times: sum };
                }
                None => merged.push(tick.clone()),
            }
        }
        let length = merged.len();
        if length < run {
            let mut lines = shrinker.best.lines.clone();
            lines.splice(from..from + run, merged);
            shrinker.tries(with_lines(&shrinker.best, lines));
        }
        from += length.max(1);
    }
}

fn fewer_ticks(shrinker: &mut Shrinker) {
    for index in 0..shrinker.best.lines.len() {
        let mut fails = 0;
        while let Some((host, times)) = shrinker.best.lines.get(index).and_then(tick_of)
            && times - fails > 1
            && !shrinker.is_spent()
        {
            let fewer = fails + (times - fails) / 2;
            let mut script = shrinker.best.clone();
            script.lines[index].transition = Transition::Tick { host, times: fewer };
            if !shrinker.tries(script) {
                fails = fewer;
            }
        }
    }
}

/// A dial that its target and its dialler hear of becomes one line.
fn whole_dials(shrinker: &mut Shrinker) {
    for index in 0..shrinker.best.lines.len() {
        let Some(line) = shrinker.best.lines.get(index) else { return };
        let Transition::Accepts { host, peer } = line.transition else { continue };
        let heard = Transition::Dialled { host: peer, peer: host };
        let behind = &shrinker.best.lines[index..];
        if let Some(later) = behind.iter().position(|line| line.transition == heard) {
            let mut lines = shrinker.best.lines.clone();
            lines.remove(index + later);
            lines[index].transition = Transition::Dials { host: peer, peer: host };
            shrinker.tries(with_lines(&shrinker.best, lines));
        }
    }
}

/// Says less in a line.
fn plain(shrinker: &mut Shrinker) {
    let mut index = 0;
    while index < shrinker.best.lines.len() && !shrinker.is_spent() {
        for simpler in simpler(&shrinker.best.lines[index].transition) {
            let mut script = shrinker.best.clone();
            script.lines[index].transition = simpler;
            if shrinker.tries(script) {
                break;
            }
        }
        index += 1;
    }
}

fn simpler(transition: &Transition) -> Vec<Transition> {
    match transition.clone() {
        Transition::Stored { host, ops: Some(ops) } => {
            let fewer = (ops > 1).then_some(Transition::Stored { host, ops: Some(ops / 2) });
            [Transition::Stored { host, ops: None }].into_iter().chain(fewer).collect()
        }
        Transition::Wrote { host, ops } => vec![Transition::Stored { host, ops }],
        Transition::Crash { host, crash } if crash != Crash::default() => {
            let power = Crash { power: true, ..Crash::default() };
            let mut simpler = vec![Crash::default(), power.clone()];
            simpler.push(Crash { in_step: None, ..crash.clone() });
            simpler.push(Crash { keeps: Vec::new(), ..crash.clone() });
            simpler.push(Crash { store: None, snapshot: None, ..crash.clone() });
            simpler.truncate(if crash == power { 1 } else { simpler.len() });
            simpler.retain(|simpler| *simpler != crash);
            simpler.into_iter().map(|crash| Transition::Crash { host, crash }).collect()
        }
        Transition::Connects { client, host, anew: true } => {
            let resumed = Transition::Connects { client, host, anew: false };
            vec![Transition::Tick { host, times: 1 }, resumed]
        }
        // A client that comes too early only gives its member an occasion to look.
        Transition::Connects { host, anew: false, .. } => vec![Transition::Tick { host, times: 1 }],
        Transition::Packet { from, to, kind, zxid, old } if old > 0 => {
            vec![Transition::Packet { from, to, kind, zxid, old: 0 }]
        }
        Transition::Asks { client, action: ClientAction::Operation(_, op) } if op.basis().is_some() => {
            let Body::Cas { to, .. } = op.body else { return Vec::new() };
            let key = format!("r{}", op.key);
            let write = ClientAction::parse(&["write", &key, &to.to_string()]).ok();
            write.into_iter().map(|action| Transition::Asks { client, action }).collect()
        }
        _ => Vec::new(),
    }
}

/// Clients that go elsewhere, when less is needed for it. True when something was found.
fn elsewhere(shrinker: &mut Shrinker) -> bool {
    for index in 0..shrinker.best.lines.len() {
        let Some(line) = shrinker.best.lines.get(index) else { return false };
        let Transition::Connects { client, host, anew } = line.transition else { continue };
        for other in (0..shrinker.best.head.hosts()).filter(|other| *other != host) {
            let before = shrinker.best.clone();
            let mut script = before.clone();
            script.lines[index].transition = Transition::Connects { client, host: other, anew };
            if !shrinker.tries(script) {
                continue;
            }
            groups::without_groups(shrinker);
            without_lines(shrinker);
            if shrinker.best.lines.len() < before.lines.len() {
                return true;
            }
            shrinker.best = before;
        }
    }
    false
}

/// Clients that do nothing are not counted, and the others count from one.
fn without_strangers(shrinker: &mut Shrinker) {
    let head = shrinker.best.head;
    let acts =
        |client: &usize| shrinker.best.lines.iter().any(|line| client_of(&line.transition) == Some(*client));
    let acting: Vec<usize> = (0..head.clients).filter(acts).collect();
    let mut script = shrinker.best.clone();
    script.head.clients = acting.len();
    for line in &mut script.lines {
        if let Some(client) = client_mut(&mut line.transition)
            && let Some(new) = acting.iter().position(|acting| acting == client)
        {
            *client = new;
        }
    }
    shrinker.tries(script);
}
