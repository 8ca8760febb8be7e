//! `harness doctor`: what works on this machine, measured and not assumed.
//!
//! It changes nothing but a scratch file below the store, which it removes. What can't be done here is said
//! plainly, with what to do about it.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use harness_systems::System;
use harness_systems::catalogue::Meant;
use runs::cluster_kind::ClusterKind;
use runs::numbers::count;

use super::screen::print;
use crate::cluster::ports::{self, Layout};
use crate::config::usually_wanted;
use crate::exit::{Exit, Failure};
use crate::host::descriptors;
use crate::host::measure::{median_of, median_sync};
use crate::host::procfs::Identity;
use crate::systems::{CATALOGUE, usual};

/// A disk slower than this makes every acknowledged write a long one.
const SLOW_SYNC: Duration = Duration::from_millis(10);
/// A loopback slower than this makes elections look slower than they are.
const SLOW_LOOPBACK: Duration = Duration::from_micros(500);
/// Five members, links and load are too much for less.
const FEWEST_CORES: usize = 2;

/// What `harness run` does without flags.
const USUAL_NODES: u32 = 5;
const USUAL_CLIENTS: u32 = 20;

/// One finding.
struct Finding {
    sound: bool,
    what: &'static str,
    words: String,
}

/// Looks at everything and prints it. Something needed that does not work is for the user to mend: exit
/// status 254.
pub fn doctor(store: &Path) -> Result<Exit, Failure> {
    let mut needed = vec![cores(), open_files(), proc_files(), ports_found(), loopback(), sync_time(store)];
    needed.extend(connection_table());
    let mut text = String::from("for `--cluster process`:\n");
    for finding in &needed {
        let mark = if finding.sound { "ok  " } else { "BAD " };
        text.push_str(&format!("  {mark} {:<10} {}\n", finding.what, finding.words));
    }
    // What is not needed for every run is told, and no reason for another exit status.
    text.push_str(&line(&clocks()));
    for finding in systems() {
        text.push_str(&line(&finding));
    }
    text.push_str("for `--cluster docker`:\n");
    text.push_str(&line(&engine()));
    print(&text)?;
    Ok(if needed.iter().all(|finding| finding.sound) { Exit::Done } else { Exit::Usage })
}

/// Something that may be missing.
fn line(finding: &Finding) -> String {
    let mark = if finding.sound { "ok  " } else { "--  " };
    format!("  {mark} {:<10} {}\n", finding.what, finding.words)
}

fn clocks() -> Finding {
    match harness_clock::available() {
        Ok(()) => Finding { sound: true, what: "clocks", words: "can be shifted in one process".to_owned() },
        Err(why) => Finding { sound: false, what: "clocks", words: format!("no clock-bump: {why}") },
    }
}

/// The systems that have to be installed, and whether they are.
fn systems() -> Vec<Finding> {
    let found = |name: &'static str| {
        let system = CATALOGUE
            .choose(name, Meant::of(USUAL_NODES))?
            .ok()
            .filter(|system| system.traits().runs_only_in(ClusterKind::Process))?;
        let (sound, words) = match system.install(&usually_wanted(&*system, USUAL_NODES)) {
            Ok(found) => {
                let version = |(of, version): (String, String)| format!("{of} {version}");
                let words = found.versions().into_iter().map(version).collect::<Vec<_>>().join(", ");
                let place = found.settings().remove("class path").map(|path| format!(" ({path})"));
                (true, words + &place.unwrap_or_default())
            }
            Err(why) => (false, format!("no --system {name}: {why}")),
        };
        Some(Finding { sound, what: name, words })
    };
    CATALOGUE.systems().filter_map(|system| found(system.name)).collect()
}

#[cfg(feature = "docker")]
fn engine() -> Finding {
    use crate::cluster::docker::{self, Engine};
    let found = |sound, words| Finding { sound, what: "docker", words };
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return found(false, format!("no runtime to ask with: {error}")),
    };
    match runtime.block_on(Engine::find()) {
        Ok(engine) => match docker::fits(&engine) {
            Ok(()) => found(true, format!("an engine answers: {}", engine.describe())),
            Err(unfit) => found(false, unfit),
        },
        Err(none) => found(false, none.to_string()),
    }
}

