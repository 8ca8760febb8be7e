//! Time of the processor: what a thread was given, whatever else the machine did meanwhile.

/// What this thread has had of the processor, in seconds; with one thread that is all. Where the system does
/// not tell, the clock has to do.
pub(crate) fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = text.split_whitespace().next().and_then(|first| first.parse::<f64>().ok());
    nanoseconds.map_or_else(
        || std::time::SystemTime::UNIX_EPOCH.elapsed().map(|since| since.as_secs_f64()).unwrap_or_default(),
        |nanoseconds| nanoseconds / 1e9,
    )
}
