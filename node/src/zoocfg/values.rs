//! How the value of a key is read, and what is said of one that can't be.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use node_wire::logfile::Compression;

use crate::config::ConfigError;

/// A number of any kind; `want` says which to the operator.
pub(super) fn number<T: FromStr>(key: &str, value: &str, want: &'static str) -> Result<T, ConfigError> {
    value.parse().map_err(|_| wrong(key, value, want))
}

/// Reads a number of these.
pub(super) fn number_of<T: FromStr>(want: &'static str) -> impl Fn(&str, &str) -> Result<T, ConfigError> {
    move |key, value| number(key, value, want)
}

fn wrong(key: &str, value: &str, want: &'static str) -> ConfigError {
    ConfigError::Value { key: key.to_owned(), value: value.to_owned(), want }
}

pub(super) fn milliseconds(key: &str, value: &str) -> Result<Duration, ConfigError> {
    number(key, value, "a number of milliseconds").map(Duration::from_millis)
}

pub(super) fn kilobytes(key: &str, value: &str) -> Result<u64, ConfigError> {
    let kilobytes: u32 = number(key, value, "a number of kilobytes")?;
    Ok(u64::from(kilobytes) << 10)
}

/// A method, or nothing for none.
pub(super) fn compression(key: &str, value: &str) -> Result<Option<Compression>, ConfigError> {
    match Compression::from_name(value) {
        None if !value.is_empty() => Err(wrong(key, value, "gz, snappy, or nothing")),
        method => Ok(method),
    }
}

pub(super) fn port(key: &str, value: &str) -> Result<u16, ConfigError> {
    number(key, value, "a port number")
}

pub(super) fn connections(key: &str, value: &str) -> Result<u32, ConfigError> {
    number(key, value, "a number of connections, 0 for any")
}

/// What Java's `Float` reads and a probability can be.
pub(super) fn probability(key: &str, value: &str) -> Result<f64, ConfigError> {
    let want = "a number from 0 to 1";
    let number: f64 = number(key, value, want)?;
    if (0.0..=1.0).contains(&number) { Ok(number) } else { Err(wrong(key, value, want)) }
}

pub(super) fn flag(key: &str, value: &str) -> Result<bool, ConfigError> {
    match value.to_ascii_lowercase().as_str() {
        "true" | "yes" => Ok(true),
        "false" | "no" => Ok(false),
        _ => Err(wrong(key, value, "true or false")),
    }
}

/// An empty one would be wherever the process was started.
pub(super) fn path(key: &str, value: &str) -> Result<PathBuf, ConfigError> {
    if value.is_empty() { Err(wrong(key, value, "a path")) } else { Ok(PathBuf::from(value)) }
}

pub(super) fn text(_: &str, value: &str) -> Result<String, ConfigError> {
    Ok(value.to_owned())
}

pub(super) fn list(_: &str, value: &str) -> Result<Vec<String>, ConfigError> {
    let items = value.split(',').map(|item| item.trim().to_owned());
    Ok(items.filter(|item| !item.is_empty()).collect())
}

pub(super) fn duration(key: &str, value: &str) -> Result<Duration, ConfigError> {
    let (digits, unit_ms) = if let Some(digits) = value.strip_suffix("ms") {
        (digits, 1)
    } else if let Some(digits) = value.strip_suffix('s') {
        (digits, 1000)
    } else {
        (value, 1)
    };
    let want = "a duration such as 250, 250ms or 1s";
    let count: u32 = digits.trim().parse().map_err(|_| wrong(key, value, want))?;
    Ok(Duration::from_millis(u64::from(count) * unit_ms))
}
