//! Which flags make a load strong enough: numbers, from why operations were not sent and from how busy the
//! machine was.
//!
//! Two loads are too weak for opposite reasons. One asks for too little: more operations help. The other asks
//! for more than the bench and its machine can do, so that operations are not sent and clients are given up:
//! fewer operations, and more time for each, help. In both a longer interval leaves more room around each
//! fault, and a longer run keeps their number.

use checker::history::{History, Outcome};

use crate::numbers::lossy;
use crate::observed::Observed;
use crate::results::RunInfo;
use crate::unsent::Unsent;

/// A machine whose load is so many times its processors has no time for a measurement.
const BUSY: f64 = 1.5;
/// Of what was answered this share is asked for where it was too much.
const LESS: f64 = 0.7;
/// Operations a second that are advised at least.
const LEAST_RATE: f64 = 5.0;
/// An operation is given at least so long, and at most.
const OPERATION_MS: (u64, u64) = (2000, 10_000);
/// A required rate above this share of the advised one is advised to be lowered to it.
const REQUIRED_SHARE: f64 = 0.3;

/// The flags, with the reason before them.
pub fn on_load(
    run: &RunInfo,
    required_rate: f64,
    history: &History,
    unsent: Option<&Unsent>,
    observed: &Observed,
) -> String {
    let unsent = unsent.filter(|unsent| unsent.is_notable());
    let cores = run.host.cores.max(1);
    let load = observed.machine_load.filter(|load| *load > BUSY * f64::from(cores));
    let mut reasons = Vec::new();
    reasons.extend(unsent.map(|unsent| format!("{} were never sent: {}", unsent.in_figures(), unsent.why())));
    let processors = if cores == 1 { "processor" } else { "processors" };
    reasons.extend(load.map(|load| format!("the machine had a load of {load:.0} on {cores} {processors}")));
    if reasons.is_empty() {
        let concurrency = run.concurrency.saturating_mul(2).max(1);
        return format!("try --rate {} --concurrency {concurrency} {}", round(run.rate * 2.0), longer(run));
    }
    let asked = run.rate.max(LEAST_RATE);
    let rate = (answered_rate(history, observed) * LESS).min(asked / 2.0).max(LEAST_RATE.min(asked));
    let rate = round_down(rate);
    let timeout = run.operation_timeout_ms.unwrap_or_default().saturating_mul(2);
    let timeout = timeout.clamp(OPERATION_MS.0, OPERATION_MS.1);
    let required = round_down((rate * REQUIRED_SHARE).max(1.0));
    let required =
        if required_rate > rate * REQUIRED_SHARE { format!(" --min-rate {required}") } else { String::new() };
    format!(
        "{}; try --rate {rate}{required} --op-timeout {} {}",
        reasons.join(", and "),
        span(timeout),
        longer(run)
    )
}

/// Twice the time for each fault, and for all of them.
fn longer(run: &RunInfo) -> String {
    let twice = |ms: u64| span(ms.saturating_mul(2));
    format!("--interval {} --time-limit {}", twice(run.interval_ms), twice(run.time_limit_ms))
}

/// A time as flags take it, in whole seconds from one on.
fn span(ms: u64) -> String {
    if ms >= 1000 { format!("{}s", ms.div_ceil(1000)) } else { format!("{ms}ms") }
}

/// Operations that members answered with success, a second, while the load went on.
fn answered_rate(history: &History, observed: &Observed) -> f64 {
    let answered = history.ops().iter().filter(|op| op.outcome == Outcome::Ok).count();
    let ns = observed.workload_to_ns.saturating_sub(observed.workload_from_ns).max(1);
    lossy(u64::try_from(answered).unwrap_or(u64::MAX)) * 1e9 / lossy(ns)
}

/// With two digits that count.
fn round(value: f64) -> f64 {
    let step = step(value);
    (value / step).round() * step
}

/// The same, and never more.
fn round_down(value: f64) -> f64 {
    let step = step(value);
    ((value / step).floor() * step).max(1.0)
}

fn step(value: f64) -> f64 {
    10_f64.powf(value.max(10.0).log10().floor() - 1.0)
}

#[cfg(test)]
mod tests {
    use checker::history::{Event, EventKind, Function, Value};

    use super::*;
    use crate::results::Host;

    fn run() -> RunInfo {
        RunInfo {
            host: Host { cores: 2, ..Host::default() },
            rate: 100.0,
            concurrency: 12,
            interval_ms: 12_000,
            time_limit_ms: 60_000,
            operation_timeout_ms: Some(500),
            ..RunInfo::default()
        }
    }

    /// So many successes in ten seconds.
    fn told(run: &RunInfo, successes: u64, unsent: Option<&Unsent>, load: f64) -> String {
        let line = |process, kind| Event::new(process, kind, Function::READ, 0, Value::Null, process * 10);
        let events = (1..=successes).flat_map(|at| [line(at, EventKind::Invoke), line(at, EventKind::Ok)]);
        let history = History::from_events(events).expect("a history");
        let observed =
            Observed { workload_to_ns: 10_000_000_000, machine_load: Some(load), ..Observed::default() };
        on_load(run, 15.0, &history, unsent, &observed)
    }

    #[test]
    fn a_load_that_asks_for_too_little_is_told_to_ask_for_more() {
        assert_eq!(
            told(&run(), 900, None, 1.0),
            "try --rate 200 --concurrency 24 --interval 24s --time-limit 120s"
        );
    }

    #[test]
    fn a_load_that_the_bench_could_not_send_is_told_to_ask_for_less() {
        let unsent = Unsent { due: 1000, no_client_free: 100, replaced: 90, ..Unsent::default() };
        assert_eq!(
            told(&run(), 700, Some(&unsent), 30.0),
            "190 of 1,000 operations (19 %) were never sent: no client was free or clients were being \
             replaced, and the machine had a load of 30 on 2 processors; try --rate 49 --min-rate 14 \
             --op-timeout 2s --interval 24s --time-limit 120s"
        );
        let slow = RunInfo { rate: 40.0, operation_timeout_ms: Some(2000), ..run() };
        assert!(
            told(&slow, 20, Some(&unsent), 1.0)
                .ends_with("try --rate 5 --min-rate 1 --op-timeout 4s --interval 24s --time-limit 120s")
        );
    }

    #[test]
    fn a_busy_machine_is_not_told_to_do_more_though_all_was_sent() {
        let few = Unsent { due: 1000, no_client_free: 9, ..Unsent::default() };
        let told = told(&run(), 900, Some(&few), 13.0);
        assert!(told.starts_with("the machine had a load of 13 on 2 processors; try --rate 50 "), "{told}");
    }
}