#[cfg(not(feature = "docker"))]
fn engine() -> Finding {
    Finding { sound: false, what: "docker", words: "this harness was built without it".to_owned() }
}

fn cores() -> Finding {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let words = if cores < FEWEST_CORES {
        format!("{cores}: members will wait for each other, and elections may come from that; lower --rate")
    } else {
        format!("{cores}")
    };
    Finding { sound: true, what: "cores", words }
}

/// What a run of the usual size would take.
fn open_files() -> Finding {
    let needed = descriptors::needed(USUAL_NODES, USUAL_CLIENTS);
    let allowed = descriptors::raise();
    match descriptors::shortage(allowed, needed) {
        Some(words) => Finding { sound: false, what: "open files", words },
        None => Finding {
            sound: true,
            what: "open files",
            words: format!(
                "a process may have {}; a run of {USUAL_NODES} members and {USUAL_CLIENTS} clients needs \
                    {needed}",
                count(allowed)
            ),
        },
    }
}

fn proc_files() -> Finding {
    match Identity::own() {
        Some(own) => Finding { sound: own.lives(), what: "/proc", words: "tells about processes".to_owned() },
        None => Finding {
            sound: false,
            what: "/proc",
            words: "does not tell about processes; a pause or a kill can't be verified".to_owned(),
        },
    }
}

fn ports_found() -> Finding {
    let range = ports::ephemeral_start().map_or("?".to_owned(), |start| start.to_string());
    match Layout::of(USUAL_NODES, usual().traits()).and_then(|layout| ports::take(layout, None)) {
        Ok(plan) => Finding {
            sound: true,
            what: "ports",
            words: format!("a free block for 5 members at {}; outgoing ones begin at {range}", plan.base()),
        },
        Err(failure) => Finding { sound: false, what: "ports", words: failure.to_string() },
    }
}

/// How full the kernel's table of connections is, where it keeps one: when it is full, packets are dropped,
/// on loopback too, and elections look seconds longer than they are.
fn connection_table() -> Option<Finding> {
    let read = |name: &str| -> Option<u64> {
        fs::read_to_string(format!("/proc/sys/net/netfilter/{name}")).ok()?.trim().parse().ok()
    };
    let (used, room) = (read("nf_conntrack_count")?, read("nf_conntrack_max")?);
    let sound = used < room / 2;
    let advice = if sound { "" } else { ", and a full table drops packets: wait, or raise nf_conntrack_max" };
    Some(Finding { sound, what: "conntrack", words: format!("{used} of {room} connections tracked{advice}") })
}

fn loopback() -> Finding {
    match measure_loopback() {
        Ok(median) => Finding {
            sound: median < SLOW_LOOPBACK,
            what: "loopback",
            words: format!("a round trip takes {} us", median.as_micros()),
        },
        Err(error) => Finding { sound: false, what: "loopback", words: format!("{error:#}") },
    }
}

fn measure_loopback() -> anyhow::Result<Duration> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("listening")?;
    let mut near = TcpStream::connect(listener.local_addr()?).context("connecting")?;
    let (mut far, _) = listener.accept().context("accepting")?;
    near.set_nodelay(true)?;
    far.set_nodelay(true)?;
    let echo = std::thread::spawn(move || {
        let mut byte = [0_u8];
        while far.read_exact(&mut byte).is_ok() && far.write_all(&byte).is_ok() {}
    });
    let median = median_of(|| {
        let mut byte = [7_u8];
        near.write_all(&byte).and_then(|()| near.read_exact(&mut byte)).context("a round trip")
    })?;
    drop(near);
    let _ = echo.join();
    Ok(median)
}

fn sync_time(store: &Path) -> Finding {
    match median_sync(store) {
        Ok(median) if median < SLOW_SYNC => Finding {
            sound: true,
            what: "disk",
            words: format!("fdatasync takes {:.2} ms where runs are kept", median.as_secs_f64() * 1e3),
        },
        Ok(median) => Finding {
            sound: true,
            what: "disk",
            words: format!(
                "fdatasync takes {:.1} ms where runs are kept, which is slow: name a faster disk with \
                    --store",
                median.as_secs_f64() * 1e3
            ),
        },
        Err(error) => Finding { sound: false, what: "disk", words: format!("{error:#}") },
    }
}
